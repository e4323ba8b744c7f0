"""Keys that are no DataFrame of Spark: tables, and lists of Python's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.records import NamedTuple
from pageseek.spark.lookups.lookup_keys import spelled_values

_FAILED = (pa.ArrowException, OverflowError, TypeError, ValueError)
_LONG = 1000  # digits: no decimal has as many, and fractions of more are slow
_SHOWN = 60  # characters of a value in an error


class Wanted(NamedTuple):
    """A column of the files that keys have to equal: its wire type, and what errors say of it."""

    kind: pa.DataType
    told: str

    def lacks(self, key: str, value: str) -> PredicateError:
        """What is said of a key, of the column `key`, that is none of the type."""
        return PredicateError(
            f"{self.told}, and the keys' {key!r} has {value}: leave such keys out, since no row has one, or use "
            "read(...).join(...), which compares as Spark does"
        )


def table_of(keys: Any, names: Sequence[str], wanted: Sequence[Wanted]) -> pa.Table | None:
    """Keys that are no DataFrame of Spark, as a table of the columns `names`; None for a DataFrame.

    `wanted`: what these columns have to equal, for numbers that have no type by themselves.

    Raises
    ------
    TypeError
        They are in no form that is known, or have values of several types.
    PredicateError
        A value is none of the files' type.
    """
    kinds = dict(zip(names, wanted, strict=True))
    if isinstance(keys, pa.Table):
        return keys
    if isinstance(keys, pa.RecordBatch):
        return pa.Table.from_batches([keys])
    if isinstance(keys, (pa.Array, pa.ChunkedArray)) and len(names) == 1:
        return pa.table({names[0]: keys})
    if isinstance(keys, np.ndarray) and len(names) == 1:
        if keys.ndim != 1:
            raise TypeError(
                f"keys: an array of {keys.ndim} dimensions: give one of values, or a table"
            )
        return _table({names[0]: keys}, kinds)
    if type(keys).__module__.split(".")[0] == "pandas":
        frame = keys.to_frame(names[0]) if hasattr(keys, "to_frame") else keys
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except _FAILED as error:
            if not frame.columns.is_unique:
                raise PredicateError(f"keys: several columns have one name: {error}") from error
            return _table({str(name): frame[name] for name in frame.columns}, kinds)
    if isinstance(keys, (list, tuple, set, frozenset, range)):
        rows = list(keys)
        if len(names) == 1:
            rows = [row if isinstance(row, tuple) else (row,) for row in rows]
        for row in rows:
            if not isinstance(row, tuple) or len(row) != len(names):
                raise TypeError(
                    f"keys: {row!r} is no tuple of {len(names)} values, one for each of {', '.join(names)}"
                )
        return _table({name: [row[i] for row in rows] for i, name in enumerate(names)}, kinds)
    if hasattr(keys, "mapInArrow"):
        return None
    raise TypeError(
        f"keys: a DataFrame of Spark, a table of pyarrow or pandas, or a list of values, not {type(keys).__name__}"
    )


def _table(columns: Mapping[str, Any], kinds: Mapping[str, Wanted]) -> pa.Table:
    return pa.table({name: _array(name, of, kinds.get(name)) for name, of in columns.items()})


def _array(name: str, values: Any, wanted: Wanted | None) -> pa.Array:
    """Values in the type that they have by themselves; numbers that have none in the type `wanted`."""
    try:
        return pa.array(values)
    except _FAILED as error:
        failed = error
    if hasattr(values, "notna"):  # of pandas, whose nulls are of many kinds
        values = values.astype(object).where(values.notna(), None)
    given = [v.item() if isinstance(v, np.number) else v for v in values]
    there = [value for value in given if value is not None]
    if wanted is None or not is_number(wanted.kind) or not all(map(_is_number, there)):
        raise _unlike(name, there, wanted, failed)
    kind = wanted.kind
    if (value := misfit(there, kind)) is not None:
        raise wanted.lacks(name, value)
    return pa.array([None if value is None else _number(value, kind) for value in given], kind)


def _unlike(
    name: str, values: Sequence[Any], wanted: Wanted | None, failed: Exception
) -> TypeError:
    """What is said of values of which Arrow makes no array."""
    how = ""
    if wanted is not None and not pa.types.is_null(wanted.kind):
        how = f": give values of the files' type, as {spelled_values(wanted.kind)}"
    for value in values:
        if (why := _failure([value])) is not None:
            return TypeError(
                f"keys: column {name!r} has {_shown(value)}, which is no key ({why}){how}"
            )
    for value in values:
        if _failure([values[0], value]) is not None:
            one, other = (f"{_shown(v)} ({type(v).__name__})" for v in (values[0], value))
            return TypeError(
                f"keys: column {name!r} has {one} and {other}, which have no common type{how}"
            )
    return TypeError(f"keys: column {name!r}: {failed}{how}")


def _failure(values: Sequence[Any]) -> Exception | None:
    try:
        pa.array(values)
    except _FAILED as error:
        return error
    return None


def _shown(value: Any, text_of: Callable[[Any], str] = repr) -> str:
    try:
        text = text_of(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return f"an integer of {value.bit_length()} bits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# -- numbers of a type --------------------------------------------------------------------------


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is one of numbers."""
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind))


def misfit(values: Iterable[Any], kind: pa.DataType) -> str | None:
    """The first of these numbers that is none of a type, as text; None if all are. Nulls are of any type."""
    for value in values:
        if value is not None and not _holds(kind, value):
            return _shown(value, str)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _holds(kind: pa.DataType, value: int | float | Decimal) -> bool:
    """Whether a number is exactly one of a type."""
    t = pa.types
    if t.is_floating(kind):
        try:
            made = float(value)
        except (OverflowError, ValueError):  # beyond them all; a signalling NaN
            return False
        if t.is_float32(kind):
            with np.errstate(over="ignore"):
                made = float(np.float32(made))
        return made == value or (math.isnan(made) and math.isnan(value))
    if not isinstance(value, int):
        value = Decimal(value)
        if not value.is_finite():
            return False
        if abs(value.adjusted()) > _LONG:
            return value == 0
    if t.is_decimal(kind):
        scaled = Fraction(value) * Fraction(10) ** kind.scale
        return scaled.denominator == 1 and bool(abs(scaled) < 10**kind.precision)
    most = 1 << (kind.bit_width - 1)
    return Fraction(value).denominator == 1 and bool(-most <= Fraction(value) < most)


def _number(value: int | float | Decimal, kind: pa.DataType) -> int | float | Decimal:
    """A number that a type has, as pyarrow takes it for the type."""
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_integer(kind) or value == 0:
        return int(value)
    scaled = Fraction(value) * Fraction(10) ** kind.scale
    digits = tuple(map(int, str(abs(scaled.numerator))))
    return Decimal((int(scaled < 0), digits, -kind.scale))
