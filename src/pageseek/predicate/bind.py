"""From an expression to what the core can run: leaves, kinds, packed literals.

NOT is pushed down to the leaves, where it is a flag: in three-valued logic NOT (x < 5) is TRUE exactly where
x < 5 is FALSE, which the kernels answer directly, NaN included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pageseek._core import rows
from pageseek.errors import PredicateError
from pageseek.predicate import expression as ex
from pageseek.predicate.fold import fold
from pageseek.predicate.literal import exact, fit_fixed, fit_float, fit_integer, pack
from pageseek.schema import Leaf
from pageseek.types import BYTES_KINDS, FLOAT_KINDS, K_BOOL, K_BYTES, K_FIXED, Form

OPS = {
    "=": rows.OP_EQ,
    "!=": rows.OP_NE,
    "<": rows.OP_LT,
    "<=": rows.OP_LE,
    ">": rows.OP_GT,
    ">=": rows.OP_GE,
    "always": rows.OP_ALWAYS,
    "never": rows.OP_NEVER,
}
_SYMBOL = {v: k for k, v in OPS.items()} | {
    rows.OP_IN: "in",
    rows.OP_PREFIX: "starts with",
    rows.OP_IS_NULL: "is null",
    rows.OP_IS_NAN: "is nan",
}
Literals = tuple[int, bytes, bytes | None]  # how many, their values, their offsets


@dataclass(frozen=True, slots=True)
class BoundLeaf:
    """One test of one leaf. With `negate` it asks where the test is FALSE."""

    leaf: Leaf
    form: Form
    op: int
    literals: Literals
    negate: bool
    nan: int
    source: ex.Expression

    def __repr__(self) -> str:
        return f"not ({self.source!r})" if self.negate else repr(self.source)


@dataclass(frozen=True, slots=True)
class BoundAnd:
    args: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class BoundOr:
    args: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class BoundConst:
    """TRUE for every row, or for none."""

    value: bool


Bound = BoundLeaf | BoundAnd | BoundOr | BoundConst
NAN_RULES = {"ieee": rows.NAN_IEEE, "spark": rows.NAN_SPARK}


def bind(
    expression: ex.Expression,
    find: Callable[[tuple[str, ...]], tuple[Leaf, Form]],
    nan: str = "ieee",
) -> Bound:
    """Bind names and literals to the leaves of a file; `find` gives the leaf at a path."""
    if nan not in NAN_RULES:
        raise PredicateError(f"nan={nan!r}: one of {', '.join(map(repr, NAN_RULES))}")
    return _Binder(find, NAN_RULES[nan]).bind(expression, False)


def leaves_of(bound: Bound) -> list[BoundLeaf]:
    """The tests of a bound filter, in the order of writing."""
    if isinstance(bound, BoundLeaf):
        return [bound]
    if isinstance(bound, BoundConst):
        return []
    return [leaf for arg in bound.args for leaf in leaves_of(arg)]


def conjuncts(bound: Bound) -> list[Bound]:
    """The parts that must all be TRUE."""
    return list(bound.args) if isinstance(bound, BoundAnd) else [bound]


class _Binder:
    def __init__(self, find: Callable[[tuple[str, ...]], tuple[Leaf, Form]], nan: int) -> None:
        self._find = find
        self._nan = nan

    def bind(self, e: ex.Expression, negate: bool) -> Bound:
        if isinstance(e, ex.Not):
            return self.bind(e.arg, not negate)
        if isinstance(e, (ex.And, ex.Or)):
            args = [self.bind(arg, negate) for arg in e.args]
            return _join(args, isinstance(e, ex.And) != negate)
        bound = self._test(e, negate)
        if isinstance(bound, BoundLeaf) and bound.op == (
            rows.OP_ALWAYS if negate else rows.OP_NEVER
        ):
            return BoundConst(False)
        return bound

    def _test(self, e: ex.Expression, negate: bool) -> Bound:
        if isinstance(e, ex.Compare):
            return self._compare(e, negate)
        if isinstance(e, ex.IsIn):
            return self._isin(e, negate)
        if isinstance(e, ex.IsNull):
            return self._is_null(e, negate)
        if isinstance(e, ex.IsNan):
            leaf, form = self._value(e.column)
            op = rows.OP_IS_NAN if form.kind in FLOAT_KINDS else rows.OP_NEVER
            return BoundLeaf(leaf, form, op, (0, b"", None), negate, self._nan, e)
        if isinstance(e, ex.StartsWith):
            return self._prefix(e, negate)
        raise PredicateError(f"{e!r}: not a condition that can be bound")

    def _is_null(self, e: ex.IsNull, negate: bool) -> Bound:
        leaf, form = self._find(e.column.path)
        if leaf.group and leaf.rung < 0:
            return BoundConst(negate)  # nothing on the way to this group can be null
        return BoundLeaf(leaf, form, rows.OP_IS_NULL, (0, b"", None), negate, self._nan, e)

    def _value(self, column: ex.Column) -> tuple[Leaf, Form]:
        """A leaf whose values are compared."""
        leaf, form = self._find(column.path)
        if leaf.group:
            raise PredicateError(
                f"{column!r} is nested: it can be tested for null; to compare, name one of its leaves"
            )
        return leaf, form

    def _compare(self, e: ex.Compare, negate: bool) -> Bound:
        leaf, form = self._value(e.column)
        value = exact(e.value, form, e.column)
        if value is None:
            return BoundConst(False)  # NULL for every row, and so is its negation
        op, fitted = fit(e.op, value, form, self._nan)
        return BoundLeaf(leaf, form, OPS[op], pack_literals([fitted], form), negate, self._nan, e)

    def _isin(self, e: ex.IsIn, negate: bool) -> Bound:
        leaf, form = self._value(e.column)
        values = [exact(v, form, e.column) for v in e.values]
        if not values:
            return BoundConst(negate)  # no list holds anything, not even null
        present = [v for v in values if v is not None]
        if negate and len(present) < len(values):
            return BoundConst(False)  # NOT IN (..., NULL) is never TRUE
        fitted = [f for op, f in (fit("=", v, form, self._nan) for v in present) if op == "="]
        if not fitted:
            return BoundLeaf(leaf, form, rows.OP_NEVER, (0, b"", None), negate, self._nan, e)
        n, data, offsets = pack_literals(fitted, form)
        order = np.frombuffer(rows.sort_literals(form.kind, form.width, n, data, offsets), np.int64)
        literals = pack_literals([fitted[i] for i in order.tolist()], form)
        return BoundLeaf(leaf, form, rows.OP_IN, literals, negate, self._nan, e)

    def _prefix(self, e: ex.StartsWith, negate: bool) -> Bound:
        leaf, form = self._value(e.column)
        if form.kind not in BYTES_KINDS:
            raise PredicateError(f"{e!r}: column of type {form.type} has no prefix")
        prefix = exact(e.prefix, form, e.column)
        return BoundLeaf(
            leaf, form, rows.OP_PREFIX, pack_literals([prefix], form), negate, self._nan, e
        )


def fit(op: str, value: Any, form: Form, nan: int) -> tuple[str, Any]:
    """`x op value` as a comparison that values of the form can answer, or "always" or "never"."""
    if form.kind in BYTES_KINDS or form.kind == K_BOOL:
        return op, value
    if form.kind == K_FIXED:
        return fit_fixed(op, value, form.width)
    if form.kind in FLOAT_KINDS:
        return fit_float(op, value, form)
    return fit_integer(op, value, form, nan == rows.NAN_SPARK)


def pack_literals(values: list[Any], form: Form) -> Literals:
    """Values of the form's kind as the kernels take them."""
    if form.kind in BYTES_KINDS:
        ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
        width = np.int32 if form.kind == K_BYTES else np.int64
        if ends[-1] > np.iinfo(width).max:
            raise PredicateError("the literals of one condition hold more than 2 GiB")
        return len(values), b"".join(values), ends.astype(width).tobytes()
    if form.kind == K_FIXED:
        return len(values), b"".join(values), None
    if form.kind == K_BOOL:
        return (
            len(values),
            np.packbits(np.array(values, np.uint8), bitorder="little").tobytes(),
            None,
        )
    return len(values), b"".join(pack(v, form) for v in values), None


