"""Literals as exact values of a column's own domain.

A column of integers, dates, times, timestamps or decimals holds integers of some width. A literal becomes an exact
rational in the column's unit. A comparison with a value between two integers, or beyond the least or greatest,
becomes one that the column can answer. Nothing wraps, nothing is rounded.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from decimal import Decimal
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import fractions, is_instance
from pageseek.format.types import (
    BYTES_KINDS,
    FLOAT_KINDS,
    K_BOOL,
    K_D128,
    K_D256,
    K_F16,
    K_F32,
    K_FIXED,
    K_I8,
    K_I64,
    K_U8,
    LeafType,
)
from pageseek.predicate import iso8601 as iso
from pageseek.predicate.given_values import is_null
from pageseek.predicate.parameters import Param
from pageseek.predicate.text import show

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY = 86400  # seconds
_MICROSECOND = dt.timedelta(microseconds=1)
_MOST_MONTHS = 10**15  # beyond every timestamp, and few enough that numpy counts their days

MAX_EXPONENT = 10_000  # of decimal literals
_UUID = r"[0-9a-fA-F]{8}(-?)(?:[0-9a-fA-F]{4}\1){3}[0-9a-fA-F]{12}"
_INTEGERS = frozenset(  # Arrow types whose values are integers without a unit
    kind.id
    for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(),
        pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    )
)  # fmt: skip

Exact: TypeAlias = "fractions.Fraction | int | float | bytes | bool"


class Number(Decimal):
    """A number with a decimal point in SQL: exact, but for columns of floats the nearest double, as in Python."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def exact(value: Any, leaf_type: LeafType, column: object) -> Exact | None:
    """The literal in the column's own unit: an integer or Fraction, an infinity or NaN, bytes, or a bool; None for null."""
    if type(value) is int and leaf_type.storage.id in _INTEGERS:
        return value
    if isinstance(value, pa.Scalar):
        value = _plain(value)
    if is_null(value):
        return None
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    made = _convert(_timed(value, leaf_type) if isinstance(value, str) else value, leaf_type)
    if made is None:
        if isinstance(value, Param):
            raise PredicateError(
                f"param({value.name!r}) has no value: give the filter to Scan.prepare, and the value with each call, "
                f"or params={{{value.name!r}: ...}}"
            )
        raise PredicateError(
            f"column {str(column)!r} of type {leaf_type.type} cannot be compared with {show(value)}{_remedy(value, leaf_type, _is_written(column))}"
        )
    return made


def uuid_of(text: str) -> uuid.UUID:
    """The UUID of a text of 32 hexadecimal digits, with or without its four hyphens. ValueError: it is none."""
    if not re.fullmatch(_UUID, text):
        raise ValueError(f"{text!r} is no UUID, such as '550e8400-e29b-41d4-a716-446655440000'")
    return uuid.UUID(text)


def _timed(text: str, leaf_type: LeafType) -> Any:
    """The time of a text of ISO 8601, if the column has times; else the text."""
    t, made = pa.types, leaf_type.storage
    try:
        if t.is_date(made) or t.is_timestamp(made):
            return iso.timestamp(text)
        return iso.time(text) if t.is_time(made) else text
    except ValueError:
        return text


def _plain(scalar: pa.Scalar) -> Any:
    while isinstance(scalar, (pa.ExtensionScalar, pa.DictionaryScalar)):
        scalar = scalar.value
    if not isinstance(scalar, pa.Scalar):
        return scalar
    if not scalar.is_valid:
        return None
    if pa.types.is_temporal(scalar.type) and not pa.types.is_interval(scalar.type):
        return scalar  # Python's values have no nanoseconds and not all years
    try:
        return scalar.as_py()
    except UnicodeDecodeError:  # a text that is not UTF-8 has its bytes alone
        return scalar


def _convert(value: Any, leaf_type: LeafType) -> Exact | None:
    t = pa.types
    made, kind = leaf_type.storage, leaf_type.kind
    if isinstance(leaf_type.type, pa.BaseExtensionType):
        if isinstance(value, uuid.UUID):
            return value.bytes
        if isinstance(value, str) and isinstance(leaf_type.type, pa.UuidType):
            try:
                return uuid_of(value).bytes
            except ValueError:
                return None
    if kind == K_BOOL:
        return value if isinstance(value, bool) else None
    if kind in BYTES_KINDS:
        if t.is_string(made) or t.is_large_string(made):
            if isinstance(value, pa.Scalar):
                is_text = isinstance(value, (pa.StringScalar, pa.LargeStringScalar))
                return value.as_buffer().to_pybytes() if is_text else None
            return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None
        return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else None
    if kind == K_FIXED:
        return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else None
    if t.is_date32(made) or t.is_timestamp(made):
        found = _since_epoch(value)
        if found is None or found[1] != (t.is_timestamp(made) and made.tz is not None):
            return None
        return found[0] / _DAY if t.is_date32(made) else found[0] * PER_SECOND[made.unit]
    if t.is_time(made) or t.is_duration(made):
        seconds = _since_midnight(value) if t.is_time(made) else _length(value)
        return None if seconds is None else seconds * PER_SECOND[made.unit]
    if isinstance(value, Number) and kind in FLOAT_KINDS and math.isfinite(float(value)):
        value = float(value)
    return _number(value, made.scale if t.is_decimal(made) else 0)


