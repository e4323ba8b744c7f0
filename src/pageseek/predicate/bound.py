"""A filter bound to the leaves of a file: what pruners and the evaluation read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pageseek.predicate.like import Pattern

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.arrays import booleans
from pageseek.base.records import dataclass
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.in_literals import Listed, Literals

INPUT = -1  # the `op` of a leaf that a residual needs, which is no test
PATTERN = -2  # the `op` of BoundPattern


@dataclass(frozen=True, slots=True)
class BoundLeaf:
    """One test of one leaf. With `negate` it is TRUE where the test is FALSE."""

    leaf: Leaf
    leaf_type: LeafType
    op: int
    literals: Literals
    negate: bool
    nan: int
    source: ex.Expression

    def against(self, n: int) -> Literals | rows.Lookup:
        """The literals for a kernel that compares `n` more values. A long list of IN is prepared once for all values."""
        if self.op == rows.OP_IN and isinstance(self.literals, Listed):
            return self.literals.lookup(self.leaf_type.kind, self.leaf_type.width, n)
        return self.literals

    def __repr__(self) -> str:
        return f"not ({self.source!r})" if self.negate else repr(self.source)


class BoundPattern(BoundLeaf):
    """LIKE, which no kernel compares, as a test that an index may decide. `op` is PATTERN."""

    __slots__ = ()

    @property
    def pattern(self) -> Pattern:
        """What values are compared with."""
        from pageseek.predicate.like import compile_pattern  # late, as below: for LIKE alone

        assert isinstance(self.source, ex.Like)
        return compile_pattern(self.source.pattern, self.source.escape)

    def mask(self, values: pa.Array) -> np.ndarray:
        """Which values pass, as booleans; a null does not."""
        from pageseek.predicate.like import matcher

        assert isinstance(self.source, ex.Like)
        evaluate = matcher(self.pattern, isinstance(self.source.pattern, str))
        return _passed(evaluate([pa.chunked_array([values])]), self.negate)


@dataclass(frozen=True, slots=True)
class _Joined:
    """`found`: the leaves and the tests below, once they were looked for."""

    args: tuple[Bound, ...]
    found: dict[str, list[BoundLeaf]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )


class BoundAnd(_Joined):
    """TRUE where all of its arguments are."""

    __slots__ = ()


class BoundOr(_Joined):
    """TRUE where one of its arguments is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BoundConst:
    """TRUE for every row, or for none."""

    value: bool


@dataclass(frozen=True, slots=True)
class BoundNot:
    """TRUE where its argument is FALSE or NULL."""

    arg: Bound


@dataclass(frozen=True, slots=True)
class BoundAny:
    """TRUE where some element of the list at `input` passes the test; with `every`, where all elements do.

    A list that is null never passes. The test is bound to the leaf of the elements, so that the bounds of a zone of
    that leaf rule out rows.
    """

    input: BoundLeaf
    test: Bound
    every: bool


@dataclass(frozen=True, slots=True, eq=False)
class BoundResidual:
    """A condition that needs the values. With `negate` it is TRUE where the condition is FALSE.

    `evaluate` takes the values of the inputs, or of `columns` if there are some, and returns booleans, null where the
    condition is NULL. `test`: the same condition, for indexes.
    """

    inputs: tuple[BoundLeaf, ...]
    evaluate: Callable[[list[pa.ChunkedArray]], Any]
    negate: bool
    source: ex.Expression
    columns: tuple[Any, ...] = ()
    test: BoundPattern | None = None

    def __repr__(self) -> str:
        return f"not ({self.source!r})" if self.negate else repr(self.source)

    def mask(
        self, values: list[pa.ChunkedArray], codes: pa.ChunkedArray | None = None
    ) -> tuple[np.ndarray, int]:
        """A bitmap of the rows that pass, and their number. With `codes`, `values` are a dictionary."""
        found = self.evaluate(values)
        if codes is not None:
            found = pa.chunked_array([found]) if isinstance(found, pa.Array) else found
            found = found.take(codes)
        passed = _passed(found, self.negate)
        return np.packbits(passed, bitorder="little"), int(np.count_nonzero(passed))


def _passed(found: pa.Array | pa.ChunkedArray, negate: bool) -> np.ndarray:
    """Where booleans are TRUE, or FALSE if they are negated."""
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.nulls(0, pa.bool_())
    passed: np.ndarray = booleans(found) != negate
    if found.null_count:
        passed &= booleans(found.is_valid())
    return passed


Unjoined = BoundLeaf | BoundConst | BoundAny | BoundResidual
Bound = Unjoined | BoundAnd | BoundOr | BoundNot
T = TypeVar("T")


