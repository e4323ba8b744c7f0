"""Columns whose statistics are as a test wants them, and what is then read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pageseek as ps
from support.writer import INT32, Column, Struct, plain_value, write

NAN, INF = math.nan, math.inf


def one(physical: int, values: list[Any], cuts: list[int] | None = None, **knobs: Any) -> bytes:
    """A file of column x and its row numbers."""
    return write(
        [
            Column("x", physical, values, cuts, **knobs),
            Column("row", INT32, list(range(len(values)))),
        ]
    )


def stats(**change: Any) -> Callable[[Struct], None]:
    """Replace fields of the chunk's statistics: max, min, nulls, max_value, min_value, nans."""
    numbers = {"max": 1, "min": 2, "nulls": 3, "max_value": 5, "min_value": 6, "nans": 9}

    def edit(meta: Struct) -> None:
        for name, value in change.items():
            meta[12][numbers[name]] = value

    return edit


def i32(value: int) -> bytes:
    return plain_value(INT32, value)


def groups_read(data: bytes, condition: ps.Expression) -> int:
    read = ps.scan(data, filter=condition).explain().to_dict()["row_groups"]["read"]
    assert isinstance(read, int)
    return read


BARE = {"column_index": False, "offset_index": False}


def twos(value: int, size: int | None = None) -> bytes:
    size = size or (value.bit_length() + 8) // 8
    return value.to_bytes(size, "big", signed=True)


def exact(low: bool | None, high: bool | None) -> Callable[[Struct], None]:
    def edit(meta: Struct) -> None:
        meta[12][8], meta[12][7] = low, high

    return edit
