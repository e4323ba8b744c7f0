"""Small row groups that advance together: rows, reports and errors are those of one thread that reads them one after the other."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import codecs as core
from pageseek._core.page_tasks import PARALLEL, PageWork
from pageseek.format import codecs
from pageseek.scanning.one_file import group_joints, lane
from pageseek.scanning.one_file import waves as waves_module
from pageseek.scanning.plans import tables
from support.local_reads import hook_local_reads

pytestmark = [
    pytest.mark.skipif(not PARALLEL, reason="the core has no threads on this system"),
    pytest.mark.usefixtures("scans"),
]
ROWS, GROUP = 9_000, 300
CONDITIONS = [
    None,
    ps.col("key").between(1_000, 5_000),
    ps.col("value") < 100,
    ps.col("text") == "text 4000",
    (ps.col("value") < 300) & ps.col("city").isin(["city 3", "city 4"]),
    ps.col("text").like("%77%"),
    ps.col("inside.a").is_null(),
    ps.col("city") == "nowhere",
]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waves are worth it for the fewest rows, and a helper for each page. Row groups are not joined, so that there are many."""
    monkeypatch.setattr(group_joints, "SMALL_ROWS", -1)
    monkeypatch.setattr(tables, "FEW_VALUES", 0)
    monkeypatch.setattr(waves_module, "WORTH_A_CORE", 1)


