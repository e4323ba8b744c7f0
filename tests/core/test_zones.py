"""Verdicts on zones: never narrower than the results of the rows, and no wider than the bounds allow."""

from __future__ import annotations

import itertools
import math
import time
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageseek._core import rows
from pageseek._core.rows import CoreError, Zones
from support.value_kinds import (
    KINDS,
    NANS,
    SIMPLE,
    UNARY,
    Kind,
    Value,
    encode,
    holds,
    key,
    predicates,
)

T, F, N = rows.MAY_TRUE, rows.MAY_FALSE, rows.MAY_NULL
every_kind = pytest.mark.parametrize("kind", KINDS, ids=[k.name for k in KINDS])
ordered_kinds = pytest.mark.parametrize("order", [1, 2], ids=["ascending", "descending"])

I32 = next(k for k in KINDS if k.name == "i32")
F64 = next(k for k in KINDS if k.name == "f64")
BYTES = next(k for k in KINDS if k.name == "bytes")


class Zone(NamedTuple):
    """The bounds and counts that a file declares for a zone; None is unknown."""

    bounds: tuple[Value, Value] | None
    all_null: bool = False
    nulls: int | None = None
    nans: int | None = None
    count: int | None = None


def is_nan(value: Value) -> bool:
    return bool(value != value)


def zones_of(kind: Kind, zones: list[Zone], order: int = 0) -> Zones:
    filler = b"\0" * kind.width if kind.is_bytes else 0
    lower = encode(kind, [z.bounds[0] if z.bounds else filler for z in zones])
    upper = encode(kind, [z.bounds[1] if z.bounds else filler for z in zones])
    figures = [
        np.array([-1 if getattr(z, name) is None else getattr(z, name) for z in zones], np.int64)
        for name in ("nulls", "nans", "count")
    ]
    return Zones(kind.code, kind.width, len(zones), *lower[1:], *upper[1:],  # type: ignore[call-arg]
                 bytes(z.bounds is not None for z in zones), bytes(z.all_null for z in zones),
                 *figures, order)  # fmt: skip


def true_outcomes(content: list[Value], op: int, literals: list[Value], nan: int) -> int:
    code = {True: T, False: F, None: N}
    return int(np.bitwise_or.reduce([code[holds(op, v, literals, nan)] for v in content] or [0]))


@st.composite
def contents(draw: st.DrawFn, kind: Kind) -> tuple[list[Value], Zone]:
    """Rows of a zone, and a description that is true of them, though not complete or exact."""
    content = draw(st.lists(kind.values | st.none(), max_size=6))
    numbers = [v for v in content if v is not None and not is_nan(v)]
    slack = draw(st.lists(kind.numbers, max_size=2))
    bounds = None
    if numbers and draw(st.integers(0, 4)):
        bounds = min([*numbers, *slack], key=key), max([*numbers, *slack], key=key)
    told = [draw(st.integers(0, 3)) > 0 for _ in range(4)]
    nulls, nans = content.count(None), sum(is_nan(v) for v in content if v is not None)
    all_null = bool(content) and nulls == len(content) and told[3]
    known = (nulls, nans, len(content))
    return content, Zone(
        bounds, all_null, *(k if t else None for k, t in zip(known, told, strict=False))
    )


@every_kind
@given(data=st.data())
def test_no_outcome_of_a_row_is_missing(kind: Kind, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(contents(kind), max_size=8))
    op, literals, buffers = data.draw(predicates(kind))
    for nan in NANS:
        verdict = zones_of(kind, [z for _, z in drawn]).probe(op, buffers, nan)
        for (content, zone), got in zip(drawn, verdict, strict=True):
            actual = true_outcomes(content, op, literals, nan)
            assert actual & ~got == 0, (zone, got)


@every_kind
@given(data=st.data())
def test_exact_bounds_give_nothing_more_than_they_allow(kind: Kind, data: st.DataObject) -> None:
    numbers = kind.numbers
    low, high = sorted(data.draw(st.tuples(numbers, numbers)), key=key)
    nulls = data.draw(st.sampled_from([0, 2, None]))
    count = None if nulls is None else nulls + 5
    op, literals, buffers = data.draw(predicates(kind))
    zone = Zone((low, high), nulls=nulls, nans=0, count=count)
    got = zones_of(kind, [zone]).probe(op, buffers)[0]
    null = 0 if nulls == 0 or op == rows.OP_IS_NULL else N
    if op == rows.OP_IS_NULL:
        assert got == (F if nulls == 0 else T | F)
    elif op in UNARY or (literals and is_nan(literals[-1]) and op != rows.OP_IN):
        assert got == null | true_outcomes([low], op, literals, rows.NAN_IEEE)
    elif op in (rows.OP_EQ, rows.OP_NE, rows.OP_IN, rows.OP_PREFIX):
        if op == rows.OP_PREFIX:
            p = literals[0]
            may, must = (
                low[: len(p)] <= p <= high[: len(p)],
                low.startswith(p) and high.startswith(p),
            )
        else:
            may = any(low <= v <= high for v in literals)
            must = low == high and may
        expected = (T if may else 0) | (0 if must else F)
        if op == rows.OP_NE:
            expected = {T: F, F: T, T | F: T | F}[expected]
        assert got == null | expected
    else:
        assert got == null | true_outcomes([low, high], op, literals, rows.NAN_IEEE)


