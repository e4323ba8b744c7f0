"""The rows of a plan in the order of the files: a table for each row group that has some.

Row groups are read one after the other, or several at a time. Tables are handed out in order either way.
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
from pageseek.scan.opened_file import OpenedFile
from pageseek.scan.plan import FilePlan, GroupPlan
from pageseek.scan.planned_files import PlannedFiles
from pageseek.scan.request_sharing import FEWEST_RUNS, fetch, runs
from pageseek.scan.scheduler import Scheduler

FEW_VALUES = 1 << 18  # one thread reads these before a second one has started
# In smaller row groups threads wait for the interpreter's lock. With two threads, files of 5,000 rows and 4 columns took
# 1.8 times as long, 20,000 rows and 12 columns 1.2 times as long, 20,000 rows and 16 columns as long as with one.
GROUP_VALUES = 1 << 18
GROUP_BYTES = 1 << 20  # a row group of so many bytes is worth a thread, even with fewer values


Narrow = Callable[[FileScan, GroupPlan, Lane], GroupPlan]


class Piece(NamedTuple):
    """Row groups of a file that one job has read. The tables before the one that failed are handed out, then the error is raised."""

    file: FilePlan | None  # None where it could not be opened
    tables: list[pa.Table]
    failed: Exception | None
    part: Report
    thread: int


class TableReader:
    """Reads the files of one plan.

    Parameters
    ----------
    schema : pyarrow.Schema
        The schema of the tables.
    scans : sequence of FileScan or None
        The files that are open; empty if none is.
    narrow : callable, optional
        Leaves out rows of a row group by the rows that were read before. Row groups are then read one after the other.
    divides : bool
        Whether large row groups of files that are not open yet are read in pieces, a table each.
    """

    def __init__(
        self,
        schema: pa.Schema,
        files: Sequence[FilePlan],
        scans: Sequence[FileScan | None],
        scheduler: Scheduler,
        narrow: Narrow | None = None,
        divides: bool = False,
    ) -> None:
        self._schema, self._plans = schema, files
        self._scheduler, self._report = scheduler, scheduler.report
        self._files = PlannedFiles(files, scans, scheduler, divides)
        self._left, self._narrow, self._divides = scheduler.request.limit, narrow, divides

    def tables(self) -> Iterator[pa.Table]:
        """The tables, in order."""
        for _, table in self.by_file():
            yield table
            del table  # before the next one is made

    def by_file(self) -> Iterator[tuple[FilePlan, pa.Table]]:
        """The tables, in order, each with its file."""
        scheduler, waits = self._scheduler, self._files.wait
        row_groups = num_rows = nbytes = 0
        for file in self._plans:
            row_groups += len(file.groups)
            nbytes += file.version.size
            for group in file.groups:
                num_rows += group.ranges.num_rows
        if self._narrow is None and (waits or self._is_heavy(row_groups, num_rows, nbytes)):
            scheduler.start(waits)
        several = row_groups > 1 or self._divides
        beside = self._left is None and several and scheduler.pool is not None
        try:
            yield from self._beside() if beside else self._in_turn()
        finally:
            scheduler.stop()

    def _is_heavy(self, row_groups: int, num_rows: int, nbytes: int) -> bool:
        """Whether several threads are quicker than one. `nbytes`: of the files."""
        if self._scheduler.threads == 1:
            return False
        if self._left is not None:
            num_rows = self._left
        values = num_rows * max(len(self._schema), 1)
        light = values < GROUP_VALUES * row_groups and nbytes < GROUP_BYTES * row_groups
        return not (values < FEW_VALUES or light)

    # -- row groups, one after the other --------------------------------------------------------

    def _in_turn(self) -> Iterator[tuple[FilePlan, pa.Table]]:
        scheduler, report, steps = self._scheduler, self._report, LimitSteps()
        for scan in self._files.ready(ahead=self._left is None):
            if isinstance(scan, Exception):
                raise scan
            opened, lane = OpenedFile(scan, self._schema, scheduler), scheduler.lane(scan, report)
            before = dict(report.row_groups.pruned_by)
            groups, begun = scan.plan.groups, False
            while groups and self._left != 0:
                n = len(groups)
                if self._left is not None:
                    n = steps.next(groups, self._left, lane.context.wait_bytes > 0)
                for group in scheduler.prune_pages(scan, groups[:n], report):
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
                        table = opened.read(group, self._left, lane)
                    report.step()
                    if table is not None:
                        if self._left is not None:
                            self._left -= table.num_rows
                        yield scan.plan, table
                    del table  # before the next one is made
                groups = groups[n:]
            if opened.unconfirmed:
                lane.confirm()
            if not begun:  # no row group was left when its pages were pruned
                report.files.prune(last_proof(before, report), 1)
            if self._left == 0:
                return

    # -- row groups, several at a time ----------------------------------------------------------

    def _beside(self) -> Iterator[tuple[FilePlan, pa.Table]]:
        pool = self._scheduler.pool
        assert pool is not None
        for piece in pool.in_order(self._jobs()):
            self._report.join(piece.part, piece.thread)
            self._report.step()
            while piece.tables:
                assert piece.file is not None
                yield piece.file, piece.tables.pop(0)  # the caller holds one at a time
            if piece.failed is not None:
                raise piece.failed

    def _jobs(self) -> Iterator[Job[Piece]]:
        budget = self._scheduler.request.max_ahead_bytes // FEWEST_RUNS
        for scan in self._files.ready(ahead=self._left is None):
            if isinstance(scan, Exception):
                yield Job(partial(Piece, None, [], scan, self._report.part(), 0))
                return
            self._report.files.read += 1
            opened = OpenedFile(scan, self._schema, self._scheduler, len(scan.plan.groups))
            for run in runs(scan, budget):
                yield Job(partial(self._piece, opened, run.groups), run.nbytes)

    def _piece(self, opened: OpenedFile, groups: Sequence[GroupPlan]) -> Piece:
        scheduler, part = self._scheduler, self._report.part()
        lane = scheduler.lane(opened.scan, part)
        held = lane.run(fetch(opened.scan, groups, part)) if len(groups) > 1 else ()
        tables: list[pa.Table] = []
        for i, group in enumerate(groups):
            try:
                table = opened.read(group, None, lane, held)
            except (PageseekError, OSError) as error:
                if not i:
                    raise
                return Piece(opened.scan.plan, tables, error, part, threading.get_ident())
            if table is not None:
                tables.append(table)
        if opened.done(len(groups)) and opened.unconfirmed:
            lane.confirm()
        return Piece(opened.scan.plan, tables, None, part, threading.get_ident())
