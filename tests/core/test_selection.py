"""Row sets compared with Python sets, in both forms and mixed."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pageseek._core import memory, rows
from pageseek._core.rows import CoreError, RowRanges

SPAN = 200
pairs = st.lists(
    st.tuples(st.integers(0, SPAN), st.integers(0, 30)).map(lambda p: (p[0], p[0] + p[1]))
)


def bitmap_of(numbers: set[int], base: int, length: int) -> RowRanges:
    bits = np.array([base + i in numbers for i in range(length)], dtype=bool)
    return RowRanges.from_bitmap(np.packbits(bits, bitorder="little").tobytes(), base, length)


@st.composite
def row_sets(draw: st.DrawFn) -> RowRanges:
    form = draw(st.sampled_from(("ranges", "bitmap", "scattered")))
    if form == "scattered":  # of so many runs that only a bitmap will do
        base, length = draw(st.integers(0, SPAN)), draw(st.integers(0, SPAN))
        share, seed = draw(st.sampled_from((0.1, 0.5, 0.9))), draw(st.integers(0, 99))
        chosen = np.random.default_rng(seed).random(length) < share
        return RowRanges.from_rows(np.flatnonzero(chosen) + base)
    ranges = RowRanges(draw(pairs))
    if form == "ranges":
        return ranges
    base, length = draw(st.integers(0, SPAN)), draw(st.integers(0, SPAN))
    return bitmap_of(set(ranges.rows().tolist()), base, length)


def plain(selection: RowRanges) -> set[int]:
    return {row for start, stop in selection for row in range(start, stop)}


def well_formed(selection: RowRanges) -> None:
    runs = list(selection)
    assert all(start < stop for start, stop in runs)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(runs))
    assert selection.num_ranges == len(runs)
    assert selection.num_rows == sum(stop - start for start, stop in runs)
    assert selection.bounds == ((runs[0][0], runs[-1][1]) if runs else (0, 0))
    assert bool(selection) == bool(runs)
    assert np.frombuffer(selection.ranges, np.int64).reshape(-1, 2).tolist() == [
        list(r) for r in runs
    ]


@given(pairs)
def test_ranges_are_normalised(given_pairs: list[tuple[int, int]]) -> None:
    expected = {row for start, stop in given_pairs for row in range(start, stop)}
    selection = RowRanges(given_pairs)
    well_formed(selection)
    assert plain(selection) == expected
    assert RowRanges(np.array(given_pairs, np.int64).reshape(-1, 2)) == selection
    assert RowRanges(iter(given_pairs)) == selection


@given(st.lists(st.integers(0, SPAN)))
def test_rows_in_any_order_make_a_set(numbers: list[int]) -> None:
    selection = RowRanges.from_rows(numbers)
    well_formed(selection)
    assert selection.rows().tolist() == sorted(set(numbers))
    assert selection == RowRanges.from_rows(np.array(numbers, np.int32))


@given(row_sets(), row_sets())
def test_algebra_equals_that_of_sets(a: RowRanges, b: RowRanges) -> None:
    x, y = plain(a), plain(b)
    for result, expected in ((a & b, x & y), (a | b, x | y), (a - b, x - y), (a ^ b, x ^ y)):
        well_formed(result)
        assert plain(result) == expected
    assert (a == b) == (x == y)
    if x == y:
        assert hash(a) == hash(b)


@given(row_sets(), st.integers(0, 2 * SPAN), st.integers(0, 2 * SPAN))
def test_slice_and_complement(a: RowRanges, start: int, stop: int) -> None:
    inside = set(range(start, stop))
    well_formed(a.slice(start, stop))
    assert plain(a.slice(start, stop)) == plain(a) & inside
    if start <= stop:
        well_formed(a.complement(start, stop))
        assert plain(a.complement(start, stop)) == inside - plain(a)


@given(row_sets(), st.integers(0, SPAN), st.integers(1, 9), st.integers(-SPAN, SPAN))
def test_head_skip_split_shift(a: RowRanges, n: int, pieces: int, delta: int) -> None:
    numbers = sorted(plain(a))
    assert a.rows().tolist() == numbers
    assert a.head(n).rows().tolist() == numbers[:n]
    assert a.skip(n).rows().tolist() == numbers[n:]
    parts = a.split(pieces)
    assert len(parts) == pieces
    assert list(itertools.chain.from_iterable(p.rows().tolist() for p in parts)) == numbers
    assert max(p.num_rows for p in parts) - min(p.num_rows for p in parts) <= 1
    if numbers and numbers[0] + delta < 0:
        with pytest.raises(CoreError, match="moved by"):
            a.shift(delta)
    else:
        assert a.shift(delta).rows().tolist() == [n + delta for n in numbers]
    assert all((row in a) == (row in set(numbers)) for row in range(-1, 2 * SPAN + 2))
    assert a.meets(n, n + pieces) == (not set(numbers).isdisjoint(range(n, n + pieces)))
    assert not a.meets(n, n)


@given(row_sets(), st.data())
def test_refine_keeps_the_kth_row_where_bit_k_is_set(a: RowRanges, data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=a.num_rows, max_size=a.num_rows))
    mask = np.packbits(np.array(keep, bool), bitorder="little").tobytes()
    refined = a.refine(mask)
    well_formed(refined)
    assert refined.rows().tolist() == list(itertools.compress(a.rows().tolist(), keep))


@given(row_sets())
def test_forms_and_copies_are_equal(a: RowRanges) -> None:
    numbers = plain(a)
    dense = bitmap_of(numbers, 0, 3 * SPAN)
    for other in (dense, RowRanges(a), RowRanges.from_rows(a.rows()), pickle.loads(pickle.dumps(a)),
                  pickle.loads(pickle.dumps(dense)), RowRanges.from_ranges(a.ranges)):  # fmt: skip
        assert other == a
        if other.bitmap is not None:
            assert other.buffers == other.bitmap
        else:
            assert other.buffers == other.ranges
        assert hash(other) == hash(a)
    assert a != numbers


@given(row_sets(), st.lists(st.integers(0, 40), min_size=1, max_size=12), st.data())
def test_zones_and_pages(a: RowRanges, sizes: list[int], data: st.DataObject) -> None:
    first = np.cumsum([0, *sizes]).astype(np.int64)
    zones = list(itertools.pairwise(first.tolist()))
    numbers = plain(a)
    assert list(rows.pages_touched(a, first)) == [
        int(not numbers.isdisjoint(range(*zone))) for zone in zones
    ]
    verdict = bytes(
        data.draw(st.lists(st.integers(0, 7), min_size=len(zones), max_size=len(zones)))
    )
    kept = rows.zones_to_ranges(verdict, rows.MAY_TRUE, first)
    well_formed(kept)
    assert plain(kept) == {
        r for v, zone in zip(verdict, zones, strict=True) if v & rows.MAY_TRUE for r in range(*zone)
    }


def test_every_pair_of_small_sets_in_every_form() -> None:
    universe = [{i for i in range(4) if bits >> i & 1} for bits in range(16)]
    leaf_types = [
        (RowRanges.from_rows(sorted(s)), bitmap_of(s, 0, 4), bitmap_of(s, 0, 70)) for s in universe
    ]
    for (x, xs), (y, ys) in itertools.product(zip(universe, leaf_types, strict=True), repeat=2):
        for a, b in itertools.product(xs, ys):
            results = (plain(a & b), plain(a | b), plain(a - b), plain(a ^ b))
            assert results == (x & y, x | y, x - y, x ^ y)
            assert (a == b) == (x == y)


@pytest.mark.parametrize("length", [1, 7, 64, 65, 127, 300])
def test_scattered_sets_of_every_alignment(length: int) -> None:
    """Whole words, parts of words, and bitmaps that begin at different rows."""
    dice = np.random.default_rng(length)
    for base, share in itertools.product((0, 1, 63, 64, 100), (0.2, 0.5, 0.8)):
        one = bitmap_of(set((np.flatnonzero(dice.random(length) < share) + base).tolist()), 0, 500)
        other = RowRanges.from_rows(np.flatnonzero(dice.random(400) < 0.5))
        x, y = plain(one), plain(other)
        for result, expected in (
            (one & other, x & y), (one | other, x | y), (one - other, x - y), (one ^ other, x ^ y),
            (other.complement(base, base + length), set(range(base, base + length)) - y),
        ):  # fmt: skip
            well_formed(result)
            assert plain(result) == expected
        for selection in (one, other, RowRanges.all(length)):
            keep = dice.random(selection.num_rows) < share
            refined = selection.refine(np.packbits(keep, bitorder="little"))
            well_formed(refined)
            assert refined.rows().tolist() == list(itertools.compress(selection.rows(), keep))


def test_the_form_is_the_one_that_takes_less_memory() -> None:
    every_other = RowRanges.from_rows(range(0, 10_000, 2))
    assert every_other.bitmap is not None
    assert RowRanges.from_rows(range(0, 100_000, 1000)).bitmap is None
    assert RowRanges([(0, 10), (20, 30)]).bitmap is None
    assert RowRanges.from_bitmap(b"\xff" * 1000, 0, 8000).bitmap is None
    assert RowRanges.all(10_000).refine(b"\x55" * 1250) == every_other
    assert RowRanges.all(10_000).refine(b"\x55" * 1250).bitmap is not None
    assert RowRanges.all(10_000).refine(b"\0" * 1000 + b"\xff" * 250).bitmap is None
    assert (every_other & RowRanges.all(100)).num_rows == 50
    assert (every_other & RowRanges([(50, 60)])).bitmap is None


def test_far_apart_bitmaps_do_not_allocate_the_space_between() -> None:
    near, far = bitmap_of({1, 3}, 0, 8), RowRanges.from_bitmap(b"\x05", 1 << 60, 8)
    assert list(near | far) == [
        (1, 2),
        (3, 4),
        (1 << 60, (1 << 60) + 1),
        ((1 << 60) + 2, (1 << 60) + 3),
    ]
    assert list(RowRanges.all(1 << 62) - near)[-1] == (4, 1 << 62)
    assert next(iter(near ^ RowRanges.all(1 << 62))) == (0, 1)


def test_bits_beyond_the_length_of_a_bitmap_count_for_nothing() -> None:
    selection = RowRanges.from_bitmap(b"\xff\xff\xff", 2, 11)
    assert list(selection) == [(2, 13)]
    assert selection == RowRanges([(2, 13)])


def test_a_bitmap_is_copied() -> None:
    source = bytearray(b"\x01")
    selection = RowRanges.from_bitmap(source, 0, 8)
    source[0] = 0xFF
    assert list(selection) == [(0, 1)]


def test_all_and_empty() -> None:
    assert list(RowRanges.all(7)) == [(0, 7)]
    assert RowRanges.all(0) == RowRanges.empty() == RowRanges() == RowRanges([(4, 4)])
    assert repr(RowRanges.empty()) == "<RowRanges of 0 rows: empty>"
    assert repr(RowRanges((i, i + 1) for i in range(0, 20, 2))) == (
        "<RowRanges of 10 rows: 0:1, 2:3, 4:5, 6:7, ...>"
    )


@pytest.mark.parametrize("bad", [[(-1, 3)], [(5, 4)], np.zeros((2, 3), np.int64), np.zeros((2, 2))])
def test_bad_pairs_are_refused(bad: object) -> None:
    with pytest.raises(CoreError) as caught:
        RowRanges(bad)
    assert caught.value.status == 6
    assert caught.value.offset is None
    assert caught.value.message == str(caught.value)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        RowRanges([(0.5, 3)])
    with pytest.raises(CoreError, match="is no row"):
        RowRanges.from_rows([3, -1])
    with pytest.raises(CoreError, match="rows of shape"):
        RowRanges.from_rows([0.5])
    with pytest.raises(CoreError, match="1 bytes for a bitmap of 9 bits"):
        RowRanges.from_bitmap(b"\0", 0, 9)
    with pytest.raises(CoreError, match="bitmap"):
        RowRanges.from_bitmap(b"\0", -1, 3)
    with pytest.raises(CoreError, match="mask of 1 bytes"):
        RowRanges.all(9).refine(b"\0")
    for parts in (0, 1 << 21, 1 << 63):
        with pytest.raises(CoreError, match=f"split into {parts}"):
            RowRanges.all(9).split(parts)
    with pytest.raises(CoreError, match="first rows"):
        rows.zones_to_ranges(b"\1\1", 1, np.zeros(2, np.int64))
    with pytest.raises(CoreError, match="first rows"):
        rows.pages_touched(RowRanges.all(9), b"\0")
    with pytest.raises(TypeError):
        RowRanges.all(9) & {1}


def test_a_mask_without_memory_refines_nothing() -> None:
    empty = memory.Block.__new__(memory.Block)
    for some in (rows.RowRanges(), rows.RowRanges.from_rows([])):
        assert some.refine(empty).num_rows == 0
    with pytest.raises(CoreError, match="mask of 0 bytes for 3 rows"):
        rows.RowRanges.all(3).refine(empty)


@pytest.mark.parametrize(
    "pairs", [[(3,)], [(1, 2, 3)], [("a", "b")], [(0, 1.5)], [3], [(0, 1 << 70)], 5]
)
def test_ranges_are_pairs_of_integers(pairs: Any) -> None:
    with pytest.raises(TypeError, match=r"pairs of integers of 64 bits, such as \[\(0, 10\)"):
        RowRanges(pairs)


def test_nobody_changes_what_ranges_are() -> None:
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (RowRanges,), {})
