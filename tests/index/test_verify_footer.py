"""`verify` finds footers and page headers that contradict the data."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import build
from pageseek.format.types import ABSENT
from pageseek.index.footer_edit import COLUMN_PLACE, new_footer
from pageseek.index.page_reader import Chunk, SpansError
from support.nested_pages import Layout, file_of
from support.opened import open_metadata
from support.writer import BYTE_ARRAY, DOUBLE, FIXED, I32, I64, INT32, INT96, Column, Struct, write

NAN = float("nan")


@pytest.mark.parametrize("width", [0, -1, None, 1 << 30])
def test_values_of_a_width_that_none_can_have(tmp_path: Path, width: int | None) -> None:
    """No reader reads them; their pages can still be told apart."""

    def claim(element: Struct) -> None:
        element[2] = None if width is None else I32(width)

    values = [b"%02d" % i for i in range(8)]
    columns = [
        Column("x", FIXED, values, [4, 4], type_length=2, edit_element=claim, statistics=False),
        Column("id", INT32, list(range(8)), [4, 4]),
    ]
    path = tmp_path / "x.parquet"
    path.write_bytes(write(columns))
    found = ps.index.verify(path)
    assert found.checked["page_index"] == 2
    out = tmp_path / "out.parquet"
    made = ps.index.attach(path, replace=True, output=out)
    assert made.added == {("page_index", "x"): 1, ("page_index", "id"): 1}
    assert ps.index.verify(out).ok
    with pytest.raises(ps.UnsupportedError, match="values of"):
        ps.index.attach(path, bloom=["x"], output=out, overwrite=True)


# ---- what the footer says of chunks


def said(**fields: Any) -> Callable[[Struct], None]:
    """Other statistics of a chunk; those that it has stay."""
    at = {
        "max": 1,
        "min": 2,
        "nulls": 3,
        "high": 5,
        "low": 6,
        "high_exact": 7,
        "low_exact": 8,
        "nans": 9,
    }

    def edit(chunk: Struct) -> None:
        chunk[12] = {**chunk[12], **{at[name]: value for name, value in fields.items()}}

    return edit


def coded(chunk: Struct) -> None:
    """All data pages have codes, it says."""
    chunk[13] = [{1: I32(0), 2: I32(8), 3: I32(2)}]


def of(value: int) -> bytes:
    return struct.pack("<i", value)


NUMBERS: list[Any] = [5, None, 9, -3, 5, 7]
REALS: list[Any] = [1.5, NAN, None, -2.0, NAN, 0.5]
TEXTS: list[Any] = [b"v10", b"v49", b"v20", None, b"v30", b"v11"]
STATED: dict[str, tuple[int, list[Any], Callable[[Struct], None], str]] = {
    "nulls": (INT32, NUMBERS, said(nulls=I64(0)), "0 nulls, and it has 1"),
    "least": (INT32, NUMBERS, said(low=of(-2)), "least"),
    "only the least": (INT32, NUMBERS, said(low=of(-2), high=None), "least"),
    "only the greatest": (INT32, NUMBERS, said(high=of(8), low=None), "greatest"),
    "older greatest": (INT32, NUMBERS, said(max=of(8)), "older fields"),
    "older least": (INT32, NUMBERS, said(min=of(0)), "older fields"),
    "NaN": (DOUBLE, REALS, said(nans=I64(0)), "0 NaN, and it has 2"),
    "an exact greatest": (BYTE_ARRAY, TEXTS, said(high=b"v99", high_exact=True), "said to be a value"),
    "an exact least": (BYTE_ARRAY, TEXTS, said(low=b"v0", low_exact=True), "said to be a value"),
    "a bound of another width": (INT32, NUMBERS, said(high=b"abc"), "no value"),
    "codes": (INT32, NUMBERS, coded, "all data pages are of codes"),
}  # fmt: skip


@pytest.mark.parametrize("what", STATED)
def test_what_the_footer_says_of_a_chunk_is_checked(tmp_path: Path, what: str) -> None:
    physical, values, edit, message = STATED[what]
    path = tmp_path / "x.parquet"
    path.write_bytes(write([Column("x", physical, values, [3, 3], edit_chunk=edit)]))
    found = ps.index.verify(path)
    assert len(found.findings) == 1 and message in str(found.findings[0])
    path.write_bytes(write([Column("x", physical, values, [3, 3])]))
    assert ps.index.verify(path).ok


@pytest.mark.parametrize(
    "edit",
    [
        said(max=of(9), min=of(-3)), said(low=of(-4), high=of(11)), said(low_exact=True, high_exact=True),
        said(low_exact=False, low=of(-9)),
    ],
)  # fmt: skip
def test_what_bounds_need_not_be(tmp_path: Path, edit: Callable[[Struct], None]) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(write([Column("x", INT32, NUMBERS, [3, 3], edit_chunk=edit)]))
    found = ps.index.verify(path)
    assert found.ok, str(found)


# ---- what is seldom looked at


DAYS: list[Any] = [None if i == 2 else struct.pack("<qi", i, 2_440_588) for i in range(6)]


@pytest.mark.parametrize("said_nulls", [0, 6])
def test_nulls_of_values_that_have_no_order_are_counted(tmp_path: Path, said_nulls: int) -> None:
    path = tmp_path / "x.parquet"
    for nulls in (1, said_nulls):

        def edit(chunk: Struct) -> None:
            chunk[12] = {3: I64(nulls)}  # noqa: B023

        path.write_bytes(write([Column("x", INT96, DAYS, [3, 3], edit_chunk=edit)]))
        found = ps.index.verify(path)
        assert found.checked["statistics"] == 1
        assert found.ok == (nulls == 1)
    assert f"{said_nulls} nulls, and it has 1" in str(found)


@pytest.mark.parametrize(
    ("null_pages", "nulls"), [([0, 0], [0, 0]), ([1, 0], [3, 0]), ([0, 1], [1, 3])]
)
def test_null_pages_of_values_that_have_no_order_are_checked(
    tmp_path: Path, null_pages: list[int], nulls: list[int]
) -> None:
    path = tmp_path / "x.parquet"

    def written(null_pages: list[int], nulls: list[int]) -> None:
        path.write_bytes(write([Column("x", INT96, DAYS, [3, 3])]))
        with open_metadata(path) as file:
            places = array("q", [ABSENT]) * build.PLACES
            bounds = [b"" if null else bytes(12) for null in null_pages]
            body = build.column_index(bytes(null_pages), bounds, bounds, 0, array("q", nulls), None)
            data = path.read_bytes()[: file.footer_start]
            places[COLUMN_PLACE], places[COLUMN_PLACE + 1] = len(data), len(body)
            footer = new_footer(file, places, [], [])
        path.write_bytes(data + body + footer + struct.pack("<I", len(footer)) + b"PAR1")

    written([0, 0], [1, 0])
    assert ps.index.verify(path).ok
    written(null_pages, nulls)
    assert {one.kind for one in ps.index.verify(path).findings} == {"page_index"}


def absent(value: Any) -> int:
    """The levels of a column's value that has no value in its leaf."""
    if isinstance(value, dict):
        return absent(value["y"])
    if isinstance(value, list):
        return sum(map(absent, value)) if value else 1
    return int(value is None)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("shape", ["flat", "required", "list", "list of required", "struct", "struct of required", "list of structs"])  # fmt: skip
