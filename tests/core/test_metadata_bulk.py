"""Functions of the core that read many indexes or chunks in one call, compared with those that read one."""

from __future__ import annotations

import itertools
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import convert, lists, metadata
from pageseek.base.errors import CoreError
from pageseek.datasets.file_cache import cache
from pageseek.format.chunks import chunk_range
from pageseek.format.file_metadata import FileMetadata
from pageseek.scanning.many_files import footer_table
from pageseek.scanning.many_files.footer_table import FooterTable
from support.opened import open_metadata
from support.writer import I32, I64, Struct, thrift

ABSENT = metadata.ABSENT
ROWS = 3_000


def ints(data: Any) -> list[int]:
    return np.frombuffer(data, np.int64).tolist()


@pytest.fixture(scope="module")
def file() -> FileMetadata:
    random = np.random.default_rng(1)
    nulls = random.random(ROWS) < 0.3
    nulls[500:1_500] = True  # pages of nothing else
    table = pa.table(
        {
            "id": pa.array(np.arange(ROWS), pa.int64()),
            "maybe": pa.array(random.integers(0, 99, ROWS), pa.int32(), mask=nulls),
            "text": pa.array([f"value {i % 37}" for i in range(ROWS)], mask=nulls),
            "score": pa.array(random.random(ROWS)),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("maybe", pa.int32()),
                ("text", pa.string()),
                ("score", pa.float64()),
            ]
        ),
    )
    out = pa.BufferOutputStream()
    pq.write_table(
        table, out, row_group_size=1_000, data_page_size=400, write_batch_size=50,
        write_page_index=True, use_dictionary=["text"],
    )  # fmt: skip
    return open_metadata(out.getvalue().to_pybytes())


def index(file: FileMetadata, which: str, group: int, leaf: Any) -> bytes:
    at = file.index_range(which, group, leaf)
    assert at is not None
    return bytes(file.store.read([at])[0])


def damaged(data: bytes, n: int, seed: int) -> list[bytes]:
    """Every prefix, and copies with a byte or two changed."""
    rng = random.Random(seed)
    made = [data[:i] for i in range(len(data))]
    for _ in range(n):
        copy = bytearray(data)
        for _ in range(rng.randint(1, 2)):
            copy[rng.randrange(len(copy))] = rng.choice(
                [0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)]
            )
        made.append(bytes(copy))
    return made


# ---- offset indexes ------------------------------------------------------------------------------


def test_offset_indexes_equal_those_read_one_by_one(file: FileMetadata) -> None:
    for group in range(file.num_row_groups):
        num_rows = file.row_groups[group].num_rows
        asked = [
            (index(file, "offset", group, leaf), *chunk_range(file.chunk(group, leaf)))
            for leaf in file.leaves
        ]
        found = metadata.offset_indexes(asked, num_rows)
        assert len(found) == len(asked)
        for one, wanted in zip(found, asked, strict=True):
            assert not isinstance(one, metadata.CoreError)
            n, offset, size, first, _ = metadata.offset_index(wanted[0], num_rows, *wanted[1:])
            assert one == (n, offset, size, first + struct.pack("q", num_rows))
    assert metadata.offset_indexes([], 5) == []


def test_a_damaged_offset_index_is_its_own_error_and_nobody_elses(file: FileMetadata) -> None:
    leaf = file.leaves[0]
    data, (start, stop) = index(file, "offset", 0, leaf), chunk_range(file.chunk(0, leaf))
    bad = damaged(data, 1_000, 5)
    asked = [part for one in bad for part in ((one, start, stop), (data, start, stop))]
    found = metadata.offset_indexes(asked, 1_000)
    good = found[1]
    assert not isinstance(good, metadata.CoreError)
    assert found[1::2] == [good] * len(bad)
    failed = 0
    made: Any
    for one, made in zip(bad, found[::2], strict=True):
        try:
            wanted: Any = metadata.offset_index(one, 1_000, start, stop)
        except metadata.CoreError as error:
            wanted = error.args
            failed += 1
            made = made.args if isinstance(made, metadata.CoreError) else None
            same = made == wanted
        else:
            same = not isinstance(made, metadata.CoreError) and made[:3] == wanted[:3]
        assert same, one
    assert failed > len(data)


def test_offset_indexes_of_a_chunk_that_cannot_be_are_refused(file: FileMetadata) -> None:
    data = index(file, "offset", 0, file.leaves[0])
    for rows, start, stop in ((-1, 4, 9_000), (1_000, -4, 9_000), (1_000, 9, 8), (1_000, 4, 4)):
        (one,) = metadata.offset_indexes([(data, start, stop)], rows)
        assert isinstance(one, metadata.CoreError)
    (empty,) = metadata.offset_indexes([(b"\x19\x0c\x00", 4, 4)], 0)
    assert empty == (0, b"", b"", bytes(8))
    with pytest.raises(TypeError):
        metadata.offset_indexes([(None, 4, 9)], 1)  # type: ignore[list-item]


