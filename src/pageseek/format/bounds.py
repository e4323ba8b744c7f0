"""Least and greatest values as a file states them: whether they may be trusted, and as zones to probe.

Sources: parquet.thrift (Statistics, ColumnIndex, ColumnOrder).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import convert, rows
from pageseek.base.errors import LimitError
from pageseek.base.limits import DEFAULT
from pageseek.base.records import dataclass
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    FLOAT_KINDS,
    INT96,
    K_BYTES,
    K_FIXED,
    K_LARGE_BYTES,
    L_BSON,
    L_DATE,
    L_DECIMAL,
    L_ENUM,
    L_FLOAT16,
    L_INTEGER,
    L_JSON,
    L_STRING,
    L_TIME,
    L_TIMESTAMP,
    L_UUID,
    LeafType,
    logical_of,
    to_arrow,
)

_UNORDERED = (1, 2, 3, 21)  # ConvertedType: MAP, MAP_KEY_VALUE, LIST, INTERVAL
_ORDERED = frozenset(  # LogicalType; 0: none
    (0, L_STRING, L_ENUM, L_DECIMAL, L_DATE, L_TIME, L_TIMESTAMP, L_INTEGER, L_JSON, L_BSON, L_UUID, L_FLOAT16)
)  # fmt: skip
TYPE_ORDER, IEEE754_ORDER, INT96_ORDER = 1, 2, 3
_SIGNED = FLOAT_KINDS | {rows.KIND_I8, rows.KIND_I16, rows.KIND_I32, rows.KIND_I64}


def has_order(leaf: Leaf) -> bool:
    """Whether the format gives the values of a leaf an order of their own (parquet.thrift, ColumnOrder)."""
    element = leaf.element
    logical = logical_of(element)[0]
    if element.type == FIXED and logical == L_TIMESTAMP:  # writers disagree
        return False
    if element.type == INT96 or element.converted_type in _UNORDERED:
        return False
    return logical in _ORDERED and element.logical != 0


def trusted_order(leaf: Leaf, orders: memoryview) -> bool:
    """May min_value and max_value be compared as the values of the leaf are (parquet.thrift, ColumnOrder)?"""
    if leaf.index >= len(orders):
        return False
    order, physical = orders[leaf.index], leaf.element.type
    if physical == INT96:
        return bool(order == INT96_ORDER)
    if order == IEEE754_ORDER:  # for floats only
        half = physical == FIXED and logical_of(leaf.element)[0] == L_FLOAT16
        return half or physical in (FLOAT, DOUBLE)
    return bool(order == TYPE_ORDER) and has_order(leaf)


def usable_statistics(
    leaf: Leaf, arrow_version: int | None, stored: pa.Field | None
) -> tuple[bool, bool]:
    """Whether bounds, and counts of nulls, are those of the data: both of chunks and of pages.

    Arrow C++ writes dictionary arrays by a way of its own. Before version 12 their statistics are those of
    the first batch (arrow GH-15042); nulls of the structs around them are not counted to this day.

    Parameters
    ----------
    arrow_version : int or None
        The major version of Arrow C++, where that wrote the file.
    stored : pyarrow.Field or None
        The top-level field in the Arrow schema that the writer left.
    """
    if leaf.element.type != BYTE_ARRAY or arrow_version is None:
        return True, True
    old = arrow_version < 12
    if (not old and len(leaf.path) == 1) or (
        stored is not None and "dictionary" not in str(stored.type)
    ):
        return True, True
    return not old, False


def signed_order(leaf: Leaf, leaf_type: LeafType) -> bool:
    """The deprecated min and max were always compared as signed (parquet.thrift, Statistics)."""
    return leaf_type.kind in _SIGNED and leaf.element.type not in (INT96, FIXED)


def declares_values(leaf: Leaf, leaf_type: LeafType) -> bool:
    """Whether bounds that do not say that they are exact are values all the same: nothing shorter would do."""
    return (
        leaf_type.kind not in (K_BYTES, K_LARGE_BYTES, K_FIXED) and leaf.element.type != BYTE_ARRAY
    )


@dataclass(frozen=True, slots=True)
class ChunkValues:
    """What the footer says of the values of one column chunk, as far as it can be believed; None: not known.

    Attributes
    ----------
    lower, upper : pyarrow.Scalar or None
        No value but null and NaN lies outside. A zero may be of the other sign.
    min, max : pyarrow.Scalar or None
        The same where it is the least or greatest value itself, NaN left out, and not a shorter bound.
    null_count, nan_count : int or None
        nan_count is 0 for what is no float.
    """

    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    min: pa.Scalar | None = None
    max: pa.Scalar | None = None
    null_count: int | None = None
    nan_count: int | None = None


class Bounds:
    """The least and greatest value of n pages or row groups: as zones to probe, and as Arrow arrays."""

    def __init__(
        self,
        leaf_type: LeafType,
        data: memoryview,
        places: bytes,
        n: int,
        null_pages: bytes | None,
        null_counts: bytes | None,
        nan_counts: bytes | None,
        counts: bytes,
        order: int,
        max_bytes: int = DEFAULT.max_metadata_bytes,
    ) -> None:
        """`places`: offsets and lengths of the n minima, then of the maxima, in `data`, ABSENT where there are
        none. All are arrays of int64, but `null_pages` of one byte each. `max_bytes`: what the least, or the
        greatest, values may take as an array.
        """
        self._leaf_type, self._n, self._max_bytes = leaf_type, n, max_bytes
        low, low_offsets, high, high_offsets, known = convert.convert_bounds(
            leaf_type.core, data, places, n
        )
        self._lower, self._upper = (low, low_offsets), (high, high_offsets)
        self.zones = rows.Zones(
            leaf_type.kind, leaf_type.width, n, low, low_offsets, high, high_offsets, known,
            null_pages, null_counts, nan_counts, counts, order,
        )  # fmt: skip

    def _array(self, values: Any, offsets: Any) -> pa.Array:
        known = np.frombuffer(self.zones.known, np.uint8)  # not those that contradict each other
        validity = np.packbits(known, bitorder="little")
        missing = int(self._n - known.sum())
        if self._leaf_type.kind != K_FIXED:
            return to_arrow(self._leaf_type, self._n, missing, validity, offsets, values)
        width = self._leaf_type.width
        if width == 0:
            return to_arrow(self._leaf_type, self._n, missing, validity, None, values)
        if self._n * width > self._max_bytes:  # where there is none, too, Arrow has room for one
            raise LimitError(
                f"{self._n} bounds of {width} bytes are more than the limit of {self._max_bytes}; "
                "raise it with max_metadata_bytes"
            )
        places = np.frombuffer(offsets, np.int32)[:-1] // width
        there = to_arrow(self._leaf_type, len(values) // width, 0, None, None, values)
        return there.take(pa.array(places, mask=known == 0))

    def pair(self, i: int) -> tuple[pa.Scalar, pa.Scalar] | None:
        """The bounds of one page or row group; None where they are missing or contradict each other."""
        if not self.zones.known[i]:
            return None
        if self._leaf_type.kind == K_FIXED:  # an array has room for all, there or not
            return self._one(*self._lower, i), self._one(*self._upper, i)
        return self.lower[i], self.upper[i]

    def _one(self, values: Any, offsets: Any, i: int) -> pa.Scalar:
        start, width = int(np.frombuffer(offsets, np.int32)[i]), self._leaf_type.width
        return to_arrow(
            self._leaf_type, 1, 0, None, None, memoryview(values)[start : start + width]
        )[0]

    @functools.cached_property
    def lower(self) -> pa.Array:
        """The least values, null where there is none that may be trusted."""
        return self._array(*self._lower)

    @functools.cached_property
    def upper(self) -> pa.Array:
        """The greatest values, null where there is none that may be trusted."""
        return self._array(*self._upper)
