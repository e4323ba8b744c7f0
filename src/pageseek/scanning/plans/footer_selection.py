"""The row groups and rows that the footer leaves, counted in the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, compress
from typing import TYPE_CHECKING

import numpy as np

from pageseek._core import rows
from pageseek.base.report import Report
from pageseek.predicate.bound import BoundConst
from pageseek.prune.registry import STATISTICS
from pageseek.scanning.requests.accounting import (
    DELETED,
    FILTER,
    LIMIT,
    NO_ROWS,
    PARTITION,
    TAKE,
    last_proof,
)
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.plan import FilePlan, Footer, GroupPlan
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source

if TYPE_CHECKING:
    from pageseek.scanning.many_files.batched_file import BatchedFile, DecidedFiles, PrunedFiles


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
    named: Sequence[tuple[str, rows.RowRanges]] = (),
    deleted: rows.RowRanges | None = None,
) -> dict[int, rows.RowRanges]:
    """The rows of each row group that the footer leaves.

    Parameters
    ----------
    counts : sequence of int
        The rows of each row group.
    may, must : bytes
        For each row group whether some row may pass, and whether all do.
    first_row : int
        The number of rows in the files before this one.
    by_folders : bool
        Whether rows may pass by the values of the folders.
    steps : sequence of (str, bytes)
        Each mechanism that has pruned, and `may` as it left it. Empty: statistics alone have.
    named : sequence of (str, RowRanges)
        The rows of the file that catalogs leave, or indexes that were asked before, by their names.
    deleted : RowRanges, optional
        The rows of the file that its table has deleted.
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
    ranges = {}
    for i in compress(range(len(counts)), may):
        if counts[i]:
            ranges[i] = rows.RowRanges.all(counts[i])
    if len(ranges) + denied < len(counts):
        report.row_groups.prune(NO_ROWS, len(counts) - len(ranges) - denied)
    request = bound_request.request
    if request.selects_rows or named or deleted:
        begin = list(accumulate(counts, initial=0))
        if deleted:
            alive = {
                i: before - deleted.slice(begin[i], begin[i + 1]).shift(-begin[i])
                for i, before in ranges.items()
            }
            ranges = _narrowed(ranges, alive, DELETED, report)
        if request.selects_rows:
            asked = {
                i: before & request.asked(source.name, first_row, begin[i], counts[i])
                for i, before in ranges.items()
            }
            ranges = _narrowed(ranges, asked, TAKE, report)
        for name, said in named:
            found = {
                i: before & said.slice(begin[i], begin[i + 1]).shift(-begin[i])
                for i, before in ranges.items()
            }
            ranges = _narrowed(ranges, found, name, report)
    return ranges if limit is None else _cut(ranges, must, limit, report)


def _narrowed(
    before: dict[int, rows.RowRanges], after: dict[int, rows.RowRanges], by: str, report: Report
) -> dict[int, rows.RowRanges]:
    """The row groups that have rows `after` a mechanism has left some of those `before`; the others are counted."""
    kept = {i: found for i, found in after.items() if found}
    report.row_groups.prune(by, len(before) - len(kept))
    report.rows.prune(by, sum([before[i].num_rows - after[i].num_rows for i in before]))
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
    defers: bool = False,
    joins: bool = False,
) -> tuple[tuple[GroupPlan, ...], str] | None:
    """The row groups to read of a file, and the mechanism that ruled out the last if there are none.

    None if a plan needs more than the footer. `may`: whether rows may pass by the values of the folders. `defers`: row groups
    that are undecided are pruned further when they are read. `joins`: small ones are read with those of other files, which costs
    less than to ask for more.
    """
    homogeneous, own = batched_file.homogeneous, batched_file.row_groups
    first, stop = own.start, own.stop
    counts, passes, must = homogeneous.counts[own], homogeneous.may[own], homogeneous.must[own]
    account = report.chunks is not None
    # the report tells whether row groups without rows had statistics; the table of footers does not
    if 0 in counts or (source.deletes and any(passes)):
        return None
    if request.selects_rows:
        if request.asked(source.name, first_row, 0, sum(counts)):
            return None
    elif limit is not None:
        # undecided row groups are pruned when they are reached; in the one that the limit cuts an index helps
        if (passes != must and (account or not lazy)) or sum(compress(counts, must)) > limit:
            return None
    elif not homogeneous.settled(joins, defers).item(batched_file.number):
        return None
    if account and not all(compress(homogeneous.sound[first:stop], passes)):
        return None
    before = dict(report.row_groups.pruned_by)
    bound_request = homogeneous.schema_group.bound_request
    # a limit reads the rows in their order until it has enough
    named = homogeneous.candidates(first, stop) if limit is None else []
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
        [(mechanism, may[own]) for mechanism, may in homogeneous.steps],
        named,
    )
    if not ranges:
        return (), last_proof(before, report)
    made = []
    for i, found in ranges.items():
        cost, proven = 0, bool(must[i])
        by = named[-1][0] if found.num_rows < counts[i] and named else ""
        if account:
            cost = homogeneous.cost(first + i, proven)
            key = source.name, i
            homogeneous.take(key, first + i, found.num_rows, proven, by or LIMIT, report, fold)
        done = proven or (limit is None and (not defers or homogeneous.final[first + i]))
        made.append(GroupPlan(i, found, proven, cost, pages_pruned=done, by=by))
        report.row_groups.read += 1
        report.rows.read += found.num_rows
    return tuple(made), ""


