"""Counts, least and greatest values: from the metadata where that proves them, else from as few pages as can matter.

A row group whose rows all pass the filter, by its statistics, answers by them where they are exact. Of the others
those are read that may hold something smaller, or greater, than what is known by then; and of their pages, too,
those whose bounds say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pageseek._core import rows
from pageseek.bounds import ChunkValues
from pageseek.cache import cache
from pageseek.columns import output, tested
from pageseek.errors import PageseekError, PredicateError, UnsupportedError
from pageseek.fetch import Fetcher
from pageseek.metadata import ParquetFile
from pageseek.plan import ScanPlan
from pageseek.planning import prepare
from pageseek.predicate.expression import Column
from pageseek.prune import COLUMN_INDEX, STATISTICS, drive, load_indexes
from pageseek.report import Report
from pageseek.request import GroupPlan, Request
from pageseek.schema import Leaf
from pageseek.storage import Source
from pageseek.types import FLOAT_KINDS, Form

FUNCTIONS = ("count", "min", "max")


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
    first = cache.open(sources[0], Report(), request.limits.max_metadata_bytes)
    places = {one.path: _place(first, one.path, request) for one in wanted if one.path}
    names = tuple(dict.fromkeys(name for name, _ in places.values()))
    plan, _ = prepare(
        sources, replace(request, columns=names, row_number=None), account=False, lazy=True
    )
    columns = {
        path: _Column(_type_at(plan.schema, name, below), name, below)
        for path, (name, below) in places.items()
    }
    work = _Work(plan, wanted, columns)
    work.run()
    return work.table()


def _place(
    file: ParquetFile, path: tuple[str, ...], request: Request
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


class _Column:
    """What is known of one column so far: how many values, the least and the greatest; NaN apart."""

    __slots__ = ("below", "count", "high", "low", "name", "nan", "type")

    def __init__(self, kind: pa.DataType, name: str, below: tuple[str, ...]) -> None:
        self.type, self.name, self.below = kind, name, below
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

    def figure(self, function: str, nan_largest: bool) -> pa.Array:
        """The answer, of the column's own type."""
        if function == "count":
            return pa.array([self.count], pa.int64())
        found = self.low if function == "min" else self.high
        if self.nan and (found is None or (nan_largest and function == "max")):
            return pa.array([float("nan")], pa.float64()).cast(self.type)
        return _cast(pa.nulls(1, self.type) if found is None else pa.array([found]), self.type)


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