PAGES = [(4, 100, 0), (104, 1 << 20, 7), (1 << 40, (1 << 31) - 1, 1 << 33), (1 << 62, 1, 1 << 61)]


def locations(pages: Any, extra: Struct | None = None) -> bytes:
    """An OffsetIndex; with `extra` fields in each page it is not written as others write it."""
    made = [{1: I64(at), 2: I32(size), 3: I64(row), **(extra or {})} for at, size, row in pages]
    return thrift({1: made})


def read_or_error(data: bytes) -> Any:
    try:
        return metadata.offset_index(data, (1 << 63) - 1, 0, (1 << 63) - 1)
    except CoreError as error:
        return error.status, error.message


def test_pages_are_the_same_however_they_are_written() -> None:
    wanted = read_or_error(locations(PAGES, {9: I64(1)}))
    assert [ints(part) for part in wanted[1:4]] == [list(part) for part in zip(*PAGES, strict=True)]
    assert read_or_error(locations(PAGES)) == wanted
    plain, first = locations(PAGES), locations(PAGES[:1])
    assert plain[2:10] == first[2:10] == bytes([0x16, 8, 0x15, 0xC8, 1, 0x16, 0, 0])
    for odd in (
        bytes([0x16, 0x88, 0, 0x15, 0xC8, 1, 0x16, 0, 0]),  # more bytes than the integer needs
        bytes([0x16, 0x88, *[0x80] * 7, 0, 0x15, 0xC8, 1, 0x16, 0, 0]),
        bytes([0x16, 0x88, *[0x80] * 8, 0, 0x15, 0xC8, 1, 0x16, 0, 0]),
        bytes([6, 2, 8, 5, 4, 0xC8, 1, 6, 6, 0, 0]),  # field ids in full
    ):
        assert read_or_error(plain[:2] + odd + plain[10:]) == wanted


@pytest.mark.parametrize(
    "page",
    [(4, 1 << 31, 0), (4, -(1 << 31) - 1, 0), (4, -1, 0), (-4, 9, 0), (4, 9, -1), (1 << 63, 9, 0)],
)
def test_what_is_wrong_with_a_page_is_the_same_however_it_is_written(page: Any) -> None:
    end = [(1 << 40, 9, 5)] * 4  # so that the short way is taken
    found = read_or_error(locations([page, *end]))
    assert isinstance(found[0], int)
    assert found == read_or_error(locations([page, *end], {9: I64(1)}))


# ---- column indexes ------------------------------------------------------------------------------


def bounds_by_hand(data: bytes, first_row: list[int], required: bool, trusted: bool) -> Any:
    """`page_bounds` in plain Python; None if it refuses."""
    n, order, null_pages, *places, nulls, nans = metadata.column_index(data, max_arena=1 << 22)
    if n != len(first_row) - 1:
        return None
    counts = [b - a for a, b in itertools.pairwise(first_row)]
    for i, count in enumerate(counts):
        if nulls is not None:
            has = ints(nulls)[i]
            if has > count or (null_pages[i] and has != count):
                return None
        if required and null_pages[i] and count > 0:
            return None
    made = [
        ABSENT if null or not trusted else value
        for part in places
        for null, value in zip(null_pages, ints(part), strict=True)
    ]
    return order, null_pages, made, nulls, nans, counts


def page_bounds(data: bytes, first_row: list[int], required: bool, trusted: bool) -> Any:
    rows = np.array(first_row, np.int64).tobytes()
    order, null_pages, places, nulls, nans, counts = metadata.page_bounds(
        data, rows, required, trusted, max_arena=1 << 22
    )
    return order, null_pages, ints(places), nulls, nans, ints(counts)


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("trusted", [False, True])
def test_page_bounds_equal_the_slow_ones(file: FileMetadata, required: bool, trusted: bool) -> None:
    seen = 0
    for group in range(file.num_row_groups):
        for leaf in file.leaves:
            offsets = file.offset_index(group, leaf)
            assert offsets is not None
            first_row = offsets.first_row.tolist()
            data = index(file, "column", group, leaf)
            for rows in (first_row, first_row[:-1], [2 * row for row in first_row]):
                wanted = bounds_by_hand(data, rows, required, trusted)
                if wanted is None:
                    with pytest.raises(metadata.CoreError) as caught:
                        page_bounds(data, rows, required, trusted)
                    assert caught.value.status == metadata.CORRUPT
                else:
                    assert page_bounds(data, rows, required, trusted) == wanted
                    seen += 1
    assert seen > 10


