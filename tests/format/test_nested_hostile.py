"""Truncated, flipped or wrongly described nested pages: an error, or the right answer."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.decode import TAKE_PAGE, CoreError, LeafDecoder
from support.nested_pages import (
    Layout,
    LeafPages,
    decoder_of,
    file_of,
    finished,
    parts_of,
)
from support.nesting import node_of, shred
from support.oracle import notes
from support.writer import I64

KIND = pa.list_(pa.struct([pa.field("x", pa.list_(pa.int32())), pa.field("y", pa.string())]))
ROWS: list[Any] = [
    [{"x": [1, None], "y": "a"}, None],
    None,
    [],
    [{"x": None, "y": None}, {"x": [], "y": "bc"}],
    [{"x": [2, 3, 4], "y": "bc"}],
    [{"x": [5], "y": ""}, {"x": [6, 7], "y": "d"}],
]
SCHEMA = pa.schema([pa.field("id", pa.int64(), False), pa.field("c", KIND)])
TABLE = pa.table({"id": range(len(ROWS)), "c": ROWS}, schema=SCHEMA)
ALL = np.array([[0, len(ROWS)]], np.int64).tobytes()
SOME = b"\x35", 0, len(ROWS)


def made_file(*layouts: Layout, **hooks: Any) -> bytes:
    return file_of(SCHEMA, TABLE.to_pydict(), layouts, **hooks)


def page_parts(version: int, encoding: str) -> Iterator[tuple[LeafPages, bytes]]:
    """Each leaf with its only page."""
    node = node_of(KIND)
    shredded = shred(node, ROWS)
    for part in parts_of(node):
        layout = Layout((), version, (encoding,))
        made = LeafPages(node, part, shredded[part.leaf.index], layout)
        (page,) = made.pages()
        yield made, page.data


def read_page(made: LeafPages, data: bytes, chosen: Any) -> Any:
    """The output of one page, or CoreError; None if it has fewer rows than are selected."""
    decoder = decoder_of(made.part)
    decoder.begin(chosen)
    decoder.head(data)
    if made.dictionary:
        decoder.head(made.dictionary)
        decoder.take_dictionary()
        decoder.head(data)
    state = decoder.take(0, True)
    if state == TAKE_PAGE:  # rows are missing
        decoder.end()
        return None
    return finished(decoder, made.part)


def check_array(decoded: Any) -> None:
    decoded.array.validate(full=True)
    slots = decoded.rows
    for nesting_level in decoded.nesting_levels:
        assert nesting_level[0] == slots
        if len(nesting_level) == 2:
            offsets = np.frombuffer(nesting_level[1], np.int32)
            assert offsets[0] == 0
            assert (np.diff(offsets) >= 0).all()
            slots = int(offsets[-1])
    assert len(decoded.array) == slots


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
@pytest.mark.parametrize("chosen", [ALL, SOME], ids=["all", "some"])
def test_flipped_bits_of_a_page(version: int, encoding: str, chosen: Any) -> None:
    outcomes = {"right": 0, "other": 0, "error": 0}
    for made, data in page_parts(version, encoding):
        right = read_page(made, data, chosen)
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            try:
                found = read_page(made, bytes(flipped), chosen)
            except CoreError:
                outcomes["error"] += 1
                continue
            if found is None:
                outcomes["error"] += 1
                continue
            check_array(found)
            outcomes["right" if found.array.equals(right.array) else "other"] += 1
    assert all(outcomes.values())


@pytest.mark.parametrize("version", [1, 2])
def test_a_page_cut_at_every_byte(version: int) -> None:
    for made, data in page_parts(version, "plain"):
        right = read_page(made, data, ALL)
        for size in range(len(data)):
            with pytest.raises(CoreError):
                read_page(made, data[:size], ALL)
        check_array(right)


@pytest.mark.parametrize("version", [1, 2])
def test_values_cut_at_every_byte(version: int) -> None:
    """The header fits, the page does not."""
    node = node_of(KIND)
    shredded = shred(node, ROWS)
    for part in parts_of(node):
        levels = shredded[part.leaf.index]

        class Cut(LeafPages):
            keep = 0

            def _page(self, header: Any, levels: bytes, body: bytes) -> bytes:
                return super()._page(header, levels, body[: self.keep])

        for keep in itertools.count():
            made = Cut(node, part, levels, Layout((), version))
            made.keep = keep
            (page,) = made.pages()
            made.keep = 1 << 20
            if page == made.pages()[0]:
                break
            with pytest.raises(CoreError):
                read_page(made, page.data, ALL)
        assert keep > 5


def layouts() -> Iterator[tuple[Layout, ...]]:
    for version in (1, 2):
        for encoding in ("plain", "dictionary"):
            yield tuple(Layout(cuts, version, (encoding,)) for cuts in ((2, 4), (3, 7), (2, 6)))


@pytest.mark.parametrize("number", [0, 3])
def test_flipped_bits_of_a_file(number: int) -> None:
    """Values may change; what comes is a table, or the error says what is wrong."""
    data = made_file(*list(layouts())[number])
    assert ps.read_table(data).equals(TABLE)
    condition = ps.col("id").isin([0, 3, 4])
    errors = 0
    for byte in range(len(data)):
        flipped = bytearray(data)
        flipped[byte] ^= 1 << (byte * 5 + number) % 8
        for rows in (None, condition) if byte % 2 else (condition,):
            try:
                ps.read_table(bytes(flipped), filter=rows).validate(full=True)
            except ps.PageseekError:
                errors += 1
    assert errors > len(data) // 10


def test_a_file_cut_at_every_byte() -> None:
    data = made_file(*next(layouts()))
    for size in range(len(data)):
        with pytest.raises(ps.PageseekError):
            ps.read_table(data[:size])


# ---- pages that are not what an index or a header says ----------------------------------------------


@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
@pytest.mark.parametrize("rows", [(3,), (1, 4), (0, 5), (2, 3)])
def test_an_offset_index_that_counts_other_rows_is_left_out(
    encoding: str, rows: tuple[int, ...]
) -> None:
    """A page that waits for its dictionary is compared with the index as well."""

    def shift(leaf: int, locations: list[dict[int, Any]]) -> None:
        if leaf == 2:
            locations[1][3] = I64(locations[1][3] + 1)

    y = shred(node_of(KIND), ROWS)[1]
    cuts = tuple(i for i, rep in enumerate(y.reps) if rep == 0)[2::2]
    data = made_file(Layout((2, 4)), Layout(), Layout(cuts, 1, (encoding,)), edit_locations=shift)
    condition = ps.col("id").isin(rows)
    found = ps.read_table(data, filter=condition)
    if found.equals(TABLE.take(pa.array(rows))):
        assert "offset index ignored" in notes(data, condition)
        return
    raise AssertionError(found.to_pylist())


def test_pages_of_version_2_that_cut_rows_are_read_whole() -> None:
    """The format forbids them, and pyarrow reads them: what is chosen must not change what a row is."""
    levels = shred(node_of(KIND), ROWS)
    for cut in range(1, len(levels[0].reps)):
        plain = Layout(), Layout((cut,), 2), Layout((min(cut, len(levels[1].reps) - 1),), 2)
        for packed in (False, True):
            layouts = [Layout(x.cuts, x.version, packed=packed) for x in plain]
            data = made_file(*layouts)
            assert pq.read_table(io.BytesIO(data)).equals(TABLE)
            for row in range(len(ROWS)):
                found = ps.read_table(data, filter=ps.col("id") == row)
                assert found.equals(TABLE.slice(row, 1)), (cut, row)


def test_headers_that_count_other_rows_are_found_out() -> None:
    """Their sum is right; DuckDB has written the number of values, which may have the right sum too."""
    told = Layout((3, 5), 2, offset_index=False, told=(2, 1, 3))
    data = made_file(Layout(), told, Layout())
    assert ps.read_table(data).equals(TABLE)
    for chosen in ([0], [1, 5], [1, 2, 3, 4]):
        condition = ps.col("id").isin(chosen)
        assert ps.read_table(data, filter=condition).equals(TABLE.take(pa.array(chosen)))
        assert "its header says" in notes(data, condition)


def test_a_group_is_tested_by_more_than_one_condition() -> None:
    """The result of the first condition is cut to the remaining rows; below the group there is a list."""
    data = made_file(Layout(), Layout(), Layout())
    null, late = ps.col("c").is_null(), ps.col("id") > 2
    for columns in (None, ["id"], ["c.y"]):
        condition = (null | late) & (ps.col("id") < 5) & (ps.col("c").is_not_null() | ~late)
        wanted = ps.read_table(data, columns=columns).take(pa.array([1, 3, 4]))
        assert ps.read_table(data, columns=columns, filter=condition).equals(wanted)


def test_levels_alone_are_those_of_a_nested_leaf() -> None:
    with pytest.raises(CoreError, match="flat"):
        LeafDecoder((1, 0, 4, 0, 0, 0, 0), 0, 0, levels_only=True)
