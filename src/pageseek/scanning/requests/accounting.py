"""Counts what a plan reads: pages and bytes, and what ruled out the rest."""

from __future__ import annotations

from pageseek._core import rows
from pageseek.base.report import ChunkReport, Report
from pageseek.format.chunks import chunk_range, declared_pages
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.plan import GroupPlan

FILTER, PARTITION, LIMIT, TAKE, NO_ROWS = "filter", "partition", "limit", "take", "no_rows"
DELETED = "deleted"


def account(
    file: FileMetadata,
    bound_request: BoundRequest,
    plan: GroupPlan,
    by: str,
    report: Report,
) -> tuple[int, int]:
    """Count the pages of a row group that hold its rows, as far as they are known. `by`: the mechanism that ruled out the rest.

    A leaf that is only tested is not read for rows that are known to match. Returns the bytes of the pages, and how many of
    these came with the tail of the file.
    """
    assert report.chunks is not None
    group, found = plan.row_group, plan.ranges
    sure = found if plan.fully_matched else plan.matching
    total = held = 0
    tail = file.store.size - file.tail.nbytes  # from here on all bytes are in memory
    payload = bound_request.leaves.payload
    leaves = bound_request.leaves.required(file)(group)
    file.load_chunks(group, leaves)
    for leaf in leaves:
        ranges = found if leaf.index in payload or not sure else found - sure
        chunk = file.chunk(group, leaf)
        start, stop = chunk_range(chunk)
        offsets = file.offset_indexes.get((group, leaf.index))
        counts = ChunkReport(path=leaf.name, by=by)
        counts.rows_decoded = 0 if report.analyzed else ranges.num_rows
        report.chunks[file.name, group, leaf.name] = counts
        if offsets is None:
            places = [(start, stop - start)] if ranges else []
            counts.kept = None if ranges else 0
            counts.known = declared_pages(chunk)
        else:
            pages = offsets.pages_of(ranges)
            counts.known, counts.kept = offsets.num_pages, len(pages)
            places = [(offset, length) for _, offset, length, _, _ in pages]
            # the dictionary, if there is one, lies before the first page
            if pages and not leaf.group:
                places.append((start, max(offsets.start - start, 0)))
        size = sum(length for _, length in places)
        counts.bytes = 0 if report.analyzed else size
        total += size
        held += sum(length for at, length in places if at >= tail)
    return total, held


def count_kept(
    file: FileMetadata, bound_request: BoundRequest, plan: GroupPlan, report: Report
) -> None:
    """Count the pages that a plan has left of a row group that is read, where planning did not count them in this report."""
    if report.chunks is None:
        return
    sure = plan.ranges if plan.fully_matched else plan.matching
    cut = TAKE if bound_request.request.selects_rows else LIMIT
    for leaf in bound_request.leaves.required(file)(plan.row_group):
        chunk = report.chunks.get((file.name, plan.row_group, leaf.name))
        offsets = file.offset_indexes.get((plan.row_group, leaf.index))
        if chunk is None or offsets is None or not (chunk.late or chunk.kept is None):
            continue
        tested = sure and leaf.index not in bound_request.leaves.payload
        left = offsets.pages_of(plan.ranges - sure if tested else plan.ranges)
        chunk.kept = (chunk.kept or 0) + len(left)
        chunk.late, chunk.by = True, plan.by or chunk.by or cut


def count_limited(
    file: FileMetadata,
    row_group: int,
    leaf: Leaf,
    ranges: rows.RowRanges,
    read: rows.RowRanges,
    report: Report,
) -> None:
    """Count the pages of a leaf that only rows beyond the limit need. They are not read. `read`: the rows within the limit."""
    if report.chunks is None:
        return
    offsets = file.offset_indexes.get((row_group, leaf.index))
    chunk = report.chunks.get((file.name, row_group, leaf.name))
    if offsets is not None and chunk is not None:
        chunk.limited += len(offsets.pages_of(ranges)) - len(offsets.pages_of(read))


def last_proof(before: dict[str, int], report: Report) -> str:
    """The mechanism that ruled out the last row groups of a file."""
    found = [m for m, n in report.row_groups.pruned_by.items() if n > before.get(m, 0)]
    found = [mechanism for mechanism in found if mechanism != NO_ROWS]
    last = [m for m in (LIMIT, *reversed(found)) if m in found]
    return last[0] if last else NO_ROWS
