"""One file: its footer, column chunks and page index, parsed as they are touched and kept.

Sources: parquet.thrift (FileMetaData, ColumnChunk, ColumnIndex, OffsetIndex), PageIndex.md.
"""

from __future__ import annotations

import functools
import itertools
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import metadata as core
from pageseek._core import rows
from pageseek.bounds import (
    Bounds,
    ChunkValues,
    believed,
    states_values,
)
from pageseek.chunks import (
    CHUNK,
    Chunk,
    RowGroup,
    chunk_range,
    may_have_dictionary,
    records,
    refusal,
)
from pageseek.errors import (
    CoreError,
    CorruptFileError,
    from_core,
    placed,
)
from pageseek.fetch import Fetcher
from pageseek.footer import read_footer
from pageseek.limits import DEFAULT
from pageseek.nesting import Node, build
from pageseek.page_index import (
    ColumnIndex,
    OffsetIndex,
    int64s,
    parse_column_index,
    parse_offset_indexes,
)
from pageseek.report import Report
from pageseek.schema import Leaf, Schema, lazy
from pageseek.statistics import stated_bounds
from pageseek.storage import Source, Store
from pageseek.types import (
    ABSENT,
    FLOAT_KINDS,
    L_UNKNOWN,
    Form,
    Options,
    logical_of,
)
from pageseek.writers import Writer