def _number(value: Any, scale: int) -> fractions.Fraction | int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value * int(10**scale)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if value.is_snan() or (isinstance(exponent, int) and abs(exponent) > MAX_EXPONENT):
            return None  # a signalling NaN, or a number that would take all memory
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        return float(value)
    if isinstance(value, (float, Decimal)) or is_instance(value, fractions, "Fraction"):
        return fractions.Fraction(value) * fractions.Fraction(10**scale)
    return None


# -- times in seconds, exactly --------------------------------------------------------------------


def _since_epoch(value: Any) -> tuple[fractions.Fraction, bool] | None:
    """The seconds from 1970 to a date or timestamp, and whether it has a time zone; None for other values."""
    if isinstance(value, pa.Date32Scalar):
        return fractions.Fraction(value.value * _DAY), False
    if isinstance(value, pa.Date64Scalar):
        return fractions.Fraction(value.value, 1000), False
    if isinstance(value, pa.TimestampScalar):
        return _ticks(value), value.type.tz is not None
    if isinstance(value, dt.datetime):
        seconds = _days(value) * _DAY + _of_clock(value)
        away = value.utcoffset()  # by hand: a time in UTC may lie beyond the years of Python
        if away is not None:
            seconds -= fractions.Fraction(away // _MICROSECOND, 10**6)
        return seconds, value.tzinfo is not None
    if isinstance(value, dt.date):
        return fractions.Fraction(_days(value) * _DAY), False
    found = _of_numpy(value) if isinstance(value, np.datetime64) else None
    return None if found is None else (found, False)


def _since_midnight(value: Any) -> fractions.Fraction | None:
    if isinstance(value, (pa.Time32Scalar, pa.Time64Scalar)):
        return _ticks(value)
    return _of_clock(value) if isinstance(value, dt.time) and value.tzinfo is None else None


def _length(value: Any) -> fractions.Fraction | None:
    if isinstance(value, pa.DurationScalar):
        return _ticks(value)
    if isinstance(value, dt.timedelta):
        return fractions.Fraction(value // _MICROSECOND, 10**6)
    return _of_numpy(value) if isinstance(value, np.timedelta64) else None


def _ticks(value: Any) -> fractions.Fraction:
    return fractions.Fraction(value.value, PER_SECOND[value.type.unit])


def _days(value: dt.date) -> int:
    return value.toordinal() - _EPOCH


def _of_clock(value: dt.datetime | dt.time) -> fractions.Fraction:
    nanoseconds = value.microsecond * 1000 + int(getattr(value, "nanosecond", 0))  # of pandas
    return (
        (value.hour * 60 + value.minute) * 60
        + value.second
        + fractions.Fraction(nanoseconds, 10**9)
    )


_UNITS = {  # of numpy, as numerator and denominator of seconds; months and years have none
    "W": (604800, 1),
    "D": (86400, 1),
    "h": (3600, 1),
    "m": (60, 1),
    **{unit: (1, 1000**i) for i, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))},
}


def _of_numpy(value: np.datetime64 | np.timedelta64) -> fractions.Fraction | None:
    """The seconds of a time of numpy, whose own conversions wrap around and drop what is finer than their unit."""
    unit, step = np.datetime_data(value.dtype)
    if np.isnat(value):
        return None
    ticks = int(value.astype(np.int64)) * step
    if unit in _UNITS:
        return ticks * fractions.Fraction(*_UNITS[unit])
    if unit not in ("Y", "M") or isinstance(value, np.timedelta64):
        return None
    months = ticks * 12 if unit == "Y" else ticks
    months = min(max(months, -_MOST_MONTHS), _MOST_MONTHS)
    days = np.datetime64(months, "M").astype("datetime64[D]").astype(np.int64)
    return fractions.Fraction(int(days) * _DAY)


def _is_written(column: Any) -> bool:
    """Whether the values beside a column are written in SQL, and no parameters."""
    place = getattr(column, "place", None)
    return place is not None and not any(
        place.text[at : at + 1] in ("?", ":") for at in place.values
    )


