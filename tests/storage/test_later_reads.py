"""Bytes of local files that are read by the thread that needs them first."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import file_bytes
from pageseek._core.file_bytes import FileBytes
from pageseek._core.page_tasks import read_pages
from pageseek.base.report import Report
from pageseek.io.fetch import Fetcher
from pageseek.scanning.leaves.leaf_reader import LeafReader
from pageseek.storage import local
from pageseek.storage.local import LocalStore

pytestmark = [
    pytest.mark.skipif(not file_bytes.AVAILABLE, reason="no positioned reads here"),
    pytest.mark.usefixtures("scans"),
]

SIZE = 1 << 18
CODECS = ["none", "snappy", "zstd", "gzip", "lz4"]
CONDITIONS = [None, ps.col("id") > 5_000, ps.col("code") == 7, ps.col("text") == "text 9", ps.col("tags").is_null()]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "bytes"
    file.write_bytes(np.random.default_rng(1).bytes(SIZE))
    return str(file)


def open_descriptors(path: str) -> int:
    """How many descriptors of this process are open on a file."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}") == path
        except OSError:  # that of the listing itself
            continue
    return count


def test_small_reads_are_done_at_once_and_large_ones_later(path: str) -> None:
    data, store = Path(path).read_bytes(), LocalStore(path)
    small, large = store.read_later([(7, local.LATER - 1), (100, local.LATER)])
    assert isinstance(small, bytes)
    assert isinstance(large, FileBytes)
    assert large.nbytes == len(large) == local.LATER
    os.pwrite(fd := os.open(path, os.O_WRONLY), b"new", 100)  # the file is read after this
    os.close(fd)
    assert bytes(small) == data[7 : 7 + local.LATER - 1]
    assert bytes(large) == b"new" + data[103 : 100 + local.LATER]


def test_slices_are_those_of_the_bytes(path: str) -> None:
    data, store = Path(path).read_bytes(), LocalStore(path)
    (whole,) = store.read_later([(1000, 100_000)])
    assert isinstance(whole, FileBytes)
    wanted = data[1000:101_000]
    first, last, none = whole[:70_000], whole[-30_000:][10:], whole[9:3]
    assert bytes(last) == wanted[-30_000:][10:]
    assert bytes(none) == b""
    assert bytes(whole) == wanted  # a part of it was read before
    assert bytes(first[1:5]) == bytes(whole[1:5]) == wanted[1:5]
    assert memoryview(whole).readonly
    for wrong, error in ((3, TypeError), (slice(0, 9, 2), ValueError)):
        with pytest.raises(error):
            whole[wrong]  # type: ignore[index]


def test_what_is_read_once_stays(path: str) -> None:
    data, store = Path(path).read_bytes(), LocalStore(path)
    (whole,) = store.read_later([(0, SIZE)])
    part = whole[:100]
    assert bytes(whole) == data
    Path(path).write_bytes(b"")
    assert bytes(whole) == data
    assert bytes(whole[5:50]) == data[5:50]
    with pytest.raises(ps.FileChangedError, match="changed while it was being read"):
        bytes(part)


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors as Linux shows them")
def test_the_descriptor_is_kept_while_bytes_are_unread(path: str) -> None:
    data, store = Path(path).read_bytes(), LocalStore(path)
    (whole,) = store.read_later([(0, SIZE)])
    part = whole[100:200]
    del whole
    store.close()
    assert open_descriptors(path) == 1
    assert bytes(part) == data[100:200]
    del part
    assert open_descriptors(path) == 0


@pytest.mark.parametrize("at_once", [[(0, 50_000), (0, 50_000)], [(0, 50_000), (40_000, 60_000)]])
def test_ranges_that_overlap_have_the_same_bytes(path: str, at_once: Any) -> None:
    data, store = Path(path).read_bytes(), LocalStore(path)
    fetched = Fetcher(store, Report()).read(at_once, "data", later=True)
    assert all(isinstance(part, memoryview) for part in fetched)  # as two threads may not read them
    assert [bytes(part) for part in fetched] == [data[at : at + n] for at, n in at_once]
    apart = Fetcher(store, Report()).read([(50_000, 50_000), (0, 50_000)], "data", later=True)
    assert all(isinstance(part, FileBytes) for part in apart)
    assert [bytes(part) for part in apart] == [data[50_000:100_000], data[:50_000]]


