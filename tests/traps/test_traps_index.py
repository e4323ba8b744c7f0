"""A page index that is absent, partial, or unusual but legal: never fatal, and never a lost row."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.io.fetch import Fetcher
from support.indexed import CUTS, X, check, make
from support.oracle import agree, notes, pages_read
from support.writer import (
    I16,
    I32,
    I64,
    INT32,
    INT64,
    Column,
    Raw,
    Struct,
    thrift,
    write,
)


def test_the_index_prunes_where_it_is_sound() -> None:
    assert pages_read(make(), ps.col("x") == 8) == 1
    assert pages_read(make(), ps.col("x").is_null()) == 2
    check(make())


# ---- legal oddities ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "knobs",
    [
        {"column_index": False},
        {"offset_index": False},
        {"column_index": False, "offset_index": False},
        {"null_count": False},
        {"statistics": False},
        {"null_count": False, "statistics": False, "column_index": False},
    ],
    ids=str,
)
def test_parts_that_are_absent(knobs: dict[str, Any]) -> None:
    check(make(**knobs))


def test_an_index_for_the_first_row_group_only() -> None:
    groups = [
        [
            Column("x", INT32, X, CUTS, column_index=g == 0, offset_index=g == 0),
            Column("row", INT64, [g * 10 + i for i in range(10)], [5, 5], offset_index=g == 1),
        ]
        for g in range(3)
    ]
    check(write(*groups))


def test_pages_of_nulls_only_at_the_ends_and_everywhere() -> None:
    for values in (
        [None] * 4 + [1, 2],
        [1, 2] + [None] * 4,
        [None] * 6,
        [None, 1, None, 2, None, 3],
    ):
        for cuts in ([1] * 6, [2, 2, 2], [6]):
            data = make(values, cuts, optional=True)
            agree(data, 1, 2, 3, 0)
            assert pages_read(data, ps.col("x") > 100) == 0


def test_equal_bounds_on_both_sides_of_a_page_end() -> None:
    for order in (1, 2):
        values = [1, 2, 2, 2, 2, 3][:: 1 if order == 1 else -1]
        data = make(values, [2, 1, 2, 1], order=order)
        check(data)
        assert pages_read(data, ps.col("x") == 2) == 3


def test_all_bounds_equal_may_be_called_ascending_or_descending() -> None:
    for order in (0, 1, 2):
        check(make([5] * 6, [2, 2, 2], order=order))


def test_overlapping_bounds_of_ordered_pages() -> None:
    check(make([1, 9, 2, 9, 9, 12], [2, 2, 2], order=1))


def test_more_pages_than_a_short_counts() -> None:
    n = 33_000
    data = make(list(range(n)), [1] * n)
    assert ps.read_table(data, filter=ps.col("x") == n - 1).to_pylist() == [
        {"x": n - 1, "row": n - 1}
    ]
    assert ps.read_table(data, filter=ps.col("x") >= n - 5).num_rows == 5
    assert pages_read(data, ps.col("x") == n - 2) == 1


def test_pages_without_rows_between_others() -> None:
    for knobs in ({}, {"offset_index": False}, {"column_index": False}, {"version": 2}):
        data = make([1, 2, 3, 4, 5], [2, 0, 1, 0, 0, 2], **knobs)
        agree(data, 1, 2, 3, 4, 5)


def test_index_pages_and_unknown_page_types_inside_a_chunk_are_passed_over() -> None:
    for kind in (1, 9):
        between = thrift({1: I32(kind), 2: I32(3), 3: I32(3), 6: {}}) + b"abc"
        for offset_index in (True, False):
            check(make(between=between, offset_index=offset_index))


@pytest.mark.parametrize("ordinals", [[0, 1, 2], [None] * 3, [None, 7, 7]])
def test_ordinals_of_row_groups_may_be_there_or_not(ordinals: list[int | None]) -> None:
    def edit(number: int, group: Struct) -> None:
        group[7] = None if ordinals[number] is None else I16(ordinals[number])

    groups = [
        [Column("x", INT32, [g, g + 1]), Column("row", INT32, [2 * g, 2 * g + 1])] for g in range(3)
    ]
    rows = agree(write(*groups, edit_group=edit), 0, 1, 2, 3)
    assert [r["row"] for r in rows] == list(range(6))


def test_empty_row_groups_and_files() -> None:
    def group(values: list[int]) -> list[Column]:
        return [Column("x", INT32, values), Column("row", INT32, values)]

    assert len(agree(write(group([1, 2]), group([]), group([3])), 1, 2, 3)) == 3
    assert agree(write(group([])), 1) == []

    def no_groups(footer: Struct) -> None:
        footer[3], footer[4] = I64(0), []

    data = write(group([]), edit_footer=no_groups)
    assert agree(data, 1) == []
    assert ps.scan(data).count_rows() == 0


# ---- dictionary offsets --------------------------------------------------------------------------


def _zero(meta: Struct) -> None:
    meta[11] = I64(0)


def _missing(meta: Struct) -> None:
    del meta[11]


def _zero_and_first(meta: Struct) -> None:
    meta[9], meta[11] = meta[11], I64(0)


def _first(meta: Struct) -> None:
    meta[9] = meta.pop(11)


def _both_at_the_dictionary(meta: Struct) -> None:
    meta[9] = meta[11]


def _swapped(meta: Struct) -> None:
    meta[9], meta[11] = meta[11], meta[9]


@pytest.mark.parametrize("edit", [_zero_and_first, _first, _both_at_the_dictionary, _swapped])
@pytest.mark.parametrize("offset_index", [True, False])
def test_dictionary_offset_odd(edit: Callable[[Struct], None], offset_index: bool) -> None:
    check(make(encodings="dictionary", edit_chunk=edit, offset_index=offset_index))


@pytest.mark.parametrize("edit", [_zero, _missing])
@pytest.mark.parametrize("offset_index", [True, False])
def test_a_dictionary_that_no_offset_names(
    edit: Callable[[Struct], None], offset_index: bool
) -> None:
    """The chunk seems to begin at its first data page: an error says what is missing."""
    data = make(encodings="dictionary", edit_chunk=edit, offset_index=offset_index)
    with pytest.raises(ps.CorruptFileError, match="dictionary"):
        ps.read_table(data)


# ---- indexes of some columns, in any place -------------------------------------------------------


def test_27_t8_columns_without_an_offset_index_beside_columns_with_one() -> None:
    """Each is fetched by its own pages, or whole: none takes the places of its neighbour."""
    n = 8
    for absent in itertools.product((False, True), repeat=4):
        columns = [
            Column(name, INT32, [k * 100 + i for i in range(n)], cuts, offset_index=not gone)
            for k, (name, cuts, gone) in enumerate(
                zip("abcd", ([3, 5], [2, 2, 4], [8], [1] * 8), absent, strict=True)
            )
        ]
        data = write(columns)
        for key, row in (("a", 5), ("b", 2), ("d", 7)):
            at = ps.col(key) == "abcd".index(key) * 100 + row
            assert ps.read_table(data, filter=at).to_pylist() == [
                {name: k * 100 + row for k, name in enumerate("abcd")}
            ], absent
        some = ps.read_table(data, columns=["c", "a"], filter=ps.col("d").isin([300, 306]))
        assert some.to_pylist() == [{"c": 200, "a": 0}, {"c": 206, "a": 6}]


def test_31_index_blocks_in_any_order_with_gaps_between() -> None:
    """Found where the footer says, and in no other way: what lay there before is spoiled."""

    def columns(edit: Callable[[Struct], Any]) -> list[Column]:
        x = Column("x", INT32, X, CUTS, edit_column=edit)
        return [x, Column("row", INT64, list(range(10)), [4, 6], edit_column=edit)]

    places: list[tuple[int, int]] = []

    def note(chunk: Struct) -> None:
        places.extend((int(chunk[at]), int(chunk[at + 1])) for at in (6, 4))

    first = write(columns(note))
    blocks = [first[at : at + size] for at, size in places]
    end = max(at + size for at, size in places)
    order = [3, 0, 2, 1]
    padding, moved = b"", {}
    for k in order:
        padding += b"?" * (7 * k + 5)
        moved[k] = end + len(padding)
        padding += blocks[k]
    feed = iter(range(4))

    def move(chunk: Struct) -> None:
        for at in (6, 4):
            chunk[at] = I64(moved[next(feed)])

    data = bytearray(write(columns(move), padding=padding))
    start = min(at for at, _ in places)
    data[start:end] = b"\xff" * (end - start)
    check(bytes(data))
    assert pages_read(bytes(data), ps.col("x") == 8) == 1
    assert "ignored" not in notes(bytes(data), ps.col("x") == 8)


@pytest.mark.parametrize(
    "ordinals", [[0, 1, 2], [None] * 3, [2, 1, 0], [None, 0, None], [-1, 9, 9]]
)
def test_40_row_numbers_are_places_whatever_the_ordinals(ordinals: list[int | None]) -> None:
    def edit(number: int, group: Struct) -> None:
        group[7] = None if ordinals[number] is None else I16(ordinals[number])

    groups = [[Column("x", INT32, [g, 7, g + 10], [1, 2])] for g in range(3)]
    data = write(*groups, edit_group=edit)
    for condition, wanted in (
        (None, list(range(9))),
        (ps.col("x") == 7, [1, 4, 7]),
        (ps.col("x") >= 11, [5, 8]),
        (ps.col("x") == 2, [6]),
    ):
        for prune in (True, False):
            found = ps.scan(data, filter=condition, prune=prune).with_row_number("at").to_table()
            assert found["at"].to_pylist() == wanted


def test_42_a_file_without_an_index_is_asked_for_none(tmp_path: Any) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(make(column_index=False, offset_index=False))
    data = write([Column("x", INT32, X, CUTS, column_index=False, offset_index=False)])
    (tmp_path / "b.parquet").write_bytes(data)
    for name, wanted in (("a", [7]), ("b", None)):
        ps.clear_cache()
        scan = ps.scan(tmp_path / f"{name}.parquet", columns=["x"], filter=ps.col("x") == 8)
        report = scan.explain(analyze=True).to_dict()
        assert report["bytes"]["index"] == 0
        assert report["rows"]["out"] == 1
        assert (
            wanted is None
            or ps.read_table(path, filter=ps.col("x") == 8)["row"].to_pylist() == wanted
        )


class Heap:
    """A store of random bytes that records its reads."""

    def __init__(self, data: bytes, latency: float) -> None:
        self.data, self.size, self.name = data, len(data), "<heap>"
        self.latency, self.bandwidth = latency, 1.0
        self.version: Any = None
        self.asked: list[tuple[int, int]] = []

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        self.asked += ranges
        return [self.data[at : at + n] for at, n in ranges]

    def check(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("gap", [0, 3, 50])
def test_t68_ranges_that_overlap_or_contain_each_other_are_read_right(gap: int) -> None:
    dice = random.Random(gap)
    data = dice.randbytes(400)
    for _ in range(300):
        ranges = []
        for _ in range(dice.randrange(1, 9)):
            at = dice.randrange(400)
            ranges.append((at, dice.randrange(0, min(90, 400 - at) + 1)))
        ranges += ranges[: dice.randrange(2)]
        store = Heap(data, float(gap))
        found = Fetcher(store, Report()).read(ranges, "data")
        assert [bytes(part) for part in found] == [data[at : at + n] for at, n in ranges], ranges
        for (at, n), (other, m) in itertools.combinations(store.asked, 2):
            assert at + n <= other or other + m <= at, "no byte is asked twice"


def test_39_more_row_groups_than_a_short_counts() -> None:
    n, places = 32_800, {32_766: 1, 32_767: 2, 32_768: 3, 32_799: 4}

    def repeat(footer: Struct) -> None:
        made = [Raw(thrift(group)) for group in footer[4]]
        footer[3], footer[4] = I64(n), [made[places.get(g, 0)] for g in range(n)]

    bare: dict[str, Any] = {"column_index": False, "offset_index": False}
    groups = [[Column("x", INT32, [v], **bare)] for v in range(5)]
    scan = ps.scan(write(*groups, edit_footer=repeat)).with_row_number("at")
    for at, value in places.items():
        assert scan.filter(ps.col("x") == value).to_table().to_pylist() == [{"at": at, "x": value}]
    last = scan.filter(ps.col("x") >= 3).aggregate(["count", ("x", "max")]).to_pylist()
    assert last == [{"count": 2, "x_max": 4}]


@pytest.mark.parametrize("order", [1, 2])
def test_t23_pages_of_nulls_in_a_sound_index_are_no_fault(order: int) -> None:
    """At the ends, in the middle, with bounds as writers leave them empty: nothing is remarked, and pages are pruned."""
    values = [None, None, 1, None, 2, 3, None, None, 4, 4, None, None]
    made = values if order == 1 else values[::-1]
    data = make(made, [2] * 6, order=order)
    for condition in (ps.col("x") == 4, ps.col("x").is_null(), ps.col("x") < 9):
        assert notes(data, condition) == ""
    assert pages_read(data, ps.col("x") == 4) == 1
    assert pages_read(data, ps.col("x").is_null()) == 4
    assert pages_read(data, ps.col("x").is_not_null()) == 3
    sink = io.BytesIO()
    table = pa.table({"x": pa.array(made, pa.int32()), "row": range(12)})
    pq.write_table(table, sink, write_page_index=True, max_rows_per_page=2, use_dictionary=False)
    assert notes(sink.getvalue(), ps.col("x") == 4) == ""
    assert pages_read(sink.getvalue(), ps.col("x") == 4) == 1
    check(sink.getvalue())
