"""A page index that contradicts itself or its pages: never fatal, and never a lost row."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.indexed import X, check, make
from support.oracle import agree, notes, pages_read
from support.writer import (
    BYTE_ARRAY,
    I32,
    I64,
    INT32,
    INT64,
    STRING,
    Column,
    Struct,
    write,
)

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


def _elsewhere(index: Struct) -> None:
    """T-10: as far as nulls go it may be of this chunk."""
    index[2] = index[3] = [bytes([100 + page, 0, 0, 0]) for page in range(6)]


def _of_another_chunk(index: Struct) -> None:
    """T-10: in itself it is sound."""
    _elsewhere(index)
    index[1] = [index[1][0]] * 6
    index[5] = [I64(0)] * 6


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
    "a null more than the chunk has": _set(5, [I64(n) for n in (1, 1, 0, 2, 0, 0)]),
    "that of another chunk": _of_another_chunk,
    "bounds beyond those of the chunk": _elsewhere,
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


@pytest.mark.parametrize("page", [0, 1, 2])
def test_extremes_do_not_use_bounds_that_contradict_each_other(page: int) -> None:
    def swapped(index: Struct) -> None:
        index[2][page], index[3][page] = index[3][page], index[2][page]

    column = Column(
        "x", INT32, [7, 1, 3, 9, 5, 6], [2, 2, 2], statistics=False, edit_column_index=swapped
    )
    found = ps.scan(write([column])).aggregate([("x", "min"), ("x", "max")])
    assert found.to_pylist() == [{"x_min": 1, "x_max": 9}]


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
    """A wrong entry of an unread page is not visible; the bytes before the first page show it."""
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


# ---- shown to be wrong after something was decided on its word --------------------------------------


def _moved(index: Struct) -> None:
    index[1][3][3] = I64(index[1][3][3] + 7)


def _with_a_page_too_late(values: list[int], **knobs: Any) -> bytes:
    lies = Column("a", INT64, values, pages=[40] * 10, edit_offset_index=_moved, **knobs)
    return write([lies, Column("b", INT64, list(range(400)), pages=[50] * 8)])


def test_a_plan_made_on_the_word_of_an_index_that_was_dropped_since(tmp_path: Path) -> None:
    """By its own execution before, or by another scan of the same open file."""
    path = tmp_path / "lies.parquet"
    path.write_bytes(_with_a_page_too_late(list(range(400))))
    wanted = ps.col("a").between(120, 159)
    plan = ps.scan(path, filter=wanted).plan()
    for _ in range(2):
        assert [n for b in plan.execute() for n in b["a"].to_pylist()] == list(range(120, 160))
    ps.clear_cache()
    plan = ps.scan(path, filter=wanted).plan()
    assert ps.read_table(path, filter=ps.col("a").between(130, 140)).num_rows == 11
    report = ps.Report()
    assert sum(b.num_rows for b in plan.execute(report)) == 40
    rows = report.finish().to_dict()["rows"]
    assert rows["total"] == rows["read"] + sum(rows["pruned_by"].values())


@pytest.mark.parametrize("prune", [True, ["column_index"]])
@pytest.mark.parametrize("condition", [None, ps.col("b") >= 0, ps.col("a") < 5_000], ids=str)
def test_the_least_value_by_an_index_that_its_pages_show_to_be_wrong(
    prune: Any, condition: Any
) -> None:
    values = [1_000 + k for k in range(400)]
    values[121] = -5  # in the page, and before its first row as the index has it
    scan = ps.scan(_with_a_page_too_late(values, statistics=False), filter=condition, prune=prune)
    figures = [("a", "min"), ("a", "max")]
    assert scan.aggregate(figures).to_pylist() == [{"a_min": -5, "a_max": 1_399}]
    for unit, count in scan.explain(True, aggregate=figures).to_dict().items():
        if unit in ("files", "row_groups", "rows", "pages"):
            assert count["total"] == count["read"] + sum(count["pruned_by"].values()), unit
            assert all(n > 0 for n in count["pruned_by"].values()), count
