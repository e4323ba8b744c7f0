"""Lookups in one local file whose page index is in memory: the core reads, decodes and filters few pages by one call.

What does not fit goes the way of every scan: nested columns, dictionaries as output, codecs that the core does not know, files
without a page index, answers large enough for several threads, and pages that have a fault, which that way names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek._core import rows
from pageseek._core.points import AVAILABLE, Batch, PointReader
from pageseek.base import log
from pageseek.base.batches import table_of
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.chunks import CODECS
from pageseek.format.codecs import OWN
from pageseek.format.columns import Column
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType, Options
from pageseek.predicate.bound import BoundLeaf
from pageseek.predicate.in_literals import Literals
from pageseek.prune.protocol import DOUBT, Price, PruneContext, Pruner
from pageseek.prune.registry import COLUMN_INDEX, REGISTRY, STATISTICS
from pageseek.scanning.leaves.few_rows import is_simple, point_leaf
from pageseek.scanning.points.point_tests import PointTests
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.request import Request
from pageseek.scanning.requests.steps import ScanContext
from pageseek.storage import Source, Sources
from pageseek.storage.local import LocalStore

if TYPE_CHECKING:
    from pageseek.scanning.many_files.similar_files import SharedColumns

# Compressed bytes of the rows in question. More are worth the division of columns among threads, or a Bloom filter or another index if
# there is one. On two cores that begins at about 4 ms of work.
MOST_TESTED = 1 << 18  # of tested leaves, which are read
FEW_TESTED = 1 << 16  # of these, if another index might rule them out
MOST_BYTES = 1 << 21  # of all leaves, which are read if the rows pass
MOST_READ = 1 << 24  # of the pages that have these rows, which may be larger
QUICK_CODECS = frozenset(map(CODECS.index, OWN))
QUICK = 0.5  # what a byte counts in codecs that take half the time of ZSTD or less
NO_LIMIT = (1 << 63) - 1
# bytes that have the footer of most files of few columns, and their page index: one read instead of four
TAIL = 4 << 10


class RowSizes(NamedTuple):
    """Compressed bytes of a row of a row group: of all leaves that are read, by the time they take, and of those that are tested."""

    read: float
    tested: float


class PointLeaves:
    """The leaves that a lookup reads, of its columns and its tests; and its answer. Threads may share it.

    Attributes
    ----------
    leaves : list of (Leaf, LeafType)
        Those that are read.
    tested : list of int
        For each test the place of its leaf among them.
    """

    def __init__(
        self,
        file: FileMetadata,
        request: Request,
        columns: Sequence[Column],
        schema: pa.Schema,
        tests: PointTests,
    ) -> None:
        self._file, self._schema = file, schema
        self._context = ScanContext(Report(), request.limits)
        self.leaves: list[tuple[Leaf, LeafType]] = []
        self._places: dict[int, list[int]] = {}  # in `leaves`, by the number of the leaf
        self._output = [self._place(*column.parts[0][:2]) for column in columns]
        self.tested = [self._place(test.leaf, test.leaf_type) for test in tests.tests]
        self._sizes: dict[int, RowSizes] = {}  # by row group, as the readers are
        self._readers: dict[int, PointReader] = {}

    def _place(self, leaf: Leaf, leaf_type: LeafType) -> int:
        """The place of a leaf among those that are read."""
        places = self._places.setdefault(leaf.index, [])
        for at in places:
            if self.leaves[at][1] == leaf_type:
                return at
        places.append(len(self.leaves))
        self.leaves.append((leaf, leaf_type))
        return places[-1]

    def sizes(self, number: int) -> RowSizes:
        """The sizes of a row of a row group."""
        made = self._sizes.get(number)
        if made is None:
            file = self._file
            chunks = [file.placed_chunk(number, leaf)[0] for leaf, _ in self.leaves]
            n = max(file.group_rows[number], 1)
            read = sum(
                [
                    one.total_compressed_size * (QUICK if one.codec in QUICK_CODECS else 1)
                    for one in chunks
                ]
            )
            tested = sum([chunks[i].total_compressed_size for i in set(self.tested)])
            made = self._sizes[number] = RowSizes(read / n, tested / n)
        return made

    def reader(self, number: int) -> PointReader | None:
        """What reads a row group; None where another way does, such as without an offset index of each leaf."""
        made = self._readers.get(number)
        if made is None:
            try:
                made = self._made(number)
            except (CoreError, PageseekError):  # raised again, with the place, where it is read
                return None
            if made is not None:
                self._readers[number] = made
        return made

    def _made(self, number: int) -> PointReader | None:
        file, leaves = self._file, []
        own = [leaf for leaf, _ in self.leaves]
        file.read_page_indexes(number, own, (), Options())
        for leaf, leaf_type in self.leaves:
            made = point_leaf(file, number, leaf, leaf_type, self._context)
            if made is None:
                return None
            leaves.append(made)
        return PointReader(leaves, self._output)

    @cached_property
    def empty(self) -> pa.Table:
        """The answer without rows."""
        return table_of(self._schema, 0, [[] for _ in self._schema])

    @cached_property
    def _types(self) -> list[LeafType]:
        return [self.leaves[at][1] for at in self._output]

    @cached_property
    def _stored(self) -> pa.Schema | None:
        """The schema that the core gives; None where it is that of the answer."""
        types = self._types
        # Arrow makes an extension type of its storage by itself; the layout of views is another
        if all(
            t.type == t.storage or getattr(t.type, "storage_type", None) == t.storage for t in types
        ):
            return None
        names = self._schema.names
        return pa.schema([pa.field(n, t.storage) for n, t in zip(names, types, strict=True)])

    def table(self, batches: Sequence[Batch]) -> pa.Table:
        """The answer with the rows of batches."""
        if not batches:
            return self.empty
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


class PointPlan:
    """A lookup in terms of one version of a file. Threads may share it.

    Attributes
    ----------
    file : FileMetadata
        The file.
    pruners : tuple of Pruner
        All that were registered when the plan was made.
    """

    def __init__(
        self,
        file: FileMetadata,
        request: Request,
        source: Source,
        schema: pa.Schema | None,
        tests: PointTests,
        shared: SharedColumns | None = None,
    ) -> None:
        self.file, self.pruners = file, REGISTRY.pruners
        self._shared = shared
        self._request, self._source, self._schema, self._tests = request, source, schema, tests
        self._limit = NO_LIMIT if request.limit is None else request.limit
        self._threads = request.num_threads

    @classmethod
    def of(
        cls,
        file: FileMetadata,
        request: Request,
        source: Source,
        schema: pa.Schema | None,
        kept: dict[Any, Any] | None = None,
    ) -> PointPlan | None:
        """The plan of a lookup in a file; None where every call goes another way. `schema`: that of the answer, where the file is one
        of a table. `kept`: what the table keeps for files with the same columns.
        """
        shared = None
        if kept is not None:
            from pageseek.scanning.many_files.similar_files import SharedColumns  # late: for tables

            shared = SharedColumns.of(kept, file, request)
        tests = PointTests.of(file, request, shared)
        return None if tests is None else cls(file, request, source, schema, tests, shared)

    @cached_property
    def _deleted(self) -> rows.RowRanges | None:
        """The rows that the table has deleted."""
        source = self._source
        if not source.deletes:
            return None
        from pageseek.scanning.deletes.deleted_rows import deleted_rows  # late: for tables

        return deleted_rows(source, self.file, Report())

    @cached_property
    def _leaves(self) -> PointLeaves | None:
        """The leaves that are read; None where the core cannot make a column of them by itself."""
        shared, schema = self._shared, self._schema
        if schema is None:
            columns, schema = self._columns(None)
        elif shared is None:
            columns, _ = self._columns(schema)
        else:
            if shared.columns is False:
                shared.columns, _ = self._columns(schema)
            columns = shared.columns
        if columns is None:
            return None
        return PointLeaves(self.file, self._request, columns, schema, self._tests)

    def _columns(self, schema: pa.Schema | None) -> tuple[tuple[Column, ...] | None, pa.Schema]:
        """The columns that are read, and their schema. None: the core cannot make them by itself, or they have another one than
        `schema`.
        """
        bound_request = BoundRequest.of(self.file, self._request, self._source, filtered=False)
        columns = bound_request.columns
        fits = schema is None or bound_request.adapter(schema, self._source) is None
        return columns if fits and all(map(_is_flat, columns)) else None, bound_request.schema

    def _read_along(self) -> Sequence[Leaf]:
        leaves = self._leaves
        return () if leaves is None else [leaf for leaf, _ in leaves.leaves]

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
        tests = self._tests.bound(values)  # all: each value has to fit its column
        if tests is True:  # the others would be fewer than the row groups have bounds for
            return None
        if tests is False:
            leaves = self._leaves
            return None if leaves is None else leaves.empty
        found = self._tests.ranges(tests, self._deleted, self._read_along)
        if found is None:
            return None
        leaves = self._leaves
        if leaves is None or not self._is_small(found, tests, leaves):
            return None
        asked: list[tuple[int, int, bool, int, Literals]] = [
            (place, test.op, test.negate, test.nan, test.literals)
            for place, test in zip(leaves.tested, tests, strict=True)
        ]
        made, left, store = [], self._limit, file.store
        assert isinstance(store, LocalStore)
        keeps_open = store.open_file
        for number, ranges in found:
            if left <= 0:
                break
            reader = leaves.reader(number)
            if reader is None:
                return None
            began = log.begun()
            batch = reader.read(
                store.descriptor, ranges.ranges, asked, left, MOST_READ, self._threads
            )
            if batch is None:
                return None
            if began:
                log.looked_up(store.name, number, ranges.num_rows, began)
            if batch.num_rows:
                made.append(batch)
                left -= batch.num_rows
        del keeps_open  # until here
        store.check()
        return leaves.table(made)

    def _is_small(
        self,
        found: Sequence[tuple[int, rows.RowRanges]],
        tests: Sequence[BoundLeaf],
        leaves: PointLeaves,
    ) -> bool:
        """Whether the rows in question are few enough for one call of the core and no other index."""
        size = tested = 0.0
        for number, ranges in found:
            sizes = leaves.sizes(number)
            size += ranges.num_rows * sizes.read
            tested += ranges.num_rows * sizes.tested
        if size > MOST_BYTES or tested > MOST_TESTED:
            return False
        return tested <= FEW_TESTED or not any(
            self._may_pay(pruner, found, tests, leaves) for pruner in self._tests.pruners
        )

    def _may_pay(
        self,
        pruner: Pruner,
        found: Sequence[tuple[int, rows.RowRanges]],
        tests: Sequence[BoundLeaf],
        leaves: PointLeaves,
    ) -> bool:
        """Whether a pruner reads so much less than the rows in question that it may be worth it."""
        if pruner.whole:
            return True
        for number, ranges in found:
            at_stake = ranges.num_rows * leaves.sizes(number).read / QUICK  # at most
            context = PruneContext(self.file, number, ranges, self._request.options, Report())
            for test in tests:
                try:
                    price = pruner.price(context, test)
                except (CoreError, PageseekError):  # raised again, with the place, where it prunes
                    return True
                if isinstance(price, Price):
                    price = price.size if price.pays else None
                if price is not None and DOUBT * price < at_stake:
                    return True
        return False


def _is_flat(column: Column) -> bool:
    """Whether the core can make a column by itself."""
    return column.node is None and len(column.parts) == 1 and is_simple(column.parts[0])


class PointReads:
    """The calls of a prepared query that few reads of one local file can answer. Threads may share it."""

    __slots__ = ("_kept", "_plan", "_request", "_schema", "_source")

    def __init__(
        self,
        source: Source,
        request: Request,
        schema: pa.Schema | None = None,
        kept: dict[Any, Any] | None = None,
    ) -> None:
        """`schema`: that of the answer, where the file is one of a table. `kept`: as of `PointPlan.of`."""
        self._source, self._request, self._schema, self._kept = source, request, schema, kept
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
            file = cache.open(source, Report(), limit, tail_bytes=TAIL)
            plan = None
            if isinstance(file.store, LocalStore) and cache.holds(source, file):
                plan = PointPlan.of(file, self._request, source, self._schema, self._kept)
            self._plan = known = file, plan
        plan = known[1]
        return None if plan is None else plan.table(values)
