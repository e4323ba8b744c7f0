"""The values of a column: how many, the least, and the greatest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.base.late_modules import compute as pc
from pageseek.format.bounds import ChunkValues
from pageseek.format.types import as_type

# types that Arrow's kernels do not order, and the types that stand for them
_ORDERED = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
    pa.float16(): pa.float32(),
}
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class ColumnValues:
    """The values of one column that are known so far: how many, the least and the greatest. `nan`: whether there is NaN."""

    __slots__ = ("below", "count", "high", "low", "name", "nan")

    def __init__(self, name: str, below: tuple[str, ...]) -> None:
        self.name, self.below = name, below
        self.count = 0
        self.low: pa.Scalar | None = None
        self.high: pa.Scalar | None = None
        self.nan = False

    def take(self, low: pa.Scalar, high: pa.Scalar) -> None:
        """Add values, of which these are the least and the greatest."""
        if low.is_valid and (self.low is None or less(low, self.low)):
            self.low = low
        if high.is_valid and (self.high is None or less(self.high, high)):
            self.high = high

    def declared(self, num_rows: int, found: ChunkValues) -> None:
        """Add rows by their statistics."""
        self.count += num_rows - (found.null_count or 0)
        low, high = found.min, found.max
        if low is not None or high is not None:
            kind = plain(high if low is None else low).type
            none = pa.scalar(None, kind)
            self.take(none if low is None else plain(low), none if high is None else plain(high))

    def read(self, values: pa.ChunkedArray) -> None:
        """Add values."""
        values = plain(values)
        self.count += len(values) - values.null_count
        if pa.types.is_floating(values.type):
            numbers = values.filter(pc.invert(pc.is_nan(values)))
            self.nan |= len(numbers) + values.null_count < len(values)
            values = numbers
        if len(values) > values.null_count:
            found = pc.min_max(values)
            self.take(found["min"], found["max"])

    def figure(self, function: str, kind: pa.DataType, nan_largest: bool) -> pa.Array:
        """The answer of a function. `kind`: the type of the column, and of its least and greatest value."""
        if function == "count":
            return pa.array([self.count], pa.int64())
        found = self.low if function == "min" else self.high
        if self.nan and (found is None or (nan_largest and function == "max")):
            return pa.array([float("nan")], pa.float64()).cast(kind)
        if found is not None and pa.types.is_floating(found.type) and found.as_py() == 0:
            # -0.0 is equal, and statistics do not tell them apart (parquet.thrift, ColumnOrder)
            found = pa.scalar(0.0, found.type)
        if found is None:
            return pa.nulls(1, kind)
        try:
            if pa.types.is_timestamp(kind):
                return pa.array([found]).cast(pa.timestamp(kind.unit)).view(kind)
            return as_type(pa.array([found]), kind)
        except pa.ArrowInvalid as error:
            raise UnsupportedError(
                f"aggregate: column {'.'.join((self.name, *self.below))!r}: the {function} does not fit {kind}, its type among "
                f"all files: {error}"
            ) from error


def plain(values: Any) -> Any:
    """Values, or one, in a type that Arrow's kernels order."""
    t, kind = pa.types, values.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(values.cast(kind.storage_type))
    if t.is_dictionary(kind):
        return plain(values.cast(kind.value_type))
    if kind in _ORDERED:
        return values.cast(_ORDERED[kind])
    if t.is_decimal32(kind) or t.is_decimal64(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if (
        t.is_timestamp(kind) and kind.tz is not None
    ):  # files may name other zones, of the same instants
        return values.cast(pa.timestamp(kind.unit))
    return values.cast(pa.int64()) if t.is_duration(kind) else values


def zoned(values: Any, kind: pa.DataType) -> Any:
    """Timestamps, or one, of the same numbers with the zone of a type: a table may have another than its file."""
    own = values.type if values is not None else kind
    if own == kind or not pa.types.is_timestamp(own) or not pa.types.is_timestamp(kind):
        return values
    made = pa.timestamp(own.unit, kind.tz)
    return pa.scalar(values.value, made) if isinstance(values, pa.Scalar) else values.view(made)


def less(one: pa.Scalar, other: pa.Scalar) -> bool:
    """Whether one value comes before another. Files may have them in different types."""
    if one.type != other.type and _is_number(one.type) and _is_number(other.type):
        return bool(one.as_py() < other.as_py())  # exact, where Arrow would round integers
    if (
        one.type != other.type
        and pa.types.is_timestamp(one.type)
        and pa.types.is_timestamp(other.type)
    ):
        # of each unit, where Arrow needs both in the finer one
        units = _NANOSECONDS[one.type.unit], _NANOSECONDS[other.type.unit]
        return bool(one.value * units[0] < other.value * units[1])
    try:
        return bool(pc.less(one, other).as_py())
    except pa.ArrowInvalid as error:
        raise UnsupportedError(
            f"aggregate: values of {one.type} and {other.type} cannot be compared: {error}"
        ) from error


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
