"""The report compared with the reads of the store and the decompressed pages: every figure exact, every page counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.requests import steps
from support.opened import open_metadata
from support.store_log import Log
from support.writer import INT32, INT64, Column, write

ROWS = 60_000
PADDING = bytes(100_000)  # keeps the data out of the tail that opening reads


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of every page body that is decompressed; the codec must be one that the core can leave to Python."""
    made: list[int] = []
    find = steps.decompressor

    def counting(codec: int) -> Any:
        name, function = find(codec)

        def counted(data: memoryview, size: int) -> Any:
            assert function is not None
            made.append(size)
            return function(data, size)

        return f"{name}, counted", counted  # a name that the core does not know

    monkeypatch.setattr(steps, "decompressor", counting)
    return made


def consistent(report: dict[str, Any], limited: bool = False) -> None:
    """All that there is was read, or one mechanism says why not."""
    for unit in ("files", "row_groups", "pages", "rows"):
        count = report[unit]
        assert count["read"] + sum(count["pruned_by"].values()) == count["total"], (unit, count)
        assert all(n > 0 for n in count["pruned_by"].values()), (unit, count)
        assert limited or "limit" not in count["pruned_by"], (unit, count)
    leaves = report["leaves"].values()
    for side in ("total", "read"):
        assert sum(leaf["pages"][side] for leaf in leaves) == report["pages"][side], side
    assert all(0 <= leaf["pages"]["read"] <= leaf["pages"]["total"] for leaf in leaves)


def analyze(scan: ps.Scan, log: Log, limited: bool = False) -> dict[str, Any]:
    """The report of a run, compared with the store's log and with the planned report."""
    ps.clear_cache()
    planned = scan.explain().to_dict()
    consistent(planned, limited)
    ps.clear_cache()
    log.clear()
    report = scan.explain(analyze=True).to_dict()
    assert report["requests"] == len(log.ranges)
    assert report["bytes"]["total"] == sum(n for _, n in log.ranges)
    consistent(report, limited)
    for unit in ("files", "row_groups", "rows"):
        assert report[unit]["total"] == planned[unit]["total"], unit
    pages = report["pages"]["total"], planned["pages"]["total"]
    assert pages[0] == pages[1] or (limited and pages[0] < pages[1])  # of row groups never judged
    assert report["rows"]["out"] == scan.to_table().num_rows
    return report


CUTS = {"k": 1_000, "a": 700, "b": 2_500, "c": 9_000}


