"""One file: its footer, column chunks and page index, parsed as they are touched and kept.

Sources: parquet.thrift (FileMetaData, ColumnChunk, ColumnIndex, OffsetIndex), PageIndex.md.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import metadata as core
from pageseek._core import rows
from pageseek.bounds import Bounds, signed_order, trusted_order
from pageseek.errors import CorruptFileError, LimitError, UnsupportedError, from_core, placed
from pageseek.fetch import Fetcher
from pageseek.limits import DEFAULT
from pageseek.nesting import Node, build
from pageseek.page_index import (
    ColumnIndex,
    Contradiction,
    OffsetIndex,
    int64s,
    parse_column_index,
    parse_offset_index,
)
from pageseek.report import Report
from pageseek.schema import Leaf, Schema, lazy
from pageseek.storage import Source, Store
from pageseek.types import ABSENT, L_UNKNOWN, PHYSICAL_NAMES, Form, Options, logical_of

DICTIONARY_ENCODINGS = 1 << 2 | 1 << 8  # parquet.thrift, Encoding
TAIL = 64 << 10  # bytes read at open: footer, and usually the page index with it
CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")

RowGroup = NamedTuple("RowGroup", [(name, int) for name in core.ROW_GROUP_FIELDS])  # type: ignore[misc]
Chunk = NamedTuple("Chunk", [(name, int) for name in core.CHUNK_FIELDS])  # type: ignore[misc]
PageHeader = NamedTuple("PageHeader", [(name, int) for name in core.PAGE_HEADER_FIELDS])  # type: ignore[misc]


def _records(kind: Any, data: bytes) -> list[Any]:
    width = len(kind._fields)
    return [kind._make(values) for values in struct.iter_unpack(f"<{width}q", data)]


def _key_values(
    footer: memoryview, pairs: npt.NDArray[np.int64]
) -> Iterator[tuple[bytes, bytes | None]]:
    for key, key_length, value, length in pairs.tolist():
        yield (
            bytes(footer[key : key + key_length]),
            None if value == ABSENT else bytes(footer[value : value + length]),
        )


def _key_value(footer: memoryview, pairs: npt.NDArray[np.int64], wanted: bytes) -> bytes | None:
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
        self._footer, self._tail = self._read_footer(report)
        try:
            parsed = core.footer(self._footer, max_arena=max_metadata_bytes)
        except core.CoreError as error:
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
        self.row_groups: list[Any] = _records(RowGroup, groups)
        for i, group in enumerate(self.row_groups):
            if group.num_rows < 0:
                raise CorruptFileError(f"{self.name}: row group {i} has {group.num_rows} rows")
        if self.num_rows != sum(group.num_rows for group in self.row_groups):
            report.note(
                f"{self.name}: the footer counts {self.num_rows} rows, its row groups another number"
            )
            self.num_rows = sum(group.num_rows for group in self.row_groups)
        self._chunk_at = np.frombuffer(at, np.uint64).reshape(len(self.row_groups), self.num_leaves)
        self._pairs = int64s(pairs).reshape(-1, 4)
        self._orders = int64s(orders)
        self._chunk_tables: dict[int, npt.NDArray[np.int64]] = {}
        self._chunks: dict[tuple[int, int], Any] = {}
        self._checked: dict[tuple[int, int], Any] = {}
        self._nodes: dict[tuple[int, Options], Node] = {}
        self.outputs: dict[Any, Any] = {}  # of columns.output
        self._group_zones: dict[tuple[int, Options], rows.Zones | None] = {}
        self._column_indexes: dict[tuple[int, int, Options], ColumnIndex | None] = {}
        self._offset_indexes: dict[tuple[int, int], OffsetIndex | None] = {}
        find = functools.partial(_key_value, self._footer, self._pairs)  # a method would be a cycle
        self.schema_tree = Schema(elements, self._footer, find, self.name)

    # -- opening ------------------------------------------------------------------------------

    def _read_footer(self, report: Report) -> tuple[memoryview, memoryview]:
        size = self.store.size
        fetcher = Fetcher(self.store, report)
        if size < 12:
            raise CorruptFileError(f"{self.name}: {size} bytes are too few for a Parquet file")
        (tail,) = fetcher.read([(size - min(size, TAIL), min(size, TAIL))], "metadata")
        magic = bytes(tail[-4:])
        if magic == b"PARE":
            raise UnsupportedError(
                f"{self.name}: the footer is encrypted, and encrypted files are not supported"
            )
        if magic != b"PAR1":
            raise CorruptFileError(
                f"{self.name}: ends in {magic!r}, not in b'PAR1': not a Parquet file, or cut short"
            )
        length = int.from_bytes(tail[-8:-4], "little")
        if length > size - 12:
            raise CorruptFileError(
                f"{self.name}: the footer claims {length} bytes, the file has {size}"
            )
        if length > self.max_metadata_bytes:
            raise LimitError(
                f"{self.name}: the footer has {length} bytes, beyond the limit of "
                f"{self.max_metadata_bytes}; raise it with max_metadata_bytes"
            )
        if length + 8 <= tail.nbytes:
            return tail[tail.nbytes - 8 - length : tail.nbytes - 8], tail
        (footer,) = fetcher.read([(size - 8 - length, length)], "metadata")
        return footer, tail

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
        return f"<ParquetFile {self.name}: {self.num_rows:,} rows, {len(self.row_groups)} row groups, {self.num_leaves} leaves>"

    # -- footer -------------------------------------------------------------------------------

    @property
    def num_row_groups(self) -> int:
        return len(self.row_groups)

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
        node = self.node(leaf.top, options)
        while node.leaf is None:
            node = next(c for c in node.children if c.first_leaf <= leaf.index < c.stop_leaf)
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
            tree.arrow_field(i, options) if tree.is_flat(i) else self.node(i, options).field
            for i in range(tree.num_fields)
        ]
        return pa.schema(fields, metadata=self.schema_metadata or None)

    # -- column chunks -------------------------------------------------------------------------

    def chunks(self, leaf: Leaf) -> list[Any]:
        """The column chunks of a leaf, one a row group."""
        return [Chunk._make(row) for row in self._chunk_table(leaf).tolist()]

    def _chunk_table(self, leaf: Leaf) -> npt.NDArray[np.int64]:
        """The column chunks of a leaf, a row for each row group, a column for each of CHUNK_FIELDS."""
        found = self._chunk_tables.get(leaf.index)
        if found is None:
            found = self._read_chunks(leaf, self._chunk_at[:, leaf.index])
            self._chunk_tables[leaf.index] = found
        return found

    def _chunk(self, row_group: int, leaf: Leaf) -> Any:
        """One column chunk, as the footer has it."""
        key = row_group, leaf.index
        found = self._chunks.get(key)
        if found is None:
            table = self._chunk_tables.get(leaf.index)
            if table is None:  # a lookup needs one row group of many
                table = self._read_chunks(
                    leaf, self._chunk_at[row_group : row_group + 1, leaf.index]
                )
                row = table[0]
            else:
                row = table[row_group]
            found = self._chunks[key] = Chunk._make(row.tolist())
        return found

    def _read_chunks(self, leaf: Leaf, at: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        try:
            data = core.chunks(self._footer, np.ascontiguousarray(at))
        except core.CoreError as error:
            base = self.store.size - 8 - self._footer.nbytes
            raise from_core(
                error, f"{self.name}: column {leaf.name!r}: chunk metadata", base
            ) from error
        table = int64s(data).reshape(-1, len(Chunk._fields))
        if self._understates_chunks:
            table = table.copy()
            end = self.store.size - 8 - self._footer.nbytes
            starts = np.array([chunk_range(Chunk._make(row))[0] for row in table.tolist()])
            size = table[:, _FIELD["total_compressed_size"]]
            size[:] = np.minimum(size + 100, end - starts)
        return table

    @lazy
    def _understates_chunks(self) -> bool:
        """Whether the writer left the dictionary page's header out of total_compressed_size (PARQUET-816)."""
        made = re.match(
            r"parquet-mr version (\d{1,9})\.(\d{1,9})\.(\d{1,9})", self.created_by or ""
        )
        return made is not None and tuple(map(int, made.groups())) < (1, 2, 9)

    def chunk(self, row_group: int, leaf: Leaf) -> Any:
        """One column chunk, checked: readable, in this file, inside it."""
        found = self._checked.get((row_group, leaf.index))
        if found is not None:
            return found
        chunk = self._chunk(row_group, leaf)
        where = f"{self.name}: column {leaf.name!r}, row group {row_group}"
        if chunk.crypto != ABSENT or not chunk.has_metadata:
            raise UnsupportedError(
                f"{where}: the column is encrypted, and encrypted columns are not supported"
            )
        if chunk.file_path_length not in (ABSENT, 0):
            raise UnsupportedError(
                f"{where}: the chunk lies in another file, which is not supported"
            )
        if chunk.type != leaf.element.type:
            raise CorruptFileError(
                f"{where}: the schema says {_physical_name(leaf.element.type)}, the chunk {_physical_name(chunk.type)}"
            )
        num_rows = self.row_groups[row_group].num_rows
        if leaf.max_rep == 0 and chunk.num_values != num_rows:
            raise CorruptFileError(f"{where}: {chunk.num_values} values in {num_rows} rows")
        start, stop = chunk_range(chunk)
        if start < 4 or stop < start or stop > self.store.size:
            raise CorruptFileError(
                f"{where}: the chunk at bytes {start} to {stop} lies outside the file"
            )
        self._checked[row_group, leaf.index] = chunk
        return chunk

    # -- statistics of row groups ---------------------------------------------------------------

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """The statistics of a leaf's chunks as zones to probe, one a row group; None without any."""
        key = leaf.index, options
        if key not in self._group_zones:
            self._group_zones[key] = self._make_group_zones(leaf, self.form(leaf, options))
        return self._group_zones[key]

    def _make_group_zones(self, leaf: Leaf, form: Form) -> rows.Zones | None:
        table = self._chunk_table(leaf)
        if form.is_null or not (table[:, _FIELD["statistics_present"]] == 1).any():
            return None
        bounds = self._chunk_bounds(leaf, form)
        nulls = table[:, _FIELD["statistics_null_count"]]
        nans = table[:, _FIELD["statistics_nan_count"]]
        counts = np.array([g.num_rows for g in self.row_groups], np.int64)
        nulls, nans = np.maximum(nulls, -1), np.maximum(nans, -1)
        with placed(f"{self.name}: column {leaf.name!r}: statistics"):
            return Bounds(form, self._footer, bounds, None, nulls, nans, counts, 0).zones

    def _chunk_bounds(self, leaf: Leaf, form: Form) -> npt.NDArray[np.int64]:
        """(offset, length) of min, then of max, in the footer for each chunk; absent where not trusted."""
        table = self._chunk_table(leaf)
        plain = (table[:, _FIELD["statistics_present"]] == 1) & (
            table[:, _FIELD["crypto"]] == ABSENT
        )
        bounds = np.full((4, len(table)), ABSENT, np.int64)
        if signed_order(leaf, form):
            _fill_bounds(bounds, table, plain, _DEPRECATED_BOUNDS)
        if trusted_order(leaf, self._orders):
            _fill_bounds(bounds, table, plain, _BOUNDS)
        return bounds

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
        for key in [k for k in list(self._column_indexes) if k[:2] == (row_group, leaf.index)]:
            self._column_indexes[key] = None

    def load_offset_index(
        self, row_group: int, leaf: Leaf, data: memoryview | None, report: Report
    ) -> OffsetIndex | None:
        """Parse, check and keep an offset index; None, with a note, where it cannot be trusted."""
        found = None
        if data is not None:
            chunk, num_rows = self._chunk(row_group, leaf), self.row_groups[row_group].num_rows
            start, stop = chunk_range(chunk)
            try:
                if not 0 <= start <= stop <= self.store.size:
                    raise Contradiction("its chunk lies outside the file")
                found = parse_offset_index(data, num_rows, start, stop, self.max_metadata_bytes)
                if (
                    found is not None
                    and found.offset[0] > start
                    and not _may_have_dictionary(chunk)
                ):
                    found = None
                    raise Contradiction("its first page is not the first of the chunk")
            except core.CoreError as error:
                report.note(
                    f"{self.name}: {leaf.name!r}, row group {row_group}: offset index ignored: {error.message}"
                )
            except Contradiction as error:
                report.note(
                    f"{self.name}: {leaf.name!r}, row group {row_group}: offset index ignored: {error}"
                )
        self._offset_indexes[row_group, leaf.index] = found
        return found

    def load_column_index(
        self, row_group: int, leaf: Leaf, options: Options, data: memoryview | None, report: Report
    ) -> ColumnIndex | None:
        """Parse, check and keep a column index; None, with a note, where it cannot be trusted.

        The offset index of the chunk must have been loaded: a column index without one proves nothing.
        """
        found = None
        offsets = self._offset_indexes.get((row_group, leaf.index))
        if data is not None and offsets is not None and logical_of(leaf.element)[0] != L_UNKNOWN:
            try:
                found = parse_column_index(
                    data,
                    leaf,
                    self.form(leaf, options),
                    self._orders,
                    offsets,
                    self.max_metadata_bytes,
                )
            except core.CoreError as error:
                report.note(
                    f"{self.name}: {leaf.name!r}, row group {row_group}: column index ignored: {error.message}"
                )
            except Contradiction as error:
                report.note(
                    f"{self.name}: {leaf.name!r}, row group {row_group}: column index ignored: {error}"
                )
        self._column_indexes[row_group, leaf.index, options] = found
        return found

    def _resolve(self, leaf: Leaf | str) -> Leaf:
        return leaf if isinstance(leaf, Leaf) else self.schema_tree.find(leaf)

    def offset_index(self, row_group: int, leaf: Leaf | str) -> OffsetIndex | None:
        """Where the pages of a column chunk are, or None (parquet.thrift, OffsetIndex)."""
        leaf = self._resolve(leaf)
        have, found = self.cached_offset_index(row_group, leaf)
        if have:
            return found
        report = Report()
        at = self.index_range("offset", row_group, leaf)
        data = Fetcher(self.store, report, self._tail).read([at], "index")[0] if at else None
        return self.load_offset_index(row_group, leaf, data, report)

    def column_index(self, row_group: int, leaf: Leaf | str) -> ColumnIndex | None:
        """Bounds and null counts of the pages of a column chunk, or None (parquet.thrift, ColumnIndex)."""
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
        bounds = self._chunk_bounds(leaf, form)
        counts = np.array([g.num_rows for g in self.row_groups], np.int64)
        with placed(f"{self.name}: column {leaf.name!r}: statistics"):
            found = Bounds(form, self._footer, bounds, None, None, None, counts, 0)
        return found.lower, found.upper