def fold(
    bound: Bound,
    leaf: Callable[[Unjoined], T],
    join: Callable[[bool, Iterator[T]], T],
    invert: Callable[[T], T],
    some: Callable[[T], T] | None = None,
) -> T:
    """Combine what functions make of the parts, from the leaves up. Every walk over a bound filter uses this.

    Parameters
    ----------
    leaf : callable
        Takes a part that has no parts.
    join : callable
        Takes whether the parts are joined by AND (else by OR), and an iterator of what was made of each. A part is
        evaluated when the iterator reaches it, so that the function can stop early.
    invert : callable
        Takes what was made of the argument of a NOT.
    some : callable, optional
        Takes what was made of the test that some element of a list must pass. Without `some`, and where all elements
        must pass, `leaf` takes the whole.
    """
    if isinstance(bound, _Joined):
        parts = (
            leaf(part) if isinstance(part, BoundLeaf) else fold(part, leaf, join, invert, some)
            for part in bound.args
        )
        return join(isinstance(bound, BoundAnd), parts)
    if isinstance(bound, BoundNot):
        return invert(fold(bound.arg, leaf, join, invert, some))
    if some is not None and isinstance(bound, BoundAny) and not bound.every:
        return some(fold(bound.test, leaf, join, invert, some))
    return leaf(bound)


def _same(found: T) -> T:
    return found


def _chained(_: bool, parts: Iterator[list[BoundLeaf]]) -> list[BoundLeaf]:
    return list(chain.from_iterable(parts))


def leaves_of(bound: Bound) -> Sequence[BoundLeaf]:
    """The tests of a bound filter in the order of writing, and the inputs of its residuals."""
    if isinstance(bound, BoundLeaf):
        return [bound]
    found = bound.found if isinstance(bound, _Joined) else {}
    if "leaves" not in found:
        found["leaves"] = fold(bound, _leaves, _chained, _same)
    return found["leaves"]


def _leaves(part: Unjoined) -> list[BoundLeaf]:
    if isinstance(part, BoundLeaf):
        return [part]
    if isinstance(part, BoundAny):
        return [part.input, *leaves_of(part.test)]
    return list(part.inputs) if isinstance(part, BoundResidual) else []


def tests_of(bound: Bound) -> Sequence[BoundLeaf]:
    """The tests that an index may decide."""
    if isinstance(bound, BoundLeaf):
        return [bound]
    found = bound.found if isinstance(bound, _Joined) else {}
    if "tests" not in found:
        found["tests"] = fold(bound, _tests, _chained, _same, _same)
    return found["tests"]


def _tests(part: Unjoined) -> list[BoundLeaf]:
    return [part] if isinstance(part, BoundLeaf) else []


def patterns_of(bound: Bound) -> Sequence[BoundPattern]:
    """The tests of its residuals that an index may decide."""
    if isinstance(bound, BoundLeaf):
        return []
    found = bound.found if isinstance(bound, _Joined) else {}
    if "patterns" not in found:
        found["patterns"] = fold(bound, _patterns, _chained, _same, _same)
    return found["patterns"]  # type: ignore[return-value]


def _patterns(part: Unjoined) -> list[BoundLeaf]:
    test = part.test if isinstance(part, BoundResidual) else None
    return [] if test is None else [test]


def null_tests(bound: Bound) -> dict[tuple[int, int], BoundLeaf]:
    """The leaves that the filter tests for null and nothing else, by their keys, each with one such test."""
    if isinstance(bound, BoundLeaf) and bound.op != rows.OP_IS_NULL:
        return {}
    found = {
        test.leaf.key: test
        for test in tests_of(bound)
        if test.op == rows.OP_IS_NULL and not test.leaf_type.is_null
    }
    if found:
        for test in leaves_of(bound):
            if test.op != rows.OP_IS_NULL:
                found.pop(test.leaf.key, None)
    return found


def all_null(bound: Bound) -> set[tuple[int, int]]:
    """Keys of the leaves that are null in every row for which the filter is TRUE."""
    return {
        part.leaf.key
        for part in conjuncts(bound)
        if isinstance(part, BoundLeaf) and part.op == rows.OP_IS_NULL and not part.negate
    }


def _any(_: bool, parts: Iterator[bool]) -> bool:
    return any(parts)


def has_residual(bound: Bound) -> bool:
    """Whether Arrow or numpy evaluates a part, which costs more than a test."""
    return fold(bound, _is_residual, _any, _same)


def _is_residual(part: Unjoined) -> bool:
    return isinstance(part, (BoundResidual, BoundAny))


def has_not(bound: Bound) -> bool:
    """Whether the filter has a BoundNot, which rules out rows that all match its argument."""
    return not isinstance(bound, BoundLeaf) and fold(bound, lambda _: False, _any, lambda _: True)


def conjuncts(bound: Bound) -> list[Bound]:
    """The parts that must all be TRUE."""
    return list(bound.args) if isinstance(bound, BoundAnd) else [bound]
