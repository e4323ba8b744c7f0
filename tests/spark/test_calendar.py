"""Dates and times in Spark's old calendar, compared with Spark's own reader, which wrote them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, read
from pageseek.spark.calendar import zone_history
from pageseek.spark.calendar.rebase import DAYS, UTC, bounds
from pageseek.spark.session.settings import Settings

pytestmark = pytest.mark.spark
OLD, NEW = "1500-03-01", "2024-02-29"
DATES = (OLD, "0001-01-05", "1582-10-04", "1582-10-15", "1000-03-01", "1883-11-18", NEW)
KINDS = "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"
CASES = [(KINDS[0], "America/Los_Angeles"), (KINDS[1], "UTC"), (KINDS[2], "+05:30")]
EXACT = (
    "id", "unix_date(d) d", "unix_micros(t) t", "n", "unix_date(s.d) sd", "unix_micros(s.t) st",
    "transform(l, x -> unix_date(x)) l", "transform(map_values(m), x -> unix_micros(x)) m",
)  # fmt: skip
VERSION, MARK = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"
ZONE = b"org.apache.spark.timeZone"
Write = Callable[..., str]


@pytest.fixture
def write(spark: Any, conf: Any, tmp_path: Path) -> Write:
    """Spark's own files: by which calendar, with which type of timestamps, in which zone, of which values."""

    def write(
        *values: str,
        mode: str = "LEGACY",
        stamps: str = "TIMESTAMP_MICROS",
        zone: str = "UTC",
        out: str = "",
    ) -> str:
        for name in ("datetime", "int96"):
            conf(f"spark.sql.parquet.{name}RebaseModeInWrite", mode)
        conf("spark.sql.parquet.outputTimestampType", stamps)
        conf("spark.sql.session.timeZone", zone)
        path = out or str(tmp_path / "f")
        rows = " union all ".join(
            f"select {i} as id, date '{v}' as d, timestamp '{v} 12:34:56.789' as t, "
            f"timestamp_ntz '{v} 12:00:00' as n, named_struct('d', date '{v}', 't', timestamp '{v}') as s, "
            f"array(date '{v}', null) as l, map('k', timestamp '{v} 23:59:59') as m"
            for i, v in enumerate(values)
        )
        nothing = "union all select -1, null, null, null, null, null, null"
        spark.sql(f"{rows} {nothing}").coalesce(1).write.mode("append").parquet(path)
        conf("spark.sql.session.timeZone", "UTC")
        return path

    return write


def rows(frame: Any) -> list[str]:
    """Rows whose times are numbers: Python has none before the year 1."""
    return sorted(map(repr, frame.selectExpr(*EXACT).collect()))


@pytest.mark.parametrize(("stamps", "zone"), CASES)
def test_old_values_are_converted_as_spark_does(
    spark: Any, write: Write, stamps: str, zone: str
) -> None:
    path = write(*DATES, stamps=stamps, zone=zone)
    assert rows(read(spark, path)) == rows(spark.read.parquet(path))


def test_files_of_several_calendars_in_one_folder(spark: Any, write: Write) -> None:
    path = write(*DATES, zone="Europe/Amsterdam")
    write(*DATES, zone="Asia/Kolkata", out=path)
    write(*DATES, mode="CORRECTED", out=path)
    native = spark.read.parquet(path)
    assert rows(read(spark, path)) == rows(native)
    old = f"t < timestamp '{OLD} 00:00:00'"
    wanted = sorted(native.where(old).select("id").collect())
    assert sorted(read(spark, path, ["id"], old).collect()) == wanted
    with pytest.raises(ps.UnsupportedError, match=r"different calendars; filter the DataFrame"):
        read(spark, path, ["id"], ps.col("t") < dt.datetime.fromisoformat(f"{OLD}T00:00:00Z"))
    assert read(spark, path, ["id"], "t > '1950-01-01' and d >= '1582-10-15'").count() == 3


def test_small_files_that_are_read_as_one(spark: Any, write: Write) -> None:
    zones = "Europe/Amsterdam", "Asia/Kolkata", "UTC"
    for i in range(12):
        old = DATES[i % len(DATES)] if i % 3 else NEW
        write(old, NEW, mode="CORRECTED" if i == 7 else "LEGACY", zone=zones[i % 3], out=write(NEW))
    path = write(NEW)
    flat = EXACT[:3]

    def told(frame: Any, *more: str) -> list[str]:
        return sorted(map(repr, frame.selectExpr(*flat, *more).collect()))

    native = spark.read.parquet(path)
    ours = load(spark, path, local=False, native=False)
    assert told(ours) == told(native)
    assert told(ours, "_metadata.file_name f") == told(native, "_metadata.file_name f")


