"""Opens many files in order. The tails of remote files are read several at a time, before their turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from itertools import compress
from time import perf_counter

from pageseek.base.errors import AccessDeniedError, FileChangedError, PageseekError, StoreError
from pageseek.base.report import Report
from pageseek.base.workers import Job, WorkerPool
from pageseek.datasets.file_cache import cache
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.scanning.requests.plan import FilePlan
from pageseek.scanning.requests.request import BATCH_SIZE, Request
from pageseek.storage import Begun, Known, Source
from pageseek.storage.endpoint import IN_FLIGHT

FILES_AHEAD = 64  # files whose tails are under way, or wait for their turn
FILES_AHEAD_OF_LIMIT = 8  # the same where a limit may make later files needless
MOST_TAIL_BYTES = 64 << 20  # bytes of these tails at a time, at most
LEAST_TAIL_BYTES = 8 << 20  # bytes that are allowed even where the scan and the cache hold less


class _TailBudget:
    """The budget of tails that wait for their turn, in bytes, and how much of it is taken. Safe for threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self.usual = (
            most // IN_FLIGHT
        )  # bytes of one tail; before the first is known, an equal share
        self.lock = threading.Lock()
        self._seen = 0

    def learn(self, size: int) -> None:
        """The tail of a file took `size` bytes. The next one may be as long."""
        self._seen = max(size, self._seen * 9 // 10)
        self.usual = self._seen


class _Share:
    """The share of one tail in the budget. `due`: its turn has come, so that it may take what it needs."""

    def __init__(self, budget: _TailBudget) -> None:
        self._budget, self._size, self.due = budget, budget.usual, False
        with budget.lock:
            budget.held += self._size

    def may_grow(self, size: int) -> bool:
        """Whether the tail may have `size` bytes. They are then counted."""
        budget = self._budget
        with budget.lock:
            more = max(size - self._size, 0)
            if budget.held + more > budget.most and not self.due:
                return False
            budget.held += more
            self._size += more
            return True

    def give_back(self) -> None:
        """Return the share: the file is open."""
        with self._budget.lock:
            self._budget.held -= self._size


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

    def reopen(self, plan: FilePlan, report: Report, known: Known | None = None) -> FileMetadata:
        """A file that was planned before. FileChangedError: it is not the version that was planned. `known`: the end of that version.

        Where the cache has that version, and the store refuses to read of another one, the store is not asked before.
        """
        limit = self._request.limits.max_metadata_bytes
        if self._unconfirmed is None and plan.source.far:
            assumed = cache.assumed(plan.source, report, limit, plan.version)
            if assumed is not None:
                return assumed
        file = cache.open(plan.source, report, limit, known, self._unconfirmed)
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


def open_each(
    sources: Sequence[Source],
) -> Generator[tuple[Source, FileMetadata | Exception], None, None]:
    """Files in order, each until the next one is opened; the error of one that is damaged, missing or may not be read.

    Raises
    ------
    StoreError, AccessDeniedError
        A store does not answer: of the other files, too.
    """
    request, report, at = Request(None, None, None, Options(), "ieee", BATCH_SIZE), Report(), 0
    while at < len(sources):
        opener = FileOpener(request)
        opener.expect(partial(_from, sources, at))
        with closing(opener):
            while at < len(sources):
                source = sources[at]
                at += 1
                try:
                    file = opener.open(source, report)
                except (StoreError, AccessDeniedError):
                    raise
                except (PageseekError, OSError) as error:
                    yield source, error
                    break  # what was begun behind a file that fails is given up
                yield source, file


def _from(sources: Sequence[Source], at: int) -> Sequence[Source]:
    return sources[at:]


def _opened(
    sources: Sequence[Source],
    request: Request,
    report: Report,
    unconfirmed: UnconfirmedVersions | None,
) -> Generator[FileMetadata, None, None]:
    limit = request.limits.max_metadata_bytes
    if unconfirmed is None:
        cache.confirm_listed(sources, limit, report)
    waited = [
        source.far
        and not cache.is_confirmed(source, limit)
        and (unconfirmed is None or not cache.assumes(source, limit))
        for source in sources
    ]
    if len(sources) < 2 or not any(waited):
        for source in sources:
            yield cache.open(source, report, limit, unconfirmed=unconfirmed)
        return
    ahead = FILES_AHEAD if request.limit is None else FILES_AHEAD_OF_LIMIT
    budget = _TailBudget(
        max(min(MOST_TAIL_BYTES, request.max_ahead_bytes, cache.max_bytes), LEAST_TAIL_BYTES)
    )
    remote = list(compress(sources, waited))
    opened = _waited_for(remote, report, limit, ahead, budget)
    with closing(opened):
        for source, wait in zip(sources, waited, strict=True):
            if wait:
                yield next(opened)
            else:
                yield cache.open(source, report, limit, unconfirmed=unconfirmed)


def _waited_for(
    sources: Sequence[Source],
    report: Report,
    max_metadata_bytes: int,
    ahead: int,
    budget: _TailBudget,
) -> Generator[FileMetadata, None, None]:
    """Remote files, opened `ahead` at a time, within the budget."""

    def open_one(source: Source, asked: Begun | None = None) -> tuple[FileMetadata, Report]:
        part = report.part()
        return cache.open(source, part, max_metadata_bytes, begun=asked), part

    begun: deque[tuple[Begun, _Share]] = deque()
    left, behind = iter(sources), len(sources)
    width = 0  # files whose waits count as one: those that are under way together
    try:
        for i, source in enumerate(sources):
            while (
                behind
                and len(begun) < ahead
                and (not begun or budget.held + budget.usual <= budget.most)
            ):
                share = _Share(budget)
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
            budget.learn(file.end_bytes)
            report.join(part, i % width)
            yield file
            del file, asked  # who has it may be done with it while the next is waited for
        else:
            return
    finally:
        for asked, _ in begun:
            asked.give_up()
    with WorkerPool(ahead, ahead, budget.most) as pool:  # they wait far more than they compute
        jobs = (Job(partial(open_one, source), budget.usual) for source in sources[i:])
        for lane, (file, part) in enumerate(pool.in_order(jobs)):
            budget.learn(file.end_bytes)
            report.join(part, lane % ahead)
            yield file
