"""What will be read: files with versions, row groups with rows. Picklable; this is what Spark ships."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.cache import cache
from pageseek.columns import Column, Names, output, teller
from pageseek.decode import IndexMismatch
from pageseek.errors import FileChangedError, PageseekError, UnsupportedError
from pageseek.execute import GroupScan, batches_of, table_of
from pageseek.fetch import Fetcher
from pageseek.limits import DEFAULT, Limits
from pageseek.metadata import ParquetFile, chunk_range
from pageseek.predicate.bind import Bound, BoundConst, bind, leaves_of
from pageseek.predicate.expression import Expression
from pageseek.prune import load_indexes, prune_groups, prune_pages
from pageseek.report import ChunkReport, Report
from pageseek.schema import Leaf
from pageseek.storage import Source, Version
from pageseek.types import Options

STATISTICS, COLUMN_INDEX, LIMIT = "statistics", "column_index", "limit"
FILTER, NO_ROWS = "filter", "no_rows"


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rows of one row group. `proven`: every one of them passes the filter. `cost`: about the bytes to read."""

    row_group: int
    ranges: rows.RowRanges
    proven: bool
    cost: int


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The row groups to read of one version of one file."""

    source: Source
    version: Version
    groups: tuple[GroupPlan, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of every file: the same for all parts of a plan."""

    columns: tuple[str, ...] | None
    filter: Expression | None
    limit: int | None
    options: Options
    nan: str
    batch_size: int
    limits: Limits = DEFAULT


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A pruned scan. `schema` is that of the batches that `execute` yields.

    A plan is picklable and carries the version of each file; executing it on another version raises
    FileChangedError before a byte is decoded.
    """

    request: Request
    schema: pa.Schema
    files: tuple[FilePlan, ...]
    report: Report = field(compare=False, repr=False)

    @property
    def num_rows(self) -> int:
        """Rows that may pass the filter, at most."""
        return sum(group.ranges.num_rows for file in self.files for group in file.groups)

    @property
    def cost(self) -> int:
        """About the bytes that will be read."""
        return sum(group.cost for file in self.files for group in file.groups)

    def split(self, n: int) -> list[ScanPlan]:
        """At most `n` plans of nearly equal cost, each row group in exactly one; empty ones are left out.

        File order is kept inside each part. A limit holds for each part on its own.
        """
        if n < 1:
            raise ValueError(f"split({n}): at least one part")
        pieces = [(g.cost, i, j) for i, f in enumerate(self.files) for j, g in enumerate(f.groups)]
        loads = [(0, 0, part) for part in range(min(n, len(pieces)))]  # cost, row groups, part
        chosen: list[list[tuple[int, int]]] = [[] for _ in loads]
        for cost, i, j in sorted(pieces, key=lambda piece: -piece[0]):
            load, count, part = heapq.heappop(loads)
            chosen[part].append((i, j))
            heapq.heappush(loads, (load + cost, count + 1, part))
        parts = []
        for members in sorted(sorted(part) for part in chosen):
            files = []
            for i in sorted({i for i, _ in members}):
                groups = tuple(self.files[i].groups[j] for at, j in members if at == i)
                files.append(replace(self.files[i], groups=groups))
            parts.append(replace(self, files=tuple(files), report=Report()))
        return parts

    def execute(self, report: Report | None = None) -> Iterator[pa.RecordBatch]:
        """The batches of the plan, in file order. `report` is filled as they come."""
        for table in self.tables(report):
            yield from batches_of(table, self.request.batch_size)

    def tables(
        self, report: Report | None = None, opened: Sequence[Opened] = ()
    ) -> Iterator[pa.Table]:
        """The rows of the plan, a table for each row group that has some. `opened`: its files, if they were
        opened for it a moment ago.
        """
        if report is None:  # nobody looks at it
            report = Report(analyzed=True, chunks=None)
        elif not report.analyzed:
            self._begin(report)
        left = self.request.limit
        for i, file_plan in enumerate(self.files):
            if left == 0:
                return
            file, scope = opened[i] if opened else self._open(file_plan, report)
            fetcher = Fetcher(file.store, report, file.tail, self.request.limits)
            if not opened:
                _load_offsets(file, scope, file_plan.groups, fetcher)
            report.files.read += 1
            unchecked = True
            other = scope.schema is not self.schema and scope.schema.types != self.schema.types
            for group in file_plan.groups:
                if left == 0:
                    break
                unchecked = True
                try:
                    n, arrays = self._read_group(file, group, scope, fetcher, left)
                except PageseekError:
                    file.store.check()  # what was read may be of another version
                    raise
                report.rows_out += n
                if left is not None:
                    left -= n
                if n:
                    if file.store.version.strong:  # to ask costs nothing there
                        file.store.check()
                        unchecked = False
                    if other:  # nulls inside structs, that only another file may have
                        arrays = [
                            [array.cast(f.type) for array in column]
                            for f, column in zip(self.schema, arrays, strict=True)
                        ]
                    yield table_of(self.schema, n, arrays)
            if unchecked:
                file.store.check()

    def _begin(self, report: Report) -> None:
        """Of a report that planning did not fill: what there is to read is what the plan holds."""
        report.analyzed, report.nan, report.columns = (
            True,
            self.request.nan,
            list(self.schema.names),
        )
        report.filter = "" if self.request.filter is None else repr(self.request.filter)
        report.files.total += len(self.files)
        report.row_groups.total += sum(len(file.groups) for file in self.files)
        report.rows.total += self.num_rows
        report.file_bytes += sum(file.version.size for file in self.files)

    def _open(self, file_plan: FilePlan, report: Report) -> Opened:
        file = cache.open(file_plan.source, report, self.request.limits.max_metadata_bytes)
        if file.store.version != file_plan.version:
            raise FileChangedError(
                f"{file.name}: the file changed after it was planned "
                f"({file_plan.version.tag} -> {file.store.version.tag}); plan again"
            )
        return file, Scope.of(file, self.request)

    def _read_group(
        self, file: ParquetFile, group: GroupPlan, scope: Scope, fetcher: Fetcher, left: int | None
    ) -> tuple[int, list[list[pa.Array]]]:
        ranges, report = group.ranges, fetcher.report
        while True:
            scan = GroupScan(file, group.row_group, scope.columns, fetcher, self.request.options)
            try:
                found = scan.run(ranges, None if group.proven else scope.bound, left)
            except IndexMismatch as mismatch:
                file.drop_index(group.row_group, mismatch.leaf)
                before = ranges.num_rows
                if not group.proven:  # rows may have been ruled out on the word of this index
                    ranges = rows.RowRanges.all(file.group_rows[group.row_group])
                more = ranges.num_rows - before
                stated = _stated_pages(file.chunk(group.row_group, mismatch.leaf))
                report.restart(file.name, group.row_group, mismatch.leaf.name, stated, more)
            else:
                total = file.group_rows[group.row_group]
                report.done(file.name, group.row_group, ranges.num_rows, total)
                return found


@dataclass(frozen=True, slots=True)
class Scope:
    """A request bound to one file: the columns to give, the filter, the leaves that either touches."""

    request: Request
    columns: tuple[Column, ...]
    schema: pa.Schema
    bound: Bound | None

    @classmethod
    def of(cls, file: ParquetFile, request: Request) -> Scope:
        file.schema_tree.check(request.options)
        columns, schema = output(file, request.columns, request.options)

        find = Names(file, request.options)
        bound = bind(request.filter, find, request.nan) if request.filter is not None else None
        return cls(request, columns, schema, bound)

    def touched(self, file: ParquetFile) -> Callable[[int], list[Leaf]]:
        """Of each row group, the leaves that are read; as one of a group only where no value is wanted of it."""
        payload = {p.leaf.index: p.leaf for column in self.columns for p in column.parts}
        tests = [] if self.bound is None else [test.leaf for test in leaves_of(self.bound)]
        values = payload | {leaf.index: leaf for leaf in tests if not leaf.group}
        groups = [leaf for leaf in tests if leaf.group]

        def of(row_group: int) -> list[Leaf]:
            told = [teller(file, row_group, leaf, payload) for leaf in groups]
            return list(({leaf.index: leaf for leaf in told} | values).values())

        return of


Opened = tuple[ParquetFile, Scope]


def _load_offsets(
    file: ParquetFile, scope: Scope, groups: Sequence[GroupPlan], fetcher: Fetcher
) -> None:
    """The offset indexes of row groups of which not every page may be needed, where they are not at hand.

    They are when this process made the plan; they are not in another, or when the file was opened anew.
    """
    parts = [g.row_group for g in groups if not g.proven or _is_part(file, g.row_group, g.ranges)]
    drive(
        load_indexes(file, parts, scope.touched(file), (), scope.request.options, fetcher.report),
        lambda wanted: fetcher.read(wanted, "index"),
    )


def _is_part(file: ParquetFile, row_group: int, ranges: rows.RowRanges) -> bool:
    return bool(ranges.num_rows < file.group_rows[row_group])


def drive(
    pruner: Generator[list[tuple[int, int]], list[memoryview], Any],
    fetch: Callable[[list[tuple[int, int]]], Any],
) -> Any:
    """Run a pruner: fetch what it wants until it returns what it proved."""
    try:
        wanted = next(pruner)
        while True:
            wanted = pruner.send(fetch(wanted))
    except StopIteration as done:
        return done.value


def make_plan(sources: Sequence[Source], request: Request) -> ScanPlan:
    """Open the files and prune; reads footers, and of the page index what the filter needs."""
    plan = prepare(sources, request)[0]
    plan.report.fold()
    return plan


def prepare(
    sources: Sequence[Source], request: Request, account: bool = True
) -> tuple[ScanPlan, list[Opened]]:
    """A plan, and its file, open, where it is a single one: many would use up the descriptors.

    `account`: count the pages and bytes that the plan will read, for `explain` and `split`.
    """
    report = Report(nan=request.nan, chunks={} if account else None)
    if account:
        report.source = sources[0].path if len(sources) == 1 else f"{len(sources):,} files"
        report.filter = "" if request.filter is None else repr(request.filter)
    files: list[FilePlan] = []
    opened: list[Opened] = []
    schema: pa.Schema | None = None
    left = request.limit
    report.files.total = len(sources)
    for at, source in enumerate(sources):
        if left == 0 and schema is not None:
            report.files.prune(LIMIT, len(sources) - at)
            break
        with report.timed("open"):
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
            groups = _prune_file(file, scope, left, report, account)
        if left is not None:
            left -= sum(group.ranges.num_rows for group in groups if group.proven)
        if groups:
            report.files.read += 1
            files.append(FilePlan(source, file.store.version, tuple(groups)))
            if len(sources) == 1:
                opened.append((file, scope))
        else:
            report.files.prune(_last_proof(before, report), 1)
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


def _prune_file(
    file: ParquetFile, scope: Scope, limit: int | None, report: Report, account: bool
) -> list[GroupPlan]:
    counts = file.group_rows
    report.row_groups.total += len(counts)
    report.rows.total += sum(counts)
    bound, options = scope.bound, scope.request.options
    if bound is None:
        kept, must = [i for i, n in enumerate(counts) if n], b"\1" * len(counts)
    else:
        proof = prune_groups(file, bound, options)
        must = proof.must
        kept = [i for i in compress(range(len(counts)), proof.may) if counts[i]]
        never = FILTER if isinstance(bound, BoundConst) else STATISTICS
        report.row_groups.prune(never, proof.may.count(0))
        report.rows.prune(never, sum(counts) - sum(compress(counts, proof.may)))
    ranges = {i: rows.RowRanges.all(counts[i]) for i in kept}
    pruned = 0 if bound is None else proof.may.count(0)
    report.row_groups.prune(NO_ROWS, len(counts) - len(kept) - pruned)
    if limit is not None:
        kept = _cut(ranges, must, limit, report)
    fetcher = Fetcher(file.store, report, file.tail, scope.request.limits)
    doubtful = [i for i in kept if not must[i]]
    if doubtful:
        assert bound is not None
        pruner = prune_pages(file, bound, doubtful, scope.touched(file), options, report)
        for page_proof in drive(pruner, lambda wanted: fetcher.read(wanted, "index")):
            ranges[page_proof.row_group] = page_proof.ranges
            if not page_proof.ranges:
                report.row_groups.prune(COLUMN_INDEX, 1)
            gone = counts[page_proof.row_group] - page_proof.ranges.num_rows
            report.rows.prune(COLUMN_INDEX, gone)
    plans = [GroupPlan(i, ranges[i], bool(must[i]), 0) for i in kept if ranges[i]]
    if limit is not None:
        _load_offsets(file, scope, plans, fetcher)
    for plan in plans:
        report.row_groups.read += 1
        report.rows.read += plan.ranges.num_rows
    if not account:
        return plans
    costs = {
        i: _account(file, scope, i, ranges[i], LIMIT if must[i] else COLUMN_INDEX, report)
        for i in kept
    }
    return [replace(plan, cost=costs[plan.row_group]) for plan in plans]


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


def _stated_pages(chunk: Any) -> int | None:
    """How many data pages the footer says a chunk has (parquet.thrift, PageEncodingStats)."""
    if chunk.encoding_stats != 1:
        return None
    return int(chunk.dictionary_data_pages + chunk.other_data_pages)


def _last_proof(before: dict[str, int], report: Report) -> str:
    """What ruled out the last row groups that a file had."""
    found = [m for m, n in report.row_groups.pruned_by.items() if n > before.get(m, 0)]
    order = (LIMIT, COLUMN_INDEX, STATISTICS, FILTER)
    return next((mechanism for mechanism in order if mechanism in found), NO_ROWS)


def _account(
    file: ParquetFile, scope: Scope, group: int, ranges: rows.RowRanges, by: str, report: Report
) -> int:
    """Count the pages that the rows lie in, as far as the metadata at hand tell; return their bytes."""
    assert report.chunks is not None
    total = held = 0
    tail = file.store.size - file.tail.nbytes  # what lies behind it was read at open
    for leaf in scope.touched(file)(group):
        chunk = file.chunk(group, leaf)
        start, stop = chunk_range(chunk)
        offsets = file.cached_offset_index(group, leaf)[1]
        counts = ChunkReport(path=leaf.name, by=by, bytes=0, rows_decoded=ranges.num_rows)
        report.chunks[file.name, group, leaf.name] = counts
        if offsets is None:
            places = [(start, stop - start)] if ranges else []
            counts.kept = None if ranges else 0
            counts.known = _stated_pages(chunk)
        else:
            touched = offsets.pages_of(ranges)
            counts.known, counts.kept = offsets.num_pages, len(touched)
            places = [(offset, length) for _, offset, length, _, _ in touched]
            # what lies before the first page is the dictionary, where there is one
            if touched and not leaf.group:
                places.append((start, max(offsets.start - start, 0)))
        counts.bytes = sum(length for _, length in places)
        total += counts.bytes
        held += sum(length for at, length in places if at >= tail)
    report.bytes["data"] += total - held
    return total
