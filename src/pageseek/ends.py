"""The last bytes of small local files that follow each other: read together, and kept together."""

from __future__ import annotations

import os
from collections.abc import Hashable
from itertools import accumulate
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
    def known(self) -> Known:
        """The same for who opens the file."""
        return Known(self.version, self.tail)

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
    seen : dict
        By place among these, of the ends that could be had in the usual way: what tells the version.
    feet : bytes
        Their footers, each with its length and the magic number behind it.
    at : dict
        Where in these each footer begins, and its length.
    limit : int
        Bytes that a footer might have.
    made : dict
        What was read of footers, lists of what has `nbytes`, for those who look at them again.
    """

    __slots__ = ("_tails", "at", "feet", "limit", "looked_at", "made", "paths", "seen")

    def __init__(
        self, paths: tuple[str, ...], looked_at: int, ends: dict[int, End], limit: int
    ) -> None:
        self.paths, self.looked_at, self.limit = paths, looked_at, limit
        self.seen = {i: end.seen for i, end in ends.items()}
        self.feet = b"".join([end.tail[end.start :] for end in ends.values()])
        starts = accumulate([end.length + 8 for end in ends.values()], initial=0)
        self.at = {i: (at, end.length) for at, (i, end) in zip(starts, ends.items(), strict=False)}
        self.made: dict[Hashable, Any] = {}
        self._tails = ends

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        made: int = sum([one.nbytes for several in tuple(self.made.values()) for one in several])
        return len(self.feet) + RECORD * len(self.seen) + made

    def end(self, place: int) -> End:
        """The last bytes of a file; as many as were read, until they are forgotten."""
        end = self._tails.get(place)
        if end is None:
            start, length = self.at[place]
            end = End(self.feet[start : start + length + 8], 0, length, self.seen[place])
        return end

    def part(self, place: int, offset: int, length: int) -> memoryview | None:
        """Bytes of a file, if they were read with its end."""
        end = self._tails.get(place)
        return None if end is None else end.part(offset, length)

    def forget_tails(self) -> None:
        """What lies before the footers is looked at no more."""
        self._tails = {}

    def footer_start(self, place: int) -> int:
        """Where in a file the footer begins."""
        return self.seen[place][1] - 8 - self.at[place][1]

    def is_current(self) -> bool:
        """Whether all files lie there as they were."""
        try:
            for i, told in self.seen.items():
                if seen(os.stat(self.paths[i])) != told:
                    return False
        except OSError:
            return False
        return True
