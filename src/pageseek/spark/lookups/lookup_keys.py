"""The keys of a lookup: as conditions that prune files, and in types that compare as Spark does.

Keys are equal as in a join of Spark: a null equals nothing, NaN equals NaN, and the two zeros are equal.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.format.types import L_ENUM, logical_of
from pageseek.predicate import expression as ex
from pageseek.spark.calendar.calendar_marks import first_of, has_calendar
from pageseek.spark.session.names import Kind

# How the values of a column are written in a condition. NANOSECONDS: only the range of the keys is a condition.
PLAIN, ENUM, UNSIGNED, NANOSECONDS = range(4)
_MOST_UNSIGNED = (1 << 64) - 1
_LAST_MICROSECOND = (1 << 63) - 1  # of a timestamp


def form_of(kind: Kind | None, made: pa.DataType) -> int:
    """How keys are compared with a column of the files. `made`: its type in the scan, which has the values of all files."""
    t = pa.types
    if t.is_timestamp(made) and made.unit == "ns":
        return NANOSECONDS
    if t.is_uint64(made):
        return UNSIGNED
    if kind is None:
        return PLAIN
    if (t.is_binary(made) or t.is_large_binary(made)) and logical_of(kind.leaf.element)[
        0
    ] == L_ENUM:
        return ENUM
    return PLAIN


def condition(name: str, form: int, keys: pa.Array) -> ex.Expression:
    """A condition that is TRUE for every row whose value is among the keys, which have no nulls."""
    if not len(keys):
        return ex.Constant(False)
    column, early = ex.Column((name,)), None
    if has_calendar(keys.type):
        early = first_plain(keys.type)
        if pc.min(keys).value < early.value:  # any old value of the files may become such a key
            keys = keys.filter(pc.greater_equal(keys, early))
        else:
            early = None
    test = _among(column, form, keys) if len(keys) else None
    if early is None:
        assert test is not None
        return test
    old = ex.Compare(column, "<", early)
    return old if test is None else ex.Or((old, test))


def first_plain(kind: pa.DataType) -> pa.Scalar:
    """The first date, or instant, that no old value of files becomes when its calendar is converted (calendar_marks.py)."""
    later = 0 if pa.types.is_date(kind) else 86_400 * 10**6
    return pa.scalar(first_of(kind) + later, kind)


def _among(column: ex.Column, form: int, keys: pa.Array) -> ex.Expression:
    """A condition that is TRUE for every row whose value, as it is stored, is among the keys."""
    if form == NANOSECONDS:  # all nanoseconds of a microsecond become that microsecond
        ends = pc.min_max(keys)
        low = ex.Compare(column, ">=", ends["min"])
        if ends["max"].value == _LAST_MICROSECOND:
            return low
        after = pa.scalar(ends["max"].value + 1, keys.type)
        return ex.And((low, ex.Compare(column, "<", after)))
    if form == ENUM:
        keys = keys.cast(pa.binary())
    elif form == UNSIGNED:
        most = pa.scalar(_MOST_UNSIGNED, keys.type)
        inside = pc.and_(pc.greater_equal(keys, pa.scalar(0, keys.type)), pc.less_equal(keys, most))
        keys = keys.filter(inside).cast(pa.uint64())
    return ex.IsIn(column, pc.unique(keys))


def ordered(array: pa.Array) -> pa.Array:
    """Values of a wire type in a type whose order and equality are Spark's, but for NaN."""
    t, kind = pa.types, array.type
    if t.is_string(kind) or t.is_large_string(kind) or t.is_large_binary(kind):
        return array.cast(pa.binary())
    if t.is_timestamp(kind):
        return array.view(pa.int64())
    if t.is_date32(kind):
        return array.view(pa.int32()).cast(pa.int64())
    if t.is_integer(kind) or t.is_boolean(kind):
        return array.cast(pa.int64())
    if t.is_floating(kind):
        missing = np.asarray(array.is_null()) if array.null_count else None
        values = array.fill_null(0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
        return pa.array(values, kind, mask=missing)
    return array


def comparable(array: pa.Array) -> pa.Array:
    """Values of a wire type in a type whose equality is that of Spark's joins."""
    made = ordered(array)
    if not pa.types.is_floating(made.type):
        return made
    missing = np.asarray(made.is_null()) if made.null_count else None
    values = made.fill_null(0).to_numpy(zero_copy_only=False).copy()
    values[np.isnan(values)] = np.nan  # NaN has many bit patterns
    bits = values.view(np.int32 if values.dtype == np.float32 else np.int64)
    return pa.array(bits, pa.int64(), mask=missing)


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def without_nulls(table: pa.Table) -> pa.Table:
    """The keys that can equal something."""
    return table.drop_null() if any(column.null_count for column in table.columns) else table


def cast_exactly(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Keys as floating-point numbers or decimals of the files' type, if these are the same numbers; else the keys as they are."""
    t, kind = pa.types, column.type
    floats = t.is_floating(wanted) and (t.is_floating(kind) or t.is_integer(kind))
    if kind == wanted or not (floats or (t.is_decimal(wanted) and t.is_integer(kind))):
        return column
    try:
        if floats:
            made = column.cast(wanted)
        else:  # by way of a decimal that has all integers of 64 bits
            made = column.cast(pa.decimal128(min(19 + wanted.scale, 38), wanted.scale)).cast(wanted)
        back = made.cast(kind)
    except pa.ArrowInvalid:
        return column
    one, other = comparable(whole(column)), comparable(whole(back))
    same = pc.all(pc.equal(one, other), min_count=0).as_py()
    return made if same else column


def spelled_type(kind: pa.DataType) -> str:
    """A type as Python makes it."""
    t = pa.types
    if t.is_timestamp(kind):
        return f"pa.timestamp({kind.unit!r}{'' if kind.tz is None else f', {kind.tz!r}'})"
    if t.is_decimal(kind):
        return f"pa.decimal128({kind.precision}, {kind.scale})"
    names = {"float": "float32", "double": "float64", "bool": "bool_", "date32[day]": "date32"}
    return f"pa.{names.get(str(kind), str(kind))}()"


def spelled_values(kind: pa.DataType) -> str:
    """Values of a type as Python makes an array of them."""
    values = "[Decimal('...'), ...]" if pa.types.is_decimal(kind) else "[...]"
    return f"pa.array({values}, {spelled_type(kind)})"
