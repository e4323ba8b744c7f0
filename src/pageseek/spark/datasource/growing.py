"""Files that appear below a folder, for streams: which ones an offset has seen, and which are new.

An offset holds eight bytes for each file that was taken. Files on a disk are grouped by the time of their last change, in
groups as long as `maxFileAge`; an offset keeps the latest two groups, and older files are passed over. Stores list no times, so
that there an offset holds all files that still are there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pageseek.base.errors import FileChangedError, UnsupportedError
from pageseek.datasets.sources import files_of
from pageseek.storage import Source
from pageseek.storage.resolve import DEFAULT_RETRY, resolve
from pageseek.storage.table_folders import Tables

OPTIONS = ("maxfilespertrigger", "maxfileage")
Offset = dict[str, str]
_AGE = re.compile(r"(\d+)\s*(ms|s|m|min|h|d|w|week|day|hour|minute|second)s?", re.IGNORECASE)
_SECONDS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_NEVER = -(1 << 62)
_WIDTH = 8  # bytes that stand for a name


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a folder. `group`: that of its last change."""

    order: tuple[int, str]
    group: int
    source: Source

    @property
    def is_there(self) -> bool:
        """Whether the file is still on this machine's disk. Of a file in a store only reading it tells."""
        return self.source.filesystem is not None or os.path.exists(self.source.path)


class Growing:
    """The files of a source that grows."""

    def __init__(
        self,
        source: Any,
        storage_options: Mapping[str, Any] | None = None,
        *,
        most: str | None = None,
        age: str = "7d",
    ) -> None:
        """`most`: the greatest number of files of a batch. `age`: how late a file may appear, before its last change."""
        self._source, self._storage_options = source, storage_options
        self.most = None if most is None else _count(most)
        self._age = _nanoseconds(age)
        self._known: dict[bytes, Listed] = {}

    @classmethod
    def of(
        cls, source: Any, storage_options: Mapping[str, Any] | None, options: Mapping[str, str]
    ) -> Growing:
        """With the OPTIONS of a stream. UnsupportedError: one has a value that it cannot have."""
        most, age = (options.get(name) for name in OPTIONS)
        return cls(source, storage_options, most=most, age="7d" if age is None else age)

    def refuse_table(self) -> None:
        """UnsupportedError: the source is a table of Delta Lake or Iceberg, whose files may have deleted rows."""
        tables = Tables()
        with suppress(FileNotFoundError):  # nothing yet
            resolve(self._source, self._storage_options, DEFAULT_RETRY, tables)
        for one in tables.found:
            raise UnsupportedError(
                f"{one.name}: this is a table of {one.kind}, whose log says which files and rows count, and a stream reads all "
                "files: use Spark's own stream of such tables; the option table=false reads all files"
            )

    def listed(self) -> dict[bytes, Listed]:
        """The files that are there now, by what stands for their names."""
        try:
            found = files_of(self._source, self._storage_options, table=False).files
        except FileNotFoundError:  # none yet
            found = []
        made = {}
        for source in found:
            changed = 0
            if source.filesystem is None:
                try:
                    changed = os.stat(source.path).st_mtime_ns
                except FileNotFoundError:  # removed since it was listed
                    continue
            mark = hashlib.blake2b(source.name.encode(), digest_size=_WIDTH).digest()
            made[mark] = Listed((changed, source.name), changed // self._age, source)
        self._known = made
        return made

    def latest(
        self, start: Offset, most: int | None, listed: dict[bytes, Listed] | None = None
    ) -> Offset:
        """The offset after the next batch, of at most so many files, the oldest first; `start` itself if nothing is new."""
        listed = self.listed() if listed is None else listed
        floor, groups = _floor(start), _groups(start)
        seen = set().union(*groups.values()) if groups else set()
        fresh = [
            (one.order, one.group, mark)
            for mark, one in listed.items()
            if one.group >= floor and mark not in seen
        ]
        if not fresh:
            return start
        kept = {group: marks for group, marks in groups.items() if group >= floor}
        if 0 in kept:  # of a store: files that are gone do not come back
            kept[0] = kept[0] & listed.keys()
        for _, group, mark in sorted(fresh)[:most]:
            kept.setdefault(group, set()).add(mark)
        return {str(group): _packed(marks) for group, marks in sorted(kept.items()) if marks}

    def between(self, start: Offset, end: Offset) -> list[Source]:
        """The files of a batch, in their order.

        Raises
        ------
        FileChangedError
            One of them is gone.
        """
        floor, before = _floor(start), _groups(start)
        seen = set().union(*before.values()) if before else set()
        wanted = {
            mark for group, marks in _groups(end).items() if group >= floor for mark in marks - seen
        }
        if not wanted <= self._known.keys():
            self.listed()
        there = {mark for mark in wanted & self._known.keys() if self._known[mark].is_there}
        gone = len(wanted - there)
        if gone:
            raise FileChangedError(
                f"{self._source}: {gone:,} of {len(wanted):,} files of this batch of the stream are gone: put them back, or "
                "begin with a new checkpoint"
            )
        return [one.source for one in sorted((self._known[mark] for mark in wanted), key=_order)]


def _order(one: Listed) -> tuple[int, str]:
    return one.order


def _floor(offset: Offset) -> int:
    """The earliest group whose files count as new after an offset."""
    return max(map(int, offset), default=_NEVER) - 1


def _groups(offset: Offset) -> dict[int, set[bytes]]:
    made = {}
    for group, text in offset.items():
        packed = base64.b64decode(text)
        made[int(group)] = {packed[i : i + _WIDTH] for i in range(0, len(packed), _WIDTH)}
    return made


def _packed(marks: set[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(marks))).decode()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UnsupportedError(
            f"option 'maxFilesPerTrigger' cannot be {text!r}: a whole number, at least 1"
        )
    return int(text)


def _nanoseconds(text: str) -> int:
    found = _AGE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise UnsupportedError(
            f"option 'maxFileAge' cannot be {text!r}: a number with ms, s, m, h, d or w"
        )
    unit = found[2].lower()
    return int(int(found[1]) * _SECONDS[unit if unit in _SECONDS else unit[0]] * 1e9)