class _Work:
    """One aggregation, row group by row group."""

    def __init__(
        self, plan: ScanPlan, wanted: Sequence[Wanted], columns: dict[tuple[str, ...], _Column]
    ) -> None:
        self._plan = plan
        self._wanted = wanted
        self._columns = columns
        self._num_rows = 0
        self._nan_largest = plan.request.nan == "spark"
        self._counts = any(one.function == "count" for one in wanted)

    def run(self) -> None:
        """Ask the metadata first, for what they tell spares the reading of others."""
        plan, left = self._plan, []
        for file_plan in plan.files:
            file = plan.open_file(file_plan, plan.report).file
            leaves = {path: _leaf(file, path, plan.request) for path in self._columns}
            if plan.request.limit is None:
                untold = [g for g in file_plan.groups if not self._told(file, g, leaves)]
                left += [(file_plan, group) for group in untold]
        if plan.request.limit is not None:
            self._read(plan)
            return
        if self._counts:  # no row may be left out
            rest = [
                replace(file_plan, groups=tuple(group for one, group in left if one is file_plan))
                for file_plan in plan.files
            ]
            self._read(replace(plan, files=tuple(one for one in rest if one.groups)))
            return
        for file_plan, group in left:
            file = plan.open_file(file_plan, plan.report).file
            ranges = self._promising(file, group)
            if ranges:
                one = replace(group, ranges=ranges, sure=group.sure & ranges)
                self._read(replace(plan, files=(replace(file_plan, groups=(one,)),)))

    def table(self) -> pa.Table:
        """The figures, in the order that they were asked for."""
        made = {}
        for one in self._wanted:
            if not one.path:
                made[one.name] = pa.array([self._num_rows], pa.int64())
            else:
                made[one.name] = self._columns[one.path].figure(one.function, self._nan_largest)
        return pa.table(made)

    def _read(self, plan: ScanPlan) -> None:
        for table in plan.tables():
            self._num_rows += table.num_rows
            for column in self._columns.values():
                column.read(_values_at(table, column.name, column.below))

    def _told(
        self, file: ParquetFile, group: GroupPlan, leaves: dict[tuple[str, ...], tuple[Leaf, Form]]
    ) -> bool:
        """Whether the footer has all figures of a row group; they are then taken in."""
        num_rows = file.group_rows[group.row_group]
        whole = group.proven and group.ranges.num_rows == num_rows
        if not whole or STATISTICS not in self._plan.request.prune:
            return False
        options = self._plan.request.options
        for leaf, _ in leaves.values():
            file.chunk(group.row_group, leaf)  # refused where it cannot be read, whatever is said
        said = {
            path: file.chunk_values(group.row_group, leaf, options)
            for path, (leaf, _) in leaves.items()
        }
        for one in self._wanted:
            if not one.path:
                continue
            found, form = said[one.path], leaves[one.path][1]
            if found.null_count is None:
                return False
            if one.function == "count" or found.null_count == num_rows:
                continue
            nan = form.kind in FLOAT_KINDS and self._nan_largest and found.nan_count != 0
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

    def _promising(self, file: ParquetFile, group: GroupPlan) -> rows.RowRanges:
        """The rows of a row group whose pages may hold something less, or greater, than what is known."""
        options, found = self._plan.request.options, rows.RowRanges.empty()
        for one in self._wanted:
            leaf, form = _leaf(file, one.path, self._plan.request)
            column, is_min = self._columns[one.path], one.function == "min"
            said = file.chunk_values(group.row_group, leaf, options)
            if STATISTICS not in self._plan.request.prune:
                said = ChunkValues()
            bound, known = (said.lower, column.low) if is_min else (said.upper, column.high)
            nan = form.kind in FLOAT_KINDS and self._nan_largest
            if bound is not None and known is not None and not nan:
                better = _less(_plain(bound), known) if is_min else _less(known, _plain(bound))
                if not better:
                    continue
            found |= self._pages(file, group, leaf, known, is_min, nan)
        return found

    def _pages(
        self,
        file: ParquetFile,
        group: GroupPlan,
        leaf: Leaf,
        known: pa.Scalar | None,
        is_min: bool,
        nan: bool,
    ) -> rows.RowRanges:
        """Of a leaf: the rows of the pages that may hold something better than what is known."""
        request = self._plan.request
        if nan or COLUMN_INDEX not in request.prune:
            return group.ranges
        fetcher = Fetcher(file.store, self._plan.report, file.tail, request.limits)
        drive(
            load_indexes(
                file, [group.row_group], lambda _: [leaf], [leaf], request.options, fetcher.report
            ),
            lambda ranges: fetcher.read(ranges, "index"),
        )
        index = file.cached_column_index(group.row_group, leaf, request.options)[1]
        offsets = file.cached_offset_index(group.row_group, leaf)[1]
        if index is None or offsets is None:
            return group.ranges
        lower, upper = _plain(index.lower), _plain(index.upper)
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


def _leaf(file: ParquetFile, path: tuple[str, ...], request: Request) -> tuple[Leaf, Form]:
    leaf, form = tested(file, path, request.options)
    if leaf.group or leaf.max_rep:
        raise UnsupportedError(
            f"{file.name}: {'.'.join(path)!r} is nested; aggregate one of its leaves that is in no list"
        )
    if form.is_null:
        return leaf, form
    if pa.types.is_interval(form.type):
        raise UnsupportedError(f"{file.name}: {'.'.join(path)!r} of type {form.type} has no order")
    return leaf, form
