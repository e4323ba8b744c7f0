"""Loads offset indexes that no mechanism has loaded before."""

from __future__ import annotations

from collections.abc import Sequence

from pageseek._core import rows
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_headers import walk, walking_bytes
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import together
from pageseek.prune.column_index import load_indexes
from pageseek.prune.registry import COLUMN_INDEX, PAGE_HEADERS
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.condition_order import blocks_of
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.steps import Read, ScanContext, Steps


def load_planned_offsets(
    file: FileMetadata, bound_request: BoundRequest, groups: Sequence[GroupPlan], report: Report
) -> Steps[None]:
    """Load the offset indexes of row groups that are not read whole.

    They are in memory if this process made the plan and the file has stayed open since.
    """
    request = bound_request.request
    if COLUMN_INDEX not in request.prune:
        return
    required, counts = bound_request.leaves.required(file), file.group_rows
    parts = [
        group.row_group
        for group in groups
        if not group.fully_matched or group.ranges.num_rows < counts[group.row_group]
    ]
    if parts:
        loading = load_indexes(file, parts, required, (), request.options, report)
        yield from loading


def load_late_offsets(
    file: FileMetadata,
    bound_request: BoundRequest,
    group: int,
    leaves: Sequence[Leaf],
    ranges: rows.RowRanges,
    context: ScanContext,
) -> Steps[None]:
    """Find the pages of payload leaves once the filter has left at most half of a row group: by the offset index, or by page
    headers if the file has none.
    """
    n, prune = file.group_rows[group], bound_request.request.prune
    part = blocks_of(ranges, n) / blocks_of(rows.RowRanges.all(n), n)
    if part > 1 / 2:
        return
    unread = []
    if COLUMN_INDEX in prune:
        unread = [leaf for leaf in leaves if (group, leaf.index) not in file.offset_indexes]
    walks = [
        walk(file, group, leaf, tested=False)
        for leaf in leaves
        if PAGE_HEADERS in prune and walking_bytes(file, group, leaf, 1 - part) is not None
    ]
    yield from together(walks)
    places = {leaf.index: at for leaf in unread if (at := file.index_range("offset", group, leaf))}
    found = dict(zip(places, (yield Read(list(places.values()), "index")), strict=True))
    file.load_offset_indexes(
        group, unread, [found.get(leaf.index) for leaf in unread], context.report
    )
