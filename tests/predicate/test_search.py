"""The public `lower_bound` and `upper_bound`, compared with numpy and plain Python."""

from __future__ import annotations

import bisect
import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pageseek as ps

NUMBERS = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_as_numpy_finds_them(name: str) -> None:
    dice = np.random.default_rng(1)
    for n in (0, 1, 2, 3, 17, 64, 200):
        values = np.sort(dice.integers(0, 60, n)).astype(name)
        for wanted in (-1, 0, 1, 0.5, 17, 33, 59, 60, 59.75, 10**30, -math.inf, math.inf):
            left, right = (
                np.searchsorted(values.astype(float), wanted, s) for s in ("left", "right")
            )
            for made in (values, pa.array(values)):
                assert ps.lower_bound(made, wanted) == left, (n, wanted)
                assert ps.upper_bound(made, wanted) == right, (n, wanted)
        assert ps.lower_bound(values, math.nan) == ps.upper_bound(values, math.nan) == n


SORTED: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.bool_(), [False] * 3 + [True] * 9, [False, True]),
    (pa.string(), ["", "a", "ab", "b", "b", "é"], ["", "a", "aa", "b", "z", "é", "ê"]),
    (pa.large_binary(), [b"", b"a", b"a\xff", b"b"], [b"", b"a\xfe", b"a\xff\0", b"c"]),
    (pa.binary(2), [b"aa", b"ab", b"ab", b"b\0"], [b"a", b"aa", b"ab", b"aba", b"b\0", b"c"]),
    (
        pa.decimal128(6, 2),
        [Decimal("-1.50"), Decimal("0.00"), Decimal("2.25")],
        [Decimal("-1.5"), Decimal("2.249"), 0, 2.25, 10**9],
    ),
    (
        pa.date32(),
        [dt.date(1960, 1, 1), dt.date(2000, 2, 29)],
        [dt.date(1959, 1, 1), dt.date(1960, 1, 1), dt.date(2000, 2, 29), dt.date(2001, 1, 1)],
    ),
    (
        pa.timestamp("us"),
        [dt.datetime(1999, 1, 1), dt.datetime(2000, 1, 1, 0, 0, 0, 1)],
        [dt.datetime(1999, 1, 1), dt.datetime(2000, 1, 1), dt.datetime(2000, 1, 1, 0, 0, 0, 1)],
    ),
    (pa.time64("ns"), [dt.time(1), dt.time(2, 30)], [dt.time(0), dt.time(1), dt.time(23)]),
    (
        pa.duration("ms"),
        [dt.timedelta(0), dt.timedelta(hours=1)],
        [dt.timedelta(0), dt.timedelta(1)],
    ),
]


@pytest.mark.parametrize(("kind", "values", "wanted"), SORTED, ids=lambda v: str(v)[:12])
def test_every_type_as_bisect_finds_it(
    kind: pa.DataType, values: list[Any], wanted: list[Any]
) -> None:
    whole = pa.array(values, kind)
    for start in range(len(values) + 1):
        for stop in range(start, len(values) + 1):
            part, plain = whole.slice(start, stop - start), values[start:stop]
            for value in wanted:
                assert ps.lower_bound(part, value) == bisect.bisect_left(plain, value)
                assert ps.upper_bound(part, value) == bisect.bisect_right(plain, value)


def test_values_between_and_beyond_are_compared_exactly() -> None:
    values = pa.array([2**53, 2**53 + 1, 2**53 + 2])
    assert ps.lower_bound(values, float(2**53)) == 0
    assert ps.upper_bound(values, 2**53) == 1
    assert ps.lower_bound(pa.array([1, 2, 3], pa.int8()), 300) == 3
    assert ps.lower_bound(pa.array([1, 2, 3], pa.uint8()), -300) == 0
    third = pa.array([0.25, 1 / 3], pa.float32())
    assert ps.lower_bound(third, 1 / 3) == 1  # the float32 is the greater one
    zeros = np.array([-0.0, 0.0])
    assert (ps.lower_bound(zeros, 0.0), ps.upper_bound(zeros, -0.0)) == (0, 2)
    assert ps.lower_bound(pa.array([1, 5]), pa.scalar(5, pa.int16())) == 1
    assert ps.lower_bound(np.arange(10)[::3], 4) == 2  # with strides


def test_what_has_no_place_in_an_order() -> None:
    with pytest.raises(ValueError, match="1 nulls"):
        ps.lower_bound(pa.array([1, None]), 1)
    with pytest.raises(ValueError, match="null has no place"):
        ps.upper_bound(pa.array([1]), None)
    with pytest.raises(ValueError, match="2 dimensions"):
        ps.lower_bound(np.zeros((2, 2)), 1)
    with pytest.raises(TypeError, match="combine its chunks"):
        ps.lower_bound(pa.chunked_array([[1], [2]]), 1)
    with pytest.raises(TypeError, match="list"):
        ps.lower_bound([1, 2], 1)  # type: ignore[arg-type]
    with pytest.raises(ps.UnsupportedError, match="list"):
        ps.lower_bound(pa.array([[1], [2]]), 1)
    with pytest.raises(
        ps.PredicateError, match=r"^column 'values' of type int64 cannot be compared"
    ):
        ps.lower_bound(pa.array([1, 2]), "1")
    with pytest.raises(ps.PredicateError, match="cannot be compared"):
        ps.upper_bound(pa.array(["a"]), b"a")


def test_damaged_offsets_are_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 1, 9, 3], np.int32))
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abc")])
    with pytest.raises(ValueError, match="offsets"):
        ps.lower_bound(broken, "z")
