"""Least and greatest values as a file states them: whether they may be trusted, and as zones to probe.

Sources: parquet.thrift (Statistics, ColumnIndex, ColumnOrder).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import convert, rows
from pageseek.schema import Leaf
from pageseek.types import (
    BYTE_ARRAY,
    FIXED,
    FLOAT_KINDS,
    INT96,
    L_GEOGRAPHY,
    L_GEOMETRY,
    L_TIMESTAMP,
    L_UNKNOWN,
    L_VARIANT,
    Form,
    logical_of,
    to_arrow,
)

TYPE_ORDER, IEEE754_ORDER = 1, 2
_SIGNED = FLOAT_KINDS | {rows.KIND_I8, rows.KIND_I16, rows.KIND_I32, rows.KIND_I64}


def trusted_order(leaf: Leaf, orders: memoryview) -> bool:
    """May min_value and max_value be compared by the type's own order (parquet.thrift, ColumnOrder)?"""
    if leaf.index >= len(orders):
        return False
    order, logical = orders[leaf.index], logical_of(leaf.element)[0]
    if order not in (TYPE_ORDER, IEEE754_ORDER):
        return False
    if leaf.element.type == FIXED and logical == L_TIMESTAMP:  # not settled among writers
        return False
    if leaf.element.type == INT96 or leaf.element.converted_type == 21:  # INTERVAL has no order
        return False
    return (
        logical not in (L_VARIANT, L_GEOMETRY, L_GEOGRAPHY, L_UNKNOWN) and leaf.element.logical != 0
    )


def believed(leaf: Leaf, arrow_version: int | None, stored: pa.Field | None) -> tuple[bool, bool]:
    """Whether bounds, and counts of nulls, are those of the data: of chunks and of pages alike.

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


def signed_order(leaf: Leaf, form: Form) -> bool:
    """The deprecated min and max were always compared as signed (parquet.thrift, Statistics)."""
    return form.kind in _SIGNED and leaf.element.type not in (INT96, FIXED)


class Bounds:
    """The least and greatest value of n pages or row groups: as zones to probe, and as Arrow arrays."""

    def __init__(
        self,
        form: Form,
        data: memoryview,
        places: bytes,
        n: int,
        null_pages: bytes | None,
        null_counts: bytes | None,
        nan_counts: bytes | None,
        counts: bytes,
        order: int,
    ) -> None:
        """`places`: offsets and lengths of the n minima, then of the maxima, in `data`, ABSENT where there are
        none. All are arrays of int64, but `null_pages` of one byte each.
        """
        self._form, self._n = form, n
        low, low_offsets, high, high_offsets, self._known = convert.convert_bounds(
            form.core, data, places, n
        )
        self._lower, self._upper = (low, low_offsets), (high, high_offsets)
        self.zones = rows.Zones(
            form.kind, form.width, n, low, low_offsets, high, high_offsets, self._known,
            null_pages, null_counts, nan_counts, counts, order,
        )  # fmt: skip

    def _array(self, values: Any, offsets: Any) -> pa.Array:
        known = np.frombuffer(self._known, np.uint8)
        validity = np.packbits(known, bitorder="little")
        missing = int(self._n - known.sum())
        return to_arrow(self._form, self._n, missing, validity, offsets, values)

    @functools.cached_property
    def lower(self) -> pa.Array:
        """The least values, null where there is none that may be trusted."""
        return self._array(*self._lower)

    @functools.cached_property
    def upper(self) -> pa.Array:
        """The greatest values, null where there is none that may be trusted."""
        return self._array(*self._upper)
