"""A filter with the meaning that Spark gives it, as an expression of this package.

Comparisons of this package compare exact values. Spark first casts both sides to a common type: of a decimal and a
double it makes two doubles, and of a date and a timestamp it makes the date a midnight in the session's time zone. A
condition is rewritten so that it is TRUE for the rows for which Spark's condition is TRUE, or refused if no such
rewriting is known.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS, K_F64, L_ENUM, LeafType, logical_of
from pageseek.predicate import expression as ex
from pageseek.predicate import iso8601 as iso
from pageseek.predicate.column_pairs import family
from pageseek.predicate.filters import to_expression
from pageseek.predicate.operators import COMPARISONS
from pageseek.spark.filters.dialect import MAX_DIGITS, digits, parse, to_micros
from pageseek.spark.session.names import Columns, Kind, Path
from pageseek.spark.session.settings import Settings
from pageseek.spark.session.zone import SessionTime, SessionZone

_GREATEST = 10**39  # beyond every decimal and integer
_EXACT_INTEGERS = 1 << 53  # up to here every integer is a double
_FLOAT_INTEGERS = 1 << 24  # and a float
_TURN_BACK = "; filter the DataFrame instead: read(...).where(...)"
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}  # of Spark's integers, as it counts them
_TICK = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1)


def spark_filter(given: Any, columns: Columns, settings: Settings) -> ex.Expression | None:
    """A filter in any form that `read` takes, as an expression; one of pyarrow keeps pyarrow's meaning."""
    text = isinstance(given, str)
    made = parse(given, settings) if text else to_expression(given)
    if made is None or isinstance(made, ex.ArrowFilter):
        return made
    return ex.flatten(_Meaning(columns, settings, text).of(made))


