"""Files that change, are damaged or go away while Spark's own reader is the one that reads them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import FileChangedError
from pageseek.spark import load, read, report
from pageseek.spark.table import native, native_files

pytestmark = pytest.mark.spark

ROWS = 24_000
Change = Callable[[Path], object]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's reader is taken for few rows, too."""
    monkeypatch.setattr(native, "MANY_VALUES", 1000)
    monkeypatch.setattr(native, "FILE_SECONDS", 0.0)


def write(path: Path, step: int = 1) -> None:
    """A file of eight row groups. `step`: -1 gives the same bytes in another order, in as many bytes."""
    numbers = np.arange(ROWS)[::step].copy()
    table = pa.table({"a": numbers, "b": numbers})
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=ROWS // 8)


def rewrite(path: Path) -> None:
    size = path.stat().st_size
    write(path, -1)
    assert path.stat().st_size == size


def replace_unseen(path: Path) -> None:
    """Another file with the same size and time: its inode alone tells."""
    was = path.stat()
    other = path.with_name("other")
    write(other, -1)
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.replace(path)


def sums(frame: Any) -> list[int]:
    return sorted(row.c for row in frame.selectExpr("a + b as c").collect())


@pytest.mark.covering(2)
@pytest.mark.parametrize("change", [rewrite, replace_unseen, Path.unlink])
@pytest.mark.parametrize("function", [load, read])
@pytest.mark.parametrize("before", ["collect", "explain"])
def test_each_action_compares_the_versions_of_the_files(
    spark: Any, tmp_path: Path, change: Change, function: Any, before: str
) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    found = function(spark, str(tmp_path)).where("a < 9000").selectExpr("a + b as c")
    assert "leaves to Spark's reader" in found._jdf.queryExecution().toString()
    getattr(found, before)()
    change(path)
    with pytest.raises(Exception, match=r"FileChangedError: .*a\.parquet: the file changed after"):
        found.collect()
    if path.exists():
        assert sums(function(spark, str(tmp_path)).where("a < 9000")) == list(range(0, 18_000, 2))


