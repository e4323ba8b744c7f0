"""The last bytes of small local files that follow each other: read together, and kept together."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any, NamedTuple

from pageseek.storage import Known, Version
from pageseek.storage.local import Seen, seen, version_of

RECORD = 600  # bytes of an end that is kept, beside its own


class End(NamedTuple):
    """The last bytes of a file, where in them the footer begins, and its length. `seen`: what tells its version."""

    tail: bytes
    start: int
    length: int
    seen: Seen

    @property
    def version(self) -> Version:
        """The version that was read."""
        return version_of(self.seen)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.seen[1]

    @property
    def known(self) -> Known:
        """The same for who opens the file."""
        return Known(self.version, self.tail)

    @property
    def foot(self) -> bytes:
        """The footer."""
        return self.tail[self.start : self.start + self.length]

    @property
    def footer_start(self) -> int:
        """Where in the file the footer begins."""
        return self.seen[1] - 8 - self.length

    def part(self, offset: int, length: int) -> memoryview | None:
        """Bytes of the file, if they are among these."""
        at = offset - (self.seen[1] - len(self.tail))
        return memoryview(self.tail)[at : at + length] if at >= 0 else None


class Batch:
    """The ends of several files, and what was made of them.

    Attributes
    ----------
    paths : tuple of str
        The files, in their order.
    looked_at : int
        How many of them were; the others would have been too much.
    ends : dict
        By place among these, the ends that could be had in the usual way.
    made : dict
        What was read of footers, lists of what has `nbytes`, for those who look at them again.
    """

    __slots__ = ("ends", "looked_at", "made", "paths")

    def __init__(self, paths: tuple[str, ...], looked_at: int, ends: dict[int, End]) -> None:
        self.paths, self.looked_at, self.ends = paths, looked_at, ends
        self.made: dict[Hashable, Any] = {}

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        made: int = sum([one.nbytes for several in tuple(self.made.values()) for one in several])
        return sum([RECORD + len(end.tail) for end in self.ends.values()]) + made

    def is_current(self) -> bool:
        """Whether all files lie there as they were."""
        try:
            for i, end in self.ends.items():
                if seen(os.stat(self.paths[i])) != end.seen:
                    return False
        except OSError:
            return False
        return True
