"""A small file with a page index, and what a test spoils in it."""

from __future__ import annotations

from typing import Any

from support.oracle import agree
from support.writer import INT32, INT64, Column, write

X = [1, 3, None, 5, 5, None, None, 8, 9, 2]
CUTS = [
    2,
    1,
    2,
    2,
    2,
    1,
]  # one page of nulls in the middle, one that mixes, and disorder at the end


def make(values: list[Any] = X, cuts: list[int] = CUTS, **knobs: Any) -> bytes:
    return write(
        [
            Column("x", INT32, values, cuts, **knobs),
            Column("row", INT64, list(range(len(values))), [4, len(values) - 4]),
        ]
    )


def check(data: bytes) -> None:
    rows = agree(data, 1, 4, 5, 8, 100)
    assert [r["row"] for r in rows] == list(range(len(rows)))
