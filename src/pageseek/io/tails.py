"""The last bytes of small local files that follow each other: read together, and kept together."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pageseek._core.lists import cut
from pageseek.storage import Known, Version
from pageseek.storage.local import Names, Seen, read_ends, seen_now, version_of

RECORD = 300  # bytes of an end that is kept, beside its own
HELD = 8 << 20  # bytes of ends that are read together
TAIL, LONGEST = 4 << 10, 256 << 10  # bytes read of an end, until longer footers are seen
SLACK = 8  # one part in so many by which the next footer may be longer, and 64 bytes
USUAL = 0.9  # the share of footers that the next read is to have whole
FOOT = 8  # bytes behind a footer: its length, and the magic number
MAGIC = int.from_bytes(b"PAR1", "little")
AT, LENGTH, FOOTER = range(
    3
)  # of what was read of a file: where it lies, its bytes, those of its footer
Int64s = npt.NDArray[np.int64]
_NOTHING_SEEN, _NOTHING_READ = np.zeros((2, 0, 3), np.int64)
_NO_FEET = np.zeros((0, 2), "<u4")


class Tail(NamedTuple):
    """The last bytes of a file. `seen`: what tells its version."""

    tail: bytes
    seen: Seen

    @property
    def version(self) -> Version:
        """The version that was read."""
        return version_of(self.seen)

    @property
    def known(self) -> Known:
        """What the file is opened from."""
        return Known(self.version, self.tail)


class TailBatch:
    """The ends of several files, and what was made of them. A file has its place among them.

    Attributes
    ----------
    paths : tuple of str
        The files, in their order.
    looked_at : int
        How many of them were; the others would have been too much.
    places : int64 array
        Of the ends that could be had in the usual way.
    footers : bytes
        Their footers, each with its length and the magic number behind it.
    at : int64 array of shape (looked_at, 2)
        Where in these each footer begins, and its length.
    sizes : int64 array of shape (looked_at,)
        Of the files.
    limit : int
        Bytes that a footer might have.
    made : dict
        What was read of footers, lists of what has `nbytes`, for those who look at them again.
    tails : memoryview
        The last bytes of the files, until they are forgotten; empty then.
    """

    __slots__ = "_names", "_seen", "_spans", "at", "footers", "limit", "looked_at", "made", "paths", "places", "sizes", "tails"  # fmt: skip

    def __init__(
        self,
        paths: tuple[str, ...],
        names: Names,
        tails: memoryview,
        seen: Int64s,
        spans: Int64s,
        limit: int,
    ) -> None:
        """`seen`: what tells the version of each file that was looked at; `spans`: what was read of each, (n, 3); a
        footer of -1 byte where its end could not be had.
        """
        self.paths, self.looked_at, self.limit = paths, len(spans), limit
        self._names, self._seen, self.sizes = names, seen, seen[:, 1]
        self.places = np.flatnonzero(spans[:, FOOTER] >= 0)
        lengths = spans[self.places, FOOTER]
        ends = (spans[:, AT] + spans[:, LENGTH])[self.places]
        self.footers = cut(tails, np.stack([ends - lengths - FOOT, lengths + FOOT], axis=1))
        self.at = np.zeros((len(spans), 2), np.int64)
        self.at[self.places, 1] = lengths
        self.at[self.places, 0] = np.cumsum(lengths + FOOT) - (lengths + FOOT)
        self.made: dict[Hashable, Any] = {}
        self.tails, self._spans = tails, spans

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        made: int = sum([one.nbytes for several in tuple(self.made.values()) for one in several])
        return len(self.footers) + RECORD * self.looked_at + made

    def seen(self, place: int) -> Seen:
        """What tells the version of a file."""
        node, size, time_ns = self._seen[place].tolist()
        return node, size, time_ns

    def end(self, place: int) -> Tail:
        """The last bytes of a file; as many as were read, until they are forgotten."""
        if len(self.tails):
            at, length, _ = self._spans[place].tolist()
            return Tail(bytes(self.tails[at : at + length]), self.seen(place))
        start, length = self.at[place].tolist()
        return Tail(self.footers[start : start + length + FOOT], self.seen(place))

    def spans(self, members: Int64s) -> Int64s:
        """Where the last bytes of some files lie in `tails`, how many, the sizes of these files, and where in these their
        footers begin: shape (n, 4). No bytes once they are forgotten.
        """
        read = self._spans[members, :FOOTER] * (len(self.tails) > 0)
        sizes = self.sizes[members]
        return np.column_stack([read, sizes, sizes - FOOT - self.at[members, 1]])

    def part(self, place: int, offset: int, length: int) -> memoryview | None:
        """Bytes of a file, if they were read with its end."""
        at, read, _ = self._spans[place].tolist()
        begin = offset - (int(self.sizes[place]) - read)
        if not len(self.tails) or begin < 0:
            return None
        return self.tails[at + begin : at + begin + length]

    def forget_tails(self) -> None:
        """What lies before the footers is looked at no more."""
        self.tails = memoryview(b"")

    def is_current(self, threads: int = 1) -> bool:
        """Whether all files lie there as they were."""
        now = seen_now(self._names, threads)
        if len(self.places) == self.looked_at:
            return np.array_equal(now, self._seen)
        return np.array_equal(now[self.places], self._seen[self.places])


class TailReader:
    """Reads the ends of files, many after each other, and learns how many bytes a footer takes.

    Attributes
    ----------
    requests, bytes : int
        What was read so far.
    """

    def __init__(self, limit: int, threads: int = 1) -> None:
        self._limit, self._threads = limit, threads
        self._length = 0  # bytes that are read of an end; nothing is known yet
        self.requests = self.bytes = 0

    def read(self, paths: tuple[str, ...]) -> TailBatch:
        """The ends of the first of some files, no more than are to be held at once."""
        now = time.time_ns()
        names = Names(paths[: HELD // TAIL])
        first = np.empty(TAIL if paths and not self._length else 0, np.uint8)
        seen, spans = _NOTHING_SEEN, _NOTHING_READ
        if len(first):  # it says how many bytes are to be read of the others
            seen, spans = self._read(names, 0, _spans(1, 0, TAIL), first, now)
            self._learn(spans[:, FOOTER])
        done, each = len(spans), max(self._length, TAIL)
        n = min(len(paths), max(HELD // each, 1))
        room = np.empty(len(first) + (n - done) * each, np.uint8)
        room[: len(first)] = first
        others = self._read(names, done, _spans(n - done, len(first), each), room, now)
        seen, spans = np.concatenate([seen, others[0]]), np.concatenate([spans, others[1]])
        n, room = self._read_again(paths, seen, spans, room, now)
        self._learn(spans[:n, FOOTER])
        if n < len(names.paths):  # the others are not asked for again
            names = Names(paths[:n])
        return TailBatch(paths, names, memoryview(room), seen[:n], spans[:n], self._limit)

    def _read_again(
        self,
        paths: tuple[str, ...],
        seen: Int64s,
        spans: Int64s,
        room: npt.NDArray[np.uint8],
        now: int,
    ) -> tuple[int, npt.NDArray[np.uint8]]:
        """Read the footers that are longer than what was read, as far as there is room. Returns how many files were looked
        at, and the room with what was read.
        """
        footers = spans[:, FOOTER]
        again = np.flatnonzero((footers >= 0) & (footers > spans[:, LENGTH] - FOOT))
        if not len(again):
            return len(spans), room
        lengths = _with_slack(spans[again, FOOTER])
        # what is held when the end of each has been read
        held = np.cumsum(spans[:, LENGTH])[again] + np.cumsum(lengths - spans[again, LENGTH])
        fit, n = max(int(np.searchsorted(held, HELD, "right")), 1), len(spans)
        if fit < len(again):
            n, again, lengths = int(again[fit]), again[:fit], lengths[:fit]
        beside = np.empty(int(lengths.sum()), np.uint8)
        those = Names([paths[i] for i in again.tolist()])
        told, more = self._read(those, 0, _spans(len(again), 0, lengths), beside, now)
        more[more[:, FOOTER] > more[:, LENGTH] - FOOT, FOOTER] = -1  # it grew meanwhile
        more[:, AT] += len(room)
        seen[again], spans[again] = told, more
        return n, np.concatenate([room, beside])

    def _learn(self, footers: Int64s) -> None:
        footers = np.sort(footers[footers >= 0])
        if len(footers):
            self._length = max(_with_slack(int(footers[int(USUAL * (len(footers) - 1))])), TAIL)

    def _read(
        self, names: Names, start: int, spans: Int64s, room: npt.NDArray[np.uint8], now: int
    ) -> tuple[Int64s, Int64s]:
        """Read the ends of files from `start` on into a room. Returns what tells the versions, and the spans as they were
        read; a footer of -1 byte where there is none.
        """
        found = read_ends(names, start, spans[:, :FOOTER], room, now, self._threads)
        seen, read = found[:, :3], found[:, 3]
        self.requests, self.bytes = (
            self.requests + int((read > 0).sum()),
            self.bytes + int(read.sum()),
        )
        whole = (read >= 4 + FOOT) & (read == np.minimum(spans[:, LENGTH], seen[:, 1]))
        at = np.where(whole, spans[:, AT] + read - FOOT, 0)
        last = room[at[:, None] + np.arange(FOOT)].view("<u4") if len(at) else _NO_FEET
        foot = last[:, 0].astype(np.int64)
        most = np.minimum(seen[:, 1] - 4 - FOOT, min(LONGEST, self._limit))
        sound = whole & (last[:, 1] == MAGIC) & (foot <= most)
        return seen, np.column_stack([spans[:, AT], read, np.where(sound, foot, -1)])


def _spans(n: int, at: int, length: int | Int64s) -> Int64s:
    """Places for the ends of n files, one behind the other."""
    made = np.full((n, 3), -1, np.int64)
    made[:, LENGTH] = length
    made[:, AT] = at + np.cumsum(made[:, LENGTH]) - made[:, LENGTH]
    return made


def _with_slack(footer: Any) -> Any:
    return footer + footer // SLACK + 64
