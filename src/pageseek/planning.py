"""From a request to a plan: files are opened and pruned, and what will be read is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

import pyarrow as pa

from pageseek._core import rows
from pageseek.cache import cache
from pageseek.errors import UnsupportedError
from pageseek.fetch import Fetcher
from pageseek.judge import LIMIT, NO_ROWS, TAKE, Steps, judge, last_proof
from pageseek.metadata import ParquetFile
from pageseek.plan import ScanPlan
from pageseek.predicate.bound import BoundConst
from pageseek.prune import STATISTICS, GroupProof, prune_groups
from pageseek.report import Report
from pageseek.request import FilePlan, GroupPlan, Opened, Request, Scope
from pageseek.storage import Source

FILTER = "filter"
Visit = Callable[[Opened, FilePlan, Report], None]


def make_plan(sources: Sequence[Source], request: Request) -> ScanPlan:
    """Open the files and prune; reads footers, and of the page index what the filter needs."""
    plan = prepare(sources, request)[0]
    plan.report.fold()
    return plan


def prepare(
    sources: Sequence[Source],
    request: Request,
    account: bool = True,
    lazy: bool = False,
    report: Report | None = None,
    first: ParquetFile | None = None,
    visit: Visit | None = None,
) -> tuple[ScanPlan, list[Opened]]:
    """A plan, and its file, open, where it is a single one: many would use up the descriptors.

    `account`: count the pages and bytes that the plan will read, for `explain` and `split`. `lazy`: the plan is executed
    at once, so that row groups which a limit may spare are judged then, as they are reached. `report` and the `first`
    file, if there are; `visit` is called with each file of which something is left.
    """
    if report is None:
        report = Report(nan=request.nan, chunks={} if account else None)
    if account:
        report.source = sources[0].name if len(sources) == 1 else f"{len(sources):,} files"
        report.filter = "" if request.filter is None else repr(request.filter)
    files: list[FilePlan] = []
    opened: list[Opened] = []
    schema: pa.Schema | None = None
    left = request.limit
    first_row = 0  # of the file, counted through all
    report.files.total = len(sources)
    for at, source in enumerate(sources):
        if left == 0 and schema is not None:
            report.files.prune(LIMIT, len(sources) - at)
            break
        with report.timed("open"):
            file = first if at == 0 and first is not None else None
            if file is None:
                file = cache.open(source, report, request.limits.max_metadata_bytes)
            scope = Scope.of(file, request)
        if schema is None:
            schema = scope.schema
            report.columns = list(schema.names)
        else:
            schema = _joined(schema, scope.schema, file.name)
        if not file.store.version.strong:
            report.version = "weak"
        report.file_bytes += file.store.size
        with report.timed("prune"):
            before = dict(report.row_groups.pruned_by)
            groups, made = _prune_file(
                file, scope, left, report, lazy, len(sources) == 1, first_row
            )
        if left is not None:
            left -= sum(group.ranges.num_rows for group in groups if group.proven)
        if groups:
            report.files.read += 1
            files.append(FilePlan(source, file.store.version, tuple(groups), first_row))
            if visit is not None:
                visit(made, files[-1], report)
            if len(sources) == 1:
                opened.append(made)
        else:
            report.files.prune(last_proof(before, report), 1)
        first_row += file.num_rows
    else:  # no limit was reached before the last of them
        if request.take is not None:
            _check_taken(request.take, first_row)
    assert schema is not None
    return ScanPlan(request, schema, tuple(files), report), opened


def _joined(schema: pa.Schema, other: pa.Schema, name: str) -> pa.Schema:
    """The schema of both: a column, or what lies below it, has nulls if it may have them in any file."""
    if schema.names != other.names:
        raise UnsupportedError(f"{name}: columns {other.names}, in the first file {schema.names}")
    fields = []
    for ours, theirs in zip(schema, other, strict=True):
        kind = _joined_type(ours.type, theirs.type)
        if kind is None:
            raise UnsupportedError(
                f"{name}: column {ours.name!r} is {theirs.type}, in the first file {ours.type}"
            )
        fields.append(ours.with_type(kind).with_nullable(ours.nullable or theirs.nullable))
    return pa.schema(fields, schema.metadata)


def _joined_type(ours: pa.DataType, theirs: pa.DataType) -> pa.DataType | None:
    """The type of both; None where they differ by more than nulls inside structs and lists."""
    if ours == theirs:
        return ours
    t = pa.types
    kinds = (t.is_struct, t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_map)
    same = any(kind(ours) and kind(theirs) for kind in kinds)
    if not same or ours.num_fields != theirs.num_fields:
        return None
    if t.is_map(ours):
        key, item = _joined_field(ours.key_field, theirs.key_field), None
        if ours.keys_sorted == theirs.keys_sorted:
            item = _joined_field(ours.item_field, theirs.item_field)
        return None if key is None or item is None else pa.map_(key, item, ours.keys_sorted)
    fields = [_joined_field(ours.field(i), theirs.field(i)) for i in range(ours.num_fields)]
    found = [field for field in fields if field is not None]
    if len(found) < len(fields):
        return None
    if t.is_struct(ours):
        return pa.struct(found)
    if t.is_fixed_size_list(ours):
        even = ours.list_size == theirs.list_size
        return pa.list_(found[0], ours.list_size) if even else None
    return pa.list_(found[0]) if t.is_list(ours) else pa.large_list(found[0])


def _joined_field(ours: pa.Field, theirs: pa.Field) -> pa.Field | None:
    kind = _joined_type(ours.type, theirs.type) if ours.name == theirs.name else None
    if kind is None:
        return None
    return ours.with_type(kind).with_nullable(ours.nullable or theirs.nullable)


def _check_taken(take: rows.RowRanges, num_rows: int) -> None:
    if take and take.bounds[1] > num_rows:
        raise IndexError(f"take: there is no row {take.bounds[1] - 1}, the source has {num_rows}")


def _prune_file(
    file: ParquetFile,
    scope: Scope,
    limit: int | None,
    report: Report,
    lazy: bool,
    alone: bool,
    first_row: int,
) -> tuple[list[GroupPlan], Opened]:
    counts = file.group_rows
    report.row_groups.total += len(counts)
    report.rows.total += sum(counts)
    bound, options, use = scope.bound, scope.request.options, scope.request.prune
    proof = GroupProof(b"", b"")
    if bound is None:
        kept, must = [i for i, n in enumerate(counts) if n], b"\1" * len(counts)
    else:
        proof = prune_groups(file, bound, options, STATISTICS in use)
        must = proof.must
        kept = [i for i in compress(range(len(counts)), proof.may) if counts[i]]
        never = FILTER if isinstance(bound, BoundConst) else STATISTICS
        report.row_groups.prune(never, proof.may.count(0))
        report.rows.prune(never, sum(counts) - sum(compress(counts, proof.may)))
    pruned = 0 if bound is None else proof.may.count(0)
    report.row_groups.prune(NO_ROWS, len(counts) - len(kept) - pruned)
    request = scope.request
    if request.take is None:
        ranges = {i: rows.RowRanges.all(counts[i]) for i in kept}
    else:
        ranges = {i: request.asked(first_row + file.first_row(i), counts[i]) for i in kept}
        left_out = [i for i in kept if not ranges[i]]
        report.row_groups.prune(TAKE, len(left_out))
        report.rows.prune(TAKE, sum(counts[i] - ranges[i].num_rows for i in kept))
        kept = [i for i in kept if ranges[i]]
        ranges = {i: ranges[i] for i in kept}
    if limit is not None:
        kept = _cut(ranges, must, limit, report)
    groups = [GroupPlan(i, ranges[i], bool(must[i]), 0, judged=bool(must[i])) for i in kept]
    opened = Opened(file, scope, proof)
    fetcher = Fetcher(file.store, report, file.tail, request.limits, scope.kept)
    if lazy and limit is not None and not (alone and Steps.is_one(groups, limit)):
        sure = iter(judge(opened, [group for group in groups if group.judged], fetcher))
        plans = [next(sure) if group.judged else group for group in groups]
    else:
        plans = judge(opened, groups, fetcher)
    for plan in plans:
        report.row_groups.read += 1
        report.rows.read += plan.ranges.num_rows
    return plans, opened


def _cut(ranges: dict[int, rows.RowRanges], must: bytes, limit: int, report: Report) -> list[int]:
    """The row groups before the limit is surely reached; the ranges of the last are cut."""
    kept, left = [], limit
    for i, found in ranges.items():
        if left == 0:
            report.row_groups.prune(LIMIT, 1)
            report.rows.prune(LIMIT, found.num_rows)
            continue
        kept.append(i)
        if must[i]:
            ranges[i] = found.head(left)
            report.rows.prune(LIMIT, found.num_rows - ranges[i].num_rows)
            left -= ranges[i].num_rows
    return kept
