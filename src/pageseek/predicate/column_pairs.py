"""Two columns of a row, compared exactly: across widths, units and scales, and integers with floats.

Numbers become a pair of arrays, "less" and "equal", from which every operator follows; text, binary and
booleans are compared by Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek.base.arrays import booleans
from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import compute as pc
from pageseek.base.late_modules import npt
from pageseek.format.types import (
    BYTES_KINDS,
    K_BOOL,
    K_D128,
    K_D256,
    K_FIXED,
    LeafType,
)
from pageseek.predicate import expression as ex
from pageseek.predicate.literal import PER_SECOND
from pageseek.predicate.operators import COMPARISONS

Flags: TypeAlias = npt.NDArray[np.bool_]
_DECIMALS = (K_D128, K_D256)


def comparable(a: LeafType, b: LeafType) -> bool:
    """Whether a comparison of the two has a meaning."""
    return family(a) == family(b)


def uncomparable(e: ex.CompareColumns, a: LeafType, b: LeafType) -> PredicateError:
    """The error of two columns whose types have no common order."""
    zones = {"timestamp with time zone", "date or timestamp"}
    why = ": one has a time zone, the other has none" if {family(a), family(b)} == zones else ""
    return PredicateError(f"{e!r}: {a.type} and {b.type} cannot be compared{why}")


def family(leaf_type: LeafType) -> str:
    """Columns of one family can be compared with each other."""
    t, made = pa.types, leaf_type.storage
    if leaf_type.is_null:
        return "null"
    if leaf_type.kind == K_BOOL:
        return "boolean"
    if leaf_type.kind in BYTES_KINDS:
        return "text" if t.is_string(made) or t.is_large_string(made) else "binary"
    if leaf_type.kind == K_FIXED:
        return "binary"
    if t.is_timestamp(made):
        return "timestamp with time zone" if made.tz is not None else "date or timestamp"
    if t.is_date(made):
        return "date or timestamp"
    if t.is_time(made):
        return "time"
    return "duration" if t.is_duration(made) else "number"


def comparison(
    a: LeafType, op: str, b: LeafType, spark: bool
) -> Callable[[list[pa.ChunkedArray]], Any]:
    """A function from the values of two comparable columns to booleans, null where one of the values is null."""

    def compare(values: list[pa.ChunkedArray]) -> Any:
        left, right = values
        if a.kind in BYTES_KINDS or a.kind == K_FIXED:
            made = pa.large_string() if family(a) == "text" else pa.large_binary()
            function: Callable[..., Any] = getattr(pc, COMPARISONS[op].arrow)
            return function(_cast(left, made), _cast(right, made))
        valid = _flags(pc.and_(left.is_valid(), right.is_valid()))
        if a.kind in _DECIMALS or b.kind in _DECIMALS:
            less, equal, unordered = _decimals(left, right, valid, spark)
        else:
            x, y = _numbers(left), _numbers(right)
            if x.dtype.kind == "f" or y.dtype.kind == "f":
                less, equal, unordered = _floats(x, y, spark)
            else:
                less, equal = _integers(x, y, _unit(a), _unit(b))
                unordered = np.zeros(len(x), bool)
        results: dict[str, Callable[[], Flags]] = {
            "=": lambda: equal,
            "!=": lambda: ~equal,
            "<": lambda: less,
            "<=": lambda: less | equal,
            ">": lambda: ~(less | equal | unordered),
            ">=": lambda: ~(less | unordered),
        }
        return pa.array(results[op](), pa.bool_(), mask=~valid)

    return compare


def _cast(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    return values.cast(wanted)


def _flags(values: pa.ChunkedArray) -> Flags:
    return booleans(pa.concat_arrays(values.chunks)) if values.num_chunks else np.zeros(0, np.bool_)


def _numbers(values: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Numbers as numpy has them, times as their ticks; 0 where null."""
    made = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if pa.types.is_boolean(made.type):
        made = made.cast(pa.uint8())
    elif pa.types.is_temporal(made.type):
        made = made.view(pa.int32() if made.type.bit_width == 32 else pa.int64())
    if made.null_count:
        zero = pa.scalar(np.float16(0)) if pa.types.is_float16(made.type) else 0
        made = pc.if_else(made.is_valid(), made, pa.scalar(zero, made.type))
    return np.asarray(made.to_numpy(zero_copy_only=False))


def _unit(leaf_type: LeafType) -> int:
    """Ticks a second; negative: seconds a tick."""
    t, made = pa.types, leaf_type.storage
    if t.is_date32(made):
        return -86400
    return PER_SECOND[made.unit] if hasattr(made, "unit") and t.is_temporal(made) else 1


