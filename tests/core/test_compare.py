"""ps_compare and ps_literals_sort against plain Python, for every kind, op and NaN rule."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageseek._core import rows
from pageseek._core.rows import CoreError
from support.value_kinds import (
    KINDS,
    NANS,
    SIMPLE,
    UNARY,
    Kind,
    Value,
    bits,
    distinct,
    encode,
    holds,
    key,
    predicates,
)

every_kind = pytest.mark.parametrize("kind", KINDS, ids=[k.name for k in KINDS])


def outcome(kind: Kind, values: list[Value], op: int, literals: list[Value], buffers: object,
            nan: int) -> None:  # fmt: skip
    filler = next(v for v in [*values, *literals, b"" if kind.is_bytes else 0] if v is not None)
    if kind.code == rows.KIND_FIXED:
        filler = b"\0" * kind.width
    n, data, offsets = encode(kind, [filler if v is None else v for v in values])
    validity = bits([v is not None for v in values]) if None in values else None
    expected = [holds(op, v, literals, nan) for v in values]
    for negate in (False, True):
        wanted = [e is (not negate) for e in expected]
        ways = [buffers]
        if op == rows.OP_IN:
            ways += [rows.Lookup(kind.code, kind.width, buffers, table) for table in (False, True)]
        for way in ways:
            mask, count = rows.compare(kind.code, kind.width, n, validity, data, offsets, op, negate,
                                       way, nan)  # fmt: skip
            assert mask == bits(wanted)
            assert count == sum(wanted)


@every_kind
@given(data=st.data())
def test_any_predicate_on_any_values(kind: Kind, data: st.DataObject) -> None:
    values = data.draw(st.lists(kind.values | st.none(), max_size=20)) * data.draw(
        st.sampled_from([1, 1, 9])
    )
    op, literals, buffers = data.draw(predicates(kind))
    outcome(kind, values, op, literals, buffers, data.draw(st.sampled_from(NANS)))


@every_kind
@pytest.mark.parametrize("n", [0, 1, 7, 63, 64, 65, 127, 128, 200])
def test_lengths_around_a_word(kind: Kind, n: int) -> None:
    some = {"b": [True, False, None], "f": [0.5, None, -0.0, math.nan]}.get(
        kind.name[0], [3, None, 1, 2]
    )
    if kind.is_bytes:
        some = [b"abc", None, b"abe", b"\xff\0a"]
    values = list(itertools.islice(itertools.cycle(some), n))
    literal = some[0]
    for op, nan in itertools.product(SIMPLE, NANS):
        outcome(kind, values, op, [literal], encode(kind, [literal]), nan)
    for op in UNARY:
        outcome(kind, values, op, [], None, 0)


@pytest.mark.parametrize("n_literals", [0, 1, 7, 8, 9, 16, 100])
@pytest.mark.parametrize("kind", KINDS[1:], ids=[k.name for k in KINDS[1:]])
def test_lists_of_any_length(kind: Kind, n_literals: int) -> None:
    make = (lambda i: b"%03d" % i) if kind.is_bytes else float if kind.is_float else int
    values = [make(i % 127) for i in range(150)]
    literals = distinct([make(i) for i in range(1, min(2 * n_literals, 127), 2)])
    outcome(kind, values, rows.OP_IN, literals, encode(kind, literals), 0)


def test_nan_rules_on_every_pair() -> None:
    edge = [math.nan, -math.nan, 0.0, -0.0, 1.5, -math.inf, math.inf]
    for kind in KINDS:
        if kind.is_float:
            for op, literal, nan in itertools.product(SIMPLE, edge, NANS):
                outcome(kind, edge, op, [literal], encode(kind, [literal]), nan)
            for k, nan in itertools.product(range(4), NANS):
                for chosen in itertools.combinations(edge, k):
                    literals = distinct(list(chosen))
                    outcome(kind, edge, rows.OP_IN, literals, encode(kind, literals), nan)


def test_every_half_float_is_ordered_as_its_value() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    halves = codes.view(np.float16)
    exact = halves.astype(np.float64)
    for literal in (0.0, -0.0, 6e-8, -6e-8, 6.1e-5, 6.104e-5, 1.0, -65504.0, 65504.0, math.inf):
        half = np.array([literal], np.float16)
        for op, test in (
            (rows.OP_EQ, np.equal),
            (rows.OP_LT, np.less),
            (rows.OP_GE, np.greater_equal),
        ):
            mask, count = rows.compare(rows.KIND_F16, 0, len(codes), None, halves, None, op, False,
                                       (1, half, None))  # fmt: skip
            expected = test(exact, half.astype(np.float64)[0])
            assert mask == bits(expected.tolist())
            assert count == expected.sum()


@every_kind
@given(data=st.data())
def test_literals_are_sorted_and_distinct(kind: Kind, data: st.DataObject) -> None:
    values = data.draw(st.lists(kind.values, max_size=30))
    order = np.frombuffer(
        rows.sort_literals(kind.code, kind.width, *encode(kind, values)), np.int64
    )
    assert [key(values[i]) for i in order] == [key(v) for v in distinct(values)]
    assert all(
        key(values[i]) not in [key(v) for v in values[:i]] for i in order
    )  # the first of equals


def test_unaligned_values() -> None:
    data = b"?" + np.arange(130, dtype=np.float64).tobytes()
    mask, count = rows.compare(rows.KIND_F64, 0, 130, None, memoryview(data)[1:], None, rows.OP_GT,
                               False, (1, np.float64(64).tobytes(), None))  # fmt: skip
    assert count == 65
    assert mask == bits([i > 64 for i in range(130)])


def test_a_fixed_width_of_zero() -> None:
    one = rows.compare(rows.KIND_FIXED, 0, 3, None, b"", None, rows.OP_EQ, False, (1, b"", None))
    assert one == (b"\7", 3)


def test_a_lookup_is_of_one_kind_and_in_order() -> None:
    for n, data in ((2, b"ba"), (2, b"aa"), (3, b"ab")):
        with pytest.raises(CoreError):
            rows.Lookup(rows.KIND_I8, 0, (n, data, None), True)
    ready = rows.Lookup(rows.KIND_I8, 0, (2, b"ab", None), True)
    with pytest.raises(CoreError, match="a list of kind 1 for values of kind 2"):
        rows.compare(rows.KIND_I16, 0, 1, None, b"ab", None, rows.OP_IN, False, ready)
    one = rows.Lookup(rows.KIND_FIXED, 1, (2, b"ab", b"\0\0\0\0\1\0\0\0\2\0\0\0"), True)
    assert (
        rows.compare(rows.KIND_FIXED, 1, 3, None, b"bca", None, rows.OP_IN, False, one)[0] == b"\5"
    )


REFUSED = {
    "unknown kind": (99, 0, 1, None, b"\0" * 8, None, rows.OP_IS_NAN, False, None),
    "values: 3 values need": (rows.KIND_I32, 0, 3, None, b"\0" * 11, None, rows.OP_IS_NAN, False, None),
    "9 values": (rows.KIND_BOOL, 0, 9, None, b"\0", None, rows.OP_IS_NAN, False, None),
    "validity: 1 bytes": (rows.KIND_I8, 0, 9, b"\0", b"\0" * 9, None, rows.OP_IS_NULL, False, None),
    "a count of -1": (rows.KIND_I8, 0, -1, None, b"", None, rows.OP_IS_NULL, False, None),
    "no offsets": (rows.KIND_BYTES, 0, 1, None, b"abc", None, rows.OP_IS_NAN, False, None),
    "offsets: 7 bytes": (rows.KIND_BYTES, 0, 1, None, b"abc", b"\0" * 7, rows.OP_IS_NAN, False, None),
    "offsets fall": (rows.KIND_BYTES, 0, 1, None, b"abc", b"\2\0\0\0\1\0\0\0", rows.OP_IS_NAN, False, None),
    "leave the data": (rows.KIND_BYTES, 0, 1, None, b"abc", b"\0\0\0\0\4\0\0\0", rows.OP_IS_NAN, False, None),
    "one literal wanted": (rows.KIND_I8, 0, 1, None, b"a", None, rows.OP_EQ, False, (2, b"ab", None)),
    "0 given": (rows.KIND_I8, 0, 1, None, b"a", None, rows.OP_EQ, False, None),
    "not sorted": (rows.KIND_I8, 0, 1, None, b"a", None, rows.OP_IN, False, (2, b"ba", None)),
    "and distinct": (rows.KIND_I8, 0, 1, None, b"a", None, rows.OP_IN, False, (2, b"aa", None)),
    "a prefix needs": (rows.KIND_I8, 0, 1, None, b"a", None, rows.OP_PREFIX, False, (1, b"a", None)),
    "unknown operator": (rows.KIND_I8, 0, 1, None, b"a", None, 12, False, (1, b"a", None)),
    "negative width": (rows.KIND_FIXED, -1, 1, None, b"a", None, rows.OP_IS_NAN, False, None),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_arguments_are_refused(message: str) -> None:
    with pytest.raises(CoreError, match=message) as caught:
        rows.compare(*REFUSED[message])
    assert caught.value.status == 6
