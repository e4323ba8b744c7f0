"""A limit that is reached early saves the indexes of the remaining row groups, at no other cost."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.leaves import few_rows
from pageseek.scanning.one_file.limit_steps import LimitSteps
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.storage.local import LocalStore
from support.store_log import Log

pytestmark = pytest.mark.usefixtures("scans")

GROUPS, IN_GROUP, PAGE = 100, 4_000, 100


@dataclass
class File:
    path: str
    table: pa.Table
    index: tuple[int, int]  # where the page index lies

    def index_bytes(self, log: Log) -> int:
        """The bytes of the page index that were read."""
        start, stop = self.index
        return sum(max(0, min(at + n, stop) - max(at, start)) for at, n in log.ranges)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> File:
    """100 row groups of 40 pages, four columns; `v` is in no order, so that only pages can be ruled out."""
    path = str(tmp_path_factory.mktemp("steps") / "groups.parquet")
    dice, n = np.random.default_rng(11), GROUPS * IN_GROUP
    table = pa.table(
        {
            "v": (np.arange(n) // PAGE * 37 % 40) * 1_000 + dice.integers(0, 500, n),
            "a": dice.integers(0, 1 << 40, n),
            "b": dice.random(n),
            "row": np.arange(n),
        }
    )
    pq.write_table(
        table, path, row_group_size=IN_GROUP, write_page_index=True, use_dictionary=False,
        data_page_size=1, write_batch_size=PAGE,
    )  # fmt: skip
    footer = Path(path).stat().st_size - 8 - pq.read_metadata(path).serialized_size
    metadata = pq.read_metadata(path)
    last = max(
        chunk.data_page_offset + chunk.total_compressed_size
        for i in range(GROUPS)
        for chunk in (metadata.row_group(i).column(j) for j in range(4))
    )
    return File(path, table, (last, footer))


def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote store, on which no gap is read."""
    monkeypatch.setattr(LocalStore, "latency", 0.02)
    monkeypatch.setattr(LocalStore, "bandwidth", 50.0)


FIRST = (ps.col("v") >= 10_000) & (ps.col("b") < 0.9)  # rows of most pages, in each row group


def run(scan: ps.Scan, log: Log) -> dict[str, Any]:
    ps.clear_cache()
    log.clear()
    return scan.explain(analyze=True).to_dict()


def test_a_limit_reached_in_the_first_row_group_pays_for_its_index_alone(
    file: File, log: Log
) -> None:
    scan = ps.scan(file.path, filter=FIRST)
    ps.clear_cache()
    log.clear()
    assert scan.to_table().num_rows > 100_000
    whole = file.index_bytes(log)
    assert whole > 0.9 * (file.index[1] - file.index[0]) / 2
    for read in (
        lambda: scan.limit(1).to_table().num_rows,
        lambda: scan.limit(1).count_rows(),
        lambda: sum(batch.num_rows for batch in scan.limit(1).to_batches()),
        lambda: scan.limit(1).to_reader().read_all().num_rows,
        lambda: scan.limit(1).explain(analyze=True).rows_out,
        lambda: scan.limit(1).aggregate(["count"]).to_pylist()[0]["count"],
    ):
        ps.clear_cache()
        log.clear()
        assert read() == 1
        assert 0 < file.index_bytes(log) < whole / 50
    report = run(scan.limit(1), log)
    assert report["bytes"]["index"] == file.index_bytes(log)
    with pytest.MonkeyPatch.context() as leaf_by_leaf:  # the core's own reads are not logged
        leaf_by_leaf.setattr(few_rows, "MOST_BYTES", 0)
        same = run(scan.limit(1), log)
        assert (same["requests"], same["leaves"]) == (report["requests"], report["leaves"])
    assert report["requests"] == len(log.ranges)
    assert report["row_groups"] == {"total": GROUPS, "read": 1, "pruned_by": {"limit": GROUPS - 1}}
    assert report["rows"]["pruned_by"]["limit"] == (GROUPS - 1) * IN_GROUP