def test_damaged_column_indexes_give_bounds_inside_them_or_an_error(file: FileMetadata) -> None:
    for leaf in file.leaves[1:3]:
        offsets = file.offset_index(0, leaf)
        assert offsets is not None
        first_row, data = offsets.first_row.tolist(), index(file, "column", 0, leaf)
        for bad in damaged(data, 1_500, 7):
            try:
                wanted = bounds_by_hand(bad, first_row, False, True)
            except metadata.CoreError:
                wanted = None
            if wanted is None:
                with pytest.raises(metadata.CoreError):
                    page_bounds(bad, first_row, False, True)
                continue
            assert page_bounds(bad, first_row, False, True) == wanted
            n = len(first_row) - 1
            for at, size in zip(
                wanted[2][:n] + wanted[2][2 * n : 3 * n], wanted[2][n : 2 * n] + wanted[2][3 * n :],
                strict=True,
            ):  # fmt: skip
                assert at == ABSENT or 0 <= at <= at + size <= len(bad)


def test_page_bounds_need_rows() -> None:
    for rows in (b"", b"1234567", b"123456789"):
        with pytest.raises(metadata.CoreError) as caught:
            metadata.page_bounds(b"", rows, False, True)
        assert caught.value.status == metadata.INVALID


# ---- statistics of chunks ------------------------------------------------------------------------


FIELD = {name: i for i, name in enumerate(metadata.CHUNK_FIELDS)}


def chunk_bounds_by_hand(table: np.ndarray[Any, Any], ordered: bool, deprecated: bool) -> Any:
    def of(row: Any, name: str) -> int:
        return int(row[FIELD["statistics_" + name]])

    if not any(of(row, "present") == 1 for row in table):
        return None
    places: list[list[int]] = []
    for row in table:
        place = [ABSENT] * 4
        if of(row, "present") == 1 and row[FIELD["crypto"]] == ABSENT:
            for use, low, high in (
                (deprecated, "min", "max"),
                (ordered, "min_value", "max_value"),
            ):
                ends = [
                    of(row, name + end) for name in (low, high) for end in ("_offset", "_length")
                ]
                if use and ABSENT not in (ends[0], ends[2]):
                    place = ends
        places.append(place)
    flat = [place[i] for i in range(4) for place in places]
    return flat, *([max(of(row, f"{kind}_count"), -1) for row in table] for kind in ("null", "nan"))


def test_chunk_bounds_equal_the_slow_ones() -> None:
    rng = np.random.default_rng(3)
    for n in (*range(6), 40):
        for _ in range(30):
            table = rng.integers(-2, 90, (n, len(FIELD)))
            table[rng.random(table.shape) < 0.3] = ABSENT
            table[:, FIELD["statistics_present"]] = rng.integers(0, 2, n)
            for ordered in (False, True):
                for deprecated in (False, True):
                    found = metadata.chunk_bounds(table.tobytes(), ordered, deprecated)
                    wanted = chunk_bounds_by_hand(table, ordered, deprecated)
                    assert (found and tuple(map(ints, found))) == wanted
    for bad in (b"1", bytes(8 * len(FIELD) + 1)):
        with pytest.raises(metadata.CoreError):
            metadata.chunk_bounds(bad, True, True)


# ---- bounds to values ----------------------------------------------------------------------------


def test_convert_bounds_leaves_out_what_is_no_value() -> None:
    form, data = (1, 0, 3, 0, 0, 0, 0), struct.pack("<4i", 5, 6, 7, 8)  # INT32
    places = [0, 4, ABSENT, 4, 3, ABSENT, 8, 12, 4, 4, 4, 4]  # three pairs: of the last no minimum
    low, low_offsets, high, high_offsets, known = convert.convert_bounds(
        form, data, np.array(places, np.int64).tobytes(), 3
    )
    assert low_offsets is None
    assert high_offsets is None
    assert bytes(known) == b"\1\0\0"
    assert np.frombuffer(low, np.int32)[0] == 5
    assert np.frombuffer(high, np.int32)[0] == 7
    for n in (2, 4):
        with pytest.raises(ValueError, match="int64"):
            convert.convert_bounds(form, data, np.array(places, np.int64).tobytes(), n)
    outside = np.array([0, 4, 14, 4], np.int64).tobytes()
    with pytest.raises(CoreError, match="outside"):
        convert.convert_bounds(form, data, outside, 1)


