"""Reads one row group with late materialization: the columns of the filter first, then the payload of the rows that passed."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import CoreError, from_core
from pageseek.format.file_metadata import FileMetadata
from pageseek.predicate.bound import Bound
from pageseek.scanning.one_file.group_filter import FIRST_STEP, GroupFilter
from pageseek.scanning.one_file.group_reader import GroupReader
from pageseek.scanning.requests.accounting import count_limited
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.steps import Held, ScanContext, Steps

_NO_ROWS = rows.RowRanges.empty()


def filter_group(
    file: FileMetadata,
    row_group: int,
    bound_request: BoundRequest,
    context: ScanContext,
    ranges: rows.RowRanges,
    bound: Bound | None = None,
    limit: int | None = None,
    sure: rows.RowRanges = _NO_ROWS,
    held: Sequence[Held] = (),
) -> Steps[tuple[rows.RowRanges, GroupReader]]:
    """The selected rows that pass, and what has decoded the columns of the filter.

    Parameters
    ----------
    bound : Bound, optional
        The filter; None if all rows are known to pass.
    sure : RowRanges
        Rows that are known to pass, and are not tested. No leaf of the filter may be payload then.
    held : sequence of Held
        Bytes that were fetched before, in the order of their offsets.
    """
    use, report = bound_request.leaves, context.report
    reader = GroupReader(file, row_group, use, context, held)
    decoded = reader.decoded
    if bound is not None:
        began = perf_counter()
        filtering = GroupFilter(file, row_group, bound_request, bound, reader, context)
        try:
            if limit is not None and ranges.num_rows > max(FIRST_STEP, 4 * limit):
                ranges = yield from filtering.first(ranges, limit, sure)
            elif sure:
                ranges = (yield from filtering.passing(ranges - sure)) | sure
                decoded.clear()  # it lacks the rows that were not tested
            else:
                ranges = yield from filtering.passing(ranges)
        except CoreError as error:
            raise from_core(error, decoded.where()) from error
        report.spent("filter", began)
    if limit is not None and ranges.num_rows > limit:
        head = ranges.head(limit)
        for leaf in {part.leaf.index: part.leaf for part in use.parts.values()}.values():
            if leaf.key not in decoded.arrays:
                count_limited(file, row_group, leaf, ranges, head, report)
        ranges = head
        decoded.head(limit)
    return ranges, reader


def read_payload(
    file: FileMetadata,
    row_group: int,
    bound_request: BoundRequest,
    context: ScanContext,
    ranges: rows.RowRanges,
    reader: GroupReader,
    filtered: bool,
) -> Steps[list[list[pa.Array]]]:
    """The arrays of each column for the rows that passed. `filtered`: others of the row group did not, or may not have."""
    use, report, decoded = bound_request.leaves, context.report, reader.decoded
    n = ranges.num_rows
    if n == 0:
        return [[] for _ in bound_request.columns]
    began = perf_counter()
    for key in reader.all_null & use.parts.keys():
        decoded.put_nulls(use.parts[key], n)
    missing, unknown = [], []
    for key, part in use.parts.items():
        if key not in decoded.arrays:
            missing.append(part)
            leaf = part.leaf
            if (
                filtered
                and not context.wait_bytes
                and file.offset_indexes.get((row_group, leaf.index)) is None
                and not file.has_one_page(row_group, leaf)
            ):
                unknown.append(leaf)
    if unknown:
        from pageseek.scanning.leaves.late_offsets import load_late_offsets

        yield from load_late_offsets(file, bound_request, row_group, unknown, ranges, context)
    yield from reader.read(missing, ranges)
    found = []
    for column in bound_request.columns:
        found.append(decoded.output(column))  # noqa: PERF401 (of few, a comprehension would cost more)
    report.spent("payload", began)
    return found
