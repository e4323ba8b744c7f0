"""The bytes of rows in memory, row by row: they do not depend on how rows are cut into batches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]


def row_ends(rows: pa.Table) -> Int64s:
    """Where each row ends, if the values of all rows lay one behind the other.

    Returns
    -------
    int64 array of shape (rows + 1,)
        In bytes, from 0. Bits of validity are not counted.
    """
    made = np.zeros(rows.num_rows + 1, np.int64)
    for column in rows.columns:
        at = size = 0
        for chunk in column.chunks:
            ends = _ends(chunk)
            made[at + 1 : at + len(chunk) + 1] += ends[1:] + size
            at, size = at + len(chunk), size + int(ends[-1])
    return made


def _ends(values: pa.Array) -> Int64s:
    """Where each value ends."""
    t, kind, n = pa.types, values.type, len(values)
    every = np.arange(n + 1, dtype=np.int64)
    if n == 0 or t.is_null(kind):
        return 0 * every
    if isinstance(values, pa.ExtensionArray):
        return _ends(values.storage)
    if t.is_dictionary(kind):
        return _ends(values.indices)
    if t.is_struct(kind):
        return sum([_ends(values.field(i)) for i in range(kind.num_fields)], 0 * every)
    made: Int64s
    if t.is_fixed_size_list(kind):
        size = int(kind.list_size)
        first = int(values.offset) * size
        made = _ends(values.values[first : first + n * size])[every * size]
        return made
    if t.is_list_view(kind) or t.is_large_list_view(kind):
        return _ends(values.cast(pa.large_list(kind.value_field)))
    if t.is_list(kind) or t.is_large_list(kind) or t.is_map(kind):
        places: Int64s = values.offsets.to_numpy().astype(np.int64)
        start, stop = int(places[0]), int(places[-1])
        parts = [values.keys, values.items] if t.is_map(kind) else [values.values]
        made = 4 * every
        for part in parts:
            made += _ends(part[start:stop])[places - start]
        return made
    large = t.is_large_string(kind) or t.is_large_binary(kind)
    if large or t.is_string(kind) or t.is_binary(kind):
        raw = np.frombuffer(values.buffers()[1], np.int64 if large else np.int32)
        places = raw[values.offset : values.offset + n + 1].astype(np.int64)
        made = places - places[0] + 4 * every
        return made
    width = 1 if t.is_boolean(kind) else int(kind.byte_width)
    made = width * every
    return made
