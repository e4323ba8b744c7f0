"""A page index that is absent, partial, legal in odd ways, or wrong: never fatal, and never a lost row."""

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
from pageseek.fetch import Fetcher
from pageseek.report import Report
from support.oracle import agree, notes, pages_read
from support.writer import (
    BYTE_ARRAY,
    I16,
    I32,
    I64,
    INT32,
    INT64,
    STRING,
    Column,
    Raw,
    Struct,
    thrift,
    write,
)

X = [1, 3, None, 5, 5, None, None, 8, 9, 2]
CUTS = [
    2,
    1,
    2,
    2,
    2,
    1,
]  # one page of nulls in the middle, one that mixes, and disorder at the end


def make(values: list[Any] = X, cuts: list[int] = CUTS, **knobs: Any) -> bytes:
    return write(
        [
            Column("x", INT32, values, cuts, **knobs),
            Column("row", INT64, list(range(len(values))), [4, len(values) - 4]),
        ]
    )


def check(data: bytes) -> None:
    rows = agree(data, 1, 4, 5, 8, 100)
    assert [r["row"] for r in rows] == list(range(len(rows)))


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
    """The chunk begins at its first data page, as far as one can tell: an error says what is missing."""
    data = make(encodings="dictionary", edit_chunk=edit, offset_index=offset_index)
    with pytest.raises(ps.CorruptFileError, match="dictionary"):
        ps.read_table(data)


# ---- a wrong column index ------------------------------------------------------------------------


def _shorter(number: int) -> Callable[[Struct], None]:
    def edit(index: Struct) -> None:
        index[number] = index[number][:-1]

    return edit


def _longer(number: int) -> Callable[[Struct], None]:
    def edit(index: Struct) -> None:
        index[number] = [*index[number], index[number][-1]]

    return edit


def _every_list(change: Callable[[list[Any]], list[Any]]) -> Callable[[Struct], None]:
    def edit(index: Struct) -> None:
        for number in (1, 2, 3, 5):
            index[number] = change(index[number])

    return edit


def _set(number: int, value: Any) -> Callable[[Struct], None]:
    def edit(index: Struct) -> None:
        index[number] = value

    return edit


WRONG_COLUMN_INDEX = {
    "null_pages one short": _shorter(1),
    "min_values one short": _shorter(2),
    "max_values one short": _shorter(3),
    "null_counts one short": _shorter(5),
    "null_pages one long": _longer(1),
    "min_values one long": _longer(2),
    "null_counts one long": _longer(5),
    "nan_counts of another length": _set(8, [I64(0)]),
    "one page fewer than the offset index": _every_list(lambda v: v[:-1]),
    "one page more than the offset index": _every_list(lambda v: [*v, v[-1]]),
    "no pages": _every_list(lambda _: []),
    "null_counts empty": _set(5, []),
    "boundary order unknown": _set(4, I32(7)),
    "boundary order negative": _set(4, I32(-1)),
    "null_counts negative": _set(5, [I64(-1)] * 6),
    "null_counts beyond the rows": _set(5, [I64(9)] * 6),
    "null page with null count 0": _set(5, [I64(0)] * 6),
    "null_pages missing": lambda index: index.pop(1),
    "min_values missing": lambda index: index.pop(2),
    "boundary order missing": lambda index: index.pop(4),
    "min_values of the wrong type": _set(2, [I64(1)] * 6),
}


@pytest.mark.parametrize("name", WRONG_COLUMN_INDEX)
def test_a_contradictory_column_index_is_ignored(name: str) -> None:
    data = make(edit_column_index=WRONG_COLUMN_INDEX[name])
    assert "column index ignored" in notes(data, ps.col("x") == 8)
    check(data)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(
    "values", [[5, 1, 9, 3, 7, 2], [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [1, None, 9, None, 4, 4]]
)
def test_a_wrong_boundary_order_is_not_believed(values: list[Any], order: int) -> None:
    data = make(values, [1] * 6, order=order)
    agree(data, 0, 1, 3, 4, 7)


def _bounds(
    lower: list[bytes] | None = None, upper: list[bytes] | None = None
) -> Callable[[Struct], None]:
    def edit(index: Struct) -> None:
        index[2] = lower or index[2]
        index[3] = upper or index[3]

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        _bounds([b""] * 6, [b""] * 6),
        _bounds([b"\0"] * 6),
        _bounds([b"\0" * 8] * 6, [b"\0" * 8] * 6),
        _bounds([b"\xff\xff\xff\x7f"] * 6, [b"\0\0\0\x80"] * 6),
    ],
    ids=["empty", "one byte", "eight bytes", "lower above upper"],
)
def test_bounds_that_cannot_be_values_prove_nothing(edit: Callable[[Struct], None]) -> None:
    check(make(edit_column_index=edit))


