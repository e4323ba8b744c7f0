"""The report of an aggregate, compared with the reads of the store; how often files are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.file_cache import FileCache
from pageseek.format.file_metadata import FileMetadata
from support.store_log import Log

GROUPS, IN_GROUP = 10, 5_000
N = GROUPS * IN_GROUP


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`id` ascends; `v` and `s` are random."""
    dice = np.random.default_rng(3)
    v = dice.integers(0, 1 << 30, N)
    table = pa.table({"id": range(N), "v": v, "s": [f"{i:08}" + "x" * 20 for i in v]})
    path = str(tmp_path_factory.mktemp("figures") / "one.parquet")
    pq.write_table(
        table, path, row_group_size=IN_GROUP, write_page_index=True, use_dictionary=False,
        data_page_size=1, write_batch_size=500,
    )  # fmt: skip
    return path


def consistent(report: dict[str, Any]) -> dict[str, Any]:
    for unit in ("files", "row_groups", "pages", "rows"):
        count = report[unit]
        assert count["read"] + sum(count["pruned_by"].values()) == count["total"], (unit, count)
        assert all(n > 0 for n in count["pruned_by"].values()), (unit, count)
    return report


def both(scan: ps.Scan, figures: list[Any], log: Log) -> tuple[dict[str, Any], dict[str, Any]]:
    """The reports of the plan and of the run; the second must equal the reads of the store."""
    ps.clear_cache()
    planned = consistent(scan.explain(aggregate=figures).to_dict())
    ps.clear_cache()
    log.clear()
    found = consistent(scan.explain(analyze=True, aggregate=figures).to_dict())
    assert found["requests"] == len(log.ranges)
    assert found["bytes"]["total"] == sum(n for _, n in log.ranges)
    ps.clear_cache()
    log.clear()
    scan.aggregate(figures)
    assert found["bytes"]["total"] == sum(n for _, n in log.ranges)
    assert found["rows"]["out"] == 1
    for unit in ("files", "row_groups", "rows"):
        assert planned[unit]["total"] == found[unit]["total"]
        assert planned[unit]["read"] >= found[unit]["read"]
    assert planned["bytes"]["data"] >= found["bytes"]["data"]
    return planned, found


def test_what_the_footer_answers_is_counted_and_nothing_is_read(path: str, log: Log) -> None:
    for condition in (None, ps.col("id") >= 0):
        scan = ps.scan(path, filter=condition)
        for report in both(scan, ["count", ("v", "min"), ("v", "max"), ("id", "count")], log):
            assert report["files"] == {"total": 1, "read": 0, "pruned_by": {"answered": 1}}
            assert report["row_groups"]["pruned_by"] == {"answered": GROUPS}
            assert report["rows"]["pruned_by"] == {"answered": N}
            assert report["bytes"]["data"] == report["bytes"]["index"] == 0
    text = str(ps.scan(path).explain(aggregate=["count"]))
    assert "10 row groups less: the statistics in the footer have the figures of them" in text


def test_files_and_filter_are_named(path: str) -> None:
    for analyze, verb in ((False, "would be read"), (True, "was read")):
        for figures, columns in ((["count"], 0), ([("v", "max")], 1)):
            scan = ps.scan(path, filter="id >= 3")
            text = str(scan.explain(analyze, aggregate=figures))
            n = f"{columns} column" + "s" * (columns != 1)
            assert text.splitlines()[0] == f"What {verb} of {path}: {n} where id >= 3"
            both_files = str(ps.scan([path, path]).explain(analyze, aggregate=figures))
            assert both_files.splitlines()[0] == f"What {verb} of 2 files: {n}, no filter"


def test_a_count_reads_the_row_group_that_is_cut(path: str, log: Log) -> None:
    scan = ps.scan(path, filter=ps.col("id") >= 2 * IN_GROUP + 700)
    for report in both(scan, ["count"], log):
        assert report["row_groups"] == {
            "total": GROUPS,
            "read": 1,
            "pruned_by": {"statistics": 2, "answered": GROUPS - 3},
        }
        assert report["rows"]["pruned_by"]["answered"] == (GROUPS - 3) * IN_GROUP
        assert report["pages"]["read"] <= 1


def test_what_holds_nothing_better_is_not_read(path: str, log: Log) -> None:
    scan = ps.scan(
        path, filter=ps.col("id") >= 700
    )  # the first row group is read, or shown to be needless
    planned, found = both(scan, [("v", "max")], log)
    assert planned["row_groups"]["pruned_by"]["answered"] == GROUPS - 1
    assert found["row_groups"]["pruned_by"] == planned["row_groups"]["pruned_by"]
    table = pq.read_table(path)
    best = max(table["v"][700:].to_pylist())
    assert scan.aggregate([("v", "max")]).to_pylist() == [{"v_max": best}]
    # by the column index alone: of each row group at most the page that may hold more than was found before
    scan = ps.scan(path, prune=["column_index"])
    planned, found = both(scan, [("s", "max")], log)
    assert 0 < found["row_groups"]["read"] < GROUPS
    assert found["row_groups"]["pruned_by"] == {"bounds": GROUPS - found["row_groups"]["read"]}
    assert found["pages"]["read"] < 2 * GROUPS  # of 100; all ten of the first row group
    assert found["pages"]["pruned_by"]["bounds"] == found["pages"]["total"] - found["pages"]["read"]
    assert scan.aggregate([("s", "max")])["s_max"].to_pylist() == [max(table["s"].to_pylist())]


def test_a_limit_is_in_the_report(path: str, log: Log) -> None:
    scan = ps.scan(path, filter=ps.col("v") >= 0, prune=["column_index"], limit=20)
    _, found = both(scan, ["count", ("v", "max")], log)
    assert found["row_groups"] == {"total": GROUPS, "read": 1, "pruned_by": {"limit": GROUPS - 1}}
    with pytest.raises(ps.PredicateError, match="'sum'"):
        scan.explain(aggregate=[("v", "sum")])


@pytest.mark.parametrize("copies", [1, 3, 20])
def test_files_are_opened_once_and_again_only_to_be_read(
    path: str, copies: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    paths = [path] if copies == 1 else [str(tmp_path / f"{i}.parquet") for i in range(copies)]
    for one in paths[: 0 if copies == 1 else None]:
        Path(one).write_bytes(Path(path).read_bytes())
    opened: list[str] = []
    real = FileCache.open

    def counted(self: FileCache, source: Any, *rest: Any, **options: Any) -> FileMetadata:
        opened.append(source.path)
        return real(self, source, *rest, **options)

    monkeypatch.setattr(FileCache, "open", counted)
    for condition, figures, again in (
        (None, ["count", ("v", "min")], 0),
        (ps.col("v") >= 7, [("v", "min"), ("v", "max")], 1 if copies > 16 else 0),
        (ps.col("v") >= 7, [("v", "count")], 1 if copies > 16 else 0),
    ):
        opened.clear()
        scan = ps.scan(paths, filter=condition)
        scan.aggregate(figures)
        assert len(opened) <= copies * (1 + again), (condition, figures)
        both(scan, figures, log)


def test_bytes_in_memory_are_parsed_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    real = FileMetadata.__init__

    def counted(self: FileMetadata, *rest: Any, **options: Any) -> None:
        made.append(self)
        real(self, *rest, **options)

    monkeypatch.setattr(FileMetadata, "__init__", counted)
    data = Path(path).read_bytes()
    for figures in (["count"], [("s", "max"), ("v", "min")], [("s", "count")]):
        made.clear()
        ps.scan(data, filter=ps.col("v") >= 7).aggregate(figures)
        assert len(made) == 1