def test_load_converts_by_every_way(spark: Any, write: Write, conf: Any) -> None:
    path = write(*DATES, zone="America/Los_Angeles")
    native = spark.read.parquet(path)
    condition = "d < '1582-10-14' or t = timestamp '1883-11-18 12:34:56.789'"
    most = "unix_date(min(d))", "unix_date(max(d))", "unix_micros(min(t))", "count(s)"
    for choices in ({}, {"local": False}, {"local": False, "native": False}):
        ours = load(spark, path, **choices)
        assert rows(ours) == rows(native), choices
        assert rows(ours.where(condition)) == rows(native.where(condition)), choices
        assert ours.selectExpr(*most).collect() == native.selectExpr(*most).collect(), choices


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Manila", "PST"])
def test_the_history_of_a_zone_is_that_of_java(spark: Any, zone: str) -> None:
    shift = zone_history.shift_of(zone, Settings(spark))
    random = np.random.default_rng(3)
    near = np.concatenate([shift.starts + n for n in (-1, 0, 1)])
    values = np.concatenate([near, random.integers(-(10**17), -2_208_900_000_000_000, 200)])
    java = spark._jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime
    wanted = [java.rebaseJulianToGregorianMicros(zone, int(value)) for value in values]
    made = shift.rebased(values)
    assert made.tolist() == wanted
    for low, high in np.sort(random.choice(made[made >= shift.least], (200, 2))).tolist():
        held = np.zeros(len(values), bool)
        for first, last in shift.ranges(low, high):
            assert first is not None and last is not None
            held |= (values >= first) & (values < last)
        assert (held == ((made >= low) & (made < high))).all()


def test_days_are_those_of_java(spark: Any) -> None:
    days = np.concatenate([DAYS.starts, DAYS.starts - 1, np.arange(-10_000_000, 1000, 99_991)])
    java = spark._jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime
    assert DAYS.rebased(days).tolist() == [
        java.rebaseJulianToGregorianDays(int(day)) for day in days
    ]
    assert list(UTC.ranges(*bounds("=", 0))) == [(0, 1)]
    assert list(DAYS.ranges(*bounds("=", -141_430))) == []  # 1582-10-12: no such day


CONDITIONS = (
    f"d = '{OLD}'", "d < '1582-10-14'", "d <> '1500-03-01'", "d >= '1000-03-01' and d <= '1582-10-10'",
    "d > '1582-10-10'", "d = '1582-10-10'", "not (id = 0 or d = '1500-03-11')", "s.d = '1500-03-01'",
    "array_contains(l, date '1500-03-01')", "d in (date '1500-03-01', date '1582-10-10', date '2024-02-29')",
    "d not in (date '1500-03-01')", "t < timestamp '1899-12-31 00:00:00'", "t = timestamp '1500-03-01 12:34:56.789'",
    "t >= timestamp '0001-01-05 12:34:56.789' and t < timestamp '1582-10-15 00:00:00'",
    "t in (timestamp '1883-11-18 12:34:56.789', timestamp '1582-10-04 12:34:56.789')", "d < '1500-03-02' or d is null",
    "t <= timestamp '1883-11-18 12:34:56.789'", "d < timestamp '1500-03-01 12:00:00'",
)  # fmt: skip


@pytest.mark.parametrize(("stamps", "zone"), CASES)
def test_filters_on_old_values_have_sparks_answer(
    spark: Any, write: Write, conf: Any, stamps: str, zone: str
) -> None:
    path = write(*DATES, stamps=stamps, zone=zone)
    conf("spark.sql.session.timeZone", zone)
    tests = [f"coalesce({condition}, false)" for condition in CONDITIONS]
    native = spark.read.parquet(path).selectExpr("id", *tests).collect()
    for i, condition in enumerate(CONDITIONS, 1):
        if stamps != KINDS[0] and not condition.startswith("t"):
            continue  # tested once
        ours = read(spark, path, ["id"], condition)
        wanted = [row.id for row in native if row[i]]
        assert sorted(row.id for row in ours.collect()) == sorted(wanted), condition


