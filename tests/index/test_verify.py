"""`verify` finds indexes that contradict the data: plausible wrong values, one at a time."""

from __future__ import annotations

import importlib
import json
import shutil
import struct
import sys
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import build
from pageseek._core import metadata as core
from pageseek._core.bloom import xxh64
from pageseek.format.embedded import (
    KEY,
    Directory,
    Pointer,
    directory,
    fingerprint,
    framed,
    opened,
    types_of,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import ABSENT
from pageseek.format.value_list import Distinct
from pageseek.index.footer_edit import BLOOM_PLACE, COLUMN_PLACE, OFFSET_PLACE, new_footer
from support.attaching import as_by_others
from support.opened import open_metadata

ROWS, GROUP = 6_000, 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(3)
    reals = random.normal(size=ROWS)
    reals[: ROWS // 2 : 50] = np.nan  # of the first row group: it has no bounds of pages
    data = pa.table(
        {
            "id": np.arange(ROWS),
            "number": pa.array(random.integers(0, 9999, ROWS), mask=random.random(ROWS) < 0.2),
            "gap": pa.array([None if 3000 <= i < 4000 else i for i in range(ROWS)]),
            "real": reals,
            "text": [f"{i % 7}{'x' * 70}{i:05d}" for i in range(ROWS)],
            "kind": pa.array([None if i == 17 else "abcdefg"[i % (5 if i < 3000 else 7)] for i in range(ROWS)]),
        }
    )  # fmt: skip
    path = tmp_path_factory.mktemp("verify") / "x.parquet"
    pq.write_table(
        data, path, row_group_size=3_000, max_rows_per_page=250, use_dictionary=False
    )  # fmt: skip
    ps.index.attach(path, bloom=["number", "id"], distinct=["kind"], in_place=True)
    found = ps.index.verify(path)
    assert found.ok, str(found)
    return path


def with_bodies(path: Path, bodies: dict[tuple[str, int], bytes | None]) -> None:
    """Give chunks of one row group other indexes: by column and place, the bytes; None takes one away."""
    with open_metadata(path) as file:
        places = array("q", [ABSENT]) * (file.num_row_groups * file.num_leaves * build.PLACES)
        data = bytearray(path.read_bytes()[: file.footer_start])
        for (column, place), body in bodies.items():
            leaf = file.schema_tree.find(column)
            at = (GROUP * file.num_leaves + leaf.index) * build.PLACES + place
            places[at], places[at + 1] = (-1, -1) if body is None else (len(data), len(body))
            data += body or b""
        footer = new_footer(file, places, [], [])
    path.write_bytes(bytes(data) + footer + struct.pack("<I", len(footer)) + b"PAR1")


def raw(path: Path, column: str, what: str) -> bytes:
    """The bytes of an index of a chunk."""
    with open_metadata(path) as file:
        chunk: Any = file.chunk(GROUP, file.schema_tree.find(column))
        at, size = getattr(chunk, f"{what}_offset"), getattr(chunk, f"{what}_length")
        return path.read_bytes()[at : at + size]


class Bounds:
    """A ColumnIndex to be changed."""

    def __init__(self, data: bytes) -> None:
        n, self.order, nulls, a, b, c, d, self.nulls, self.nans = core.column_index(data)
        self.null_pages = bytearray(nulls)
        self.least, self.most = (
            [data[at : at + size] for at, size in zip(array("q", x), array("q", y), strict=True)]
            for x, y in ((a, b), (c, d))
        )
        self.nulls, self.nans = array("q", self.nulls), array("q", self.nans) if self.nans else None
        assert n == len(self.least) > 3

    def written(self) -> bytes:
        return build.column_index(
            self.null_pages, self.least, self.most, self.order, self.nulls, self.nans
        )


def column_lie(column: str, change: Callable[[Bounds], None]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        bounds = Bounds(raw(path, column, "column_index"))
        change(bounds)
        with_bodies(path, {(column, COLUMN_PLACE): bounds.written()})

    return plant


def number(value: int) -> bytes:
    return struct.pack("<q", value)


def raised(bounds: Bounds) -> None:
    bounds.least[2] = number(struct.unpack("<q", bounds.least[2])[0] + 1)


def lowered(bounds: Bounds) -> None:
    bounds.most[1] = number(struct.unpack("<q", bounds.most[1])[0] - 1)


def fewer_nulls(bounds: Bounds) -> None:
    bounds.nulls[1] -= 1


def null_page(bounds: Bounds) -> None:
    bounds.null_pages[0] = 1
    bounds.least[0] = bounds.most[0] = b""


def no_null_page(bounds: Bounds) -> None:
    at = bounds.null_pages.index(1)
    bounds.null_pages[at] = 0
    bounds.least[at] = bounds.most[at] = number(0)


def ascending(bounds: Bounds) -> None:
    bounds.order = 1


def descending(bounds: Bounds) -> None:
    bounds.order = 2


def more_nans(bounds: Bounds) -> None:
    assert bounds.nans is not None
    bounds.nans[0] += 1


def a_page_less(bounds: Bounds) -> None:
    del bounds.least[-1], bounds.most[-1], bounds.null_pages[-1], bounds.nulls[-1]


def of_another_width(bounds: Bounds) -> None:
    bounds.least[1] = bounds.least[1][:4]


def cut_short(bounds: Bounds) -> None:
    bounds.most[0] = bounds.most[0][:-1] + bytes([bounds.most[0][-1] - 1])


def nan_bound(bounds: Bounds) -> None:
    bounds.most[0] = struct.pack("<d", float("nan"))


def offset_lie(column: str, change: Callable[[Any, Any, Any], None]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        with open_metadata(path) as file:
            found = file.offset_index(GROUP, column)
            assert found is not None
            offset, size, rows = (
                array("q", part.tolist())
                for part in (found.offset, found.compressed_size, found.first_row[:-1])
            )
        change(offset, size, rows)
        with_bodies(path, {(column, OFFSET_PLACE): build.offset_index(offset, size, rows)})

    return plant


def other_place(offset: Any, size: Any, rows: Any) -> None:
    offset[2] += 1
    size[2] -= 1


def other_size(offset: Any, size: Any, rows: Any) -> None:
    size[2] -= 1


def other_row(offset: Any, size: Any, rows: Any) -> None:
    rows[3] += 1


def page_left_out(offset: Any, size: Any, rows: Any) -> None:
    for part in (offset, size, rows):
        del part[2]


def no_offsets(path: Path) -> None:
    with_bodies(path, {("number", OFFSET_PLACE): None})


def bloom_lie(change: Callable[[bytearray], None]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        body = bytearray(raw(path, "number", "bloom_filter"))
        change(body)
        with_bodies(path, {("number", BLOOM_PLACE): bytes(body)})

    return plant


def entry_dropped(body: bytearray) -> None:
    at = next(i for i in range(len(body) - 1, 0, -1) if body[i])
    body[at] &= body[at] - 1


def all_dropped(body: bytearray) -> None:
    body[-1024:] = bytes(1024)


def of_another_column(path: Path) -> None:
    with_bodies(path, {("number", BLOOM_PLACE): raw(path, "id", "bloom_filter")})


def list_lie(change: Callable[[Distinct], Distinct]) -> Callable[[Path], None]:
    """A list that says something else, and is otherwise in order."""

    def plant(path: Path) -> None:
        with open_metadata(path) as file:
            leaf = file.schema_tree.find("kind")
            found = directory(file)
            assert found is not None
            old = next(one for one in found.pointers if one.leaf == ("kind",))
            data = path.read_bytes()
            chunks = fingerprint(file, leaf)
            body = opened(old, memoryview(data)[old.offset : old.offset + old.length], chunks)
            made = framed(change(Distinct.of(body, file.num_row_groups)).to_bytes(), chunks)
            pointer = replace(old, offset=file.footer_start, length=len(made), checksum=xxh64(made))
            put(path, file, data[: file.footer_start] + made, Directory(found.base, (pointer,)))

    return plant


def put(path: Path, file: FileMetadata, data: bytes, found: Directory) -> None:
    write(path, file, data, found.to_value())


def rewrite(path: Path, file: FileMetadata, told: bytes) -> None:
    """Another value under the key."""
    write(path, file, path.read_bytes()[: file.footer_start], told)


def write(path: Path, file: FileMetadata, data: bytes, told: bytes) -> None:
    places = array("q", [ABSENT]) * (file.num_row_groups * file.num_leaves * build.PLACES)
    footer = new_footer(file, places, [KEY], [(KEY, told)])
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")


def value_missing(found: Distinct) -> Distinct:
    assert found.ends is not None and found.has is not None
    return replace(
        found, n=6, values=bytes(found.values[:-1]), ends=found.ends[:-1],
        has=found.has & 0x3F,
    )  # fmt: skip


def not_in_group(found: Distinct) -> Distinct:
    assert found.has is not None
    has = found.has.copy()
    has[GROUP] &= 0xFE
    return replace(found, has=has)


def in_group(found: Distinct) -> Distinct:
    assert found.has is not None
    has = found.has.copy()
    has[0] |= 0x40
    return replace(found, has=has)


def without_nulls(found: Distinct) -> Distinct:
    return replace(found, flags=found.flags & ~np.uint8(2))


def other_checksum(path: Path) -> None:
    with open_metadata(path) as file:
        found = directory(file)
        assert found is not None
        pointers = tuple(replace(one, checksum=one.checksum ^ 1) for one in found.pointers)
        put(path, file, path.read_bytes()[: file.footer_start], Directory(found.base, pointers))


LIES: dict[str, Callable[[Path], None]] = {
    "least too high": column_lie("number", raised),
    "greatest too low": column_lie("id", lowered),
    "greatest of a text too low": column_lie("text", cut_short),
    "NaN as a bound": column_lie("real", nan_bound),
    "bound of another width": column_lie("number", of_another_width),
    "null count": column_lie("number", fewer_nulls),
    "null page with values": column_lie("number", null_page),
    "null page not marked": column_lie("gap", no_null_page),
    "ascending": column_lie("number", ascending),
    "descending": column_lie("id", descending),
    "NaN count": column_lie("real", more_nans),
    "a page too few in the column index": column_lie("number", a_page_less),
    "offset": offset_lie("number", other_place),
    "size": offset_lie("number", other_size),
    "first row": offset_lie("number", other_row),
    "a page too few in the offset index": offset_lie("number", page_left_out),
    "no offset index": no_offsets,
    "Bloom entry dropped": bloom_lie(entry_dropped),
    "Bloom filter emptied": bloom_lie(all_dropped),
    "Bloom filter of another column": of_another_column,
    "value not listed": list_lie(value_missing),
    "value not in its row group": list_lie(not_in_group),
    "value in a row group that has it not": list_lie(in_group),
    "nulls denied": list_lie(without_nulls),
    "checksum": other_checksum,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(whole: Path, tmp_path: Path, lie: str) -> None:
    path = tmp_path / "x.parquet"
    shutil.copy(whole, path)
    LIES[lie](path)
    found = ps.index.verify(path)
    assert not found.ok
    assert str(found).count("\n") == len(found.findings)
    assert len({one.column for one in found.findings}) == 1


def test_statistics_of_chunks_are_checked(whole: Path, tmp_path: Path) -> None:
    """Those lie in the footer itself."""
    data = bytearray(whole.read_bytes())
    low = struct.pack(
        "<q", 3000
    )  # the least `id` of the second row group, as its statistics have it
    at = data.rindex(b"\x08" + low)
    data[at + 1 : at + 9] = struct.pack("<q", 3001)
    path = tmp_path / "x.parquet"
    path.write_bytes(data)
    kinds = {one.kind for one in ps.index.verify(path).findings}
    assert "statistics" in kinds


def test_a_page_that_cannot_be_read_is_a_finding(whole: Path, tmp_path: Path) -> None:
    data = bytearray(whole.read_bytes())
    with open_metadata(whole) as file:
        offsets = file.offset_index(0, "text")
        assert offsets is not None
        at = int(offsets.offset[1])
    data[at : at + 4] = b"\xff" * 4
    path = tmp_path / "x.parquet"
    path.write_bytes(data)
    found = ps.index.verify(path)
    assert [one.column for one in found.findings] == ["text"]
    assert found.findings[0].kind == "data"


def test_lists_in_the_published_form_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    words = ["alpha", "beta", "gam\nma", None, "alpha"]
    plain = pa.table({"s": ["alpha", "beta", "gamma", None, "alpha"], "t": words[::-1]})
    pq.write_table(plain, path, row_group_size=2)
    ps.index.attach(path, page_index=False, distinct_index="s", in_place=True)
    assert ps.index.verify(path).checked["distinct_index"] == 3
    (wrong,) = ps.index.verify(path, distinct_index="t").findings
    assert "it was attached for 's', not for 't'" in wrong.what
    whole = path.read_bytes()
    path.write_bytes(bytes(whole).replace(b"\ngamma", b"\ngammb", 1))
    (wrong,) = ps.index.verify(path).findings
    assert (wrong.kind, wrong.column) == ("distinct_index", "s") and "checksum" in wrong.what
    path.write_bytes(whole)
    as_by_others(path)
    assert ps.index.verify(path).ok  # with two string columns the list's column is unknown
    found = ps.index.verify(path, distinct_index="s")
    assert found.ok and found.checked["distinct_index"] == 3
    (wrong, *_) = ps.index.verify(path, distinct_index="t").findings
    assert (wrong.kind, wrong.column) == ("distinct_index", "t") and "gam" in wrong.what
    data = path.read_bytes()
    at = data.index(b"IDX1")
    path.write_bytes(data[:at] + data[at:].replace(b"gamma", b"gomma", 1))
    (wrong,) = ps.index.verify(path, distinct_index="s").findings
    assert wrong.row_group == 1 and "b'gamma'" in wrong.what
    path.write_bytes(data[:at] + b"IDX2" + data[at + 4 :])
    (wrong,) = ps.index.verify(path, distinct_index="s").findings
    assert "IDX1" in wrong.what


def test_a_list_of_a_column_that_has_none(tmp_path: Path) -> None:
    """A list may claim to be of a column whose values are not listed."""
    path = tmp_path / "x.parquet"
    data = pa.table({"when": pa.array([1, 2, 3], pa.timestamp("ns")), "id": [1, 2, 3]})
    pq.write_table(data, path, use_deprecated_int96_timestamps=True)
    with open_metadata(path) as file:
        leaf = file.schema_tree.find("when")
        chunks = fingerprint(file, leaf)
        values = b"".join(struct.pack("<qi", i, 2_440_588) for i in (1, 2, 3))
        made = Distinct(3, 12, values, None, np.array([1], np.uint8), None)
        body = framed(made.to_bytes(), chunks)
        pointer = Pointer(
            "distinct", 1, file.footer_start, len(body), leaf.path, *types_of(leaf), xxh64(body), chunks
        )  # fmt: skip
        put(path, file, path.read_bytes()[: file.footer_start] + body, Directory(4, (pointer,)))
    found = ps.index.verify(path)
    assert [one.kind for one in found.findings] == ["distinct"]
    assert "not listed" in found.findings[0].what
    assert ps.read_table(path, filter=ps.col("id") == 2).num_rows == 1


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_a_zero_that_a_filter_has_not_is_found(tmp_path: Path, kind: str) -> None:
    """A zero of either sign: a look-up of zero checks both."""
    with_zeros, without = tmp_path / "a.parquet", tmp_path / "b.parquet"
    filters = []
    for path, values in ((with_zeros, [1.5, 0.0, 2.5, float("nan")]), (without, [1.5, 2.5] * 2)):
        pq.write_table(pa.table({"f": np.array(values, kind)}), path, use_dictionary=False)
        ps.index.attach(path, bloom=["f"], page_index=False, in_place=True)
        assert ps.index.verify(path).ok
        as_by_others(path)  # whose filters have no checksum that would tell
        with open_metadata(path) as file:
            chunk = file.chunk(0, file.leaves[0])
            filters.append((chunk.bloom_filter_offset, chunk.bloom_filter_length))
    (at, size), (other, other_size) = filters
    assert size == other_size
    data = bytearray(with_zeros.read_bytes())
    data[at : at + size] = without.read_bytes()[other : other + size]
    with_zeros.write_bytes(data)
    (finding,) = ps.index.verify(with_zeros).findings
    assert finding.kind == "bloom" and "zero" in finding.what


@pytest.mark.parametrize("kind", ["int32", "int64", "double", "string", "fixed"])
def test_values_of_large_pages_are_looked_for_in_pieces(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them: one that is not in the filter is found wherever it lies."""
    monkeypatch.setattr(sys.modules["pageseek.index.filter_check"], "VALUES_AT_ONCE", 64)
    numbers = np.arange(1000)
    values = {
        "int32": pa.array(numbers, pa.int32()), "int64": pa.array(numbers), "double": pa.array(numbers + 0.5),
        "string": pa.array([f"name {i}" for i in numbers]),
        "fixed": pa.array([b"%05d" % i for i in numbers], pa.binary(5)),
    }[kind]  # fmt: skip
    holes = pa.array(numbers % 5 == 0)
    values = pc.if_else(holes, pa.scalar(None, values.type), values)
    path = tmp_path / "x.parquet"
    for hidden in (None, 3, 63, 64, 127, 501, 999):
        kept = values
        if hidden is not None:  # the filter is of a column without it, whose chunk is as long
            marks = pa.array(numbers == hidden)
            kept = pc.if_else(marks, values[1], values)
        tables = [pa.table({"number": part}) for part in (values, kept)]
        places = []
        for table in tables:
            pq.write_table(table, path, use_dictionary=False, compression="none")
            ps.index.attach(path, page_index=False, bloom={"number": 1e-9}, in_place=True)
            as_by_others(path)
            with open_metadata(path) as file:
                (chunk,) = file.chunks(file.leaves[0])
            at, size = chunk.bloom_filter_offset, chunk.bloom_filter_length
            places.append((path.read_bytes(), at, size))
        (data, at, size), (other, start, length) = places
        assert size == length
        path.write_bytes(data[:at] + other[start : start + size] + data[at + size :])
        found = [one.what for one in ps.index.verify(path).findings]
        assert found == ["1 of its 800 values are not in it"] * (hidden is not None)


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_a_list_that_is_far_too_short(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all that a column has is gathered to tell that a list lacks it; nothing, where the list says that it lacks some."""
    room = importlib.import_module("pageseek.index.kinds.distinct")
    monkeypatch.setattr(room, "BEYOND" if kind == "numbers" else "BEYOND_BYTES", 500)
    values = (
        pa.array(np.arange(2000))
        if kind == "numbers"
        else pa.array([f"{i:090d}" for i in range(2000)])
    )
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": values}), path)
    whole = path.read_bytes()
    for flags, said_ in ((1, ["it has many more values than the 1 listed"]), (0, [])):
        path.write_bytes(whole)
        with open_metadata(path) as file:
            leaf = file.schema_tree.find("x")
            chunks = fingerprint(file, leaf)
            one, ends = (
                (bytes(8), None) if kind == "numbers" else (b"0" * 90, np.array([0, 90], np.uint32))
            )
            made = Distinct(
                1, 0 if ends is not None else 8, one, ends, np.array([flags], np.uint8), None
            )
            body = framed(made.to_bytes(), chunks)
            pointer = Pointer(
                "distinct", 1, file.footer_start, len(body), leaf.path, *types_of(leaf), xxh64(body), chunks
            )  # fmt: skip
            put(path, file, whole[: file.footer_start] + body, Directory(4, (pointer,)))
        found = ps.index.verify(path)
        assert [one.what for one in found.findings] == said_, str(found)
        assert found.checked["distinct"] == 1


def test_lists_that_are_not_held_are_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The findings are the same; a list longer than any that `attach` writes is named."""
    path = tmp_path / "x.parquet"
    numbers = np.arange(3_000)
    pq.write_table(pa.table({"a": numbers % 7, "b": numbers % 11}), path, row_group_size=1_000)
    ps.index.attach(path, distinct=["a", "b"], in_place=True)
    room = sys.modules["pageseek.index.stored_indexes"]
    monkeypatch.setattr(room, "MAX_KEPT_BYTES", 150)
    with open_metadata(path) as file:
        found = directory(file)
        assert found is not None
        sizes = [one.length for one in found.pointers if one.kind == "distinct"]
    assert min(sizes) <= 150 < sum(sizes)
    said = ps.index.verify(path)
    assert said.ok and said.checked["distinct"] == 6
    monkeypatch.setattr(room, "MAX_PAYLOAD_BYTES", 50)
    said = ps.index.verify(path)
    assert [one.column for one in said.findings] == ["a", "b"]
    assert all("more than the 50" in one.what for one in said.findings)


def test_values_beyond_those_that_are_gathered_are_held_against_the_published_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some at a time: what is not listed is found wherever it comes."""
    path = tmp_path / "x.parquet"
    texts = [f"name-{i:04d}" for i in range(2_000)]
    pq.write_table(pa.table({"t": texts}), path, max_rows_per_page=100, write_batch_size=100)
    ps.index.attach(path, page_index=False, distinct_index="t", in_place=True)
    monkeypatch.setattr(sys.modules["pageseek.index.distinct_builder"], "BATCH", 100)
    builder = sys.modules["pageseek.index.distinct_builder"].DistinctBuilder
    monkeypatch.setattr(builder.__init__, "__defaults__", (300, 1 << 20, None))
    as_by_others(path)  # of its own no byte may be another
    assert ps.index.verify(path).ok
    whole = path.read_bytes()
    at = whole.rindex(b"IDX1")
    for lacks in ("name-0000", "name-1050", "name-1999"):
        path.write_bytes(
            whole[:at] + whole[at:].replace(lacks.encode(), b"gone-" + lacks[5:].encode(), 1)
        )
        (one,) = ps.index.verify(path).findings
        assert (
            one.kind == "distinct_index"
            and one.what.startswith("1 of its 2000 values")
            and lacks in one.what
        )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 9}, "version 9, which is not known"),
        ({"offset": 1 << 40}, "do not lie before the footer"),
        ({"physical": "INT96"}, "built for a column of INT96"),
        ({"leaf": ["gone"]}, "the file has no such column"),
        ({"xxh64": "x"}, "its entry is damaged"),
    ],
)
def test_entries_that_are_of_no_use_are_findings(
    whole: Path, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(whole.read_bytes())
    with open_metadata(path) as file:
        told = json.loads(file.key_value_metadata[KEY] or b"")
        entry = next(one for one in told["indexes"] if "leaf" in one)
        column = ".".join(change.get("leaf", entry["leaf"]))
        entry.update(change)
        rewrite(path, file, json.dumps(told).encode())
    (wrong,) = ps.index.verify(path).findings
    assert (wrong.kind, wrong.column) == ("distinct", column) and why in wrong.what


def test_a_directory_of_another_file_is_a_finding(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(whole.read_bytes())
    with open_metadata(path) as file:
        told = json.loads(file.key_value_metadata[KEY] or b"")
        rewrite(path, file, json.dumps(told | {"chunks": "5"}).encode())
    (wrong,) = ps.index.verify(path).findings
    assert wrong.kind == "embedded" and "the file was rewritten" in wrong.what