def test_times_that_a_file_may_have(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    for seconds in (
        10_413_792_000,
        9_223_372_036,
        -1,
        0,
    ):  # the first as nanoseconds exceeds 64 bits: Java tells microseconds then
        os.utime(path, ns=(0, seconds * 10**9 + 123_456_000))
        found = load(spark, str(tmp_path)).where("a < 9000")
        assert "leaves to Spark's reader" in found._jdf.queryExecution().toString()
        assert sums(found) == list(range(0, 18_000, 2)), seconds


def test_a_folder_that_became_a_file_is_a_change(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "k=1"
    folder.mkdir()
    write(folder / "a.parquet")
    found = load(spark, str(tmp_path)).where("a < 9000").selectExpr("a + b as c")
    assert len(found.collect()) == 9000
    shutil.rmtree(folder)
    folder.touch()
    with pytest.raises(Exception, match=r"FileChangedError: .*a\.parquet: the file changed after"):
        found.collect()


def test_a_file_that_changes_while_a_query_is_planned_is_an_error(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    places = native_files.folders_of

    def changing(plan: Any) -> Any:
        rewrite(path)
        return places(plan)

    monkeypatch.setattr(native_files, "folders_of", changing)
    with pytest.raises(Exception, match=FileChangedError.__name__):
        load(spark, str(tmp_path)).where("a < 9000").collect()


def test_rows_that_spark_has_cached_need_no_file(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    cached = load(spark, str(tmp_path)).where("a < 9000").cache()
    expected = sums(cached)
    rewrite(tmp_path / "a.parquet")
    assert sums(cached) == expected == list(range(0, 18_000, 2))
    cached.unpersist()


def test_rows_of_which_spark_has_cached_a_part_are_not_mixed_with_those_of_other_files(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
) -> None:
    """A task of several partitions finds some in the cache, and reads the files of others."""
    conf("spark.sql.files.maxPartitionBytes", "100000")
    conf("spark.sql.files.openCostInBytes", "100000")
    for name in "abcd":
        write(tmp_path / f"{name}.parquet")
    cached = load(spark, str(tmp_path)).where("a < 9000").cache()
    together = cached.coalesce(1)._jdf.javaRDD()
    assert together.rdd().getNumPartitions() == 1
    together.take(1)  # of the first file alone
    for name in "abcd":
        rewrite(tmp_path / f"{name}.parquet")
    with pytest.raises(Exception, match=r"FileChangedError: .*\.parquet: the file changed after"):
        together.collect()
    cached.unpersist()


@pytest.mark.parametrize("how", ["product", "union"])
def test_a_changed_file_beside_cached_rows_is_an_error(
    spark: Any, tmp_path: Path, conf: Any, how: str
) -> None:
    """Spark runs such tasks where the cached rows are, and does not ask where the file had best be read."""
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    path = tmp_path / "a.parquet"
    write(path)
    cached = spark.range(3).selectExpr("id + 100000 as x").cache()
    cached.count()
    ours = load(spark, str(tmp_path)).where("a < 9000").select("a")
    both = cached.crossJoin(ours) if how == "product" else cached.union(ours).coalesce(1)
    assert ("CartesianProduct" in both._jdf.queryExecution().toString()) == (how == "product")
    assert len(both.collect()) == (27_000 if how == "product" else 9003)
    rewrite(path)
    with pytest.raises(Exception, match=r"FileChangedError: .*a\.parquet: the file changed after"):
        both.collect()
    cached.unpersist()


def test_names_are_those_of_the_call_if_case_begins_to_matter(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
) -> None:
    from pageseek.spark import register

    register(spark, catalog=None)  # sessions send their settings to executors
    write(tmp_path / "a.parquet")
    found = spark.read.format("pageseek").schema("A long, B long").load(str(tmp_path))
    assert "leaves to Spark's reader" in found._jdf.queryExecution().toString()
    conf("spark.sql.caseSensitive", "true")
    assert found.where("A >= 9000").count() == ROWS - 9000


def test_executors_get_nothing_but_sparks_own_classes(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    rows = load(spark, str(tmp_path)).where("a < 9000")._jdf.queryExecution().toRdd()
    serialize = spark._jvm.org.apache.spark.util.Utils.serialize
    sent = bytes(serialize(rows))
    assert b"ParquetPartitionReaderFactory" in sent
    sent = sent.replace(b"io.pageseek.spark.PageseekCatalog", b"")  # a setting of the session
    assert b"io.pageseek" not in sent
    sent = b"".join(bytes(serialize(one)) for one in rows.partitions())
    assert b"FilePartition" in sent
    assert b"io.pageseek" not in sent


def test_reports_say_that_sparks_reader_is_not_tied_to_versions(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    for given, version in ({}, "weak"), ({"native": False}, "strong"):
        frame = load(spark, str(tmp_path), **given).where("a < 9000")
        frame.collect()
        assert report(frame).to_dict()["version"] == version


@pytest.mark.parametrize("function", [load, read])
def test_no_rows_of_a_damaged_file_are_missing_silently(
    spark: Any, tmp_path: Path, conf: Any, function: Any
) -> None:
    conf("spark.sql.files.ignoreCorruptFiles", "true")
    write(tmp_path / "a.parquet")
    shutil.copy(tmp_path / "a.parquet", tmp_path / "b.parquet")
    with (tmp_path / "b.parquet").open("r+b") as file:
        file.seek(4)  # the header of the first page
        file.write(b"\xff" * 64)
    assert len(spark.read.parquet(str(tmp_path)).selectExpr("a + b").collect()) < 2 * ROWS
    found = function(spark, str(tmp_path)).selectExpr("a + b")
    assert "leaves to Spark's reader" in found._jdf.queryExecution().toString()
    with pytest.raises(Exception, match=r"b\.parquet"):
        found.collect()


def test_no_rows_of_a_missing_file_are_missing_silently(
    spark: Any, tmp_path: Path, conf: Any
) -> None:
    conf("spark.sql.files.ignoreMissingFiles", "true")
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet")
    found = load(spark, str(tmp_path)).selectExpr("a + b")
    found.explain()
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(Exception, match=r"b\.parquet"):
        found.collect()
