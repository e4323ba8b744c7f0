"""The rows of a plan in the order of the files: a table for each row group that has some.

Row groups are read one after the other, or several at a time. Tables are handed out in order either way.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from pageseek._core.page_tasks import PARALLEL
from pageseek.base.errors import PageseekError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.base.workers import Job
from pageseek.scanning.one_file.file_scan import FileScan, Passed, Rows
from pageseek.scanning.one_file.lane import Lane
from pageseek.scanning.one_file.limit_steps import LimitSteps
from pageseek.scanning.one_file.request_sharing import (
    FEWEST_RUNS,
    UNKNOWN_BYTES,
    fetch,
    runs,
    weight,
)
from pageseek.scanning.plans.opened_file import OpenedFile, Together
from pageseek.scanning.plans.planned_files import PlannedFiles
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.scanning.requests.accounting import last_proof
from pageseek.scanning.requests.plan import FilePlan, GroupPlan, Joint
from pageseek.scanning.requests.steps import Steps

if TYPE_CHECKING:
    from pageseek.scanning.many_files.batched_file import BatchedFile
    from pageseek.scanning.one_file.waves import Member

FEW_VALUES = 1 << 18  # one thread reads these before a second one has started
# In smaller row groups threads wait for the interpreter's lock. With two threads, files of 5,000 rows and 4 columns took
# 1.8 times as long, 20,000 rows and 12 columns 1.2 times as long, 20,000 rows and 16 columns as long as with one.
GROUP_VALUES = 1 << 18
GROUP_BYTES = 1 << 20  # a row group of so many bytes is worth a thread, even with fewer values
WAVE_ROWS = 1 << 18  # of a row group, on average: larger ones keep a thread of Python busy
WAVE_BYTES = 8 << 20  # of memory of the row groups that advance together, about, for each thread
WAVE_GROUPS = (
    4  # their number for each thread, at most: each may be in a file of its own, which stays open
)


Files: TypeAlias = Iterator[FileScan | Exception]  # `PlannedFiles.ready`
# row groups of waves
Order: TypeAlias = deque[tuple[OpenedFile, Lane, Joint]]
Narrow = Callable[[FileScan, GroupPlan, Lane], GroupPlan]


def any_files(_: pa.Table, __: FileScan) -> bool:
    """A table may be of any files."""
    return True


class Piece(NamedTuple):
    """Row groups of a file that one job has read. The tables before the one that failed are handed out, then the error is raised.
    `more`: jobs that read further rows of the last row group.
    """

    file: FilePlan | None  # None where it could not be opened
    tables: list[pa.Table]
    failed: Exception | None
    part: Report
    thread: int
    more: Sequence[Job[Piece]] = ()


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
    streams : bool
        The caller holds one table at a time: a row group is read in pieces where it has codes of long texts.
    footers : sequence of BatchedFile or None, optional
        The footers of the files that were read together; empty if none was, and None if the plan was made elsewhere.
    """

    def __init__(
        self,
        schema: pa.Schema,
        files: Sequence[FilePlan],
        scans: Sequence[FileScan | None],
        scheduler: Scheduler,
        narrow: Narrow | None = None,
        divides: bool = False,
        streams: bool = False,
        footers: Sequence[BatchedFile | None] | None = (),
    ) -> None:
        self._schema, self._plans = schema, files
        self._scheduler, self._report = scheduler, scheduler.report
        self._files = PlannedFiles(files, scans, scheduler, divides, footers)
        self._left, self._narrow, self._divides = scheduler.request.limit, narrow, divides
        self._streams = streams and self._left is None
        self._wave_bytes = WAVE_BYTES * scheduler.threads
        # of a table, for each byte that its row group was thought to take: the most so far, at least 1; 0 before the first
        self._growth = 0.0
        self._failed: Exception | None = None  # of the first file that could not be opened
        self._together: Together | None = None

    def tables(self) -> Iterator[pa.Table]:
        """The tables, in order. Where the report has chunks, each file is read by itself, and shows which of its pages were needed."""
        together: Together | None = any_files if self._report.chunks is None else None
        for _, table in self.by_file(together):
            yield table
            del table  # before the next one is made

    def by_file(self, together: Together | None = None) -> Iterator[tuple[FilePlan, pa.Table]]:
        """The tables, in order, each with its file. `together`: whether a table of several files may stay one, which comes with
        the first of them. Without it, each is of one file.
        """
        self._together = together
        scheduler, waits = self._scheduler, self._files.wait
        row_groups = num_rows = nbytes = 0
        for file in self._plans:
            row_groups += len(file.groups)
            nbytes += file.version.size
            for group in file.groups:
                num_rows += group.ranges.num_rows
        several = row_groups > 1 or self._divides
        in_turn = self._left is not None or self._narrow is not None or not several
        heavy = self._is_heavy(row_groups, num_rows, nbytes)
        waves = not (in_turn or waits) and self._wants_waves(row_groups, num_rows)
        self._files.joins = (
            (waves or not heavy)
            and not (in_turn or waits)
            # else each file is to be seen by itself
            and scheduler.request.row_number is None
            and together is not None
        )
        files = self._files.ready(ahead=self._left is None)
        if self._streams and not in_turn:
            files, in_turn = self._has_long_texts(files)
            waves = waves and not in_turn
        try:
            if waves:
                files, waves = self._suited(files)
            if self._narrow is None and (waits or (heavy and not waves)):
                scheduler.start(waits)
                self._files.joins = False  # its threads read row group by row group
            if waves:
                yield from self._in_waves(files)
            elif in_turn or scheduler.pool is None:
                yield from self._in_turn(files)
            else:
                yield from self._beside(files)
        finally:
            scheduler.stop()

    def _wants_waves(self, row_groups: int, num_rows: int) -> bool:
        """Whether row groups are so small that waves are quicker than threads of Python, where these suit their pages."""
        from pageseek.scanning.one_file.waves import (
            UNDER_WAY,  # late, as below: for several row groups
        )

        request = self._scheduler.request
        return (
            PARALLEL
            and self._scheduler.threads > 1
            and self._wave_bytes <= request.max_ahead_bytes // UNDER_WAY
            and num_rows * max(len(self._schema), 1) >= FEW_VALUES
            and num_rows < WAVE_ROWS * row_groups
        )

    def _has_long_texts(self, files: Files) -> tuple[Files, bool]:
        """The files, and whether the first has codes of long texts. Pieces are then read one after the other: what is read ahead
        is bounded by the bytes that the footer lets expect.
        """
        scan = next(files, None)
        if scan is None:
            return files, False
        found = False
        if isinstance(scan, FileScan) and scan.joined is None:
            n = len(scan.plan.groups)
            self._scheduler.divide_long_texts(scan, self._report)
            found = len(scan.plan.groups) > n
        return chain([scan], files), found

    def _suited(self, files: Files) -> tuple[Files, bool]:
        """The files, and whether the first of them suits waves."""
        scan = next(files, None)
        if scan is None:
            return files, True
        from pageseek.scanning.one_file.waves import suits

        suited = True
        if isinstance(scan, FileScan) and scan.plan.groups:
            lane = self._scheduler.lane(scan, self._report)
            suited = suits(scan, scan.plan.groups[0], lane.context)
        return chain([scan], files), suited

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

    def _in_turn(self, files: Files) -> Iterator[tuple[FilePlan, pa.Table]]:
        scheduler, report, steps = self._scheduler, self._report, LimitSteps()
        for scan in files:
            if isinstance(scan, Exception):
                raise scan
            opened = OpenedFile(scan, self._schema, scheduler, together=self._together)
            lane = scheduler.lane(scan, report)
            before = dict(report.row_groups.pruned_by)
            groups, begun = scan.plan.groups, False
            while groups and self._left != 0:
                n = len(groups)
                if self._left is not None:
                    n = steps.next(groups, self._left, lane.context.wait_bytes > 0)
                pruned = scheduler.prune_pages(scan, groups[:n], report)
                if self._streams and pruned and scan.joined is None:
                    scan.plan = replace(scan.plan, groups=tuple(pruned))
                    scheduler.divide_long_texts(scan, report)
                    pruned = scan.plan.groups
                for joint in self._joints(scan, pruned, lane):
                    if self._left == 0:
                        break
                    group = joint.groups[0]
                    if self._narrow is not None:
                        group = self._narrow(scan, group, lane)
                        if not group.ranges:
                            continue
                    if not begun:
                        report.files.read += scan.num_files
                        begun = True
                    rest: Sequence[Passed] = ()
                    with scheduler.working():
                        if opened.refused:  # further tables of these files would be, too
                            done, table = False, None
                        elif joint.as_one:
                            done, table = opened.read_joined(joint.groups, lane)
                        else:
                            done = True
                            table, rest = opened.read(group, self._left, lane)
                    if not done:
                        yield from self._one_by_one(opened, joint.groups, lane)
                        continue
                    report.step(len(joint.groups))
                    if joint.likely != UNKNOWN_BYTES:
                        self._grew(table, joint.likely)
                    if table is not None:
                        if self._left is not None:
                            self._left -= table.num_rows
                        yield scan.first_plan, table
                    del table  # before the next one is made
                    yield from self._rest(opened, rest, lane)
                groups = groups[n:]
            self._files.joins = self._files.joins and not opened.refused
            if opened.unconfirmed:
                lane.confirm()
            if not begun:  # no row group was left when its pages were pruned
                report.files.prune(last_proof(before, report), 1)
            if self._left == 0:
                return

    def _joints(self, scan: FileScan, groups: Sequence[GroupPlan], lane: Lane) -> Iterable[Joint]:
        """The row groups in order, small ones together. With a limit each is by itself, as it may be the last."""
        if len(groups) < 2 or self._left is not None or self._narrow is not None:
            return [Joint([group], UNKNOWN_BYTES, False) for group in groups]
        from pageseek.scanning.one_file.group_joints import joined  # late: for several row groups

        most = self._scheduler.request.max_ahead_bytes
        return joined(scan, groups, lane.context, lambda: self._growth, most)

    def _one_by_one(
        self, opened: OpenedFile, groups: Sequence[GroupPlan], lane: Lane
    ) -> Iterator[tuple[FilePlan, pa.Table]]:
        """The tables of row groups that could not be read as one."""
        if opened.scan.joined is not None:
            yield from self._file_by_file(opened.scan, groups)
            return
        for group in groups:
            with self._scheduler.working():
                table, rest = opened.read(group, None, lane)
            self._report.step()
            self._grew(table, max(weight(opened.scan, group), 1))
            if table is not None:
                yield opened.scan.plan, table
            del table  # before the next one is made
            yield from self._rest(opened, rest, lane)

    def _file_by_file(
        self, scan: FileScan, groups: Sequence[GroupPlan]
    ) -> Iterator[tuple[FilePlan, pa.Table]]:
        """The tables of row groups of several files, each of which is opened."""
        from pageseek.scanning.many_files.joined_files import JoinedScan

        assert isinstance(scan, JoinedScan)
        plans = scan.plans_of(groups)
        self._report.files.read -= len(plans)  # they are counted again
        yield from self._in_turn(PlannedFiles(plans, (), self._scheduler).ready(ahead=False))

    def _rest(
        self, opened: OpenedFile, rest: Sequence[Passed], lane: Lane
    ) -> Iterator[tuple[FilePlan, pa.Table]]:
        """The tables of further pieces of the rows of a row group that passed."""
        for passed in rest:
            with self._scheduler.working():
                table = opened.read_passed(passed, lane)
            if table is not None:
                yield opened.scan.plan, table
            del table  # before the next one is made

    def _grew(self, table: pa.Table | None, likely: int) -> None:
        """Learn how large a table is that was thought to take so many bytes."""
        grown = 1.0 if table is None else table.get_total_buffer_size() / likely
        self._growth = max(self._growth, grown, 1.0)

    # -- small row groups, several at a time in this thread ---------------------------------------

    def _in_waves(self, files: Files) -> Iterator[tuple[FilePlan, pa.Table]]:
        from pageseek.scanning.one_file.waves import in_waves

        order: Order = deque()
        for members in in_waves(self._waves(files, order), self._scheduler.threads):
            for member in members:
                opened, lane, joint = order.popleft()
                groups = joint.groups
                try:
                    try:
                        read = member.take()
                    except PageseekError:
                        opened.scan.file.store.check()  # the bytes may be of another version
                        raise
                    done, table = False, None
                    if read is not None:
                        done, table = opened.try_table(groups, read, lane)
                    rest = () if read is None else read.rest
                    del read
                except Exception as error:
                    opened.scan.plan.name_in(error)
                    raise
                self._files.joins = self._files.joins and not opened.refused
                if not done:
                    yield from self._one_by_one(opened, groups, lane)
                if rest:
                    if table is not None:
                        yield opened.scan.plan, table
                    table = None
                    yield from self._rest(opened, rest, lane)
                if opened.done(len(groups)) and opened.unconfirmed:
                    lane.confirm()
                if not done:
                    continue
                self._report.step(len(groups))
                self._grew(table, joint.likely)
                if table is not None:
                    yield opened.scan.first_plan, table
                del table  # before the next one is made
        if self._failed is not None:
            raise self._failed

    def _waves(self, files: Files, order: Order) -> Iterator[list[Member[Rows | None]]]:
        """The row groups of all files, several at a time. `order` learns which they are.

        The footer tells how long values are as they are encoded. A few codes may stand for long strings, so that the first
        waves are small, and later ones as large as the tables before allow.
        """
        from pageseek.scanning.one_file.joined_groups import read_joined
        from pageseek.scanning.one_file.waves import Member

        scheduler, report = self._scheduler, self._report
        members: list[Member[Rows | None]] = []
        size = 0
        for scan in files:
            if isinstance(scan, Exception):
                self._failed = scan  # after the rows of the files before
                break
            report.files.read += scan.num_files
            opened = OpenedFile(
                scan, self._schema, scheduler, len(scan.plan.groups), self._together
            )
            lane = scheduler.lane(scan, report)
            for joint in self._joints(scan, scan.plan.groups, lane):
                size += int(joint.likely * max(self._growth, 1.0))
                order.append((opened, lane, joint))
                steps: Steps[Rows | None]
                if joint.as_one:
                    steps = read_joined(scan, joint.groups, lane.context)
                else:
                    steps = scan.read(joint.groups[0], None, lane.context)
                members.append(Member(lane, steps))
                most = (WAVE_GROUPS if self._growth else 1) * scheduler.threads
                if size >= self._wave_bytes or len(members) >= most:
                    yield members
                    members, size = [], 0
        if members:
            yield members

    # -- row groups, several at a time in threads -------------------------------------------------

    def _beside(self, files: Files) -> Iterator[tuple[FilePlan, pa.Table]]:
        pool = self._scheduler.pool
        assert pool is not None
        shares = 2 if self._divides else 1  # those of a row group's further pieces, too
        for piece in pool.in_order(self._jobs(files), shares=shares):
            yield from self._taken(piece)
            self._report.step()
            for further in pool.in_order(piece.more, shares=shares):
                yield from self._taken(further)

    def _taken(self, piece: Piece) -> Iterator[tuple[FilePlan, pa.Table]]:
        """The tables of a job whose turn it is."""
        self._report.join(piece.part, piece.thread)
        while piece.tables:
            assert piece.file is not None
            yield piece.file, piece.tables.pop(0)  # the caller holds one at a time
        if piece.failed is not None:
            raise piece.failed

    def _jobs(self, files: Files) -> Iterator[Job[Piece]]:
        budget = self._scheduler.request.max_ahead_bytes // FEWEST_RUNS
        for scan in files:
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
        rest: Sequence[Passed] = ()
        for i, group in enumerate(groups):
            try:
                table, rest = opened.read(group, None, lane, held)
            except (PageseekError, OSError) as error:
                if not i:
                    raise
                return Piece(opened.scan.plan, tables, error, part, threading.get_ident())
            if table is not None:
                tables.append(table)
        more = [Job(partial(self._passed, opened, passed)) for passed in rest]
        # further pieces are still to be read
        if opened.done(len(groups) - len(more)) and opened.unconfirmed:
            lane.confirm()
        return Piece(opened.scan.plan, tables, None, part, threading.get_ident(), more)

    def _passed(self, opened: OpenedFile, passed: Passed) -> Piece:
        """The job that reads rows that passed."""
        part = self._report.part()
        lane = self._scheduler.lane(opened.scan, part)
        table = opened.read_passed(passed, lane)
        if opened.done(1) and opened.unconfirmed:
            lane.confirm()
        tables = [] if table is None else [table]
        return Piece(opened.scan.plan, tables, None, part, threading.get_ident())
