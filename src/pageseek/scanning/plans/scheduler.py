"""Serves one scan: decides which files are open, which threads work, and what is read ahead of its turn.

A file scan is a generator of steps (steps.py). A lane (lane.py) answers them in the thread that runs the generator. The threads of
a pool run several generators at a time. A thread that waits for a store lets another one use its core.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.base.workers import WorkerPool, cores
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.scanning.one_file.file_scan import FileScan, Passed, Rows
from pageseek.scanning.one_file.lane import Lane
from pageseek.scanning.one_file.request_sharing import FEWEST_RUNS, weight
from pageseek.scanning.plans.open_ahead import FileOpener
from pageseek.scanning.requests.binding import BoundRequests
from pageseek.scanning.requests.plan import FilePlan, GroupPlan
from pageseek.scanning.requests.request import Request
from pageseek.scanning.requests.steps import Held
from pageseek.storage import Known

GROUPS_AHEAD = 16  # row groups that wait for a remote store at a time, at most


class Scheduler:
    """Serves one scan, from the first file that is opened to the last row that is handed out.

    Parameters
    ----------
    request : Request
        The request of the scan.
    report : Report
        Counts what happens.
    unconfirmed : UnconfirmedVersions, optional
        Collects the files that are opened in the version that the cache has. The caller confirms them.
    """

    def __init__(
        self, request: Request, report: Report, unconfirmed: UnconfirmedVersions | None = None
    ) -> None:
        self.request, self.report, self.unconfirmed = request, report, unconfirmed
        if unconfirmed is not None:
            unconfirmed.report = report
        self.threads = request.threads or cores()
        self.pool: WorkerPool | None = None
        self.files = FileOpener(request, unconfirmed)
        self._requests: BoundRequests | None = None
        self._last: Lane | None = None
        self._ahead_bytes = request.max_ahead_bytes // FEWEST_RUNS

    def stop(self) -> None:
        """Begin nothing more: the scan has ended."""
        self.files.close()
        if self.pool is not None:
            self.pool.stop()

    # -- row groups -----------------------------------------------------------------------------

    def lane(self, scan: FileScan, report: Report) -> Lane:
        """A lane for a file that is bound: the last one again if it fits."""
        last, pool = self._last, self.pool
        if (
            last is not None
            and last.scan is scan
            and last.context.report is report
            and last.fetcher.pool is pool
        ):
            return last
        limits = self.request.limits
        self._last = lane = Lane.of(scan, report, limits, pool, self.threads, self.unconfirmed)
        return lane

    def reopen(self, plan: FilePlan, report: Report, known: Known | None = None) -> FileScan:
        """Open a file of a plan, ready for its rows to be read. `known`: the end of the file, as it was planned."""
        if self._requests is None:
            self._requests = BoundRequests(self.request)
        file = self.files.reopen(plan, report, known)
        scan = FileScan(plan.source, file, self.request, plan.first_row)
        scan.bound_request = self._requests.of(file, plan.source)
        scan.plan = plan
        self.lane(scan, report).run(scan.load_offsets(report))
        return scan

    def prune_pages(
        self, scan: FileScan, groups: Sequence[GroupPlan], report: Report
    ) -> Sequence[GroupPlan]:
        """The row groups that have rows left after all mechanisms. Some were pruned by the footer alone before."""
        open_groups = [group for group in groups if not group.pages_pruned]
        if not open_groups:
            return groups
        began = perf_counter()
        made = self.lane(scan, report).run(scan.prune_pages(open_groups, report))
        report.spent("prune", began)
        done = [group for group in groups if group.pages_pruned]
        return sorted([*done, *made], key=lambda group: group.row_group)

    def divide(self, scan: FileScan, wanted: Sequence[int] | None, report: Report) -> None:
        """Have the row groups of a file read in at most so many pieces each; None: in as many as memory asks for."""
        from pageseek.scanning.one_file import division  # late, as below: few scans need it

        if wanted is None:
            steps = division.divide_for_memory(scan, report)
        else:
            steps = division.divide(scan, scan.plan.groups, wanted, report)
        groups = self.lane(scan, report).run(steps)
        if groups is not scan.plan.groups:
            scan.plan = replace(scan.plan, groups=groups)

    def divide_long_texts(self, scan: FileScan, report: Report) -> None:
        """Have the row groups of a file read in pieces where they have codes of long texts."""
        from pageseek.scanning.one_file.division import divide_long_texts

        groups = self.lane(scan, report).run(divide_long_texts(scan, report))
        if groups is not scan.plan.groups:
            scan.plan = replace(scan.plan, groups=groups)

    def read(
        self,
        scan: FileScan,
        group: GroupPlan,
        left: int | None,
        lane: Lane,
        held: Sequence[Held] = (),
    ) -> Rows:
        """The rows of a row group that pass, at most `left` of them. They may have been read ahead. `held`: bytes that are in
        memory already.
        """
        begun = scan.begun.pop(group.row_group, None) if scan.begun else None
        if begun is not None:
            with self.waiting():
                found: Rows
                found, part = begun.result()
            lane.context.report.join(part, 0)
            return found
        return _rows(scan, group, left, lane, held)

    def read_passed(self, scan: FileScan, passed: Passed, lane: Lane) -> Rows:
        """A piece of the rows of a row group that passed."""
        try:
            return lane.run(scan.read_passed(passed, lane.context))
        except PageseekError:
            scan.file.store.check()  # the bytes may be of another version
            raise

    def read_joined(self, scan: FileScan, groups: Sequence[GroupPlan], lane: Lane) -> Rows | None:
        """The rows of row groups that are read as one; None if they have to be read one by one."""
        try:
            from pageseek.scanning.one_file.joined_groups import read_joined

            return lane.run(read_joined(scan, groups, lane.context))
        except PageseekError:
            scan.file.store.check()  # the bytes may be of another version
            raise

    def begin(self, scan: FileScan) -> None:
        """Begin to read the row groups of a remote file while further files are opened: that saves a wave.

        Row groups that wait for their turn count against `max_ahead_bytes`.
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
        return _rows(scan, group, None, self.lane(scan, part)), part

    # -- threads --------------------------------------------------------------------------------

    def start(self, waits: bool) -> WorkerPool:
        """Start the threads of this scan. `waits`: they will wait for a store, so that more row groups are under way."""
        if self.pool is None:
            ahead = GROUPS_AHEAD if waits else self.threads + 1
            self.pool = WorkerPool(self.threads, ahead, self.request.max_ahead_bytes)
        return self.pool

    def working(self) -> Any:
        """Hold a core while the block runs, if there are threads to share it with."""
        return nullcontext() if self.pool is None else self.pool.working()

    def waiting(self) -> Any:
        """Release the core while the block waits."""
        return nullcontext() if self.pool is None else self.pool.waiting()


def _rows(
    scan: FileScan, group: GroupPlan, left: int | None, lane: Lane, held: Sequence[Held] = ()
) -> Rows:
    """Run the steps that read a row group."""
    try:
        return lane.run(scan.read(group, left, lane.context, held))
    except PageseekError:
        scan.file.store.check()  # the bytes may be of another version
        raise
