"""Least and greatest values as a file states them: whether they may be trusted, and as zones to probe.

Sources: parquet.thrift (Statistics, ColumnIndex, ColumnOrder).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import decode, rows
from pageseek.schema import Leaf
from pageseek.types import (
    ABSENT,
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


def trusted_order(leaf: Leaf, orders: npt.NDArray[np.int64]) -> bool:
    """May min_value and max_value be compared by the type's own order (parquet.thrift, ColumnOrder)?"""
    if leaf.index >= len(orders):
        return False
    order, logical = int(orders[leaf.index]), logical_of(leaf.element)[0]
    if order not in (TYPE_ORDER, IEEE754_ORDER):
        return False
    if leaf.element.type == FIXED and logical == L_TIMESTAMP:  # not settled among writers
        return False
    if leaf.element.type == INT96 or leaf.element.converted_type == 21:  # INTERVAL has no order
        return False
    return (
        logical not in (L_VARIANT, L_GEOMETRY, L_GEOGRAPHY, L_UNKNOWN) and leaf.element.logical != 0
    )


def signed_order(leaf: Leaf, form: Form) -> bool:
    """The deprecated min and max were always compared as signed (parquet.thrift, Statistics)."""
    return form.kind in (
        rows.KIND_I8,
        rows.KIND_I16,
        rows.KIND_I32,
        rows.KIND_I64,
        *FLOAT_KINDS,
    ) and (leaf.element.type not in (INT96, FIXED))


class Bounds:
    """The least and greatest value of n pages or row groups: as zones to probe, and as Arrow arrays."""

    def __init__(
        self,
        form: Form,
        data: memoryview,
        places: npt.NDArray[np.int64],
        null_pages: npt.NDArray[np.uint8] | None,
        null_counts: npt.NDArray[np.int64] | None,
        nan_counts: npt.NDArray[np.int64] | None,
        counts: npt.NDArray[np.int64],
        order: int,
    ) -> None:
        """`places`: offset and length of min, then of max, in `data`, ABSENT where there is none; overwritten."""
        self._form, self._n = form, places.shape[1]
        missing = (places[0] == ABSENT) | (places[2] == ABSENT)
        if missing.any():  # one side alone proves nothing
            places[:, missing] = ABSENT
        self._lower = decode.convert_plain(form.core, data, places[0], places[1], self._n)
        self._upper = decode.convert_plain(form.core, data, places[2], places[3], self._n)
        self._known = np.frombuffer(self._lower[2], np.uint8) & np.frombuffer(
            self._upper[2], np.uint8
        )
        lo, lo_offsets, _ = self._lower
        hi, hi_offsets, _ = self._upper
        self.zones = rows.Zones(
            form.kind, form.width, self._n, lo, lo_offsets, hi, hi_offsets, self._known,
            null_pages, null_counts, nan_counts, counts, order,
        )  # fmt: skip

    def _array(self, values: Any, offsets: Any) -> pa.Array:
        validity = np.packbits(self._known, bitorder="little")
        missing = int(self._n - self._known.sum())
        return to_arrow(self._form, self._n, missing, validity, offsets, values)

    @functools.cached_property
    def lower(self) -> pa.Array:
        """The least values, null where there is none that may be trusted."""
        return self._array(self._lower[0], self._lower[1])

    @functools.cached_property
    def upper(self) -> pa.Array:
        """The greatest values, null where there is none that may be trusted."""
        return self._array(self._upper[0], self._upper[1])
