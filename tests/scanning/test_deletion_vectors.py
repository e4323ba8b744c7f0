"""Deletion vectors: their bitmaps against those of another library, broken ones, and rows of files without those deleted."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pageseek as ps
from pageseek.datasets.deletes import DeletionVector
from pageseek.scanning.deletes import deletion_vectors as vectors
from pageseek.storage import Source

HEAD = struct.pack("<I", vectors.MAGIC)


def numbers_of(data: bytes) -> list[int]:
    pairs = vectors.bitmap_rows(data)
    assert (pairs[1:, 0] > pairs[:-1, 1]).all()
    return [number for first, stop in pairs.tolist() for number in range(first, stop)]


def by_hand(numbers: Iterable[int]) -> bytes:
    """A bitmap of arrays alone."""
    high: dict[int, dict[int, list[int]]] = {}
    for number in sorted(set(numbers)):
        high.setdefault(number >> 32, {}).setdefault((number >> 16) & 0xFFFF, []).append(
            number & 0xFFFF
        )
    made = HEAD + struct.pack("<Q", len(high))
    for key, containers in high.items():
        bodies = [np.array(values, "<u2").tobytes() for values in containers.values()]
        head = struct.pack("<II", 12346, len(containers))
        for below, values in containers.items():
            head += struct.pack("<HH", below, len(values) - 1)
        at = len(head) + 4 * len(containers)
        for body in bodies:
            head += struct.pack("<I", at)
            at += len(body)
        made += struct.pack("<I", key) + head + b"".join(bodies)
    return made


runs = st.lists(st.tuples(st.integers(0, 5 << 32), st.integers(1, 70_000)), max_size=6).map(
    lambda found: {n for first, size in found for n in range(first, first + size)}
)
scattered = st.sets(st.integers(0, 1 << 18), max_size=300)


@given(st.one_of(runs, scattered), st.booleans())
@example(set(range(65_536)), True)
@example(set(range(0, 20_000, 2)), False)
def test_bitmaps_of_another_library(numbers: set[int], optimized: bool) -> None:
    pyroaring = pytest.importorskip("pyroaring")
    bitmap = pyroaring.BitMap64(numbers)
    if optimized:
        bitmap.run_optimize()
    assert numbers_of(HEAD + bitmap.serialize()) == sorted(numbers)


@given(scattered)
def test_bitmaps_by_hand(numbers: set[int]) -> None:
    assert numbers_of(by_hand(numbers)) == sorted(numbers)


def test_broken_bitmaps_are_errors_of_their_own() -> None:
    """Each byte changed, and each length: an error, or another bitmap in order."""
    pyroaring = pytest.importorskip("pyroaring")
    bitmap = pyroaring.BitMap64(
        [*range(100, 200), 5, 70_000, 1 << 33, *range(1 << 17, (1 << 17) + 9)]
    )
    bitmap.run_optimize()
    whole = HEAD + bitmap.serialize()
    refused = 0
    changed = [whole[:n] for n in range(len(whole))] + [whole + b"\0"]
    for i in range(len(whole)):
        for mask in (1, 0x80, 0xFF):
            changed.append(whole[:i] + bytes([whole[i] ^ mask]) + whole[i + 1 :])
    for data in changed:
        try:
            numbers_of(data)
        except vectors._BrokenError:
            refused += 1
    assert refused > len(whole) * 2


def framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


@pytest.fixture
def table(tmp_path: Path) -> str:
    n = 10_000
    made = pa.table(
        {"id": range(n), "k": [i % 7 for i in range(n)], "s": [f"x{i % 100}" for i in range(n)]}
    )
    pq.write_table(
        made, tmp_path / "f.parquet", row_group_size=3000, write_page_index=True, data_page_size=2000,
        max_rows_per_page=500,
    )  # fmt: skip
    return str(tmp_path / "f.parquet")


def deleting(path: str, numbers: Iterable[int], **changes: object) -> ps.Scan:
    """A scan of a file whose table has deleted rows."""
    numbers = sorted(numbers)
    data = by_hand(numbers)
    said = {
        "source": None,
        "offset": 0,
        "length": len(data),
        "data": data,
        "num_rows": len(numbers),
    }
    return ps.scan(Source(path, deletes=(DeletionVector(**(said | changes)),)))  # type: ignore[arg-type]


DELETED = [*range(3000), *range(3500, 4100), 5000, 7001, 9999]


@pytest.mark.parametrize(
    "condition", [None, "k = 3", "id >= 2990 and id < 5010", "s = 'x1' and id > 6000", "id = 5000"]
)
def test_rows_are_those_of_the_file_without_the_deleted(table: str, condition: str | None) -> None:
    scan = deleting(table, DELETED)
    whole = ps.scan(table)
    if condition is not None:
        scan, whole = scan.filter(condition), whole.filter(condition)
    gone = set(DELETED)
    expected = [row for row in whole.to_table().to_pylist() if row["id"] not in gone]
    assert scan.to_table().to_pylist() == expected
    assert scan.count_rows() == len(expected)
    assert scan.limit(3).to_table().to_pylist() == expected[:3]
    numbered = scan.with_row_number("row").to_table()
    assert numbered["row"].to_pylist() == numbered["id"].to_pylist()
    assert scan.take(range(2995, 3505)).to_table().to_pylist() == [
        row for row in expected if 2995 <= row["id"] < 3505
    ]
    ids = [row["id"] for row in expected]
    assert scan.aggregate(["count", ("id", "min"), ("id", "max")]).to_pylist() == [
        {"count": len(ids), "id_min": min(ids, default=None), "id_max": max(ids, default=None)}
    ]
    assert pa.Table.from_batches(scan.plan().execute(), scan.schema).to_pylist() == expected


def test_pages_of_deleted_rows_are_not_read(table: str) -> None:
    found = deleting(table, DELETED).filter("id < 4500").explain(analyze=True).to_dict()
    assert found["row_groups"]["pruned_by"]["deleted"] == 1
    assert found["rows"]["pruned_by"]["deleted"] >= 3600
    assert deleting(table, DELETED).filter("id < 2000").count_rows() == 0


def test_a_vector_in_a_file_is_compared_with_its_frame(table: str, tmp_path: Path) -> None:
    numbers = [1, 2, 5000]
    data = by_hand(numbers)
    file = tmp_path / "v.bin"
    file.write_bytes(b"\1" + framed(data))
    named = {"source": Source(str(file)), "offset": 1, "data": None}
    assert deleting(table, numbers, **named).count_rows() == 9997
    whole = file.read_bytes()
    for i in range(1, len(whole)):
        other = tmp_path / f"v{i}.bin"
        other.write_bytes(whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :])
        named["source"] = Source(str(other))
        with pytest.raises(ps.CorruptFileError, match=rf"v{i}.bin at byte 1: "):
            deleting(table, numbers, **named).count_rows()
    file = tmp_path / "short.bin"
    file.write_bytes(whole[:-1])
    named["source"] = Source(str(file))
    with pytest.raises(ps.CorruptFileError, match="the file ends before it"):
        deleting(table, numbers, **named).count_rows()


def test_vectors_that_do_not_fit(table: str) -> None:
    with pytest.raises(ps.CorruptFileError, match="deletes row 10000, and the file has 10000"):
        deleting(table, [3, 10_000]).count_rows()
    with pytest.raises(ps.CorruptFileError, match="it deletes 2 rows, and 3 by the log"):
        deleting(table, [3, 4], num_rows=3).count_rows()
    with pytest.raises(ps.CorruptFileError, match="says that it has 0 bytes"):
        deleting(table, [3, 4], length=0).count_rows()


def test_nothing_is_read_of_a_vector_whose_file_is_ruled_out(table: str, tmp_path: Path) -> None:
    named = {"source": Source(str(tmp_path / "missing.bin")), "data": None}
    scan = deleting(table, [1], **named)
    assert scan.filter("id > 20000").count_rows() == 0
    with pytest.raises(FileNotFoundError):
        scan.filter("id > 20").count_rows()
