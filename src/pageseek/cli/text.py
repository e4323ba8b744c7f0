"""Text for terminals: sizes, values, strips of ranges, JSON."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
import sys
from typing import Any

from pageseek.base.escapes import lines as safe
from pageseek.base.escapes import one_line
from pageseek.base.report import format_size as size
from pageseek.base.text_table import table
from pageseek.cli.terminal import is_utf8

__all__ = ["encode", "safe", "shown", "size", "strip", "table", "to_json"]

CONTROLS = re.compile("[\x7f-\x9f]")  # that JSON does not escape, and terminals obey
INFINITY = float("inf")
STRIP = 40  # characters that stand for the whole range of a column


def shown(value: Any, longest: int = 24, ends: bool = False) -> str:
    """A value on one line, in at most `longest` characters; a number is never cut. `ends`: a long text is cut in its middle."""
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
    text = one_line(text)
    if len(text) <= longest:
        return text
    last = (longest - 3) // 2 if ends else 0
    return f"{text[: longest - 3 - last]}...{text[len(text) - last :]}"


def strip(
    low: int | float | None,
    high: int | float | None,
    least: int | float,
    most: int | float,
    width: int = STRIP,
) -> str:
    """[low .. high] drawn at its place within [least .. most]; only `?` if it is not known. `<` and `>`: from or to infinity.

    Integers are compared exactly.
    """
    if low is None or high is None:
        return "?" * width
    if most <= least:
        return "#" * width
    if isinstance(least, float) and most - least == INFINITY:  # halves of doubles have a finite one
        return strip(low / 2, high / 2, least / 2, most / 2, width)
    first = _cell(low, least, most, width)
    last = max(first, _cell(high, least, most, width))
    cells = ["."] * first + ["#"] * (last - first + 1) + ["."] * (width - 1 - last)
    for end in (low, high):
        if abs(end) == INFINITY:
            cells[first if end < 0 else last] = "<" if end < 0 else ">"
    return "".join(cells)


def _cell(value: int | float, least: int | float, most: int | float, width: int) -> int:
    """The character in which a value lies."""
    if value <= least:
        return 0
    if value >= most:
        return width - 1
    if isinstance(least, int) and isinstance(most, int) and isinstance(value, int):
        return (value - least) * width // (most - least)
    return min(width - 1, int((value - least) / (most - least) * width))


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