def _integers(x: npt.NDArray[Any], y: npt.NDArray[Any], a: int, b: int) -> tuple[Flags, Flags]:
    """Less and equal of x / a and y / b, without a product that could overflow."""
    if a == b:
        if np.uint64 not in (x.dtype, y.dtype):
            x, y = x.astype(np.int64), y.astype(np.int64)
        elif x.dtype != y.dtype:
            return _mixed(x, y)
        return x < y, x == y
    if a < b:  # x is coarser
        whole, rest = _scaled(y, a, b)
        x = x.astype(np.int64)
        return (x < whole) | ((x == whole) & (rest > 0)), (x == whole) & (rest == 0)
    less, equal = _integers(y, x, b, a)
    return ~(less | equal), equal


def _scaled(y: npt.NDArray[Any], a: int, b: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    ratio = b // a if a > 0 else b * -a
    return np.divmod(y.astype(np.int64), np.int64(ratio))


def _mixed(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[Flags, Flags]:
    """Less and equal of uint64 and another kind of integer, which may be negative."""
    if x.dtype == np.uint64:
        less, equal = _mixed(y, x)
        return ~(less | equal), equal
    below = x < 0
    raised = np.where(below, 0, x).astype(np.uint64)
    return below | (raised < y), ~below & (raised == y)


def _floats(x: npt.NDArray[Any], y: npt.NDArray[Any], spark: bool) -> tuple[Flags, Flags, Flags]:
    """Less, equal and unordered where at least one side is of floats."""
    if x.dtype.kind != "f":
        less, equal, unordered = _floats(y, x, spark)
        return ~(less | equal | unordered), equal, unordered
    x = x.astype(np.float64)
    if y.dtype.kind == "f":
        y = y.astype(np.float64)
        less, equal = x < y, x == y
        nan = np.isnan(x), np.isnan(y)
    else:
        less, equal = _with_integers(x, y)
        nan = np.isnan(x), np.zeros(len(x), bool)
    if not spark:
        return less, equal, nan[0] | nan[1]
    return less | (~nan[0] & nan[1]), equal | (nan[0] & nan[1]), np.zeros(len(x), bool)


def _with_integers(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[Flags, Flags]:
    """Less and equal of doubles and integers, exactly: the whole part of a double is compared as an integer."""
    wide = np.uint64 if y.dtype == np.uint64 else np.int64
    low, high = (0.0, 2.0**64) if wide is np.uint64 else (-(2.0**63), 2.0**63)
    y = y.astype(wide)
    inside = (x >= low) & (x < high)
    whole = np.floor(np.where(inside, x, 0.0))
    rest = np.where(inside, x, 0.0) - whole
    units = whole.astype(wide)
    less = np.where(inside, units < y, x < low)
    equal = inside & (units == y) & (rest == 0)
    return less, equal


def _decimals(
    left: pa.ChunkedArray, right: pa.ChunkedArray, valid: Flags, spark: bool
) -> tuple[Flags, Flags, Flags]:
    """Less, equal and unordered where at least one side has decimals. Arrow compares them if a common scale holds both."""
    n = len(left)
    none = np.zeros(n, bool)
    kinds = left.type, right.type
    if not any(map(pa.types.is_floating, kinds)):
        scale = max(kind.scale if pa.types.is_decimal(kind) else 0 for kind in kinds)
        try:
            common = pa.decimal256(76, scale)
            a, b = left.cast(common), right.cast(common)
            less, equal = (_flags(f(a, b).fill_null(False)) for f in (pc.less, pc.equal))
            return less, equal, none
        except pa.ArrowException:  # more digits than there is room for
            unusable = np.flatnonzero(valid)
            less, equal = none.copy(), none.copy()
    else:
        x, y = (_doubles(values) for values in (left, right))
        less, equal, unordered = _floats(x, y, spark)
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.abs(x - y) <= 1e-14 * np.maximum(np.abs(x), np.abs(y))
        unusable = np.flatnonzero(valid & near & np.isfinite(x) & np.isfinite(y))
        none = unordered
    picked = pa.array(unusable)
    for at, one, other in zip(
        unusable.tolist(), _plain(left.take(picked)), _plain(right.take(picked)), strict=True
    ):
        less[at], equal[at] = one < other, one == other
    return less, equal, none


def _doubles(values: pa.ChunkedArray) -> npt.NDArray[Any]:
    """The numbers as doubles, rounded by a few units in the last place at most."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return _numbers(values).astype(np.float64)


def _plain(values: pa.ChunkedArray) -> list[Any]:
    """Python's own numbers, which compare exactly across types."""
    return [float(v) if isinstance(v, np.floating) else v for v in values.to_pylist()]
