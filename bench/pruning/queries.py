"""The questions: thirty filters on one table, as trees of terms that every engine is given in its own language."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = ["QUERIES", "And", "Filter", "Not", "Or", "Query", "Term", "columns_of"]

ROWS = 1_000_000
ID_STEP = 3  # two of three ids are absent
START = dt.datetime(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Term:
    """`column op value`; `op` is a comparison, or one of in, between, is null, starts with."""

    column: str
    op: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class And:
    args: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    args: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    arg: Filter


Filter = Term | And | Or | Not


@dataclass(frozen=True, slots=True)
class Query:
    """A question: which columns of the rows that pass. `id` is always among them, to compare answers."""

    name: str
    filter: Filter
    columns: tuple[str, ...] | None = None


def columns_of(condition: Filter) -> set[str]:
    """The columns that a filter tests."""
    if isinstance(condition, Term):
        return {condition.column}
    if isinstance(condition, Not):
        return columns_of(condition.arg)
    return {name for arg in condition.args for name in columns_of(arg)}


def _id(row: int) -> int:
    return row * ID_STEP


def _at(part: float) -> dt.datetime:
    """The time before which about this share of the rows lies."""
    return START + dt.timedelta(seconds=int(ROWS * part))


def _day(part: float) -> dt.date:
    return _at(part).date()


def _all(*args: Filter) -> And:
    return And(args)


FEW = ("id", "price")
QUERIES: tuple[Query, ...] = (
    Query("id-point", Term("id", "=", _id(123_457))),
    Query("id-absent", Term("id", "=", _id(500_000) + 1)),
    Query("id-beyond", Term("id", ">", _id(ROWS))),
    Query("id-range", Term("id", "between", (_id(400_100), _id(401_100)))),
    Query("id-in-few", Term("id", "in", tuple(_id(row) for row in (7, 250_000, 250_001, 999_999)))),
    Query("id-in-many", Term("id", "in", tuple(_id(row) for row in range(600_000, 602_000, 2)))),
    Query("id-in-absent", Term("id", "in", tuple(_id(row) + 1 for row in range(0, ROWS, 997)))),
    Query("id-tail", Term("id", ">=", _id(995_000)), FEW),
    Query("id-or", Or((Term("id", "=", _id(10)), Term("id", "=", _id(990_000))))),
    Query("id-most", Term("id", "<", _id(900_000)), FEW),
    Query("time-hour", Term("at", "between", (_at(0.31), _at(0.31) + dt.timedelta(hours=1)))),
    Query("day", Term("day", "=", _day(0.5)), ("id", "at", "amount")),
    Query("day-and-country", _all(Term("day", "=", _day(0.25)), Term("country", "=", "c07"))),
    Query(
        "days-not-two",
        _all(Term("day", ">=", _day(0.9)), Not(Term("day", "in", (_day(0.95),)))),
        FEW,
    ),
    Query("user-point", Term("user", "=", 77_777)),
    Query("user-absent", Term("user", "=", 200_001)),
    Query("user-in", Term("user", "in", (5, 50_000, 199_999))),
    Query("user-and-time", _all(Term("user", "<", 2_000), Term("at", "<", _at(0.02)))),
    Query("tag-point", Term("tag", "=", "t-000f4240")),
    Query("tag-absent", Term("tag", "=", "t-zzzz")),
    Query("tag-prefix", Term("tag", "starts with", "t-00a")),
    Query("country-rare", Term("country", "=", "c59"), FEW),
    Query("country-absent", Term("country", "=", "c33x"), FEW),
    Query("country-in-or-flag", Or((Term("country", "=", "c58"), Term("flag", "=", True))), FEW),
    Query("price-high", Term("price", ">", 999.9)),
    Query("price-null-early", _all(Term("price", "is null"), Term("id", "<", _id(20_000)))),
    Query("amount-decimal", Term("amount", ">=", Decimal("99990.00")), ("id", "amount")),
    Query("level-not", _all(Not(Term("level", "<", 250)), Term("at", ">", _at(0.8))), FEW),
    Query("zone-nested", _all(Term("place.zone", "=", 41), Term("id", "<", _id(50_000))), FEW),
    Query("contradiction", _all(Term("id", "<", _id(10_000)), Term("at", ">", _at(0.5))), FEW),
)
