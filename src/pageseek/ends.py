"""The last bytes of small local files that follow each other: read together, and kept together."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Sequence
from itertools import accumulate
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pageseek.storage import Known, Version
from pageseek.storage.local import Seen, read_end, version_of

RECORD = 600  # bytes of an end that is kept, beside its own
HELD = 8 << 20  # bytes of ends that are read together
TAIL, LONGEST = 4 << 10, 256 << 10  # bytes read of an end, until longer footers are seen
SLACK = 8  # one part in so many by which the next footer may be longer, and 64 bytes
_FOOT = Struct("<I4s")
FOOT = _FOOT.size  # bytes behind a footer: its length, and the magic number


class End(NamedTuple):
    """The last bytes of a file. `seen`: what tells its version."""

    tail: bytes
    seen: Seen

    @property
    def version(self) -> Version:
        """The version that was read."""
        return version_of(self.seen)

    @property
    def known(self) -> Known:
        """The same for who opens the file."""
        return Known(self.version, self.tail)


class Tail(NamedTuple):
    """What was read of a file: `length` bytes that begin `at` a place among those of others, the last of which are the
    footer of `foot` bytes and FOOT more. `seen`: what tells the version.
    """

    at: int
    length: int
    foot: int
    seen: Seen


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
    tails : memoryview
        The last bytes of the files, until they are forgotten; empty then.
    """

    __slots__ = ("_tails", "at", "feet", "limit", "looked_at", "made", "paths", "seen", "tails")

    def __init__(
        self,
        paths: tuple[str, ...],
        looked_at: int,
        tails: memoryview,
        found: dict[int, Tail],
        limit: int,
    ) -> None:
        self.paths, self.looked_at, self.limit = paths, looked_at, limit
        self.seen = {i: tail.seen for i, tail in found.items()}
        ends = [(tail.at + tail.length, tail.foot + FOOT) for tail in found.values()]
        self.feet = b"".join([tails[end - length : end] for end, length in ends])
        starts = accumulate([length for _, length in ends], initial=0)
        self.at = {i: (at, tail.foot) for at, (i, tail) in zip(starts, found.items(), strict=False)}
        self.made: dict[Hashable, Any] = {}
        self.tails, self._tails = tails, found

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        made: int = sum([one.nbytes for several in tuple(self.made.values()) for one in several])
        return len(self.feet) + RECORD * len(self.seen) + made

    def end(self, place: int) -> End:
        """The last bytes of a file; as many as were read, until they are forgotten."""
        tail = self._tails.get(place)
        if tail is None:
            start, length = self.at[place]
            return End(self.feet[start : start + length + FOOT], self.seen[place])
        return End(bytes(self.tails[tail.at : tail.at + tail.length]), tail.seen)

    def places(self, members: Sequence[int]) -> npt.NDArray[np.int64]:
        """Where the last bytes of some files lie in `tails`, how many, the sizes of these files, and where in these their
        footers begin: shape (n, 4). No bytes once they are forgotten.
        """
        rows = []
        for place in members:
            tail, size = self._tails.get(place), self.seen[place][1]
            at, length = (tail.at, tail.length) if tail is not None else (0, 0)
            rows.append((at, length, size, size - FOOT - self.at[place][1]))
        return np.array(rows, np.int64).reshape(-1, 4)

    def part(self, place: int, offset: int, length: int) -> memoryview | None:
        """Bytes of a file, if they were read with its end."""
        tail = self._tails.get(place)
        if tail is None:
            return None
        at = offset - (tail.seen[1] - tail.length)
        return self.tails[tail.at + at : tail.at + at + length] if at >= 0 else None

    def forget_tails(self) -> None:
        """What lies before the footers is looked at no more."""
        self.tails, self._tails = memoryview(b""), {}

    def is_current(self) -> bool:
        """Whether all files lie there as they were."""
        paths, stat = self.paths, os.stat
        try:
            for i, (node, size, time_ns) in self.seen.items():
                now = stat(paths[i])
                if now.st_mtime_ns != time_ns or now.st_size != size or now.st_ino != node:
                    return False
        except OSError:
            return False
        return True


class Reader:
    """Reads the ends of files, many after each other, and learns how many bytes a footer takes.

    Attributes
    ----------
    requests, bytes : int
        What was read so far.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._length = limit, TAIL
        self.requests = self.bytes = 0

    def read(self, paths: tuple[str, ...]) -> Batch:
        """The ends of the first of some files, no more than are to be held at once."""
        most, now = min(LONGEST, self._limit), time.time_ns()
        room = memoryview(bytearray(min(len(paths) * self._length, HELD)))
        beside: list[memoryview] = []  # what did not fit
        used, held, looked_at = 0, 0, len(paths)
        found: dict[int, Tail] = {}
        for place, path in enumerate(paths):
            for again in (False, True):
                length = self._length
                into = room[used : used + length]
                fits = len(into) == length
                if not fits:
                    into = memoryview(bytearray(length))
                try:
                    read = read_end(path, into, now)
                except (OSError, ValueError):  # who opens it will say what is wrong
                    break
                if read is None:
                    break
                told, n = read
                self.requests, self.bytes = self.requests + 1, self.bytes + n
                if n < min(length, told[1]) or n < 4 + FOOT:
                    break
                foot, magic = _FOOT.unpack_from(into, n - FOOT)
                if magic != b"PAR1" or foot > most or foot > told[1] - 4 - FOOT:
                    break
                if foot + FOOT <= n:
                    if fits:
                        found[place] = Tail(used, n, foot, told)
                        used += n
                    else:
                        found[place] = Tail(len(room) + held - used, n, foot, told)
                        beside.append(into[:n])
                    held += n
                    if 4 * foot < self._length and not again:  # longer ones were an exception
                        self._length = max(self._length // 2, TAIL)
                    break
                if not again:
                    self._length = foot + foot // SLACK + 64
            if held > HELD:
                looked_at = place + 1
                break
        tails = memoryview(b"".join([room, *beside])) if beside else room
        return Batch(paths, looked_at, tails, found, self._limit)
