"""Errors of conditions that do not fit their columns: which part of a condition is at fault, and what to write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pageseek.base.errors import NoColumnError, PredicateError
from pageseek.format.types import BYTES_KINDS, LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.column_pairs import family
from pageseek.predicate.literal import exact
from pageseek.predicate.schema_names import Found
from pageseek.predicate.text import point, show


def pointed(
    error: PredicateError, e: ex.Expression, value_leaf: Callable[[ex.Column], Found]
) -> PredicateError:
    """The error of a condition with a caret below its place in the filter's text; as it is where there is no text."""
    place = None if error.at is not None else _place(e, value_leaf)
    if place is None:
        return error
    words = str(error)
    if isinstance(e, ex.CompareColumns) and isinstance(error, NoColumnError):
        words += f"; a text is written in single quotes, {show('.'.join(e.other.path))}"
    return point(words, place.text, place.at)


def _place(e: ex.Expression, value_leaf: Callable[[ex.Column], Found]) -> ex.Place | None:
    """Where the text has what cannot be bound: the column, or a value."""
    if isinstance(e, ex.AnyElement):
        return e.element.place
    column: ex.Column | None = getattr(e, "column", None)
    if column is None or column.place is None:
        return None
    place = column.place
    try:
        _, leaf_type = value_leaf(column)
    except PredicateError:
        return place
    if isinstance(e, ex.CompareColumns):
        return e.other.place
    if isinstance(e, (ex.Like, ex.StartsWith)):
        beside: Iterable[int] = place.values if leaf_type.kind in BYTES_KINDS else ()
    elif isinstance(e, ex.IsIn):
        beside = (
            at
            for value, at in zip(e.values, place.values, strict=True)
            if not _fits(value, leaf_type)
        )
    elif isinstance(e, ex.Compare):
        beside = place.values[-1:] if e.op == "<=" else place.values  # BETWEEN has two
    else:
        beside = ()
    return place._replace(at=next(iter(beside), place.at))


def _fits(value: Any, leaf_type: LeafType) -> bool:
    try:
        exact(value, leaf_type, None)
    except PredicateError:
        return False
    return True


def uncomparable(e: ex.CompareColumns, a: LeafType, b: LeafType) -> PredicateError:
    """The error of two columns whose types have no common order."""
    zones = {"timestamp with time zone", "date or timestamp"}
    why = ": one has a time zone, the other has none" if {family(a), family(b)} == zones else ""
    return PredicateError(f"{e!r}: {a.type} and {b.type} cannot be compared{why}")


__all__ = ["pointed", "uncomparable"]
