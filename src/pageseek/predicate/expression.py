"""Filter expressions as users write them: immutable, picklable, with a readable repr.

SQL's three-valued logic holds: a comparison with null is NULL, and a row is kept only where the whole is TRUE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import names_of_others
from pageseek.base.records import NamedTuple, dataclass
from pageseek.base.tracebacks import short_traceback
from pageseek.predicate.given_values import is_null, like_pattern, listed, packed
from pageseek.predicate.operators import MIRRORED
from pageseek.predicate.parameters import Param
from pageseek.predicate.text import show, show_column

# alternations of AND, OR and NOT within one another; chains of one kind have no limit
MAX_DEPTH = 100
_MAX_COPIED = 64  # arguments that `&` and `|` copy; `flatten` flattens longer chains
_MAX_SHOWN = 1000  # pieces of a repr
_MAX_VALUES = 20  # of a list that a repr shows whole
_FIRST_VALUES = 6  # that it shows of a longer one


class Expression:
    """A condition on a row. Combine with `&`, `|` and `~`."""

    __slots__ = ()
    __hash__ = object.__hash__

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The conditions that it is made of; a test has none."""
        return ()

    def __copy__(self) -> Expression:
        """The expression itself, which never changes."""
        return self

    @short_traceback
    def __and__(self, other: object) -> Expression:
        return And(_flat(And, self, _condition(other)))

    @short_traceback
    def __or__(self, other: object) -> Expression:
        return Or(_flat(Or, self, _condition(other)))

    def __invert__(self) -> Expression:
        return Not(self)

    @short_traceback
    def __rand__(self, other: object) -> Expression:
        return _condition(other) & self

    @short_traceback
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


def _flat(kind: type[_Joined], *args: Expression) -> tuple[Expression, ...]:
    return tuple(
        part
        for arg in args
        for part in (arg.args if isinstance(arg, kind) and len(arg.args) <= _MAX_COPIED else (arg,))
    )


class Place(NamedTuple):
    """Where the text of a filter has a column, and the values that it is compared with there."""

    text: str
    at: int
    values: tuple[int, ...] = ()


