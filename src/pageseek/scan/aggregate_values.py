"""The values of a column, counted, with the least and the greatest of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pageseek.format.bounds import ChunkValues


class ColumnValues:
    """What is known of one column so far: how many values, the least and the greatest; NaN apart."""

    __slots__ = ("below", "count", "high", "low", "name", "nan")

    def __init__(self, name: str, below: tuple[str, ...]) -> None:
        self.name, self.below = name, below
        self.count = 0
        self.low: pa.Scalar | None = None
        self.high: pa.Scalar | None = None
        self.nan = False

    def take(self, low: pa.Scalar, high: pa.Scalar) -> None:
        """Further values of which these are the least and the greatest."""
        if low.is_valid and (self.low is None or less(low, self.low)):
            self.low = low
        if high.is_valid and (self.high is None or less(self.high, high)):
            self.high = high

    def declared(self, num_rows: int, found: ChunkValues) -> None:
        """Further rows of which statistics tell."""
        self.count += num_rows - (found.null_count or 0)
        low, high = found.min, found.max
        if low is not None or high is not None:
            kind = plain(high if low is None else low).type
            none = pa.scalar(None, kind)
            self.take(none if low is None else plain(low), none if high is None else plain(high))

    def read(self, values: pa.ChunkedArray) -> None:
        """Further values."""
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
        """The answer; the least or greatest value is of the column's own type."""
        if function == "count":
            return pa.array([self.count], pa.int64())
        found = self.low if function == "min" else self.high
        if self.nan and (found is None or (nan_largest and function == "max")):
            return pa.array([float("nan")], pa.float64()).cast(kind)
        if found is not None and pa.types.is_floating(found.type) and found.as_py() == 0:
            # -0.0 is as great, and statistics tell neither from the other (parquet.thrift, ColumnOrder)
            found = pa.scalar(0.0, found.type)
        return _cast(pa.nulls(1, kind) if found is None else pa.array([found]), kind)


def plain(values: Any) -> Any:
    """Values of a type that Arrow's kernels order."""
    t, kind = pa.types, values.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(values.cast(kind.storage_type))
    if t.is_dictionary(kind):
        return plain(values.cast(kind.value_type))
    for view, large in (
        (pa.string_view(), pa.large_string()),
        (pa.binary_view(), pa.large_binary()),
    ):
        if kind == view:
            return values.cast(large)
    if t.is_decimal32(kind) or t.is_decimal64(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    if t.is_float16(kind):
        return values.cast(pa.float32())
    return values.cast(pa.int64()) if t.is_duration(kind) else values


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _cast(values, kind.storage_type))
    if pa.types.is_dictionary(kind):
        return _cast(values, kind.value_type).dictionary_encode().cast(kind)
    return values.cast(kind)


def less(one: pa.Scalar, other: pa.Scalar) -> bool:
    return bool(pc.less(one, other).as_py())
