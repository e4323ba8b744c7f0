"""Types and values of folders, compared with Spark's own reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import input_files, load, read, register
from pageseek.spark.session.settings import Settings
from pageseek.spark.sources.folders import inference

pytestmark = pytest.mark.spark
ALONE = (
    "1", "-1", "01", "1.5", "1.50", " 1.5", "1e5", "1d", "1.5f", "NaN", "nan", "-Infinity", "inf", ".5", "5.", "1_0",
    "99999999999", "99999999999999999999", "1" * 38, "1" * 39, "1e400", "true", "2024-01-01", "2024-1-1", "2024-01",
    "2024-02-30", "2024-01-01 12:00:00", "2024-01-01 12:00:00.1", "2024-01-01 12:00:00.123", "2024-01-01T12:00:00",
    "2024-01-01 12:00", "2024-01-01 24:00:00", "10000-01-01", "0001-01-01", "a b", "1 ", "null",
)  # fmt: skip
TOGETHER = (
    ("1", "99999999999"), ("1", "1.5"), ("99999999999", "1.5"), ("1", "99999999999999999999"),
    ("99999999999", "99999999999999999999"), ("99999999999999999999", "1.5"), ("2024-01-01", "2024-01-01 12:00:00"),
    ("2024-01-01", "1"), ("1.50", "a"), ("1", "01"), ("1", "__HIVE_DEFAULT_PARTITION__"), ("NaN", "1"), ("01", "a"),
    ("1.5", "__HIVE_DEFAULT_PARTITION__"), ("1e5", "100000"), ("2024-01-01 12:00:00", "1"),
)  # fmt: skip


def folders(root: Path, columns: dict[str, list[str]]) -> str:
    for i in range(max(map(len, columns.values()))):
        folder = root
        for name, texts in columns.items():
            folder /= f"{name}={quote(texts[i % len(texts)], safe=' ')}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": [i]}), folder / "0.parquet")
    return str(root)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_types_and_values_are_those_of_spark(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None], zone: str
) -> None:
    conf("spark.sql.session.timeZone", zone)
    columns = {f"c{i}": [text] for i, text in enumerate(ALONE)}
    columns |= {f"t{i}": list(texts) for i, texts in enumerate(TOGETHER)}
    for part in (list(columns)[:30], list(columns)[30:]):  # a path has a greatest length
        path = folders(tmp_path / part[0], {name: columns[name] for name in part})
        native = spark.read.parquet(path)
        ours = read(spark, path)
        assert ours.dtypes == native.dtypes
        texts = [f"cast({name} as string) {name}" for name in native.columns]
        wanted = sorted(map(repr, native.selectExpr(*texts).collect()))
        assert sorted(map(repr, ours.selectExpr(*texts).collect())) == wanted
        assert sorted(map(repr, load(spark, path).selectExpr(*texts).collect())) == wanted


GIVEN = (
    "2024-01-01", "2024-1-1", "2024-01", "2024", " 2024-01-01 ", "2024-01-01 10:00", "2024-01-01 10:00:00", "2024-03-10 02:30:00",
    "2024-11-03 01:30:00", "2024-01-01T10:00:00Z", "2024-01-01 10:00:00.123456", "2024-01-01 10:00:00.1234567", "2024-01-01 10:00:00+02:00",
    "2024-02-30", "2024-13-01", "20240101", "2024-01-01x", "abc", "1", "2024T", "2024 x", "2024-01 x", "2024-01-02 03",
    "2024-01-02 3:4", "2024-01-02T3:4:5.", "0999-01-01",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date", "binary", "string"])
def test_values_of_given_types_are_those_of_spark(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None], kind: str
) -> None:
    conf("spark.sql.session.timeZone", "America/New_York")
    register(spark)

    def rows(name: str, path: str) -> list[str] | None:
        reader = spark.read.schema(f"a long, p {kind}").format(name)
        try:
            return sorted(
                map(repr, reader.load(path).selectExpr("a", "cast(p as string)").collect())
            )
        except Exception:
            return None

    right = 0
    for i, text in enumerate(GIVEN):
        path = folders(tmp_path / str(i), {"p": [text]})
        wanted = rows("parquet", path)
        assert rows("pageseek", path) == wanted, text
        right += wanted is not None
    assert right >= 12
    both = folders(tmp_path / "both", {"p": ["2024-01-01", "2024-01-01 10:00:00"]})
    assert rows("pageseek", both) == rows("parquet", both)


def test_filters_on_folders(spark: Any, tmp_path: Path, conf: Callable[[str, str], None]) -> None:
    conf("spark.sql.session.timeZone", "America/New_York")
    columns = {
        "x": ["1.5", "NaN", "2.50"],
        "t": ["2024-01-01 12:00:00", "2024-06-01 12:00:00"],
        "n": ["99999999999999999999"],
    }
    path = folders(tmp_path, columns)
    native = spark.read.parquet(path)
    for condition in (
        "x = 1.5", "x > 2", "t = timestamp '2024-01-01 12:00:00'", "t < '2024-03-01'", "n > 5", "t >= date '2024-06-01'",
    ):  # fmt: skip
        wanted = sorted(native.where(condition).select("a").collect())
        assert sorted(read(spark, path, ["a"], condition).collect()) == wanted, condition
        assert sorted(load(spark, path).where(condition).select("a").collect()) == wanted, condition


def test_settings_of_inference(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
) -> None:
    path = folders(tmp_path, {"k": ["1", "2"], "t": ["2024-01-01 12:00:00"], "h": ["12:30:00.5"]})
    conf("spark.sql.timeType.enabled", "true")
    conf("spark.sql.timestampType", "TIMESTAMP_NTZ")
    for enabled in ("true", "false"):
        conf("spark.sql.sources.partitionColumnTypeInference.enabled", enabled)
        native = spark.read.parquet(path)
        assert read(spark, path).dtypes == native.dtypes
        assert sorted(read(spark, path).collect()) == sorted(native.collect())
    given = read(spark, path, partitioning={"k": pa.int64()})
    assert given.dtypes[1] == ("k", "bigint")
    assert read(spark, path, partitioning=False).columns == ["a"]


def test_the_folders_are_known_to_the_package_as_before(spark: Any, tmp_path: Path) -> None:
    path = folders(tmp_path, {"k": ["1.5"]})
    assert ps.scan(path).schema.field("k").type == pa.string()
    found = inference(Settings(spark), None)
    assert ps.scan(path, partitioning=found).to_table()["k"].to_pylist() == [1.5]


@pytest.mark.parametrize("inferred", ["true", "false"])
def test_folders_without_a_value_are_void(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None], inferred: str
) -> None:
    conf("spark.sql.sources.partitionColumnTypeInference.enabled", inferred)
    path = folders(tmp_path, {"n": ["__HIVE_DEFAULT_PARTITION__"], "d": ["1", "2"]})
    own = spark.read.parquet(path)
    for frame in (
        load(spark, path),
        load(spark, path, local=False, native=False),
        read(spark, path),
    ):
        assert frame.dtypes == own.dtypes
        for condition in ("n is null", "n is not null or a = 1", "n = 5", "d = 2 and n is null"):
            wanted = sorted(map(tuple, own.where(condition).collect()))
            assert sorted(map(tuple, frame.where(condition).collect())) == wanted
    assert read(spark, path, filter="n is null and a = 1").count() == 1


def test_escaped_names_and_values_are_those_of_spark(spark: Any, tmp_path: Path) -> None:
    path = folders(tmp_path, {"a+b": ["x+y", "x%y", "%2B", "a=b", "#", "a:b", "100%"]})
    own, ours = spark.read.parquet(path), load(spark, path)
    assert ours.columns == own.columns
    assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, own.collect()))
    assert [tuple(row) for row in ours.where("`a+b` = 'x+y'").collect()] == [(0, "x+y")]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_codes_in_names_are_signs_of_times_and_strings_only(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None], zone: str
) -> None:
    conf("spark.sql.session.timeZone", zone)
    names = ["%201", "1%20", "%2B49", "1e%2B20", "%31", "1%2E5", "2020%2D01%2D01", "2020-01-01 00%3A00%3A01", "%2D7"]  # fmt: skip
    for i, name in enumerate([*names, "7"]):
        for folder in (f"k={name}", f"k={names[i - 1]}"):  # alone, and beside another
            made = tmp_path / str(i) / folder
            made.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"a": [i]}), made / "0.parquet")
            path = str(tmp_path / str(i))
            own, ours = spark.read.parquet(path), load(spark, path)
            assert ours.dtypes == own.dtypes, folder
            assert sorted(map(str, ours.collect())) == sorted(map(str, own.collect())), folder


@pytest.mark.parametrize("sensitive", ["false", "true"])
def test_folders_stand_for_columns_of_the_files_where_spark_has_them(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None], sensitive: str
) -> None:
    conf("spark.sql.caseSensitive", sensitive)
    made = {
        "same": ("j=5/k=1", ["k", "v"]),
        "large": ("j=5/K=1", ["k", "v"]),
        "small": ("k=1/j=5", ["v", "K", "z"]),
    }
    for name, (folder, columns) in made.items():
        path = tmp_path / name / folder
        path.mkdir(parents=True)
        pq.write_table(pa.table({c: [7, 8] for c in columns}), path / "a.parquet")
        other = tmp_path / name / folder.replace("1", "2")
        other.mkdir(parents=True)
        pq.write_table(pa.table({c: [9] for c in [*columns, "later"]}), other / "b.parquet")
        source = str(tmp_path / name)
        own = spark.read.parquet(str(tmp_path / name))
        for ours in (load(spark, source), read(spark, source)):
            assert ours.drop("later").schema == own.drop("later").schema, name
            assert ours.columns.count("later") == 1
            columns = [c for c in own.columns if c != "later"]
            for condition in ("true", f"{columns[0]} >= 7", "j = 5", "`k` = 1", "`K` = 2"):
                if sensitive == "true" and condition[1:2] in "kK" and condition[1] not in columns:
                    continue
                one, other_frame = (f.where(condition).select(columns) for f in (ours, own))
                assert sorted(one.collect()) == sorted(other_frame.collect()), (name, condition)
        if sensitive == "false":
            assert len(input_files(load(spark, source).where("k = 1"))) == 1
        assert read(spark, source, filter=ps.col("j") == 5).count() == 3
        assert read(spark, source, ["v", "j"], ps.col("j") == 5).columns == ["v", "j"]


def test_folders_that_differ_in_case_alone(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
) -> None:
    folders(tmp_path, {"K": ["1"]})
    path = folders(tmp_path, {"k": ["2"]})
    assert load(spark, path).columns == ["a", "K"]
    for call in (load, read):
        own = spark.read.parquet(path)
        assert sorted(call(spark, path).collect()) == sorted(own.collect())
        assert call(spark, path).where("k = 2").collect() == own.where("k = 2").collect()
    assert len(input_files(load(spark, path).where("k = 2"))) == 1
    conf("spark.sql.caseSensitive", "true")
    for call in (load, read):
        with pytest.raises(ps.UnsupportedError) as error:
            call(spark, path)
        said = str(error.value)
        assert "K=1/0.parquet is below folders of 'K'" in said
        assert "k=2/0.parquet is below folders of 'k'" in said
        assert "in case alone: rename the folders of one; partitioning=False" in said
        assert call(spark, path, partitioning=False).columns == ["a"]