class _Meaning:
    """Rewrites the conditions of one filter. `text`: the filter is SQL, in which literals have Spark's meaning."""

    def __init__(self, columns: Columns, settings: Settings, text: bool) -> None:
        self._columns, self._settings, self._text = columns, settings, text
        self._kinds: dict[tuple[Path, bool], Kind | None] = {}

    @cached_property
    def _zone(self) -> SessionZone:
        """The session's zone. The session is asked for it only where times without a zone meet instants."""
        return SessionZone(self._settings)

    def of(self, e: ex.Expression) -> ex.Expression:
        """A condition that is TRUE where Spark's is."""
        return ex.rebuilt(e, self._condition)

    def _condition(self, e: ex.Expression) -> ex.Expression:
        if isinstance(e, ex.AnyElement):
            kind, element = self._kind(e.element, True), self._named(e.element)
            assert isinstance(element, ex.Element)
            test = ex.rebuilt(e.test, lambda test: self._test(_beside(test, element), kind))
            return ex.AnyElement(element, test)
        if isinstance(e, ex.CompareColumns):
            made = replace(e, column=self._named(e.column), other=self._named(e.other))
            self._check_columns(made)
            return made
        if isinstance(
            e, (ex.Compare, ex.IsIn, ex.IsNull, ex.IsNan, ex.StartsWith, ex.Like, ex.ILike)
        ):
            return self._test(_beside(e, self._named(e.column)), self._kind(e.column))
        return e

    def _named(self, column: ex.Column) -> ex.Column:
        return type(column)(self._columns.resolved(column.path, self._text), column.place)

    def _kind(self, column: ex.Column, element: bool = False) -> Kind | None:
        key = self._columns.resolved(column.path, self._text), element
        if key not in self._kinds:
            self._kinds[key] = self._columns.kind(*key)
        return self._kinds[key]

    # -- one column -------------------------------------------------------------------------------

    def _test(self, e: ex.Expression, kind: Kind | None) -> ex.Expression:
        if kind is None or not isinstance(e, (ex.Compare, ex.IsIn, ex.StartsWith)):
            return e
        leaf_type, made = kind.leaf_type, kind.leaf_type.storage
        if self._text and isinstance(leaf_type.type, pa.UuidType):
            _refuse_texts(e)
        if leaf_type.kind in BYTES_KINDS:
            return _of_enum(e) if _is_enum(kind) else e
        if isinstance(e, ex.StartsWith):
            return e
        t = pa.types
        if family(leaf_type) == "number":
            return self._numbers(e, leaf_type)
        if t.is_date(made):
            return self._each(e, lambda value: self._day(value, e), kind)
        if t.is_timestamp(made):
            moved = self._each(
                e, self._instant if kind.is_instant else lambda value: self._local(value, e), kind
            )
            return _by_micros(moved) if kind.has_nanos else moved
        return e

    def _each(
        self, e: ex.Compare | ex.IsIn, to: Callable[[Any], Any], kind: Kind
    ) -> ex.Compare | ex.IsIn:
        if isinstance(e, ex.Compare):
            return replace(e, value=to(_bare(e.value)))
        if isinstance(e.values, pa.Array) and _is_same(e.values.type, kind):
            return e
        values = [_bare(value) for value in e.values]
        if any(isinstance(value, str) for value in values) and not self._settings.ansi:
            raise _refused(
                e,
                "without spark.sql.ansi.enabled Spark compares dates and times with texts of IN as texts; "
                "write date '...' or timestamp '...'",
            )
        return ex.IsIn(e.column, tuple(to(value) for value in values))

    # -- numbers ----------------------------------------------------------------------------------

    def _numbers(self, e: ex.Compare | ex.IsIn, leaf_type: LeafType) -> ex.Expression:
        if isinstance(e, ex.Compare):
            value = _number(e.value)
            return e if value is None else self._number_test(e, e.op, value, leaf_type)
        is_float = leaf_type.kind in FLOAT_KINDS
        if isinstance(e.values, pa.Array):
            if pa.types.is_floating(e.values.type) == is_float and (
                is_float or not pa.types.is_decimal(leaf_type.storage)
            ):
                return e
        elif not is_float and set(map(type, e.values)) <= {int, type(None)}:
            return e
        values = [v.as_py() if isinstance(v, pa.Scalar) else v for v in e.values]
        plain = [_number(value) for value in values]
        if any(isinstance(value, float) for value in plain):  # then all are compared as doubles
            plain = [value if value is None else _double(value, e) for value in plain]
        rest: list[Any] = []
        tests: list[ex.Expression] = []
        for given, value in zip(values, plain, strict=True):
            test = (
                None
                if value is None
                else self._number_test(ex.Compare(e.column, "=", value), "=", value, leaf_type)
            )
            if isinstance(test, ex.Compare):
                rest.append(test.value)
            elif test is None:
                rest.append(given)
            else:
                tests.append(test)
        if not tests:
            return ex.IsIn(e.column, tuple(rest))
        if rest:  # without the places of the values in the text, which no longer match
            tests.append(ex.IsIn(ex.Column(e.column.path), tuple(rest)))
        return ex.Or(tuple(tests))

    def _number_test(
        self, e: ex.Compare, op: str, value: int | float | Decimal, leaf_type: LeafType
    ) -> ex.Expression:
        column, integers = e.column, not pa.types.is_decimal(leaf_type.storage)
        if leaf_type.kind in FLOAT_KINDS:
            return replace(e, value=self._beside_float(value, leaf_type, e))
        if not isinstance(value, float):
            if not (integers and isinstance(value, int)):
                _check_digits(e, _digits_of(leaf_type.storage), digits(value))
            return e
        few = abs(value) < _EXACT_INTEGERS if integers else value == 0
        if few or not abs(value) <= _GREATEST:
            return e  # exact as it is; NaN and infinities are compared by their own rule
        low, high, closed = _rounding_to(value)
        least, most = (">=", "<=") if closed else (">", "<")
        return _in_range(column, op, (least, low), (most, high))

    def _beside_float(
        self, value: int | float | Decimal, leaf_type: LeafType, e: ex.Expression
    ) -> float:
        """The value as the nearest double, to compare a column of floats with."""
        if isinstance(value, int) and leaf_type.kind != K_F64 and abs(value) > _FLOAT_INTEGERS:
            with np.errstate(over="ignore"):
                if float(np.float32(value)) != value:
                    raise _refused(
                        e,
                        f"{value} is no float, and Spark rounds it by its settings; write {value}e0",
                    )
        return _double(value, e)

    # -- dates and times --------------------------------------------------------------------------

    def _day(self, value: Any, e: ex.Expression) -> Any:
        """The value to compare a column of dates with."""
        if isinstance(value, str):
            made = _timestamp(value)
            return value if made is None else dt.date(made.year, made.month, made.day)
        local: dt.datetime | None = None
        if isinstance(value, SessionTime):
            local = value.local
            if local.time() != dt.time() and not self._zone.is_plain(local):
                local = None
        elif self._text and isinstance(value, dt.datetime) and value.tzinfo is not None:
            local = self._zone.plain_local(value)
        else:
            return value
        if local is None:
            raise _refused(
                e,
                "Spark compares midnights in the session's zone, whose clocks are changed then, or whose history "
                f"is not known here; compare with a date{_TURN_BACK}",
            )
        return local

    def _instant(self, value: Any) -> Any:
        """The value to compare a column of instants with."""
        made = _moment(value)
        if isinstance(value, str) and made is value:
            return value
        if isinstance(made, dt.date) and not isinstance(made, dt.datetime):
            made = SessionTime(dt.datetime.combine(made, dt.time()))
        elif isinstance(made, dt.datetime) and made.tzinfo is None and self._is_local(value):
            made = SessionTime(made)
        if isinstance(made, SessionTime):
            made = self._zone.instant(made.local)
        return made

    def _is_local(self, value: Any) -> bool:
        """Whether a time without a zone is one of the session's zone: in SQL, and as a text."""
        return self._text or isinstance(value, str)

    def _local(self, value: Any, e: ex.Expression) -> Any:
        """The value to compare a column of times without a zone with."""
        local: dt.datetime | None
        if isinstance(value, SessionTime):
            local = value.local if self._zone.is_plain(value.local) else None
        elif self._text and isinstance(value, dt.datetime) and value.tzinfo is not None:
            local = self._zone.plain_local(value)
        else:
            return _moment(value) if isinstance(value, str) else value
        if local is None:
            raise _refused(
                e,
                "Spark compares instants in the session's zone, whose clocks are changed near this time, or whose "
                "history is not known here; write the literal as TIMESTAMP_NTZ '...'",
            )
        return local

    # -- two columns ------------------------------------------------------------------------------

    def _check_columns(self, e: ex.CompareColumns) -> None:
        """Refuse pairs that Spark compares in a type that does not hold the values of both exactly."""
        one, other = self._kind(e.column), self._kind(e.other)
        if one is None or other is None:
            return
        a, b = one.leaf_type, other.leaf_type
        if family(a) == family(b) == "number":
            floats = [leaf_type.kind in FLOAT_KINDS for leaf_type in (a, b)]
            if all(floats):
                return
            if any(floats):
                whole, real = (b, a) if floats[0] else (a, b)
                if not _fits_float(whole.storage, real):
                    raise _refused(e, f"Spark rounds one of {a.type} and {b.type}{_TURN_BACK}")
            elif any(pa.types.is_decimal(leaf_type.storage) for leaf_type in (a, b)):
                _check_digits(e, _digits_of(a.storage), _digits_of(b.storage))
            return
        if one.has_nanos or other.has_nanos:
            raise _refused(e, f"Spark compares microseconds, and there are nanoseconds{_TURN_BACK}")


