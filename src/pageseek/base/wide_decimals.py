"""Decimals of 32 and 64 bits as decimals of 128 bits, for engines that take all decimals for such."""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa

from pageseek.base.mapped_types import mapped_field

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def has_narrow_decimals(schema: pa.Schema) -> bool:
    """Whether a column has decimals of 32 or 64 bits, also in lists and structs."""
    return any(mapped_field(field, _wide) is not field for field in schema)


def with_wide_decimals(rows: Rows) -> Rows:
    """The same rows; decimals of 32 and 64 bits have 128 bits."""
    fields = [mapped_field(field, _wide) for field in rows.schema]
    return rows.cast(pa.schema(fields, rows.schema.metadata))


def _wide(kind: Any) -> Any:
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind
