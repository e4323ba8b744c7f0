"""Small files of a plan that is executed elsewhere: read as one, with the rows, files, counts and errors of single ones."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.many_files import (
    footer_batches,
    homogeneous_files,
    joined_files,
    planned_footers,
)
from pageseek.scanning.plans import planner
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.spark.calendar.calendar_marks import Calendars, Modes
from pageseek.spark.tasks.metrics import joined
from pageseek.spark.tasks.task import execute, new_report
from support.small_files import ROWS, N, learn_joined, table, write_alike, write_different

pytestmark = pytest.mark.usefixtures("scans")

CONDITIONS = [
    None,
    ps.col("id").between(333, 1_444),
    ps.col("city") == "city 3",
    (ps.col("city") == "city 3") & (ps.col("value") > 0.5),
    ps.col("value") < 0.01,
    ps.col("id") < 0,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_alike(tmp_path)
    return tmp_path


@pytest.fixture
def as_one(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files are scanned as one, each time."""
    return learn_joined(monkeypatch)


def shipped(plan: ScanPlan) -> ScanPlan:
    """The plan as another process gets it."""
    ps.clear_cache()
    again: ScanPlan = pickle.loads(pickle.dumps(plan))
    return again


def rows_of(plan: ScanPlan) -> pa.Table:
    return pa.Table.from_batches(plan.execute(), plan.schema)


def whole(source: Any, condition: Any = None) -> pa.Table:
    """The rows by a read that joins no files."""
    scan = ps.scan(source, filter=condition, prune=False).with_row_number("row")
    return scan.to_table().drop_columns("row")


def pages_of(report: Any) -> dict[str, tuple[int, ...]]:
    return {
        name: (leaf.bytes, leaf.pages_total, leaf.pages_read, leaf.rows_decoded)
        for name, leaf in report.tally()[1].items()
    }


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_rows_are_those_of_files_that_are_read_one_by_one(
    folder: Path, as_one: list[int], condition: Any, threads: int
) -> None:
    wanted = whole(str(folder), condition)
    plan = ps.scan(str(folder), filter=condition, threads=threads).plan()
    assert rows_of(shipped(plan)).equals(wanted)
    assert sum(as_one) == max(len(plan.files) - 1, 0)  # the first tells how the others are read
    parts = [shipped(part) for part in plan.split(3)]
    found = [rows_of(part) for part in parts]
    together = pa.concat_tables(found) if found else wanted
    assert together.sort_by("id").equals(wanted)


