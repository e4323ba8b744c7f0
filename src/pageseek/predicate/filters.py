"""A filter in whatever form a user gives it, as an expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import compute as pc
from pageseek.base.late_modules import is_instance
from pageseek.predicate.expression import And, ArrowFilter, Column, Expression, Or, flatten
from pageseek.predicate.operators import TUPLE_OPERATORS


def to_expression(
    value: Any, params: Sequence[Any] | Mapping[str, Any] | None = None
) -> Expression | None:
    """A filter in any accepted form as an expression: an expression of ours or of pyarrow, SQL, or DNF lists.

    `params`: the values of the parameters in SQL, or in an expression of ours.
    """
    if params is not None:
        return _with_params(value, params)
    if value is None:
        return None
    if isinstance(value, Expression):
        return flatten(value)
    if isinstance(value, Column):
        raise PredicateError(f"{value!r} is a column; write {value!r} == True for a boolean column")
    if isinstance(value, str):
        from pageseek.predicate.sql import parse  # late: a filter need not be SQL

        return flatten(parse(value))
    if isinstance(value, (list, tuple)):
        found = _from_dnf(value)
        return None if found is None else flatten(found)
    if is_instance(value, pc, "Expression"):
        return ArrowFilter(value)
    if type(value).__module__.startswith("polars."):
        raise PredicateError("a filter of polars is one for pageseek.polars.scan(...).filter(...)")
    raise PredicateError(
        f"a filter of type {type(value).__name__} is not supported; give an expression such as "
        "pageseek.col('a') > 35, SQL such as \"a > 35\", or lists such as [('a', '>', 35)]"
    )


def _with_params(value: Any, params: Sequence[Any] | Mapping[str, Any]) -> Expression:
    """A filter with the values of its parameters."""
    if isinstance(value, str):
        from pageseek.predicate.sql import parse

        return flatten(parse(value, params))
    if not isinstance(value, Expression):
        raise PredicateError(
            "params: there is no filter"
            if value is None
            else "params: they belong to a filter in SQL, or to one with pageseek.param(name)"
        )
    from pageseek.predicate.parameter_values import check_value, parameters_of, with_values
    from pageseek.predicate.sql_values import Given

    given, known = Given(params), parameters_of(value)
    found = {
        name: check_value(name, given.value(f":{name}", listed), listed)
        for name, listed in known.items()
    }
    given.check_all_used()
    return flatten(with_values(value, found))


# -- lists of tuples, the form that pyarrow and pandas take (disjunctive normal form) ----------------


def _from_dnf(filters: Sequence[Any]) -> Expression | None:
    """`[(column, op, value), ...]` joins by and; a list of such lists by or. No filter at all is None."""
    if not filters:
        return None
    if all(isinstance(f, tuple) for f in filters) and not (
        isinstance(filters, tuple)
        and all(isinstance(part, tuple) and not _is_term(part) for part in filters)
    ):
        return _conjunction(filters)
    parts = [_conjunction(group) for group in filters]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _is_term(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 3
        and isinstance(value[0], str)
        and isinstance(value[1], str)
    )


def _conjunction(terms: Any) -> Expression:
    if isinstance(terms, str):  # a tuple in the place of the list
        raise PredicateError(
            f"filter {terms!r}: a list of (column, operator, value) is expected, such as [('a', '>', 35)]"
        )
    if not isinstance(terms, (list, tuple)) or not terms:
        raise PredicateError(f"filter {terms!r}: a list of (column, operator, value) is expected")
    parts = [_term(term) for term in terms]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _term(term: Any) -> Expression:
    if not _is_term(term):
        raise PredicateError(f"filter term {term!r}: (column, operator, value) is expected")
    name, op, value = term
    make = TUPLE_OPERATORS.get(op.strip().lower())
    if make is None:
        raise PredicateError(f"filter operator {op!r}: one of {', '.join(TUPLE_OPERATORS)}")
    made: Expression = make(Column((name,)), value)
    return made
