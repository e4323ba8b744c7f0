"""Values of partition columns: from the texts that Spark casts them to, to values that a table's own compare with."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_WHOLE = frozenset(("byte", "short", "int", "integer", "long"))


def typed(text: str | None, kind: str) -> Any:
    """The value of a text. Dates are days, and timestamps microseconds, since 1970: years may be beyond those of Python.

    Parameters
    ----------
    text : str or None
        As Spark's cast to a string spells the value.
    kind : str
        The type, as Delta Lake or Iceberg names it.
    """
    if text is None:
        return None
    if kind == "boolean":
        return text == "true"
    if kind == "float":  # rounded as the column is
        return float(np.float32(text))
    if kind == "double":
        return float(text)
    if kind.startswith("decimal"):
        return Decimal(text)
    if kind == "date":
        return int(np.datetime64(text, "D").astype(np.int64))
    if kind.startswith("timestamp"):
        return int(np.datetime64(text, "us").astype(np.int64))
    return int(text) if kind in _WHOLE else text


def spelled(value: Any, kind: str) -> str | None:
    """The text of such a value, in the form that the log of Delta Lake has."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if kind == "date":
        return str(np.datetime64(value, "D"))
    if kind.startswith("timestamp"):
        return str(np.datetime64(value, "us")).replace("T", " ").rstrip("0").rstrip(".")
    return str(value)


def plain(array: pa.ChunkedArray) -> list[Any]:
    """The values of an Arrow column, in the types of `typed`."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    found: list[Any] = array.to_pylist()
    return found


def partition_key(values: Iterable[Any]) -> tuple[Any, ...]:
    """What the values of one partition have in common and no other partition has: NaN equals NaN, -0.0 is not 0.0."""
    return tuple(repr(one) if isinstance(one, float) else one for one in values)
