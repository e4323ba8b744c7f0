"""Text for terminals: sizes, values, strips of ranges, JSON."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
import sys
from typing import TYPE_CHECKING, Any

from pageseek.base.report import format_size as size
from pageseek.base.text_table import table
from pageseek.cli.terminal import is_utf8

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["encode", "place", "safe", "shown", "size", "strip", "table", "to_json"]

CONTROLS = re.compile("[\x7f-\x9f]")  # that JSON does not escape, and terminals obey
STRIP = 40  # characters that stand for the whole range of a column


def shown(value: Any, longest: int = 24) -> str:
    """A value on one line, in at most `longest` characters; a number is never cut."""
    if value is None:
        return "-"
    if isinstance(value, bytes):
        text = value.hex()
    elif isinstance(value, (float, int, decimal.Decimal)):
        return str(value)
    elif isinstance(value, dt.datetime):
        text = value.isoformat(" ").removesuffix("+00:00")
    else:
        text = str(value)
    if not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii")
    return text if len(text) <= longest else text[: longest - 3] + "..."


def safe(text: str) -> str:
    """Lines without what a terminal obeys, such as escape sequences in names: such characters are spelt out."""
    if text.isprintable():
        return text
    return "".join(
        c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def place(scalar: pa.Scalar) -> float | None:
    """A number or time as a float; None for null and for other values."""
    import pyarrow as pa  # late: help needs none

    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_temporal(kind):
        try:
            wide = pa.int32() if kind.bit_width == 32 else pa.int64()
            return float(scalar.cast(wide).as_py())
        except (pa.ArrowException, AttributeError):
            return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return None  # a bound that is cut may be no UTF-8
    value = scalar.as_py()
    if isinstance(value, (bool, int, float, decimal.Decimal)):
        number = float(value)
        return number if abs(number) != float("inf") and number == number else None
    return None


def strip(
    low: float | None, high: float | None, least: float, most: float, width: int = STRIP
) -> str:
    """[low .. high] drawn at its place within [least .. most]; only `?` if it is not known."""
    if low is None or high is None:
        return "?" * width
    span = most - least
    if span == float("inf"):  # halves of doubles have a finite one
        return strip(low / 2, high / 2, least / 2, most / 2, width)
    if span <= 0:
        return "#" * width
    first = min(width - 1, max(0, int((low - least) / span * width)))
    last = min(width - 1, max(first, int((high - least) / span * width)))
    return "." * first + "#" * (last - first + 1) + "." * (width - 1 - last)


def encode(value: Any) -> Any:
    """A value of a type that JSON lacks as text, for `json.dumps(default=...)`."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def to_json(value: Any, indent: int | None = 1) -> str:
    """JSON of plain data. NaN and infinities become text: JSON has no numbers for them."""
    # what is printed (`indent`) is in the encoding of the stream, rows of JSON lines are UTF-8
    narrow = indent is not None and not is_utf8(sys.stdout)
    made = json.dumps(
        _finite(value), default=encode, indent=indent, ensure_ascii=narrow, allow_nan=False
    )
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", made)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
