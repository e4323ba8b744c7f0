"""Tables and batches from columns of arrays; they keep their rows where there are no columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def table_of(schema: pa.Schema, n: int, columns: list[list[pa.Array]]) -> pa.Table:
    """A table of n rows; its columns may be cut into arrays at different rows."""
    if not columns:
        empty = pa.StructArray.from_buffers(pa.struct([]), n, [None])
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty)])
    single = []
    for arrays in columns:
        if len(arrays) != 1:
            break
        single.append(arrays[0])
    else:  # by way of a batch: making chunked arrays takes three times as long
        batch = pa.RecordBatch.from_arrays(single, schema=schema)
        return pa.Table.from_batches([batch], schema=schema)
    return pa.Table.from_arrays(
        [pa.chunked_array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def batches_of(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    """Record batches of at most `size` rows, also of a table without columns."""
    if table.num_columns:
        yield from table.to_batches(max_chunksize=size)
        return
    for start in range(0, table.num_rows, size):
        empty = pa.StructArray.from_buffers(
            pa.struct([]), min(size, table.num_rows - start), [None]
        )
        yield pa.RecordBatch.from_struct_array(empty)