def test_the_bytes_of_a_null_page_are_not_decoded() -> None:
    for junk in (b"", b"x" * 3, b"\xff" * 4):

        def edit(index: Struct, junk: bytes = junk) -> None:
            for number in (2, 3):
                index[number] = [
                    junk if null else v for null, v in zip(index[1], index[number], strict=True)
                ]

        for order in (1, 2):
            check(make([1, 2, None, None, 3, 3], [2, 2, 2], edit_column_index=edit, order=order))


def test_null_pages_of_a_column_without_nulls() -> None:
    def edit(index: Struct) -> None:
        index[1][1] = True
        del index[5]

    data = write([Column("x", INT32, [1, 2, 3, 4], [2, 2], optional=False, edit_column_index=edit)])
    agree(data, 2, 3, 4)
    assert "no nulls" in notes(data, ps.col("x") == 2)


def test_a_page_of_nulls_that_is_not_called_one() -> None:
    def edit(index: Struct) -> None:
        index[1] = [False] * 6

    check(make(edit_column_index=edit))
    strings = write(
        [
            Column(
                "x",
                BYTE_ARRAY,
                [b"a", None, None, b"b"],
                [1, 2, 1],
                logical=STRING,
                edit_column_index=lambda i: i.update({1: [False] * 3}),
            ),
            Column("row", INT32, [0, 1, 2, 3]),
        ]
    )
    agree(strings, "", "a", "b", "c")


def test_empty_strings_are_values() -> None:
    data = write(
        [
            Column("x", BYTE_ARRAY, [b"", b"", None, b"a", b""], [2, 1, 1, 1], logical=STRING),
            Column("row", INT32, [0, 1, 2, 3, 4]),
        ]
    )
    agree(data, "", "a")
    assert pages_read(data, ps.col("x") == "") == 2


# ---- a wrong offset index ------------------------------------------------------------------------


def _location(page: int, number: int, change: Callable[[int], int]) -> Callable[[Struct], None]:
    def edit(index: Struct) -> None:
        kind = I32 if number == 2 else I64
        index[1][page][number] = kind(change(index[1][page][number]))

    return edit


WRONG_OFFSET_INDEX: dict[str, Callable[[Struct], Any]] = {
    "first row is not 0": _location(0, 3, lambda _: 1),
    "first row negative": _location(0, 3, lambda _: -1),
    "rows decrease": _location(3, 3, lambda _: 0),
    "row beyond the row group": _location(5, 3, lambda _: 10),
    "row far beyond": _location(5, 3, lambda _: 1 << 62),
    "offset before the chunk": _location(0, 1, lambda _: 0),
    "offset negative": _location(0, 1, lambda _: -5),
    "offset beyond the chunk": _location(5, 1, lambda at: at + 10_000),
    "offset beyond the file": _location(5, 1, lambda _: (1 << 63) - 1),
    "pages overlap": _location(1, 1, lambda at: at - 2),
    "size zero": _location(2, 2, lambda _: 0),
    "size negative": _location(2, 2, lambda _: -7),
    "size beyond the chunk": _location(5, 2, lambda _: (1 << 31) - 1),
    "no pages": _set(1, []),
    "a page left out": lambda index: index.update({1: index[1][:2] + index[1][3:]}),
    "the last page left out": lambda index: index.update({1: index[1][:-1]}),
    "a page twice": lambda index: index.update({1: [index[1][0], *index[1]]}),
    "a length list of another size": _set(2, [I64(1)]),
}