def _beside(e: Any, column: ex.Column) -> Any:
    if isinstance(e, ex.IsIn):
        return ex.IsIn(column, e.values)
    return replace(e, column=column) if hasattr(e, "column") else e


def _refused(e: ex.Expression, why: str) -> PredicateError:
    return PredicateError(f"filter {e!r}: {why}")


def _refuse_texts(e: ex.Compare | ex.IsIn | ex.StartsWith) -> None:
    """A UUID is binary in Spark, where no text of one equals its bytes."""
    given = [e.value] if isinstance(e, ex.Compare) else e.values if isinstance(e, ex.IsIn) else []
    if any(isinstance(value, str) for value in given):
        raise PredicateError(f"{e!r}: UUIDs are binary in Spark; write the bytes as X'...'")


def _is_enum(kind: Kind) -> bool:
    element = kind.leaf.element
    return logical_of(element)[0] == L_ENUM and pa.types.is_binary(kind.leaf_type.storage)


def _of_enum(e: ex.Expression) -> ex.Expression:
    """The condition on an ENUM, which is a string in Spark and binary in this package."""
    if isinstance(e, ex.Compare) and isinstance(e.value, str):
        return replace(e, value=e.value.encode())
    if isinstance(e, ex.StartsWith) and isinstance(e.prefix, str):
        return replace(e, prefix=e.prefix.encode())
    if isinstance(e, ex.IsIn) and isinstance(e.values, tuple):
        return ex.IsIn(e.column, tuple(v.encode() if isinstance(v, str) else v for v in e.values))
    return e


def _bare(value: Any) -> Any:
    """The value, if it is a text of pyarrow as a str."""
    return value.as_py() if isinstance(value, (pa.StringScalar, pa.LargeStringScalar)) else value


def _is_same(kind: pa.DataType, column: Kind) -> bool:
    """Whether the values of an array of the type can be compared with a column of times as they are."""
    made = column.leaf_type.storage
    if pa.types.is_date(made):
        return bool(pa.types.is_date(kind))
    zones = pa.types.is_timestamp(kind) and (kind.tz is None) == (made.tz is None)
    return bool(zones and not column.has_nanos)


