"""Pages of several columns are decoded by one call; rows, reports and errors equal those of decoding them one by one."""

from __future__ import annotations

import resource
from datetime import datetime
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core.decode import TAKE_DICTIONARY, LeafDecoder
from pageseek._core.memory import trim
from pageseek._core.page_tasks import read_pages
from pageseek.base.workers import WorkerPool
from pageseek.format import codecs
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.fetch import Fetcher
from pageseek.scanning.leaves import page_batch
from pageseek.scanning.leaves import page_batch as ahead
from pageseek.scanning.leaves.leaf_reader import LeafReader
from pageseek.scanning.one_file import lane
from support.opened import open_metadata
from support.writer import INT32, Column, write

pytestmark = pytest.mark.usefixtures("scans")

ROWS = 6_000


def make(
    compression: str, version: str, page_rows: int = 500, index: bool = True
) -> tuple[pa.Table, bytes]:
    rng = np.random.default_rng(3)
    nulls = rng.random(ROWS) < 0.3
    table = pa.table(
        {
            "key": np.arange(ROWS),
            "value": pa.array(rng.integers(0, 1 << 40, ROWS), mask=nulls),
            "text": pa.array([f"text {i} é" for i in range(ROWS)], mask=nulls),
            "city": pa.array([f"city {i % 90}" for i in range(ROWS)]),
            "inside": pa.array([None if i % 7 == 0 else {"a": i} for i in range(ROWS)]),
            "list": pa.array([list(range(i % 4)) for i in range(ROWS)]),
        }
    )
    out = pa.BufferOutputStream()
    pq.write_table(
        table, out, compression=compression, use_dictionary=["city"], max_rows_per_page=page_rows,
        write_page_index=index, data_page_version=version, write_page_checksum=True,
    )  # fmt: skip
    return table, bytes(out.getvalue().to_pybytes())


want = LeafReader.want


def page_by_page(reader: LeafReader, ranges: ps.RowRanges) -> list[tuple[int, int]]:
    """`LeafReader.want` for a reader that decodes each page by itself."""
    places = want(reader, ranges)
    reader.native = False
    return places


CONDITIONS = [
    *[ps.col("key") == row for row in (0, 499, 500, 3_333, ROWS - 1)],
    None,
    ps.col("key").between(450, 2_600),  # in five pages
    ps.col("key").isin([3, 700, 701, 4_000, 5_999]),
    ps.col("city") == "city 7",
    ps.col("text").is_null(),
    ps.col("inside.a") > 5_000,
]


