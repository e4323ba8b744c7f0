"""Conditions on one leaf that must all be TRUE, as fewer: `a > 5 and a < 5` is never TRUE, `a >= 5 and a <= 5` is
`a = 5`.

The bounds of a page cannot tell such a contradiction, and would leave a page to be fetched. Whether a literal
passes a test is asked of the kernel that will judge the values, so NaN, both zeros and every kind mean here what
they mean there. What is not sure is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pageseek._core import rows
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS, K_BOOL, K_BYTES, K_FIXED
from pageseek.predicate.in_literals import Listed, Literals

if TYPE_CHECKING:
    from pageseek.predicate.bound import BoundLeaf

LOWER, UPPER = (rows.OP_GT, rows.OP_GE), (rows.OP_LT, rows.OP_LE)
_INVERSE = {
    rows.OP_EQ: rows.OP_NE,
    rows.OP_NE: rows.OP_EQ,
    rows.OP_LT: rows.OP_GE,
    rows.OP_GE: rows.OP_LT,
    rows.OP_GT: rows.OP_LE,
    rows.OP_LE: rows.OP_GT,
}


def fold(tests: Sequence[BoundLeaf]) -> list[BoundLeaf] | None:
    """The tests of one leaf, all of which must be TRUE, as fewer of the same meaning; None: never all TRUE."""
    tests = [_straight(test) for test in tests]
    of_null = [test for test in tests if test.op == rows.OP_IS_NULL]
    others = [test for test in tests if test.op != rows.OP_IS_NULL]
    if any(not test.negate for test in of_null):  # no other test is TRUE for a null
        return None if others or any(test.negate for test in of_null) else of_null[:1]
    if not others:
        return of_null[:1]
    # from here on nulls are out, by each of the others
    if any(test.op == (rows.OP_ALWAYS if test.negate else rows.OP_NEVER) for test in others):
        return None
    if _has_no_nan(others):
        others = [_straight(test, sure=True) for test in others]
    points = [t for t in others if t.op in (rows.OP_EQ, rows.OP_IN) and not t.negate]
    if points:
        return _meet(min(points, key=lambda test: test.literals[0]), others)
    return _narrow(others)


def _straight(test: BoundLeaf, sure: bool = False) -> BoundLeaf:
    """Without the negation where the comparison has an inverse; `sure`: order is total among the values."""
    if not test.negate or test.op not in _INVERSE:
        return test
    exact = test.leaf_type.kind not in FLOAT_KINDS or test.nan == rows.NAN_SPARK
    if not exact and test.op not in (rows.OP_EQ, rows.OP_NE) and (not sure or _is_nan(test)):
        return test  # NOT (x < 5) is TRUE where x is NaN, or 5 is; x >= 5 is not
    return replace(test, op=_INVERSE[test.op], negate=False)


def _is_nan(test: BoundLeaf) -> bool:
    """Whether the literal equals nothing, itself included."""
    return not any(_passes(_as(test, rows.OP_EQ), test.literals))


def _has_no_nan(tests: Sequence[BoundLeaf]) -> bool:
    """Whether a NaN fails one of the tests: by IEEE 754 all but != and the negated ones."""
    return tests[0].nan == rows.NAN_IEEE and any(
        not test.negate and test.op in (rows.OP_EQ, rows.OP_IN, *LOWER, *UPPER) for test in tests
    )


def _passes(test: BoundLeaf, literals: Literals) -> bytes:
    """For each literal one byte: 1 where a value like it passes the test."""
    n, values, offsets = literals
    leaf_type = test.leaf_type
    mask, _ = rows.compare(
        leaf_type.kind,
        leaf_type.width,
        n,
        None,
        values,
        offsets,
        test.op,
        test.negate,
        test.against(n),
        test.nan,
    )
    return np.unpackbits(np.frombuffer(mask, np.uint8), count=n, bitorder="little").tobytes()


def _meet(points: BoundLeaf, tests: Sequence[BoundLeaf]) -> list[BoundLeaf] | None:
    """The points that pass all tests, as = or IN."""
    n = points.literals[0]
    keep = np.ones(n, np.uint8)
    for test in tests:
        keep &= np.frombuffer(_passes(test, points.literals), np.uint8)
    left = np.flatnonzero(keep)
    if not len(left):
        return None
    if len(left) == n:
        return [points]
    picked = _pick(points, left)
    if len(left) == 1:
        return [replace(points, op=rows.OP_EQ, literals=picked)]
    return [replace(points, op=rows.OP_IN, literals=Listed(picked))]


def _pick(test: BoundLeaf, places: np.ndarray) -> Literals:
    """Some of the literals of a test."""
    n, values, offsets = test.literals
    if offsets is not None:
        width = np.int32 if test.leaf_type.kind in (K_BYTES, K_FIXED) else np.int64
        ends = np.frombuffer(offsets, width)
        parts = [values[ends[i] : ends[i + 1]] for i in places.tolist()]
        made = np.cumsum([0, *map(len, parts)], dtype=np.int64).astype(width)
        return len(parts), b"".join(parts), made.tobytes()
    if test.leaf_type.kind == K_BOOL:
        bits = np.unpackbits(np.frombuffer(values, np.uint8), count=n, bitorder="little")
        return len(places), np.packbits(bits[places], bitorder="little").tobytes(), None
    items = np.frombuffer(values, np.uint8).reshape(n, -1)
    return len(places), items[places].tobytes(), None


def _narrow(tests: list[BoundLeaf]) -> list[BoundLeaf] | None:
    """The least upper and the greatest lower bound alone, = where they meet; None where they cross."""
    lower = [test for test in tests if test.op in LOWER and not test.negate]
    upper = [test for test in tests if test.op in UPPER and not test.negate]
    if any(map(_is_nan, (*lower, *upper))):
        return None  # NaN that equals nothing: no value lies above or below it
    low, high = _tightest(lower), _tightest(upper)
    if low is not None and high is not None:
        if _empty(low, high):
            return None
        if low.op == rows.OP_GE and high.op == rows.OP_LE and _all(low, rows.OP_EQ, high):
            return _meet(_as(low, rows.OP_EQ), tests)
    kept = [test for test in tests if test.negate or test.op not in (*LOWER, *UPPER)]
    return [bound for bound in (low, high) if bound is not None] + kept


def _as(test: BoundLeaf, op: int) -> BoundLeaf:
    return replace(test, op=op, negate=False)


def _all(one: BoundLeaf, op: int, other: BoundLeaf) -> bool:
    """Whether `literal of one  op  literal of other`."""
    return bool(_passes(_as(other, op), one.literals)[0])


def _tightest(bounds: Sequence[BoundLeaf]) -> BoundLeaf | None:
    """The bound that implies all the others of its side."""
    found: BoundLeaf | None = None
    for bound in bounds:
        if found is None or not _implies(found, bound):
            found = bound
    return found


def _implies(one: BoundLeaf, other: BoundLeaf) -> bool:
    if _all(one, rows.OP_EQ, other):
        return one.op in (rows.OP_LT, rows.OP_GT) or other.op in (rows.OP_LE, rows.OP_GE)
    return _all(one, rows.OP_GT if one.op in LOWER else rows.OP_LT, other)


def _empty(low: BoundLeaf, high: BoundLeaf) -> bool:
    """Whether no value of the kind lies between."""
    if _all(low, rows.OP_GT, high):
        return True
    strict = (low.op == rows.OP_GT) + (high.op == rows.OP_LT)
    if _all(low, rows.OP_EQ, high):
        return strict > 0
    kind = low.leaf_type.kind
    if kind in BYTES_KINDS or kind in FLOAT_KINDS or kind in (K_BOOL, K_FIXED):
        return False
    signed = kind not in UNSIGNED
    least, most = (int.from_bytes(t.literals[1], "little", signed=signed) for t in (low, high))
    return most - least < strict  # of integers


UNSIGNED = frozenset((rows.KIND_U8, rows.KIND_U16, rows.KIND_U32, rows.KIND_U64))