_FIELD = {name: i for i, name in enumerate(core.CHUNK_FIELDS)}
_SIDES = ("{}_offset", "{}_length")
_BOUNDS = [_FIELD["statistics_" + s.format(b)] for b in ("min_value", "max_value") for s in _SIDES]
_DEPRECATED_BOUNDS = [_FIELD["statistics_" + s.format(b)] for b in ("min", "max") for s in _SIDES]


def _fill_bounds(
    bounds: npt.NDArray[np.int64],
    table: npt.NDArray[np.int64],
    plain: npt.NDArray[np.bool_],
    fields: list[int],
) -> None:
    """Take (offset, length) of min and max from the chunks that have both."""
    found = table[:, fields].T
    usable = plain & (found[0] != ABSENT) & (found[2] != ABSENT)
    bounds[:, usable] = found[:, usable]


def _physical_name(number: int) -> str:
    return PHYSICAL_NAMES[number] if 0 <= number < len(PHYSICAL_NAMES) else f"type {number}"


def chunk_range(chunk: Any) -> tuple[int, int]:
    """First byte of a column chunk and the byte after its last; the dictionary page belongs to it."""
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset != ABSENT and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    return start, start + chunk.total_compressed_size


def _may_have_dictionary(chunk: Any) -> bool:
    return chunk.dictionary_page_offset != ABSENT or bool(chunk.encodings & DICTIONARY_ENCODINGS)


def page_header(data: memoryview, at: int, where: Callable[[], str], base: int) -> Any:
    """The PageHeader at data[at:]; `base` is the place in the file of data[0]."""
    try:
        return PageHeader._make(_PAGE_HEADER(core.page_header(data, at)))
    except core.CoreError as error:
        raise from_core(error, f"{where()}: page header", base) from error


_PAGE_HEADER = struct.Struct(f"<{len(core.PAGE_HEADER_FIELDS)}q").unpack
