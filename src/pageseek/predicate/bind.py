"""An expression bound to the leaves of a file, with packed literals, for the kernels.

NOT is pushed down to the leaves, where it is a flag: in three-valued logic NOT (x < 5) is TRUE exactly where
x < 5 is FALSE, which the kernels answer directly, NaN included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from pageseek._core import rows
from pageseek.base.errors import NoColumnError, PredicateError
from pageseek.format.types import BYTES_KINDS, LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.bound import Bound, BoundAny, BoundConst, BoundLeaf, BoundNot
from pageseek.predicate.constant_column import ConstantColumn, decide
from pageseek.predicate.leaf_conditions import (
    OF_ONE_LEAF,
    columns_test,
    input_leaf,
    null_test,
    undecided,
)
from pageseek.predicate.literal import exact
from pageseek.predicate.schema_names import (
    DatasetNames,
    Find,
    Found,
    Names,
    UnknownColumnError,
    WholeColumn,
)
from pageseek.predicate.simplify import join
from pageseek.predicate.text import point, show

NAN_RULES = {"ieee": rows.NAN_IEEE, "spark": rows.NAN_SPARK}

NEVER = (rows.OP_NEVER, rows.OP_ALWAYS)  # tests that are never TRUE: plain, and negated


def bind(
    expression: ex.Expression,
    find: Find,
    nan: str = "ieee",
) -> Bound:
    """Bind names and literals to the leaves of a file; `find` returns the leaf at a path.

    `find` may be a plain function if no condition is on lists or of pyarrow.
    """
    if nan not in NAN_RULES:
        raise PredicateError(f"nan={nan!r}: one of {', '.join(map(repr, NAN_RULES))}")
    return _Binder(find, NAN_RULES[nan]).bind(expression, False)


class _Binder:
    def __init__(self, find: Find, nan: int) -> None:
        self._find = find
        self._nan = nan
        self._dataset = cast("DatasetNames", find) if hasattr(find, "complete") else None

    def bind(self, e: ex.Expression, negate: bool) -> Bound:
        while isinstance(e, ex.Not):
            e, negate = e.arg, not negate
        if isinstance(e, (ex.And, ex.Or)):
            args = [self.bind(arg, negate) for arg in e.args]
            return join(args, isinstance(e, ex.And) != negate)
        if isinstance(e, ex.IsTrue):
            inner = self.bind(e.arg, False)
            return _not(inner) if negate else inner
        try:
            bound = self._test(e, negate)
        except UnknownColumnError:
            return undecided(e, negate)
        except PredicateError as error:
            found = _pointed(error, e, self._value)
            if found is error:
                raise
            raise found from None  # it says all that the other does
        if isinstance(bound, BoundLeaf) and bound.op == NEVER[bound.negate]:
            return BoundConst(False)
        return bound

    def _test(self, e: ex.Expression, negate: bool) -> Bound:
        if self._dataset is not None:
            if isinstance(e, ex.AnyElement):
                whole = self._dataset.default_in_list(e.element.path)
                if whole is not None:
                    return self._any_default(e, whole, negate)
            from pageseek.predicate.dataset_conditions import for_file  # late: for many files

            e, constant = for_file(e, self._dataset)
            if constant is not None:
                return self._decided(e, negate, *constant)
            if isinstance(
                e, ex.Or
            ):  # two columns, of which one has the same value wherever its struct is not null
                return self.bind(e, negate)
        make = OF_ONE_LEAF.get(type(e))
        if make is not None:
            column: ex.Column = e.column  # type: ignore[attr-defined]
            found = self._find(column.path)
            if found[0].group:
                raise _nested(column)
            return make(e, found, self._nan, negate)
        if isinstance(e, ex.IsNull):
            return null_test(e, self._find(e.column.path), self._nan, negate)
        if isinstance(e, ex.Constant):
            return BoundConst(e.value is not None and e.value != negate)
        if isinstance(e, ex.CompareColumns):
            one, other = self._value(e.column), self._value(e.other)
            return columns_test(e, one, other, self._nan, negate)
        if isinstance(e, ex.AnyElement):
            return self._any(e, negate)
        if isinstance(e, ex.ArrowFilter):
            from pageseek.predicate.arrow_conditions import arrow_test  # late: for pyarrow's

            own = _Binder(self._find, rows.NAN_IEEE)
            names = cast("Names", self._find)
            return arrow_test(e, names, self._dataset, lambda part: own.bind(part, False), negate)
        raise PredicateError(f"{e!r}: not a condition that can be bound")

    def _value(self, column: ex.Column) -> Found:
        """A leaf whose values are compared."""
        found = self._find(column.path)
        if found[0].group:
            raise _nested(column)
        return found

    def _decided(
        self, e: ex.Expression, negate: bool, column: ConstantColumn, leaf_type: LeafType
    ) -> Bound:
        """A condition on a column that has one value in this file, evaluated for that value; inside of a struct also for null."""
        from pageseek.predicate.dataset_conditions import of_null

        alone = _Binder(lambda _path: (column, leaf_type), self._nan)._test(e, negate)
        there = decide(alone, column.values)
        if column.struct is None or self._test(of_null(e), negate) == BoundConst(there):
            return BoundConst(there)
        struct = ex.IsNull(ex.Column(column.path[:-1]))
        return null_test(struct, column.struct, self._nan, there)

    def _any(self, e: ex.AnyElement, negate: bool) -> Bound:
        found = getattr(self._find, "element", self._find)(e.element.path)
        leaf, leaf_type = found
        if leaf.max_rep == 0:
            raise PredicateError(
                f"{e!r}: column of type {leaf_type.type} is no list; compare it without any()"
            )
        test = _Binder(lambda _path: found, self._nan).bind(e.test, negate)
        if test == BoundConst(False) and not negate:
            return test
        return BoundAny(input_leaf(found, e), test, negate)

    def _any_default(self, e: ex.AnyElement, whole: WholeColumn, negate: bool) -> Bound:
        from pageseek.predicate.element_conditions import any_default  # late: for some tables

        def test(leaf_type: LeafType) -> Bound:
            leaf = ConstantColumn(e.element.path, None)
            return _Binder(lambda _path: (leaf, leaf_type), self._nan).bind(e.test, negate)

        return any_default(e, whole, test, negate)


def _not(bound: Bound) -> Bound:
    if isinstance(bound, BoundConst):
        return BoundConst(not bound.value)
    return bound.arg if isinstance(bound, BoundNot) else BoundNot(bound)


# -- errors ----------------------------------------------------------------------------------------


def _nested(column: ex.Column) -> PredicateError:
    return PredicateError(
        f"{column!r} is nested: it can be tested for null; to compare, name one of its leaves, "
        "and of a list write .any() for some of its elements"
    )


_NOW = "; there is no word for the present: write the time, such as timestamp '2024-01-31 12:30:00'"
# what other dialects of SQL call values, and we take for the name of a column
_INSTEAD_OF_NAMES = {
    "nan": "; NaN is tested by IS NAN and IS NOT NAN",
    "current_date": "; there is no word for the present: write the day, such as date '2024-01-31'",
    "current_timestamp": _NOW,
    "localtimestamp": _NOW,
}


def _pointed(
    error: PredicateError, e: ex.Expression, value_leaf: Callable[[ex.Column], Found]
) -> PredicateError:
    """The error with a caret below its place in the text of the filter; the error itself if there is no text."""
    place = None if error.at is not None else _place(e, value_leaf)
    if place is None:
        return error
    words = str(error)
    if isinstance(e, ex.CompareColumns) and isinstance(error, NoColumnError):
        missing = e.column if place is e.column.place else e.other
        name = ".".join(missing.path)
        words += (
            _INSTEAD_OF_NAMES.get(name.lower())
            or f"; a text is written in single quotes, {show(name)}"
        )
    kind = NoColumnError if isinstance(error, NoColumnError) else PredicateError
    return point(words, place.text, place.at, kind)


def _place(e: ex.Expression, value_leaf: Callable[[ex.Column], Found]) -> ex.Place | None:
    """The place of what cannot be bound: the column, or a value."""
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
    if isinstance(e, (ex.Like, ex.ILike, ex.StartsWith)):
        beside: Iterable[int] = place.values if leaf_type.kind in BYTES_KINDS else ()
    elif isinstance(e, ex.IsIn) and len(place.values) == len(e.values):
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
