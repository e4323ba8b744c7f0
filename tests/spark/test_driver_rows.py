"""Rows that the driver reads, handed to the JVM in calls or by a file: those of Spark's reader, without a job."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from pageseek.spark import load
from pageseek.spark.table import local
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
