"""Values of Arrow as numbers whose differences are exact: a double holds no more than 53 bits of an integer."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.compute as pc

Number = int | float
WIDEST = decimal.Context(prec=100)  # more digits than any decimal of Arrow has


def exact_numbers(values: pa.Array) -> list[Number | None] | None:
    """Numbers and times: integers as they are, decimals and times as integers of their unit, floats as doubles, truth as 0 and 1.

    None in place of nulls and NaN. None for values of other types.
    """
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    kind, types = values.type, pa.types
    if types.is_temporal(kind) and not types.is_interval(kind):
        return list(values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())
    if types.is_boolean(kind):
        return list(values.cast(pa.int8()).to_pylist())
    if types.is_integer(kind):
        return list(values.to_pylist())
    if types.is_decimal(kind):
        return [
            None if value is None else int(WIDEST.scaleb(value, kind.scale))
            for value in values.to_pylist()
        ]
    if types.is_floating(kind):
        found = pc.cast(values, pa.float64()).to_pylist()
        return [value if value is not None and value == value else None for value in found]
    return None


def one_of(kind: pa.DataType) -> int:
    """The number that stands for 1 of a type."""
    return int(10**kind.scale) if pa.types.is_decimal(kind) else 1
