"""What will be read: files with versions, row groups with rows. Picklable; this is what Spark ships."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.cache import cache
from pageseek.columns import Column, Names, output, teller
from pageseek.decode import IndexMismatch
from pageseek.errors import FileChangedError, PageseekError, PredicateError
from pageseek.execute import GroupScan
from pageseek.fetch import Fetcher, Kept
from pageseek.limits import DEFAULT, Limits
from pageseek.metadata import ParquetFile
from pageseek.ordering import Learned
from pageseek.predicate.bind import Bound, bind, leaves_of
from pageseek.predicate.expression import Expression
from pageseek.prune import COLUMN_INDEX, drive, load_indexes, mechanisms
from pageseek.report import Report
from pageseek.schema import Leaf
from pageseek.storage import Source, Version
from pageseek.tables import batches_of, table_of
from pageseek.types import Options


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rows of one row group. `proven`: every one of them passes the filter, by the footer; `sure`: those that do by
    the word of an index. `cost`: about the bytes to read.
    """

    row_group: int
    ranges: rows.RowRanges
    proven: bool
    cost: int
    sure: rows.RowRanges = field(default_factory=rows.RowRanges.empty)


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The row groups to read of one version of one file. `first_row`: the rows of the files before it."""

    source: Source
    version: Version
    groups: tuple[GroupPlan, ...]
    first_row: int = 0


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
    prune: frozenset[str] = field(default_factory=lambda: mechanisms(True))
    take: rows.RowRanges | None = None  # rows of the whole source, which are numbered through
    row_number: str | None = None  # the column that gives these numbers

    def asked(self, first_row: int, num_rows: int) -> rows.RowRanges:
        """The rows wanted of a row group, before any filter; `first_row`: the number of its first."""
        if self.take is None:
            return rows.RowRanges.all(num_rows)
        return self.take.slice(first_row, first_row + num_rows).shift(-first_row)


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

    def batches(self, opened: Sequence[Opened]) -> Iterator[pa.RecordBatch]:
        """The same with files that were opened to plan it, where there are some."""
        for table in self.tables(opened=opened):
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
        left, learned = self.request.limit, Learned()
        for i, file_plan in enumerate(self.files):
            if left == 0:
                return
            file, scope = opened[i] if opened else self.open_file(file_plan, report)
            fetcher = Fetcher(file.store, report, file.tail, self.request.limits, scope.kept)
            if not opened:
                load_offsets(file, scope, file_plan.groups, fetcher)
            report.files.read += 1
            unchecked = True
            other = scope.schema is not self.schema and scope.schema.types != self.schema.types
            for group in file_plan.groups:
                if left == 0:
                    break
                unchecked = True
                try:
                    found, arrays = self._read_group(
                        file, group, scope, fetcher, left, file_plan.first_row, learned
                    )
                except PageseekError:
                    file.store.check()  # what was read may be of another version
                    raise
                n = found.num_rows
                report.rows_out += n
                if left is not None:
                    left -= n
                if n:
                    if file.store.version.strong:  # to ask costs nothing there
                        file.store.check()
                        unchecked = False
                    if other:  # nulls inside structs, that only another file may have
                        given = list(self.schema)[len(self.schema) - len(arrays) :]
                        arrays = [
                            [array.cast(f.type) for array in column]
                            for f, column in zip(given, arrays, strict=True)
                        ]
                    if self.request.row_number is not None:
                        first = file_plan.first_row + file.first_row(group.row_group)
                        arrays = [[pa.array(found.rows() + first)], *arrays]
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

    def open_file(self, file_plan: FilePlan, report: Report) -> Opened:
        """One of the files, of the version that was planned, and what is asked of it."""
        file = cache.open(file_plan.source, report, self.request.limits.max_metadata_bytes)
        if file.store.version != file_plan.version:
            raise FileChangedError(
                f"{file.name}: the file changed after it was planned "
                f"({file_plan.version.tag} -> {file.store.version.tag}); plan again"
            )
        return file, Scope.of(file, self.request)

    def _read_group(
        self,
        file: ParquetFile,
        group: GroupPlan,
        scope: Scope,
        fetcher: Fetcher,
        left: int | None,
        first_row: int,
        learned: Learned,
    ) -> tuple[rows.RowRanges, list[list[pa.Array]]]:
        ranges, sure, report = group.ranges, group.sure, fetcher.report
        while True:
            scan = GroupScan(
                file, group.row_group, scope.columns, fetcher, self.request.options, learned
            )
            try:
                found = scan.run(ranges, None if group.proven else scope.bound, left, sure)
            except IndexMismatch as mismatch:
                file.drop_index(group.row_group, mismatch.leaf)
                before = ranges.num_rows
                if not group.proven:  # rows may have been ruled out on the word of this index
                    first = first_row + file.first_row(group.row_group)
                    ranges = self.request.asked(first, file.group_rows[group.row_group])
                    sure = rows.RowRanges.empty()
                more = ranges.num_rows - before
                stated = stated_pages(file.chunk(group.row_group, mismatch.leaf))
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
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    @classmethod
    def of(cls, file: ParquetFile, request: Request) -> Scope:
        file.schema_tree.check(request.options)
        columns, schema = output(file, request.columns, request.options)

        find = Names(file, request.options)
        bound = bind(request.filter, find, request.nan) if request.filter is not None else None
        if request.row_number is not None:
            if request.row_number in schema.names:
                raise PredicateError(
                    f"{file.name}: with_row_number({request.row_number!r}): there is a column of this name"
                )
            numbers = pa.field(request.row_number, pa.int64(), nullable=False)
            schema = schema.insert(0, numbers)
        return cls(request, columns, schema, bound)

    @property
    def payload(self) -> set[int]:
        """The leaves whose values are wanted."""
        return {part.leaf.index for column in self.columns for part in column.parts}

    @property
    def tests_payload(self) -> bool:
        """Whether a leaf that the filter tests is wanted as well, or may be: any leaf of a group tells of it."""
        tests = [] if self.bound is None else leaves_of(self.bound)
        payload = self.payload
        return any(test.leaf.index in payload or test.leaf.group for test in tests)

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


def load_offsets(
    file: ParquetFile, scope: Scope, groups: Sequence[GroupPlan], fetcher: Fetcher
) -> None:
    """The offset indexes of row groups of which not every page may be needed, where they are not at hand.

    They are when this process made the plan; they are not in another, or when the file was opened anew.
    """
    if COLUMN_INDEX not in scope.request.prune:
        return
    parts = [g.row_group for g in groups if not g.proven or _is_part(file, g.row_group, g.ranges)]
    drive(
        load_indexes(file, parts, scope.touched(file), (), scope.request.options, fetcher.report),
        lambda wanted: fetcher.read(wanted, "index"),
    )


def _is_part(file: ParquetFile, row_group: int, ranges: rows.RowRanges) -> bool:
    return bool(ranges.num_rows < file.group_rows[row_group])


def stated_pages(chunk: Any) -> int | None:
    """How many data pages the footer says a chunk has (parquet.thrift, PageEncodingStats)."""
    if chunk.encoding_stats != 1:
        return None
    return int(chunk.dictionary_data_pages + chunk.other_data_pages)
