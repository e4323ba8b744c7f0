"""Counts, least and greatest values: from the metadata where that proves them, else from as few pages as can matter.

A row group whose rows all pass the filter, by its statistics, answers by them where they are exact. Of the others
those are read that may hold something smaller, or greater, than what is known by then; and of their pages, too,
those whose bounds say so. A report counts the first as "answered", and what need not be read as "bounds".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek._core import rows
from pageseek.base.arrays import of_numpy
from pageseek.base.errors import (
    CorruptFileError,
    LimitError,
    NoColumnError,
    PageseekError,
    PredicateError,
    UnsupportedError,
)
from pageseek.base.report import Report
from pageseek.dataset.evolution import SchemaMapping
from pageseek.dataset.file_cache import cache
from pageseek.format.bounds import ChunkValues
from pageseek.format.columns import output, tested
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import FLOAT_KINDS, LeafType, Options
from pageseek.io.fetch import Fetcher
from pageseek.io.range_requests import answered
from pageseek.io.version_checks import UnconfirmedVersions, optimistically
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.predicate.expression import Column
from pageseek.prune import COLUMN_INDEX, STATISTICS, load_indexes
from pageseek.scan.condition_order import Learned
from pageseek.scan.file_plan import FilePlan, GroupPlan, Opened
from pageseek.scan.plan import Reading
from pageseek.scan.planner import prepare
from pageseek.scan.pruning import account
from pageseek.scan.request import Request
from pageseek.storage import Source

FUNCTIONS = ("count", "min", "max")
ANSWERED, BOUNDS = "answered", "bounds"
HELD = 16  # files that are kept open from planning to reading
MOST_ROWS = (1 << 63) - 1


class Wanted(NamedTuple):
    """One figure: the number of rows (no path), or of a column that of its values, or the least or greatest."""

    function: str
    path: tuple[str, ...]
    name: str


def parse(asked: Iterable[Any]) -> list[Wanted]:
    """Figures from "count" and from pairs of a column and a function.

    Raises
    ------
    PredicateError
        Neither, no such function, or the same name twice.
    """
    made: list[Wanted] = []
    for one in [asked] if isinstance(asked, str) else asked:
        if isinstance(one, str) and one == "count":
            made.append(Wanted("count", (), "count"))
            continue
        if not isinstance(one, tuple) or len(one) != 2:
            raise PredicateError(
                f"aggregate: {one!r}: 'count', or a pair of a column and a function"
            )
        column, function = one
        if function not in FUNCTIONS:
            raise PredicateError(f"aggregate: {function!r}: one of {', '.join(FUNCTIONS)}")
        path = column.path if isinstance(column, Column) else (column,)
        if not all(isinstance(part, str) for part in path):
            raise PredicateError(f"aggregate: {column!r} is no column")
        made.append(Wanted(function, path, f"{'.'.join(path)}_{function}"))
    names = [wanted.name for wanted in made]
    for name in names:
        if names.count(name) > 1:
            raise PredicateError(f"aggregate: {name!r} is asked for twice")
    return made


def aggregate(sources: Sequence[Source], request: Request, asked: Iterable[Any]) -> pa.Table:
    """One row with the figures that are asked for, named `count` or `column_function`."""
    wanted = parse(asked)

    def answer(unconfirmed: UnconfirmedVersions | None) -> pa.Table:
        work = _Work(sources, request, wanted, account=False, unconfirmed=unconfirmed)
        work.run()
        return work.table()

    return optimistically(sources, answer)


def explain(
    sources: Sequence[Source], request: Request, asked: Iterable[Any], analyze: bool
) -> Report:
    """What the figures take: what the metadata answer, what may have to be read; with `analyze`, what was."""
    wanted = parse(asked)

    def analyzed(unconfirmed: UnconfirmedVersions | None) -> Report:
        work = _Work(sources, request, wanted, account=True, unconfirmed=unconfirmed)
        work.run()
        work.report.rows_out = 1
        return work.report

    if analyze:
        return optimistically(sources, analyzed).finish()
    work = _Work(sources, request, wanted, account=True, analyze=False)
    work.foresee()
    work.report.note_unknown()
    return work.report


def _place(
    file: FileMetadata, path: tuple[str, ...], request: Request
) -> tuple[str, tuple[str, ...]]:
    """The column to select for a path, and the way from its field down to the leaf."""
    leaf = _leaf(file, path, request)[0]
    if len(leaf.path) == 1:
        return leaf.path[0], ()
    # selects that leaf only, unless a field of another place has this name as well
    alone = ".".join(leaf.path)
    try:
        (column,), _ = output(file, (alone,), request.options)
        if [part.leaf.index for part in column.parts] == [leaf.index]:
            return alone, tuple(leaf.path)
    except PageseekError:
        pass
    return leaf.path[0], tuple(leaf.path)


def _type_at(schema: pa.Schema, name: str, below: tuple[str, ...]) -> pa.DataType:
    """The type of a leaf, through structs."""
    found = schema.field(below[0] if below else name)
    for part in below[1:]:
        found = found.type.field(part)
    return found.type


def _values_at(table: pa.Table, name: str, below: tuple[str, ...]) -> pa.ChunkedArray:
    values = table[below[0] if below else name]
    for part in below[1:]:
        values = pc.struct_field(values, [values.type.get_field_index(part)])
    return values


def _place_of(
    sources: Sequence[Source],
    first: FileMetadata,
    path: tuple[str, ...],
    request: Request,
    report: Report,
    unconfirmed: UnconfirmedVersions | None,
) -> tuple[str, tuple[str, ...]]:
    """The same in the first file that has such a column."""
    dataset_schema = request.dataset_schema
    if dataset_schema is None:
        return _place(first, path, request)
    if path[0] in dataset_schema.folders.names:
        return path[0], ()
    missing: NoColumnError | None = None
    for i, source in enumerate(sources):
        file = first
        if i:
            file = cache.open(
                source, report, request.limits.max_metadata_bytes, unconfirmed=unconfirmed
            )
        try:
            return _place(file, path, request)
        except NoColumnError as error:
            missing = missing or error
    assert missing is not None
    raise missing


class _Column:
    """What is known of one column so far: how many values, the least and the greatest; NaN apart."""

    __slots__ = ("below", "count", "high", "low", "name", "nan")

    def __init__(self, name: str, below: tuple[str, ...]) -> None:
        self.name, self.below = name, below
        self.count = 0
        self.low: pa.Scalar | None = None
        self.high: pa.Scalar | None = None
        self.nan = False

    def take(self, low: pa.Scalar, high: pa.Scalar) -> None:
        """Further values of which these are the least and the greatest."""
        if low.is_valid and (self.low is None or _less(low, self.low)):
            self.low = low
        if high.is_valid and (self.high is None or _less(self.high, high)):
            self.high = high

    def read(self, values: pa.ChunkedArray) -> None:
        """Further values."""
        values = _plain(values)
        self.count += len(values) - values.null_count
        if pa.types.is_floating(values.type):
            numbers = values.filter(pc.invert(pc.is_nan(values)))
            self.nan |= len(numbers) + values.null_count < len(values)
            values = numbers
        if len(values) > values.null_count:
            found = pc.min_max(values)
            self.take(found["min"], found["max"])

    def figure(self, function: str, kind: pa.DataType, nan_largest: bool) -> pa.Array:
        """The answer; the least or greatest value is of the column's own type."""
        if function == "count":
            return pa.array([self.count], pa.int64())
        found = self.low if function == "min" else self.high
        if self.nan and (found is None or (nan_largest and function == "max")):
            return pa.array([float("nan")], pa.float64()).cast(kind)
        if found is not None and pa.types.is_floating(found.type) and found.as_py() == 0:
            # -0.0 is as great, and statistics tell neither from the other (parquet.thrift, ColumnOrder)
            found = pa.scalar(0.0, found.type)
        return _cast(pa.nulls(1, kind) if found is None else pa.array([found]), kind)