def _remedy(value: Any, leaf_type: LeafType, sql: bool) -> str:
    """The end of an error: what to write instead, in SQL or in Python."""
    made = leaf_type.storage
    if isinstance(value, str) and not isinstance(_timed(value, leaf_type), str):
        value = _timed(value, leaf_type)
    if pa.types.is_timestamp(made) and isinstance(value, (dt.datetime, pa.TimestampScalar)):
        if made.tz is None:
            return ": the column has no time zone; give a value without one"
        return f": the column is in {made.tz}; give a value with a time zone"
    if pa.types.is_temporal(made) and (sql or isinstance(value, str)):
        if pa.types.is_duration(made):
            given = "SQL has no word for them; in Python, " if sql else ""
            return f": {given}give a timedelta, not a string"
        shown = iso.TIME_FORM if pa.types.is_time(made) else iso.STAMP_FORM
        if pa.types.is_date(made):
            shown = f"date {iso.DATE_FORM}" if sql else iso.DATE_FORM
        return f": write it as {shown}"
    if isinstance(leaf_type.type, pa.UuidType):
        if sql:
            return ": write it as uuid '550e8400-e29b-41d4-a716-446655440000'"
        return ": give a uuid.UUID, its 16 bytes, or its text"
    if value is True and sql:
        return ": only booleans are true or false; compare the column with a value"
    if isinstance(value, uuid.UUID):
        return ": the column is not declared as a UUID; give value.bytes or str(value), as its values are"
    if isinstance(value, str) and leaf_type.kind not in BYTES_KINDS:
        if sql:
            what = "true or false" if leaf_type.kind == K_BOOL else "the number"
            return f": write {what} without quotes"
        if leaf_type.kind in (K_D128, K_D256):
            return ": give a Decimal or an int, not a str"
        what = "True or False" if leaf_type.kind == K_BOOL else "a number"
        return f": give {what}, not a str"
    if leaf_type.kind in BYTES_KINDS and isinstance(value, (str, bytes)):
        if sql:
            return ": write 'text' for columns of text and X'00ff' for binary ones"
        return ": give str for text and bytes for binary columns"
    if leaf_type.kind in BYTES_KINDS and sql:
        return ": write it in quotes"
    if leaf_type.kind in BYTES_KINDS and isinstance(value, (int, float)):
        what = "str" if pa.types.is_string(made) or pa.types.is_large_string(made) else "bytes"
        return f": give {what}, not {type(value).__name__}"
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray, pa.Array)):
        return ": give one value, or write isin for several"
    return ": give a value of the column's type"


@cache
def integer_range(kind: int) -> tuple[int, int]:
    """Least and greatest integer of an integer kind."""
    if kind in (K_D128, K_D256):
        bits, signed = (128 if kind == K_D128 else 256), True
    else:
        signed = kind <= K_I64
        bits = 8 << (kind - (K_I8 if signed else K_U8))
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def fit(op: str, value: Any, leaf_type: LeafType, nan: int) -> tuple[str, Any]:
    """`x op value` as a comparison that values of the leaf type can answer, or "always" or "never".

    Integers are compared with an integer of their range, floats with a float of their width. A byte string of
    another width than the column's keeps its length, since a schema may claim any width.
    """
    kind = leaf_type.kind
    if kind in BYTES_KINDS or kind == K_BOOL:
        return op, value
    if kind == K_FIXED:
        if len(value) != leaf_type.width and op in ("=", "!="):
            return ("never" if op == "=" else "always"), b""
        return op, value
    if kind in FLOAT_KINDS:
        return (op, value) if isinstance(value, float) else _fit_float(op, value, kind)
    if isinstance(value, float):
        if math.isnan(value) and nan != rows.NAN_SPARK:
            return ("always" if op == "!=" else "never"), 0
        above = math.isnan(value) or value > 0
        return _beyond(op, above), 0
    low, high = integer_range(kind)
    floor, ceil = math.floor(value), math.ceil(value)
    if op in ("=", "!="):
        if floor == ceil and low <= floor <= high:
            return op, floor
        return ("never" if op == "=" else "always"), 0
    edge = ceil if op in ("<", ">=") else floor
    if edge < low or (edge == low and op in ("<", ">=")):
        return _beyond(op, False), 0
    if edge > high or (edge == high and op in ("<=", ">")):
        return _beyond(op, True), 0
    return op, edge


def _beyond(op: str, above: bool) -> str:
    """How every value answers a comparison with a literal above all of them, or below."""
    return (
        "always"
        if op == "!=" or (op in ("<", "<=") and above) or (op in (">", ">=") and not above)
        else "never"
    )


def _fit_float(op: str, value: fractions.Fraction | int, kind: int) -> tuple[str, float]:
    """`x op value` over floats of the column's width; a value between two floats moves to a neighbour."""
    nearest = _round_float(value, kind)
    if math.isinf(nearest):
        below = nearest < 0
    elif fractions.Fraction(nearest) == value:
        return op, nearest
    else:
        below = fractions.Fraction(nearest) < value
    if op in ("=", "!="):
        return ("never" if op == "=" else "always"), 0.0
    if below:  # nearest < value, and no float lies between
        return "<=" if op in ("<", "<=") else ">", nearest
    return "<" if op in ("<", "<=") else ">=", nearest


def _round_float(value: fractions.Fraction | int, kind: int) -> float:
    try:
        made = value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if kind in _NARROW_FLOATS:
        with np.errstate(over="ignore"):
            return float(_NARROW_FLOATS[kind](made))
    return made


_NARROW_FLOATS: dict[int, Any] = {K_F16: np.float16, K_F32: np.float32}
