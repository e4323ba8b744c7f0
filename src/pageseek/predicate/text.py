"""Literals as text, for the repr of conditions and for errors; a place in the text of a filter."""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import PredicateError

RESERVED = frozenset(("and", "or", "not", "in", "between", "like", "is", "null", "true", "false"))
_WORD = r"[^\W\d]\w*"
_DAY = r"\d{4}-\d\d-\d\d"
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?"


def bare(value: Any) -> Any:
    """The value of a scalar of a dictionary or extension type."""
    return value.value if isinstance(value, (pa.DictionaryScalar, pa.ExtensionScalar)) else value


def is_na(value: object) -> bool:
    """Whether a value is NA of pandas. It is known by its type: pandas is not imported for it."""
    kind = type(value)
    return kind.__name__ == "NAType" and kind.__module__.startswith("pandas.")


def show(value: Any, longest: int | None = 60) -> str:
    """A value as our SQL writes it, else as Python does; a long text is cut."""
    text = _literal(value)
    return text if longest is None or len(text) <= longest else text[: longest - 3] + "..."


def show_column(path: Sequence[str]) -> str:
    """A column as our SQL writes it: quoted where its name is no plain word, or where parts of a path are given."""
    if len(path) == 1:
        words = path[0].split(".")
        if all(re.fullmatch(_WORD, word) for word in words) and words[0].lower() not in RESERVED:
            return path[0]
    return ".".join('"' + part.replace('"', '""') + '"' for part in path)


def _literal(value: Any) -> str:
    value = bare(value)
    if isinstance(value, pa.Scalar):
        if not value.is_valid:
            return "null"
        if isinstance(value, (pa.TimestampScalar, pa.Time32Scalar, pa.Time64Scalar)):
            return _ticks(value)
        try:
            value = value.as_py()
        except UnicodeDecodeError:  # a text that is not UTF-8
            value = value.as_buffer().to_pybytes()
        except (OverflowError, ValueError):  # beyond what Python's own types hold, as str() is
            return f"{value.type}({value.value})"
    elif isinstance(value, np.datetime64) and not np.isnat(value):
        text = str(value)
        if re.fullmatch(_DAY, text):
            return f"date '{text}'"
        text = text if text.count(":") != 1 else f"{text}:00"
        return (
            f"timestamp '{text.replace('T', ' ')}'" if re.fullmatch(_STAMP, text) else repr(value)
        )
    elif isinstance(value, np.generic):
        value = value.item()
    if value is None or is_na(value):
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (bytes, bytearray)):
        return f"X'{value.hex()}'"
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, dt.datetime):
        return _moment(value) if value == value else "null"  # NaT of pandas is null
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, dt.time) and value.tzinfo is None:
        return f"time '{value.isoformat()}'"
    if isinstance(value, uuid.UUID):
        return f"uuid '{value}'"
    if isinstance(value, dt.timedelta):
        return f"timedelta '{value}'"
    try:
        return repr(value)
    except ValueError:  # Python writes no integer of thousands of decimal digits
        return hex(value) if isinstance(value, int) else f"<{type(value).__name__}>"


def _double(value: float) -> str:
    """A double. It gets an exponent unless it equals its decimal digits: SQL reads a number without one as a decimal."""
    text = repr(value)
    if value != value or value in (math.inf, -math.inf):
        return f"double '{text}'"
    if "e" in text:
        return text
    return text if Decimal(text) == Decimal(value) else f"{text}e0"


def _decimal(value: Decimal) -> str:
    if not value.is_finite() or type(value) is Decimal:
        return f"decimal '{value}'"
    text = format(value, "f")  # a number of SQL, as it was written there
    return text if "." in text else f"{text}.0"


def _moment(value: dt.datetime) -> str:
    """A timestamp; with an offset where it has a zone."""
    away = value.utcoffset()
    if away is not None and away.total_seconds() % 60:
        return repr(value)
    text = value.replace(tzinfo=None).isoformat(" ")
    nanos = int(getattr(value, "nanosecond", 0))  # of pandas, which writes them itself
    if nanos and "." in text and len(text.rpartition(".")[2]) < 9:
        text = f"{text}{nanos:03}"
    if away is not None:
        minutes = int(away.total_seconds() // 60)
        sign, minutes = ("-", -minutes) if minutes < 0 else ("+", minutes)
        text += f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    return f"timestamp '{text}'"


def _ticks(value: Any) -> str:
    """A time of pyarrow, to the nanosecond."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[value.type.unit]
    seconds, part = divmod(value.value, per_second)
    digits = len(str(per_second)) - 1
    fraction = f".{part:0{digits}}" if part else ""
    if not isinstance(value, pa.TimestampScalar):
        clock = (dt.datetime.min + dt.timedelta(seconds=seconds % 86400)).time()
        return f"time '{clock.isoformat()}{fraction}'"
    try:
        made = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    except OverflowError:
        return f"{value.type}({value.value})"
    zone = "" if value.type.tz is None else "+00:00"
    return f"timestamp '{made.isoformat(' ')}{fraction}{zone}'"


def point(
    words: str, text: str, at: int, kind: type[PredicateError] = PredicateError
) -> PredicateError:
    """An error that points at a character: the line of the text that has it, and a caret below."""
    start = text.rfind("\n", 0, at) + 1
    stop = text.find("\n", at)
    line = text[start : len(text) if stop < 0 else stop]
    first = max(at - start - 50, 0)
    shown = line[first : first + 100].replace("\t", " ")
    head = "..." if first else ""
    tail = "..." if len(line) > first + 100 else ""
    caret = " " * (len(head) + at - start - first) + "^"
    error = kind(f"{words}\n  {head}{shown}{tail}\n  {caret}")
    error.at = at
    return error