@st.composite
def sorted_zones(draw: st.DrawFn, kind: Kind, order: int) -> list[Zone]:
    numbers = kind.numbers
    n = draw(st.integers(0, 12))
    lows = sorted(draw(st.lists(numbers, min_size=n, max_size=n)), key=key)
    highs = sorted(draw(st.lists(numbers, min_size=n, max_size=n)), key=key)
    highs = list(itertools.accumulate((max(p, key=key) for p in zip(lows, highs, strict=True)),
                                      lambda a, b: max(a, b, key=key)))  # fmt: skip
    known = list(zip(lows, highs, strict=True))[:: 1 if order == 1 else -1]
    figure = st.sampled_from([None, 0, 1, 3])
    zones = [Zone(b, nulls=draw(figure), nans=draw(figure), count=draw(figure)) for b in known]
    for _ in range(draw(st.integers(0, 4))):
        zones.insert(
            draw(st.integers(0, len(zones))), Zone(None, all_null=True, nulls=draw(figure))
        )
    return zones


@every_kind
@ordered_kinds
@given(data=st.data())
def test_a_search_says_what_a_walk_says(kind: Kind, order: int, data: st.DataObject) -> None:
    zones = data.draw(sorted_zones(kind, order))
    searched, walked = zones_of(kind, zones, order), zones_of(kind, zones)
    assert (searched.order, walked.order) == (order, 0)
    for _ in range(3):
        op, _, buffers = data.draw(predicates(kind))
        for nan in NANS:
            assert searched.probe(op, buffers, nan) == walked.probe(op, buffers, nan)


