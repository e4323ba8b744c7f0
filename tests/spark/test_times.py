"""Times of day in nanoseconds: Spark's types for them, and its values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, read, register, write

pytestmark = pytest.mark.spark
NANOS = [0, 1, 999, 86_399_999_999_999, 12_345_678_901_234, None]
WAYS = ({}, {"local": False, "native": False}, {"local": False})
TEXTS = "cast(t as string) t", "cast(n as string) n", "cast(m as string) m"


@pytest.fixture(autouse=True)
def session(spark: Any, conf: Callable[[str, str], None]) -> None:
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 3):
        pytest.skip("this Spark has no times of nine digits")
    conf("spark.sql.timeType.enabled", "true")


def time_file(path: Path, unit: str) -> str:
    """A file of times of one unit: in a column, in a list of structs, and in a map."""
    kind = pa.time64(unit)
    values = [None if n is None else n // (1 if unit == "ns" else 1000) for n in NANOS]
    columns = {
        "t": pa.array(values, kind),
        "n": pa.array([[{"t": v, "i": 1}, None] for v in values], pa.list_(pa.struct([("t", kind), ("i", pa.int32())]))),
        "m": pa.array([[("k", v)] for v in values], pa.map_(pa.string(), kind)),
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_types_and_values_are_those_of_sparks_reader(spark: Any, tmp_path: Path, unit: str):
    path = time_file(tmp_path / "a.parquet", unit)
    theirs = spark.read.parquet(path)
    assert theirs.schema["t"].dataType.simpleString() == f"time({9 if unit == 'ns' else 6})"
    expected = theirs.selectExpr(*TEXTS).collect()
    for frame in (*(load(spark, path, **way) for way in WAYS), read(spark, path)):
        assert frame.schema == theirs.schema
        assert frame.selectExpr(*TEXTS).collect() == expected
    for condition in ("t = time'00:00:00.000000001'", "t > time'00:00:00'", "t = time'00:00:00'"):
        expected = theirs.where(condition).selectExpr(*TEXTS).collect()
        for way in WAYS:
            found = load(spark, path, **way).where(condition).selectExpr(*TEXTS).collect()
            assert found == expected, (condition, way)
    sums = "cast(min(t) as string) a", "cast(max(t) as string) z", "count(distinct t) n"
    assert load(spark, path).selectExpr(*sums).collect() == theirs.selectExpr(*sums).collect()
    own = read(spark, path, ["t"], ps.col("t") == pa.scalar(12_345_678_901_234, pa.time64("ns")))
    assert own.count() == (unit == "ns")


@pytest.mark.parametrize("first", ["us", "ns"])
def test_files_of_both_units_have_the_finer_one(spark: Any, tmp_path: Path, first: str):
    time_file(tmp_path / "0.parquet", first)
    time_file(tmp_path / "1.parquet", "us" if first == "ns" else "ns")
    expected = []
    for name in ("0.parquet", "1.parquet"):  # each file for itself
        frame = spark.read.parquet(str(tmp_path / name))
        expected += frame.selectExpr(*TEXTS).collect()
    for way in WAYS:
        frame = load(spark, tmp_path, **way)
        assert frame.schema["t"].dataType.simpleString() == "time(9)"
        found = frame.selectExpr(*TEXTS).collect()
        assert sorted(map(str, found)) == sorted(map(str, expected))


def test_a_schema_gives_the_unit_and_cuts_nothing(spark: Any, tmp_path: Path):
    fine, coarse = (time_file(tmp_path / f"{unit}.parquet", unit) for unit in ("ns", "us"))
    register(spark)
    wanted = "t time(9), n array<struct<t: time(9)>>"
    for path in (fine, coarse):
        theirs = spark.read.schema(wanted).parquet(path)
        for way in WAYS:
            asked = spark.read.format("pageseek").options(**way).schema(wanted).load(path)
            assert asked.schema == theirs.schema
            assert asked.selectExpr(*TEXTS[:2]).collect() == theirs.selectExpr(*TEXTS[:2]).collect()
    asked = spark.read.format("pageseek").schema("t time(6)")
    assert asked.load(coarse).schema["t"].dataType.simpleString() == "time(6)"
    with pytest.raises(Exception, match=r"ns\.parquet: column 't' is time64\[ns\]"):
        asked.load(fine).count()
    with pytest.raises(
        Exception, match=r"'t': values of the type time\(3\) would be cut: .*time\(6\)"
    ):
        spark.read.format("pageseek").schema("t time(3)").load(coarse).count()


def test_what_is_written_has_all_digits(spark: Any, tmp_path: Path):
    text = "'12:34:56.123456789'"
    frame = spark.sql(
        f"select cast({text} as time(9)) t, array(cast({text} as time(9))) n, cast({text} as time(7)) m, "
        f"cast({text} as time(3)) u"
    )
    write(frame, tmp_path)
    expected = frame.selectExpr(*TEXTS, "cast(u as string) u").collect()
    for found in (load(spark, tmp_path), spark.read.parquet(str(tmp_path))):
        assert [f.dataType.simpleString() for f in found.schema] == [
            f.dataType.simpleString() for f in frame.schema
        ]
        assert found.selectExpr(*TEXTS, "cast(u as string) u").collect() == expected
