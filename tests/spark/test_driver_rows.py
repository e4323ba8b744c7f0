"""Rows that the driver reads, handed to the JVM in calls or by a file: those of Spark's reader, without a job."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, report
from pageseek.spark.filters.binding import Binding
from pageseek.spark.table import local
from pageseek.spark.tasks.expected import expected_rows, likely_bytes
from support.spark_folder import write_folder

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("driver")
    write_folder(made)
    return str(made)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of temporary folders that were made."""
    names: list[str] = []

    class Noted(tempfile.TemporaryDirectory[str]):
        def __enter__(self) -> str:
            names.append(super().__enter__())
            return names[-1]

    monkeypatch.setattr(local, "TemporaryDirectory", Noted)
    return names


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.parametrize("most", [0, 1 << 30], ids=["file", "call"])
@pytest.mark.parametrize("batch", [7, 10_000])
def test_either_way_gives_the_rows_of_sparks_reader(
    spark: Any,
    folder: str,
    files: list[str],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    batch: int,
) -> None:
    monkeypatch.setattr(local, "CALL_BYTES", most)
    monkeypatch.setattr(local, "_BATCH", batch)
    for condition in ("k < 3000", "k < 0", "k = 7 and s is not null"):
        ours = load(spark, folder).where(condition)
        assert rows(ours) == rows(spark.read.parquet(folder).where(condition))
        assert "LocalTableScan" in ours._jdf.queryExecution().executedPlan().toString()
    assert bool(files) is (most == 0)
    assert not any(Path(name).exists() for name in files)
    assert load(spark, folder).where("k < 3000").selectExpr("sum(k)").first()[0] == 2999 * 1500


def test_a_session_that_encrypts_its_files_gets_none(
    spark: Any, folder: str, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "CALL_BYTES", 0)
    monkeypatch.setattr(spark.sparkContext, "_encryption_enabled", True)
    assert len(load(spark, folder).where("k < 300").collect()) == 300
    assert files == []


def test_a_driver_that_can_write_no_file_gives_the_rows_too(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "CALL_BYTES", 0)
    monkeypatch.setattr(tempfile, "tempdir", f"{folder}/none")
    assert len(load(spark, folder).where("k < 300").collect()) == 300


SCATTERED = local.MOST_ROWS + 10_000  # so many rows that what may pass does not fit the driver


@pytest.fixture(scope="module")
def scattered(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`v` has each of its values a few times, `much` one nearly everywhere, `same` one only, and each `uid` occurs once."""
    made = tmp_path_factory.mktemp("scattered") / "0.parquet"
    k = np.arange(SCATTERED)
    much = np.full(SCATTERED, 17)
    much[::50_000] = 0  # in each row group
    much[1::50_000] = 1 << 30
    random = np.random.default_rng(1)
    table = {
        "k": k,
        "v": random.integers(0, SCATTERED // 4, SCATTERED),
        "much": much,
        "same": ["one"] * SCATTERED,
        "uid": [str(uuid.UUID(bytes=random.bytes(16))) for _ in k],
    }
    pq.write_table(
        pa.table(table), made, use_dictionary=False, compression="zstd", row_group_size=100_000
    )
    return str(made)


def is_local(frame: Any) -> bool:
    return "LocalTableScan" in frame._jdf.queryExecution().executedPlan().toString()


def test_few_rows_of_many_that_are_quickly_read_take_no_job(spark: Any, scattered: str) -> None:
    uid = pq.read_table(scattered, columns=["uid"]).column("uid")[SCATTERED // 2].as_py()
    for condition in ("v = 17", f"uid = '{uid}'", "same = 'one' and v in (4, 5)"):
        frame, own = (f(scattered).where(condition) for f in (loader(spark), spark.read.parquet))
        assert is_local(frame), condition
        assert 0 < len(frame.collect()) < 50
        assert rows(frame) == rows(own), condition
        read = report(frame).to_dict()
        assert 100_000 <= read["rows"]["read"] <= SCATTERED  # more than the driver holds
        assert read["rows"]["out"] == own.count()
    assert not is_local(load(spark, scattered, local=False).where("v = 17"))


def loader(spark: Any) -> Any:
    return lambda path: load(spark, path, native=False)


def test_rows_that_are_more_than_expected_are_read_by_tasks(spark: Any, scattered: str) -> None:
    frame = loader(spark)(scattered).where("much = 17")
    assert not is_local(frame)
    passing = sum(k % 50_000 > 1 for k in range(SCATTERED))
    assert frame.count() == passing
    made = frame.selectExpr("sum(k)", "count(distinct uid)").first()
    assert list(made) == [sum(k for k in range(SCATTERED) if k % 50_000 > 1), passing]
    frame.collect()
    alone = load(spark, scattered, native=False, local=False).where("much = 17")
    alone.collect()
    both, tasks = (report(one).to_dict() for one in (frame, alone))
    assert sum(both["bytes"].values()) > 1.2 * sum(tasks["bytes"].values())
    assert both["rows"]["out"] == tasks["rows"]["out"] == passing
    assert any("the driver had begun" in note for note in both["notes"])


def test_what_takes_as_long_as_a_job_is_read_by_tasks(
    spark: Any, scattered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SECONDS", 0.001)
    assert not is_local(loader(spark)(scattered).where("v = 17"))


@pytest.mark.parametrize(
    ("condition", "least", "most"),
    [
        ("same = 'one'", SCATTERED, SCATTERED),  # the only value
        ("uid = 'a0'", 1, 2),  # nothing of them recurs
        ("v = 17", 2, 8),
        ("same = 'one' and v = 17", 2, 8),
        ("same = 'two'", 0, 0),  # the statistics rule it out
        ("not uid = 'a0'", SCATTERED - 2, SCATTERED),
    ],
)
def test_how_many_rows_are_expected(
    spark: Any, scattered: str, condition: str, least: int, most: int
) -> None:
    scan = ps.scan(scattered).filter(condition)
    columns = Binding(spark, scan).columns
    assert least <= expected_rows(scan.plan(), columns) <= most


def test_the_files_that_are_left_tell_how_many_rows_are_expected(spark: Any, folder: str) -> None:
    """`k` ascends through all files: a value that occurs once is in one of them."""
    scan = ps.scan(folder).filter("k = 7")
    plan = scan.plan()
    assert len(plan.files) == 1 < plan.report.files.total
    assert expected_rows(plan, Binding(spark, scan).columns) <= 2


def test_pages_of_other_columns_count_as_far_as_rows_pass(scattered: str) -> None:
    plan = ps.scan(scattered).filter("v = 17").plan()
    sizes = {path: leaf.bytes for path, leaf in plan.report.leaves.items()}
    assert likely_bytes(plan, 10**6) == plan.cost == sum(sizes.values())
    assert sizes["v"] <= likely_bytes(plan, 1) < sizes["v"] + (plan.cost - sizes["v"]) // 3
    assert likely_bytes(ps.scan(scattered).plan(), 1) == ps.scan(scattered).plan().cost