@pytest.mark.parametrize("name", WRONG_OFFSET_INDEX)
def test_a_contradictory_offset_index_is_ignored(name: str) -> None:
    data = make(edit_offset_index=WRONG_OFFSET_INDEX[name])
    check(data)
    assert "ignored" in notes(data, ps.col("x") == 8)


PLAUSIBLE_OFFSET_INDEX: dict[str, Callable[[Struct], Any]] = {
    "a page begins a row early": _location(3, 3, lambda row: row - 1),
    "a page begins a row late": _location(2, 3, lambda row: row + 1),
    "a page begins inside itself": lambda index: (
        _location(3, 1, lambda at: at + 3)(index),
        _location(3, 2, lambda n: n - 3)(index),
    ),
    "a page is a byte short": _location(3, 2, lambda n: n - 1),
    "a page is cut to a byte": _location(3, 2, lambda _: 1),
}


@pytest.mark.parametrize("name", PLAUSIBLE_OFFSET_INDEX)
def test_an_offset_index_that_does_not_fit_its_pages_is_ignored(name: str) -> None:
    """Found only when a page is read: by then rows may have been ruled out on the word of this index."""
    check(make(edit_offset_index=PLAUSIBLE_OFFSET_INDEX[name]))
    check(make(edit_offset_index=PLAUSIBLE_OFFSET_INDEX[name], column_index=False))
    check(make(edit_offset_index=PLAUSIBLE_OFFSET_INDEX[name], null_count=False))
    check(make(list(range(10)), edit_offset_index=PLAUSIBLE_OFFSET_INDEX[name]))


@pytest.mark.parametrize("name", PLAUSIBLE_OFFSET_INDEX)
def test_the_offset_index_of_the_payload_does_not_fit_its_pages(name: str) -> None:
    data = write(
        [
            Column("x", INT32, X, [3, 3, 4]),
            Column(
                "row",
                INT64,
                list(range(10)),
                [2] * 4 + [1, 1],
                edit_offset_index=PLAUSIBLE_OFFSET_INDEX[name],
            ),
        ]
    )
    check(data)


def _without_the_first(index: Struct) -> None:
    first_rows = [place[3] for place in index[1]]
    index[1].pop(0)
    for place, row in zip(index[1], first_rows, strict=False):
        place[3] = row


@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
def test_an_offset_index_that_begins_with_the_second_page(encoding: str) -> None:
    """Of a page that is not read nobody sees that it does not fit; what lies before the first one tells."""
    data = write(
        [
            Column(
                "x",
                INT32,
                [1, 2, 3, 4],
                [2, 2, 0],
                encodings=encoding,
                column_index=False,
                edit_offset_index=_without_the_first,
            ),
            Column("row", INT64, list(range(4)), [1, 1, 1, 1]),
        ]
    )
    for row in range(4):
        assert ps.read_table(data, filter=ps.col("row") == row)["x"].to_pylist() == [row + 1]
    assert "ignored" in notes(data, ps.col("row") == 0)


def test_an_all_null_column_with_an_empty_offset_index() -> None:
    data = write(
        [
            Column("x", INT32, [1, 2, 3, 4], [2, 2]),
            Column(
                "n", INT32, [None] * 4, [2, 2], edit_offset_index=_set(1, []), column_index=False
            ),
        ]
    )
    agree(data, 1, 2, 3, 4)
    agree(data, 1, column="n")


def _place(number: int, value: int) -> Callable[[Struct], None]:
    def edit(chunk: Struct) -> None:
        chunk[number] = (I32 if number in (5, 7) else I64)(value)

    return edit


@pytest.mark.parametrize("number", [4, 5, 6, 7])
@pytest.mark.parametrize("value", [-1, 0, 1, 4, 1 << 30, (1 << 63) - 1])
def test_an_index_that_lies_nowhere(number: int, value: int) -> None:
    value = min(value, (1 << 31) - 1) if number in (5, 7) else value
    check(make(edit_column=_place(number, value)))


def test_the_support_writer_makes_valid_files() -> None:
    for version in (1, 2):
        for encoding in ("plain", "dictionary"):
            data = make(version=version, encodings=encoding, crc=True, codec="zstd")
            table = pq.read_table(io.BytesIO(data), page_checksum_verification=True)
            assert table.equals(ps.read_table(data))


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
    """A store of random bytes that notes what it is asked."""

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