def _plain(values: Any) -> Any:
    """Values of a type that Arrow's kernels order."""
    t, kind = pa.types, values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(values.cast(kind.storage_type))
    if t.is_dictionary(kind):
        return _plain(values.cast(kind.value_type))
    for view, large in (
        (pa.string_view(), pa.large_string()),
        (pa.binary_view(), pa.large_binary()),
    ):
        if kind == view:
            return values.cast(large)
    if t.is_decimal32(kind) or t.is_decimal64(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if t.is_float16(kind):
        return values.cast(pa.float32())
    return values.cast(pa.int64()) if t.is_duration(kind) else values


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _cast(values, kind.storage_type))
    if pa.types.is_dictionary(kind):
        return _cast(values, kind.value_type).dictionary_encode().cast(kind)
    return values.cast(kind)


def _less(one: pa.Scalar, other: pa.Scalar) -> bool:
    return bool(pc.less(one, other).as_py())


class _Left(NamedTuple):
    """What the footer of a file did not answer. `opened`: the file, where it is kept open."""

    file_plan: FilePlan
    groups: list[GroupPlan]
    opened: Opened | None


class _Work:
    """One aggregation: the metadata of all files are asked first, for what they tell spares the reading of others."""

    def __init__(
        self,
        sources: Sequence[Source],
        request: Request,
        wanted: Sequence[Wanted],
        account: bool,
        analyze: bool = True,
        unconfirmed: UnconfirmedVersions | None = None,
    ) -> None:
        if not sources:
            raise UnsupportedError("aggregate: the table has no files")
        report = Report(nan=request.nan, chunks={} if account else None)
        with report.timed("open"):
            limit = request.limits.max_metadata_bytes
            first = cache.open(sources[0], report, limit, unconfirmed=unconfirmed)
            places = {
                one.path: _place_of(sources, first, one.path, request, report, unconfirmed)
                for one in wanted
                if one.path
            }
        names = tuple(dict.fromkeys(name for name, _ in places.values()))
        self._request = replace(request, columns=names, row_number=None)
        self._wanted = wanted
        self._columns = {path: _Column(name, below) for path, (name, below) in places.items()}
        self._num_rows = 0
        self._nan_largest = request.nan == "spark"
        self._few = len(sources) <= HELD
        self._left: list[_Left] = []
        self._narrows = request.limit is None and all(one.function != "count" for one in wanted)
        self._plan, _ = prepare(
            sources,
            self._request,
            account,
            lazy=analyze,
            report=report,
            first=first,
            visit=self._ask,
            unconfirmed=unconfirmed,
        )
        self.report = report.to_execute() if account and analyze else report
        self.report.analyzed = analyze
        self.report.files = report.files.begun()  # what is read is counted when it is
        self.report.row_groups, self.report.rows = report.row_groups.begun(), report.rows.begun()
        if unconfirmed is not None:
            unconfirmed.report = self.report
            unconfirmed.ask_all_but([one.opened.file.store for one in self._left if one.opened])

    def run(self) -> None:
        """Take in what has to be read."""
        if not self._narrows:  # no row may be left out
            if self._left:
                files = tuple(
                    replace(one.file_plan, groups=tuple(one.groups)) for one in self._left
                )
                held = [one.opened for one in self._left if one.opened is not None]
                self._take(replace(self._plan, files=files).tables(self.report, held))
            return
        learned = Learned()
        for one in self._left:
            reading = Reading(self._plan, one.file_plan, learned)
            fetcher = reading.open(self.report, one.opened)
            for group in reading.judged(one.groups, fetcher):
                part = self._narrowed(reading.opened, one.file_plan.source, group, fetcher)
                table = reading.read(part, None, fetcher) if part.ranges else None
                if table is not None:
                    self._take([table])
            reading.finish(self.report)

    def foresee(self) -> None:
        """Count what `run` may have to read, as far as the metadata tell."""
        report = self.report
        report.bytes["data"] = 0
        for one in self._left:
            opened = one.opened or self._plan.open_file(one.file_plan, report)
            fetcher = Fetcher(opened.file.store, report, opened.file.tail, self._request.limits)
            parts = one.groups
            if self._narrows:
                source = one.file_plan.source
                parts = [self._narrowed(opened, source, g, fetcher) for g in parts]
            parts = [part for part in parts if part.ranges]
            if parts:
                report.files.read += 1
            else:
                report.files.prune(BOUNDS, 1)
            for part in parts:
                report.row_groups.read += 1
                report.rows.read += part.ranges.num_rows
                report.bytes["data"] += self._recount(opened, part)

    def table(self) -> pa.Table:
        """The figures, in the order that they were asked for."""
        made = {}
        for one in self._wanted:
            if not one.path:
                if self._num_rows > MOST_ROWS:
                    raise CorruptFileError(
                        f"{self._num_rows:,} rows, as the files claim: more than a count holds"
                    )
                made[one.name] = of_numpy(np.array([self._num_rows], np.int64))
            else:
                column = self._columns[one.path]
                kind = _type_at(self._plan.schema, column.name, column.below)
                made[one.name] = column.figure(one.function, kind, self._nan_largest)
        return pa.table(made)

    def _take(self, tables: Iterable[pa.Table]) -> None:
        for table in tables:
            self._num_rows += table.num_rows
            for column in self._columns.values():
                column.read(_values_at(table, column.name, column.below))

    def _ask(self, opened: Opened, file_plan: FilePlan, report: Report) -> None:
        """Let the footer of a file answer for its row groups; what it does not is left to be read."""
        file, left = opened.file, list(file_plan.groups)
        if self._request.limit is None:
            leaves = self._leaves(file, file_plan.source)
            left = [g for g in file_plan.groups if not self._told(file, g, leaves)]
            missing = {group.row_group for group in left}
            told = [group for group in file_plan.groups if group.row_group not in missing]
            report.row_groups.prune(ANSWERED, len(told))
            report.rows.prune(ANSWERED, sum(group.ranges.num_rows for group in told))
            required_leaves = opened.bound_request.required_leaves(file)
            for group in told if report.chunks else ():
                names = [leaf.name for leaf in required_leaves(group.row_group)]
                report.forget(file.name, group.row_group, names)
        if left:
            self._left.append(_Left(file_plan, left, opened if self._few else None))
        else:
            report.files.prune(ANSWERED, 1)

    def _leaves(
        self, file: FileMetadata, source: Source
    ) -> dict[tuple[str, ...], tuple[Leaf, LeafType]]:
        """What a file has of the columns."""
        dataset_schema, options = self._request.dataset_schema, self._request.options
        find = (
            None
            if dataset_schema is None
            else SchemaMapping(file, dataset_schema, options, source.partitions)
        )
        return {path: _leaf(file, path, self._request, find) for path in self._columns}

    def _narrowed(
        self, opened: Opened, source: Source, group: GroupPlan, fetcher: Fetcher
    ) -> GroupPlan:
        """A row group with only those rows that may hold something less, or greater, than what is known."""
        without = group.without & opened.file.dropped(group.row_group)
        leaves = self._leaves(opened.file, source)
        ranges, report = self._promising(opened.file, group, leaves, fetcher), self.report
        if not ranges:
            report.row_groups.prune(BOUNDS, 1)
        if ranges.num_rows == group.ranges.num_rows:
            return group
        report.rows.prune(BOUNDS, group.ranges.num_rows - ranges.num_rows)
        part = replace(group, ranges=ranges, sure=group.sure & ranges, without=without)
        self._recount(opened, part)
        return part

    def _recount(self, opened: Opened, part: GroupPlan) -> int:
        """Count the pages of a row group of which fewer rows are read than were planned; the bytes to fetch."""
        report, file, bound_request = self.report, opened.file, opened.bound_request
        if report.chunks is None:
            return 0
        keys = [
            (file.name, part.row_group, leaf.name)
            for leaf in bound_request.required_leaves(file)(part.row_group)
        ]
        before = [report.chunks[key] for key in keys]
        sure = part.ranges if part.proven else part.sure
        by = before[0].by if before else ""
        total, held = account(file, bound_request, part.row_group, part.ranges, sure, by, report)
        for key, old in zip(keys, before, strict=True):
            report.chunks[key].narrowed(old)
        return total - held

    def _told(
        self,
        file: FileMetadata,
        group: GroupPlan,
        leaves: dict[tuple[str, ...], tuple[Leaf, LeafType]],
    ) -> bool:
        """Whether the footer has all figures of a row group; they are then taken in."""
        num_rows = file.group_rows[group.row_group]
        whole = group.proven and group.ranges.num_rows == num_rows
        if not whole or STATISTICS not in self._request.prune:
            return False
        options = self._request.options
        for leaf, _ in leaves.values():
            if not isinstance(leaf, ConstantColumn):
                file.chunk(
                    group.row_group, leaf
                )  # refused where it cannot be read, whatever is said
        said = {
            path: _said(file, group.row_group, leaf, options) for path, (leaf, _) in leaves.items()
        }
        for one in self._wanted:
            if not one.path:
                continue
            found, leaf_type = said[one.path], leaves[one.path][1]
            if found.null_count is None:
                return False
            if one.function == "count" or found.null_count == num_rows:
                continue
            nan = leaf_type.kind in FLOAT_KINDS and self._nan_largest and found.nan_count != 0
            if nan and one.function == "max":
                return False  # it may be NaN
            if (found.min if one.function == "min" else found.max) is None:
                return False
        self._num_rows += num_rows
        for path, column in self._columns.items():
            found = said[path]
            column.count += num_rows - (found.null_count or 0)
            if found.min is not None and found.max is not None:
                column.take(_plain(found.min), _plain(found.max))
            elif found.min is not None:
                column.take(_plain(found.min), pa.scalar(None, _plain(found.min).type))
            elif found.max is not None:
                column.take(pa.scalar(None, _plain(found.max).type), _plain(found.max))
        return True

    def _promising(
        self,
        file: FileMetadata,
        group: GroupPlan,
        leaves: dict[tuple[str, ...], tuple[Leaf, LeafType]],
        fetcher: Fetcher,
    ) -> rows.RowRanges:
        """The rows of a row group whose pages may hold something less, or greater, than what is known."""
        options, found = self._request.options, rows.RowRanges.empty()
        for one in self._wanted:
            leaf, leaf_type = leaves[one.path]
            column, is_min = self._columns[one.path], one.function == "min"
            if isinstance(leaf, ConstantColumn) and leaf.values is None:
                continue  # null in all rows
            said = _said(file, group.row_group, leaf, options)
            if STATISTICS not in self._request.prune and not isinstance(leaf, ConstantColumn):
                said = ChunkValues()
            bound, known = (said.lower, column.low) if is_min else (said.upper, column.high)
            nan = leaf_type.kind in FLOAT_KINDS and self._nan_largest
            if bound is not None and known is not None and not nan:
                better = _less(_plain(bound), known) if is_min else _less(known, _plain(bound))
                if not better:
                    continue
            if isinstance(leaf, ConstantColumn):  # some row has to pass, whichever
                return group.ranges
            found |= self._pages(file, group, leaf, known, is_min, nan, fetcher)
        return found

    def _pages(
        self,
        file: FileMetadata,
        group: GroupPlan,
        leaf: Leaf,
        known: pa.Scalar | None,
        is_min: bool,
        nan: bool,
        fetcher: Fetcher,
    ) -> rows.RowRanges:
        """Of a leaf: the rows of the pages that may hold something better than what is known."""
        request = self._request
        if nan or COLUMN_INDEX not in request.prune:
            return group.ranges
        answered(
            load_indexes(
                file, [group.row_group], lambda _: [leaf], [leaf], request.options, fetcher.report
            ),
            lambda ranges: fetcher.read(ranges, "index"),
        )
        index = file.cached_column_index(group.row_group, leaf, request.options)[1]
        offsets = file.cached_offset_index(group.row_group, leaf)[1]
        if index is None or offsets is None:
            return group.ranges
        try:
            lower, upper = _plain(index.lower), _plain(index.upper)
        except LimitError:  # by the width that the schema claims, values or not
            return group.ranges
        near, far = (lower, upper) if is_min else (upper, lower)
        before = pc.less if is_min else pc.greater
        promising = pa.array([True] * len(near))
        if known is not None:
            promising = before(near, known)
        if group.proven and group.ranges.num_rows == file.group_rows[group.row_group]:
            # some value of a page lies within its bounds: no other page need be looked at that begins beyond them
            ends = pc.min_max(far)["max" if not is_min else "min"]
            if ends.is_valid:
                promising = pc.and_kleene(promising, pc.invert(before(ends, near)))
        flags = pc.fill_null(promising, True).cast(pa.uint8()).to_numpy().tobytes()
        return group.ranges & offsets.rows_of(flags, 1)