@pytest.fixture
def waves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of tasks each time that pages are decoded for a wave."""
    counts: list[int] = []

    class Counted(PageWork):
        def __init__(self, wanted: Any) -> None:
            super().__init__(wanted)
            counts.append(len(wanted))

    monkeypatch.setattr(waves_module, "PageWork", Counted)
    return counts


def table(first: int = 0, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(first + 3)
    nulls = rng.random(rows) < 0.3
    ids = np.arange(first, first + rows)
    return pa.table(
        {
            "key": ids,
            "value": pa.array(rng.integers(0, 9_000, rows), mask=nulls),
            "text": pa.array([f"text {i}" for i in ids], mask=nulls),
            "city": pa.array([f"city {i % 90}" for i in ids]),
            "inside": pa.array([None if i % 7 == 0 else {"a": i} for i in ids.tolist()]),
            "list": pa.array([list(range(i % 4)) for i in ids.tolist()]),
        }
    )


def folder(place: Path, compression: str = "zstd") -> Path:
    """Files of several row groups each, the last one without a page index."""
    for i in range(4):
        pq.write_table(
            table(i * ROWS // 4, ROWS // 4), place / f"{i}.parquet", row_group_size=GROUP,
            compression=compression, write_page_index=i < 3, use_dictionary=["city"],
        )  # fmt: skip
    return place


def report(source: Any, condition: Any, threads: int) -> dict[str, Any]:
    found: dict[str, Any] = (
        ps.scan(source, filter=condition, threads=threads).explain(analyze=True).to_dict()
    )
    del found["seconds"]
    return found


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "brotli"])
def test_rows_and_reports_are_those_of_one_thread(
    tmp_path: Path, waves: list[int], compression: str
) -> None:
    source = folder(tmp_path, compression)
    for condition in CONDITIONS:
        wanted, told = (
            ps.read_table(source, filter=condition, threads=1),
            report(source, condition, 1),
        )
        assert not waves
        for threads in (2, 3, 16):
            found = ps.read_table(source, filter=condition, threads=threads)
            found.validate(full=True)
            assert found.equals(wanted)
            assert report(source, condition, threads) == told
            batches = list(ps.scan(source, filter=condition, threads=threads).to_batches())
            assert pa.Table.from_batches(batches, wanted.schema).equals(wanted)
        assert waves or compression not in ("none", "snappy", "zstd") or not wanted.num_rows
        waves.clear()


def test_waves_hold_no_more_than_their_memory(
    tmp_path: Path, waves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder(tmp_path)
    ps.read_table(source, ["key"], threads=2)
    assert max(waves) == tables.WAVE_GROUPS * 2
    waves.clear()
    monkeypatch.setattr(tables, "WAVE_BYTES", 1)
    ps.read_table(source, ["key"], threads=2)
    assert max(waves) == 1
    waves.clear()
    ps.read_table(source, ["key"], threads=2, max_ahead_bytes=0)  # nothing may be ahead
    assert not waves


def test_codes_that_stand_for_long_strings_make_waves_small(
    tmp_path: Path, waves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.parquet"
    texts = pa.array([f"{i % 3}" * 5_000 for i in range(40 * 100)])
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100)
    monkeypatch.setattr(tables, "WAVE_BYTES", 1 << 17)
    wanted = ps.read_table(path, threads=1)
    assert ps.read_table(path, threads=2).equals(wanted)
    assert max(waves) == 2  # the footer alone would allow 8
    assert waves[-1] == 1


@pytest.fixture
def no_libraries() -> Iterator[None]:
    """As on a system without zlib and libbrotlidec."""
    core.use_zlib(None)
    core.use_brotli(None)
    yield
    core.use_zlib(codecs.ZLIB)
    core.use_brotli(codecs.LIBBROTLI)


@pytest.mark.parametrize("what", ["gzip", "brotli", "lists", "dictionaries"])
def test_what_the_core_does_not_decode_by_itself_is_left_to_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_libraries: None, what: str
) -> None:
    def none(*_: Any) -> None:
        raise AssertionError("one thread decodes it")

    path = tmp_path / "other.parquet"
    found = table().select(["key", "text"] if what in ("gzip", "brotli") else ["list"])
    if what == "dictionaries":
        found = pa.table({"city": table()["city"].dictionary_encode()})
    compression = what if what in ("gzip", "brotli") else "none"
    pq.write_table(found, path, row_group_size=GROUP, compression=compression, max_rows_per_page=50)
    monkeypatch.setattr(tables, "GROUP_VALUES", 0)
    monkeypatch.setattr(waves_module, "in_waves", none)
    wanted = ps.read_table(path, threads=1)
    assert ps.read_table(path, threads=2).equals(wanted)


@pytest.mark.parametrize("codec", ["gzip", "brotli"])
def test_codecs_with_a_library_go_in_waves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waves: list[int], codec: str
) -> None:
    if (codecs.ZLIB if codec == "gzip" else codecs.LIBBROTLI) is None:
        pytest.skip("this system has no library")
    path = tmp_path / "packed.parquet"
    found = table().select(["key", "text"])
    pq.write_table(found, path, row_group_size=GROUP, compression=codec, max_rows_per_page=50)
    monkeypatch.setattr(tables, "GROUP_VALUES", 0)
    assert ps.read_table(path, threads=2).equals(found)
    assert waves


def test_a_fault_is_raised_after_the_rows_before_it(tmp_path: Path, waves: list[int]) -> None:
    source = folder(tmp_path)
    path = source / "1.parquet"
    index = ps.open(path).offset_index(5, "text")
    assert index is not None
    data = bytearray(path.read_bytes())
    data[int(index.offset[0] + index.compressed_size[0]) - 5] ^= 0x55
    path.write_bytes(data)
    told = []
    for threads in (1, 2):
        batches, seen = ps.scan(source, threads=threads).to_batches(), []
        with pytest.raises(
            ps.CorruptFileError, match=r"1\.parquet.*column 'text', row group 5"
        ) as caught:
            seen.extend(batch.num_rows for batch in batches)
        told.append((sum(seen), str(caught.value)))
    assert told[0] == told[1]
    assert told[0][0] == ROWS // 4 + 5 * GROUP
    assert waves


def test_bytes_of_another_version_are_not_called_corrupt(
    tmp_path: Path, waves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder(tmp_path) / "0.parquet"
    index = ps.open(path).offset_index(0, "key")
    assert index is not None
    at = int(index.offset[0])
    data = bytearray(path.read_bytes())
    data[at : at + 20] = b"\xff" * 20
    path.write_bytes(data)

    def changing(_: object, ranges: Sequence[tuple[int, int]]) -> None:
        if any(start <= at < start + length for start, length in ranges):
            os.utime(path, ns=(1, 1))

    for threads in (1, 2):
        with pytest.raises(ps.CorruptFileError):
            ps.read_table(path, threads=threads)
    hook_local_reads(monkeypatch, changing)
    for threads in (1, 2):
        os.utime(path)
        with pytest.raises(ps.FileChangedError):
            ps.read_table(path, threads=threads)
    assert waves


def test_a_file_that_is_gone_is_named_after_the_rows_before_it(tmp_path: Path) -> None:
    source = folder(tmp_path)
    plan = ps.scan(source, threads=2).plan()
    (source / "2.parquet").unlink()
    batches, seen = plan.execute(), []
    with pytest.raises(OSError, match=r"2\.parquet"):
        seen.extend(batch.num_rows for batch in batches)
    assert sum(seen) == ROWS // 2


def test_a_scan_that_is_given_up_leaves_nothing_behind(tmp_path: Path, waves: list[int]) -> None:
    source = folder(tmp_path)
    before = pa.total_allocated_bytes()
    for _ in range(20):
        batches = ps.scan(source, threads=3).to_batches()
        next(batches)
        batches.close()  # type: ignore[attr-defined]
        del batches
    gc.collect()
    assert waves
    assert pa.total_allocated_bytes() == before
    shutil.rmtree(source)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_goes_on_with_a_scan(tmp_path: Path, waves: list[int]) -> None:
    """The threads that decode are not forked. The child reads their pages again."""
    source = folder(tmp_path)
    wanted = ps.read_table(source, threads=1)
    batches = ps.scan(source, threads=2).to_batches()
    parts = [next(batches)]
    child = os.fork()
    if child == 0:
        try:
            found = pa.Table.from_batches([*parts, *batches])
            os._exit(0 if found.equals(wanted) else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    parts += batches
    assert pa.Table.from_batches(parts).equals(wanted)


def test_work_is_begun_and_taken_once() -> None:
    work = PageWork([])
    assert work.results() == []
    with pytest.raises(ValueError, match="were taken"):
        work.results()
    with pytest.raises(ValueError, match="begins once"):
        work.begin(1)
    with pytest.raises(TypeError, match="a LeafDecoder is wanted"):
        PageWork([(None, [], b"", 0, None, False)])


def test_pages_are_decoded_by_one_call_for_several_row_groups(
    tmp_path: Path, waves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise AssertionError("a row group was decoded by itself")

    monkeypatch.setattr(lane, "read_pages", none)
    found = ps.read_table(folder(tmp_path), ["key", "value"], CONDITIONS[2], threads=2)
    assert found.num_rows
    assert max(waves) > 4


def test_the_wave_that_is_behind_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is decoded, the steps of the other run: they do not end together."""
    events: list[str] = []

    class Fake:
        def __init__(self, members: str, threads: int) -> None:
            self.members, self.advance = members, 0

        @property
        def done(self) -> bool:
            return self.advance == 2

        def begin(self) -> None:
            events.append(self.members)

        def go_on(self) -> None:
            self.advance += 1
            events.append(f"{self.members}{self.advance}")

    monkeypatch.setattr(waves_module, "Wave", Fake)
    given: Any = iter("abcd")
    for made in waves_module.in_waves(given, 2):
        events.append(f"{made}!")
    assert " ".join(events) == "a b a1 b1 a2 a! c c1 b2 b! d d1 c2 c! d2 d!"