def flat_file(path: Path, **edits: Callable[[dict[int, Any]], Any]) -> dict[str, Column]:
    dice = np.random.default_rng(5)
    columns = []
    for name, size in CUTS.items():
        values = np.arange(ROWS) * 2 if name == "k" else dice.integers(0, 1_000, ROWS)
        cuts = [size] * (ROWS // size) + ([ROWS % size] if ROWS % size else [])
        made = Column(name, INT64, values.tolist(), cuts, codec="gzip")
        made.edit_offset_index = edits.get(name)
        columns.append(made)
    path.write_bytes(write(columns, padding=PADDING))
    return {column.name: column for column in columns}


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "flat.parquet"
    flat_file(path)
    return str(path)


def number_of_pages(name: str) -> int:
    return -(-ROWS // CUTS[name])


def test_columns_that_were_never_reached_belong_to_the_totals(
    flat: str, log: Log, inflated: list[int]
) -> None:
    report = analyze(ps.scan(flat, filter=ps.col("k") == 33_333), log)  # absent, inside a page
    assert {path: leaf["pages"] for path, leaf in report["leaves"].items()} == {
        name: {"total": number_of_pages(name), "read": int(name == "k")} for name in CUTS
    }
    left = {
        name: -(-17_000 // size) - 16_000 // size for name, size in CUTS.items()
    }  # by the index
    assert left == {"k": 1, "a": 3, "b": 1, "c": 1}
    assert report["pages"]["pruned_by"] == {
        "column_index": sum(number_of_pages(name) - n for name, n in left.items()),
        "late_materialization": sum(left.values()) - 1,
    }


def test_absent_keys_between_pages_read_no_page(flat: str, log: Log, inflated: list[int]) -> None:
    report = analyze(ps.scan(flat, filter=ps.col("k") == 1_999), log)
    total = sum(number_of_pages(name) for name in CUTS)
    assert report["pages"] == {"total": total, "read": 0, "pruned_by": {"column_index": total}}
    assert report["files"] == {"total": 1, "read": 0, "pruned_by": {"column_index": 1}}
    assert report["bytes"]["data"] == 0
    assert inflated == []


def test_a_key_outside_the_statistics_is_pruned_by_them(flat: str, log: Log) -> None:
    report = analyze(ps.scan(flat, filter=ps.col("k") == -5), log)
    for unit in ("files", "row_groups", "rows"):
        assert list(report[unit]["pruned_by"]) == ["statistics"], unit


def test_files_count_under_what_ruled_out_their_last_row_group(tmp_path: Path, log: Log) -> None:
    table = pa.table({"k": pa.array(range(0, 40_000, 2)), "v": pa.array(range(20_000))})
    for name, start in (("a", 0), ("b", 10_000)):  # b ends before the key, a has it between pages
        pq.write_table(
            table.slice(start),
            tmp_path / f"{name}.parquet",
            row_group_size=5_000,
            write_page_index=True,
            data_page_size=800,
            write_batch_size=100,
            use_dictionary=False,
        )
    index = open_metadata(str(tmp_path / "a.parquet")).column_index(1, "k")
    assert index is not None
    absent = index.upper[3].as_py() + 1
    report = analyze(ps.scan(tmp_path, filter=ps.col("k") == absent), log)
    assert report["files"] == {
        "total": 2,
        "read": 0,
        "pruned_by": {"column_index": 1, "statistics": 1},
    }
    assert report["row_groups"]["pruned_by"] == {"statistics": 5, "column_index": 1}


def test_an_ignored_offset_index_leaves_no_trace_in_the_counts(
    tmp_path: Path, log: Log, inflated: list[int]
) -> None:
    def shift(index: dict[int, Any]) -> None:  # page 1 of b begins ten rows later than it does
        location = index[1][1]
        location[3] = type(location[3])(location[3] + 10)

    path = tmp_path / "shifted.parquet"
    flat_file(path, b=shift)
    key = ps.col("k") == 2 * 2_600
    report = analyze(ps.scan(path, filter=key, columns=["k", "b", "c"]), log)
    assert any("offset index ignored" in note for note in report["notes"])
    assert report["rows"]["out"] == 1
    # restarted without it: the filter gets all rows, the proof is withdrawn
    assert report["leaves"]["k"]["pages"] == {
        "total": number_of_pages("k"),
        "read": number_of_pages("k"),
    }
    assert report["leaves"]["b"]["pages"]["read"] == 1
    assert report["leaves"]["c"]["pages"] == {"total": number_of_pages("c"), "read": 1}
    assert report["rows"]["read"] == ROWS
    assert "column_index" not in report["pages"]["pruned_by"]


CONDITIONS = {
    "none": None,
    "key": ps.col("k") == 20_000,
    "range": ps.col("k").between(7_000, 31_000),
    "dense": ps.col("v") >= 20,
    "scattered": ps.col("v") == 77,
    "both": (ps.col("k") < 60_000) & (ps.col("v") == 50),
    "either": (ps.col("k") < 500) | (ps.col("w") == 123),
    "three": (ps.col("k") > 500) & (ps.col("v") == 3) & (ps.col("w") < 100),
    "nothing": (ps.col("v") == 3) & (ps.col("w") == 100_000),
    "all": ps.col("k") >= 0,
    "constant": ps.col("k") == None,  # noqa: E711
}


@pytest.fixture(scope="module", params=["indexed", "plain"])
def grouped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six row groups, gzip, without dictionaries; with and without a page index."""
    dice = np.random.default_rng(3)
    table = pa.table(
        {
            "k": pa.array(np.arange(30_000) * 2),
            "v": pa.array(dice.integers(0, 100, 30_000)),
            "w": pa.array(dice.integers(0, 10_000, 30_000)),
            "s": pa.array([f"text {i}" for i in range(30_000)]),
        }
    )
    path = tmp_path_factory.mktemp("report") / "grouped.parquet"
    pq.write_table(
        table,
        path,
        compression="gzip",
        use_dictionary=False,
        row_group_size=5_000,
        write_page_index=request.param == "indexed",
        data_page_size=3_000,
        write_batch_size=100,
    )
    return str(path)


@pytest.mark.covering(1)
@pytest.mark.parametrize("limit", [None, 0, 1, 700, 7_000])
@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_every_page_row_and_byte_is_accounted_for(
    grouped: str, condition: Any, limit: int | None, log: Log, inflated: list[int]
) -> None:
    scan = ps.scan(grouped, filter=condition, limit=limit)
    analyze(scan, log, limit is not None)
    inflated.clear()
    report = scan.explain(analyze=True).to_dict()
    consistent(report, limit is not None)
    assert report["pages"]["read"] == len(inflated)
    decoded = sum(leaf["rows_decoded"] for leaf in report["leaves"].values())
    assert decoded <= report["rows"]["read"] * len(report["leaves"])
    if limit is None or report["rows"]["out"] < limit:
        assert report["rows"]["out"] == ps.scan(grouped, filter=condition).count_rows()


def test_dictionary_pages_and_their_bytes_are_counted(
    tmp_path: Path, log: Log, inflated: list[int]
) -> None:
    values = [i % 40 for i in range(6_000)]
    columns = [
        Column("k", INT32, list(range(6_000)), [500] * 12, codec="gzip"),
        Column(
            "d",
            INT32,
            values,
            [1_000] * 6,
            encodings=["dictionary"] * 3 + ["plain"] * 3,
            codec="gzip",
        ),
    ]
    path = tmp_path / "dictionary.parquet"
    path.write_bytes(write(columns, padding=PADDING))
    for key, dictionaries in ((100, 1), (5_500, 0)):
        scan = ps.scan(path, filter=ps.col("k") == key, columns=["d"])
        analyze(scan, log)
        inflated.clear()
        log.clear()
        report = scan.explain(analyze=True).to_dict()
        assert report["leaves"]["d"]["dictionary_pages"] == dictionaries
        assert len(inflated) == 2 + dictionaries
        assert sum(leaf["bytes"] for leaf in report["leaves"].values()) == report["bytes"]["data"]
        assert report["bytes"]["data"] == sum(n for _, n in log.ranges)


def test_a_report_given_to_execute_is_counted_page_by_page(flat: str) -> None:
    report = ps.Report(analyzed=True)
    assert repr(report) == str(report)
    plan = ps.scan(flat, filter=ps.col("k") == 40_000).plan()
    assert sum(batch.num_rows for batch in plan.execute(report)) == 1
    counts = report.to_dict()
    assert counts["rows"]["read"] == plan.num_rows
    assert {
        path: leaf["pages"]["read"] for path, leaf in counts["leaves"].items()
    } == dict.fromkeys(CUTS, 1)


def test_plans_carry_sums_and_no_record_of_every_chunk(grouped: str) -> None:
    plan = ps.scan(grouped, filter=ps.col("v") == 3).plan()
    assert plan.report.chunks is None
    counts = plan.report.to_dict()
    assert counts["leaves"]["v"]["pages"]["total"] > 0
    assert counts["pages"]["total"] == sum(
        leaf["pages"]["total"] for leaf in counts["leaves"].values()
    )
