"""Values of filters as they are given: texts of Arrow, arrays for `isin`, patterns, dates that are pickled."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.records import NamedTuple
from pageseek.predicate.parameters import Param
from pageseek.predicate.text import bare, is_na, show


def plain_text(value: Any) -> Any:
    """Text and binary values of Arrow as those of Python; other values as they are."""
    return value.as_py() if type(value) in _TEXT_SCALARS else value


_NULLABLE_TIMES = (
    np.datetime64,
    np.timedelta64,
    dt.datetime,
)  # among them NaT, which differs from itself
_TEXT_SCALARS = {
    pa.StringScalar, pa.LargeStringScalar, pa.StringViewScalar, pa.BinaryScalar, pa.LargeBinaryScalar, pa.BinaryViewScalar,
}  # fmt: skip


def is_null(value: object) -> bool:
    """Whether a value stands for null: None, a null of Arrow, NaT of numpy or pandas, or NA of pandas."""
    if isinstance(value, _NULLABLE_TIMES):
        return bool(value != value)
    return value is None or getattr(value, "is_valid", True) is False or is_na(value)


def like_pattern(what: str, pattern: object, escape: object) -> str | bytes:
    """The pattern of LIKE, checked."""
    if isinstance(pattern, Param):
        raise PredicateError(
            f"{what}({pattern!r}): a pattern is no parameter of a prepared query; starts_with takes one for a prefix"
        )
    pattern = plain_text(pattern)
    if not isinstance(pattern, (str, bytes)):
        raise PredicateError(f"{what}({show(pattern)}): a str, or bytes for binary columns")
    if not isinstance(escape, str) or len(escape) > 1:
        raise PredicateError(f"{what}(escape={show(escape)}): one character, or '' for none")
    return pattern


_TIMES_OF_NUMPY = frozenset((unit, 1) for unit in ("D", "s", "ms", "us", "ns"))


def listed(values: Any) -> tuple[Any, ...] | pa.Array:
    """The values of `isin` as a tuple; arrays stay arrays."""
    if isinstance(values, Param):  # it stands for all of them
        return (Param(values.name, listed=True),)
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if type(values).__module__.startswith(("pandas", "polars")) and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise PredicateError(f"isin: an array of {values.ndim} dimensions; give one of one")
        if values.dtype.kind in "biuf" and values.dtype.isnative:
            return pa.array(values)
        if values.dtype.kind == "M" and np.datetime_data(values.dtype) in _TIMES_OF_NUMPY:
            return pa.array(values)
        return tuple(values.tolist() if values.dtype.kind in "USO" else values)
    if isinstance(values, (pa.Table, pa.RecordBatch)):
        raise PredicateError("a table is no list of values: give a column of it, table['column']")
    if hasattr(type(values), "to_table"):  # a scan, a dataset
        raise PredicateError(
            f"a {type(values).__name__} is no list of values: give those of a column, .to_table()['column']"
        )
    try:
        found = iter(values)
    except TypeError as error:
        raise PredicateError(f"isin({show(values)}): give a list of values") from error
    return tuple(found)


class _Ticks(NamedTuple):
    """A pickled date or time of pyarrow, whose own scalars are pickled as Python values: without nanoseconds."""

    value: int
    type: pa.DataType

    def __reduce__(self) -> tuple[Any, ...]:
        return pa.scalar, (self.value, self.type)


def packed(value: Any) -> Any:
    """The value as it is pickled."""
    value = bare(value)
    if isinstance(value, pa.Scalar) and pa.types.is_temporal(value.type) and value.is_valid:
        return _Ticks(value.value, value.type)
    return value