def _said(file: FileMetadata, row_group: int, leaf: Leaf, options: Options) -> ChunkValues:
    """What is known of the values of a row group without reading them."""
    if not isinstance(leaf, ConstantColumn):
        return file.chunk_values(row_group, leaf, options)
    n = file.group_rows[row_group]
    if leaf.values is None or leaf.values.null_count:
        return ChunkValues(null_count=n, nan_count=0)
    one = leaf.scalar
    nan = pa.types.is_floating(one.type) and bool(pc.is_nan(one).as_py())
    if nan:
        return ChunkValues()
    return ChunkValues(one, one, one, one, 0, 0)


def _leaf(
    file: FileMetadata, path: tuple[str, ...], request: Request, find: SchemaMapping | None = None
) -> tuple[Leaf, LeafType]:
    leaf, leaf_type = tested(file, path, request.options) if find is None else find(path)
    if leaf.group or leaf.max_rep:
        raise UnsupportedError(
            f"{file.name}: {'.'.join(path)!r} is nested; aggregate one of its leaves that is in no list"
        )
    if leaf_type.is_null:
        return leaf, leaf_type
    if pa.types.is_interval(leaf_type.type):
        raise UnsupportedError(
            f"{file.name}: {'.'.join(path)!r} of type {leaf_type.type} has no order"
        )
    return leaf, leaf_type
