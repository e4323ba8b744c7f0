"""The part of an aggregation that the metadata of a file answer, and the rows that they leave to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pageseek.base.errors import CorruptFileError
from pageseek.base.report import Report
from pageseek.format.types import BYTES_TYPES, FLOAT_KINDS, TEXT_TYPES
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.prune.registry import STATISTICS
from pageseek.scanning.aggregates.aggregate_bounds import declared, promising
from pageseek.scanning.aggregates.aggregate_columns import Leaves, Wanted, leaves_of_columns
from pageseek.scanning.aggregates.aggregate_values import ColumnValues
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.one_file.lane import Lane
from pageseek.scanning.requests.accounting import account
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.request import Request

ANSWERED, BOUNDS = "answered", "bounds"


class MetadataAnswers:
    """Lets footers and page indexes answer for the rows of files.

    Attributes
    ----------
    num_rows : int
        The rows of the row groups that footers have answered for.
    """

    def __init__(
        self,
        request: Request,
        wanted: Sequence[Wanted],
        columns: Mapping[tuple[str, ...], ColumnValues],
    ) -> None:
        """`columns`: the values known so far, to which answers are added."""
        self._request, self._wanted, self._columns = request, wanted, columns
        self.num_rows = 0

    def _leaves(self, scan: FileScan) -> Leaves:
        return leaves_of_columns(scan.file, scan.source, self._columns, self._request)

    def unanswered(self, scan: FileScan, report: Report) -> list[GroupPlan]:
        """Let the footer of a file answer for its row groups. Returns the others."""
        file, left = scan.file, list(scan.plan.groups)
        if self._request.limit is None:
            leaves = self._leaves(scan)
            left = [group for group in left if not self._answers(scan, group, leaves)]
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

    def _answers(self, scan: FileScan, group: GroupPlan, leaves: Leaves) -> bool:
        """Whether the footer has all figures of a row group; they are then added."""
        file, number = scan.file, group.row_group
        num_rows = file.group_rows[number]
        whole = group.fully_matched and group.ranges.num_rows == num_rows
        whole &= len(leaves) == len(self._columns)
        if not whole or STATISTICS not in self._request.prune:
            return False
        said = {}
        for path, (leaf, leaf_type) in leaves.items():
            if not isinstance(leaf, ConstantColumn):
                file.chunk(number, leaf)  # raises if it could not be read
            said[path] = declared(file, number, leaf, leaf_type, self._request.options)
        for one in self._wanted:
            if not one.path:
                continue
            found = said[one.path]
            if found.null_count is None:
                return False
            if one.function == "count" or found.null_count == num_rows:
                continue
            nan = leaves[one.path][1].kind in FLOAT_KINDS and found.nan_count != 0
            if nan and one.function == "max" and self._request.nan == "spark":
                return False  # it may be NaN
            value = found.min if one.function == "min" else found.max
            if value is None:
                return False
            if not _is_of(value, leaves[one.path][1].storage):
                where = f"{file.name}: column {'.'.join(one.path)!r}, row group {number}"
                raise CorruptFileError(
                    f"{where}: the {one.function} of its statistics is not UTF-8"
                )
        self.num_rows += num_rows
        for path, column in self._columns.items():
            column.declared(num_rows, said[path])
        return True

    def narrowed(self, scan: FileScan, group: GroupPlan, lane: Lane) -> GroupPlan:
        """A row group with the rows only that may hold a value less, or greater, than those known."""
        ignored = group.ignored & scan.file.dropped.get(group.row_group, frozenset())
        leaves = self._leaves(scan)
        if len(leaves) < len(self._columns):
            return group
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
        part = group._replace(ranges=ranges, matching=group.matching & ranges, ignored=ignored)
        self.recount(scan, part, report)
        return part

    def recount(self, scan: FileScan, part: GroupPlan, report: Report) -> int:
        """Count the pages of a row group again, after its rows were narrowed. Returns the bytes to fetch."""
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


def _is_of(value: pa.Scalar, kind: pa.DataType) -> bool:
    """Whether a value is one of a type that a table calls text; statistics are of the bytes that the file has."""
    if kind not in TEXT_TYPES or value.type not in BYTES_TYPES:
        return True
    try:
        value.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
