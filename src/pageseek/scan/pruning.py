"""Row groups that the footer left in doubt are put to the other mechanisms: all at once, or step by step where a
limit may make the rest of them needless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pageseek._core import rows
from pageseek.base.report import ChunkReport, Report
from pageseek.format.chunks import chunk_range, declared_pages
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.fetch import Fetcher
from pageseek.io.range_requests import answered
from pageseek.predicate.bound import Bound, BoundAnd, BoundNot, BoundOr
from pageseek.prune import COLUMN_INDEX, Left, MechanismRun, load_indexes
from pageseek.scan.bound_request import BoundRequest
from pageseek.scan.file_plan import GroupPlan, Opened
from pageseek.storage.store import SLOW_STORE

LIMIT, TAKE, NO_ROWS = "limit", "take", "no_rows"
_NO_ROWS = rows.RowRanges.empty()


class Steps:
    """How many row groups are judged before the rows of them are read, where there is a limit.

    Few at first, then more with each step: what is judged beyond the limit costs at most a few times what had to be.
    Where a wait is long the steps are wide, so that a scan that finds nothing has few of them.
    """

    NEAR, FAR = (1, 2), (8, 8)  # the first step, and how much wider each is than the one before

    def __init__(self) -> None:
        self._size = 0

    @classmethod
    def is_one(cls, groups: Sequence[GroupPlan], left: int) -> bool:
        """Whether all are judged in the first step, wherever they are."""
        return len(groups) < 2 or cls().next(groups, left, 0.0) >= len(groups)

    def next(self, groups: Sequence[GroupPlan], left: int | None, latency: float) -> int:
        """The number of row groups to judge next; at least those that it takes to hold the rows that are `left`."""
        if left is None or all(group.judged for group in groups):
            return len(groups)
        first, growth = self.FAR if latency >= SLOW_STORE else self.NEAR
        self._size = self._size * growth or first
        least = 0
        for group in groups:
            if left <= 0:
                break
            least, left = least + 1, left - group.ranges.num_rows
        return max(self._size, least)


def judge(opened: Opened, groups: Sequence[GroupPlan], fetcher: Fetcher) -> list[GroupPlan]:
    """The row groups with the rows that no mechanism denies; without those that have none.

    With a report of chunks, the pages and bytes that are left to read are counted.
    """
    file, bound_request, report = opened.file, opened.bound_request, fetcher.report
    request, bound = bound_request.request, bound_request.bound
    surely = not bound_request.tests_payload
    unusable = {group.row_group: group.ranges for group in groups if not group.judged}
    proved: dict[int, Left] = {}
    without = {group: file.dropped(group) for group in unusable}  # while it is judged, more may be
    if unusable:
        assert bound is not None
        task = MechanismRun(
            file,
            bound,
            opened.proof(),
            bound_request.required_leaves(file),
            request.prune,
            request.options,
            report,
            surely or _has_not(bound),
            bound_request.kept,
            request.distinct_index,
        )
        proved = answered(task.prune(unusable), lambda wanted: fetcher.read(wanted, "index"))
    made = []
    for group in groups:
        left = proved.get(group.row_group)
        if left is not None:
            sure = left.sure if surely else _NO_ROWS
            group = replace(
                group, ranges=left.ranges, cost=0, sure=sure, judged=True,
                without=without[group.row_group],
            )  # fmt: skip
        made.append(group)
    found = [group for group in made if group.ranges]
    if request.limit is not None or request.take is not None:
        load_offsets(file, bound_request, found, fetcher)
    if report.chunks is None:
        return found
    costs = {}
    cut = LIMIT if request.take is None else TAKE
    for group in made:
        left = proved.get(group.row_group)
        by = cut if left is None else left.by or cut
        sure = group.ranges if group.proven else group.sure
        total, held = account(file, bound_request, group.row_group, group.ranges, sure, by, report)
        costs[group.row_group] = total
        if not report.analyzed:  # else they are counted when they are read
            report.bytes["data"] += total - held
    return [replace(group, cost=costs[group.row_group]) for group in found]


def _has_not(bound: Bound) -> bool:
    """Whether some part asks where another is not TRUE: what surely is, then rules rows out."""
    if isinstance(bound, (BoundAnd, BoundOr)):
        return any(map(_has_not, bound.args))
    return isinstance(bound, BoundNot)


def load_offsets(
    file: FileMetadata, bound_request: BoundRequest, groups: Sequence[GroupPlan], fetcher: Fetcher
) -> None:
    """The offset indexes of row groups of which not every page may be needed, where they are not at hand.

    They are when this process made the plan; they are not in another, or when the file was opened anew.
    """
    if COLUMN_INDEX not in bound_request.request.prune:
        return
    parts = [g.row_group for g in groups if not g.proven or _is_part(file, g.row_group, g.ranges)]
    answered(
        load_indexes(
            file,
            parts,
            bound_request.required_leaves(file),
            (),
            bound_request.request.options,
            fetcher.report,
        ),
        lambda wanted: fetcher.read(wanted, "index"),
    )


def _is_part(file: FileMetadata, row_group: int, ranges: rows.RowRanges) -> bool:
    return bool(ranges.num_rows < file.group_rows[row_group])


def account(
    file: FileMetadata,
    bound_request: BoundRequest,
    group: int,
    found: rows.RowRanges,
    sure: rows.RowRanges,
    by: str,
    report: Report,
) -> tuple[int, int]:
    """Count the pages that the rows `found` lie in, as far as the metadata at hand tell; return their bytes, and how
    many of these came with the tail of the file.

    A leaf that is only tested is not read where the rows are `sure` to pass.
    """
    assert report.chunks is not None
    total = held = 0
    tail = file.store.size - file.tail.nbytes  # what lies behind it was read at open
    payload = bound_request.payload
    leaves = bound_request.required_leaves(file)(group)
    file.load_chunks(group, leaves)
    for leaf in leaves:
        ranges = found if leaf.index in payload or not sure else found - sure
        chunk = file.chunk(group, leaf)
        start, stop = chunk_range(chunk)
        offsets = file.cached_offset_index(group, leaf)[1]
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
            # what lies before the first page is the dictionary, where there is one
            if pages and not leaf.group:
                places.append((start, max(offsets.start - start, 0)))
        size = sum(length for _, length in places)
        counts.bytes = 0 if report.analyzed else size
        total += size
        held += sum(length for at, length in places if at >= tail)
    return total, held


def last_proof(before: dict[str, int], report: Report) -> str:
    """What ruled out the last row groups that a file had."""
    found = [m for m, n in report.row_groups.pruned_by.items() if n > before.get(m, 0)]
    found = [mechanism for mechanism in found if mechanism != NO_ROWS]
    last = [m for m in (LIMIT, *reversed(found)) if m in found]
    return last[0] if last else NO_ROWS