NO_ARITHMETIC = (
    "columns are compared as they are, without arithmetic; a filter of pyarrow has it: "
    "pc.field('a') + 1 > pc.field('b')"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """A column by name; comparisons with values, or with another column, make conditions.

    `path`: the parts of a path, or one name: that of a top-level column if there is one, else a path with dots.
    `place`: where the text of a filter names it, for errors; it is not pickled.
    """

    path: tuple[str, ...]
    place: Place | None = None
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    @short_traceback
    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("=", value)

    @short_traceback
    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("!=", value)

    @short_traceback
    def __lt__(self, value: object) -> Expression:
        return self._compare("<", value)

    @short_traceback
    def __le__(self, value: object) -> Expression:
        return self._compare("<=", value)

    @short_traceback
    def __gt__(self, value: object) -> Expression:
        return self._compare(">", value)

    @short_traceback
    def __ge__(self, value: object) -> Expression:
        return self._compare(">=", value)

    def _compare(self, op: str, value: object) -> Expression:
        if isinstance(value, Element):
            return value._compare(MIRRORED[op], self)
        if isinstance(value, Column):
            return CompareColumns(self, op, value)
        if isinstance(value, (Expression, memoryview)):
            value = _value(value)
        return Compare(self, op, value)

    def _made(self, test: Expression) -> Expression:
        return test

    if not TYPE_CHECKING:  # which says by itself that a column is no operand

        def _operand(self, *_: object) -> None:
            raise PredicateError(
                f"{self!r} is an operand of & | ~, which bind tighter than comparisons: write each condition in parentheses, (a > 3) & (b < 5)"
            )

        __and__ = __rand__ = __or__ = __ror__ = __invert__ = _operand

        def _computed(self, *_: object) -> None:
            raise PredicateError(f"{self!r}: {NO_ARITHMETIC}")

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _computed
        __rtruediv__ = __floordiv__ = __mod__ = __rmod__ = __pow__ = __neg__ = __abs__ = _computed

        __getattr__ = names_of_others("Column")

    @short_traceback
    def isin(self, values: Iterable[Any] | Param) -> Expression:
        """Equal to one of the values. As in SQL, a null among them makes the result NULL where no other value is equal.

        Many values are converted fastest from a pyarrow or numpy array, or from a list of one type.
        """
        if isinstance(values, (str, bytes)):
            raise PredicateError(f"isin({values!r}): give a list of values")
        return self._made(IsIn(self, listed(values)))

    @short_traceback
    def between(self, low: Any, high: Any) -> Expression:
        """`low <= column <= high`."""
        if isinstance(low, Column) or isinstance(high, Column):
            return And((self >= low, self <= high))
        return self._made(
            And((Compare(self, ">=", _value(low)), Compare(self, "<=", _value(high))))
        )

    @short_traceback
    def is_null(self) -> Expression:
        """TRUE where there is no value."""
        return self._made(IsNull(self))

    @short_traceback
    def is_not_null(self) -> Expression:
        """TRUE where there is a value."""
        return self._made(Not(IsNull(self)))

    @short_traceback
    def is_nan(self) -> Expression:
        """TRUE where the value is NaN; NULL where there is none."""
        return self._made(IsNan(self))

    @short_traceback
    def starts_with(self, prefix: str | bytes | Param) -> Expression:
        """TRUE for strings, or binary values, that begin with `prefix`."""
        if is_null(prefix):
            raise PredicateError(f"starts_with({prefix!r}): a str or bytes")
        return self._made(StartsWith(self, prefix))

    @short_traceback
    def like(self, pattern: str | bytes | Param, escape: str = "\\") -> Expression:
        """SQL's LIKE: `%` stands for any text, `_` for one character (in binary values: one byte).

        After `escape` any character stands for itself; with an empty `escape` there is no such character.
        """
        return self._made(Like(self, like_pattern("like", pattern, escape), escape))

    @short_traceback
    def ilike(self, pattern: str, escape: str = "\\") -> Expression:
        """LIKE without regard to case, of text: each character of value and pattern stands for its small letter.

        The small letter is that of Unicode's simple mapping, one character for one: `Ä` equals `ä`, and `ß` is not `ss`.
        Only what precedes the first letter or wildcard of the pattern prunes.
        """
        checked = like_pattern("ilike", pattern, escape)
        if isinstance(checked, bytes):
            raise PredicateError(f"ilike({pattern!r}): a str; bytes have no case")
        return self._made(ILike(self, checked, escape))

    def any(self) -> Element:
        """Some element of a list: `col("tags").any() == "x"`, `col("items.price").any() > 5`.

        TRUE where a list has an element that satisfies the comparison; FALSE where none does and none is null;
        NULL else, and where there is no list.
        """
        return Element(self.path, self.place)

    def __bool__(self) -> bool:
        raise PredicateError(f"{self!r} is a column, not a truth value; compare it with something")

    def __repr__(self) -> str:
        return ".".join(self.path)

    @property
    def shown(self) -> str:
        """The column as SQL writes it."""
        return show_column(self.path)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Element(Column):
    """Some element of the list at a path; comparisons with values make conditions on the list."""

    __hash__ = object.__hash__

    def _compare(self, op: str, value: object) -> Expression:
        if isinstance(value, Column):
            raise PredicateError(
                f"{self!r} {op} {value!r}: elements of a list can be compared with values only"
            )
        return self._made(Compare(self, op, _value(value)))

    def _made(self, test: Expression) -> Expression:
        return AnyElement(self, test)

    def any(self) -> Element:
        return self

    def __repr__(self) -> str:
        return f"any({'.'.join(self.path)})"

    @property
    def shown(self) -> str:
        return f"any({show_column(self.path)})"


def _value(value: object) -> object:
    if isinstance(value, Expression):
        raise PredicateError(f"{value!r} is a condition; a column is compared with a value")
    return (
        bytes(value) if isinstance(value, memoryview) else value
    )  # a memoryview cannot be pickled


class _Shown(Expression):
    """A condition whose repr is made without recursion: its depth has no limit."""

    __slots__ = ()

    def __repr__(self) -> str:
        out: list[str] = []
        rest: list[Expression | str] = [self]
        while rest:
            if len(out) > _MAX_SHOWN:
                out.append(" ...")
                break
            part = rest.pop()
            if isinstance(part, str):
                out.append(part)
            elif isinstance(part, _Shown):
                rest.extend(reversed(part._pieces()))
            else:
                out.append(repr(part))
        return "".join(out)

    def _pieces(self) -> list[Expression | str]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(Expression):
    column: Column
    op: str
    value: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return Compare, (self.column, self.op, packed(self.value))

    def __repr__(self) -> str:
        return f"{self.column.shown} {self.op} {show(self.value)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompareColumns(Expression):
    """Two columns of the same row."""

    column: Column
    op: str
    other: Column

    def __repr__(self) -> str:
        return f"{self.column.shown} {self.op} {self.other.shown}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsIn(Expression):
    """`values`: a tuple, or an array of one type. `packed`: the values as the kernels take them, by leaf type."""

    column: Column
    values: tuple[Any, ...] | pa.Array
    packed: dict[Any, Any] = field(default_factory=dict, init=False)

    def __reduce__(self) -> tuple[Any, ...]:
        values = self.values
        if isinstance(values, tuple):
            values = tuple(map(packed, values))
        return IsIn, (self.column, values)

    def __repr__(self) -> str:
        count = len(self.values)
        most = count if count <= _MAX_VALUES else _FIRST_VALUES
        shown = ", ".join(show(v) for v in self.values[:most])
        # no SQL: a shorter list would be another filter
        more = f", ... {count - most:,} more" if count > most else ""
        return f"{self.column.shown} in ({shown}{more})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNull(Expression):
    column: Column

    def __repr__(self) -> str:
        return f"{self.column.shown} is null"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNan(Expression):
    column: Column

    def __repr__(self) -> str:
        return f"{self.column.shown} is nan"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StartsWith(Expression):
    column: Column
    prefix: str | bytes | Param

    def __repr__(self) -> str:
        return f"starts_with({self.column.shown}, {show(self.prefix)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Like(Expression):
    column: Column
    pattern: str | bytes
    escape: str = "\\"

    def __repr__(self) -> str:
        escape = "" if self.escape == "\\" else f" escape {show(self.escape)}"
        return f"{self.column.shown} like {show(self.pattern)}{escape}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ILike(Expression):
    """LIKE without regard to case."""

    column: Column
    pattern: str
    escape: str = "\\"

    def __repr__(self) -> str:
        escape = "" if self.escape == "\\" else f" escape {show(self.escape)}"
        return f"{self.column.shown} ilike {show(self.pattern)}{escape}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Expression):
    """TRUE, FALSE or NULL for every row."""

    value: bool | None

    def __repr__(self) -> str:
        return "null" if self.value is None else str(self.value).lower()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AnyElement(Expression):
    """Some element of a list satisfies the test, which names it by `element`."""

    element: Element
    test: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.test,)

    def __repr__(self) -> str:
        test = self.test
        if isinstance(test, And):  # BETWEEN: as two conditions it could hold for two elements
            low, high = (show(part.value) for part in test.args if isinstance(part, Compare))
            return f"{self.element.shown} between {low} and {high}"
        if isinstance(test, Not):  # SQL has no word for it: its NOT negates the whole condition
            return f"any({show_column(self.element.path)} is not null)"
        return repr(test)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrowFilter(Expression):
    """A `pyarrow.compute.Expression`, with the meaning that pyarrow gives it."""

    expression: Any

    def __repr__(self) -> str:
        return str(self.expression)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Joined(_Shown):
    args: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.args

    def _pieces_between(self, word: str, other: type) -> list[Expression | str]:
        made: list[Expression | str] = []
        for i, arg in enumerate(self.args[: _MAX_SHOWN + 1]):
            if i:
                made.append(word)
            made.extend(("(", arg, ")") if isinstance(arg, other) else (arg,))
        return made