def _key_values(footer: memoryview, pairs: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    for key, key_length, value, length in struct.iter_unpack("<4q", pairs):
        yield (
            bytes(footer[key : key + key_length]),
            None if value == ABSENT else bytes(footer[value : value + length]),
        )


def _key_value(footer: memoryview, pairs: bytes, wanted: bytes) -> bytes | None:
    return next((value for key, value in _key_values(footer, pairs) if key == wanted), None)


class ParquetFile:
    """One file of one version: its metadata, parsed as it is touched.

    Attributes: `schema` (pyarrow.Schema), `num_rows`, `num_row_groups`, `row_groups`, `leaves`,
    `created_by`, `key_value_metadata`; `column_index(row_group, leaf)` and `offset_index(row_group, leaf)`
    give the page index. Safe to share between threads.
    """

    def __init__(
        self,
        source: Source,
        store: Store,
        report: Report | None = None,
        max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    ) -> None:
        self.source = source
        self.max_metadata_bytes = max_metadata_bytes
        self.store = store
        self.name = store.name
        report = report or Report()
        self._footer, self._tail = read_footer(store, report, max_metadata_bytes)
        try:
            parsed = core.footer(self._footer, max_arena=max_metadata_bytes)
        except CoreError as error:
            base = store.size - 8 - self._footer.nbytes
            raise from_core(error, f"{self.name}: footer", base) from error
        (
            _,
            self.num_rows,
            self._created_by,
            encryption,
            elements,
            self.num_leaves,
            groups,
            at,
            pairs,
            orders,
        ) = parsed
        if encryption is not None and encryption != ABSENT:
            report.note(f"{self.name}: some columns are encrypted")
        self._groups = groups
        self.group_rows = (
            memoryview(groups)
            .cast("q")[RowGroup._fields.index("num_rows") :: len(RowGroup._fields)]
            .tolist()
        )
        if self.group_rows and min(self.group_rows) < 0:
            i, n = next((i, n) for i, n in enumerate(self.group_rows) if n < 0)
            raise CorruptFileError(f"{self.name}: row group {i} has {n} rows")
        if self.num_rows != sum(self.group_rows):
            report.note(
                f"{self.name}: the footer counts {self.num_rows} rows, its row groups another number"
            )
            self.num_rows = sum(self.group_rows)
        self._chunk_at = memoryview(at).cast("Q")  # row group by row group
        self._pairs = pairs
        self._orders = memoryview(orders).cast("q")
        if len(self._orders) != self.num_leaves:  # of which leaves are they?
            self._orders = self._orders[:0]
        self._chunk_tables: dict[int, bytes] = {}
        self._chunks: dict[tuple[int, int], Any] = {}
        self._checked: dict[tuple[int, int], tuple[Any, int, int]] = {}
        self._nodes: dict[tuple[int, Options], Node] = {}
        self.outputs: dict[Any, Any] = {}  # of columns.output
        self._group_bounds: dict[tuple[int, Options], Bounds | None] = {}
        self._column_indexes: dict[tuple[int, int, Options], ColumnIndex | None] = {}
        self._walked: dict[tuple[int, int], tuple[OffsetIndex, memoryview, bytes] | None] = {}
        self._header_indexes: dict[tuple[int, int, Options], ColumnIndex | None] = {}
        self._offset_indexes: dict[tuple[int, int], OffsetIndex | None] = {}
        find = functools.partial(_key_value, self._footer, self._pairs)  # a method would be a cycle
        self.schema_tree = Schema(elements, self.num_leaves, self._footer, find, self.name)

    # -- opening ------------------------------------------------------------------------------

    @property
    def footer_start(self) -> int:
        """Where the footer begins: whatever else the file has lies before."""
        return self.store.size - 8 - self._footer.nbytes

    @property
    def tail(self) -> memoryview:
        """The last bytes of the file, read at open."""
        return self._tail

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ParquetFile {self.name}: {self.num_rows:,} rows, {self.num_row_groups} row groups, {self.num_leaves} leaves>"

    # -- footer -------------------------------------------------------------------------------

    @property
    def num_row_groups(self) -> int:
        return len(self.group_rows)

    def first_row(self, row_group: int) -> int:
        """The number in the file of the first row of a row group."""
        return self._first_rows[row_group]

    @lazy
    def _first_rows(self) -> list[int]:
        return list(itertools.accumulate(self.group_rows, initial=0))

    @lazy
    def row_groups(self) -> list[Any]:
        """The row groups as the footer has them, records of RowGroup."""
        return records(RowGroup, self._groups)

    @property
    def leaves(self) -> list[Leaf]:
        """Primitive columns, in file order."""
        return self.schema_tree.leaves

    @lazy
    def created_by(self) -> str | None:
        """The writer's name, where the footer has one."""
        if self._created_by is None:
            return None
        offset, length = self._created_by
        return bytes(self._footer[offset : offset + length]).decode("utf-8", "replace")

    @lazy
    def lsb_levels(self) -> bool:
        """Whether the writer packed BIT_PACKED levels from the low bit."""
        return "impala" in (self.created_by or "").lower()

    @lazy
    def always_compressed(self) -> bool:
        """Whether the writer compressed V2 pages and said that it had not (ARROW-10353)."""
        return (self.created_by or "").startswith("parquet-cpp version ")

    @lazy
    def key_value_metadata(self) -> Mapping[bytes, bytes | None]:
        """The footer's key-value pairs; of equal keys the first."""
        pairs: dict[bytes, bytes | None] = {}
        for key, value in _key_values(self._footer, self._pairs):
            pairs.setdefault(key, value)
        return pairs

    def node(self, index: int, options: Options) -> Node:
        """A top-level field as the tree that Arrow makes of it."""
        key = index, options
        found = self._nodes.get(key)
        if found is None:
            tree = self.schema_tree
            found = build(tree, index, options, tree.stored_field(index))
            self._nodes[key] = found
        return found

    def form(self, leaf: Leaf, options: Options) -> Form:
        """How a leaf is decoded."""
        if leaf.flat:
            return self.schema_tree.form(leaf, options)
        root = self.node(leaf.top, options)
        node = next(n for n in root.leaf_nodes() if n.first_leaf == leaf.index)
        assert node.form is not None
        return node.form

    @lazy
    def schema_metadata(self) -> dict[bytes, bytes]:
        """The key-value pairs that belong to the Arrow schema."""
        return {k: v or b"" for k, v in self.key_value_metadata.items() if k != b"ARROW:schema"}

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the file, as read with default options."""
        tree, options = self.schema_tree, Options()
        fields = [
            tree.flat_column(i, options)[2] if tree.is_flat(i) else self.node(i, options).field
            for i in range(tree.num_fields)
        ]
        return pa.schema(fields, metadata=self.schema_metadata or None)

    # -- column chunks -------------------------------------------------------------------------

    def chunks(self, leaf: Leaf) -> list[Any]:
        """The column chunks of a leaf, one a row group."""
        return records(Chunk, self._chunk_table(leaf))

    def _chunk_table(self, leaf: Leaf) -> bytes:
        """The column chunks of a leaf as the core has them, a record for each row group."""
        found = self._chunk_tables.get(leaf.index)
        if found is None:
            at = self._chunk_at[leaf.index :: self.num_leaves]
            found = self._chunk_tables[leaf.index] = self._read_chunks(at, leaf)
        return found

    def _chunk(self, row_group: int, leaf: Leaf) -> Any:
        """One column chunk, as the footer has it."""
        found = self._chunks.get((row_group, leaf.index))
        if found is None:
            table = self._chunk_tables.get(leaf.index)
            if table is None:  # a lookup needs one row group of many
                at = row_group * self.num_leaves + leaf.index
                found = Chunk._make(
                    CHUNK.unpack(self._read_chunks(self._chunk_at[at : at + 1], leaf))
                )
            else:
                found = Chunk._make(CHUNK.unpack_from(table, row_group * CHUNK.size))
            self._chunks[row_group, leaf.index] = found
        return found

    def load_chunks(self, row_group: int, leaves: Sequence[Leaf]) -> None:
        """The column chunks of several leaves at once, to be at hand."""
        missing = [leaf for leaf in leaves if (row_group, leaf.index) not in self._chunks]
        if len(missing) < 2:
            return
        group = row_group * self.num_leaves
        at = b"".join(
            [self._chunk_at[group + leaf.index : group + leaf.index + 1] for leaf in missing]
        )
        try:
            data = self._read_chunks(at)
        except CoreError:
            return  # one by one, they say which it is
        for leaf, chunk in zip(missing, records(Chunk, data), strict=True):
            self._chunks[row_group, leaf.index] = chunk

    def _read_chunks(self, at: bytes | memoryview, leaf: Leaf | None = None) -> bytes:
        try:
            data = core.chunks(self._footer, bytes(at))
        except CoreError as error:
            if leaf is None:
                raise
            base = self.store.size - 8 - self._footer.nbytes
            raise from_core(
                error, f"{self.name}: column {leaf.name!r}: chunk metadata", base
            ) from error
        return self._corrected(data) if self.understates_chunks else data

    def _corrected(self, data: bytes) -> bytes:
        """Chunks that reach beyond the size that the footer states, as far as they may."""
        table = int64s(data).reshape(-1, len(Chunk._fields)).copy()
        end = self.store.size - 8 - self._footer.nbytes
        starts = np.array([chunk_range(chunk)[0] for chunk in records(Chunk, data)])
        size = table[:, Chunk._fields.index("total_compressed_size")]
        size[:] = np.minimum(size + 100, end - starts)
        return table.tobytes()

    @lazy
    def understates_chunks(self) -> bool:
        """Whether the writer left the dictionary page's header out of total_compressed_size (PARQUET-816)."""
        if not (self.created_by or "").startswith("parquet-mr "):
            return False
        made = re.match(
            r"parquet-mr version (\d{1,9})\.(\d{1,9})\.(\d{1,9})", self.created_by or ""
        )
        return made is not None and tuple(map(int, made.groups())) < (1, 2, 9)

    def chunk(self, row_group: int, leaf: Leaf) -> Any:
        """One column chunk, checked: readable, in this file, inside it."""
        return self.placed_chunk(row_group, leaf)[0]

    def placed_chunk(self, row_group: int, leaf: Leaf) -> tuple[Any, int, int]:
        """The same with its first byte, and the byte after its last."""
        found = self._checked.get((row_group, leaf.index))
        if found is not None:
            return found
        chunk = self._chunk(row_group, leaf)
        start, stop = chunk_range(chunk)
        if (
            chunk.crypto != ABSENT
            or not chunk.has_metadata
            or chunk.file_path_length not in (ABSENT, 0)
            or chunk.type != leaf.element.type
            or (leaf.max_rep == 0 and chunk.num_values != self.group_rows[row_group])
            or not 4 <= start <= stop <= self.store.size
        ):
            where = f"{self.name}: column {leaf.name!r}, row group {row_group}"
            raise refusal(where, leaf, chunk, self.group_rows[row_group])
        made = self._checked[row_group, leaf.index] = chunk, start, stop
        return made

    # -- statistics of row groups ---------------------------------------------------------------

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """The statistics of a leaf's chunks as zones to probe, one a row group; None without any."""
        found = self._bounds_of_groups(leaf, options)
        return None if found is None else found.zones

    def _bounds_of_groups(self, leaf: Leaf, options: Options) -> Bounds | None:
        key = leaf.index, options
        if key not in self._group_bounds:
            self._group_bounds[key] = self._make_bounds(leaf, self.form(leaf, options))
        return self._group_bounds[key]

    def _make_bounds(self, leaf: Leaf, form: Form) -> Bounds | None:
        bounds, counts = self._believed(leaf)
        found = self._chunk_bounds(leaf, form) if bounds and not form.is_null else None
        if found is None:
            return None
        places, nulls, nans = found
        if leaf.max_rep:  # nulls are counted among values, zones count rows
            counts = False
        return self._bounds(leaf, form, places, nulls if counts else None, nans)

    def chunk_values(
        self, row_group: int, leaf: Leaf | str, options: Options | None = None
    ) -> ChunkValues:
        """What the statistics of one column chunk say, as far as they can be believed (parquet.thrift, Statistics)."""
        leaf, options = self._resolve(leaf), options or Options()
        chunk = self._chunk(row_group, leaf)
        found = self._bounds_of_groups(leaf, options)
        form, total = self.form(leaf, options), chunk.num_values
        nulls = self.null_count(row_group, leaf)
        nans: int | None = 0
        if form.kind in FLOAT_KINDS:
            nans = chunk.statistics_nan_count
            nans = nans if found is not None and 0 <= nans <= total else None
        pair = None if found is None else found.pair(row_group)
        numbers = None if nulls is None or nans is None else total - nulls - nans
        if (numbers is not None and numbers < 0) or (
            pair is not None and (numbers == 0 or nulls == total)
        ):
            return ChunkValues()  # they contradict each other
        if pair is None:
            return ChunkValues(null_count=nulls, nan_count=nans)
        lower, upper = pair
        unsaid = ABSENT if states_values(leaf, form) else None
        return ChunkValues(
            lower,
            upper,
            lower if chunk.statistics_is_min_exact in (1, unsaid) else None,
            upper if chunk.statistics_is_max_exact in (1, unsaid) else None,
            nulls,
            nans,
        )

    def null_count(self, row_group: int, leaf: Leaf) -> int | None:
        """The nulls of a column chunk, those of empty lists among them; None where they are not known."""
        if leaf.max_def == 0:
            return 0
        chunk = self._chunk(row_group, leaf)
        count: int = chunk.statistics_null_count
        told = chunk.statistics_present == 1 and self._believed(leaf)[1]
        return count if told and 0 <= count <= chunk.num_values else None

    @lazy
    def writer(self) -> Writer:
        """Who wrote the file."""
        return Writer.of(self.created_by)

    def _believed(self, leaf: Leaf) -> tuple[bool, bool]:
        stored = self.schema_tree.stored_field(leaf.top) if self._arrow_version else None
        return believed(leaf, self._arrow_version, stored)

    @lazy
    def _arrow_version(self) -> int | None:
        """The major version of Arrow C++, where that wrote the file."""
        made = re.match(r"parquet-cpp(?:-arrow)? version (\d{1,9})\.", self.created_by or "")
        return None if made is None else int(made[1])

    def _chunk_bounds(self, leaf: Leaf, form: Form) -> tuple[bytes, bytes, bytes] | None:
        """The places of the trusted bounds in the footer, counts of nulls and of NaN; None without statistics."""
        table = self._chunk_table(leaf)
        return stated_bounds(table, self._footer, leaf, form, self._orders, self.writer)

    def _bounds(
        self, leaf: Leaf, form: Form, places: bytes, nulls: bytes | None, nans: bytes | None
    ) -> Bounds:
        n = self.num_row_groups
        counts = struct.pack(f"{n}q", *self.group_rows)
        with placed(f"{self.name}: column {leaf.name!r}: statistics"):
            return Bounds(form, self._footer, places, n, None, nulls, nans, counts, 0)

    # -- page index -----------------------------------------------------------------------------

    def index_range(self, which: str, row_group: int, leaf: Leaf) -> tuple[int, int] | None:
        """Where the "column" or "offset" index of a chunk lies; None where the file has none."""
        chunk = self._chunk(row_group, leaf)
        if chunk.crypto != ABSENT:
            return None
        if which == "column":
            offset, length = chunk.column_index_offset, chunk.column_index_length
        else:
            offset, length = chunk.offset_index_offset, chunk.offset_index_length
        if (
            offset == ABSENT
            or length == ABSENT
            or offset < 4
            or length <= 0
            or length > self.max_metadata_bytes
            or offset + length > self.store.size - 8
        ):
            return None
        return offset, length

    def cached_offset_index(self, row_group: int, leaf: Leaf) -> tuple[bool, OffsetIndex | None]:
        key = row_group, leaf.index
        return key in self._offset_indexes, self._offset_indexes.get(key)

    def without_offset_index(self, row_group: int, leaves: Sequence[Leaf]) -> list[Leaf]:
        """Those whose offset index was not looked for yet."""
        known = self._offset_indexes
        return [leaf for leaf in leaves if (row_group, leaf.index) not in known]

    def cached_column_index(
        self, row_group: int, leaf: Leaf, options: Options
    ) -> tuple[bool, ColumnIndex | None]:
        key = row_group, leaf.index, options
        return key in self._column_indexes, self._column_indexes.get(key)

    def drop_index(self, row_group: int, leaf: Leaf) -> None:
        """Forget the page index of a chunk for good: its pages have shown it to be wrong."""
        self._offset_indexes[row_group, leaf.index] = None
        if self.was_walked(row_group, leaf):
            self._walked[row_group, leaf.index] = None
        for key in [k for k in list(self._column_indexes) if k[:2] == (row_group, leaf.index)]:
            self._column_indexes[key] = None

    def load_offset_indexes(
        self,
        row_group: int,
        leaves: Sequence[Leaf],
        data: Sequence[memoryview | None],
        report: Report,
    ) -> None:
        """Parse, check and keep offset indexes; None, with a note, where one cannot be trusted."""
        known, size = self._offset_indexes, self.store.size
        wanted: list[tuple[memoryview, int, int]] = []
        places: list[tuple[Leaf, Any]] = []
        for leaf, part in zip(leaves, data, strict=True):
            if part is None:
                known.setdefault((row_group, leaf.index))  # the headers of its pages may have told
                continue
            chunk = self._chunk(row_group, leaf)
            start, stop = chunk_range(chunk)
            if 0 <= start <= stop <= size:
                wanted.append((part, start, stop))
                places.append((leaf, chunk))
            else:
                known[row_group, leaf.index] = None
                self._ignored("offset", row_group, leaf, "its chunk lies outside the file", report)
        made = parse_offset_indexes(wanted, self.group_rows[row_group], self.max_metadata_bytes)
        for (leaf, chunk), (_, start, _), found in zip(places, wanted, made, strict=True):
            if isinstance(found, CoreError):
                self._ignored("offset", row_group, leaf, found.message, report)
                found = None
            elif found is not None and found.start > start and not may_have_dictionary(chunk):
                why = "its first page is not the first of the chunk"
                self._ignored("offset", row_group, leaf, why, report)
                found = None
            known[row_group, leaf.index] = found

    def adopt_pages(
        self, row_group: int, leaf: Leaf, found: tuple[OffsetIndex, memoryview, bytes] | None
    ) -> None:
        """Keep what the headers of all pages of a chunk say, in the place of the page index that it has not; None
        where they were looked at in vain.

        `found`: where the pages are, bytes, and records as in `stated_bounds`, one a page, whose bounds lie there.
        """
        self._walked[row_group, leaf.index] = found
        if found is not None:
            self._offset_indexes[row_group, leaf.index] = found[0]

    def was_walked(self, row_group: int, leaf: Leaf) -> bool:
        """Whether the page headers of a chunk were looked at."""
        return (row_group, leaf.index) in self._walked

    def header_index(self, row_group: int, leaf: Leaf, options: Options) -> ColumnIndex | None:
        """What is known of the values of each page of a chunk by their headers, if these were looked at."""
        walked = self._walked.get((row_group, leaf.index))
        if walked is None:
            return None
        key = row_group, leaf.index, options
        if key not in self._header_indexes:
            self._header_indexes[key] = self._of_headers(leaf, options, *walked)
        return self._header_indexes[key]

    def _of_headers(
        self, leaf: Leaf, options: Options, offsets: OffsetIndex, data: memoryview, records: bytes
    ) -> ColumnIndex | None:
        form = self.form(leaf, options)
        bounds, counts = self._believed(leaf)
        if not bounds or form.is_null or logical_of(leaf.element)[0] == L_UNKNOWN:
            return None
        found = stated_bounds(records, data, leaf, form, self._orders, self.writer)
        if found is None:
            return None
        places, nulls, nans = found
        n, nulls_known = offsets.num_pages, nulls if counts else None
        rows_in = np.diff(offsets.first_row).tobytes()
        made = Bounds(form, data, places, n, None, nulls_known, nans, rows_in, 0)
        return ColumnIndex(n, bytes(n), nulls_known, nans, made)

    def _ignored(self, which: str, row_group: int, leaf: Leaf, why: str, report: Report) -> None:
        report.note(
            f"{self.name}: {leaf.name!r}, row group {row_group}: {which} index ignored: {why}"
        )

    def load_column_index(
        self, row_group: int, leaf: Leaf, options: Options, data: memoryview | None, report: Report
    ) -> ColumnIndex | None:
        """Parse, check and keep a column index; None, with a note, where it cannot be trusted.

        The offset index of the chunk must have been loaded: a column index without one proves nothing.
        """
        found = None
        offsets = self._offset_indexes.get((row_group, leaf.index))
        bounds, counts = self._believed(leaf)
        known = bounds and logical_of(leaf.element)[0] != L_UNKNOWN
        if data is not None and offsets is not None and known:
            try:
                found = parse_column_index(
                    data,
                    leaf,
                    self.form(leaf, options),
                    self._orders,
                    offsets,
                    self.max_metadata_bytes,
                    counts,
                )
            except CoreError as error:
                self._ignored("column", row_group, leaf, error.message, report)
        self._column_indexes[row_group, leaf.index, options] = found
        return found

    def _resolve(self, leaf: Leaf | str) -> Leaf:
        return leaf if isinstance(leaf, Leaf) else self.schema_tree.find(leaf)

    def offset_index(self, row_group: int, leaf: Leaf | str) -> OffsetIndex | None:
        """Where the pages of a column chunk are, or None (parquet.thrift, OffsetIndex). IndexError: no such chunk."""
        if not 0 <= row_group < self.num_row_groups:
            raise IndexError(
                f"{self.name}: no row group {row_group}; there are {self.num_row_groups}"
            )
        leaf = self._resolve(leaf)
        have, found = self.cached_offset_index(row_group, leaf)
        if have:
            return found
        report = Report()
        at = self.index_range("offset", row_group, leaf)
        data = Fetcher(self.store, report, self._tail).read([at], "index")[0] if at else None
        self.load_offset_indexes(row_group, [leaf], [data], report)
        return self._offset_indexes[row_group, leaf.index]

    def column_index(self, row_group: int, leaf: Leaf | str) -> ColumnIndex | None:
        """Bounds and null counts of the pages of a chunk, or None (parquet.thrift, ColumnIndex). IndexError: no such chunk."""
        leaf, options = self._resolve(leaf), Options()
        have, found = self.cached_column_index(row_group, leaf, options)
        if have:
            return found
        self.offset_index(row_group, leaf)
        report = Report()
        at = self.index_range("column", row_group, leaf)
        data = Fetcher(self.store, report, self._tail).read([at], "index")[0] if at else None
        return self.load_column_index(row_group, leaf, options, data, report)

    def statistics(self, leaf: Leaf | str) -> tuple[pa.Array, pa.Array]:
        """The least and greatest value of a column in each row group, as the Parquet schema types them;
        null where nothing can be trusted.
        """
        leaf = self._resolve(leaf)
        form = self.schema_tree.parquet_form(leaf)
        places = (
            self._chunk_bounds(leaf, form) or (struct.pack("<q", ABSENT) * 4 * self.num_row_groups,)
        )[0]
        found = self._bounds(leaf, form, places, None, None)
        return found.lower, found.upper
