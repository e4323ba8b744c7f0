"""All reads of a file pass here: ranges are coalesced, requested and counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import Any

from pageseek._core.file_bytes import FileBytes
from pageseek.base import cancellation, log
from pageseek.base.errors import CorruptFileError
from pageseek.base.report import Report
from pageseek.base.workers import WorkerPool
from pageseek.io.coalesce import LEAST, coalesced, pieces
from pageseek.io.version_checks import VersionCheck
from pageseek.storage.local import LocalStore
from pageseek.storage.remote import RemoteStore
from pageseek.storage.retry import Retries
from pageseek.storage.store import SLOW_STORE, Buffer, Store

KEPT = 8 << 20  # bytes that were read to prune, and are kept for the scan


class Kept:
    """Bytes that were read to prune, and that the scan of the same file needs again. Each is handed out once.

    What goes beyond `max_bytes` is not kept, and then read again.
    """

    __slots__ = ("_left", "held")

    def __init__(self, max_bytes: int = KEPT) -> None:
        self.held: dict[int, bytes] = {}  # by offset; empty as a rule
        self._left = max_bytes

    def put(self, offset: int, data: memoryview) -> None:
        """Keep a copy of the bytes at an offset."""
        if data.nbytes <= self._left and offset not in self.held:
            self.held[offset] = bytes(data)  # a view would keep the whole request alive
            self._left -= data.nbytes

    def take(self, offset: int, length: int) -> bytes:
        """The first of the bytes at (offset, length), as far as they are kept."""
        if not 0 < len(self.held.get(offset, b"")) <= length:
            return b""
        found = self.held.pop(offset, b"")  # another thread may have been here
        self._left += len(found)
        return found

    def length_at(self, offset: int) -> int:
        """How many bytes from an offset on are kept."""
        return len(self.held.get(offset, b""))

    def __bool__(self) -> bool:
        return bool(self.held)


class Fetcher:
    """Reads ranges of one store for one scan.

    `tail`: the last bytes of the file, if they were read before. `kept`: what was read to prune. `pool`: the threads
    that go on while a remote store is waited for. `threads`: without a pool, how many may compute. `version_check`: learns
    that a read has confirmed the version.
    """

    __slots__ = (
        "_counting",
        "_far",
        "_tail",
        "_tail_start",
        "_version_check",
        "gap",
        "kept",
        "pool",
        "report",
        "store",
        "threads",
    )

    def __init__(
        self,
        store: Store,
        report: Report,
        tail: memoryview | None = None,
        kept: Kept | None = None,
        pool: WorkerPool | None = None,
        version_check: VersionCheck | None = None,
        threads: int = 1,
    ) -> None:
        self.threads = threads
        self._version_check = version_check
        self.pool = pool
        self._far = pool is not None and store.latency >= SLOW_STORE
        self._counting = threading.Lock()  # leaves of a row group may be decoded side by side
        self.kept = Kept() if kept is None else kept
        self.store = store
        self._tail = tail
        self._tail_start = store.size - (tail.nbytes if tail is not None else 0)
        self.gap = int(store.latency * store.bandwidth)
        self.report = report

    def read(
        self, ranges: Sequence[tuple[int, int]], kind: str, later: bool = False
    ) -> list[memoryview]:
        """The bytes at each (offset, length), in the order of the ranges. `kind`: metadata, index or data. `later`: FileBytes may take
        the place of a memoryview, which are read by the thread that needs them.

        Ranges near each other become one request (coalesce.py). What the tail or `kept` holds needs none.
        """
        out, wanted, heads = self._split(ranges)
        if wanted:
            requests, places, parts = self._requests(wanted, kind)
            began = log.begun()
            answers: Sequence[Any]
            if self._far or isinstance(self.store, RemoteStore):
                answers = self._answers(places, parts)
            else:
                if self.pool is not None:
                    self.pool.go_on()
                cancellation.go_on()
                if later and not began and isinstance(self.store, LocalStore):
                    answers = self.store.read_later(places)
                else:
                    answers = self.store.read(places)
            if began:
                count = len(places) if parts is None else sum(parts)
                log.requested(self.store.name, kind, places, count, began)
            self._fill(out, wanted, requests, answers)
        return _with_heads(out, heads) if heads else out  # type: ignore[return-value]

    async def read_async(self, ranges: Sequence[tuple[int, int]], kind: str) -> list[memoryview]:
        """As `read`, by coroutines of a remote store that has them."""
        out, wanted, heads = self._split(ranges)
        if wanted:
            requests, places, _ = self._requests(wanted, kind, in_parts=False)
            assert isinstance(self.store, RemoteStore)
            retries, began = Retries(), log.begun()
            answers = await self.store.read_async(places, retries)
            self.report.retried(*retries.take())
            log.requested(self.store.name, kind, places, len(places), began)
            self._fill(out, wanted, requests, answers)
        return _with_heads(out, heads) if heads else out  # type: ignore[return-value]

    def _split(
        self, ranges: Sequence[tuple[int, int]]
    ) -> tuple[list[memoryview | None], list[tuple[int, int, int]], dict[int, bytes]]:
        """What is in memory of each range; what is not, as (offset, length, number of the range); and the first bytes of some
        ranges, which were kept.
        """
        out: list[memoryview | None] = [None] * len(ranges)
        wanted: list[tuple[int, int, int]] = []
        heads: dict[int, bytes] = {}
        store, tail, tail_start, kept = self.store, self._tail, self._tail_start, self.kept
        file_size = store.size
        for i, (offset, length) in enumerate(ranges):
            if offset < 0 or length < 0 or offset + length > file_size:
                raise CorruptFileError(
                    f"{store.name}: {length} bytes at {offset} lie outside the file of {file_size} bytes"
                )
            if tail is not None and offset >= tail_start:
                start = offset - tail_start
                out[i] = tail[start : start + length]
            elif kept.held and (head := kept.take(offset, length)):
                heads[i] = head
                if len(head) < length:
                    wanted.append((offset + len(head), length - len(head), i))
            else:
                wanted.append((offset, length, i))
        return out, wanted, heads

    def _requests(
        self, wanted: list[tuple[int, int, int]], kind: str, in_parts: bool = True
    ) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]], Sequence[int] | None]:
        """Requests for what is not in memory, which are counted: as `coalesced` gives them, their places, and how many parts each
        is fetched in, if one may be fetched in several.
        """
        wanted.sort()
        requests = coalesced(wanted, self.gap)
        report, sizes, places = self.report, [], []
        for start, length, _ in requests:
            sizes.append(length)
            places.append((start, length))
        parts, store = None, self.store
        if in_parts and isinstance(store, RemoteStore) and max(sizes) > LEAST:
            parts = pieces(sizes, self.gap, store.free)
        with self._counting:
            report.requests += len(requests) if parts is None else sum(parts)
            report.waves += 1
            report.bytes[kind] += sum(sizes)
        return requests, places, parts

    def _fill(
        self,
        out: list[memoryview | None],
        wanted: Sequence[tuple[int, int, int]],
        requests: Sequence[tuple[int, int, int]],
        answers: Sequence[Any],
    ) -> None:
        """Put the bytes of answers, buffers or FileBytes, where they were wanted."""
        if self._version_check is not None:
            self._version_check.confirmed = True
        served = iter(wanted)
        for (start, _, members), data in zip(requests, answers, strict=True):
            some = list(islice(served, members))
            if isinstance(data, FileBytes) and not _overlap(some):
                view: Any = data
            else:
                view = memoryview(data).cast("B")
            for offset, length, i in some:
                at = offset - start
                out[i] = view if length == view.nbytes else view[at : at + length]

    def _answers(
        self, requests: Sequence[tuple[int, int]], parts: Sequence[int] | None
    ) -> list[Buffer]:
        """The bytes of requests that are waited for; other threads of the pool may compute meanwhile."""
        if not self._far or self.pool is None:
            return self._read_store(requests, parts, None)
        self.pool.go_on()
        with self.pool.waiting():
            return self._read_store(requests, parts, self.pool.go_on)

    def _read_store(
        self,
        requests: Sequence[tuple[int, int]],
        parts: Sequence[int] | None,
        go_on: Callable[[], None] | None,
    ) -> list[Buffer]:
        if not isinstance(self.store, RemoteStore):
            return self.store.read(requests)
        retries = Retries()
        found = self.store.read(requests, go_on, retries, parts)
        if retries.count:
            with self._counting:
                self.report.retried(*retries.take())
        return found


def _overlap(wanted: Sequence[tuple[int, int, int]]) -> bool:
    """Whether two of the ranges, which are in order, have a byte in common."""
    return any(offset + length > after for (offset, length, _), (after, *_) in pairwise(wanted))


def _with_heads(out: list[memoryview | None], heads: dict[int, bytes]) -> list[memoryview | None]:
    """The ranges, with the first bytes of some."""
    for i, head in heads.items():
        rest = out[i]
        out[i] = memoryview(head if rest is None else b"".join((head, rest)))
    return out
