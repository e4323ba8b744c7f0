"""What Spark's reader of Parquet has options for, and how the same rows are had of `load`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import UnsupportedError
from pageseek.spark import load, read

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Two days, the second with one more column and a folder inside; a file of another name; one that is an hour old."""
    for day, name, table in (
        ("day=1", "a.parquet", pa.table({"k": [1, 2]})),
        ("day=2", "b.parquet", pa.table({"k": [3], "more": ["x"]})),
        ("day=2/inner", "c.parquet", pa.table({"k": [4], "more": ["y"]})),
        ("day=2", "other.data", pa.table({"k": [5], "more": ["z"]})),
    ):
        (tmp_path / day).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, tmp_path / day / name)
    os.utime(tmp_path / "day=1" / "a.parquet", (1_500_000_000,) * 2)
    return str(tmp_path)


def same(ours: Any, theirs: Any) -> None:
    assert sorted(ours.columns) == sorted(theirs.columns)
    names = sorted(ours.columns)
    found, wanted = (sorted(map(str, one.select(*names).collect())) for one in (ours, theirs))
    assert found == wanted
    assert found


def test_other_columns_and_deep_folders_are_read_without_an_option(spark: Any, lake: str) -> None:
    theirs = spark.read.option("mergeSchema", "true").option("pathGlobFilter", "*.parquet")
    same(load(spark, lake).where("day = 1"), theirs.parquet(lake).where("day = 1"))
    deep = theirs.option("recursiveFileLookup", "true").parquet(lake)
    same(load(spark, lake, partitioning=False), deep)


def test_a_glob_takes_the_place_of_a_filter_of_names(spark: Any, lake: str) -> None:
    theirs = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.data")
    ours = load(spark, f"{lake}/**/*.data", partitioning=False)
    same(ours, theirs.parquet(lake))
    assert load(spark, f"{lake}/*/*.data").collect()[0]["day"] == 2


def test_the_folder_itself_takes_the_place_of_a_base_path(spark: Any, lake: str) -> None:
    theirs = spark.read.option("basePath", lake).parquet(f"{lake}/day=1")
    same(load(spark, f"{lake}/day=1*/*.parquet"), theirs)


def test_the_time_of_a_file_is_a_filter(spark: Any, lake: str) -> None:
    for option, sign in (("modifiedBefore", "<"), ("modifiedAfter", ">")):
        theirs = spark.read.option("recursiveFileLookup", "true")
        theirs = theirs.option("pathGlobFilter", "*.parquet").option(option, "2020-01-01T00:00:00")
        ours = load(spark, lake, partitioning=False).where(
            f"_metadata.file_modification_time {sign} '2020-01-01'"
        )
        same(ours.select("k"), theirs.parquet(lake).select("k"))


def test_an_option_of_sparks_reader_says_what_there_is_instead(spark: Any, lake: str) -> None:
    for given in ({"mergeSchema": "true"}, {"ignoreCorruptFiles": True}):
        with pytest.raises(UnsupportedError, match=r"does not exist: .* always"):
            load(spark, lake, **given)


def test_a_glob_of_folders_is_told_how_to_name_their_files(spark: Any, lake: str) -> None:
    with pytest.raises(FileNotFoundError, match="a glob of folders ends in"):
        load(spark, f"{lake}/day=*")
    assert load(spark, f"{lake}/day=2*/**/*.parquet").count() == 2


def test_int96_of_other_writers_is_not_moved_by_a_zone(
    spark: Any, conf: Any, tmp_path: Path
) -> None:
    times = pa.array([0, 1], pa.timestamp("us"))
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"t": times}), path, use_deprecated_int96_timestamps=True)
    spark.sql("select timestamp '2020-01-01' t").write.parquet(str(tmp_path / "own"))
    assert load(spark, path).count() == 2
    conf("spark.sql.parquet.int96TimestampConversion", "true")
    for read_by in (load, read):
        with pytest.raises(UnsupportedError, match="int96TimestampConversion"):
            read_by(spark, path)
        same(read_by(spark, str(tmp_path / "own")), spark.read.parquet(str(tmp_path / "own")))
