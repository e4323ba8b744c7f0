"""Rows of a table as its files have them: columns, and fields inside, may have other names there, and be required."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def renamed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in a schema of the same layout, whose columns and fields inside may have other names.

    A field that is required is null where the struct or the list around it is: the writer wants values there, and writes none. If
    it is null elsewhere the file is not what was read, which is found when it is read again.
    """
    columns = [
        column
        if column.type == field.type and not _requires(field.type)
        else pa.chunked_array([_stored(chunk, field) for chunk in column.chunks], field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _requires(kind: pa.DataType) -> bool:
    """Whether a field inside of a type is required."""
    if pa.types.is_map(kind):
        inner = [kind.key_field.with_nullable(True), kind.item_field]
    else:
        inner = [kind.field(i) for i in range(kind.num_fields)]
    return any(not field.nullable or _requires(field.type) for field in inner)


def _stored(array: pa.Array, field: pa.Field) -> pa.Array:
    t, kind = pa.types, field.type
    null = array.is_null() if field.nullable and array.null_count else None
    if t.is_struct(kind):
        inner = [_stored(array.field(i), kind.field(i)) for i in range(kind.num_fields)]
        if not inner:
            return array.cast(kind)
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=null)
    if t.is_map(kind):
        keys, items = _stored(array.keys, kind.key_field), _stored(array.items, kind.item_field)
        return pa.MapArray.from_arrays(_ends(array, null), keys, items, type=kind)
    if t.is_list(kind):
        inner = _stored(array.values, kind.value_field)
        return pa.ListArray.from_arrays(_ends(array, null), inner, type=kind)
    if field.nullable or not array.null_count:
        return array
    if isinstance(array, pa.ExtensionArray):
        plain = _stored(array.storage, pa.field("", kind.storage_type, False))
        return pa.ExtensionArray.from_storage(kind, plain)
    buffers = [None, *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, 0, array.offset)


def _ends(array: pa.Array, null: pa.Array | None) -> pa.Array:
    """Where the elements of lists begin and end; null for a list that is."""
    ends = array.offsets.to_numpy()
    if null is None:
        return pa.array(ends, pa.int32())
    return pa.array(ends, pa.int32(), mask=np.append(null.to_numpy(zero_copy_only=False), False))
