"""What planning costs on the driver: files that are opened, and calls of the JVM."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import load, lookup
from pageseek.spark.filters.binding import Binding
from pageseek.spark.lookups import lookup as key_lookup
from pageseek.spark.session.names import Columns
from pageseek.spark.table import native

pytestmark = pytest.mark.spark
FILES, ROWS = 60, 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("many")
    for i in range(FILES):
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        pq.write_table(pa.table({"k": k, "x": k / 4}), made / f"{i:02d}.parquet")
    return str(made)


def test_a_few_files_of_a_schema_tell_who_reads_them(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "MANY_VALUES", 1000)
    monkeypatch.setattr(native, "FILE_SECONDS", 0.0)
    opened: list[str] = []
    really = Columns.open

    def count(self: Columns, source: Any) -> Any:
        opened.append(source.path)
        return really(self, source)

    monkeypatch.setattr(Columns, "open", count)
    frame = load(spark, folder).where(f"k >= {10 * ROWS}")
    assert "leaves to Spark's reader 50 of 60 files" in frame._jdf.queryExecution().executedPlan().toString()  # fmt: skip
    assert frame.groupBy().sum("k").collect()[0][0] == sum(range(10 * ROWS, FILES * ROWS))
    assert 0 < len(set(opened)) < 10


def test_a_file_of_another_schema_among_many_is_seen(
    spark: Any, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's reader would take its column for one of the type that the others have."""
    monkeypatch.setattr(native, "MANY_VALUES", 1000)
    monkeypatch.setattr(native, "FILE_SECONDS", 0.0)
    for i in range(FILES):
        k = pa.array(range(ROWS), pa.int32() if i == 41 else pa.int64())
        pq.write_table(pa.table({"k": k}), tmp_path / f"{i:02d}.parquet")
    frame = load(spark, str(tmp_path))
    assert "pageseek reads 60 of 60 files" in frame._jdf.queryExecution().executedPlan().toString()
    assert frame.groupBy().sum("k").collect()[0][0] == FILES * sum(range(ROWS))


def test_the_second_frame_of_a_session_asks_the_jvm_five_times(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.clientserver import ClientServerConnection

    load(spark, folder)
    calls: list[str] = []
    really = ClientServerConnection.send_command

    def count(self: Any, command: str) -> Any:
        if not command.startswith("m\nd\n"):  # it lets go of an object
            calls.append(command)
        return really(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", count)
    frame = load(spark, folder)
    monkeypatch.undo()
    assert frame.where("k = 7").count() == 1
    assert len(calls) <= 5


def test_files_that_are_added_to_the_context_reach_later_tasks(
    spark: Any, folder: str, tmp_path: Path
) -> None:
    """What the executors' Python gets along is not that of the first frame."""
    from pageseek.spark.table.shim import python_of

    before = python_of(spark)
    assert python_of(spark) is before
    with zipfile.ZipFile(tmp_path / "added.zip", "w") as made:
        made.writestr("pageseek_added.py", "here = 1\n")
    spark.sparkContext.addPyFile(str(tmp_path / "added.zip"))
    assert python_of(spark) is not before


def test_each_condition_is_translated_once_for_a_query(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark asks which ones are applied here, and then for the plan."""
    translated: list[Any] = []
    really = Binding.checked

    def count(self: Binding, given: Any) -> Any:
        translated.append(given)
        return really(self, given)

    monkeypatch.setattr(Binding, "checked", count)
    for condition, rows in (("k = 7 and x < 3", 1), ("x > 0 and k in (7, 8)", 2)):
        translated.clear()
        assert len(load(spark, folder).where(condition).collect()) == rows
        assert len(translated) == len(set(map(repr, translated))) >= 2
    frame = load(spark, folder).where("k = 7").select("k", "_metadata.file_name")
    assert [list(row) for row in frame.collect()] == [[7, "00.parquet"]]


def test_keys_that_spark_has_counted_are_taken_without_a_limit(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit shuffles them. Of a file and of a filter Spark has a guess at most, and more keys than the limit are joined by Spark."""
    pq.write_table(pa.table({"k": np.arange(1_000)}), tmp_path / "a.parquet")
    told: list[bool] = []
    really = key_lookup._are_few

    def noted(frame: Any, limit: int) -> bool:
        told.append(really(frame, limit))
        return told[-1]

    monkeypatch.setattr(key_lookup, "_are_few", noted)
    keys = spark.createDataFrame(pa.table({"k": [3, 5, 999, 5_000]}))
    cached = spark.range(900).withColumnRenamed("id", "k").cache()
    cached.count()
    for frame, limit, few, rows in [
        (keys, 10, True, 3),
        (keys, 3, False, 3),
        (cached, 900, True, 900),
        (cached, 899, False, 900),
        (spark.range(10).withColumnRenamed("id", "k"), 10, None, 10),
        (spark.read.parquet(str(tmp_path)).where("k % 100 = 0"), 100, False, 10),
    ]:
        told.clear()
        found = lookup(spark, str(tmp_path), frame, "k", broadcast_limit=limit).collect()
        assert len(found) == rows
        assert len(told) == 1
        if few is not None:  # whether a range has a name of its own differs
            assert told == [few], frame
    cached.unpersist()


def test_a_worker_freezes_what_it_has_imported_once() -> None:
    """Modules are not searched for garbage again and again; what a task makes is."""
    code = (
        "import gc; from pageseek.spark.tasks.task import begin_task; before = gc.get_freeze_count(); begin_task();"
        "one = gc.get_freeze_count(); made = [[i] for i in range(9000)]; begin_task(); print(before, one > 1000, gc.get_freeze_count() <= one)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["0", "True", "True"], done.stderr
