"""The parameters of a filter, and the values that a call gives for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pageseek.base.errors import PredicateError
from pageseek.base.suggest import offered
from pageseek.predicate import expression as ex
from pageseek.predicate.given_values import is_null, listed
from pageseek.predicate.parameters import Param
from pageseek.predicate.text import show


def parameters_of(expression: ex.Expression) -> dict[str, bool]:
    """The names of the parameters of a condition, in order, and whether each stands for a list.

    PredicateError: a name stands for a list here and for a value there.
    """
    found: dict[str, bool] = {}
    for part in ex.walk(expression):
        for value in _values(part):
            if (
                isinstance(value, Param)
                and found.setdefault(value.name, value.listed) != value.listed
            ):
                raise PredicateError(
                    f"param({value.name!r}) stands for a list in isin, and for one value elsewhere; use two names"
                )
    return found


def _values(part: ex.Expression) -> tuple[Any, ...]:
    if isinstance(part, ex.Compare):
        return (part.value,)
    if isinstance(part, ex.IsIn):
        return part.values if isinstance(part.values, tuple) else ()
    return (part.prefix,) if isinstance(part, ex.StartsWith) else ()


def with_values(expression: ex.Expression, values: Mapping[str, Any]) -> ex.Expression:
    """The condition with a value in place of each parameter."""

    def of_test(part: ex.Expression) -> ex.Expression:
        if isinstance(part, ex.Compare) and isinstance(part.value, Param):
            return ex.Compare(part.column, part.op, values[part.value.name])
        if isinstance(part, ex.IsIn) and isinstance(part.values, tuple):
            return _listed(part, values)
        if isinstance(part, ex.StartsWith) and isinstance(part.prefix, Param):
            prefix = values[part.prefix.name]
            if is_null(prefix):
                return ex.Constant(None)
            return ex.StartsWith(part.column, prefix)
        if isinstance(part, ex.AnyElement):
            return ex.AnyElement(part.element, ex.rebuilt(part.test, of_test))
        return part

    return ex.rebuilt(expression, of_test)


def _listed(part: ex.IsIn, values: Mapping[str, Any]) -> ex.Expression:
    first = part.values[0] if len(part.values) else None
    if isinstance(first, Param) and first.listed:
        return ex.IsIn(part.column, listed(values[first.name]))
    if any(isinstance(value, Param) for value in part.values):
        made = [values[one.name] if isinstance(one, Param) else one for one in part.values]
        return ex.IsIn(part.column, tuple(made))
    return part


def check_value(name: str, value: Any, listed: bool) -> Any:
    """A value that a caller gave for a parameter. PredicateError: it is none."""
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, (ex.Expression, ex.Column, Param)):
        raise PredicateError(
            f"param({name!r}): {value!r} is no value; put conditions and columns into the filter of prepare"
        )
    if listed and (
        value is None or isinstance(value, (str, bytes)) or not hasattr(value, "__iter__")
    ):
        raise PredicateError(
            f"param({name!r}): {show(value)} is no list; isin takes a list of values"
        )
    return value


def check_names(given: Mapping[str, Any], known: Mapping[str, bool]) -> None:
    """Raise TypeError unless exactly the known parameters are given."""
    for name in given:
        if name not in known:
            raise TypeError(f"no parameter {name!r}: {offered(name, list(known))}")
    missing = [name for name in known if name not in given]
    if missing:
        wanted = ", ".join(f"{name}=..." for name in missing)
        raise TypeError(f"no value for param({missing[0]!r}): call the query with {wanted}")
