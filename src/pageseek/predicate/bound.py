"""A filter bound to the leaves of a file: what pruners and the evaluation read."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class BoundLeaf:
    """One test of one leaf. With `negate` it asks where the test is FALSE."""

    leaf: Leaf
    leaf_type: LeafType
    op: int
    literals: Literals
    negate: bool
    nan: int
    source: ex.Expression

    def against(self, n: int) -> Literals | rows.Lookup:
        """The literals for the kernels, to compare `n` more values with; a list of IN is prepared once for all of them."""
        if self.op == rows.OP_IN and isinstance(self.literals, Listed):
            return self.literals.lookup(self.leaf_type.kind, self.leaf_type.width, n)
        return self.literals

    def __repr__(self) -> str:
        return f"not ({self.source!r})" if self.negate else repr(self.source)


@dataclass(frozen=True, slots=True)
class BoundAnd:
    """TRUE where all of its arguments are. `found`: its leaves and tests, once they were looked for."""

    args: tuple[Bound, ...]
    found: dict[str, list[BoundLeaf]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )


@dataclass(frozen=True, slots=True)
class BoundOr:
    """TRUE where one of its arguments is. `found`: as of BoundAnd."""

    args: tuple[Bound, ...]
    found: dict[str, list[BoundLeaf]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )


@dataclass(frozen=True, slots=True)
class BoundConst:
    """TRUE for every row, or for none."""

    value: bool


@dataclass(frozen=True, slots=True)
class BoundNot:
    """TRUE where its argument is not TRUE, be that FALSE or NULL."""

    arg: Bound


@dataclass(frozen=True, slots=True)
class BoundAny:
    """Some element of the list at `input` passes the test; with `every`, all elements of a list that is not null do.

    The test is bound to the leaf of the elements: rows without elements never pass it, and the bounds of zones of that
    leaf rule out rows.
    """

    input: BoundLeaf
    test: Bound
    every: bool


@dataclass(frozen=True, slots=True, eq=False)
class BoundResidual:
    """A condition that only values can answer. With `negate` it asks where the condition is FALSE.

    `evaluate` takes the values of the inputs, or of the whole columns where there are some, and gives
    booleans, null where the condition is.
    """

    inputs: tuple[BoundLeaf, ...]
    evaluate: Callable[[list[pa.ChunkedArray]], Any]
    negate: bool
    source: ex.Expression
    columns: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"not ({self.source!r})" if self.negate else repr(self.source)

    def mask(
        self, values: list[pa.ChunkedArray], codes: pa.ChunkedArray | None = None
    ) -> tuple[np.ndarray, int]:
        """A bitmap of the rows that pass, and how many there are. With codes, the values are a dictionary."""
        found = self.evaluate(values)
        if codes is not None:
            found = pa.chunked_array([found]) if isinstance(found, pa.Array) else found
            found = found.take(codes)
        if isinstance(found, pa.ChunkedArray):
            found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.nulls(0, pa.bool_())
        passed = booleans(found) != self.negate
        if found.null_count:
            passed &= booleans(found.is_valid())
        return np.packbits(passed, bitorder="little"), int(np.count_nonzero(passed))


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
    """What a function of the parts makes of the whole; every walk over a bound filter is one of these.

    Parameters
    ----------
    leaf : callable
        Takes a part that is not made of others.
    join : callable
        Takes whether the parts are joined by AND, else by OR, and what was made of each. A part is looked at when its
        turn comes, so that the function can stop early.
    invert : callable
        Takes what was made of the argument of a NOT.
    some : callable, optional
        Takes what was made of the condition that some element of a list has to satisfy. Without it, and where all
        elements have to, `leaf` takes the whole.
    """
    if isinstance(bound, (BoundAnd, BoundOr)):
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
    if isinstance(bound, BoundLeaf):  # as most filters are
        return [bound]
    if not isinstance(bound, (BoundAnd, BoundOr)):
        return fold(bound, _leaves, _chained, _same)
    if "leaves" not in bound.found:
        bound.found["leaves"] = fold(bound, _leaves, _chained, _same)
    return bound.found["leaves"]


def _leaves(part: Unjoined) -> list[BoundLeaf]:
    if isinstance(part, BoundLeaf):
        return [part]
    if isinstance(part, BoundAny):
        return [part.input, *leaves_of(part.test)]
    return list(part.inputs) if isinstance(part, BoundResidual) else []


def tests_of(bound: Bound) -> Sequence[BoundLeaf]:
    """The tests that an index may decide, so that the whole filter is decided for some rows."""
    if isinstance(bound, BoundLeaf):
        return [bound]
    if not isinstance(bound, (BoundAnd, BoundOr)):
        return fold(bound, _tests, _chained, _same, _same)
    if "tests" not in bound.found:
        bound.found["tests"] = fold(bound, _tests, _chained, _same, _same)
    return bound.found["tests"]


def _tests(part: Unjoined) -> list[BoundLeaf]:
    return [part] if isinstance(part, BoundLeaf) else []


def null_tests(bound: Bound) -> dict[tuple[int, int], BoundLeaf]:
    """The leaves that the filter only tests for null, by their keys, each with such a test."""
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
    """Keys of leaves that are null in every row for which a filter is TRUE."""
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
    """Whether some part is TRUE where another is not: rows that all match the other are then ruled out."""
    return not isinstance(bound, BoundLeaf) and fold(bound, lambda _: False, _any, lambda _: True)


def conjuncts(bound: Bound) -> list[Bound]:
    """The parts that must all be TRUE."""
    return list(bound.args) if isinstance(bound, BoundAnd) else [bound]