@pytest.mark.parametrize("index", [True, False], ids=["page index", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
def test_rows_are_the_same_by_one_call_or_page_by_page(
    compression: str, version: str, index: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, data = make(compression, version, index=index)
    assert ps.read_table(data).equals(table)
    for condition in CONDITIONS:
        found = ps.read_table(data, filter=condition)
        found.validate(full=True)
        sooner = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
        with monkeypatch.context() as patch:
            patch.setattr(LeafReader, "want", page_by_page)
            assert ps.read_table(data, filter=condition).equals(found)
            later = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
        sooner.pop("seconds"), later.pop("seconds")
        assert sooner == later


def test_pages_of_plain_values_behind_those_of_a_dictionary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dictionary grows too large on the way, as writers see it."""
    n = 60_000
    texts = [f"text {i % 7_000}" for i in range(n)]
    out = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"key": np.arange(n), "text": texts}), out, max_rows_per_page=2_000, write_page_index=True,
        dictionary_pagesize_limit=50_000, write_batch_size=500, use_dictionary=["text"], compression="zstd",
    )  # fmt: skip
    data = bytes(out.getvalue().to_pybytes())
    for start in (0, 1_000, 5_500, 30_000):
        condition = ps.col("key").between(start, start + 9_000)
        found = ps.read_table(data, ["text"], filter=condition)
        assert found["text"].to_pylist() == texts[start : start + 9_001]
        with monkeypatch.context() as patch:
            patch.setattr(LeafReader, "want", page_by_page)
            assert ps.read_table(data, ["text"], filter=condition).equals(found)
    assert ps.read_table(data)["text"].to_pylist() == texts


@pytest.mark.parametrize("encodings", list(product(("plain", "dictionary", "delta"), repeat=3)))
def test_pages_of_every_order_of_encodings(encodings: tuple[str, ...]) -> None:
    """A page that needs the dictionary may come behind some that do not."""
    n = 12
    values = [None if i == 7 else i * 3 % 5 for i in range(n)]
    columns = [
        Column("key", INT32, list(range(n)), pages=[4, 4, 4], encodings="plain"),
        Column("value", INT32, values, pages=[4, 4, 4], encodings=list(encodings)),
    ]
    data = write(columns)
    for start, stop in combinations(range(n + 1), 2):
        found = ps.read_table(data, ["value"], filter=ps.col("key").between(start, stop - 1))
        assert found["value"].to_pylist() == values[start:stop]


@pytest.mark.parametrize("column", ["value", "text", "city", "inside.a", "list.list.element"])
def test_damage_is_told_with_its_place(column: str) -> None:
    _, data = make("zstd", "1.0")
    offsets = open_metadata(data).offset_index(0, column)
    assert offsets is not None
    at = int(offsets.offset[4]) + int(offsets.compressed_size[4]) - 5
    bad = data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]
    message = f"column '{column}', row group 0, page 4 at byte {int(offsets.offset[4])}: .*checksum"
    with pytest.raises(ps.CorruptFileError, match=message):
        ps.read_table(bad, filter=ps.col("key") == 2_100)


def test_damage_of_a_dictionary_is_told_as_that() -> None:
    _, data = make("zstd", "1.0")
    offsets = open_metadata(data).offset_index(0, "city")
    assert offsets is not None
    at = offsets.start - 5
    bad = data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]
    with pytest.raises(ps.CorruptFileError, match=r"column 'city', row group 0, dictionary page"):
        ps.read_table(bad, filter=ps.col("key") == 2_100)


def test_of_a_page_of_codes_without_its_dictionary_nothing_is_given() -> None:
    table, data = make("none", "1.0")
    offsets = open_metadata(data).offset_index(0, "city")
    assert offsets is not None
    at, size = int(offsets.offset[2]), int(offsets.compressed_size[2])
    page, ranges = data[at : at + size], np.array([1_000, 1_001], np.int64).tobytes()
    first = data.index(b"PAR1") + 4
    start = next(
        open_metadata(data).chunk(0, leaf).dictionary_page_offset
        for leaf in open_metadata(data).leaves
        if leaf.name == "city"
    )
    assert start >= first

    def decoder() -> LeafDecoder:
        return LeafDecoder((6, 0, 14, 0, 0, 1, 0), 1, 0)

    dictionary = data[start : offsets.start]
    tasks = [
        (decoder(), [(page, 1_000, 500)], ranges, 0, None, False),
        (decoder(), [(page, 1_000, 499)], ranges, 0, dictionary, False),
        (decoder(), [(page, 1_000, 500)], ranges, 0, dictionary + b"more", False),
        (decoder(), [(dictionary + page, 1_000, 500)], ranges, 0, None, False),
        (decoder(), [(dictionary + page, 1_000, 500)], ranges, 0, None, True),
        (decoder(), [(page, 1_000, 500)], ranges, 0, dictionary, False),
    ]
    wanting, other, more, whole, chunk, made = read_pages(tasks)
    assert (wanting, other, more, whole) == (TAKE_DICTIONARY, None, None, None)
    assert isinstance(chunk, tuple)
    assert bytes(chunk[4]) == table["city"][1_000].as_py().encode()
    assert isinstance(made, tuple)
    assert bytes(made[4]) == table["city"][1_000].as_py().encode()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("told", [True, False], ids=["one page", "several, called one"])
def test_chunks_of_one_page(
    compression: str, version: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, data = make(compression, version, ROWS if told else 900)
    if not told:  # the footer lies
        monkeypatch.setattr(FileMetadata, "has_one_page", lambda *_: True)
    conditions = [None, ps.col("city") == "city 7", ps.col("inside.a") > 3_000, ps.col("key") < 0]
    for condition in conditions:
        found = ps.read_table(data, filter=condition)
        found.validate(full=True)
        with monkeypatch.context() as patch:
            patch.setattr(LeafReader, "want", page_by_page)
            assert ps.read_table(data, filter=condition).equals(found)
            later = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
        sooner = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
        sooner.pop("seconds"), later.pop("seconds")
        assert sooner == later
    assert ps.read_table(data).equals(table)
    assert ps.read_table(data, ["city"]).equals(table.select(["city"]))


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("page_rows", [500, ROWS])
def test_by_several_threads(threads: int, page_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table, data = make("zstd", "1.0", page_rows)
    monkeypatch.setattr(lane, "WORTH_A_CORE", 1)
    used: list[int] = []
    decode = lane.read_pages

    def counted(tasks: list[Any], by: int) -> list[Any]:
        used.append(by)
        return decode(tasks, by)

    monkeypatch.setattr(lane, "read_pages", counted)
    for row in range(0, ROWS, 377):
        found = ps.read_table(data, filter=ps.col("key") == row, threads=threads)
        assert found.equals(table.slice(row, 1))
    assert ps.read_table(data, threads=threads).equals(table)
    # the key is read by itself
    assert max(used) == min(threads, table.num_columns - (page_rows < ROWS))


def test_idle_cores_are_lent_and_given_back() -> None:
    with WorkerPool(4, 4, 1 << 20) as pool:
        with pool.idle(2) as first, pool.idle(8) as second, pool.idle(1) as third:
            assert (first, second, third) == (2, 2, 0)
        with pool.working(), pool.idle(8) as left:
            assert left == 3
        with pool.idle(0) as none:
            assert none == 0


def number(value: int) -> bytes:
    """A field of a Thrift struct, next to the one before: its number, and an i32."""
    value, out = value << 1, b"\x15"
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


@pytest.mark.timed
@pytest.mark.parametrize("index", [True, False])
def test_no_room_is_made_for_values_that_a_row_group_cannot_have(index: bool) -> None:
    """The page of a field of a struct that claims 2^31 - 1 values, by one run of levels."""
    table = pa.table({"s": [{"a": i} for i in range(200)]})
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression="none", use_dictionary=False, write_page_index=index,
        write_statistics=index,
    )  # fmt: skip
    data = bytes(sink.getvalue().to_pybytes())
    file = open_metadata(data)
    _, start, stop = file.placed_chunk(0, file.leaves[0])
    most = (1 << 31) - 1
    levels = number(most)[1:] + b"\0"
    body = len(levels).to_bytes(4, "little") + levels
    for length in range(stop - start - 60, stop - start):
        head = b"".join([number(0), number(length), number(length), b"\x2c", number(most)])
        head += number(0) + number(3) + number(3) + b"\0\0"
        if len(head) + length == stop - start:
            break
    bad = data[:start] + head + body.ljust(length, b"\0") + data[stop:]
    assert len(bad) == len(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ps.CorruptFileError, match=r"column 's\.a'.*200"):
        ps.read_table(bad)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300 << 10  # kB


def test_a_decoder_lets_go_of_the_dictionary_that_it_had() -> None:
    _, data = make("none", "1.0")
    offsets = open_metadata(data).offset_index(0, "city")
    assert offsets is not None
    at, size = int(offsets.offset[2]), int(offsets.compressed_size[2])
    ranges = np.array([1_000, 1_001], np.int64).tobytes()
    held = bytearray(b"\5\0\0\0hello")
    decoder = LeafDecoder((6, 0, 14, 0, 0, 1, 0), 1, 0)
    decoder.dictionary(held, 1)
    (made,) = read_pages([(decoder, [(data[at : at + size], 1_000, 500)], ranges, 0, None, False)])
    assert made == TAKE_DICTIONARY
    assert not decoder.has_dictionary
    held.clear()  # a BufferError while somebody holds it


def test_what_fails_leaves_no_memory_behind() -> None:
    """Several leaves whose damage is found late."""
    n = 1 << 20
    table = pa.table({f"c{i}": pa.array([b"\xff" * 8] * n) for i in range(6)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, data_page_size=1 << 30,
                   max_rows_per_page=n, write_statistics=False)  # fmt: skip
    data = bytes(sink.getvalue().to_pybytes())
    file = open_metadata(data)
    ranges = np.array([0, n], np.int64).tobytes()
    tasks = []
    for leaf in file.leaves:
        _, start, stop = file.placed_chunk(0, leaf)
        decoder = LeafDecoder(
            (6, 0, 14, 0, 0, 1, 0), 1, 0, codec="zstd", decompress=codecs._zstd
        )  # as text, which it is not
        tasks.append((decoder, [(data[start:stop], 0, n)], ranges, 0, None, True))
    trim(0)
    before = rss()
    assert read_pages(tasks) == [None] * 6
    trim(0)  # what another test may have had kept
    assert rss() - before < 30 << 20  # a leaf takes 12


def rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_between_batches_the_scan_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    table, data = make("zstd", "1.0", ROWS)
    begun: list[int] = []
    begin = lane.read_pages

    def counted(tasks: list[Any], threads: int) -> Any:
        begun.append(len(tasks))
        return begin(tasks, threads)

    monkeypatch.setattr(lane, "read_pages", counted)
    assert ps.read_table(data).equals(table)
    assert begun == [6]
    begun.clear()
    monkeypatch.setattr(ahead, "BATCH_BYTES", 1)
    assert ps.read_table(data).equals(table)
    assert begun == [1] * 6


def test_dictionaries_that_pages_ask_for_come_in_one_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 40_000
    table = pa.table({"key": np.arange(n)} | {f"c{i}": np.arange(n) * (i + 3) for i in range(4)})
    out = pa.BufferOutputStream()
    pq.write_table(
        table, out, compression="zstd", write_page_index=True, max_rows_per_page=1_000,
        dictionary_pagesize_limit=100_000, write_batch_size=100,
    )  # fmt: skip
    data = bytes(out.getvalue().to_pybytes())
    with open_metadata(data) as file:
        for leaf in file.leaves:  # of codes until the dictionary is given up, then of values
            chunk = file.chunk(0, leaf)
            assert chunk.dictionary_data_pages > 0
            assert chunk.other_data_pages > 0
    waves: list[int] = []
    read = Fetcher.read

    def counted(self: Fetcher, ranges: Any, kind: str, later: bool = False) -> Any:
        if kind == "data":
            waves.append(len(ranges))
        return read(self, ranges, kind, later)

    scan = ps.scan(data, filter=ps.col("key") == 7_001)
    monkeypatch.setattr(Fetcher, "read", counted)
    assert scan.to_table().equals(table.slice(7_001, 1))
    assert waves == [1, 1, 4, 4]  # the page of the key, its dictionary; the other pages, theirs
    leaves = scan.explain(analyze=True).to_dict()["leaves"]
    assert [leaf["dictionary_pages"] for leaf in leaves.values()] == [1] * 5
    waves.clear()
    found = ps.read_table(data, filter=ps.col("key") == n - 1)
    assert found.equals(table.slice(n - 1, 1))
    assert waves == [1, 4]


@pytest.mark.timed
@pytest.mark.parametrize("threads", [1, 4])
def test_dictionaries_that_turn_out_to_be_needed_come_in_waves_of_a_size(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"key": np.arange(ROWS), **{f"c{i}": np.arange(ROWS) + i for i in range(12)}})
    sink = pa.BufferOutputStream()
    pq.write_table(  # the first pages have codes, the others do not, which is not known in advance
        table, sink, use_dictionary=[f"c{i}" for i in range(12)], dictionary_pagesize_limit=4_000,
        max_rows_per_page=500, write_page_index=True,
    )  # fmt: skip
    data = bytes(sink.getvalue().to_pybytes())
    file = open_metadata(data)
    offsets = file.offset_index(0, "c0")
    assert offsets is not None
    leaf = next(leaf for leaf in file.leaves if leaf.name == "c0")
    size = offsets.start - file.placed_chunk(0, leaf)[1]  # of a dictionary; others are like it
    waves: dict[int, int] = {}
    for most in (1 << 20, 4 * size - 200, 1):
        monkeypatch.setattr(ahead, "DICTIONARY_WAVE_BYTES", most)
        scan = ps.scan(data, filter=ps.col("key") == 5, threads=threads)
        assert scan.to_table().equals(table.slice(5, 1))
        report = scan.explain(analyze=True).to_dict()
        assert all(report["leaves"][f"c{i}"]["dictionary_pages"] == 1 for i in range(12))
        waves[most] = report["waves"]
    all_at_once, few, one = waves.values()
    assert one == all_at_once + 11
    assert all_at_once < few < one


def test_a_dictionary_that_was_used_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    begin = page_batch.decode_pages

    def counted(readers: list[LeafReader]) -> Any:
        yield from begin(readers)
        held.extend(reader._dictionary_data is not None for reader in readers)

    monkeypatch.setattr(page_batch, "decode_pages", counted)
    table, data = make("zstd", "1.0")
    assert ps.read_table(data, filter=ps.col("key") == 7).equals(table.slice(7, 1))
    assert held
    assert not any(held)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4"])
def test_strings_that_grow_shorter_are_tried_again_in_place(
    compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 4_000
    rng = np.random.default_rng(5)
    texts = [rng.bytes(4 + 300 * (n - i) ** 2 // n**2).hex() for i in range(n)]
    table = pa.table({"key": np.arange(n), "text": texts})
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression=compression, use_dictionary=False, data_page_size=1 << 24,
        write_page_index=True,
    )  # fmt: skip
    data = bytes(sink.getvalue().to_pybytes())
    made: list[Any] = []
    take = LeafReader.take

    def noted(self: LeafReader, found: Any) -> Any:
        made.extend(found)
        return take(self, found)

    monkeypatch.setattr(LeafReader, "take", noted)
    for row in (0, 1, 700, 1_500, 2_500, 2_999, n - 1):
        made.clear()
        assert ps.read_table(data, filter=ps.col("key") == row).equals(table.slice(row, 1))
        assert len(made) == 2
        assert all(isinstance(one, tuple) for one in made), row


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_an_entry_that_does_not_fit_is_named(compression: str) -> None:
    n, bad = 40_000, 3_500
    times = pa.array(np.arange(n) % 4_000 * 1_000_000, pa.timestamp("us")).to_pylist()
    times[bad] = datetime(3500, 1, 1)  # beyond what nanoseconds can tell
    table = pa.table({"key": np.arange(n), "time": pa.array(times, pa.timestamp("us"))})
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression=compression, use_deprecated_int96_timestamps=True,
        use_dictionary=["time"], max_rows_per_page=1_000, write_page_index=True,
    )  # fmt: skip
    data = bytes(sink.getvalue().to_pybytes())
    with pytest.raises(ps.LimitError, match=r"'time'.*entry 3500 of the dictionary"):
        ps.read_table(data, filter=ps.col("key") == bad)
    good = ps.read_table(data, filter=ps.col("key") == bad + 1)
    assert good["time"].to_pylist() == [times[bad + 1]]
    with pytest.raises(ps.LimitError, match=r"'time'.*dictionary page"):
        ps.read_table(data)