def test_the_file_of_each_batch_is_told_unless_several_may_come_together(
    folder: Path, as_one: list[int]
) -> None:
    plan = ps.scan(str(folder), filter="value < 0.9").plan()
    wanted = whole(str(folder), ps.col("value") < 0.9)

    def check(pairs: list[tuple[Any, pa.RecordBatch]]) -> None:
        assert pa.Table.from_batches([batch for _, batch in pairs]).equals(wanted)
        for file, batch in pairs:
            number = int(Path(file.source.name).stem)
            assert set((np.asarray(batch["id"]) // ROWS).tolist()) == {number}

    check(list(shipped(plan).execute_by_file()))
    assert not as_one
    asked: list[pa.Table] = []

    def refused(some: pa.Table, scan: Any) -> bool:
        asked.append(some)
        return False

    report = new_report()
    check(list(shipped(plan).execute_by_file(report, refused)))
    assert as_one
    assert pa.concat_tables(asked).num_rows == wanted.num_rows - np.sum(
        np.asarray(wanted["id"]) < ROWS
    )
    assert report.rows_out == wanted.num_rows
    assert (report.files.read, report.row_groups.read) == (N, N)
    assert report.rows.read == N * ROWS
    alone = new_report()
    for _ in shipped(plan).execute_by_file(alone):
        pass
    assert pages_of(report) == pages_of(alone)


@pytest.mark.parametrize("condition", CONDITIONS[:-1], ids=str)
def test_reports_are_those_of_files_that_are_read_one_by_one(
    folder: Path, condition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ps.scan(str(folder), filter=condition, threads=1).plan()
    told = []
    for least in (2, 10_000):
        monkeypatch.setattr(joined_files, "FEWEST_FILES", least)
        report = new_report()
        for _ in shipped(plan).execute(report):
            pass
        made = joined(plan.report, [report])
        chunks = {
            key: (chunk.bytes, chunk.pages_total, chunk.pages_read, chunk.dictionary_pages)
            for key, chunk in (made.chunks or {}).items()
        }
        told.append((made.files, made.row_groups, made.rows, made.rows_out, made.executed, chunks))
    assert told[0] == told[1]
    assert len(told[0][4]) == len(plan.files)


def test_files_that_are_large_or_differ_are_read_by_themselves(
    tmp_path: Path, as_one: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homogeneous_files, "SMALL_GROUP_ROWS", 60)
    write_different(tmp_path, 7, (1, 5, ROWS, ROWS, ROWS, 3 * ROWS), (20, 1000))
    for condition in (*CONDITIONS, ps.col("day") == 2, (ps.col("day") != 1) & (ps.col("id") > 250)):
        wanted = whole(str(tmp_path), condition)
        for threads in (1, 2):
            plan = ps.scan(str(tmp_path), filter=condition, threads=threads).plan()
            assert rows_of(shipped(plan)).equals(wanted), condition
    assert sum(as_one) > 3 * N


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_changed_after_it_was_planned(folder: Path, threads: int) -> None:
    plan = shipped(ps.scan(str(folder), threads=threads).plan())
    victim = folder / "017.parquet"
    pq.write_table(table(99), victim)
    os.utime(victim, (7, 7))
    got: list[pa.RecordBatch] = []
    with pytest.raises(ps.FileChangedError, match=r"017\.parquet"):
        got.extend(plan.execute())
    assert sum(batch.num_rows for batch in got) == 17 * ROWS
    victim.unlink()
    got.clear()
    with pytest.raises(FileNotFoundError, match=r"017\.parquet"):
        got.extend(plan.execute())
    assert sum(batch.num_rows for batch in got) == 17 * ROWS


def test_a_value_that_spark_has_no_room_for_is_named_with_its_file(
    tmp_path: Path, as_one: list[int]
) -> None:
    for i in range(N):
        when = np.datetime64("300000-01-01" if i == 17 else "2000-01-01", "ms")
        pq.write_table(
            pa.table({"t": pa.array(np.full(ROWS, when), pa.timestamp("ms")), "id": range(ROWS)}),
            tmp_path / f"{i:03}.parquet",
        )
    plan = shipped(ps.scan(str(tmp_path)).plan())
    wire = pa.schema([("t", pa.timestamp("us")), ("id", pa.int64())])
    got: list[pa.RecordBatch] = []
    with pytest.raises(ps.UnsupportedError, match=r"017\.parquet: column 't'"):
        got.extend(execute(plan, wire, None, new_report()))
    assert sum(batch.num_rows for batch in got) == 17 * ROWS
    assert as_one


def test_of_many_small_files_few_are_asked_for_pages(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = ps.scan(str(folder), filter="city = 'city 33'")
    wanted = whole(str(folder), ps.col("city") == "city 3")
    assert not scan.plan().files  # their dictionaries lack it
    monkeypatch.setattr(planner, "MOST_ASKED", 5)
    asked = scan.plan()
    assert N - 7 < len(asked.files) < N
    assert f"of {len(asked.files)} small files were not asked" in "".join(asked.report.notes)
    assert rows_of(shipped(asked)).num_rows == 0
    monkeypatch.setattr(planner, "MOST_ASKED", 0)
    none = scan.plan()
    assert 0 == none.report.bytes["index"] < asked.report.bytes["index"]
    plan = ps.scan(str(folder), filter="city = 'city 3'").plan()
    assert rows_of(shipped(plan)).equals(wanted)


def test_footers_of_few_or_large_files_are_not_read_beforehand(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ps.scan(str(folder)).plan()
    few = plan.files[: planned_footers.FEWEST_FILES - 1]
    assert planned_footers.PlannedFooters.of(plan.files, plan.request) is not None
    assert planned_footers.PlannedFooters.of(few, plan.request) is None
    monkeypatch.setattr(homogeneous_files, "SMALL_GROUP_ROWS", ROWS - 1)
    assert planned_footers.PlannedFooters.of(plan.files, plan.request) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_after_a_table_was_refused_files_are_read_by_themselves(
    folder: Path, as_one: list[int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_batches, "MAX_FILES", 16)
    plan = ps.scan(str(folder), threads=threads).plan()
    asked: list[int] = []

    def refused(some: pa.Table, scan: Any) -> bool:
        asked.append(some.num_rows)
        return False

    found = [batch for _, batch in shipped(plan).execute_by_file(None, refused)]
    assert pa.Table.from_batches(found).equals(whole(str(folder)))
    assert len(as_one) == len(asked) == 1


@pytest.mark.parametrize("legacy", [False, True])
def test_old_dates_are_read_as_one_where_no_file_has_another_calendar(
    tmp_path: Path, as_one: list[int], legacy: bool
) -> None:
    """Spark before 3.0 counted them by the Julian calendar."""
    days = pa.array([-171_499] * ROWS, pa.int32()).cast(pa.date32())  # 1500-06-12
    for i in range(N):
        pairs = {"org.apache.spark.version": "2.4.8"} if legacy and i == N - 1 else {}
        pq.write_table(
            pa.table({"day": days, "id": range(ROWS)}).replace_schema_metadata(pairs),
            tmp_path / f"{i:03}.parquet",
        )
    plan, report = shipped(ps.scan(str(tmp_path), threads=1).plan()), new_report()
    calendars = Calendars(Modes("CORRECTED", "CORRECTED"), {})
    found = pa.Table.from_batches(execute(plan, plan.schema, calendars, report))
    numbers = found["day"].cast(pa.int32()).to_pylist()
    assert numbers[: (N - 1) * ROWS] == [-171_499] * (N - 1) * ROWS
    assert numbers[(N - 1) * ROWS :] == [-171_499 - 10 * legacy] * ROWS
    assert as_one
    once = sum(leaf.bytes for leaf in report.tally()[1].values())
    # files of another calendar are read again, each by itself
    assert (report.bytes["data"] > 1.2 * once) == legacy
