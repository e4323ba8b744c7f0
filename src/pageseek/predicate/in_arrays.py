"""The literals of IN as the kernels take them: long lists of one type, and arrays, without a loop over the values.

A function returns None where a conversion may not be exact. The values are then converted one by one.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Iterable
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.late_modules import compute as pc
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.format.types import (
    BYTES_KINDS,
    FLOAT_KINDS,
    K_BOOL,
    K_BYTES,
    K_D128,
    K_D256,
    K_F16,
    K_F32,
    K_FIXED,
    K_U64,
    LeafType,
)
from pageseek.predicate import expression as ex
from pageseek.predicate.in_literals import (
    DTYPES,
    Listed,
    Literals,
    distinct,
    merged,
    pack_literals,
)
from pageseek.predicate.literal import PER_SECOND, exact, fit

FEW_LITERALS = 64  # shorter lists are converted one by one


class Many(NamedTuple):
    """Distinct literals in ascending order, without those that no value can equal; and whether there was a null."""

    literals: Listed
    has_null: bool


def fit_list(e: ex.IsIn, leaf_type: LeafType) -> Many:
    """The values of IN. Long lists are packed once for all files whose columns have the same leaf type."""
    if len(e.values) < FEW_LITERALS:
        return _one_by_one(e.values, leaf_type, e.column)
    if leaf_type not in e.packed:
        e.packed[leaf_type] = _by_arrays(e.values, leaf_type, e.column)
    packed: Many = e.packed[leaf_type]
    return packed


def _by_arrays(values: tuple[Any, ...] | pa.Array, leaf_type: LeafType, column: ex.Column) -> Many:
    """By whole arrays, of one type each; values that arrays cannot hold exactly are converted one by one."""
    found = _many(values, leaf_type)
    if found is not None:
        return found
    groups = _by_type(values) if isinstance(values, tuple) else [values]
    parts = [
        (_many(group, leaf_type) if len(groups) > 1 else None)
        or _one_by_one(group, leaf_type, column)
        for group in groups
    ]
    literals = parts[0].literals
    if len(parts) > 1:
        literals = merged([part.literals for part in parts if part.literals[0]], leaf_type)
    return Many(literals, any(part.has_null for part in parts))


def _one_by_one(values: Iterable[Any], leaf_type: LeafType, column: ex.Column) -> Many:
    values = [exact(v, leaf_type, column) for v in values]
    present = [v for v in values if v is not None]
    fitted = (fit("=", v, leaf_type, rows.NAN_IEEE) for v in present)  # a NaN equals no integer
    literals = merged([pack_literals([v for op, v in fitted if op == "="], leaf_type)], leaf_type)
    return Many(literals, len(present) < len(values))


def _many(values: tuple[Any, ...] | pa.Array, leaf_type: LeafType) -> Many | None:
    """The values as literals of the leaf type; None where they have to be converted one by one."""
    array = values if isinstance(values, pa.Array) else _array(values, leaf_type)
    if array is None or leaf_type.kind == K_BOOL:
        return None
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    has_null = array.null_count > 0
    if has_null:
        array = array.drop_null()
    if leaf_type.kind in BYTES_KINDS:
        return _bytes(array, leaf_type, has_null)
    if leaf_type.kind == K_D128 and _same_decimal(array.type, leaf_type.storage):
        return Many(merged([_decimals(array)], leaf_type), has_null)
    if leaf_type.kind in (K_FIXED, K_D128, K_D256):
        return None
    found = (
        _floats(array, leaf_type) if leaf_type.kind in FLOAT_KINDS else _integers(array, leaf_type)
    )
    if found is None:
        return None
    return Many(distinct(found), has_null)


def _by_type(values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The values grouped by their Python types."""
    kinds = list(map(type, values))
    return [
        tuple(compress(values, map(partial(operator.is_, kind), kinds)))
        for kind in dict.fromkeys(kinds)
    ]


def _array(values: tuple[Any, ...], leaf_type: LeafType) -> pa.Array | None:
    """A tuple of values of one Python type as an array; None for others."""
    if len(values) < FEW_LITERALS:
        return None
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    made = _ARROW.get(kind)
    try:
        if kind is dt.datetime:
            naive = not any(v is not None and v.tzinfo is not None for v in values)
            made = pa.timestamp("us") if naive else None
        if issubclass(kind, np.number) and issubclass(kind, (np.integer, np.floating)):
            return pa.array([None if v is None else v.item() for v in values])
        return None if made is None else pa.array(values, made)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        pass
    try:
        return pa.array(values, pa.uint64()) if kind is int else None
    except (pa.ArrowException, OverflowError):
        return None


_ARROW: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.large_string(),
    bytes: pa.large_binary(),
    dt.date: pa.date32(),
}


