"""The last bytes of many local files: read together, and kept together."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np

from pageseek._core.lists import cut
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.storage import Known, Version
from pageseek.storage.local import Names, Seen, read_ends, seen_now, version_of

RECORD = 300  # bytes of a kept tail, beside its own
MAX_HELD_BYTES = 8 << 20  # bytes of tails that are read together
TAIL, LONGEST = (
    4 << 10,
    256 << 10,
)  # bytes read of a tail, until longer footers are seen; and of a footer, at most
SLACK = 8  # the next footer may be longer by one part in this many, and 64 bytes
USUAL = 0.9  # the share of footers that the next read has whole
FOOT = 8  # bytes behind a footer: its length, and the magic number
MAGIC = int.from_bytes(b"PAR1", "little")
AT, LENGTH, FOOTER = 0, 1, 2  # columns of spans: place in the room, bytes read, bytes of the footer
Int64s: TypeAlias = "npt.NDArray[np.int64]"
_NOTHING_SEEN, _NOTHING_READ = np.zeros((2, 0, 3), np.int64)
_NO_FEET = np.zeros((0, 2), "<u4")


class Tail(NamedTuple):
    """The last bytes of a file. `seen`: its version."""

    tail: bytes
    seen: Seen

    @property
    def version(self) -> Version:
        """The version that was read."""
        return version_of(self.seen)

    @property
    def known(self) -> Known:
        """What `Source.open` takes."""
        return Known(self.version, self.tail)


class TailBatch:
    """The tails of several files, and what was made of them. The place of a file is its number among them.

    Attributes
    ----------
    paths : tuple of str
        The files, in their order.
    looked_at : int
        How many of the files, the first ones, were read; all would have been too many bytes.
    places : int64 array
        The files whose tails have sound footers.
    footers : bytes
        Their footers, each with its length and the magic number behind it.
    at : int64 array of shape (looked_at, 2)
        Where in `footers` each footer begins, and its length.
    sizes : int64 array of shape (looked_at,)
        Bytes of each file.
    limit : int
        Bytes that a footer may have.
    made : dict
        What was parsed of footers, as lists of objects with `nbytes`, for later scans.
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
        """`seen`: the version of each file that was read. `spans`: what was read of each, (n, 3), with a footer of -1 byte
        where its tail has no sound one.
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
        """About the bytes of memory that the batch takes."""
        made: int = sum([one.nbytes for several in tuple(self.made.values()) for one in several])
        return len(self.footers) + RECORD * self.looked_at + made

    def seen(self, place: int) -> Seen:
        """The version of a file."""
        node, size, time_ns = self._seen[place].tolist()
        return node, size, time_ns

    def versions(self, places: Int64s) -> list[Version]:
        """The versions of some files."""
        return [version_of((node, size, time)) for node, size, time in self._seen[places].tolist()]

    def end(self, place: int) -> Tail:
        """The last bytes of a file: all that were read; its footer alone once they are forgotten."""
        if len(self.tails):
            at, length, _ = self._spans[place].tolist()
            return Tail(bytes(self.tails[at : at + length]), self.seen(place))
        start, length = self.at[place].tolist()
        return Tail(self.footers[start : start + length + FOOT], self.seen(place))

    def spans(self, members: Int64s) -> Int64s:
        """For some files: where their last bytes lie in `tails`, how many these are, the size of the file, and where in it
        the footer begins: shape (n, 4). No bytes once they are forgotten.
        """
        read = self._spans[members, :FOOTER] * (len(self.tails) > 0)
        sizes = self.sizes[members]
        return np.column_stack([read, sizes, sizes - FOOT - self.at[members, 1]])

    def longer(
        self,
        members: Int64s,
        lengths: Int64s,
        threads: int = 1,
        behind: Int64s | None = None,
    ) -> tuple[memoryview, Int64s]:
        """The last bytes of some files, read now: as `tails` and `spans`. No bytes of a file that was replaced. `behind`: how many
        bytes of each file lie behind those that are read.
        """
        spans = _spans(len(members), 0, lengths)
        room = np.empty(int(lengths.sum()), np.uint8)
        names = Names([self.paths[i] for i in members.tolist()])
        found = read_ends(names, 0, spans[:, :FOOTER], room, time.time_ns(), threads, behind)
        same = (found[:, :3] == self._seen[members]).all(axis=1) & (found[:, 3] == lengths)
        sizes = self.sizes[members]
        read = np.where(same, lengths, 0)
        ends = sizes - FOOT - self.at[members, 1]
        return memoryview(room), np.column_stack([spans[:, AT], read, sizes, ends])

    def part(self, place: int, offset: int, length: int) -> memoryview | None:
        """Bytes of a file, if they were read with its tail."""
        at, read, _ = self._spans[place].tolist()
        begin = offset - (int(self.sizes[place]) - read)
        if not len(self.tails) or begin < 0:
            return None
        return self.tails[at + begin : at + begin + length]

    def forget_tails(self) -> None:
        """Drop what lies before the footers: nobody reads it any more."""
        self.tails = memoryview(b"")

    def is_current(self, threads: int = 1) -> bool:
        """Whether all files still have the versions that were read."""
        now = seen_now(self._names, threads)
        if len(self.places) == self.looked_at:
            return np.array_equal(now, self._seen)
        return np.array_equal(now[self.places], self._seen[self.places])


class TailReader:
    """Reads the tails of files, one batch after the other, and learns how many bytes a footer takes.

    Attributes
    ----------
    requests, bytes : int
        Reads so far, and their bytes.
    """

    def __init__(self, limit: int, threads: int = 1) -> None:
        self._limit, self._threads = limit, threads
        self._length = 0  # bytes that are read of a tail; 0: nothing is known yet
        self._least, self._held = TAIL, MAX_HELD_BYTES
        self.requests = self.bytes = 0

    def read_more(self, length: int, files: int) -> None:
        """From here on read at least about so many bytes of each tail, of up to so many `files` at a time."""
        self._least = max(_with_slack(length), TAIL)
        self._held = max(MAX_HELD_BYTES, files * self._least)

    def read(self, paths: tuple[str, ...]) -> TailBatch:
        """The tails of the first of some files, with at most MAX_HELD_BYTES, or what `read_more` allows."""
        now = time.time_ns()
        names = Names(paths[: self._held // TAIL])
        alone = paths and not self._length and self._least == TAIL
        first = np.empty(TAIL if alone else 0, np.uint8)
        seen, spans = _NOTHING_SEEN, _NOTHING_READ
        if len(first):  # it tells how many bytes to read of the others
            seen, spans = self._read(names, 0, _spans(1, 0, TAIL), first, now)
            self._learn(spans[:, FOOTER])
        done, each = len(spans), max(self._length, self._least)
        n = min(len(paths), max(self._held // each, 1))
        room = np.empty(len(first) + (n - done) * each, np.uint8)
        room[: len(first)] = first
        others = self._read(names, done, _spans(n - done, len(first), each), room, now)
        seen, spans = np.concatenate([seen, others[0]]), np.concatenate([spans, others[1]])
        n, room = self._read_again(paths, seen, spans, room, now)
        self._learn(spans[:n, FOOTER])
        if n < len(names.paths):  # the others are in no batch yet
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
        """Read the footers that are longer than the tails so far, within HELD bytes. Returns the number of files that the
        batch has, and the room with all tails.
        """
        footers = spans[:, FOOTER]
        again = np.flatnonzero((footers >= 0) & (footers > spans[:, LENGTH] - FOOT))
        if not len(again):
            return len(spans), room
        lengths = _with_slack(spans[again, FOOTER])
        # bytes that are held once the footer of each has been read
        held = np.cumsum(spans[:, LENGTH])[again] + np.cumsum(lengths - spans[again, LENGTH])
        fit, n = max(int(np.searchsorted(held, self._held, "right")), 1), len(spans)
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
        """Read the tails of files from `start` on into a room. Returns their versions, and the spans as they were read, with
        a footer of -1 byte where there is no sound one.
        """
        found = read_ends(names, start, spans[:, :FOOTER], room, now, self._threads)
        seen, read = found[:, :3], found[:, 3]
        self.requests += int((read > 0).sum())
        self.bytes += int(read.sum())
        whole = (read >= 4 + FOOT) & (read == np.minimum(spans[:, LENGTH], seen[:, 1]))
        at = np.where(whole, spans[:, AT] + read - FOOT, 0)
        last = room[at[:, None] + np.arange(FOOT)].view("<u4") if len(at) else _NO_FEET
        foot = last[:, 0].astype(np.int64)
        most = np.minimum(seen[:, 1] - 4 - FOOT, min(LONGEST, self._limit))
        sound = whole & (last[:, 1] == MAGIC) & (foot <= most)
        return seen, np.column_stack([spans[:, AT], read, np.where(sound, foot, -1)])


def _spans(n: int, at: int, length: int | Int64s) -> Int64s:
    """Places for the tails of n files, one behind the other."""
    made = np.full((n, 3), -1, np.int64)
    made[:, LENGTH] = length
    made[:, AT] = at + np.cumsum(made[:, LENGTH]) - made[:, LENGTH]
    return made


def _with_slack(footer: Any) -> Any:
    return footer + footer // SLACK + 64
