"""Files of one source that differ: conditions have the meaning that they have for the files behind the first, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, read

pytestmark = pytest.mark.spark
UTC = "UTC"


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


def write_units(folder: Path, first: str, zone: str | None) -> None:
    """Times whose unit is `first` in one file, and nanoseconds in a later one."""
    for name, unit, values in (
        ("a", first, [0, 1, 2, None]),
        ("b", "ns", [1, 1001, 1999, 2000, 10**6 + 1, 2 * 10**6 - 1, -1, None]),
    ):
        times = pa.array(values, pa.timestamp(unit, zone))
        table = pa.table(
            {
                "t": times,
                "u": times,
                "s": pa.StructArray.from_arrays([times], ["t"]),
                "l": pa.ListArray.from_arrays(list(range(len(values) + 1)), times),
            }
        )
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=3)


@pytest.mark.parametrize(("unit", "zone"), [("us", UTC), ("ms", None)])
def test_nanoseconds_behind_other_units_are_compared_as_microseconds(
    spark: Any, tmp_path: Path, unit: str, zone: str | None
):
    write_units(tmp_path, unit, zone)
    ours = load(spark, str(tmp_path))
    cached = spark.createDataFrame(ours.collect(), ours.schema)
    kind = "timestamp" if zone else "timestamp_ntz"
    micros = [f"cast(timestamp_micros({n}) as {kind})" for n in (-1, 0, 1, 1000)]
    for one in micros:
        for test in ("t = {}", "t < {}", "t <= {}", "s.t > {}"):
            condition = test.format(one)
            assert rows(ours.where(condition)) == rows(cached.where(condition)), condition
    for condition in (
        f"t in ({', '.join(micros[1:3])})",
        f"t not in ({', '.join(micros[1:3])})",
        "t = u",
        "t < u",
        f"exists(l, x -> x = {micros[1]})",
        f"t = {micros[1]} or s.t = {micros[3]}",
    ):
        assert rows(ours.where(condition)) == rows(cached.where(condition)), condition
        figures = "count(*)", "min(t)", "max(t)"
        one, other = (f.where(condition).selectExpr(*figures) for f in (ours, cached))
        assert one.collect() == other.collect(), condition


def test_conditions_that_are_given_at_once_know_nanoseconds_of_later_files(
    spark: Any, tmp_path: Path
):
    write_units(tmp_path, "us", UTC)
    zero = pa.scalar(0, pa.timestamp("us", UTC))
    for asked in (zero, pa.scalar(999, pa.timestamp("ns", UTC))):
        assert read(spark, str(tmp_path), ["t"], ps.col("t") == asked).count() == 2
    assert read(spark, str(tmp_path), ["t"], ps.col("t").isin([zero])).count() == 2
    assert read(spark, str(tmp_path), ["t"], ps.col("t").isin(pa.array([zero]))).count() == 2
    assert read(spark, str(tmp_path), ["t"], ps.col("s.t") == zero).count() == 2
    assert read(spark, str(tmp_path), ["t"], ps.col("l").any() == zero).count() == 2
    with pytest.raises(ps.PredicateError, match="nanoseconds"):
        read(spark, str(tmp_path), ["t"], ps.col("t") == ps.col("u"))


def test_collations_of_later_files_are_seen(spark: Any, tmp_path: Path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    made = spark.sql(
        "select 2L as id, 'abc' as c1, 'ABC' collate UTF8_LCASE as c2, array('x' collate UTF8_LCASE) as l"
    ).selectExpr("id", "c1 collate UTF8_LCASE as c1", "c2", "l")
    made.coalesce(1).write.parquet(str(tmp_path / "written"))
    (part,) = (tmp_path / "written").glob("*.parquet")
    part.rename(tmp_path / "b.parquet")
    for path in (tmp_path / "written").iterdir():
        path.unlink()
    (tmp_path / "written").rmdir()
    ours = load(spark, str(tmp_path))
    for condition in (
        "c1 = c2",
        "c1 = 'ABC'",
        "c2 in ('abc')",
        "c2 < 'abd'",
        "exists(l, x -> x = 'X')",
    ):
        assert [row.id for row in ours.where(condition).collect()] == [2], condition
        assert [row.id for row in read(spark, str(tmp_path), filter=condition).collect()] == [2]
    for given in (ps.col("c2") == "abc", ps.col("l").any() == "X"):
        with pytest.raises(ps.UnsupportedError, match="has a collation"):
            read(spark, str(tmp_path), filter=given)


def write_times(spark: Any, folder: Path, conf: Any) -> None:
    """Files of Spark that store timestamps in different ways, which are one type to it."""
    conf("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
    conf("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    for i, kind in enumerate(("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96")):
        conf("spark.sql.parquet.outputTimestampType", kind)
        made = spark.range(40 * i, 40 * i + 40, 1, 1).selectExpr(
            "id",
            "if(id % 7 = 3, null, timestamp_millis(id * 86400123 - 1000000)) t",
            "named_struct('t', timestamp_millis(id), 'n', id) s",
            "array(timestamp_millis(id), null) l",
        )
        made.write.mode("append").parquet(str(folder))


def test_timestamps_that_are_stored_in_several_ways_are_one_column(
    spark: Any, tmp_path: Path, conf: Any
) -> None:
    from pageseek.spark import aggregate, lookup, register

    path = str(tmp_path / "times")
    write_times(spark, tmp_path / "times", conf)
    theirs = spark.read.parquet(path)
    register(spark)
    schema = "ID long, t timestamp, s struct<t: timestamp, x: int>, l array<timestamp>"
    frames = {
        "load": load(spark, path),
        "tasks": load(spark, path, local=False, native=False),
        "read": read(spark, path),
        "format": spark.read.format("pageseek").load(path),
    }
    for zone in ("UTC", "America/New_York"):
        conf("spark.sql.session.timeZone", zone)
        for condition in (
            "true",
            "t = timestamp '1970-01-11 23:43:21.230Z'",
            "t > '1970-03-01' and id < 130",
            "t between timestamp '1970-02-01 01:00:00' and timestamp '1970-04-20'",
            "s.t = timestamp_millis(50) or t is null",
            "exists(l, x -> x = timestamp_millis(3))",
            "t in (timestamp_millis(-1000000), timestamp_millis(85400123))",
            "date(t) = date '1970-02-11'",
            "t = s.t",
            "t >= s.t",
        ):
            wanted = rows(theirs.where(condition))
            for way, ours in frames.items():
                assert ours.schema == theirs.schema, way
                assert rows(ours.where(condition)) == wanted, (way, condition)
        given = spark.read.format("pageseek").schema(schema).load(path)
        assert rows(given.where("t > '1970-03-01'")) == rows(
            spark.read.schema(schema).parquet(path).where("t > '1970-03-01'")
        )
    keys = theirs.where("id % 9 = 0").select("t")
    assert rows(lookup(spark, path, keys, "t", ["id"])) == rows(
        keys.join(theirs.select("t", "id"), "t")
    )
    most = theirs.agg({"t": "max"}).collect()
    assert (
        aggregate(spark, path, [("t", "max")]).collect()
        == most
        == load(spark, path).agg({"t": "max"}).collect()
    )
