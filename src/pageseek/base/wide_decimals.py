"""Decimals of 32 and 64 bits as decimals of 128 bits, for engines that take all decimals for such."""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def has_narrow_decimals(schema: pa.Schema) -> bool:
    """Whether a column has decimals of 32 or 64 bits, also in lists and structs."""
    return any(_wide_field(field) is not field for field in schema)


def with_wide_decimals(rows: Rows) -> Rows:
    """The same rows; decimals of 32 and 64 bits have 128 bits."""
    return rows.cast(pa.schema(map(_wide_field, rows.schema), rows.schema.metadata))


def _wide_field(field: pa.Field) -> pa.Field:
    kind = _wide(field.type)
    return field if kind is field.type else field.with_type(kind)


def _wide(kind: Any) -> Any:
    """The type with wide decimals; the object itself where it has no narrow one."""
    t = pa.types
    if t.is_decimal32(kind) or t.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if not t.is_nested(kind):
        return kind
    old = [kind.field(i) for i in range(kind.num_fields)]
    new = [_wide_field(field) for field in old]
    if all(one is other for one, other in zip(new, old, strict=True)):
        return kind
    if t.is_struct(kind):
        return pa.struct(new)
    if t.is_map(kind):
        return pa.map_(_wide(kind.key_type), _wide_field(kind.item_field), kind.keys_sorted)
    if t.is_fixed_size_list(kind):
        return pa.list_(new[0], kind.list_size)
    return pa.large_list(new[0]) if t.is_large_list(kind) else pa.list_(new[0])
