"""Lower and upper bound, compared with bisect, for every kind."""

from __future__ import annotations

import bisect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageseek._core import rows
from pageseek._core.rows import CoreError
from support.value_kinds import KINDS, Kind, encode, key

every_kind = pytest.mark.parametrize("kind", KINDS, ids=[k.name for k in KINDS])


@every_kind
@given(data=st.data())
def test_bounds_are_those_of_bisect(kind: Kind, data: st.DataObject) -> None:
    numbers = kind.numbers
    values = sorted(data.draw(st.lists(numbers, max_size=40)), key=key)
    literal = data.draw(kind.values)
    place = (kind.code, kind.width, *encode(kind, values), encode(kind, [literal]))
    assert rows.lower_bound(*place) == bisect.bisect_left(values, key(literal), key=key)
    assert rows.upper_bound(*place) == bisect.bisect_right(values, key(literal), key=key)


def test_every_length_and_every_place() -> None:
    for n in range(70):
        values = np.arange(1, 2 * n, 2, dtype=np.int64)
        for literal in range(-1, 2 * n + 2):
            wanted = (1, np.int64(literal).tobytes(), None)
            lower = rows.lower_bound(rows.KIND_I64, 0, n, values, None, wanted)
            upper = rows.upper_bound(rows.KIND_I64, 0, n, values, None, wanted)
            assert lower == np.searchsorted(values, literal, "left")
            assert upper == np.searchsorted(values, literal, "right")


def test_byte_strings_of_other_layouts_are_literals_too() -> None:
    values = (rows.KIND_FIXED, 2, 3, b"aabbcc", None)
    offsets = np.array([0, 1], np.int32).tobytes()
    assert rows.lower_bound(*values, (1, b"b", offsets)) == 1
    assert rows.upper_bound(*values, (1, b"c", offsets)) == 2


def test_offsets_are_checked_where_they_are_met() -> None:
    offsets = np.array([0, 1, 9, 3], np.int32).tobytes()
    with pytest.raises(CoreError, match="offsets"):
        rows.lower_bound(rows.KIND_BYTES, 0, 3, b"abc", offsets, (1, b"z", offsets))
    with pytest.raises(CoreError, match="values: 3 values"):
        rows.lower_bound(rows.KIND_I32, 0, 3, b"abc", None, (1, b"abcd", None))
    with pytest.raises(CoreError, match="one literal"):
        rows.lower_bound(rows.KIND_I8, 0, 3, b"abc", None, (2, b"ab", None))