def test_nulls_of_nested_leaves_without_an_order_are_counted(
    tmp_path: Path, shape: str, version: str
) -> None:
    stamp, now = pa.timestamp("ns"), np.datetime64("2020-02-02", "ns")
    must = pa.field("y", stamp, nullable=False)

    def of(i: int, hole: bool = True) -> Any:
        return None if hole and i % 3 == 0 else now

    kind, values, optional = {
        "flat": (stamp, [of(i) for i in range(900)], True),
        "required": (stamp, [now] * 900, False),
        "list": (pa.list_(stamp), [None if i % 7 == 0 else [of(j) for j in range(i % 4)] for i in range(900)], True),
        "list of required": (pa.list_(must), [None if i % 7 == 0 else [now] * (i % 4) for i in range(900)], True),
        "struct": (pa.struct([("y", stamp)]), [None if i % 7 == 0 else {"y": of(i)} for i in range(900)], True),
        "struct of required": (pa.struct([must]), [None if i % 7 == 0 else {"y": now} for i in range(900)], True),
        "list of structs": (
            pa.list_(pa.struct([("y", stamp)])),
            [[None if j % 4 == 1 else {"y": of(j)} for j in range(i % 5)] for i in range(900)], True,
        ),
    }[shape]  # fmt: skip
    path = tmp_path / "x.parquet"
    data = pa.table(
        {"x": pa.array(values, kind)}, pa.schema([pa.field("x", kind, nullable=optional)])
    )
    pq.write_table(
        data, path, use_deprecated_int96_timestamps=True, max_rows_per_page=90, data_page_version=version,
    )  # fmt: skip
    ps.index.attach(path, in_place=True)
    with open_metadata(path) as file:
        offsets = file.offset_index(0, file.leaves[0])
        assert offsets is not None and offsets.num_pages == 10
        starts = offsets.first_row.tolist()
    nulls = [sum(map(absent, values[a:b])) for a, b in pairwise(starts)]
    for lie in ("none", "one more", "null page"):
        nulls[4] += lie == "one more"
        nulls[4] -= lie == "null page"
        marked = bytes([0] * 4 + [lie == "null page"] + [0] * 5)
        bounds = [b"" if one else DAYS[0] for one in marked]
        with open_metadata(path) as file:
            at = file.footer_start
            body = build.column_index(marked, bounds, bounds, 0, array("q", nulls), None)
            places = array("q", [ABSENT]) * build.PLACES
            places[COLUMN_PLACE], places[COLUMN_PLACE + 1] = at, len(body)
            footer = new_footer(file, places, [], [])
        data_ = path.read_bytes()[:at] + body + footer
        path.write_bytes(data_ + struct.pack("<I", len(footer)) + b"PAR1")
        found = ps.index.verify(path)
        assert [one.page for one in found.findings] == [4] * (lie != "none"), str(found)
        word = {"none": "", "one more": "nulls, and it has", "null page": "has values"}[lie]
        assert word in str(found)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({3: I64(0)}, "0 nulls, and it has 1"),
        ({6: of(6)}, "least"),
        ({5: of(8)}, "greatest"),
        ({1: of(8)}, "older fields"),
    ],
)
def test_what_headers_say_of_their_pages_is_checked(
    tmp_path: Path, version: int, lie: Struct, message: str
) -> None:
    """Header bounds replace a page index that does not exist."""
    path, at = tmp_path / "x.parquet", {1: (5, 5), 2: (8, 8)}[version]
    true: list[Struct] = [
        {3: I64(1), 5: of(9), 6: of(5), 1: of(9), 2: of(5)},
        {3: I64(0), 5: of(7), 6: of(-3)},
    ]

    def written(lie: Struct) -> None:
        def edit(page: int, header: Struct) -> None:
            header[at[0]][at[1]] = {**true[page], **(lie if page == 0 else {})}

        column = Column(
            "x", INT32, NUMBERS, [3, 3], version=version, edit_header=edit, column_index=False, offset_index=False
        )  # fmt: skip
        path.write_bytes(write([column]))

    written({})
    found = ps.index.verify(path)
    assert found.ok and found.checked["page_headers"] == 1
    written(lie)
    (finding,) = ps.index.verify(path).findings
    assert (finding.kind, finding.page) == ("page_headers", 0) and message in finding.what


