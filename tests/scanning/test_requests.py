"""The reads of the store, counted by a wrapper around it: exactly the needed pages."""

from __future__ import annotations

import bisect
import os
import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import metadata as core
from pageseek.format import footer
from pageseek.scanning.queries.execution import Execution
from support.opened import open_metadata
from support.store_log import Log
from support.writer import BYTE_ARRAY, INT32, INT64, STRING, Column, write

ROWS = 200_000


@dataclass
class File:
    path: str
    table: pa.Table
    pages: dict[str, list[tuple[int, int]]]
    first_rows: dict[str, list[int]]
    index_start: int


COLUMNS = {
    "id": 8_000,
    "a": 3_100,
    "b": 17_000,
    "c": 60_000,
    "d": 5_000,
    "e": 9_999,
    "f": 12_345,
    "g": 33_333,
}


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> File:
    """Eight columns whose pages do not line up; `id` ascends and has duplicates across the ends of pages."""
    path = str(tmp_path_factory.mktemp("requests") / "big.parquet")
    dice = np.random.default_rng(7)
    ids = np.arange(ROWS) * 2
    for end in (8_000, 64_000, 120_000):
        ids[end] = ids[end - 1]
    data = {"id": ids, "a": dice.integers(0, 50, ROWS), "b": dice.random(ROWS), "d": ids % 7919}
    columns: list[Column] = []
    for name, size in COLUMNS.items():
        values = data.setdefault(name, dice.integers(0, 1 << 40, ROWS))
        physical, raw = (
            (5, values.tolist()) if values.dtype.kind == "f" else (INT64, values.tolist())
        )
        cuts = [size] * (ROWS // size) + ([ROWS % size] if ROWS % size else [])
        columns.append(
            Column(name, physical, raw, cuts, codec="snappy", version=1 + len(columns) % 2)
        )
    # the padding keeps the data out of the tail that opening reads
    Path(path).write_bytes(write(columns, padding=bytes(100_000)))
    return File(
        path,
        pa.table(
            {name: data[name] for name in COLUMNS},
            pa.schema(
                [pa.field(n, pa.from_numpy_dtype(data[n].dtype), nullable=False) for n in COLUMNS]
            ),
        ),
        {c.name: [(at, size) for at, size, _ in c.made.pages] for c in columns},
        {c.name: [row for *_, row in c.made.pages] for c in columns},
        max(at + size for c in columns for at, size, _ in c.made.pages),
    )


def page_of(file: File, name: str, row: int) -> int:
    return bisect.bisect_right(file.first_rows[name], row) - 1


def pages_of(file: File, name: str, rows: Sequence[int]) -> list[int]:
    return sorted({page_of(file, name, int(row)) for row in rows})


def expect(log: Log, file: File, rows: dict[str, Sequence[int]]) -> None:
    """Exactly the whole pages of these rows were read in each column, and none in the others."""
    for name, places in file.pages.items():
        wanted = pages_of(file, name, rows.get(name, ()))
        assert log.required_leaves(places) == wanted, name
        assert log.whole(places) == wanted, name


def test_a_thousand_lookups_take_one_page_a_column(big: File, log: Log) -> None:
    ids = big.table["id"].to_numpy()
    values, counts = np.unique(ids, return_counts=True)
    single = values[counts == 1]
    for key in random.Random(1).sample(single.tolist(), 1000):
        row = int(np.searchsorted(ids, key))
        log.clear()
        found = ps.read_table(big.path, filter=ps.col("id") == key)
        assert found.to_pylist() == big.table.slice(row, 1).to_pylist()
        expect(log, big, {name: [row] for name in COLUMNS})


def test_lookups_at_the_ends_of_pages(big: File, log: Log) -> None:
    ids = big.table["id"].to_numpy()
    ends = [row for first in big.first_rows["id"] for row in (first - 1, first) if row >= 0] + [
        ROWS - 1
    ]
    for row in ends:
        if (ids == ids[row]).sum() > 1:
            continue
        log.clear()
        found = ps.read_table(big.path, filter=ps.col("id") == int(ids[row]))
        assert found.num_rows == 1
        expect(log, big, {name: [row] for name in COLUMNS})


def read_by_calls() -> int:
    """The bytes that system calls have read in this process, without those that it takes to ask."""
    with open("/proc/self/io", "rb", buffering=0) as file:
        said = file.read(4096)
    return int(said.split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs Linux's counters of IO")
def test_lookups_of_the_core_read_one_page_a_column(
    big: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each column that is asked for and of the tested one, to the byte; of absent keys the tested one's page alone."""
    monkeypatch.setattr(Execution, "scanned", refused)
    ids = big.table["id"].to_numpy()
    values, counts = np.unique(ids, return_counts=True)
    asked = ["b", "id", "e"]
    scan = ps.scan(big.path, columns=asked)
    assert scan.filter(ps.col("id") == int(values[5])).to_table().num_rows == 1  # the indexes
    ours = -read_by_calls() + read_by_calls()  # what asking reads
    for key in random.Random(2).sample(values[counts == 1].tolist(), 200):
        row = int(np.searchsorted(ids, key))
        before = read_by_calls()
        found = scan.filter(ps.col("id") == key).to_table()
        count = read_by_calls() - before - ours
        assert found.to_pylist() == big.table.select(asked).slice(row, 1).to_pylist()
        assert count == sum(big.pages[name][page_of(big, name, row)][1] for name in asked)
    for key in random.Random(3).sample(range(10_000, 100_000), 50):
        absent = 2 * key + 1
        row = int(np.searchsorted(ids, absent)) - 1
        before = read_by_calls()
        assert scan.filter(ps.col("id") == absent).to_table().num_rows == 0
        count = read_by_calls() - before - ours
        page = page_of(big, "id", row)
        ends = page != page_of(big, "id", row + 1)  # it lies between two pages
        assert count == (0 if ends else big.pages["id"][page][1])


def refused(*_: Any) -> None:
    raise AssertionError("the way of every scan")


def test_duplicates_across_the_end_of_a_page_take_two_pages(big: File, log: Log) -> None:
    for end in (8_000, 64_000, 120_000):
        log.clear()
        key = big.table["id"][end].as_py()
        assert ps.read_table(big.path, filter=ps.col("id") == key).num_rows == 2
        expect(log, big, {name: [end - 1, end] for name in COLUMNS})
        assert len(pages_of(big, "id", [end - 1, end])) == 2


def test_absent_keys_take_no_page(big: File, log: Log) -> None:
    for key in (-1, 2 * ROWS + 5, 1 << 62):
        log.clear()
        assert ps.read_table(big.path, filter=ps.col("id") == key).num_rows == 0
        expect(log, big, {})
    # a key between two pages: above the greatest of one, below the least of the next
    edge = big.first_rows["id"][3]
    log.clear()
    assert (
        ps.read_table(big.path, filter=ps.col("id") == big.table["id"][edge].as_py() - 1).num_rows
        == 0
    )
    expect(log, big, {})


def test_absent_keys_inside_a_page_take_that_page_and_no_payload(big: File, log: Log) -> None:
    log.clear()
    assert ps.read_table(big.path, filter=ps.col("id") == 33_333).num_rows == 0
    expect(log, big, {"id": [33_333 // 2]})


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (7_999, 8_001), (20_000, 90_000), (199_000, 10**9), (-5, 399_999)]
)
def test_a_range_takes_the_pages_that_hold_it(big: File, log: Log, low: int, high: int) -> None:
    ids = big.table["id"].to_numpy()
    rows = np.flatnonzero((ids >= low) & (ids <= high))
    log.clear()
    found = ps.read_table(
        big.path, columns=["a", "id", "c"], filter=ps.col("id").between(low, high)
    )
    assert found.equals(big.table.select(["a", "id", "c"]).take(rows))
    expect(log, big, dict.fromkeys(("a", "id", "c"), rows))


def test_a_filter_on_another_column_takes_only_pages_of_rows_that_pass(big: File, log: Log) -> None:
    rows = np.flatnonzero(big.table["d"].to_numpy() == 4242)
    log.clear()
    found = ps.read_table(big.path, columns=["id", "a", "e", "d"], filter=ps.col("d") == 4242)
    assert found.equals(big.table.select(["id", "a", "e", "d"]).take(rows))
    assert 0 < len(rows) < 100
    for name in ("id", "a", "e"):
        assert log.required_leaves(big.pages[name]) == pages_of(big, name, rows)
    for name in ("b", "c", "f", "g"):
        assert log.required_leaves(big.pages[name]) == []


def test_the_second_condition_reads_only_pages_of_the_survivors_of_the_first(
    big: File, log: Log
) -> None:
    ids, a = big.table["id"].to_numpy(), big.table["a"].to_numpy()
    near = np.flatnonzero((ids >= 40_000) & (ids < 40_400))
    log.clear()
    found = ps.read_table(
        big.path,
        columns=["g"],
        filter=(ps.col("id") >= 40_000) & (ps.col("id") < 40_400) & (ps.col("a") == 7),
    )
    rows = near[a[near] == 7]
    assert found.equals(big.table.select(["g"]).take(rows))
    page = page_of(
        big, "id", int(near[0])
    )  # whichever comes first reads the rows that the index leaves
    first = range(big.first_rows["id"][page], big.first_rows["id"][page + 1])
    assert log.required_leaves(big.pages["id"]) == [page]
    assert set(pages_of(big, "a", rows)) <= set(log.required_leaves(big.pages["a"]))
    assert set(log.required_leaves(big.pages["a"])) <= set(pages_of(big, "a", first))
    assert log.required_leaves(big.pages["g"]) == pages_of(big, "g", rows)


def test_a_scan_without_filter_asks_for_no_index_and_parses_none(
    big: File, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("an index was parsed")

    monkeypatch.setattr(core, "column_index", fail)
    monkeypatch.setattr(core, "offset_index", fail)
    ps.clear_cache()
    log.clear()
    tail = Path(big.path).stat().st_size - footer.TAIL_BYTES
    assert ps.read_table(big.path).num_rows == ROWS
    assert all(at >= tail or at + n <= big.index_start for at, n in log.ranges)
    log.clear()
    assert ps.read_table(big.path, columns=["e"]).num_rows == ROWS
    assert ps.scan(big.path, limit=10).count_rows() == 10
    assert ps.scan(big.path).count_rows() == ROWS
    assert all(at >= tail or at + n <= big.index_start for at, n in log.ranges)


def test_a_warm_footer_and_index_are_not_read_again(big: File, log: Log) -> None:
    ps.read_table(big.path, filter=ps.col("id") == 8)
    log.clear()
    ps.read_table(big.path, filter=ps.col("id") == 16)
    assert log.ranges
    assert all(at + n <= big.index_start for at, n in log.ranges)


def test_a_plan_in_another_process_reads_pages_and_not_chunks(big: File, log: Log) -> None:
    plan = pickle.loads(pickle.dumps(ps.scan(big.path, filter=ps.col("id") == 50_000).plan()))
    ps.clear_cache()
    log.clear()
    assert sum(batch.num_rows for batch in plan.execute()) == 1
    expect(log, big, {name: [25_000] for name in COLUMNS})


def test_an_unsorted_filter_in_another_process_reads_pages_and_not_chunks(
    big: File, log: Log
) -> None:
    values = big.table["d"].to_numpy()
    rows = np.flatnonzero(values == 4711).tolist()
    plan = pickle.loads(pickle.dumps(ps.scan(big.path, filter=ps.col("d") == 4711).plan()))
    ps.clear_cache()
    log.clear()
    assert sum(batch.num_rows for batch in plan.execute()) == len(rows) > 0
    for name in set(COLUMNS) - {"d"}:
        required_leaves, wanted = log.required_leaves(big.pages[name]), pages_of(big, name, rows)
        assert set(wanted) <= set(required_leaves)
        between = set(required_leaves) - set(
            wanted
        )  # a gap between two requests costs more than such a page
        assert all(big.pages[name][page][1] < 4_000 for page in between), name


def test_only_the_indexes_of_touched_columns_are_parsed(
    big: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    for which in ("offset_index", "offset_indexes", "column_index", "page_bounds"):
        own = getattr(core, which)

        def counted(*args: Any, _own: Any = own, _which: str = which, **kwargs: Any) -> Any:
            parsed.extend([_which] * (len(args[0]) if _which == "offset_indexes" else 1))
            return _own(*args, **kwargs)

        monkeypatch.setattr(core, which, counted)
    ps.clear_cache()
    ps.read_table(big.path, columns=["a"], filter=ps.col("id") == 8)
    assert sorted(parsed) == ["offset_indexes", "offset_indexes", "page_bounds"]


def test_the_report_counts_what_the_store_saw(big: File, log: Log) -> None:
    ps.clear_cache()
    log.clear()
    report = (
        ps.scan(big.path, filter=ps.col("id").between(100, 50_000)).explain(analyze=True).to_dict()
    )
    assert report["requests"] == len(log.ranges)
    assert report["bytes"]["total"] == sum(n for _, n in log.ranges)
    for name, leaf in report["leaves"].items():
        assert leaf["pages"]["read"] == len(log.required_leaves(big.pages[name])), name
        assert leaf["pages"]["total"] == len(big.pages[name]), name


def test_contradictions_ask_for_nothing(big: File, log: Log) -> None:
    ps.clear_cache()
    open_metadata(big.path)
    c = ps.col("id")
    ps.scan(big.path, filter=c == -1).to_table()
    for condition in (c.between(10**9, -5), (c < 5) & (c > 390_000), c.isin([]), c == None):  # noqa: E711
        log.clear()
        assert ps.read_table(big.path, filter=condition).num_rows == 0
        expect(log, big, {})


def test_contradictions_inside_one_page_ask_for_nothing(big: File, log: Log) -> None:
    ps.scan(big.path, filter=ps.col("id") == -1).to_table()
    c = ps.col("id")
    for condition in (
        c.between(9, 3),
        (c == 4) & (c == 6),
        (c > 6) & (c < 6),
        (c > 6) & (c < 7),
        c.isin([4, 6]) & (c == 8),
        (c >= 6) & (c <= 6) & (c != 6),
        c == 4.5,
    ):
        log.clear()
        assert ps.read_table(big.path, filter=condition).num_rows == 0
        assert log.ranges == [], condition


class Handler(pafs.FileSystemHandler):
    """A filesystem over one file in memory that logs what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[tuple[int, int]] = []

    def get_type_name(self) -> str:
        return "logged"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [pafs.FileInfo(p, pafs.FileType.File, size=len(self.data), mtime=1.0) for p in paths]

    def open_input_file(self, path: str) -> pa.PythonFile:
        outer = self

        class Logged:
            closed = False
            at = 0

            def read(self, n: int = -1) -> bytes:
                outer.ranges.append((self.at, n))
                part = outer.data[self.at : self.at + n]
                self.at += len(part)
                return part

            def seek(self, at: int, whence: int = 0) -> int:
                self.at = at if whence == 0 else len(outer.data) + at
                return self.at

            def tell(self) -> int:
                return self.at

            def size(self) -> int:
                return len(outer.data)

            def seekable(self) -> bool:
                return True

            def readable(self) -> bool:
                return True

            def writable(self) -> bool:
                return False

            def flush(self) -> None:
                pass

            def close(self) -> None:
                self.closed = True

        return pa.PythonFile(Logged(), mode="r")

    def _refuse(self, *_: object) -> None:
        raise NotImplementedError

    open_input_stream = get_file_info_selector = create_dir = delete_dir = delete_dir_contents = (
        _refuse
    )
    delete_root_dir_contents = delete_file = move = copy_file = _refuse
    open_output_stream = open_append_stream = _refuse


def test_a_lookup_on_any_filesystem_reads_the_tail_and_the_pages() -> None:
    columns = [
        Column("k", INT32, list(range(4000)), [500] * 8),
        Column("s", BYTE_ARRAY, [b"%d" % i * 20 for i in range(4000)], [1000] * 4, logical=STRING),
    ]
    handler = Handler(write(columns, padding=bytes(footer.TAIL_BYTES)))
    found = ps.read_table((pafs.PyFileSystem(handler), "x.parquet"), filter=ps.col("k") == 1234)
    assert found["s"].to_pylist() == ["1234" * 20]
    # one for the tail, one for the index, and the pages; no request twice
    assert len(handler.ranges) <= 4
    assert len(set(handler.ranges)) == len(handler.ranges)


@pytest.fixture
def dictionaries(tmp_path: Path) -> tuple[str, Column]:
    values = [b"%03d" % (i % 50) for i in range(3000)]
    values[2000:] = [b"tail%d" % i for i in range(1000)]
    column = Column(
        "s",
        BYTE_ARRAY,
        values,
        [1000] * 3,
        logical=STRING,
        encodings=["dictionary", "dictionary", "plain"],
        dictionary=[b"%03d" % i for i in range(50)],
    )
    path = tmp_path / "d.parquet"
    path.write_bytes(
        write(
            [Column("k", INT32, list(range(3000)), [1000] * 3), column],
            padding=bytes(footer.TAIL_BYTES),
        )
    )
    return str(path), column


def test_the_dictionary_is_read_only_where_a_page_uses_it(
    dictionaries: tuple[str, Column], log: Log
) -> None:
    path, column = dictionaries
    assert column.made.dictionary is not None
    for row, used in ((2500, False), (5, True)):
        log.clear()
        found = ps.read_table(path, columns=["s"], filter=ps.col("k") == row)
        assert found["s"].to_pylist() == [column.values[row].decode()]
        assert log.required_leaves([column.made.dictionary]) == ([0] if used else [])


def test_pages_of_pyarrow_files_are_found_too(tmp_path: Path, log: Log) -> None:
    path = tmp_path / "arrow.parquet"
    table = pa.table({"k": range(100_000), "s": [f"value {i}" for i in range(100_000)]})
    pq.write_table(
        table,
        path,
        write_page_index=True,
        data_page_size=8192,
        row_group_size=30_000,
        use_dictionary=False,
    )
    ps.read_table(path, filter=ps.col("k") == -1)
    size = path.stat().st_size
    for key in (0, 29_999, 30_000, 77_777):
        log.clear()
        assert (
            ps.read_table(path, filter=ps.col("k") == key).to_pylist()
            == table.slice(key, 1).to_pylist()
        )
        assert sum(n for _, n in log.ranges) < size / 8


def test_a_limit_reads_the_pages_of_the_first_rows(big: File, log: Log) -> None:
    for n in (1, 8_000, 8_001, 70_000):
        log.clear()
        assert ps.read_table(big.path, limit=n).equals(big.table.slice(0, n))
        expect(log, big, dict.fromkeys(COLUMNS, range(n)))
    log.clear()
    assert ps.read_table(big.path, limit=0).num_rows == 0
    assert log.required_leaves([(0, big.index_start)]) == []


def test_a_limit_leaves_row_groups_and_files_behind_it_alone(tmp_path: Path, log: Log) -> None:
    table = pa.table({"k": list(range(1000)), "v": [i % 7 for i in range(1000)]})
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for path in paths:
        pq.write_table(table, path, row_group_size=100, write_page_index=True)
    many = ps.scan([str(path) for path in paths])
    plan = many.limit(150).plan()
    assert [(len(f.groups), f.source.path) for f in plan.files] == [(2, str(paths[0]))]
    assert plan.num_rows == 150
    counts = many.limit(150).explain().to_dict()
    assert counts["files"] == {"total": 3, "read": 1, "pruned_by": {"limit": 2}}
    assert counts["row_groups"]["pruned_by"] == {"limit": 8}
    assert counts["rows"]["pruned_by"] == {"limit": 850}
    assert many.limit(1050).to_table()["k"].to_pylist() == [*range(1000), *range(50)]
    assert many.limit(2999).count_rows() == 2999
    part = many.filter(ps.col("k") >= 120).limit(
        100
    )  # one row group is doubtful, the next ones sure
    assert [g.row_group for f in part.plan().files for g in f.groups] == [1, 2]
    assert part.to_table()["k"].to_pylist() == list(range(120, 220))
    unusable = many.filter(ps.col("v") == 3).limit(5)
    assert unusable.plan().num_rows == 3000
    assert unusable.to_table()["k"].to_pylist() == [3, 10, 17, 24, 31]
    for share in many.limit(150).plan().split(2):
        assert sum(b.num_rows for b in share.execute()) == share.num_rows
