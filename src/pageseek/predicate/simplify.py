"""Bound conditions joined by AND and OR, as fewer tests of the same meaning.

`a = 1 or a = 2` becomes `a in (1, 2)`, if there are enough such tests. `a > 5 and a < 5` is never TRUE, and
`a >= 5 and a <= 5` is `a = 5`: the bounds of a page do not show such a contradiction, and the page would be fetched.
The kernel that evaluates the values also decides whether a literal passes a test, so that NaN and both zeros mean the
same in both. A test whose simpler form may have another meaning stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pageseek._core import rows
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS, K_BOOL, K_FIXED
from pageseek.predicate import expression as ex
from pageseek.predicate.bound import Bound, BoundAnd, BoundConst, BoundLeaf, BoundOr
from pageseek.predicate.in_literals import Listed, Literals, merged, pack_literals, texts_of
from pageseek.predicate.operators import INVERSE_KERNELS, LOWER_BOUNDS, POINTS, UPPER_BOUNDS

_FEW_ALIKE = (
    4  # from this number of tests of one leaf on, one test with a list of values is quicker
)
_BOUNDS = (*LOWER_BOUNDS, *UPPER_BOUNDS)
_UNSIGNED = frozenset((rows.KIND_U8, rows.KIND_U16, rows.KIND_U32, rows.KIND_U64))


def join(args: list[Bound], is_and: bool) -> Bound:
    """The conditions joined by AND or OR, simplified."""
    kind = BoundAnd if is_and else BoundOr
    flat = [part for arg in args for part in (arg.args if isinstance(arg, kind) else (arg,))]
    if any(isinstance(part, BoundConst) and part.value != is_and for part in flat):
        return BoundConst(not is_and)
    flat = [part for part in flat if not isinstance(part, BoundConst)]
    if len(flat) > 1:
        # `a = 1 or a = 2` as `a in (1, 2)`, and `a != 1 and a != 2` as `a not in (1, 2)`; prefixes likewise
        for belongs, one in ((_is_point, _one_in), (_is_prefix, _one_prefix)):
            flat = _by_leaf(flat, belongs, is_and, _FEW_ALIKE, one) or flat
    if is_and and len(flat) > 1:
        folded = _by_leaf(flat, _is_test, is_and, 2, _of_one_leaf)
        if folded is None:
            return BoundConst(False)
        flat = folded
    if not flat:
        return BoundConst(is_and)
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _by_leaf(
    parts: list[Bound],
    belongs: Callable[[BoundLeaf, bool], bool],
    is_and: bool,
    least: int,
    merge: Callable[[Sequence[BoundLeaf], bool], list[BoundLeaf] | None],
) -> list[Bound] | None:
    """The parts, with the tests of each leaf merged, where they are `least` or more, in the place of the first.

    `merge` gives None where the tests are never all TRUE, and so is the result.
    """
    by_leaf: dict[tuple[tuple[int, int], int], list[BoundLeaf]] = {}
    for part in parts:
        if isinstance(part, BoundLeaf) and belongs(part, is_and):
            by_leaf.setdefault((part.leaf.key, part.nan), []).append(part)
    merged_at: dict[int, list[BoundLeaf]] = {}  # by the identity of each merged test
    for same in by_leaf.values():
        if len(same) >= least:
            found = merge(same, is_and)
            if found is None:
                return None
            merged_at |= {id(test): [] for test in same} | {id(same[0]): found}
    out: list[Bound] = []
    for part in parts:
        out += merged_at.get(id(part), [part])
    return out


def _is_test(test: BoundLeaf, _: bool) -> bool:
    return not test.leaf_type.is_null


def _is_point(test: BoundLeaf, negated: bool) -> bool:
    """Whether the test is `= v` or `in`; with `negated`, whether it is the negation of one."""
    if test.leaf_type.kind == K_BOOL or test.leaf_type.is_null:
        return False
    if test.op in POINTS:
        return test.negate == negated
    return bool(test.op == rows.OP_NE and test.negate != negated)


def _one_in(tests: Sequence[BoundLeaf], negate: bool) -> list[BoundLeaf]:
    """The points of several tests in one."""
    first = tests[0]
    literals = merged([test.literals for test in tests], first.leaf_type)
    source = ex.Or(tuple(test.source for test in tests))
    return [replace(first, op=rows.OP_IN, literals=literals, negate=negate, source=source)]


def _is_prefix(test: BoundLeaf, negated: bool) -> bool:
    return test.op == rows.OP_PREFIX and test.negate == negated


def _one_prefix(tests: Sequence[BoundLeaf], negate: bool) -> list[BoundLeaf]:
    """The prefixes of several tests in one, without those that start with another."""
    first = tests[0]
    kind = first.leaf_type.kind
    prefixes = [prefix for test in tests for prefix in texts_of(test.literals, kind)]
    kept: list[bytes] = []
    for prefix in sorted(prefixes):  # what starts with a prefix follows it without a gap
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    source = ex.Or(tuple(test.source for test in tests))
    literals = pack_literals(kept, first.leaf_type)
    return [replace(first, literals=literals, negate=negate, source=source)]


def _of_one_leaf(tests: Sequence[BoundLeaf], _: bool) -> list[BoundLeaf] | None:
    """The tests of one leaf, all of which must be TRUE, as fewer of the same meaning; None: never all TRUE."""
    tests = [_straight(test) for test in tests]
    null_tests = [test for test in tests if test.op == rows.OP_IS_NULL]
    others = [test for test in tests if test.op != rows.OP_IS_NULL]
    if any(not test.negate for test in null_tests):  # no other test is TRUE for a null
        return None if others or any(test.negate for test in null_tests) else null_tests[:1]
    if not others:
        return null_tests[:1]
    # from here on nulls are out, by each of the others
    if any(test.op == (rows.OP_ALWAYS if test.negate else rows.OP_NEVER) for test in others):
        return None
    if _has_no_nan(others):
        others = [_straight(test, ordered=True) for test in others]
    points = [t for t in others if t.op in POINTS and not t.negate]
    if points:
        return _meet(min(points, key=lambda test: test.literals[0]), others)
    return _narrow(others)


def _straight(test: BoundLeaf, ordered: bool = False) -> BoundLeaf:
    """The test without its negation, if the comparison has an inverse. `ordered`: no value is a NaN."""
    if not test.negate or test.op not in INVERSE_KERNELS:
        return test
    exact = test.leaf_type.kind not in FLOAT_KINDS or test.nan == rows.NAN_SPARK
    if not exact and test.op not in (rows.OP_EQ, rows.OP_NE) and (not ordered or _is_nan(test)):
        return test  # NOT (x < 5) is TRUE where x is NaN, or 5 is; x >= 5 is not
    return replace(test, op=INVERSE_KERNELS[test.op], negate=False)


def _is_nan(test: BoundLeaf) -> bool:
    """Whether the literal is a NaN that equals nothing, not even itself."""
    return not any(_passes(_as(test, rows.OP_EQ), test.literals))


def _has_no_nan(tests: Sequence[BoundLeaf]) -> bool:
    """Whether a NaN fails one of the tests: by IEEE 754 all but != and the negated ones."""
    return tests[0].nan == rows.NAN_IEEE and any(
        not test.negate and test.op in (*POINTS, *_BOUNDS) for test in tests
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
    remaining = np.flatnonzero(keep)
    if not len(remaining):
        return None
    if len(remaining) == n:
        return [points]
    picked = _pick(points, remaining)
    if len(remaining) == 1:
        return [replace(points, op=rows.OP_EQ, literals=picked)]
    return [replace(points, op=rows.OP_IN, literals=Listed(picked))]


def _pick(test: BoundLeaf, places: np.ndarray) -> Literals:
    """Some of the literals of a test."""
    n, values, offsets = test.literals
    if offsets is not None:
        texts = texts_of(test.literals, test.leaf_type.kind)
        return pack_literals([texts[i] for i in places.tolist()], test.leaf_type)
    if test.leaf_type.kind == K_BOOL:
        bits = np.unpackbits(np.frombuffer(values, np.uint8), count=n, bitorder="little")
        return len(places), np.packbits(bits[places], bitorder="little").tobytes(), None
    items = np.frombuffer(values, np.uint8).reshape(n, -1)
    return len(places), items[places].tobytes(), None


def _narrow(tests: list[BoundLeaf]) -> list[BoundLeaf] | None:
    """The tests with the least upper and the greatest lower bound only, or = if the two meet; None if they cross."""
    lower = [test for test in tests if test.op in LOWER_BOUNDS and not test.negate]
    upper = [test for test in tests if test.op in UPPER_BOUNDS and not test.negate]
    if any(map(_is_nan, (*lower, *upper))):
        return None  # NaN that equals nothing: no value lies above or below it
    low, high = _tightest(lower), _tightest(upper)
    if low is not None and high is not None:
        if _empty(low, high):
            return None
        if low.op == rows.OP_GE and high.op == rows.OP_LE and _all(low, rows.OP_EQ, high):
            return _meet(_as(low, rows.OP_EQ), tests)
    kept = [test for test in tests if test.negate or test.op not in _BOUNDS]
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
    return _all(one, rows.OP_GT if one.op in LOWER_BOUNDS else rows.OP_LT, other)


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
    signed = kind not in _UNSIGNED
    least, most = (int.from_bytes(t.literals[1], "little", signed=signed) for t in (low, high))
    return most - least < strict  # of integers
