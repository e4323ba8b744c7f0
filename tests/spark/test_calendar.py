"""Dates and times in Spark's legacy calendar: refused if they would differ, read if they do not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import read

pytestmark = pytest.mark.spark
OLD, NEW = "1500-03-01", "2024-02-29"
REFUSED = r"UnsupportedError.*\.parquet: column '{}' has.*spark\.read\.parquet"
Write = Callable[..., str]


@pytest.fixture
def write(spark: Any, tmp_path: Path) -> Iterator[Write]:
    """Spark's own files: by which calendar, with which type of timestamps, of which values."""
    changed: set[str] = set()

    def put(key: str, value: str) -> None:
        spark.conf.set(key, value)
        changed.add(key)

    def write(*values: str, mode: str = "LEGACY", stamps: str = "TIMESTAMP_MICROS") -> str:
        for name in ("datetime", "int96"):
            put(f"spark.sql.parquet.{name}RebaseModeInWrite", mode)
        put("spark.sql.parquet.outputTimestampType", stamps)
        out = str(tmp_path / "_".join((*values, mode, stamps)))
        rows = " union all ".join(
            f"select {i} as id, date '{v}' as d, timestamp '{v} 12:00:00' as t, "
            f"timestamp_ntz '{v} 12:00:00' as n, named_struct('d', date '{v}') as s, array(date '{v}') as l"
            for i, v in enumerate(values)
        )
        spark.sql(rows).coalesce(1).write.parquet(out)
        return out

    yield write
    for key in changed:
        spark.conf.unset(key)


def rows(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize("column", ["d", "t", "s", "l"])
def test_old_values_that_are_selected_are_refused(spark: Any, write: Write, column: str) -> None:
    path = write(OLD, NEW)
    with pytest.raises(Exception, match="(?s)" + REFUSED.format(column)):
        read(spark, path, [column]).collect()
    assert read(spark, path, ["id", "n"]).count() == 2
    kept = read(spark, path, filter="id = 1")  # the old ones are left out
    assert rows(kept) == rows(spark.read.parquet(path).where("id = 1"))


def test_old_int96_is_refused_and_new_is_read(spark: Any, write: Write) -> None:
    path = write(OLD, NEW, stamps="INT96")
    with pytest.raises(Exception, match="(?s)" + REFUSED.format("t")):
        read(spark, path, ["t"]).collect()
    fine = write(NEW, stamps="INT96")
    assert rows(read(spark, fine)) == rows(spark.read.parquet(fine))


@pytest.mark.parametrize("stamps", ["TIMESTAMP_MICROS", "INT96"])
def test_todays_calendar_is_read_on(spark: Any, write: Write, stamps: str) -> None:
    path = write(OLD, NEW, mode="CORRECTED", stamps=stamps)
    assert rows(read(spark, path)) == rows(spark.read.parquet(path))
    condition = f"d = '{OLD}' and t < '1600-01-01'"
    assert read(spark, path, ["id"], condition).collect() == [(0,)]


@pytest.mark.parametrize(
    "condition",
    ["d = '1500-03-01'", "d < '1582-10-14'", "t < timestamp '1899-12-31 00:00:00'", "s.d = '1500-03-01'",
     "array_contains(l, date '1500-03-01')", "d in (date '1500-03-01')", "not (id = 0 or d = '1500-03-11')"],
)  # fmt: skip
def test_a_filter_on_old_values_is_refused_when_it_is_planned(
    spark: Any, write: Write, condition: str
) -> None:
    path = write(OLD, NEW)
    with pytest.raises(ps.UnsupportedError, match=r"column '.*' has, or may have, dates before"):
        read(spark, path, ["id"], condition)
    fine = write(NEW)  # the statistics say so
    wanted = spark.read.parquet(fine).where(condition)
    assert read(spark, fine, ["id"], condition).count() == wanted.count()


def test_a_filter_on_later_values_is_the_same_in_both_calendars(spark: Any, write: Write) -> None:
    path = write(OLD, NEW, "1582-10-15", "1582-10-04")
    native = spark.read.parquet(path)
    for condition in (
        "d >= '1582-10-15'",
        "d < '2024-01-01'",
        "t <> '1950-01-01'",
        "d is not null",
    ):
        wanted = native.where(condition).select("id")
        assert rows(read(spark, path, ["id"], condition)) == rows(wanted), condition


def _by_pyarrow(path: Path, pairs: dict[bytes, bytes], day: dt.date) -> str:
    table = pa.table(
        {
            "d": [day],
            "t": pa.array([dt.datetime.combine(day, dt.time())], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table.replace_schema_metadata(pairs), path)
    return str(path)


def test_who_wrote_a_file_decides(spark: Any, tmp_path: Path) -> None:
    day = dt.date(1500, 3, 11)
    version = b"org.apache.spark.version"
    old = _by_pyarrow(tmp_path / "old.parquet", {version: b"2.4.8"}, day)
    marked = _by_pyarrow(
        tmp_path / "marked.parquet",
        {version: b"3.5.0", b"org.apache.spark.legacyDateTime": b""},
        day,
    )
    today = _by_pyarrow(tmp_path / "today.parquet", {version: b"3.0.0"}, day)
    other = _by_pyarrow(tmp_path / "other.parquet", {}, day)
    for path in (old, marked):
        with pytest.raises(Exception, match="(?s)" + REFUSED.format("d")):
            read(spark, path, ["d"]).collect()
    for path in (today, other):
        assert rows(read(spark, path, ["d"])) == rows(spark.read.parquet(path).select("d"))
    setting = "spark.sql.parquet.datetimeRebaseModeInRead"
    try:
        for mode in ("EXCEPTION", "LEGACY"):
            spark.conf.set(setting, mode)
            with pytest.raises(
                Exception, match=r"(?s)UnsupportedError.*other\.parquet: column 'd'"
            ):
                read(spark, other, ["d"]).collect()
            with pytest.raises(ps.UnsupportedError, match="column 'd'"):
                read(spark, other, [], "d < '1500-03-12'")
            assert read(spark, today, []).count() == 1
    finally:
        spark.conf.unset(setting)
