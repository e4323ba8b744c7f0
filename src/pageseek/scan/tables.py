"""The rows of a plan, a table for each row group that has some, in the order of the files.

Row groups are read one after the other, or several at a time. Either way a piece of work is handed out in its turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.base.workers import Job
from pageseek.scan.accounting import last_proof
from pageseek.scan.file_scan import FileScan
from pageseek.scan.lane import Lane
from pageseek.scan.limit_steps import LimitSteps
from pageseek.scan.plan import FilePlan, GroupPlan
from pageseek.scan.request import Request
from pageseek.scan.request_sharing import FEWEST_RUNS, UNKNOWN_BYTES, fetch, runs
from pageseek.scan.row_group import Held
from pageseek.scan.scheduler import Scheduler
from pageseek.storage.store import wait_bytes

FEW_VALUES = 1 << 18  # that one thread has read before another is ready
# values of a row group below which threads wait for each other, for the interpreter's lock, rather than work: by two
# threads files of 5,000 rows and 4 columns took 1.8 times as long, of 20,000 rows and 12 columns 1.2 times, of 16 as long
GROUP_VALUES = 1 << 18
GROUP_BYTES = 1 << 20  # of a row group that are work for a thread, however few values they are


Narrow = Callable[[FileScan, GroupPlan, Lane], GroupPlan]


class Opened:
    """A file whose row groups are read: how many are left, and whether its version is still to be confirmed."""

    __slots__ = ("_left", "_lock", "scan", "unconfirmed")

    def __init__(self, scan: FileScan, row_groups: int) -> None:
        self.scan, self.unconfirmed = scan, True
        self._left, self._lock = row_groups, threading.Lock()

    def done(self, row_groups: int) -> bool:
        """Row groups were read. Whether they were the last."""
        with self._lock:
            self._left -= row_groups
            return self._left == 0


class Piece(NamedTuple):
    """Row groups that are read together. What was read of them before the first that failed is handed out, and then the error
    raised.
    """

    tables: list[pa.Table]
    failed: Exception | None
    part: Report
    thread: int


class TableReader:
    """Reads the files of one plan.

    Parameters
    ----------
    schema : pyarrow.Schema
        That of the tables.
    scans : sequence of FileScan or None
        The files that are open; empty where none is.
    narrow : callable, optional
        Leaves out rows of a row group by what was read of those before, which are then read one after the other.
    """

    def __init__(
        self,
        request: Request,
        schema: pa.Schema,
        files: Sequence[FilePlan],
        scans: Sequence[FileScan | None],
        scheduler: Scheduler,
        narrow: Narrow | None = None,
    ) -> None:
        self._request, self._schema, self._plans = request, schema, files
        self._scheduler, self._report = scheduler, scheduler.report
        self._scans = scans or [None] * len(files)
        self._left, self._narrow = request.limit, narrow

    def tables(self) -> Iterator[pa.Table]:
        """The tables, in order."""
        scheduler, waits = self._scheduler, self._waits()
        row_groups = sum([len(file.groups) for file in self._plans])
        if self._narrow is None and (waits or self._is_heavy(row_groups)):
            scheduler.start(waits)
        beside = self._left is None and row_groups > 1 and scheduler.pool is not None
        try:
            yield from self._beside() if beside else self._in_turn()
        finally:
            scheduler.stop()

    def _waits(self) -> bool:
        """Whether reads wait for a store."""
        open_scans = [scan for scan in self._scans if scan is not None]
        if open_scans:
            return any(wait_bytes(scan.file.store) for scan in open_scans)
        return any(file.source.far for file in self._plans)

    def _is_heavy(self, row_groups: int) -> bool:
        """Whether several threads are quicker than one."""
        num_rows = self._left
        if num_rows is None:
            num_rows = sum([group.ranges.num_rows for file in self._plans for group in file.groups])
        values = num_rows * max(len(self._schema), 1)
        size = sum([file.version.size for file in self._plans])
        light = values < GROUP_VALUES * row_groups and size < GROUP_BYTES * row_groups
        return not (self._scheduler.threads == 1 or values < FEW_VALUES or light)

    # -- files ----------------------------------------------------------------------------------

    def _files(self) -> Iterator[FileScan | Exception]:
        """The files, ready to be read; remote ones that are not open yet are opened several at a time. An error takes the place
        of the first file that cannot be opened.
        """
        scheduler, pool = self._scheduler, self._scheduler.pool
        closed = [
            i
            for i, (scan, file) in enumerate(zip(self._scans, self._plans, strict=True))
            if scan is None and file.source.far and pool is not None and self._left is None
        ]
        opened: Iterator[tuple[FileScan | Exception, Report, int]] = iter(())
        if closed and pool is not None:
            jobs = (Job(partial(self._open_apart, i), UNKNOWN_BYTES) for i in closed)
            opened = pool.in_order(jobs)
        apart = set(closed)
        for i, scan in enumerate(self._scans):
            if scan is not None:
                yield scan
                continue
            if i in apart:
                found, part, thread = next(opened)
                self._report.join(part, thread)
            else:
                with scheduler.waiting():
                    found = self._open(i, self._report)
            yield found
            if isinstance(found, Exception):
                return

    def _open(self, at: int, report: Report) -> FileScan | Exception:
        """A file of the plan in the state before its rows are read."""
        try:
            return self._scheduler.reopen(self._plans[at], report)
        except (PageseekError, OSError) as error:
            return error

    def _open_apart(self, at: int) -> tuple[FileScan | Exception, Report, int]:
        part = self._report.part()
        return self._open(at, part), part, threading.get_ident()

    # -- row groups, one after the other --------------------------------------------------------

    def _in_turn(self) -> Iterator[pa.Table]:
        scheduler, report, steps = self._scheduler, self._report, LimitSteps()
        for scan in self._files():
            if isinstance(scan, Exception):
                raise scan
            opened, lane = Opened(scan, 0), scheduler.lane(scan, report)
            before = dict(report.row_groups.pruned_by)
            groups, begun = scan.plan.groups, False
            while groups and self._left != 0:
                n = steps.next(groups, self._left, lane.context.wait_bytes > 0)
                for group in self._pruned(scan, groups[:n], lane):
                    if self._left == 0:
                        break
                    if self._narrow is not None:
                        group = self._narrow(scan, group, lane)
                        if not group.ranges:
                            continue
                    if not begun:
                        report.files.read += 1
                        begun = True
                    with scheduler.working():
                        table = self._read(opened, group, lane)
                    report.step()
                    if table is not None:
                        if self._left is not None:
                            self._left -= table.num_rows
                        yield table
                groups = groups[n:]
            if opened.unconfirmed:
                lane.confirm()
            if not begun:  # no row group was left when its pages were pruned
                report.files.prune(last_proof(before, report), 1)
            if self._left == 0:
                return

    def _pruned(
        self, scan: FileScan, groups: Sequence[GroupPlan], lane: Lane
    ) -> Sequence[GroupPlan]:
        """The row groups, those of which only the footer was asked as far as other mechanisms leave them rows."""
        open_groups = [group for group in groups if not group.pages_pruned]
        if not open_groups:
            return groups
        report = lane.context.report
        with report.timed("prune"):
            made = lane.run(scan.prune_pages(open_groups, report))
        done = [group for group in groups if group.pages_pruned]
        return sorted([*done, *made], key=lambda group: group.row_group)

    # -- row groups, several at a time ----------------------------------------------------------

    def _beside(self) -> Iterator[pa.Table]:
        pool = self._scheduler.pool
        assert pool is not None
        for piece in pool.in_order(self._jobs()):
            self._report.join(piece.part, piece.thread)
            self._report.step()
            while piece.tables:
                yield piece.tables.pop(0)  # one at a time is held
            if piece.failed is not None:
                raise piece.failed

    def _jobs(self) -> Iterator[Job[Piece]]:
        budget = self._request.max_ahead_bytes // FEWEST_RUNS
        for scan in self._files():
            if isinstance(scan, Exception):
                yield Job(partial(Piece, [], scan, self._report.part(), 0))
                return
            self._report.files.read += 1
            opened = Opened(scan, len(scan.plan.groups))
            for run in runs(scan, budget):
                yield Job(partial(self._piece, opened, run.groups), run.weight)

    def _piece(self, opened: Opened, groups: Sequence[GroupPlan]) -> Piece:
        scheduler, part = self._scheduler, self._report.part()
        lane = scheduler.lane(opened.scan, part)
        held: Sequence[Held] = ()
        if len(groups) > 1:
            held = lane.run(fetch(opened.scan, groups, part))
        tables: list[pa.Table] = []
        for i, group in enumerate(groups):
            try:
                table = self._read(opened, group, lane, held)
            except (PageseekError, OSError) as error:
                if not i:
                    raise
                return Piece(tables, error, part, threading.get_ident())
            if table is not None:
                tables.append(table)
        if opened.done(len(groups)) and opened.unconfirmed:
            lane.confirm()
        return Piece(tables, None, part, threading.get_ident())

    # -- both -----------------------------------------------------------------------------------

    def _read(
        self, opened: Opened, group: GroupPlan, lane: Lane, held: Sequence[Held] = ()
    ) -> pa.Table | None:
        """The rows of a row group that pass; None where there are none."""
        scan = opened.scan
        store = scan.file.store
        read = self._scheduler.read(scan, group, self._left, lane, held)
        if store.version.strong:  # to ask costs nothing there
            store.check()
            opened.unconfirmed = False
        else:
            opened.unconfirmed = True
        if not read.found.num_rows:
            return None
        lane.context.report.rows_out += read.found.num_rows
        return scan.table(group, read, self._schema)
