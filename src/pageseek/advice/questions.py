"""The filters to give advice on, in the parts that are joined by AND, and what indexes can do for each part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import compute as pc
from pageseek.base.records import NamedTuple
from pageseek.format.trigram_form import GRAM
from pageseek.predicate.expression import (
    And,
    AnyElement,
    ArrowFilter,
    Column,
    Compare,
    CompareColumns,
    Expression,
    IsIn,
    Like,
    Or,
    StartsWith,
    walk,
)
from pageseek.predicate.filters import to_expression
from pageseek.predicate.like import compile_pattern
from pageseek.predicate.parameter_values import parameters_of

EQUAL, RANGE, OTHER = "equal", "range", "other"


class Condition(NamedTuple):
    """A part of a filter, that has to be TRUE.

    `columns`: top-level columns that it reads. `path`: of its one column, where it tests a single one; else empty.
    `kind`: EQUAL for `=` and IN, RANGE for bounds and prefixes, OTHER for what no order and no hash helps.
    `values`: those of EQUAL. `low`, `high`: bounds of RANGE, None where open.
    `texts`: pieces of three bytes or more that all values have which pass, by LIKE or as a prefix. `text_path`: their column.
    """

    expression: Expression
    columns: tuple[str, ...]
    path: str
    kind: str
    values: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None
    texts: tuple[bytes, ...] = ()
    text_path: str = ""


class Question(NamedTuple):
    """A filter with the columns of its result; None is all."""

    text: str
    filter: Expression
    columns: tuple[str, ...] | None
    conditions: tuple[Condition, ...]

    @property
    def needed(self) -> tuple[str, ...]:
        """The top-level columns that the filter reads."""
        return tuple(dict.fromkeys(name for one in self.conditions for name in one.columns))


def questions_of(queries: Any, schema: pa.Schema) -> list[Question]:
    """The queries of a caller: a filter, or a list of filters and of (filter, columns) pairs.

    Raises
    ------
    PredicateError
        One is no filter, or has parameters.
    """
    alone = isinstance(queries, (str, Expression, pc.Expression))
    if alone or _is_pair(queries) or _is_conjunction(queries):
        queries = [queries]
    if isinstance(queries, (bytes, Mapping)) or not isinstance(queries, Iterable):
        raise TypeError(
            f"queries={queries!r}: a filter, or a list of filters and of (filter, columns) pairs"
        )
    return [_question(one, schema) for one in queries]


def _is_conjunction(value: Any) -> bool:
    """[(column, operator, value), ...], which is one filter."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(one, tuple) and [*map(type, one[:2])] == [str, str] and len(one) == 3
            for one in value
        )
    )


def _is_pair(value: Any) -> bool:
    """(filter, columns). A pair of two filters is not one: the second would have to be a list of names, or None."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    condition, columns = value
    named = isinstance(columns, (list, tuple)) and all(isinstance(name, str) for name in columns)
    return isinstance(condition, (str, Expression, pc.Expression, list)) and (
        columns is None or named
    )


def _question(given: Any, schema: pa.Schema) -> Question:
    condition, columns = given if _is_pair(given) else (given, None)
    made = to_expression(condition)
    if made is None:
        raise PredicateError(f"{condition!r}: a query to advise on needs a filter")
    if names := parameters_of(made):
        raise PredicateError(
            f"{made!r}: give values in place of parameters ({', '.join(sorted(names))})"
        )
    text = condition if isinstance(condition, str) else repr(made)
    return Question(
        text, made, None if columns is None else tuple(columns), conditions_of(made, schema)
    )


def conditions_of(condition: Expression, schema: pa.Schema) -> tuple[Condition, ...]:
    """The conditions that a filter joins by AND. Those of one column are one: bounds are met by the same rows."""
    parts = condition.args if isinstance(condition, And) else (condition,)
    by_column: dict[Any, list[Expression]] = {}
    for part in parts:
        by_column.setdefault(_key(part), []).append(part)
    return tuple([_condition(some, schema) for some in by_column.values()])


def _key(part: Expression) -> Any:
    column = _tested(part)
    return id(part) if column is None else column.path


def _tested(part: Expression) -> Column | None:
    """The column of a plain test of one value a row."""
    if isinstance(part, (Compare, IsIn, StartsWith)):
        return part.column
    if isinstance(part, Or):  # (a = 1 or a = 2) is an IN
        columns = [
            _tested(one) for one in part.args if isinstance(one, (Compare, IsIn)) and _values(one)
        ]
        if (
            len(columns) == len(part.args)
            and len({one.path for one in columns if one is not None}) == 1
        ):
            return columns[0]
    return None


def _values(part: Expression) -> tuple[Any, ...] | None:
    """The values of which a row needs one; None where the test is no `=` or IN."""
    if isinstance(part, Compare) and part.op == "=":
        return (part.value,)
    if isinstance(part, IsIn):
        return tuple(part.values)
    if isinstance(part, Or):
        some = [_values(one) for one in part.args]
        return tuple(value for one in some if one for value in one) if all(some) else None
    return None


def _condition(parts: Sequence[Expression], schema: pa.Schema) -> Condition:
    expression = parts[0] if len(parts) == 1 else And(tuple(parts))
    columns = tuple(dict.fromkeys(_top(one, schema) for one in _columns(expression)))
    tested = _tested(parts[0])
    if tested is None:
        like = parts[0] if isinstance(parts[0], Like) else None
        found = () if like is None else _long(compile_pattern(like.pattern, like.escape).parts)
        text_path = _name(like.column, schema) if like is not None and found else ""
        return Condition(expression, columns, "", OTHER, texts=found, text_path=text_path)
    path = _name(tested, schema)
    for part in parts:
        values = _values(part)
        if values is not None:
            return Condition(expression, columns, path, EQUAL, values)
    low = high = None
    texts: tuple[bytes, ...] = ()
    for part in parts:
        if isinstance(part, StartsWith):
            low, high = part.prefix, _after(part.prefix)
            prefix = part.prefix.encode() if isinstance(part.prefix, str) else part.prefix
            texts = _long([prefix]) if isinstance(prefix, bytes) else ()
        elif isinstance(part, Compare) and part.op in (">", ">="):
            low = part.value
        elif isinstance(part, Compare) and part.op in ("<", "<="):
            high = part.value
        else:
            return Condition(expression, columns, path, OTHER)
    return Condition(expression, columns, path, RANGE, (), low, high, texts, path if texts else "")


def _long(parts: Iterable[Any]) -> tuple[bytes, ...]:
    """The parts of a pattern that a trigram index searches for."""
    return tuple([part for part in parts if isinstance(part, bytes) and len(part) >= GRAM])


def _after(prefix: Any) -> Any:
    """A value above all that begin with a prefix."""
    return prefix + (b"\xff" if isinstance(prefix, bytes) else "\U0010ffff")


def _columns(expression: Expression) -> Iterable[Column]:
    for part in walk(expression):
        if isinstance(part, AnyElement):
            yield part.element
        elif isinstance(part, CompareColumns):
            yield from (part.column, part.other)
        elif isinstance(part, ArrowFilter):
            raise PredicateError(
                f"{part!r}: advice needs to know which columns a filter tests; write it as SQL or with pageseek.col"
            )
        elif (column := getattr(part, "column", None)) is not None:
            yield column


def _top(column: Column, schema: pa.Schema) -> str:
    name = column.path[0]
    return name if name in schema.names else name.split(".")[0]


def _name(column: Column, schema: pa.Schema) -> str:
    """The dotted path of a column that is no list; empty where `attach` has no name for it."""
    return ".".join(column.path)
