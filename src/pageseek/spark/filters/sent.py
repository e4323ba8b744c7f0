"""Columns of a Connect client, before they are sent: their conjuncts, as expressions of this package."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any

from pageseek.base.errors import PredicateError
from pageseek.predicate import expression as ex
from pageseek.spark.filters.conjuncts import conjuncts

_COMPARED = {"==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PART = r"`(?:[^`]|``)+`|[^.`]+"
_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")


class _Unknown(Exception):
    """A node has no expression of this package."""


def sent_conjuncts(node: Any, whole: bool = False) -> Iterator[ex.Expression | str]:
    """Those conjuncts of a condition that are known here, or are SQL. They have to be bound yet.

    PredicateError: the `whole` condition is wanted, and something of it is not known.
    """
    if _name(node) == "and":
        for part in node._args:
            yield from sent_conjuncts(part, whole)
        return
    if type(node).__name__ == "SQLExpression":
        yield from conjuncts(node._expr)
        return
    try:
        made = _condition(node)
    except (_Unknown, PredicateError) as error:
        if whole:
            raise PredicateError(f"{node} is not known here") from error
        return
    yield made


def _name(node: Any) -> str:
    """The function of a node; empty for others."""
    if type(node).__name__ != "UnresolvedFunction" or node._is_distinct:
        return ""
    return str(node._name)


def _condition(node: Any) -> ex.Expression:
    name = _name(node)
    if name in ("and", "or"):
        parts = tuple(map(_condition, node._args))
        return ex.And(parts) if name == "and" else ex.Or(parts)
    if name == "not":
        return ex.Not(_condition(node._args[0]))
    if name in _COMPARED:
        left, right = node._args
        return ex.Compare(_column(left), _COMPARED[name], _value(right))
    if name == "in":
        tested, *values = node._args
        return ex.IsIn(_column(tested), tuple(map(_value, values)))
    if name in ("isNull", "isNotNull"):
        tested = _column(node._args[0])
        return tested.is_null() if name == "isNull" else tested.is_not_null()
    if name == "startsWith":
        prefix = _value(node._args[1])
        if isinstance(prefix, str):
            return _column(node._args[0]).starts_with(prefix)
    raise _Unknown(name)


def _column(node: Any) -> ex.Column:
    if type(node).__name__ != "ColumnReference" or node._plan_id is not None:
        raise _Unknown("no name")
    name: str = node._unparsed_identifier
    if not _NAME.fullmatch(name):
        raise _Unknown("no name")
    parts = re.findall(_PART, name)
    return ex.Column(tuple(p[1:-1].replace("``", "`") if p[0] == "`" else p for p in parts))


def _value(node: Any) -> Any:
    """A literal as a value that has one meaning in every zone."""
    made = None
    if type(node).__name__ == "LiteralExpression":
        made = _LITERALS.get(node._dataType.typeName())
    if made is None or node._value is None:
        raise _Unknown("no literal that is known")
    return made(node._value)


def _same(value: Any) -> Any:
    return value


_LITERALS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("boolean", "byte", "short", "integer", "long", "double"), _same),
    **dict.fromkeys(("string", "binary", "decimal"), _same),
    "date": lambda days: _EPOCH.date() + dt.timedelta(days=days),
    "timestamp": lambda micros: _EPOCH + dt.timedelta(microseconds=micros),
}
