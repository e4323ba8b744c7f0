"""Runs file scans: opens files, reads bytes, has jobs done, and lets nothing of that be seen by the scans.

A file scan is a generator of steps (steps.py). The scheduler answers each step, in the thread that runs the generator. Threads
of a pool run several generators at a time; whoever waits for a store puts its core down meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from pageseek._core.decode import PARALLEL, read_pages
from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.base.workers import WorkerPool, cores
from pageseek.dataset.file_cache import cache
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.fetch import Fetcher
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.scan.bound_request import BoundRequests
from pageseek.scan.condition_order import Learned
from pageseek.scan.file_scan import FileScan, Rows
from pageseek.scan.open_ahead import OpenAhead
from pageseek.scan.plan import FilePlan, GroupPlan
from pageseek.scan.request import Request
from pageseek.scan.request_sharing import FEWEST_RUNS, weight
from pageseek.scan.row_group import Held
from pageseek.scan.steps import Decode, DecodePages, Open, Read, ScanContext, Step, Steps
from pageseek.storage import RemoteStore, Source
from pageseek.storage.store import wait_bytes

T = TypeVar("T")
WORTH_A_CORE = 1 << 18  # bytes of pages that are worth another core
GROUPS_AHEAD = 16  # row groups that may wait for a remote store at a time


class Lane:
    """Where the steps of one file scan are answered: what reads the file, and what counts that.

    Each thread that works on a file has a lane of its own, so that counts are joined in the order of the work.
    """

    __slots__ = ("context", "fetcher")

    def __init__(self, context: ScanContext, fetcher: Fetcher) -> None:
        self.context, self.fetcher = context, fetcher


class Scheduler:
    """Serves one scan, from the first file that is opened to the last row that is handed out.

    Parameters
    ----------
    request : Request
        What the scan asks for.
    report : Report
        Counts what happens.
    unconfirmed : UnconfirmedVersions, optional
        Takes the files that are opened in the version that the cache has. The caller has them confirmed.
    """

    def __init__(
        self, request: Request, report: Report, unconfirmed: UnconfirmedVersions | None = None
    ) -> None:
        self.request, self.report, self.unconfirmed = request, report, unconfirmed
        if unconfirmed is not None:
            unconfirmed.report = report
        self.threads = request.threads or cores()
        self.pool: WorkerPool | None = None
        self._learned = Learned()
        self._requests: BoundRequests | None = None
        self._ahead: OpenAhead | None = None
        self._ahead_bytes = request.max_ahead_bytes // FEWEST_RUNS

    def stop(self) -> None:
        """The scan has ended: begin nothing more."""
        self.close_files()
        if self.pool is not None:
            self.pool.stop()

    # -- files ----------------------------------------------------------------------------------

    def will_open(self, sources: Sequence[Source]) -> None:
        """Files that will be opened one after the other: remote ones are begun before their turn."""
        self._ahead = OpenAhead(sources, self.request, self.report, self.unconfirmed)

    def close_files(self) -> None:
        """No more files will be opened before their turn."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    @property
    def capacity(self) -> int:
        """How many files stay open."""
        return cache.capacity

    def scan(self, source: Source, first_row: int) -> FileScan:
        """A file of this scan. `first_row`: the number of rows in the files before it."""
        return FileScan(source, self.request, self._learned, first_row)

    def open(self, source: Source, report: Report, known: Any = None) -> FileMetadata:
        """A file, as the cache has it."""
        if self._ahead is not None and self._ahead.is_next(source):
            return self._ahead.next()
        limit = self.request.limits.max_metadata_bytes
        return cache.open(source, report, limit, known, self.unconfirmed)

    def lane(self, scan: FileScan, report: Report) -> Lane:
        """A lane for a file that is open."""
        file, store, kept = scan.file, scan.file.store, scan.bound_request.kept
        unconfirmed = self.unconfirmed
        check = None if unconfirmed is None else unconfirmed.of(store)
        fetcher = Fetcher(store, report, file.tail, kept, self.pool, check, self.threads)
        return Lane(ScanContext(report, self.request.limits, kept, wait_bytes(store)), fetcher)

    # -- steps ----------------------------------------------------------------------------------

    def run(self, steps: Steps[T], lane: Lane | Report) -> T:
        """Run a file scan to its end, in this thread. A file that is not open has no lane yet, but a report."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = (
                        lane.fetcher.read(*step) if type(step) is Read else self._answer(step, lane)  # type: ignore[union-attr]
                    )
                except BaseException as error:  # noqa: BLE001 - the scan says where, or mends it
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            found: T = done.value
            return found

    def _answer(self, step: Step, lane: Lane | Report) -> Any:
        if isinstance(step, Open):
            assert isinstance(lane, Report)
            return self.open(step.source, lane, step.known)
        assert isinstance(lane, Lane)
        if isinstance(step, DecodePages):
            return self._decode_pages(step, lane.fetcher)
        assert isinstance(step, Decode)
        jobs, pool = step.jobs, lane.fetcher.pool
        if pool is None or step.nbytes < WORTH_A_CORE or len(jobs) < 2:
            return [self.run(job, lane) for job in jobs]
        return pool.each([partial(self.run, job, lane) for job in jobs])

    def _decode_pages(self, step: DecodePages, fetcher: Fetcher) -> list[Any]:
        """Decode pages by the core, with the help of other cores where it is worth that."""
        tasks, pool = step.tasks, fetcher.pool
        helpers = min(step.nbytes // WORTH_A_CORE, len(tasks) - 1)
        if pool is None:
            return read_pages(tasks, min(1 + helpers, fetcher.threads) if PARALLEL else 1)
        if helpers and not PARALLEL:
            return [None] * len(tasks)  # they are decoded as jobs, which may run side by side
        with pool.idle(helpers) as idle:
            made: list[Any] = read_pages(tasks, 1 + idle)
        pool.go_on()  # and signals have their turn
        return made

    # -- row groups -----------------------------------------------------------------------------

    def reopen(self, plan: FilePlan, report: Report) -> FileScan:
        """A file that was planned before, in the state before its rows are read."""
        if self._requests is None:
            self._requests = BoundRequests(self.request)
        scan = self.scan(plan.source, plan.first_row)
        self.run(scan.open(None, plan.version), report)
        scan.bind(self._requests)
        scan.plan = plan
        self.run(scan.load_offsets(report), self.lane(scan, report))
        return scan

    def read(
        self,
        scan: FileScan,
        group: GroupPlan,
        left: int | None,
        lane: Lane,
        held: Sequence[Held] = (),
    ) -> Rows:
        """The rows of a row group that pass, at most as many as are `left`; they may have been read ahead. `held`: bytes that
        are at hand.
        """
        begun = scan.begun.pop(group.row_group, None) if scan.begun else None
        if begun is not None:
            with self.waiting():
                found: Rows
                found, part = begun.result()
            lane.context.report.join(part, 0)
            return found
        return self._read(scan, group, left, lane, held)

    def _read(
        self, scan: FileScan, group: GroupPlan, left: int | None, lane: Lane, held: Sequence[Held]
    ) -> Rows:
        try:
            return self.run(scan.read(group, left, lane.context, held), lane)
        except PageseekError:
            scan.file.store.check()  # what was read may be of another version
            raise

    def begin(self, scan: FileScan) -> None:
        """Begin with the row groups of a remote file while others are still being opened: that saves a wave.

        What waits for its turn takes a share of the memory that the scan may take for row groups read ahead.
        """
        pool = self.start(True)
        for group in scan.plan.groups:
            size = weight(scan, group)
            if not group.pages_pruned or size > self._ahead_bytes:
                return
            self._ahead_bytes -= size
            scan.begun[group.row_group] = pool.begin(partial(self._ahead_of_turn, scan, group))

    def _ahead_of_turn(self, scan: FileScan, group: GroupPlan) -> tuple[Rows, Report]:
        part = self.report.part()
        return self._read(scan, group, None, self.lane(scan, part), ()), part

    # -- threads --------------------------------------------------------------------------------

    def start(self, waits: bool) -> WorkerPool:
        """The threads of this scan. `waits`: they will wait for a store, so that more row groups may be under way."""
        if self.pool is None:
            ahead = GROUPS_AHEAD if waits else self.threads + 1
            self.pool = WorkerPool(self.threads, ahead, self.request.max_ahead_bytes)
        return self.pool

    def working(self) -> Any:
        """Hold a core while the block runs, where there are threads to share it with."""
        return nullcontext() if self.pool is None else self.pool.working()

    def waiting(self) -> Any:
        """Put that down while the block waits."""
        return nullcontext() if self.pool is None else self.pool.waiting()


def confirm(scan: FileScan, report: Report) -> None:
    """Raise FileChangedError where a file is another version now, and count what it takes to see that."""
    store = scan.file.store
    store.check()
    if isinstance(store, RemoteStore) and not store.version.strong:  # it was a request
        report.requests += 1
        report.waves += 1
        report.retried(*store.retries.take())
