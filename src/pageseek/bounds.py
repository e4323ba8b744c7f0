"""Least and greatest values as a file states them: whether they may be trusted, and as zones to probe.

Sources: parquet.thrift (Statistics, ColumnIndex, ColumnOrder).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import decode, rows
from pageseek.schema import (
    ABSENT,
    FIXED,
    FLOAT_KINDS,
    INT96,
    L_GEOGRAPHY,
    L_GEOMETRY,
    L_UNKNOWN,
    L_VARIANT,
    Form,
    Leaf,
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


def zones_of(
    form: Form,
    data: memoryview,
    bounds: npt.NDArray[np.int64],
    null_pages: npt.NDArray[np.uint8] | None,
    null_counts: npt.NDArray[np.int64] | None,
    nan_counts: npt.NDArray[np.int64] | None,
    counts: npt.NDArray[np.int64],
    order: int,
) -> tuple[rows.Zones, pa.Array, pa.Array]:
    """Zones, and their bounds as Arrow arrays, from (offset, length) of min and max in `data`."""
    n = bounds.shape[1]
    bounds = np.ascontiguousarray(
        np.where((bounds[0] == ABSENT) | (bounds[2] == ABSENT), ABSENT, bounds)
    )
    sizes = np.maximum(bounds[[1, 3]], 0)
    lo, lo_offsets, lo_known = decode.convert_plain(form.core, data, bounds[0], sizes[0], n)
    hi, hi_offsets, hi_known = decode.convert_plain(form.core, data, bounds[2], sizes[1], n)
    known = np.frombuffer(lo_known, np.uint8) & np.frombuffer(hi_known, np.uint8)
    zones = rows.Zones(
        form.kind,
        form.width,
        n,
        lo,
        lo_offsets,
        hi,
        hi_offsets,
        known,
        null_pages,
        null_counts,
        nan_counts,
        counts,
        order,
    )
    validity = np.packbits(known, bitorder="little")
    missing = int(n - known.sum())
    lower = to_arrow(form, n, missing, validity, lo_offsets, lo)
    upper = to_arrow(form, n, missing, validity, hi_offsets, hi)
    return zones, lower, upper
