"""Many files opened in order: the ends of remote ones are read several at a time, before their turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from itertools import compress
from time import perf_counter

from pageseek.base.errors import FileChangedError
from pageseek.base.report import Report
from pageseek.base.workers import Job, WorkerPool
from pageseek.dataset.file_cache import cache
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.scan.plan import FilePlan
from pageseek.scan.request import Request
from pageseek.storage import Begun, Known, Source
from pageseek.storage.endpoint import IN_FLIGHT

FILES_AHEAD = 64  # files whose ends may be under way, or wait to be looked at
FILES_AHEAD_OF_LIMIT = 8  # where a limit may make those behind needless
MOST_END_BYTES = 64 << 20  # that these ends may take together,
LEAST_END_BYTES = 8 << 20  # and may at least, however little the scan and the cache may hold


class _Room:
    """The bytes that ends of files may take before they are looked at, and of these what they do take. Safe for threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self.usual = (
            most // IN_FLIGHT
        )  # of one; of the first, which nobody knows, as many as are asked side by side
        self.lock = threading.Lock()
        self._seen = 0

    def learn(self, size: int) -> None:
        """A file's end took `size` bytes: the next may be as long."""
        self._seen = max(size, self._seen * 9 // 10)
        self.usual = self._seen


class _Share:
    """What the end of one file takes of that. `due`: it is asked for now, and may take what it needs."""

    def __init__(self, room: _Room) -> None:
        self._room, self._size, self.due = room, room.usual, False
        with room.lock:
            room.held += self._size

    def may_grow(self, size: int) -> bool:
        """Whether `size` bytes may be read of it, which are then counted."""
        room = self._room
        with room.lock:
            more = max(size - self._size, 0)
            if room.held + more > room.most and not self.due:
                return False
            room.held += more
            self._size += more
            return True

    def give_back(self) -> None:
        """It has been looked at."""
        with self._room.lock:
            self._room.held -= self._size


class FileOpener:
    """Opens the files of one scan; those that are expected in order are begun before their turn. Safe for one thread, but for
    files that are not expected.

    Parameters
    ----------
    request : Request
        `max_ahead_bytes` and what the cache may hold bound the memory that ends of files take.
    unconfirmed : UnconfirmedVersions, optional
        As of `cache.open`.
    """

    __slots__ = ("_expected", "_foresee", "_kept", "_opened", "_request", "_unconfirmed")

    def __init__(self, request: Request, unconfirmed: UnconfirmedVersions | None = None) -> None:
        self._request, self._unconfirmed = request, unconfirmed
        self._foresee: Callable[[], Sequence[Source]] | None = None
        self._expected: deque[Source] = deque()
        self._opened: Generator[FileMetadata, None, None] | None = None
        self._kept: tuple[Source, FileMetadata] | None = None

    @property
    def capacity(self) -> int:
        """How many files stay open."""
        return cache.capacity

    def expect(self, foresee: Callable[[], Sequence[Source]]) -> None:
        """Files that will be opened one after the other, once the first of them is: remote ones are begun before their turn."""
        self._foresee = foresee

    def keep(self, source: Source, report: Report) -> FileMetadata:
        """Open a file that will be opened again."""
        file = self.open(source, report)
        self._kept = source, file
        return file

    def open(self, source: Source, report: Report, known: Known | None = None) -> FileMetadata:
        """A file, as the cache has it. `known`: its last bytes, where they were read."""
        if self._kept is not None and self._kept[0] is source:
            return self._kept[1]
        began = perf_counter()
        if self._foresee is not None:
            sources, self._foresee = self._foresee(), None
            if self._kept is not None:
                sources = [one for one in sources if one is not self._kept[0]]
            self._expected.extend(sources)
            self._opened = _opened(sources, self._request, report, self._unconfirmed)
        if self._opened is not None and self._expected and self._expected[0] is source:
            self._expected.popleft()
            file = next(self._opened)
        else:
            limit = self._request.limits.max_metadata_bytes
            file = cache.open(source, report, limit, known, self._unconfirmed)
        report.spent("open", began)
        return file

    def reopen(self, plan: FilePlan, report: Report) -> FileMetadata:
        """A file that was planned before. FileChangedError: it is not the version that was planned."""
        limit = self._request.limits.max_metadata_bytes
        file = cache.open(plan.source, report, limit, None, self._unconfirmed)
        planned, now = plan.version, file.store.version
        if now != planned:
            raise FileChangedError(
                f"{file.name}: the file changed after it was planned ({planned.tag} -> {now.tag}); plan again"
            )
        return file

    def close(self) -> None:
        """No more files will be opened before their turn."""
        if self._opened is not None:
            self._opened.close()
        self._opened = self._foresee = None
        self._expected.clear()


def _opened(
    sources: Sequence[Source],
    request: Request,
    report: Report,
    unconfirmed: UnconfirmedVersions | None,
) -> Generator[FileMetadata, None, None]:
    limit = request.limits.max_metadata_bytes
    waited = [
        source.far and (unconfirmed is None or not cache.assumes(source, limit))
        for source in sources
    ]
    if len(sources) < 2 or not any(waited):
        for source in sources:
            yield cache.open(source, report, limit, unconfirmed=unconfirmed)
        return
    ahead = FILES_AHEAD if request.limit is None else FILES_AHEAD_OF_LIMIT
    room = _Room(
        max(min(MOST_END_BYTES, request.max_ahead_bytes, cache.max_bytes), LEAST_END_BYTES)
    )
    remote = list(compress(sources, waited))
    opened = _waited_for(remote, report, limit, ahead, room)
    with closing(opened):
        for source, wait in zip(sources, waited, strict=True):
            if wait:
                yield next(opened)
            else:
                yield cache.open(source, report, limit, unconfirmed=unconfirmed)


def _waited_for(
    sources: Sequence[Source], report: Report, max_metadata_bytes: int, ahead: int, room: _Room
) -> Generator[FileMetadata, None, None]:
    """Remote files, opened `ahead` at a time, and as many as there is room for."""

    def open_one(source: Source, asked: Begun | None = None) -> tuple[FileMetadata, Report]:
        part = report.part()
        return cache.open(source, part, max_metadata_bytes, begun=asked), part

    begun: deque[tuple[Begun, _Share]] = deque()
    left, behind = iter(sources), len(sources)
    width = 0  # files whose waits count as one: those that are under way together
    try:
        for i, source in enumerate(sources):
            while (
                behind and len(begun) < ahead and (not begun or room.held + room.usual <= room.most)
            ):
                share = _Share(room)
                asked = cache.begin(next(left), max_metadata_bytes, share.may_grow)
                if asked is None:
                    share.give_back()
                    behind = 0
                    break
                begun.append((asked, share))
                behind -= 1
            if not begun:
                break
            width = min(len(begun) if behind else max(width, i + len(begun)), ahead)
            asked, share = begun.popleft()
            share.due = True
            file, part = open_one(source, asked)
            share.give_back()
            room.learn(file.end_bytes)
            report.join(part, i % width)
            yield file
            del file, asked  # who has it may be done with it while the next is waited for
        else:
            return
    finally:
        for asked, _ in begun:
            asked.give_up()
    with WorkerPool(ahead, ahead, room.most) as pool:  # they wait far more than they compute
        jobs = (Job(partial(open_one, source), room.usual) for source in sources[i:])
        for lane, (file, part) in enumerate(pool.in_order(jobs)):
            room.learn(file.end_bytes)
            report.join(part, lane % ahead)
            yield file