@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
def test_chunks_whose_rows_go_on_from_page_to_page_are_checked(
    tmp_path: Path, encoding: str
) -> None:
    """`any` asks their statistics."""
    path = tmp_path / "x.parquet"
    schema = pa.schema([pa.field("c", pa.list_(pa.int32()))])
    rows: list[Any] = [[70_001, 70_002, 70_003], None, [], [70_004, None], [70_009, 70_005]]
    layout = Layout((1, 2, 8), encodings=(encoding,), offset_index=False)  # entries, not rows
    data = file_of(schema, {"c": rows}, [layout])
    path.write_bytes(data)
    with open_metadata(path) as file:
        pages = Chunk(file, 0, file.leaves[0], lambda *at: memoryview(file.store.read([at])[0]))
        with pytest.raises(SpansError):
            list(pages.pages(values=True))
    found = ps.index.verify(path)
    assert found.ok and found.checked == {"statistics": 1}
    foot = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert data[foot:].count(of(70_009)) == 1
    path.write_bytes(data[:foot] + data[foot:].replace(of(70_009), of(70_008)))
    (finding,) = ps.index.verify(path).findings
    assert finding.kind == "statistics" and "greatest" in finding.what


def test_headers_of_lists_are_not_asked(tmp_path: Path) -> None:
    """Whether an empty list is a null is what writers of their headers do not agree about."""
    path = tmp_path / "x.parquet"
    lists = pa.table(
        {"c": pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())), "n": range(4)}
    )
    pq.write_table(lists, path, use_dictionary=False)  # fmt: skip
    found = ps.index.verify(path)
    assert found.ok and found.checked == {"statistics": 2, "page_headers": 1}


def test_every_flipped_bit_of_a_footer_is_an_answer_or_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": ["a", "b"]}), path, store_schema=False)
    ps.index.attach(path, in_place=True, page_index=False, distinct=["x"])
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for bit in range(8 * start, 8 * (len(data) - 8)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            ps.index.verify(bytes(damaged))
        except ps.PageseekError:
            pass
