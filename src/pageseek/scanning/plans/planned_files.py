"""Opens the files of a plan in order, for their rows to be read."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.base.workers import Job
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.one_file.request_sharing import UNKNOWN_BYTES
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.scanning.requests.accounting import last_proof
from pageseek.scanning.requests.plan import FilePlan
from pageseek.storage.store import wait_bytes

if TYPE_CHECKING:
    from pageseek.scanning.many_files.batched_file import BatchedFile
    from pageseek.scanning.many_files.joined_files import JoinedScan
    from pageseek.scanning.many_files.planned_footers import PlannedFooters
    from pageseek.storage import Known
    from pageseek.storage.hive import Partitions


class PlannedFiles:
    """The files of one plan.

    Attributes
    ----------
    joins : bool
        Whether small files may be scanned as one.

    Parameters
    ----------
    scans : sequence of FileScan or None
        The files that are open; empty if none is.
    """

    __slots__ = ("_divides", "_footers", "_plans", "_read_again", "_scans", "_scheduler", "joins")

    def __init__(
        self,
        plans: Sequence[FilePlan],
        scans: Sequence[FileScan | None],
        scheduler: Scheduler,
        divides: bool = False,
        footers: Sequence[BatchedFile | None] | None = (),
    ) -> None:
        """`divides`: whether large row groups of files that are not open yet are read in pieces. `footers`: of the files, those
        that were read together as the plan was made; empty if none was, and None if it was made elsewhere.
        """
        self._footers, self.joins = footers, False
        self._read_again: PlannedFooters | None = None
        self._plans, self._scheduler, self._divides = plans, scheduler, divides
        self._scans = scans or [None] * len(plans)

    @property
    def wait(self) -> bool:
        """Whether reads of these files wait for a store."""
        known = False
        for scan in self._scans:
            if scan is not None:
                if wait_bytes(scan.file.store):
                    return True
                known = True
        return not known and any(plan.source.far for plan in self._plans)

    def ready(self, ahead: bool) -> Iterator[FileScan | Exception]:
        """The files, ready to be read. With `ahead`, remote files that are not open yet are opened several at a time. An error
        takes the place of the first file that cannot be opened.
        """
        if self.joins and self._footers is None:
            from pageseek.scanning.many_files.planned_footers import (
                PlannedFooters,  # late: for many files
            )

            self._read_again = PlannedFooters.of(self._plans, self._scheduler.request)
        try:
            yield from self._opened(ahead)
        finally:
            if self._read_again is not None:
                self._read_again.close()
                self._scheduler.report.join(self._read_again.report, threading.get_ident())

    def _opened(self, ahead: bool) -> Iterator[FileScan | Exception]:
        scheduler, report = self._scheduler, self._scheduler.report
        pool = scheduler.pool if ahead else None
        opened: Iterator[tuple[FileScan | Exception, Report, int]] = iter(())
        apart: dict[int, None] = {}  # files that threads of the pool open
        if pool is not None:
            for i, (scan, file) in enumerate(zip(self._scans, self._plans, strict=True)):
                if scan is None and file.source.far:
                    apart[i] = None
            jobs = (Job(partial(self._open_apart, i), UNKNOWN_BYTES) for i in apart)
            # where one cannot be opened, the rows of those before are still read
            opened = pool.in_order(jobs, stops=False)
        joined: dict[int, JoinedScan] = {}  # by the number of their first file
        # the files before these were looked at, and are scanned with those before them
        looked_at = past = 0
        for i, scan in enumerate(self._scans):
            if i < past:
                continue
            if scan is not None:
                yield scan
                continue
            if self.joins and i >= looked_at:
                joined, looked_at = self._joined(i)
            if self.joins and i in joined:
                as_one = joined.pop(i)
                past = i + as_one.num_files
                yield as_one
                continue
            found: FileScan | Exception
            if i in apart:
                found, part, thread = next(opened)
                report.join(part, thread)
            else:
                with scheduler.waiting():
                    found = self._open(i, report)
            if isinstance(found, Exception):
                yield found
                return
            if found.plan.groups:
                yield found

    def _footer(self, at: int) -> BatchedFile | None:
        """The footer of a file, if it was read with others."""
        if self._read_again is not None:
            return self._read_again.of_file(at)
        return self._footers[at] if self._footers else None

    def _joined(self, at: int) -> tuple[dict[int, JoinedScan], int]:
        """Scans of small files that are read as one, by the number of the first of each, and the first file that was not looked
        at. `at`: the first that may be one of them.
        """
        plans = self._plans
        first = self._footer(at)
        if first is None:
            return {}, at + 1
        like, folders = first.homogeneous.schema_group, plans[at].source.partitions
        if not like.joins:
            return {}, at + 1
        from pageseek.scanning.many_files.joined_files import (
            joined_scans,  # late: for many files
            most_row_groups,
        )
        from pageseek.scanning.one_file.waves import suits

        some, left = [first], most_row_groups(like) - first.num_row_groups
        for i in range(at + 1, len(plans)):
            footer = self._footer(i)
            if (
                footer is None
                or footer.num_row_groups > left
                or footer.batch is not first.batch
                or footer.homogeneous.schema_group is not like
                or not _are_same(plans[i].source.partitions, folders)
            ):
                break
            some.append(footer)
            left -= footer.num_row_groups
        if len(some) == 1:
            return {}, at + 1
        scheduler = self._scheduler
        stop = at + len(some)
        found = joined_scans(plans[at:stop], some, scheduler.request, scheduler.threads)
        made = {}
        for i, scan in found:
            context = scheduler.lane(scan, scheduler.report).context
            if suits(scan, scan.plan.groups[0], context):  # the core has their codec
                made[at + i] = scan
        return made, stop

    def _open(self, at: int, report: Report) -> FileScan | Exception:
        """Open a file of the plan; the error if that fails."""
        try:
            scan = self._scheduler.reopen(self._plans[at], report, self._known(at))
            if self._read_again is not None:
                self._read_again.learn(scan.file, at)
            if self._scheduler.request.limit is None:
                self._prune(scan, report)
            if self._divides:
                self._scheduler.divide(scan, None, report)
        except (PageseekError, OSError) as error:
            self._plans[at].name_in(error)
            return error
        return scan

    def _known(self, at: int) -> Known | None:
        """The last bytes of a file, if they were read with those of others."""
        if self._read_again is not None:
            return self._read_again.end(at)
        footer = self._footer(at)
        return None if footer is None else footer.known

    def _prune(self, scan: FileScan, report: Report) -> None:
        """Put the row groups to all mechanisms that were pruned by the footer alone. A limit does so as they are reached."""
        before, indexes = dict(report.row_groups.pruned_by), report.bytes["index"]
        groups = self._scheduler.prune_pages(scan, scan.plan.groups, report)
        scan.plan = replace(scan.plan, groups=tuple(groups))
        if not groups:
            report.files.prune(last_proof(before, report), 1)
            if report.bytes["index"] > indexes:  # which may be of another version
                self._scheduler.lane(scan, report).confirm()

    def _open_apart(self, at: int) -> tuple[FileScan | Exception, Report, int]:
        part = self._scheduler.report.part()
        with self._scheduler.waiting():  # a file is waited for much longer than it is computed with
            return self._open(at, part), part, threading.get_ident()


def _are_same(some: Partitions, others: Partitions) -> bool:
    """Whether the values of folders are the same: -0.0 equals 0.0, and is another value."""
    return some is others or (some == others and repr(some) == repr(others))
