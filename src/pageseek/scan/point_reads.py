"""Lookups in one local file whose page index is in memory: the core reads, decodes and filters few pages by one call.

What does not fit goes the way of every scan: nested columns, dictionaries as output, codecs that the core does not know, files
without a page index, answers large enough for several threads, and pages that have a fault, which that way names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from pageseek._core import rows
from pageseek._core.points import AVAILABLE, MAX_TESTS, Batch, PointReader
from pageseek.base.batches import table_of
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.report import Report
from pageseek.dataset.evolution import SchemaMapping
from pageseek.dataset.file_cache import cache
from pageseek.format.columns import Column, Names
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import OffsetIndex
from pageseek.format.schema import Leaf
from pageseek.format.types import K_VIEWS, LeafType
from pageseek.io.fetch import Fetcher
from pageseek.predicate import expression as ex
from pageseek.predicate.bind import NAN_RULES, NEVER
from pageseek.predicate.bound import BoundConst, BoundLeaf
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.predicate.in_literals import Literals
from pageseek.predicate.leaf_conditions import OF_ONE_LEAF, null_test
from pageseek.predicate.parameter_values import parameters_of, with_values
from pageseek.prune import COLUMN_INDEX, PAGE_HEADERS, REGISTRY, STATISTICS, applicable
from pageseek.prune.row_groups import PASSES, SOME
from pageseek.scan.bound_request import BoundRequest
from pageseek.scan.deleted_rows import deleted_rows
from pageseek.scan.output_size import likely_rows
from pageseek.scan.request import Request
from pageseek.scan.steps import ScanContext
from pageseek.storage import Source, Sources
from pageseek.storage.local import LocalStore

MOST_GROUPS = 4  # that statistics leave: of more row groups, other indexes may rule out some
# Compressed bytes of the rows in question. More are worth a second thread, or a Bloom filter or another index if there is one.
MOST_TESTED = 1 << 18  # of tested leaves, which are read
FEW_TESTED = 1 << 16  # of these, if another index might rule them out
MOST_BYTES = 1 << 20  # of all leaves, which are read if the rows pass
MOST_READ = 1 << 22  # of the pages that have these rows, which may be larger
NO_LIMIT = (1 << 63) - 1
_TESTS = (ex.Compare, ex.IsIn, ex.StartsWith, ex.IsNan, ex.IsNull)


class Test(NamedTuple):
    """A condition of the filter on one flat leaf. `number`: of its leaf among those that are read."""

    condition: ex.Expression
    negate: bool
    takes_value: bool
    leaf: Leaf
    leaf_type: LeafType
    number: int


class Group(NamedTuple):
    """A row group whose indexes are in memory.

    Attributes
    ----------
    bounds : list
        For each test the zones of the pages of its leaf, and where these pages are; None where the file has no such bounds.
    row_bytes, tested_bytes : float
        Compressed bytes of a row, of all leaves that are read, and of those that are tested.
    """

    reader: PointReader
    bounds: list[tuple[rows.Zones, OffsetIndex] | None]
    row_bytes: float
    tested_bytes: float


class PointPlan:
    """A prepared query in terms of one version of a file. Threads may share it.

    Attributes
    ----------
    file : FileMetadata
        The file.
    pruners : tuple of Pruner
        All that were registered when the plan was made.
    """

    __slots__ = (
        "_context",
        "_deleted",
        "_empty",
        "_groups",
        "_leaves",
        "_limit",
        "_may_prune",
        "_nan",
        "_options",
        "_output",
        "_request",
        "_schema",
        "_stored",
        "_tests",
        "_types",
        "_zones",
        "file",
        "pruners",
    )

    def __init__(
        self, file: FileMetadata, request: Request, columns: Sequence[Column], schema: pa.Schema
    ) -> None:
        self.file, self.pruners = file, REGISTRY.pruners
        self._request, self._schema, self._options = request, schema, request.options
        self._nan = NAN_RULES[request.nan]
        self._limit = NO_LIMIT if request.limit is None else request.limit
        self._context = ScanContext(Report(), request.limits)
        self._leaves: list[tuple[Leaf, LeafType]] = []
        self._output = [self._number(*column.parts[0][:2]) for column in columns]
        self._types = [self._leaves[number][1] for number in self._output]
        stored = [t.storage for t in self._types]
        # Arrow makes an extension type of its storage by itself; the layout of views is another
        plain = all(
            t.type == t.storage or getattr(t.type, "storage_type", None) == t.storage
            for t in self._types
        )
        self._stored: pa.Schema | None = None
        if not plain:
            fields = zip(schema.names, stored, strict=True)
            self._stored = pa.schema([pa.field(name, made) for name, made in fields])
        self._empty = table_of(schema, 0, [[] for _ in schema])
        self._deleted: rows.RowRanges | None = None
        self._groups: dict[int, Group] = {}
        self._tests: list[Test] = []
        self._zones: list[rows.Zones | None] = []
        self._may_prune = False

    @classmethod
    def of(
        cls, file: FileMetadata, request: Request, source: Source, schema: pa.Schema | None
    ) -> PointPlan | None:
        """The plan of a query in a file; None where every call goes another way. `schema`: that of the answer, where the file is one
        of a table.
        """
        assert request.filter is not None
        bound_request = BoundRequest.of(file, replace(request, filter=None), source)
        columns = bound_request.columns
        if schema is not None and bound_request.adapter(schema, source) is not None:
            return None
        if not all(map(_is_flat, columns)):
            return None
        plan = cls(file, request, columns, bound_request.schema if schema is None else schema)
        if source.deletes:
            plan._deleted = deleted_rows(source, file.num_rows, plan._context.report)
        condition = request.filter
        parts = condition.args if isinstance(condition, ex.And) else (condition,)
        return plan if len(parts) <= MAX_TESTS and all(map(plan._add, parts)) else None

    def _add(self, condition: ex.Expression) -> bool:
        """Add a condition; False where the core does not evaluate it."""
        negate = False
        while isinstance(condition, ex.Not):
            condition, negate = condition.arg, not negate
        if not isinstance(condition, _TESTS) or type(condition.column) is not ex.Column:
            return False
        names: Names | SchemaMapping = Names(self.file, self._options)
        dataset_schema = self._request.dataset_schema
        if dataset_schema is not None:
            names = SchemaMapping(self.file, dataset_schema, self._options, ())
            if names.as_float(condition.column.path):
                return False
        leaf, leaf_type = names(condition.column.path)
        if leaf.group or not leaf.flat or leaf_type.is_null or isinstance(leaf, ConstantColumn):
            return False
        number = self._number(leaf, leaf_type)
        takes_value = bool(parameters_of(condition))
        self._tests.append(Test(condition, negate, takes_value, leaf, leaf_type, number))
        self._zones.append(self.file.group_zones(leaf, self._options))
        tested = [test.leaf for test in self._tests]
        self._may_prune = bool(applicable(self.file, self._request.prune, tested))
        return True

    def _number(self, leaf: Leaf, leaf_type: LeafType) -> int:
        """The place of a leaf among those that are read."""
        pair = leaf, leaf_type
        if pair not in self._leaves:
            self._leaves.append(pair)
        return self._leaves.index(pair)

    # -- row groups -----------------------------------------------------------------------------

    def _group(self, number: int) -> Group | None:
        """A row group with its indexes, which are read if they are not in memory; None where it is read another way, at least
        this time: page headers may yet take the place of an index.
        """
        made = self._groups.get(number)
        if made is None:
            try:
                made = self._made(number)
            except (CoreError, PageseekError):  # raised again, with the place, where it is read
                return None
            if made is not None:
                self._groups[number] = made
        return made

    def _made(self, number: int) -> Group | None:
        file, leaves, sizes = self.file, [], []
        for leaf, leaf_type in self._leaves:
            offsets = file.offset_index(number, leaf)
            chunk, start, _ = placed = file.placed_chunk(number, leaf)
            codec = chunk.codec
            known = self._context.codec_settings
            settings = known.get(codec) or self._context.settings_of(codec, file)
            if offsets is None or not settings.own:
                return None
            sizes.append(chunk.total_compressed_size)
            coded = chunk.encoding_stats == 1 and chunk.other_data_pages == 0
            in_front = offsets.start - start
            leaves.append(
                (
                    leaf_type.core,
                    leaf.max_def,
                    likely_rows(placed[2] - start),
                    settings,
                    *offsets.buffers,
                    start,
                    max(in_front, 0),
                    bool(coded and in_front > 0),
                )
            )
        reader = PointReader(leaves, self._output)
        bounds = [self._bounds(number, test) for test in self._tests]
        num_rows = max(file.group_rows[number], 1)
        tested = sum([sizes[i] for i in {test.number for test in self._tests}])
        return Group(reader, bounds, sum(sizes) / num_rows, tested / num_rows)

    def _bounds(self, number: int, test: Test) -> tuple[rows.Zones, OffsetIndex] | None:
        file, leaf = self.file, test.leaf
        key = number, leaf.index, self._options
        if key not in file.column_indexes:
            report, at = self._context.report, file.index_range("column", number, leaf)
            fetcher = Fetcher(file.store, report, file.tail)
            data = fetcher.read([at], "index")[0] if at else None
            file.load_column_index(number, leaf, self._options, data, report)
        index = file.column_indexes[key]
        if index is None and PAGE_HEADERS in self._request.prune:
            index = file.header_index(number, leaf, self._options)
        offsets = file.offset_indexes[number, leaf.index]
        return None if index is None or offsets is None else (index.zones, offsets)

    # -- a call ---------------------------------------------------------------------------------

    def table(self, values: Mapping[str, Any]) -> pa.Table | None:
        """The rows for the values of a call. None: it goes another way, which also names what is wrong.

        Raises
        ------
        FileChangedError
            The file is another version now.
        PredicateError
            A value does not fit its column.
        """
        file = self.file
        if file.dropped:  # pages have shown an index to be wrong
            return None
        tests: list[BoundLeaf] = []
        asked: list[tuple[int, int, bool, int, Literals]] = []
        never = always = False
        for test in self._tests:
            bound = self._bound(test, values)  # of all: each value has to fit its column
            if isinstance(bound, bool):
                never, always = never or not bound, always or bound
                continue
            tests.append(bound)
            asked.append((test.number, bound.op, bound.negate, bound.nan, bound.literals))
        if never:
            return self._empty
        if always:  # the others would be fewer than the row groups have bounds for
            return None
        found = self._ranges(tests)
        if found is None:
            return None
        made, left, store = [], self._limit, file.store
        assert isinstance(store, LocalStore)
        for group, ranges in found:
            if left <= 0:
                break
            batch = group.reader.read(store.descriptor, ranges.ranges, asked, left, MOST_READ)
            if batch is None:
                return None
            if batch.num_rows:
                made.append(batch)
                left -= batch.num_rows
        store.check()
        return self._table(made) if made else self._empty

    def _bound(self, test: Test, values: Mapping[str, Any]) -> BoundLeaf | bool:
        """A test with the value of a call, or what it is for every row."""
        condition = test.condition
        if test.takes_value:
            condition = with_values(condition, values)
        found = test.leaf, test.leaf_type
        make = OF_ONE_LEAF.get(type(condition), null_test)
        bound = make(condition, found, self._nan, test.negate)
        if isinstance(bound, BoundLeaf):
            return False if bound.op == NEVER[bound.negate] else bound
        assert isinstance(bound, BoundConst)
        return bound.value

    def _ranges(self, tests: Sequence[BoundLeaf]) -> list[tuple[Group, rows.RowRanges]] | None:
        """The row groups that may have rows, and these rows; None where they are too many for one call."""
        numbers: Sequence[int] = range(self.file.num_row_groups)
        for zones, test in zip(self._zones, tests, strict=True):
            if zones is not None:
                may = zones.probe(test.op, test.against(0), test.nan)
                may = may.translate(SOME[PASSES[test.negate]])
                numbers = [i for i in numbers if may[i]] if len(may) > 1 or not may[0] else numbers
        if len(numbers) > MOST_GROUPS:
            return None
        found, size, tested = [], 0.0, 0.0
        for number in numbers:
            group = self._group(number)
            if group is None:
                return None
            ranges, some = None, None
            for bounds, test in zip(group.bounds, tests, strict=True):
                if bounds is not None:
                    zones, offsets = bounds
                    verdict = zones.probe(test.op, test.against(0), test.nan)
                    some = offsets.rows_of(verdict, PASSES[test.negate])
                    ranges = some if ranges is None else ranges & some
            if ranges is None:
                ranges = rows.RowRanges.all(self.file.group_rows[number])
            if self._deleted:
                first = self.file.first_row(number)
                gone = self._deleted.slice(first, first + self.file.group_rows[number])
                ranges -= gone.shift(-first)
            if ranges:
                found.append((group, ranges))
                size += ranges.num_rows * group.row_bytes
                tested += ranges.num_rows * group.tested_bytes
        if size > MOST_BYTES or tested > (FEW_TESTED if self._may_prune else MOST_TESTED):
            return None
        return found

    def _table(self, batches: Sequence[Batch]) -> pa.Table:
        schema, stored = self._schema, self._stored
        if not self._output:
            return table_of(schema, sum([batch.num_rows for batch in batches]), [])
        take = pa.RecordBatch._import_from_c
        if stored is None:
            return pa.Table.from_batches([take(one.address, schema) for one in batches], schema)
        columns: list[list[pa.Array]] = [[] for _ in schema]
        for one in batches:
            for i, array in enumerate(take(one.address, stored).columns):
                columns[i].append(self._types[i].finish(array))
        return table_of(schema, sum([batch.num_rows for batch in batches]), columns)


def _is_flat(column: Column) -> bool:
    """Whether the core can make a column by itself."""
    if column.node is not None or len(column.parts) != 1:
        return False
    leaf, leaf_type, nesting_levels = column.parts[0]
    return not (
        leaf.group
        or not leaf.flat
        or nesting_levels
        or leaf_type.is_null
        or leaf_type.kind == K_VIEWS
        or pa.types.is_dictionary(leaf_type.type)
    )


class PointReads:
    """The calls of a prepared query that few reads of one local file can answer. Threads may share it."""

    __slots__ = ("_plan", "_request", "_schema", "_source")

    def __init__(self, source: Source, request: Request, schema: pa.Schema | None = None) -> None:
        """`schema`: that of the answer, where the file is one of a table."""
        self._source, self._request, self._schema = source, request, schema
        # the file that was looked at last, and its plan; replaced as a whole
        self._plan: tuple[FileMetadata, PointPlan | None] | None = None

    @classmethod
    def of(cls, sources: Sources, request: Request) -> PointReads | None:
        """None where no call can be answered so."""
        if (
            not AVAILABLE
            or len(sources) != 1
            or sources.far
            or sources[0].data is not None
            or request.filter is None
            or request.selects_rows
            or request.row_number is not None
            or request.dataset_schema is not None
            or not {STATISTICS, COLUMN_INDEX} <= request.prune
        ):
            return None
        return cls(sources[0], request)

    def table(self, values: Mapping[str, Any]) -> pa.Table | None:
        """The rows for the values of a call. None: it goes the way of every scan."""
        if REGISTRY.catalogs:
            return None
        known, source = self._plan, self._source
        if (
            known is None
            or not cache.is_current(source, known[0])
            or (known[1] is not None and known[1].pruners is not REGISTRY.pruners)
        ):
            limit = self._request.limits.max_metadata_bytes
            file = cache.open(source, Report(), limit)
            plan = None
            if isinstance(file.store, LocalStore) and cache.holds(source, file):
                plan = PointPlan.of(file, self._request, source, self._schema)
            self._plan = known = file, plan
        plan = known[1]
        return None if plan is None else plan.table(values)