def _join(args: list[Bound], is_and: bool) -> Bound:
    kind = BoundAnd if is_and else BoundOr
    flat = [part for arg in args for part in (arg.args if isinstance(arg, kind) else (arg,))]
    if any(isinstance(part, BoundConst) and part.value != is_and for part in flat):
        return BoundConst(not is_and)
    flat = [part for part in flat if not isinstance(part, BoundConst)]
    if is_and and len(flat) > 1:
        folded = _fold(flat)
        if folded is None:
            return BoundConst(False)
        flat = folded
    if not flat:
        return BoundConst(is_and)
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _fold(parts: list[Bound]) -> list[Bound] | None:
    """Conjuncts with the tests of each leaf folded, in the order in which the leaves first come; None: never TRUE."""
    tests: dict[tuple[int, int], list[BoundLeaf]] = {}
    for part in parts:
        if isinstance(part, BoundLeaf) and not part.form.is_null:
            tests.setdefault(part.leaf.key, []).append(part)
    if all(len(same) == 1 for same in tests.values()):
        return parts
    out: list[Bound] = []
    for part in parts:
        same = tests.get(part.leaf.key, []) if isinstance(part, BoundLeaf) else []
        if len(same) < 2:
            out.append(part)
        elif part is same[0]:
            folded = fold(same)
            if folded is None:
                return None
            out.extend(folded)
    return out


__all__ = [
    "Bound",
    "BoundAnd",
    "BoundConst",
    "BoundLeaf",
    "BoundOr",
    "bind",
    "conjuncts",
    "fit",
    "leaves_of",
    "pack_literals",
]
