"""The filters that Spark pushes into a Python Data Source, in the form of those of a Java table."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pageseek.spark.filters.catalyst import Node

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_NAMES = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "IN",
    "IsNull": "IS_NULL",
    "IsNotNull": "IS_NOT_NULL",
    "StringStartsWith": "STARTS_WITH",
    "StringEndsWith": "ENDS_WITH",
    "StringContains": "CONTAINS",
}


def node_of(given: Any) -> Node:
    """A filter of `pyspark.sql.datasource` as a predicate, which `catalyst` reads; one of no name if it is not known."""
    kind = type(given).__name__
    if kind == "Not":
        return {"name": "NOT", "of": [node_of(given.child)]}
    if kind not in _NAMES:
        return {"name": kind}
    of: list[Node] = [{"column": list(given.attribute)}]
    if kind == "In":
        of += map(_literal, given.value)
    elif hasattr(given, "value"):
        of.append(_literal(given.value))
    return {"name": _NAMES[kind], "of": of}


def _literal(value: Any) -> Node:
    made = _LITERALS.get(type(value))
    if made is None:
        return {"name": type(value).__name__}
    name, text = made(value)
    return {"type": name, "value": text}


def _of_time(value: dt.datetime) -> tuple[str, str]:
    zoned = value.tzinfo is not None
    instant = value if zoned else value.replace(tzinfo=dt.UTC)
    return "TIMESTAMP" if zoned else "TIMESTAMP_NTZ", str((instant - _EPOCH) // _MICROSECOND)


_LITERALS: dict[type, Callable[[Any], tuple[str, str | None]]] = {
    type(None): lambda value: ("STRING", None),
    bool: lambda value: ("BOOLEAN", str(value).lower()),
    int: lambda value: ("BIGINT", str(value)),
    float: lambda value: ("DOUBLE", repr(value)),
    str: lambda value: ("STRING", value),
    bytes: lambda value: ("BINARY", base64.b64encode(value).decode()),
    Decimal: lambda value: ("DECIMAL(38,0)", str(value)),
    dt.date: lambda value: ("DATE", str((value - _EPOCH.date()).days)),
    dt.datetime: _of_time,
}
