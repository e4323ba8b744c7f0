"""The writer of a file, by `created_by` of its footer, and its known mistakes."""

from __future__ import annotations

import functools
import re
from typing import Self

from pageseek.base.records import dataclass

__all__ = ["Writer", "writer_of"]

# patterns are compiled when they are first used
_NAMED = r"(?s)(.*?)\s+version\s*([^(]*)"
_VERSION = r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})([^+]*)"
_ARROW = r"parquet-cpp(?:-arrow)? version (\d{1,9})\."
_MR = r"parquet-mr version (\d{1,9})\.(\d{1,9})\.(\d{1,9})"
_CLOUDERA = r"-cdh(\d{1,9})\.(\d{1,9})(\.|$)"


@dataclass(frozen=True, slots=True)
class Writer:
    """A library and its version; if they are unknown, `version` is None and the name may be empty.

    `build`: what stands behind the three numbers, such as "-SNAPSHOT". `arrow`: the major version of Arrow C++, where
    that wrote the file. `understates_chunks`: it left the dictionary page's header out of total_compressed_size
    (PARQUET-816). `lsb_levels`: it packed BIT_PACKED levels from the low bit. `always_compressed`: it compressed V2 pages
    and said that it had not (ARROW-10353).
    """

    name: str
    version: tuple[int, int, int] | None
    build: str = ""
    arrow: int | None = None
    understates_chunks: bool = False
    lsb_levels: bool = False
    always_compressed: bool = False

    @classmethod
    def of(cls, created_by: str | None) -> Self:
        """Take `NAME version X.Y.Z...` apart."""
        text = created_by or ""
        arrow = re.match(_ARROW, text)
        mr = re.match(_MR, text) if text.startswith("parquet-mr") else None
        version = None if arrow is None else int(arrow[1])
        habits = (
            version,
            mr is not None and tuple(map(int, mr.groups())) < (1, 2, 9),
            "impala" in text.lower(),
            text.startswith("parquet-cpp version "),
        )
        named = re.match(_NAMED, text)
        if named is None:
            return cls("", None, "", *habits)
        made = re.match(_VERSION, named[2].strip())
        if made is None:
            return cls(named[1], None, "", *habits)
        numbers = int(made[1]), int(made[2]), int(made[3])
        return cls(named[1], numbers, made[4].strip(), *habits)

    def _before(self, *version: int) -> bool:
        """Whether the version is unknown or older than another; a build such as -SNAPSHOT comes before its version."""
        known = self.version
        return known is None or known < version or (known == version and bool(self.build))

    @property
    def garbles_bytes(self) -> bool:
        """Bounds of byte strings may be those of other values, because memory was reused (PARQUET-251)."""
        if self.name != "parquet-mr" or not self._before(1, 8, 0):
            return False
        cloudera = re.match(_CLOUDERA, self.build)  # its builds have the fix earlier
        fixed = cloudera is not None and (int(cloudera[1]), int(cloudera[2])) >= (5, 5)
        return not (self.version == (1, 5, 0) and fixed)

    @property
    def garbled_bytes(self) -> bool:
        """`garbles_bytes` for deprecated bounds: a writer of unknown name or version may be parquet-mr."""
        return self.garbles_bytes or self.version is None

    @property
    def orders_as_signed(self) -> bool:
        """Bounds were compared as signed for types of any order (PARQUET-686)."""
        if self.name == "parquet-mr":
            return self._before(1, 10, 0)
        return self.name == "parquet-cpp" and self._before(1, 3, 0)

    @property
    def omits_from_filters(self) -> bool:
        """Values written as codes of a dictionary may be missing from Bloom filters (arrow-go 1164)."""
        return self.name == "parquet-go"


@functools.lru_cache(maxsize=64)
def writer_of(created_by: str | None) -> Writer:
    """The writer by `created_by`, parsed once: the files of a dataset have few writers."""
    return Writer.of(created_by)
