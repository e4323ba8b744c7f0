"""A filter in whatever form a user gives it, as an expression."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from pageseek.base.errors import PredicateError
from pageseek.predicate.dnf import from_dnf
from pageseek.predicate.expression import ArrowFilter, Column, Expression, flatten
from pageseek.predicate.sql import parse


def to_expression(value: Any) -> Expression | None:
    """A filter in any accepted form as an expression: an expression of ours or of pyarrow, SQL, or DNF lists."""
    if value is None:
        return None
    if isinstance(value, Expression):
        return flatten(value)
    if isinstance(value, Column):
        raise PredicateError(f"{value!r} is a column; write {value!r} == True for a boolean column")
    if isinstance(value, str):
        return flatten(parse(value))
    if isinstance(value, (list, tuple)):
        found = from_dnf(value)
        return None if found is None else flatten(found)
    if isinstance(value, pc.Expression):
        return ArrowFilter(value)
    raise PredicateError(
        f"a filter of type {type(value).__name__} is not supported; give an expression such as "
        "pageseek.col('a') > 35, SQL such as \"a > 35\", or lists such as [('a', '>', 35)]"
    )
