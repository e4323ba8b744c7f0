"""The pages of one leaf, decoded in several segments by several threads: rows, reports and errors are those of one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.leaves import leaf_reader, segments
from pageseek.scanning.one_file import lane

pytestmark = pytest.mark.usefixtures("scans")

ROWS = 12_000
CONDITIONS = [
    None,
    ps.col("key").between(450, 7_600),
    ps.col("key").isin([3, 700, 701, 4_000, 5_999]),
    ps.col("city") == "city 7",
    ps.col("text").is_null(),
    (ps.col("value") > 1 << 39) & (ps.col("text") > "text 5"),
    ps.col("inside.a") > 5_000,
]
RANGE = 1
ALL_ROWS_AND_RANGE = 0, RANGE  # these take several whole pages of each column


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks each call of the core had. Every page is worth a thread."""
    monkeypatch.setattr(segments, "SEGMENT_COST", 1)
    counts: list[int] = []
    read = lane.read_pages

    def counted(tasks: list[Any], threads: int) -> list[Any]:
        counts.append(len(tasks))
        return read(tasks, threads)

    monkeypatch.setattr(lane, "read_pages", counted)
    return counts


def made(index: bool = True, **how: Any) -> bytes:
    rng = np.random.default_rng(3)
    nulls = rng.random(ROWS) < 0.3
    table = pa.table(
        {
            "key": np.arange(ROWS),
            "value": pa.array(rng.integers(0, 1 << 40, ROWS), mask=nulls),
            "text": pa.array([f"text {i} é" for i in range(ROWS)], mask=nulls),
            "city": pa.array([f"city {i % 90}" for i in range(ROWS)]),
            "late": pa.array([f"{i % 5_000}" for i in range(ROWS)]),
            "inside": pa.array([None if i % 7 == 0 else {"a": i} for i in range(ROWS)]),
            "list": pa.array([list(range(i % 4)) for i in range(ROWS)]),
        }
    )
    out = pa.BufferOutputStream()
    pq.write_table(
        table, out, use_dictionary=["city", "late"], max_rows_per_page=500, write_page_index=index,
        write_batch_size=250, dictionary_pagesize_limit=20_000, write_page_checksum=True, **how,
    )  # fmt: skip
    return bytes(out.getvalue().to_pybytes())


def report(data: bytes, condition: Any, threads: int) -> dict[str, Any]:
    found: dict[str, Any] = (
        ps.scan(data, filter=condition, threads=threads).explain(analyze=True).to_dict()
    )
    del found["seconds"]
    return found


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "lz4"])
def test_rows_and_reports_are_those_of_one_thread(
    tasks: list[int], compression: str, version: str, index: bool
) -> None:
    """Without an index, and where all rows are read, page headers tell where pages are."""
    data = made(index, compression=compression, data_page_version=version)
    for i, condition in enumerate(CONDITIONS):
        tasks.clear()
        wanted, told = ps.read_table(data, filter=condition, threads=1), report(data, condition, 1)
        leaves = max(tasks)
        for threads in (2, 3, 64):
            tasks.clear()
            found = ps.read_table(data, filter=condition, threads=threads)
            found.validate(full=True)
            assert found.equals(wanted)
            assert max(tasks) > leaves or i not in ALL_ROWS_AND_RANGE
            assert report(data, condition, threads) == told


def test_a_page_with_a_fault_is_named_as_by_one_thread(tasks: list[int]) -> None:
    data = bytearray(made(compression="zstd"))
    index = ps.open(bytes(data)).offset_index(0, "value")
    assert index is not None
    data[int(index.offset[13] + index.compressed_size[13]) - 9] ^= 0x55
    errors = []
    for threads in (1, 3):
        with pytest.raises(
            ps.CorruptFileError, match=r"column 'value', .*page 13 at byte"
        ) as caught:
            ps.read_table(bytes(data), ["value"], CONDITIONS[RANGE], threads=threads)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert max(tasks) == 3  # segments of that leaf


def test_a_page_of_a_whole_chunk_with_a_fault_is_named_as_by_one_thread(tasks: list[int]) -> None:
    data = bytearray(made(compression="zstd"))
    index = ps.open(bytes(data)).offset_index(0, "value")
    assert index is not None
    for place in (9, int(index.compressed_size[13]) - 2):  # in its body, in its header
        broken = bytearray(data)
        broken[int(index.offset[13] + index.compressed_size[13]) - place] ^= 0x55
        errors = []
        for threads in (1, 3):
            with pytest.raises(
                ps.CorruptFileError, match=r"column 'value', .*page 13 at byte"
            ) as caught:
                ps.read_table(bytes(broken), ["value"], threads=threads)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("sizes", "n", "stops"),
    [
        ([5, 5, 5, 5], 2, [2, 4]),
        ([100, 1, 1], 3, [1, 2, 3]),
        ([1, 1, 100], 2, [2, 3]),
        ([1, 1, 100], 3, [1, 2, 3]),
        ([0, 0, 0, 0], 3, [1, 2, 4]),
        ([3], 1, [1]),
    ],
)
def test_segments_are_of_about_equal_size(sizes: list[int], n: int, stops: list[int]) -> None:
    found = segments.stops_of(sizes, n)
    assert len(found) == n
    assert found[-1] == len(sizes)
    assert all(a < b for a, b in zip([0, *found], found, strict=False))
    assert found == stops or sum(sizes) == 0


@pytest.mark.parametrize("string_type", ["string", "view"])
def test_rows_that_are_left_may_all_lie_in_the_last_segment(
    tasks: list[int], string_type: str
) -> None:
    """The segments before it then have arrays without rows."""
    data = made()
    condition = (ps.col("text") >= "text 9990") & (ps.col("text") < "text 9995")
    condition &= (ps.col("key") > 9_000) & (ps.col("key") < 9_994)
    options: dict[str, Any] = {"filter": condition, "string_type": string_type, "prune": False}
    wanted = ps.read_table(data, threads=1, **options)
    assert wanted.num_rows
    for threads in (2, 3, 64):
        for _ in range(3):  # the order of conditions is learned
            assert ps.read_table(data, threads=threads, **options).equals(wanted)


def test_a_segment_costs_more_than_what_each_does_again() -> None:
    """A large dictionary, unpacked for each segment, leaves few."""
    unit = segments.SEGMENT_COST
    assert segments.count_segments(unit * 8, 16) == 8
    assert segments.count_segments(unit * 8, 4) == 4
    assert segments.count_segments(unit * 8, 16, again=unit * 4) == 2
    assert segments.count_segments(unit * 8, 16, again=unit * 9) == 0


def test_only_pages_that_are_read_are_worth_segments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a chunk without a page index all bytes are fetched, and few of its pages may have rows that pass."""
    rng, counts = np.random.default_rng(2), list[int]()
    table = pa.table({"key": np.arange(20_000), "text": [rng.bytes(60) for _ in range(20_000)]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, use_dictionary=False, data_page_size=10_000, compression="none")
    monkeypatch.setattr(segments, "SEGMENT_COST", 100_000)
    really = leaf_reader.segments_of

    def counted(pages: Any, ranges: Any, n: int) -> Any:
        counts.append(n)
        return really(pages, ranges, n)

    monkeypatch.setattr(leaf_reader, "segments_of", counted)
    few = ps.read_table(
        path,
        columns=["text"],
        filter=ps.col("key").between(700, 760),
        threads=2,
        prune=["statistics"],
    )
    assert few.num_rows == 61
    assert max(counts, default=0) < 2
    ps.read_table(path, columns=["text"], filter=ps.col("key") > 60, threads=2)
    assert max(counts) == 2