@ordered_kinds
def test_short_lists_are_searched_in_many_zones(order: int) -> None:
    kind = I32
    bounds = [(i // 2, i // 2 + (i // 7) % 3) for i in range(200)]
    bounds = [(lo, max(hi for _, hi in bounds[: i + 1])) for i, (lo, _) in enumerate(bounds)]
    zones = [Zone(b, nulls=0, nans=0, count=9) for b in bounds[:: 1 if order == 1 else -1]]
    zones[50:50] = [Zone(None, all_null=True)] * 9
    searched, walked = zones_of(kind, zones, order), zones_of(kind, zones)
    assert searched.order == order
    for literals in ([5], [5, 6], [-3, 0, 50, 99, 700], [3, 4, 5, 6, 7, 8], [99, 100, 101, 102]):
        buffers = encode(kind, literals)
        assert searched.probe(rows.OP_IN, buffers) == walked.probe(rows.OP_IN, buffers)


def verdict(kind: Kind, zone: Zone, op: int, *literals: Value, nan: int = rows.NAN_IEEE) -> int:
    return zones_of(kind, [zone]).probe(op, encode(kind, list(literals)), nan)[0]


@pytest.mark.parametrize("claimed", [1, 2])
def test_a_false_claim_of_order_is_not_believed(claimed: int) -> None:
    zones = [Zone((1, 2)), Zone((5, 6)), Zone((3, 4))]
    assert zones_of(I32, zones, claimed).order == 0
    assert zones_of(I32, zones, 1).probe(rows.OP_EQ, encode(I32, [3])) == bytes(
        [F | N, F | N, T | F | N]
    )
    assert (
        zones_of(I32, [Zone((1, 9)), Zone((2, 3))], claimed).order == 0
    )  # maxima fall, minima rise
    assert (
        zones_of(I32, [Zone((1, 9)), Zone(None)], claimed).order == 0
    )  # unknown, and not of nulls
    assert zones_of(I32, [Zone((1, 9)), Zone(None, all_null=True)], claimed).order == claimed
    assert zones_of(I32, [Zone((1, 9))], 3).order == 0
    assert zones_of(I32, [Zone(None, all_null=True)] * 3, claimed).order == claimed


def test_contradictory_bounds_prune_nothing() -> None:
    for claimed in (0, 1, 2):
        zones = [Zone((9, 1)), Zone((1, 2))]
        assert zones_of(I32, zones, claimed).order == 0
        assert zones_of(I32, zones, claimed).probe(rows.OP_EQ, encode(I32, [50]))[0] == T | F | N
    for bounds in ((math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)):
        for op, literal in itertools.product([*SIMPLE, rows.OP_IN], (0.0, 1.0, 5.0)):
            assert verdict(F64, Zone(bounds, nulls=0, nans=0), op, literal) == T | F


@pytest.mark.parametrize(
    "zone",
    [
        Zone((1, 2), nulls=4, count=3),
        Zone((1, 2), nulls=3, count=3),
        Zone((1.0, 2.0), nulls=1, nans=3, count=3),
        Zone((1.0, 2.0), nulls=1, nans=2, count=3),
        Zone(None, all_null=True, nulls=0),
        Zone(None, all_null=True, nulls=2, count=3),
        Zone(None, all_null=True, nans=1),
    ],
)
def test_contradictory_counts_prune_nothing(zone: Zone) -> None:
    kind = I32 if zone.nans is None and zone.bounds and isinstance(zone.bounds[0], int) else F64
    assert verdict(kind, zone, rows.OP_EQ, 50) == T | F | N
    assert verdict(kind, zone, rows.OP_IS_NULL) == T | F


def test_a_missing_null_count_is_not_zero() -> None:
    assert verdict(I32, Zone((1, 2)), rows.OP_EQ, 5) == F | N
    assert verdict(I32, Zone((1, 2)), rows.OP_IS_NULL) == T | F
    assert verdict(I32, Zone((1, 2), nulls=0), rows.OP_EQ, 5) == F
    assert verdict(I32, Zone((1, 2), nulls=0), rows.OP_IS_NULL) == F
    assert verdict(I32, Zone((1, 2), nulls=1, count=9), rows.OP_IS_NULL) == T | F
    assert verdict(I32, Zone(None), rows.OP_ALWAYS) == T | N
    assert verdict(I32, Zone(None), rows.OP_NEVER) == F | N
    assert verdict(I32, Zone(None), rows.OP_IS_NAN) == F | N


def test_zones_of_nulls_only() -> None:
    for zone in (Zone(None, all_null=True), Zone(None, nulls=7, count=7),
                 Zone((1, 2), all_null=True), Zone(None, all_null=True, nulls=7, count=7)):  # fmt: skip
        for op in (*SIMPLE, rows.OP_IN, rows.OP_ALWAYS, rows.OP_NEVER, rows.OP_IS_NAN):
            assert verdict(I32, zone, op, 1) == N
        assert verdict(I32, zone, rows.OP_IS_NULL) == T


def test_empty_zones_have_no_outcome() -> None:
    for zone in (
        Zone(None, count=0),
        Zone((1, 2), nulls=0, count=0),
        Zone(None, all_null=True, count=0),
    ):
        for op in (*SIMPLE, rows.OP_IN, *UNARY):
            assert verdict(I32, zone, op, 1) == 0


def test_nan_is_outside_of_the_bounds() -> None:
    unknown, none, some = (Zone((1.0, 2.0), nulls=0, nans=n, count=9) for n in (None, 0, 2))
    above = (rows.OP_GT, rows.OP_GE)
    for zone in (unknown, some):
        for op in SIMPLE:
            ieee = verdict(F64, none, op, 5.0) | (T if op == rows.OP_NE else F)
            spark = verdict(F64, none, op, 5.0) | (T if op in (rows.OP_NE, *above) else F)
            assert verdict(F64, zone, op, 5.0) == ieee
            assert verdict(F64, zone, op, 5.0, nan=rows.NAN_SPARK) == spark
        assert verdict(F64, zone, rows.OP_IS_NAN) == T | F
        assert verdict(F64, zone, rows.OP_EQ, math.nan) == F
        assert verdict(F64, zone, rows.OP_EQ, math.nan, nan=rows.NAN_SPARK) == T | F
        assert verdict(F64, zone, rows.OP_IN, 7.0, math.nan, nan=rows.NAN_SPARK) == T | F
    assert verdict(F64, none, rows.OP_EQ, math.nan, nan=rows.NAN_SPARK) == F
    assert verdict(F64, none, rows.OP_IS_NAN) == F


def test_zones_of_nan_only() -> None:
    zone = Zone(None, nulls=2, nans=7, count=9)
    assert verdict(F64, zone, rows.OP_EQ, 1.0) == F | N
    assert verdict(F64, zone, rows.OP_NE, 1.0) == T | N
    assert verdict(F64, zone, rows.OP_GT, 1.0) == F | N
    assert verdict(F64, zone, rows.OP_GT, 1.0, nan=rows.NAN_SPARK) == T | N
    assert verdict(F64, zone, rows.OP_IS_NAN) == T | N


def test_zeros_are_one_value() -> None:
    for bound, literal in itertools.product((0.0, -0.0), repeat=2):
        assert verdict(F64, Zone((bound, bound), nulls=0, nans=0), rows.OP_EQ, literal) == T
        assert verdict(F64, Zone((bound, bound), nulls=0, nans=0), rows.OP_LT, literal) == F
        assert verdict(F64, Zone((bound, bound), nulls=0, nans=0), rows.OP_IN, literal) == T


def test_truncated_bounds_of_a_prefix() -> None:
    def one(low: bytes, high: bytes, prefix: bytes) -> int:
        return verdict(BYTES, Zone((low, high), nulls=0), rows.OP_PREFIX, prefix)

    assert one(b"ab", b"ac", b"abc") == T | F  # bounds shorter than the prefix
    assert one(b"abe", b"ac", b"abc") == F
    assert one(b"aa", b"abb", b"abc") == F
    assert one(b"abca", b"abcz", b"abc") == T
    assert one(b"\xff", b"\xff\xff", b"\xff\xff\xff") == F  # nothing in there is that long
    assert one(b"\xff", b"\xff\xff", b"\xff") == T
    assert one(b"", b"z", b"") == T


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(CoreError, match="known: 1 bytes"):
        Zones(rows.KIND_I8, 0, 2, b"ab", None, b"ab", None, b"\1")
    with pytest.raises(CoreError, match="counts: 9 bytes"):
        Zones(rows.KIND_I8, 0, 2, b"ab", None, b"ab", None, b"\1\1", None, None, None, b"\0" * 9)
    with pytest.raises(CoreError, match="upper bounds: 2 values"):
        Zones(rows.KIND_I8, 0, 2, b"ab", None, b"a", None, b"\1\1")
    with pytest.raises(CoreError, match="one literal"):
        zones_of(I32, [Zone((1, 2))]).probe(rows.OP_EQ)
    with pytest.raises(CoreError, match="sorted"):
        zones_of(I32, [Zone((1, 2))]).probe(rows.OP_IN, encode(I32, [2, 1]))


def test_no_zones() -> None:
    for op in (rows.OP_EQ, rows.OP_IN, rows.OP_IS_NULL):
        zones = zones_of(I32, [], 1)
        assert len(zones) == 0
        assert zones.probe(op, encode(I32, [1])) == b""


def null_pages_between(n: int) -> Zones:
    """Two zones with bounds and, between them, n without."""
    known = b"\1" + bytes(n) + b"\1"
    bounds = np.r_[0, np.zeros(n, np.int64), 1 << 40].astype(np.int64)
    null = b"\0" + b"\1" * n + b"\0"
    return Zones(
        rows.KIND_I64, 0, n + 2, bounds, None, bounds, None, known, null, None, None, None, 1
    )


@pytest.mark.timed
def test_many_pages_without_bounds_are_not_walked_for_every_literal() -> None:
    """The time grows with pages and literals, and not with their product."""
    n, count = 200_000, 2_000
    literals = count, np.arange(1, count + 1), None
    some = np.arange(n, dtype=np.int64)
    known, null = b"\1" * n, bytes(n)
    full = Zones(rows.KIND_I64, 0, n, some, None, some, None, known, null, None, None, None, 1)
    gaps = null_pages_between(n)
    assert full.order == gaps.order == 1

    def least(zones: Zones) -> float:
        times = []
        for _ in range(5):
            began = time.perf_counter()
            zones.probe(rows.OP_IN, literals)
            times.append(time.perf_counter() - began)
        return min(times)

    assert least(gaps) < 10 * least(full)  # more than a hundred times as long, walked


@given(st.data())
def test_gaps_of_all_lengths_among_ordered_zones(data: st.DataObject) -> None:
    kind, order = I32, data.draw(st.sampled_from([1, 2]))
    gaps = data.draw(st.lists(st.integers(0, 70), min_size=1, max_size=6))
    numbers = sorted(data.draw(st.lists(st.integers(-9, 9), min_size=6, max_size=6)))
    zones: list[Zone] = []
    for low, gap in zip(numbers[:: 1 if order == 1 else -1], gaps, strict=False):
        zones += [Zone(None, all_null=True)] * gap + [Zone((low, low))]
    zones += [Zone(None, all_null=True)] * data.draw(st.integers(0, 70))
    literals = sorted(data.draw(st.sets(st.integers(-10, 10), max_size=5)))
    packed = len(literals), np.array(literals, np.int32), None
    searched, walked = zones_of(kind, zones, order), zones_of(kind, zones)
    assert searched.order == order
    assert walked.order == 0
    assert searched.probe(rows.OP_IN, packed) == walked.probe(rows.OP_IN, packed)
    for op in (rows.OP_EQ, rows.OP_LT, rows.OP_GE) if literals else ():
        one = 1, packed[1][:1], None
        assert searched.probe(op, one) == walked.probe(op, one)