def plans_by_footers(
    files: DecidedFiles,
    sources: Sequence[Source],
    first_row: int,
    footer: Callable[[int], Footer],
    report: Report,
    fold: bool,
    defers: bool,
) -> tuple[list[FilePlan], int]:
    """The plans of files, as `plan_by_footer` makes them one by one, and the number of their rows.

    `sources`: of each file. `footer`: of a file with so many row groups.
    """
    homogeneous, table, batch = files.homogeneous, files.homogeneous.table, files.batch
    places, owners = table.row_groups_of(files.numbers)
    counts = table.rows[places]
    num_rows = int(counts.sum())
    report.row_groups.total += len(places)
    report.rows.total += num_rows
    left = np.ones(len(places), np.bool_)
    for mechanism, may in homogeneous.steps:
        after = np.frombuffer(may, np.bool_)[places]
        denied = left & ~after
        report.row_groups.prune(mechanism, int(denied.sum()))
        report.rows.prune(mechanism, int(counts[denied].sum()))
        left = after
    places, owners, counts = places[left], owners[left], counts[left]
    report.row_groups.read += len(places)
    report.rows.read += int(counts.sum())
    groups: list[list[GroupPlan]] = [[] for _ in sources]
    every: dict[int, rows.RowRanges] = {}  # as a rule most row groups have as many rows
    none, account = rows.RowRanges.empty(), report.chunks is not None
    numbers, cost = places - table.first[files.numbers][owners], 0
    for place, number, owner, count in zip(
        places.tolist(), numbers.tolist(), owners.tolist(), counts.tolist(), strict=True
    ):
        proven = bool(homogeneous.must[place])
        if account:
            cost, key = homogeneous.cost(place, proven), (sources[owner].name, number)
            homogeneous.take(key, place, count, proven, LIMIT, report, fold)
        found = every.get(count)
        if found is None:
            found = every[count] = rows.RowRanges.all(count)
        done = proven or not defers or homogeneous.final[place]
        groups[owner].append(GroupPlan(number, found, proven, cost, none, done))
    sums = np.cumsum(table.of_files(table.rows)[files.numbers])
    begins = [first_row, *(first_row + sums[:-1]).tolist()]
    versions, n = batch.versions(files.places), table.n[files.numbers].tolist()
    report.file_bytes += int(batch.sizes[files.places].sum())
    return [
        FilePlan(source, version, tuple(some), begin, footer(n))
        for source, version, some, begin, n in zip(
            sources, versions, groups, begins, n, strict=True
        )
    ], num_rows


def count_pruned(gone: PrunedFiles, report: Report) -> None:
    """Count files that are wholly ruled out."""
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
    """The row groups up to the one in which proven rows reach the limit; its ranges are cut."""
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
    """Raise IndexError if rows of a file are selected that it does not have."""
    found = selected.get(source.name)
    if found and found.bounds[1] > num_rows:
        raise IndexError(
            f"{source.name}: take: there is no row {found.bounds[1] - 1}, the file has {num_rows}"
        )


def check_taken(take: rows.RowRanges, num_rows: int) -> None:
    """Raise IndexError if rows are selected that the source does not have."""
    if take and take.bounds[1] > num_rows:
        raise IndexError(f"take: there is no row {take.bounds[1] - 1}, the source has {num_rows}")