def _bytes(array: pa.Array, leaf_type: LeafType, has_null: bool) -> Many | None:
    t, made = pa.types, leaf_type.storage
    text = t.is_string(made) or t.is_large_string(made)
    if text:
        if not (
            t.is_string(array.type) or t.is_large_string(array.type) or t.is_string_view(array.type)
        ):
            return None
    elif not (
        t.is_binary(array.type) or t.is_large_binary(array.type) or t.is_binary_view(array.type)
    ):
        return None
    wanted = pa.binary() if leaf_type.kind == K_BYTES else pa.large_binary()
    try:
        array = array.cast(wanted)
    except pa.ArrowException:  # more than 2 GiB
        return None
    array = array.take(pc.array_sort_indices(array))
    if len(array) > 1:  # several times quicker than Array.unique
        new = pc.not_equal(array[1:], array[:-1])
        array = array.filter(pa.concat_arrays([pa.array([True]), new]))
    _, offsets, data = array.buffers()
    width = 4 if leaf_type.kind == K_BYTES else 8
    ends = b"\0" * width if offsets is None else offsets.to_pybytes()[: (len(array) + 1) * width]
    texts = b"" if data is None else data.to_pybytes()
    return Many(Listed((len(array), texts, ends)), has_null)


def _same_decimal(kind: pa.DataType, made: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind) and kind.scale == made.scale)


def _decimals(array: pa.Array) -> Literals:
    """Decimals as they are: integers of 16 bytes."""
    start, data = array.offset * 16, array.buffers()[1]
    values = b"" if data is None else data.slice(start, len(array) * 16).to_pybytes()
    return len(array), values, None


def _floats(array: pa.Array, leaf_type: LeafType) -> npt.NDArray[Any] | None:
    """Floats that are values of the column's width; NaN stays."""
    t = pa.types
    if t.is_integer(array.type):
        whole = np.asarray(array)
        with np.errstate(over="ignore"):
            found = whole.astype(np.float64)
        exact = np.abs(found) <= 2.0**53
        if not exact.all():
            return None
    elif t.is_floating(array.type):
        found = array.to_numpy(zero_copy_only=False).astype(np.float64)
    else:
        return None
    if leaf_type.kind in (K_F16, K_F32):
        with np.errstate(over="ignore"):
            narrow = found.astype(np.float32 if leaf_type.kind == K_F32 else np.float16)
        keep = (narrow.astype(np.float64) == found) | np.isnan(found)
        return np.asarray(narrow[keep])
    return found


def _integers(array: pa.Array, leaf_type: LeafType) -> npt.NDArray[Any] | None:
    """Integers, or times in the column's unit, that are values of its kind."""
    t, made = pa.types, leaf_type.storage
    dtype = DTYPES.get(leaf_type.kind)
    if dtype is None:
        return None
    if t.is_temporal(made):
        found = _ticks(array, made)
        if found is None:
            return None
    elif t.is_integer(array.type):
        found = np.asarray(array)
    elif t.is_floating(array.type):
        floats = array.to_numpy(zero_copy_only=False).astype(np.float64)
        inside = (floats >= -(2.0**63)) & (floats < 2.0**63)
        floats = floats[inside & (np.floor(floats) == floats)]
        found = floats.astype(np.int64)
        if leaf_type.kind == K_U64:
            return None
    else:
        return None
    if found.dtype == np.dtype(dtype):
        return found
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    have = np.iinfo(found.dtype)
    keep = np.ones(len(found), bool)
    if have.min < low:
        keep &= found >= low
    if have.max > high:
        keep &= found <= high
    return found[keep].astype(dtype)


def _ticks(array: pa.Array, made: pa.DataType) -> npt.NDArray[np.int64] | None:
    """Dates and timestamps in another unit, without those that lie between two ticks."""
    t, kind = pa.types, array.type
    if t.is_date32(made) or t.is_date32(kind):
        if t.is_date32(made) and t.is_date32(kind):
            return np.asarray(array.view(pa.int32())).astype(np.int64)
        if not (t.is_date32(kind) and t.is_timestamp(made) and made.tz is None):
            return None
        ratio, counts = 86400 * PER_SECOND[made.unit], np.asarray(array.view(pa.int32()))
    elif t.is_timestamp(kind) and t.is_timestamp(made) and (kind.tz is None) == (made.tz is None):
        counts = np.asarray(array.view(pa.int64()))
        have, want = PER_SECOND[kind.unit], PER_SECOND[made.unit]
        if have > want:
            whole, rest = np.divmod(counts, have // want)
            return np.asarray(whole[rest == 0])
        ratio = want // have
    else:
        return None
    counts = counts.astype(np.int64)
    low, high = -((1 << 63) // ratio), ((1 << 63) - 1) // ratio
    return np.asarray(counts[(counts >= low) & (counts <= high)] * ratio)
