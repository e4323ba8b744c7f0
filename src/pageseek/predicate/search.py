"""Binary search in ascending Arrow arrays, by the kernels. Comparisons mean what they mean in filters."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import UnsupportedError
from pageseek.base.late_modules import npt
from pageseek.base.tracebacks import short_traceback
from pageseek.format.types import BYTES_KINDS, K_BOOL, K_BYTES, LeafType
from pageseek.predicate.constant_column import constant_leaf_type
from pageseek.predicate.in_literals import pack_literals
from pageseek.predicate.literal import exact, fit

__all__ = ["lower_bound", "upper_bound"]

Sorted: TypeAlias = pa.Array | npt.NDArray[Any]


@short_traceback
def lower_bound(values: Sorted, value: Any) -> int:
    """The first place in an ascending array whose value is not less than `value`.

    With `upper_bound` it gives the rows equal to a value as `range(lower_bound(a, v), upper_bound(a, v))`. Like
    `numpy.searchsorted(values, value, "left")`, for every type that can be filtered, without a copy.

    Parameters
    ----------
    values : pyarrow.Array or numpy.ndarray of shape (n,)
        Ascending, without nulls and NaN. An array that does not ascend gives some place.
        Booleans, integers, floats, decimals, dates, times, timestamps, durations, strings and binary.
    value : Any
        What the values may be compared with in a filter: a Python value or a pyarrow or numpy scalar. It is
        compared exactly: 2.5 lies between the integers 2 and 3, 300 above every int8. NaN is above every number,
        and both zeros are equal.

    Returns
    -------
    int
        From 0 to n; n if all values are less.

    Raises
    ------
    PredicateError
        The value cannot be compared with this type.
    UnsupportedError
        A type without an order, or one that filters do not support.
    ValueError
        The array holds nulls, has more than one dimension, or the value is null.
    TypeError
        `values` is no array.

    Examples
    --------
    >>> import pyarrow as pa, pageseek
    >>> pageseek.lower_bound(pa.array([10, 20, 20, 30]), 20)
    1
    """
    return _search(values, value, ">=")


@short_traceback
def upper_bound(values: Sorted, value: Any) -> int:
    """The first place in an ascending array whose value is greater than `value`.

    Parameters, errors and meaning as in `lower_bound`; like `numpy.searchsorted(values, value, "right")`.

    Examples
    --------
    >>> import pyarrow as pa, pageseek
    >>> pageseek.upper_bound(pa.array([10, 20, 20, 30]), 20)
    3
    """
    return _search(values, value, ">")


def _search(values: Sorted, value: Any, op: str) -> int:
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"values of {values.ndim} dimensions: one is searched")
        values = pa.array(values)
    if not isinstance(values, pa.Array):
        remedy = "; combine its chunks" if isinstance(values, pa.ChunkedArray) else ""
        raise TypeError(f"values of {type(values).__name__}: a pyarrow or numpy array{remedy}")
    if values.null_count:
        raise ValueError(
            f"{values.null_count} nulls among the values: they have no place in an order"
        )
    leaf_type = constant_leaf_type(values.type)
    if leaf_type is None or leaf_type.storage != values.type:
        raise UnsupportedError(f"values of type {values.type} cannot be searched")
    wanted = exact(value, leaf_type, "values")
    if wanted is None:
        raise ValueError("null has no place in an order")
    if isinstance(wanted, float) and wanted != wanted:
        return len(values)  # NaN is above every number
    fitted, edge = fit(op, wanted, leaf_type, rows.NAN_IEEE)
    if fitted in ("always", "never"):
        return 0 if fitted == "always" else len(values)
    find = rows.lower_bound if fitted == ">=" else rows.upper_bound
    data, offsets = _buffers(values, leaf_type)
    try:
        return find(
            leaf_type.kind,
            leaf_type.width,
            len(values),
            data,
            offsets,
            pack_literals([edge], leaf_type),
        )
    except rows.CoreError as error:
        raise ValueError(f"values: {error}") from error


def _buffers(values: pa.Array, leaf_type: LeafType) -> tuple[Any, Any]:
    """Values and offsets of an array, from its first value on."""
    if leaf_type.kind == K_BOOL and values.offset:
        values = pa.concat_arrays([values.slice(0, 0), values])  # bits cannot be pointed into
    buffers, start = values.buffers(), values.offset
    if leaf_type.kind in BYTES_KINDS:
        width = 4 if leaf_type.kind == K_BYTES else 8
        offsets = buffers[1] and buffers[1].slice(start * width)
        return buffers[2] or b"", offsets
    width = values.type.bit_width // 8
    return (buffers[1] or b"")[start * width :] if start else buffers[1] or b"", None