def test_steps_grow_until_the_limit_is_reached(file: File, log: Log) -> None:
    """The first row that passes lies in row group 20: its index is read, and at most twice as much."""
    condition = (ps.col("b") < 2) & (ps.col("v") > 1) & (ps.col("row") >= 80_100)
    scan = ps.scan(file.path, columns=["row"], filter=condition)
    full = ps.read_table(file.path, columns=["row"], filter=condition, prune=False)
    for limit in (1, 2, 4_000, 9_000, 1_000_000):
        assert scan.limit(limit).to_table().equals(full.slice(0, limit))
    # with no statistics of row groups to go by, all before have to be judged
    late = ps.scan(
        file.path, columns=["row"], prune=["column_index"], filter=ps.col("row") >= 80_100
    )
    all_of = run(late, log)["bytes"]["index"]
    report = run(late.limit(1), log)
    assert report["rows"]["out"] == 1
    assert 0.15 * all_of < report["bytes"]["index"] < 0.5 * all_of
    assert report["row_groups"]["pruned_by"] == {"column_index": 20, "limit": 79}


@pytest.mark.timed
def test_what_no_row_passes_has_few_more_waves_on_a_slow_store(
    file: File, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(monkeypatch)
    scan = ps.scan(file.path, columns=["row"], filter=ps.col("v") == 700)  # between two pages
    plain = run(scan, log)
    limited = run(scan.limit(1), log)
    assert plain["rows"]["out"] == limited["rows"]["out"] == 0
    assert limited["files"]["pruned_by"] == plain["files"]["pruned_by"] == {"column_index": 1}
    assert limited["row_groups"] == plain["row_groups"]
    assert limited["pages"]["read"] == plain["pages"]["read"] == 0
    assert limited["waves"] <= plain["waves"] + 3
    assert limited["bytes"] == plain["bytes"]


def test_a_limit_costs_no_more_requests_than_none(file: File, log: Log) -> None:
    for condition in (FIRST, ps.col("v") == 39_250, ps.col("v") == 700):
        scan = ps.scan(file.path, filter=condition)
        plain = run(scan, log)
        limited = run(scan.limit(1), log)
        assert limited["bytes"]["index"] < 1.02 * plain["bytes"]["index"]
        assert limited["requests"] <= plain["requests"] + 10


def test_a_plan_that_travels_has_judged_everything(file: File, log: Log) -> None:
    scan = ps.scan(file.path, columns=["row"], filter=ps.col("v") == 39_250).limit(30)
    full = ps.read_table(file.path, columns=["row"], filter=ps.col("v") == 39_250, prune=False)
    plan = scan.plan()
    assert all(group.pages_pruned for one in plan.files for group in one.groups)
    assert plan.num_rows < 0.1 * len(file.table)
    again = pickle.loads(pickle.dumps(plan))
    assert pa.Table.from_batches(again.execute()).equals(full.slice(0, 30))
    found = [row for part in plan.split(3) for b in part.execute() for row in b["row"].to_pylist()]
    assert set(found) <= set(full["row"].to_pylist())


def test_many_files_are_judged_as_they_are_reached(file: File, log: Log) -> None:
    many = ps.scan([file.path] * 3, columns=["row"], filter=FIRST)
    one = run(ps.scan(file.path, columns=["row"], filter=FIRST), log)["bytes"]["index"]
    report = run(many.limit(5), log)
    assert report["bytes"]["index"] < one / 50
    assert report["files"] == {"total": 3, "read": 1, "pruned_by": {"limit": 2}}
    full = ps.read_table(file.path, columns=["row"], filter=FIRST, prune=False)
    n = full.num_rows + 7
    table = pa.concat_tables([full, full.slice(0, 7)])
    assert many.limit(n).to_table().combine_chunks().equals(table.combine_chunks())
    taken = many.take(range(399_000, 401_000)).with_row_number("at").limit(900).to_table()
    numbers = [int(i) for i in full["row"].to_pylist()]
    wanted = [i for i in numbers if i >= 399_000] + [400_000 + i for i in numbers if i < 1_000]
    assert taken["at"].to_pylist() == wanted[:900]


def test_steps_are_wide_enough_for_the_rows_that_are_left() -> None:
    ranges = ps.RowRanges.all(10)
    groups = [GroupPlan(i, ranges, False, 0, pages_pruned=False) for i in range(200)]
    quick, waiting = LimitSteps(), LimitSteps()
    assert [quick.next(groups, 1, False) for _ in range(4)] == [1, 2, 4, 8]
    assert quick.next(groups, 1_000, False) == 100
    assert [waiting.next(groups, 1, True) for _ in range(3)] == [8, 64, 512]
    assert LimitSteps().next(groups, 25, False) == 3
    pruned = [GroupPlan(i, ranges, True, 0) for i in range(200)]
    assert LimitSteps().next(pruned, 1, False) == 200