class And(_Joined):
    __slots__ = ()

    def _pieces(self) -> list[Expression | str]:
        return self._pieces_between(" and ", Or)


class Or(_Joined):
    __slots__ = ()

    def _pieces(self) -> list[Expression | str]:
        return self._pieces_between(" or ", And)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _OfOne(_Shown):
    arg: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.arg,)


class Not(_OfOne):
    __slots__ = ()

    def _pieces(self) -> list[Expression | str]:
        if isinstance(self.arg, IsNull):
            return [f"{self.arg.column.shown} is not null"]
        return ["not (", self.arg, ")"]


class IsTrue(_OfOne):
    """TRUE where its condition is TRUE, FALSE where that is FALSE or NULL."""

    __slots__ = ()

    def _pieces(self) -> list[Expression | str]:
        return ["(", self.arg, ") is true"]


@short_traceback
def col(*path: str) -> Column:
    """A column: `col("a")`, `col("a.b")`, `col("a", "b")`.

    A single name is an exact top-level name first, and else a path split at its dots.
    """
    for part in path or (None,):
        if not isinstance(part, str):
            raise PredicateError(f"col{path!r}: names are strings")
    return Column(path)


def walk(expression: Expression) -> Iterator[Expression]:
    """A condition and all that it is made of, each before its own parts."""
    rest = [expression]
    while rest:
        yield (one := rest.pop())
        rest.extend(reversed(one.parts))


def rebuilt(expression: Expression, test: Callable[[Expression], Expression]) -> Expression:
    """The condition with each test replaced by a function; AND, OR, NOT and IS TRUE stay."""
    if isinstance(expression, _Joined):
        return type(expression)(tuple([rebuilt(part, test) for part in expression.args]))
    if isinstance(expression, _OfOne):
        return type(expression)(rebuilt(expression.arg, test))
    return test(expression)


def flatten(e: Expression, depth: int = 0) -> Expression:
    """The condition with each chain of one kind as one node.

    `depth`: how many nodes it stands in. PredicateError: the result still nests deeper than MAX_DEPTH.
    """
    nots = 0
    while isinstance(e, Not):
        e, nots = e.arg, nots + 1
    if isinstance(e, (_Joined, IsTrue)) and depth >= MAX_DEPTH:
        raise PredicateError(
            f"the filter nests AND, OR and NOT deeper than the limit of {MAX_DEPTH}; write it flatter, or "
            "filter in several steps"
        )
    if isinstance(e, _Joined):
        kind, changed = type(e), False
        parts: list[Expression] = []
        rest = list(reversed(e.args))
        while rest:
            part = rest.pop()
            if isinstance(part, kind):
                rest.extend(reversed(part.args))
                changed = True
            elif isinstance(part, (_Joined, _OfOne)):
                made = flatten(part, depth + 1)
                changed |= made is not part
                parts.append(made)
            else:
                parts.append(part)
        if changed:
            e = kind(tuple(parts))
    elif isinstance(e, IsTrue):
        inner = flatten(e.arg, depth + 1)
        e = e if inner is e.arg else IsTrue(inner)
    return Not(e) if nots % 2 else e
