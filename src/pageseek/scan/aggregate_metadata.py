"""What the metadata of a file answer for an aggregation, and which of its rows they leave to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pageseek.base.report import Report
from pageseek.scan.accounting import account
from pageseek.scan.aggregate_bounds import promising
from pageseek.scan.aggregate_columns import Leaves, Wanted, leaves_of_columns
from pageseek.scan.aggregate_statistics import statistics_of
from pageseek.scan.aggregate_values import ColumnValues
from pageseek.scan.file_scan import FileScan
from pageseek.scan.lane import Lane
from pageseek.scan.plan import GroupPlan
from pageseek.scan.request import Request

ANSWERED, BOUNDS = "answered", "bounds"


class MetadataAnswers:
    """Lets footers and page indexes answer for the rows of files.

    Attributes
    ----------
    num_rows : int
        The rows that they have answered for.
    """

    def __init__(
        self,
        request: Request,
        wanted: Sequence[Wanted],
        columns: Mapping[tuple[str, ...], ColumnValues],
    ) -> None:
        """`columns`: what is known of the values, which answers are added to."""
        self._request, self._wanted, self._columns = request, wanted, columns
        self.num_rows = 0

    def _leaves(self, scan: FileScan) -> Leaves:
        return leaves_of_columns(scan.file, scan.source, self._columns, self._request)

    def unanswered(self, scan: FileScan, report: Report) -> list[GroupPlan]:
        """Let the footer of a file answer for its row groups. Returns those for which it does not."""
        file, left = scan.file, list(scan.plan.groups)
        if self._request.limit is None:
            leaves = self._leaves(scan)
            left = [group for group in left if not self._told(scan, group, leaves)]
            missing = {group.row_group for group in left}
            answered = [group for group in scan.plan.groups if group.row_group not in missing]
            report.row_groups.prune(ANSWERED, len(answered))
            report.rows.prune(ANSWERED, sum(group.ranges.num_rows for group in answered))
            required_leaves = scan.bound_request.leaves.required(file)
            for group in answered if report.chunks else ():
                names = [leaf.name for leaf in required_leaves(group.row_group)]
                report.forget(file.name, group.row_group, names)
        if not left:
            report.files.prune(ANSWERED, 1)
        return left

    def _told(self, scan: FileScan, group: GroupPlan, leaves: Leaves) -> bool:
        """Whether the footer has all values of a row group; they are then taken in."""
        said = statistics_of(scan.file, group, self._wanted, leaves, self._request)
        if said is None:
            return False
        num_rows = scan.file.group_rows[group.row_group]
        self.num_rows += num_rows
        for path, column in self._columns.items():
            column.declared(num_rows, said[path])
        return True

    def narrowed(self, scan: FileScan, group: GroupPlan, lane: Lane) -> GroupPlan:
        """A row group with only those rows that may hold something less, or greater, than what is known."""
        ignored = group.ignored & scan.file.dropped[group.row_group]
        leaves = self._leaves(scan)
        wanted = [
            (one.function, *leaves[one.path], self._columns[one.path]) for one in self._wanted
        ]
        report = lane.context.report
        steps = promising(scan.file, group, wanted, self._request, report)
        ranges = lane.run(steps)
        if not ranges:
            report.row_groups.prune(BOUNDS, 1)
        if ranges.num_rows == group.ranges.num_rows:
            return group
        report.rows.prune(BOUNDS, group.ranges.num_rows - ranges.num_rows)
        part = replace(group, ranges=ranges, matching=group.matching & ranges, ignored=ignored)
        self.recount(scan, part, report)
        return part

    def recount(self, scan: FileScan, part: GroupPlan, report: Report) -> int:
        """Count the pages of a row group of which fewer rows are read than were planned; the bytes to fetch."""
        file, bound_request = scan.file, scan.bound_request
        if report.chunks is None:
            return 0
        leaves = bound_request.leaves.required(file)(part.row_group)
        keys = [(file.name, part.row_group, leaf.name) for leaf in leaves]
        before = [report.chunks[key] for key in keys]
        by = before[0].by if before else ""
        total, held = account(file, bound_request, part, by, report)
        for key, old in zip(keys, before, strict=True):
            report.chunks[key].narrowed(old)
        return total - held