def test_filters_that_are_refused(spark: Any, write: Write) -> None:
    path = write(*DATES)
    native = spark.read.parquet(path)
    for condition in ("d = s.d", "d < '0001-01-02'"):
        assert read(spark, path, ["id"], condition).count() == native.where(condition).count()
    for condition in (ps.col("d") == ps.col("s.d"), ps.col("d") < dt.date(1, 1, 2)):
        with pytest.raises(ps.UnsupportedError, match=r"filter the DataFrame instead"):
            read(spark, path, ["id"], condition)


def test_early_literals_read_few_pages(spark: Any, tmp_path: Path) -> None:
    days = pa.array(np.arange(-200_000, -140_000, dtype=np.int32)).view(pa.date32())
    table = pa.table({"d": days}).replace_schema_metadata({VERSION: b"2.4.8"})
    path = str(tmp_path / "d.parquet")
    pq.write_table(table, path, write_page_index=True, data_page_size=4000, row_group_size=5000)
    condition = "d >= '1500-02-27' and d < '1500-03-03'"
    native = spark.read.parquet(path).where(condition)
    found = read(spark, path, filter=condition)
    assert sorted(found.collect()) == sorted(native.collect())
    assert found.count() == 5  # two days of the old calendar are one of today's


def _by_pyarrow(path: Path, pairs: dict[bytes, bytes], day: dt.date) -> str:
    table = pa.table(
        {
            "d": [day],
            "t": pa.array([dt.datetime.combine(day, dt.time())], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table.replace_schema_metadata(pairs), path)
    return str(path)


def _plain(frame: Any) -> list[Any]:
    return frame.selectExpr("unix_date(d)", "unix_micros(t)").collect()


def test_who_wrote_a_file_decides(spark: Any, tmp_path: Path, conf: Any) -> None:
    day = dt.date(1500, 3, 11)
    zone = {ZONE: b"America/Los_Angeles"}
    pairs = {
        "old": {VERSION: b"2.4.8"},
        "zoned": {VERSION: b"2.4.8", **zone},
        "marked": {VERSION: b"3.5.0", MARK: b"", **zone},
        "today": {VERSION: b"3.0.0", **zone},
        "other": {},
    }
    paths = {name: _by_pyarrow(tmp_path / f"{name}.parquet", p, day) for name, p in pairs.items()}
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    conf("spark.sql.session.timeZone", "Asia/Kolkata")  # matters to no file
    conf("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    try:
        for name in ("UTC", "Europe/Paris"):
            zones.setDefault(zones.getTimeZone(name))
            for path in paths.values():
                assert _plain(read(spark, path)) == _plain(spark.read.parquet(path)), (name, path)
    finally:
        zones.setDefault(before)
    conf("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    assert _plain(read(spark, paths["other"])) == _plain(spark.read.parquet(paths["other"]))
    conf("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")
    with pytest.raises(Exception, match=r"(?s)UnsupportedError.*other\.parquet: column 'd'"):
        read(spark, paths["other"], ["d"]).collect()
    with pytest.raises(ps.UnsupportedError, match=r"column 'd'.*RebaseModeInRead"):
        read(spark, paths["other"], [], ps.col("d") < dt.date(1500, 3, 12))
    for name in ("old", "today"):
        assert _plain(read(spark, paths[name])) == _plain(spark.read.parquet(paths[name]))


def test_a_session_that_does_not_tell_the_history_of_zones(
    spark: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkException

    def refuse(self: Settings, query: str) -> list[Any]:
        raise PySparkException("no reflection here")

    path = write(OLD, NEW, zone="America/Denver")
    monkeypatch.setattr(Settings, "rows", refuse)
    assert read(spark, path, ["d"]).count() == 3
    assert read(spark, path, ["t"], "id = 1").count() == 1
    with pytest.raises(Exception, match=r"(?s)UnsupportedError.*column 't'.*spark\.read\.parquet"):
        read(spark, path, ["t"]).collect()
    with pytest.raises(ps.UnsupportedError, match=r"this session does not tell it"):
        read(spark, path, ["t"], ps.col("t") == dt.datetime.fromisoformat(f"{OLD}T00:00:00Z"))