def test_offset_index_arrays_are_those_of_the_file(file: FileMetadata) -> None:
    offsets = file.offset_index(0, "id")
    assert offsets is not None
    assert len(offsets.offset) == len(offsets.compressed_size) == offsets.num_pages
    assert offsets.first_row[0] == 0
    assert offsets.first_row[-1] == 1_000
    assert offsets.start == offsets.offset[0]
    assert repr(offsets) == f"<OffsetIndex of {offsets.num_pages} pages>"
    for outside in (-1, 99, 1 << 70):
        with pytest.raises(IndexError, match=f"no row group {outside}"):
            file.column_index(outside, "maybe")
        with pytest.raises(IndexError, match="there are"):
            file.offset_index(outside, "maybe")
    found = file.column_index(0, "maybe")
    assert found is not None
    assert found.null_counts is not None
    assert found.null_counts.sum() > 500
    assert set(found.null_pages.tolist()) == {0, 1}
    ids = file.column_index(0, "id")
    assert ids is not None
    assert (ids.boundary_order, ids.num_pages) == ("ascending", len(ids.lower))


def test_parts_that_are_cut_out_are_those_of_slices() -> None:
    dice = random.Random(9)
    data = dice.randbytes(500)
    for n in (0, 1, 7, 60):
        starts = [dice.randrange(501) for _ in range(n)]
        places = [(at, dice.randrange(501 - at)) for at in starts]
        made = lists.cut(memoryview(data), np.array(places, np.int64).reshape(-1, 2))
        assert made == b"".join([data[at : at + size] for at, size in places])


@pytest.mark.parametrize("place", [(-1, 4), (0, 501), (490, 11), (501, 0), (4, -1), (2**63 - 1, 2)])
def test_parts_outside_of_the_bytes_are_refused(place: tuple[int, int]) -> None:
    with pytest.raises(CoreError, match="of 500"):
        lists.cut(bytes(500), np.array([(0, 500), place], np.int64))


def test_schemas_that_writers_stored_are_told_apart(tmp_path: Path) -> None:
    said = [None, "1", "2", "12"]  # of equal and of other lengths
    ps.clear_cache()
    for i in range(60):
        one = said[i * 7 % 11 % 4]
        field = pa.field("x", pa.int64(), metadata={"k": one or ""})
        table = pa.table([[i, i + 1]], schema=pa.schema([field]))
        pq.write_table(table, tmp_path / f"{i:03}.parquet", store_schema=one is not None)
    found = ps.read_table(tmp_path, filter=ps.col("x") >= 30)
    assert sorted(found["x"].to_pylist()) == sorted([*range(30, 60), *range(30, 61)])
    (batch,) = cache._batches.values()
    all_made = [one for made in batch.made.values() for one in made]
    assert sum([len(records.members) for records in all_made]) >= 60
    for records in all_made:
        theirs = [pq.read_metadata(batch.paths[i]).metadata or {} for i in records.members.tolist()]
        mine = [records.schemas[i] for i in records.schema_of.tolist()]
        assert mine == [one.get(b"ARROW:schema") for one in theirs]
    assert max([len(records.schemas) for records in all_made]) >= len(said) - 1  # read as one


@pytest.mark.parametrize("room", [1, 7, 40, 1 << 14])
def test_footers_that_several_threads_read_are_those_that_one_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    ps.clear_cache()
    for i in range(30):
        table = pa.table({"x": list(range(i, i + 12)), "y": [str(i)] * 12})
        pq.write_table(table, tmp_path / f"{i:02}.parquet", row_group_size=(12, 5, 3)[i % 3])
    monkeypatch.setattr(footer_table, "SHARED", 4)
    monkeypatch.setattr(footer_table, "RECORDS", room)
    of, made = FooterTable.of.__func__, []  # type: ignore[attr-defined]

    def both(cls: Any, *given: Any) -> list[FooterTable]:
        *how, threads = given
        one, several = of(cls, *how, 1), of(cls, *how, threads)
        made.append((threads, len(one[0].members) if one else 0))
        for name in ("members", "sizes", "n", "pairs", "rows", "chunks") if one else ():
            mine, theirs = (
                np.concatenate([getattr(each, name) for each in some]) for some in (several, one)
            )
            assert np.array_equal(mine, theirs)
        assert all(
            len(each.rows) * each.chunks.shape[1] <= max(room, each.chunks.shape[1])
            for each in several
        )
        return list(several)

    monkeypatch.setattr(FooterTable, "of", classmethod(both))
    for threads in (2, 3, 7):
        ps.clear_cache()
        found = ps.read_table(tmp_path, filter=ps.col("x") >= 35, threads=threads)
        assert sorted(found["x"].to_pylist()) == sorted([x for i in range(24, 30) for x in range(max(i, 35), i + 12)])  # fmt: skip
    assert {threads for threads, _ in made} == {2, 3, 7}