def test_no_memory_for_it_is_an_error_with_the_place(path: str, monkeypatch: Any) -> None:
    store = LocalStore(path)
    with pytest.raises(ps.LimitError, match=rf"{path}: {1 << 62} bytes at 7: no memory"):
        store.read_later([(7, 1 << 62)])


def table(n: int = 30_000) -> pa.Table:
    random = np.random.default_rng(3)
    codes = random.integers(0, 50, n)
    tags = [None if i % 11 == 0 else [f"tag {i % 7}"] * (i % 4) for i in range(n)]
    return pa.table(
        {
            "id": np.arange(n), "code": codes, "text": [f"text {code}" for code in codes],
            "value": pa.array(random.normal(size=n), mask=random.random(n) < 0.1),
            "flag": random.random(n) < 0.5, "long": [f"{i:050}" for i in range(n)], "tags": tags,
        }
    )  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("page_index", [True, False])
def test_answers_are_those_of_reads_at_once(
    codec: str, page_index: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.parquet"
    pq.write_table(
        table(),
        path,
        row_group_size=7_000,
        data_page_size=9_000,
        compression=codec,
        write_page_index=page_index,
    )
    for condition in CONDITIONS:
        for threads in (1, 2, 3):
            for later in (1, 1 << 62):
                monkeypatch.setattr(local, "LATER", later)
                found = ps.read_table(path, filter=condition, threads=threads)
                if later == 1:
                    wanted = found
            assert found.equals(wanted), (condition, threads)
            assert len(found) or condition is not None


def test_no_two_readers_are_given_the_same_unread_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads would read them into one place."""
    monkeypatch.setattr(local, "LATER", 1)
    path, given = tmp_path / "some.parquet", list[Any]()
    structs = [None if i % 5 == 0 else {"x": i % 9} for i in range(20_000)]
    lists = [None if i % 7 == 0 else [i % 9] * (i % 3) for i in range(20_000)]
    made = pa.table({"s": structs, "tags": lists, "id": range(20_000)})
    pq.write_table(made, path, row_group_size=9_000, data_page_size=9_000, use_dictionary=False)
    give = LeafReader.give

    def noted(reader: LeafReader, buffers: list[Any], fetched: int) -> None:
        given.extend(buffers)
        give(reader, buffers, fetched)

    monkeypatch.setattr(LeafReader, "give", noted)
    for condition in ("s is null or s.x = 5", "tags is null or id < 50", "s is null and id > 7"):
        for columns in (["id"], ["id", "s", "tags"]):
            given.clear()
            ps.read_table(path, columns, filter=condition, threads=2)
            later = [id(one) for one in given if isinstance(one, FileBytes)]
            assert given
            assert len(later) == len(set(later)), condition


def test_bytes_of_no_file_are_refused() -> None:
    nothing = FileBytes.__new__(FileBytes)
    decoder = ps.LeafDecoder((1, 0, 3, 0, 0, 0, 0), 0, 0)  # of int32
    with pytest.raises(ValueError, match="no place in a file"):
        bytes(nothing)
    with pytest.raises(ValueError, match="no place in a file"):
        read_pages([(decoder, [(nothing, 0, 1)], ps.RowRanges.all(1).buffers, 0, None, False)])  # type: ignore[list-item]


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors as Linux shows them")
def test_a_scan_that_is_given_up_lets_go_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "LATER", 1)
    path = tmp_path / "some.parquet"
    pq.write_table(table(), path, row_group_size=2_000)
    for _ in range(20):
        batches = ps.scan(path, threads=2).to_batches()
        next(batches)
        del batches  # which closes it
    ps.clear_cache()
    assert open_descriptors(str(path)) == 0
