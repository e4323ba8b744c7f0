"""Answers the steps of one file scan: reads bytes, decodes pages, runs jobs.

Each thread that works on a file has a lane of its own, so that counts are joined in the order of the work.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from pageseek._core.page_tasks import PARALLEL, read_pages
from pageseek.base.limits import Limits
from pageseek.base.report import Report
from pageseek.base.workers import WorkerPool
from pageseek.io.fetch import Fetcher
from pageseek.io.range_requests import DecodePages
from pageseek.io.version_checks import UnconfirmedVersions, confirm
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.requests.steps import Decode, Read, Reserve, ScanContext, Step, Steps
from pageseek.storage.store import wait_bytes

T = TypeVar("T")
WORTH_A_CORE = 1 << 18  # bytes of pages that are worth another core


class Lane:
    """Runs the steps of one file scan in the thread that calls.

    Attributes
    ----------
    context : ScanContext
        The settings of the scan, and the report that counts what happens.
    fetcher : Fetcher
        Reads the file.
    scan : FileScan, optional
        The file scan.
    """

    __slots__ = ("context", "fetcher", "scan")

    def __init__(
        self, context: ScanContext, fetcher: Fetcher, scan: FileScan | None = None
    ) -> None:
        self.context, self.fetcher, self.scan = context, fetcher, scan

    @classmethod
    def of(
        cls,
        scan: FileScan,
        report: Report,
        limits: Limits,
        pool: WorkerPool | None,
        threads: int,
        unconfirmed: UnconfirmedVersions | None,
    ) -> Lane:
        """A lane for a file that is bound. `threads`: how many decode if there is no pool."""
        file, store, kept = scan.file, scan.file.store, scan.bound_request.kept
        check = None if unconfirmed is None else unconfirmed.of(store)
        fetcher = Fetcher(store, report, file.tail, kept, pool, check, threads)
        context = ScanContext(report, limits, kept, wait_bytes(store), threads if PARALLEL else 1)
        return cls(context, fetcher, scan)

    def run(self, steps: Steps[T]) -> T:
        """Run steps to their end."""
        try:
            step = next(steps)
            while True:
                step = self.next(steps, step)
        except StopIteration as done:
            found: T = done.value
            return found

    def next(self, steps: Steps[Any], step: Step) -> Step:
        """The step after this one, which is answered. StopIteration at the end."""
        try:
            if type(step) is Read:
                answer: Any = self.fetcher.read(*step, later=step.kind == "data")
            elif type(step) is list:
                answer = self.fetcher.read(step, "index")
            elif type(step) is DecodePages:
                answer = self._decode_pages(step)
            elif type(step) is Reserve:
                answer = None
                self._reserve(step.nbytes)
            else:
                answer = self._decode(step)
        except BaseException as error:  # noqa: BLE001 - the generator adds the place, or recovers
            return steps.throw(error)
        return steps.send(answer)

    def confirm(self) -> None:
        """Raise FileChangedError if the file has another version now."""
        confirm(self.fetcher.store, self.context.report)

    def _reserve(self, nbytes: int) -> None:
        if self.fetcher.pool is not None:
            self.fetcher.pool.reserve(nbytes)

    def _decode(self, step: Step) -> list[Any]:
        """Run jobs, side by side if they are large enough."""
        assert isinstance(step, Decode)
        jobs, pool = step.jobs, self.fetcher.pool
        if pool is None or step.nbytes < WORTH_A_CORE or len(jobs) < 2:
            return [self.run(job) for job in jobs]
        return pool.each([partial(self.run, job) for job in jobs])

    def _decode_pages(self, step: DecodePages) -> list[Any]:
        """Decode pages in the core, on several threads if they are large enough."""
        tasks, pool = step.tasks, self.fetcher.pool
        helpers = min(step.nbytes // WORTH_A_CORE, len(tasks) - 1)
        if pool is None:
            return read_pages(tasks, min(1 + helpers, self.fetcher.threads) if PARALLEL else 1)
        if helpers and not PARALLEL:
            return [None] * len(tasks)  # jobs decode them, which run side by side
        with pool.idle(helpers) as idle:
            made: list[Any] = read_pages(tasks, 1 + idle)
        pool.go_on()  # and signals have their turn
        return made
