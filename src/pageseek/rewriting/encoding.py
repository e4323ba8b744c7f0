"""Rows written as a Parquet file in the layout for lookups."""

from __future__ import annotations

import base64
import inspect
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.base.arrays import first_leaves
from pageseek.rewriting.layout import Layout
from pageseek.rewriting.row_sizes import row_ends
from pageseek.rewriting.sink import Sink

GROUP_ROWS, GROUP_BYTES = 1_000_000, 128 << 20  # of a row group in Arrow, unless it is told
MOST_BYTES = 2 * GROUP_BYTES  # at which a row group ends whose rows are larger than the first ones
# the same where the rows of a row group are told: columns with offsets of 32 bits hold no more than twice that
MOST_TOLD_BYTES = 1 << 30
PAGE_BYTES = 1 << 20  # encoded, at which a page ends before it has its rows
# a lookup reads the dictionary with its page. By less, columns of a few thousand values would be ten times as large
DICTIONARY_BYTES = 128 << 10
SAMPLED = 1 << 16  # values of a column by which it gets dictionaries or none
SEEN = 0.75  # of the different values, that a sample has at least as a rule
MOST_BATCH = 1024  # values between two looks at the size of a page
STORED = b"ARROW:schema"
_HAS_PAGE_ROWS = "max_rows_per_page" in inspect.signature(pq.ParquetWriter.__init__).parameters


def spread_rows(n: int, total: int) -> np.ndarray:
    """The numbers of n of so many rows, the same ones each time: one of each stretch, by chance, so that values that repeat with a
    period are met evenly.
    """
    starts = np.arange(n, dtype=np.int64) * total // n
    made: np.ndarray = np.random.default_rng(0).integers(starts, np.append(starts[1:], total))
    return made


def group_rows_of(sample: pa.Table) -> int:
    """Rows of a row group, by the size of the first rows of the source."""
    if sample.num_rows == 0 or sample.nbytes == 0:
        return GROUP_ROWS
    rows, size = int(sample.num_rows), int(sample.nbytes)
    return max(min(GROUP_ROWS, GROUP_BYTES * rows // size), 1)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with the values of top-level dictionaries in their place: the writer makes a dictionary for each row group, of its own
    values only. Views are arrays with offsets: Arrow does not take rows of views.
    """
    fields = [
        field.with_type(
            _plain_type(field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        )
        for field in schema
    ]
    return pa.schema(fields, metadata=schema.metadata)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without views, at any depth."""
    t = pa.types
    if t.is_string_view(kind) or t.is_binary_view(kind):
        return pa.large_string() if t.is_string_view(kind) else pa.large_binary()
    if isinstance(kind, pa.JsonType):
        return pa.json_(_plain_type(kind.storage_type))
    if isinstance(kind, pa.BaseExtensionType):
        storage = _plain_type(kind.storage_type)
        return kind if storage == kind.storage_type else storage

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(_plain_type(field.type))

    if t.is_struct(kind):
        return pa.struct([inner(field) for field in kind])
    if t.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field), kind.keys_sorted)
    if t.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_field), kind.list_size)
    if t.is_list(kind) or t.is_large_list(kind):
        make = pa.list_ if t.is_list(kind) else pa.large_list
        return make(inner(kind.value_field))
    return kind


def plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows in a schema of `plain_schema`."""
    columns = [
        _plain_values(column, field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if values.type == kind:
        return values
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, values.cast(kind.storage_type))
    return values.cast(kind)


class Encoder:
    """One file, written row group by row group.

    Attributes
    ----------
    rows, groups : int
        Written so far.
    """

    def __init__(self, sink: Sink, schema: pa.Schema, layout: Layout) -> None:
        """`schema`: of the source. The file keeps it, and readers of Arrow get its types; tables have the one of `plain_schema`."""
        self.rows = self.groups = 0
        self._layout = layout
        self._held: list[pa.Table] = []
        self._held_rows = self._held_bytes = 0
        self._schema = plain_schema(schema)
        pages: dict[str, Any] = {"data_page_size": PAGE_BYTES}
        batch = min(layout.page_rows, MOST_BATCH)
        if _HAS_PAGE_ROWS:
            pages |= {"max_rows_per_page": layout.page_rows}
        elif layout.page_rows <= MOST_BATCH:  # a page ends with each batch of so many values
            pages = {"data_page_size": 1}
        # pages of whole batches, where that can be
        pages["write_batch_size"] = next(
            (n for n in range(batch, batch // 2, -1) if layout.page_rows % n == 0), batch
        )
        first = first_leaves(schema)
        sorting = [pq.SortingColumn(first[c], down, False) for c, down in layout.sorted_by]
        metadata = {
            key: value for key, value in (self._schema.metadata or {}).items() if key != STORED
        }
        stored = base64.b64encode(schema.serialize().to_pybytes())
        self._sink = sink
        self._stream = pa.BufferedOutputStream(pa.PythonFile(sink, "w"), sink.BUFFER)
        self._options = pages | {
            "compression": layout.codec,
            "dictionary_pagesize_limit": DICTIONARY_BYTES,
            "sorting_columns": sorting or None,
            "store_decimal_as_integer": True,
            "store_schema": False,
            "use_compliant_nested_type": False,
            "write_page_index": True,
        }
        self._metadata = metadata | {STORED: stored}
        self._opened: pq.ParquetWriter | None = None

    def _writer(self, first: pa.Table) -> pq.ParquetWriter:
        """The writer. Its first row group tells which columns get dictionaries."""
        if self._opened is None:
            coded = _coded(first, self._options)
            self._opened = pq.ParquetWriter(
                self._stream, self._schema, use_dictionary=coded, **self._options
            )
            self._opened.add_key_value_metadata(self._metadata)
        return self._opened

    def add(self, rows: pa.Table) -> None:
        """Write rows. They wait until a row group is full. Where it ends depends on the rows only, not on how they come."""
        sizes = row_ends(rows)
        done = 0
        while done < rows.num_rows:
            room = self._layout.group_bytes - self._held_bytes
            fitting = int(np.searchsorted(sizes, sizes[done] + room, "right")) - 1 - done
            n = min(self._layout.group_rows - self._held_rows, fitting, rows.num_rows - done)
            if n <= 0 and self._held_rows:
                self._flush()
                continue
            n = max(n, 1)  # of a row that does not fit
            self._held.append(rows[done : done + n])
            self._held_rows += n
            self._held_bytes += int(sizes[done + n] - sizes[done])
            self.rows += n
            done += n
            if self._held_rows == self._layout.group_rows:
                self._flush()

    @property
    def room(self) -> int:
        """Rows until the row group is full."""
        return self._layout.group_rows - self._held_rows

    def reaches(self, size: int) -> bool:
        """Whether another row group would leave the file farther from `size` bytes than it is now."""
        if self._held_rows or not self.groups:
            return False
        there = int(self._stream.tell())
        return there + there // self.groups // 2 >= size

    def _flush(self) -> None:
        if not self._held:
            return
        # in one piece: where pages end does not depend on how the rows came
        columns = [[t.column(i) for t in self._held] for i in range(len(self._schema))]
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        table = pa.Table.from_arrays([_joined(c) for c in columns], schema=self._schema)
        self._writer(table).write_table(table, row_group_size=table.num_rows)
        self.groups += 1

    def close(self) -> None:
        """Write what waits, and the footer."""
        self._flush()
        self._writer(self._schema.empty_table()).close()
        self._stream.close()

    def abandon(self) -> None:
        """Let go of the file, which is not wanted."""
        self._held = []
        self._sink.drops = True
        with suppress(OSError, pa.ArrowException):
            if self._opened is not None:
                self._opened.close()  # else the garbage collector would
            self._stream.close()


def _coded(rows: pa.Table, options: dict[str, Any]) -> bool | list[str]:
    """The paths of the leaves that get dictionaries, or whether all do.

    A writer gives up a dictionary that outgrows its limit. The pages before would need all of it, those behind have none. So a
    column whose values outgrow it has none from the start. Nested columns are left to the writer, but for a field `b` of a struct
    `a` where a column is called `a.b`: the writer takes both by this name.
    """
    plain = {rows.schema.names[i] for i, column in enumerate(rows.columns) if _outgrows(column)}
    if not plain:
        return True
    empty = pa.BufferOutputStream()
    with pq.ParquetWriter(empty, rows.schema, **options):
        pass  # the file tells the paths of leaves
    schema = pq.ParquetFile(empty.getvalue()).schema
    paths = [schema.column(i).path for i in range(len(schema))]
    return [path for path in paths if path not in plain]


def _outgrows(column: pa.ChunkedArray) -> bool:
    """Whether the different values of a flat column take more bytes than a dictionary may."""
    while isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)  # fmt: skip
    if pa.types.is_nested(column.type):
        return False
    whole = len(column) <= SAMPLED
    some = column if whole else column.take(pa.array(spread_rows(SAMPLED, len(column))))
    try:
        size = _stored_bytes(some.unique())
    except pa.ArrowNotImplementedError:  # a type that Arrow cannot compare
        return False
    return size > DICTIONARY_BYTES * (1 if whole else SEEN)


def _stored_bytes(values: pa.Array) -> int:
    """The bytes of values in a page of PLAIN (Parquet's Encodings.md)."""
    t, kind = pa.types, values.type
    if t.is_large_string(kind) or t.is_large_binary(kind):
        return int(values.nbytes) - 4 * len(values)
    if t.is_integer(kind) and kind.bit_width < 32:
        return 4 * len(values)
    if t.is_decimal(kind) and kind.precision <= 18:
        return (4 if kind.precision <= 9 else 8) * len(values)
    return int(values.nbytes)


def _joined(parts: list[pa.ChunkedArray]) -> pa.Array:
    """One array of several, which are let go."""
    made = pa.concat_arrays([chunk for part in parts for chunk in part.chunks])
    parts.clear()
    return made