# -- numbers ----------------------------------------------------------------------------------


def _number(value: Any) -> int | float | Decimal | None:
    """A number as Python's own; None for anything else."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    return None if isinstance(value, Decimal) and not value.is_finite() else value


def _double(value: int | float | Decimal, e: ex.Expression) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _refused(e, f"{value} is beyond the greatest double") from None


def _rounding_to(value: float) -> tuple[Decimal, Decimal, bool]:
    """The range of numbers whose nearest double is the value, and whether its ends belong to it: ties go to the even one."""
    below, above = (math.nextafter(value, end) for end in (-math.inf, math.inf))
    low, high = ((Fraction(value) + Fraction(end)) / 2 for end in (below, above))
    even = int.from_bytes(np.float64(value).tobytes(), "little") % 2 == 0
    return _decimal(low), _decimal(high), even


def _decimal(value: Fraction) -> Decimal:
    """A fraction whose denominator is a power of two, exactly."""
    places = value.denominator.bit_length() - 1
    scaled = value.numerator * 5**places
    sign = int(scaled < 0)
    return Decimal((sign, tuple(map(int, str(abs(scaled)))), -places))


def _digits_of(kind: pa.DataType) -> tuple[int, int]:
    """The digits before and behind the point of a type, cast to a decimal of Spark."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    bits = kind.bit_width
    return _INTEGER_DIGITS[min(bits * 2, 64) if pa.types.is_unsigned_integer(kind) else bits], 0


def _check_digits(e: ex.Expression, one: tuple[int, int], other: tuple[int, int]) -> None:
    before, behind = max(one[0], other[0]), max(one[1], other[1])
    if before + behind > MAX_DIGITS:
        raise _refused(
            e,
            f"Spark has no decimal of {before} digits before and {behind} behind the point, and rounds{_TURN_BACK}",
        )


def _fits_float(kind: pa.DataType, real: LeafType) -> bool:
    """Whether the floats that Spark may compare in hold all values of an integer type."""
    if not pa.types.is_integer(kind):
        return False
    return bool(kind.bit_width < (64 if real.kind == K_F64 else 32))


# -- times ------------------------------------------------------------------------------------


def _timestamp(text: str) -> Any:
    """A text as a timestamp of microseconds; None if it is not one."""
    try:
        return to_micros(iso.timestamp(text))
    except ValueError:
        return None


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        made = _timestamp(value)
        return value if made is None else made
    if isinstance(value, (pa.Date32Scalar, pa.Date64Scalar)) and value.is_valid:
        return value.as_py()
    return value


def _by_micros(e: ex.Compare | ex.IsIn) -> ex.Expression:
    """A condition on nanoseconds as one on the microseconds that Spark makes of them, towards the past."""
    if isinstance(e, ex.IsIn):
        tests = [_by_micros(ex.Compare(e.column, "=", value)) for value in e.values]
        return ex.Or(tuple(tests)) if tests else e
    value, column = e.value, e.column
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if isinstance(value, pa.TimestampScalar) and value.is_valid:
        per = {"s": 10**6, "ms": 1000}.get(value.type.unit, 1)
        ticks, zone = value.value * per, value.type.tz
        if value.type.unit == "ns":
            ticks = value.value // 1000  # Spark drops nanoseconds
    elif isinstance(value, dt.datetime):
        ticks, zone = _micros(value), None if value.tzinfo is None else "UTC"
    else:
        return e
    this, after = (pa.scalar(at, pa.timestamp("us", zone)) for at in (ticks, ticks + 1))
    return _in_range(column, e.op, (">=", this), ("<", after))


def _in_range(
    column: ex.Column, op: str, low: tuple[str, Any], high: tuple[str, Any]
) -> ex.Expression:
    """A comparison with a value that stands for a range. `low` and `high` are the comparisons that hold inside the range."""
    if op in ("=", "!="):
        inside = ex.And((ex.Compare(column, *low), ex.Compare(column, *high)))
        return inside if op == "=" else ex.Not(inside)
    if op in (">=", "<="):
        return ex.Compare(column, *(low if op == ">=" else high))
    holds, end = low if op == "<" else high
    return ex.Compare(column, COMPARISONS[holds].inverse, end)


def _micros(value: dt.datetime) -> int:
    """Microseconds since 1970, in UTC if the time has a zone; the result may lie beyond the years of Python."""
    since = (value.replace(tzinfo=None) - _EPOCH) // _TICK
    return since - (value.utcoffset() or dt.timedelta(0)) // _TICK
