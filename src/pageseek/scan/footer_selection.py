"""Row groups and rows that the footer leaves, and what the report counts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, compress

from pageseek._core import rows
from pageseek.base.report import Report
from pageseek.predicate.bound import BoundConst
from pageseek.prune import STATISTICS
from pageseek.scan.accounting import FILTER, LIMIT, NO_ROWS, PARTITION, TAKE, last_proof
from pageseek.scan.batched_file import BatchedFile, PrunedFiles
from pageseek.scan.bound_request import BoundRequest
from pageseek.scan.plan import GroupPlan
from pageseek.scan.request import Request
from pageseek.storage import Source


def ranges_by_footer(
    counts: Sequence[int],
    may: bytes,
    must: bytes,
    bound_request: BoundRequest,
    limit: int | None,
    report: Report,
    source: Source,
    first_row: int,
    by_folders: bool,
    steps: Sequence[tuple[str, bytes]] = (),
    catalogs: Sequence[tuple[str, rows.RowRanges]] = (),
) -> dict[int, rows.RowRanges]:
    """The rows to look at of each row group that the footer leaves. `counts`: the rows of each; `may` and `must`: what
    is proved of them; `by_folders`: whether some may pass by these; `steps`: the mechanisms that proved it, and what each left,
    if the footer was not the only one.
    """
    report.row_groups.total += len(counts)
    report.rows.total += sum(counts)
    denied = may.count(0)
    if denied:
        never = FILTER if isinstance(bound_request.bound, BoundConst) else STATISTICS
        never = never if by_folders else PARTITION
        groups, rows_in = len(counts), sum(counts)
        for mechanism, left in steps or [(STATISTICS, may)]:
            groups_left, rows_left = len(left) - left.count(0), sum(compress(counts, left))
            by = never if mechanism == STATISTICS else mechanism
            report.row_groups.prune(by, groups - groups_left)
            report.rows.prune(by, rows_in - rows_left)
            groups, rows_in = groups_left, rows_left
    kept, ranges = [], {}
    for i in compress(range(len(counts)), may):
        if counts[i]:
            kept.append(i)
            ranges[i] = rows.RowRanges.all(counts[i])
    if len(kept) + denied < len(counts):
        report.row_groups.prune(NO_ROWS, len(counts) - len(kept) - denied)
    request = bound_request.request
    if request.selects_rows:
        begin = list(accumulate(counts, initial=0))
        asked = {i: request.asked(source.name, first_row, begin[i], counts[i]) for i in kept}
        ranges = {i: found for i, found in asked.items() if found}
        report.row_groups.prune(TAKE, len(kept) - len(ranges))
        report.rows.prune(TAKE, sum(counts[i] - asked[i].num_rows for i in kept))
    for name, said in catalogs:
        ranges = _narrowed(ranges, counts, said, name, report)
    return ranges if limit is None else _cut(ranges, must, limit, report)


def _narrowed(
    ranges: dict[int, rows.RowRanges],
    counts: Sequence[int],
    left: rows.RowRanges,
    by: str,
    report: Report,
) -> dict[int, rows.RowRanges]:
    """The rows of row groups that are among those that a catalog has left of the file."""
    begin = list(accumulate(counts, initial=0))
    found = {
        i: before & left.slice(begin[i], begin[i + 1]).shift(-begin[i])
        for i, before in ranges.items()
    }
    kept = {i: after for i, after in found.items() if after}
    report.row_groups.prune(by, len(ranges) - len(kept))
    rows_in = sum([before.num_rows for before in ranges.values()])
    report.rows.prune(by, rows_in - sum([after.num_rows for after in kept.values()]))
    return kept


def plan_by_footer(
    batched_file: BatchedFile,
    source: Source,
    request: Request,
    limit: int | None,
    report: Report,
    lazy: bool,
    first_row: int,
    may: bool,
    fold: bool,
) -> tuple[tuple[GroupPlan, ...], str] | None:
    """The row groups to read of a file, and what ruled out the last where there are none; None where its footer does not
    say all that a plan needs.
    """
    counts, passes, must = batched_file.counts, batched_file.may, batched_file.must
    homogeneous, first = batched_file.homogeneous, batched_file.first
    account, stop = report.chunks is not None, first + len(counts)
    if 0 in counts:  # where there are no statistics either, what others have would tell them apart
        return None
    if request.selects_rows:
        if request.asked(source.name, first_row, 0, batched_file.num_rows):
            return None
    elif limit is not None:
        # what is in doubt is pruned as it is reached; where the limit cuts, an index helps
        if (passes != must and (account or not lazy)) or sum(compress(counts, must)) > limit:
            return None
    elif passes != must:
        version_check = [some and not every for some, every in zip(passes, must, strict=True)]
        if not all(compress(homogeneous.final[first:stop], version_check)):
            return None
    if account and not all(compress(homogeneous.sound[first:stop], passes)):
        return None
    before = dict(report.row_groups.pruned_by)
    bound_request = homogeneous.schema_group.bound_request
    ranges = ranges_by_footer(
        counts,
        passes,
        must,
        bound_request,
        limit,
        report,
        source,
        first_row,
        may,
        batched_file.steps,
    )
    if not ranges:
        return (), last_proof(before, report)
    made = []
    for i, found in ranges.items():
        cost, proven = 0, bool(must[i])
        if account:
            cost = homogeneous.cost(first + i, proven)
            homogeneous.take((source.name, i), first + i, proven, LIMIT, report, fold)
        made.append(GroupPlan(i, found, proven, cost, pages_pruned=proven or limit is None))
        report.row_groups.read += 1
        report.rows.read += found.num_rows
    return tuple(made), ""


def count_pruned(gone: PrunedFiles, report: Report) -> None:
    """Count files of which nothing is left."""
    report.file_bytes += gone.bytes
    report.row_groups.total += gone.row_groups
    report.rows.total += gone.rows
    for mechanism, (files, row_groups, num_rows) in gone.by.items():
        report.files.prune(mechanism, files)
        report.row_groups.prune(mechanism, row_groups)
        report.rows.prune(mechanism, num_rows)
    report.step(gone.files)


def _cut(
    ranges: dict[int, rows.RowRanges], must: bytes, limit: int, report: Report
) -> dict[int, rows.RowRanges]:
    """The row groups before the limit is surely reached; the ranges of the last are cut."""
    kept, left = {}, limit
    for i, found in ranges.items():
        if left == 0:
            report.row_groups.prune(LIMIT, 1)
            report.rows.prune(LIMIT, found.num_rows)
            continue
        kept[i] = found
        if must[i]:
            kept[i] = found.head(left)
            report.rows.prune(LIMIT, found.num_rows - kept[i].num_rows)
            left -= kept[i].num_rows
    return kept


def check_selected(selected: Mapping[str, rows.RowRanges], source: Source, num_rows: int) -> None:
    """Raise IndexError where rows of a file are selected that it has not."""
    found = selected.get(source.name)
    if found and found.bounds[1] > num_rows:
        raise IndexError(
            f"{source.name}: take: there is no row {found.bounds[1] - 1}, the file has {num_rows}"
        )


def check_taken(take: rows.RowRanges, num_rows: int) -> None:
    if take and take.bounds[1] > num_rows:
        raise IndexError(f"take: there is no row {take.bounds[1] - 1}, the source has {num_rows}")
