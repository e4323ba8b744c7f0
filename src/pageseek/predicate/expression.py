"""Filter expressions as users write them: immutable, picklable, with a readable repr.

SQL's three-valued logic holds: a comparison with null is NULL, and a row is kept only where the whole is TRUE.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from pageseek.errors import PredicateError

__all__ = [
    "And",
    "Column",
    "Compare",
    "Expression",
    "IsIn",
    "IsNan",
    "IsNull",
    "Not",
    "Or",
    "StartsWith",
    "col",
]


class Expression:
    """A condition on a row. Combine with `&`, `|` and `~`."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __and__(self, other: object) -> Expression:
        return And(_flat(And, self, _condition(other)))

    def __or__(self, other: object) -> Expression:
        return Or(_flat(Or, self, _condition(other)))

    def __invert__(self) -> Expression:
        return Not(self)

    def __rand__(self, other: object) -> Expression:
        return _condition(other) & self

    def __ror__(self, other: object) -> Expression:
        return _condition(other) | self

    def __bool__(self) -> bool:
        raise PredicateError(
            f"{self!r} is a condition on rows, not a truth value: write & | ~ for and, or, not, "
            "with parentheses, and .between() for a chained comparison"
        )


def _condition(value: object) -> Expression:
    if isinstance(value, Expression):
        return value
    raise PredicateError(f"{value!r} is not a condition")


def _flat(kind: type[And] | type[Or], *args: Expression) -> tuple[Expression, ...]:
    return tuple(part for arg in args for part in (arg.args if isinstance(arg, kind) else (arg,)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """A column by name; comparisons with values make conditions.

    `path`: one name, taken exactly if there is such a top-level column and else split at its dots, or the
    parts of a path.
    """

    path: tuple[str, ...]
    __hash__ = object.__hash__

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        return Compare(self, "=", _value(value))

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        return Compare(self, "!=", _value(value))

    def __lt__(self, value: object) -> Expression:
        return Compare(self, "<", _value(value))

    def __le__(self, value: object) -> Expression:
        return Compare(self, "<=", _value(value))

    def __gt__(self, value: object) -> Expression:
        return Compare(self, ">", _value(value))

    def __ge__(self, value: object) -> Expression:
        return Compare(self, ">=", _value(value))

    def isin(self, values: Iterable[Any]) -> Expression:
        """Equal to one of the values; a null among them makes the others' misses NULL, as in SQL."""
        if isinstance(values, (str, bytes)):
            raise PredicateError(f"isin({values!r}): give a list of values")
        return IsIn(self, tuple(values))

    def between(self, low: Any, high: Any) -> Expression:
        """`low <= column <= high`."""
        return And((self >= low, self <= high))

    def is_null(self) -> Expression:
        """TRUE where there is no value."""
        return IsNull(self)

    def is_not_null(self) -> Expression:
        """TRUE where there is a value."""
        return Not(IsNull(self))

    def is_nan(self) -> Expression:
        """TRUE where the value is NaN; NULL where there is none."""
        return IsNan(self)

    def starts_with(self, prefix: str | bytes) -> Expression:
        """TRUE for strings, or binary values, that begin with `prefix`."""
        if prefix is None:
            raise PredicateError("starts_with(None): a str or bytes")
        return StartsWith(self, prefix)

    def __bool__(self) -> bool:
        raise PredicateError(f"{self!r} is a column, not a truth value; compare it with something")

    def __repr__(self) -> str:
        return ".".join(self.path)


def _value(value: object) -> object:
    if isinstance(value, (Column, Expression)):
        raise PredicateError(
            "a column can be compared with values only; column to column is not supported yet"
        )
    return value


class _Ticks(NamedTuple):
    """A date or time of pyarrow on its way to another process.

    pyarrow pickles its scalars as Python values, which have no nanoseconds and not all years.
    """

    value: int
    type: pa.DataType


_TIMES = (
    pa.TimestampScalar,
    pa.DurationScalar,
    pa.Time32Scalar,
    pa.Time64Scalar,
    pa.Date32Scalar,
    pa.Date64Scalar,
)


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, (pa.DictionaryScalar, pa.ExtensionScalar)) else value


def _pack(value: Any) -> Any:
    value = _bare(value)
    if isinstance(value, _TIMES) and value.is_valid:
        return _Ticks(value.value, value.type)
    return value


def _unpack(value: Any) -> Any:
    return pa.scalar(value.value, value.type) if isinstance(value, _Ticks) else value


def _compare(column: Column, op: str, value: Any) -> Compare:
    return Compare(column, op, _unpack(value))


def _is_in(column: Column, values: tuple[Any, ...]) -> IsIn:
    return IsIn(column, tuple(map(_unpack, values)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(Expression):
    column: Column
    op: str
    value: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _compare, (self.column, self.op, _pack(self.value))

    def __repr__(self) -> str:
        return f"{self.column!r} {self.op} {_show(self.value)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsIn(Expression):
    column: Column
    values: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _is_in, (self.column, tuple(map(_pack, self.values)))

    def __repr__(self) -> str:
        shown = ", ".join(_show(v) for v in self.values[:6])
        more = f", ... {len(self.values) - 6:,} more" if len(self.values) > 6 else ""
        return f"{self.column!r} in ({shown}{more})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNull(Expression):
    column: Column

    def __repr__(self) -> str:
        return f"{self.column!r} is null"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNan(Expression):
    column: Column

    def __repr__(self) -> str:
        return f"{self.column!r} is nan"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StartsWith(Expression):
    column: Column
    prefix: str | bytes

    def __repr__(self) -> str:
        return f"{self.column!r} starts with {self.prefix!r}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(Expression):
    args: tuple[Expression, ...]

    def __repr__(self) -> str:
        return " and ".join(f"({a!r})" if isinstance(a, Or) else repr(a) for a in self.args)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(Expression):
    args: tuple[Expression, ...]

    def __repr__(self) -> str:
        return " or ".join(f"({a!r})" if isinstance(a, And) else repr(a) for a in self.args)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Expression):
    arg: Expression

    def __repr__(self) -> str:
        if isinstance(self.arg, IsNull):
            return f"{self.arg.column!r} is not null"
        return f"not ({self.arg!r})"


def _show(value: Any) -> str:
    value = _bare(value)
    if hasattr(value, "as_py"):
        try:
            text = repr(value.as_py())
        except (OverflowError, ValueError):  # beyond what Python's own types hold, as str() is
            text = f"{value.type}({value.value})"
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def col(*path: str) -> Column:
    """A column: `col("a")`, `col("a.b")`, `col("a", "b")`.

    A single name is an exact top-level name first, and else a path split at its dots.
    """
    if not path or not all(isinstance(part, str) for part in path):
        raise PredicateError(f"col{path!r}: names are strings")
    return Column(path)


def to_expression(value: Any) -> Expression | None:
    """A filter in any accepted form as an expression: an expression, or DNF lists as in pyarrow."""
    from pageseek.predicate.dnf import from_dnf

    if value is None or isinstance(value, Expression):
        return value
    if isinstance(value, Column):
        raise PredicateError(f"{value!r} is a column; write {value!r} == True for a boolean column")
    if isinstance(value, (list, tuple)):
        return from_dnf(value)
    raise PredicateError(
        f"a filter of type {type(value).__name__} is not supported; "
        "give an expression such as pageseek.col('a') > 35, or lists such as [('a', '>', 35)]"
    )
