"""The same SQL in Spark and in `read`: the same rows, or an error, never other rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import read
from pageseek.spark.filters.meaning import spark_filter
from pageseek.spark.session.names import Columns
from pageseek.spark.session.settings import Settings
from pageseek.spark.sources.opening import opened
from support.meaning_files import BIG, IN_A_GAP, IN_TEXTS, REFUSED, UTC, write_all, write_int96

pytestmark = pytest.mark.spark
SAME = r'''
i32 = 1
i32 = 1.0
i32 = 1.5
i32 > 1.5
i32 <= 1.5e0
i32 = 1e0
i32 != 1.1
i32 = 3000000000
i32 < 3000000000
i8 = 300
i8 < 128
i8 between -1 and 1.5
i16 in (1, 2.0, 3.5)
i16 not in (1, 2)
i16 in (1, null)
i16 not in (1, null)
i64 = 9007199254740993
i64 = 9007199254740993.0
i64 = 9007199254740993e0
i64 != 9007199254740992e0
i64 < 9007199254740992e0
i64 <= 9007199254740992e0
i64 > 9007199254740992e0
i64 >= 9007199254740994e0
i64 > 9223372036854775807
i64 = 9223372036854775808
i64 < 1e19
i64 in (9007199254740993, 1e0)
i64 between 1e0 and 9007199254740992e0
i64 = -9223372036854775808
u8 > 254
u32 = 4294967295
u32 < -1
u32 = 4294967295e0
f32 = 0.1
f32 < 0.1
f32 >= 0.1
f32 = 0.5
f32 = 1e-1
f32 = 2
f32 = 16777216
f32 in (1, 0.5)
f32 in (0.1, 0.5)
f32 > 1
f32 <> 1
not (f32 > 1)
f32 < 16777217.5
f64 = 0.1
f64 = 1.1
f64 = 1
f64 = 0
f64 = -0.0
f64 = 9007199254740993
f64 < 9007199254740993
f64 in (9007199254740993, 2)
f64 > 1e300
f64 >= 1e300
f64 <= 1e300
f64 <> 2
f64 not in (1, 2)
f64 in (1, null)
f64 between 0 and 1.1
isnan(f64)
not isnan(f64)
isnan(f64) or f64 > 1
not (f64 < 1)
d92 = 0.1
d92 = 0.10
d92 = 1e-1
d92 = 1.1e0
d92 != 1.1e0
d92 < 1.1e0
d92 <= 1.1e0
d92 > 1.1e0
d92 >= 1.1e0
d92 in (0.1, 1.1e0)
d92 not in (0.1, 1.1e0)
d92 between 1e-1 and 1.1e0
d92 = 1
d92 > 1e30
d92 < 1e300
d92 = 0e0
d92 > 9999999.98e0
d2010 = 0.1e0
d2010 = 0.1
d2010 <> 0.1
d2010 in (0.1, 2)
d3818 = 1.1e0
d3818 = 1.1
d3818 < 1.1e0
d3818 <= 1.1e0
d3818 > 1.1e0
d3818 >= 1.1e0
d3818 != 1.1e0
not (d3818 = 1.1e0)
d3818 in (1.1, 5e0)
d3818 not in (1.1, 5e0)
d3818 in (1.1, 5)
d380 = 2
d380 = 9007199254740993
d380 = 9007199254740993e0
d380 >= 1e37
f64 = f32
f64 > f32
d92 = d2010
d92 > i8
i8 = i32
i32 < i64
i32 = f64
i16 = f32
i8 <= f64
d92 = i32
u8 = i16
u32 > i64
s = 'a'
s = 'a '
s = ' a'
s < 'a'
s > 'Z'
s >= 'é'
s = 'é'
s = '\u00e9'
s = '\U0001F600'
s = '\uD83D\uDE00'
s = ''
s <> ''
s in ('a', 'A', null)
s not in ('a', 'A')
s = 'it''s'
s = 'it\'s'
s = "it's"
s = "a"
s = 'say "x"'
s = "say \"x\""
s = "say ""x"""
s = 'a\\b'
s = 'a\tb'
s = 'a\x62'
s = '\101'
s = 'a\_b'
s = 'a_b'
s = 'null'
s like 'a\\_%'
s like 'a\_%'
s like 'a_b'
s like 'a%'
s like '%b'
s like '%x%'
s like 'a\\%b'
s like 'a\\\\b'
s like 'a\\\\\\_b'
s like '_'
s like ''
s like '%'
s not like 'a%'
s like 'a!_b' escape '!'
s like "it's"
s like null
s like '\101%'
'a' < 'b'
'a' = 'a '
1.1 = 1.1e0
1 = 1.0
1 = 1 and s = 'a'
null
b
not b
b = true
b is true
b is not true
b is false
b is unknown
b < true
b in (true)
i32 is null
not (i32 is not null)
(i32 = 1) is null
(i32 = 1 or s = 'a') is not true
i32 = 1 or s = 'a' and b
not i32 = 1
i32 = null
i32 in (null)
mixed = 1
MIXED = 2
`mixed` = 1
`MiXeD` in (1)
ST.a = 1
st.A = 1
st.B.c = 'x'
St.b.C is null
`with.dot` = 5
`WITH.DOT` = 5
with.dot = 7
`with`.dot = 1
with.DOT is null
bytes = X'00ff'
bytes > X'00'
array_contains(list, 1.5)
array_contains(list, 1.5e0)
array_contains(list, 0.1e0)
not array_contains(list, 1.5e0)
day = date '2024-01-01'
day = '2024-01-01'
day < '2024-01-02'
day = '2024-01-01 12:00:00'
day < '2024-01-01 12:00:00'
day > '1970-01-01T00:00:00Z'
day in (date '2024-01-01', date '2024-01-02')
day between '2024-01-01' and '2024-01-02'
day = timestamp '2024-01-01 00:00:00'
day < timestamp '2024-01-01 00:00:01'
day >= timestamp '2024-01-01 00:00:01'
day = timestamp '2024-01-01 12:00:00'
day <= timestamp '2024-01-01 05:00:00Z'
day = timestamp '2024-01-01 05:00:00Z'
day = timestamp '2024-01-01 00:00:00Z'
day = timestamp_ntz '2024-01-01 00:00:00'
day < timestamp_ntz '2024-01-01 00:00:01'
day < timestamp '1883-01-01 00:00:00'
day = timestamp '2024-03-10 00:00:00'
day = ntz
day < ntz
ts = timestamp '1970-01-01 00:00:00'
ts > timestamp '1970-01-01 00:00:00'
ts = timestamp '1970-01-01 00:00:00Z'
ts = timestamp '1970-01-01 00:00:00+05:00'
ts = timestamp_ltz '1970-01-01 00:00:00'
ts = timestamp_ntz '1970-01-01 00:00:00'
ts = timestamp '2024-01-01'
ts = '2024-01-01'
ts = '2024-01-01 00:00:00'
ts = '2024-01-01 05:00:00Z'
ts >= '2024-01-01T00:00:00.123456789'
ts = timestamp '2024-01-01 00:00:00.123456999'
ts = date '2024-01-01'
ts > date '2024-01-01'
ts in (timestamp '2024-01-01 00:00:00', timestamp '2024-03-10 02:30:00')
ts not in (timestamp '2024-01-01 00:00:00', timestamp '2024-03-10 02:30:00')
ts between '2024-01-01' and '2024-11-03 01:30:00'
ts = timestamp '2024-03-10 02:30:00'
ts = timestamp '2024-03-10 03:30:00'
ts = timestamp '2024-11-03 01:30:00'
ts > timestamp '2024-11-03 01:30:00'
ts = timestamp '2100-07-01 00:00:00'
ts = timestamp '1900-01-01 00:00:00'
ts >= timestamp '1883-01-01 00:00:00'
ts = timestamp '1883-01-01 00:00:00'
ts < '1900-01-01'
ts <> timestamp '2024-01-01 00:00:00'
ts = ms
ms = timestamp '2024-01-01 00:00:00'
ms > timestamp '2024-01-01 00:00:00.0005'
ntz = timestamp_ntz '2024-01-01 00:00:00'
ntz = timestamp '2024-01-01 00:00:00'
ntz > timestamp '2024-01-01 00:00:00'
ntz = timestamp '2024-01-01 05:00:00Z'
ntz < timestamp '2024-01-01 05:00:00Z'
ntz = '2024-01-01'
ntz = '2024-01-01 00:00:00.123456'
ntz = date '2024-01-01'
ntz >= date '2024-01-01'
ntz = timestamp_ntz '2024-03-10 02:30:00'
ntz in (timestamp_ntz '2024-01-01 00:00:00', date '1970-01-01')
'''.strip().splitlines()  # fmt: skip

FLOATS = ["f32 = 16777217", "f32 < 16777217"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_all(tmp_path_factory.mktemp("meaning"))


@pytest.fixture(scope="module")
def int96(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_int96(tmp_path_factory.mktemp("int96"))


def by_spark(frame: Any, conditions: list[str]) -> list[list[int]]:
    """Ids of the rows for which each condition is true, in one job and without anything pushed down."""
    asked = [f"({condition}) as q{i}" for i, condition in enumerate(conditions)]
    rows = frame.selectExpr("id", *asked).collect()
    return [sorted(row[0] for row in rows if row[1 + i]) for i in range(len(conditions))]


def by_us(spark: Any, path: str, condition: Any) -> list[int]:
    """The rows by the condition as `read` translates it, without tasks."""
    settings, scan = Settings(spark), opened(spark, path)
    made = spark_filter(condition, Columns(scan, settings), settings)
    return sorted(scan.filter(made).select("id").to_table()["id"].to_pylist())


def differing(spark: Any, path: str, conditions: list[str]) -> list[str]:
    """The differences of our answers from Spark's."""
    wrong = []
    answers = by_spark(spark.read.parquet(path), conditions)
    for condition, theirs in zip(conditions, answers, strict=True):
        try:
            ours = by_us(spark, path, condition)
        except ps.PageseekError as error:
            wrong.append(f"{condition}: refused: {error}")
            continue
        if ours != theirs:
            wrong.append(f"{condition}: {ours}, and Spark {theirs}")
    return wrong


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+03:00"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_sql_keeps_the_rows_that_spark_keeps(
    spark: Any, path: str, conf: Any, zone: str, ansi: str
) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", ansi)
    assert differing(spark, path, SAME) == []


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "PST"])
def test_int96_is_compared_as_an_instant(spark: Any, int96: str, conf: Any, zone: str) -> None:
    conf("spark.sql.session.timeZone", zone)
    found = [c for c in SAME if c.startswith("ts ") and c != "ts = ms"]
    assert len(found) > 20
    assert differing(spark, int96, found) == []
    with pytest.raises(ps.PredicateError, match=r"time zone"):
        read(spark, int96, filter=ps.col("ts") == dt.datetime(1970, 1, 1))
    known = dt.datetime(2024, 1, 1, tzinfo=UTC)
    assert read(spark, int96, filter=ps.col("ts") == known).count() == 1


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_spark_would_cast_is_refused(spark: Any, path: str, conf: Any, ansi: str) -> None:
    conf("spark.sql.ansi.enabled", ansi)
    taken = []
    for condition in REFUSED:
        try:
            by_us(spark, path, condition)
        except ps.PageseekError:
            continue
        taken.append(condition)
    assert taken == []


def test_texts_of_in_hang_on_the_ansi_mode(spark: Any, path: str, conf: Any) -> None:
    assert differing(spark, path, IN_TEXTS) == []
    conf("spark.sql.ansi.enabled", "false")
    for condition in IN_TEXTS:
        with pytest.raises(ps.PredicateError, match=r"write date '\.\.\.' or timestamp"):
            by_us(spark, path, condition)


def test_times_where_clocks_are_changed_are_refused(spark: Any, path: str, conf: Any) -> None:
    assert differing(spark, path, IN_A_GAP) == []  # in UTC
    conf("spark.sql.session.timeZone", "America/New_York")
    for condition in IN_A_GAP:
        with pytest.raises(ps.PredicateError, match="TIMESTAMP_NTZ"):
            by_us(spark, path, condition)


def test_an_integer_that_is_no_float_is_refused(spark: Any, path: str) -> None:
    for condition in FLOATS:
        with pytest.raises(ps.PredicateError, match="write 16777217e0"):
            by_us(spark, path, condition)
        assert differing(spark, path, [condition + "e0"]) == []


def test_settings_of_the_parser(spark: Any, path: str, conf: Any) -> None:
    raw = [r"s = 'a\b'", r"s like 'a\_%'", r"s like 'a\\b'", "s = 'a'", r"s = '\101'"]
    names = ['"i32" = 1', "\"s\" = 'a'", '"Mixed" in (1)']
    conf("spark.sql.parser.escapedStringLiterals", "true")
    assert differing(spark, path, raw) == []
    with pytest.raises(ps.PredicateError, match="other quotes"):
        by_us(spark, path, "s = 'it''s'")
    conf("spark.sql.parser.escapedStringLiterals", "false")
    with pytest.raises(ps.PredicateError):
        by_us(spark, path, names[0])  # a text beside a number
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    assert differing(spark, path, names) == []
    conf("spark.sql.timestampType", "TIMESTAMP_NTZ")
    times = [c for c in SAME if "timestamp '" in c]
    conf("spark.sql.session.timeZone", "America/New_York")
    assert [w for w in differing(spark, path, times) if ": refused:" not in w] == []
    conf("spark.sql.legacy.consecutiveStringLiterals.enabled", "true")
    assert differing(spark, path, ["s = 'it''s'", "s = 'i\\'t''s'"]) == []
    conf("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "true")
    assert differing(spark, path, ["d3818 = 1.1e0", "d92 in (1.1e0)", "f64 = 1.1e0"]) == []


def test_python_values_are_compared_as_spark_compares_them(
    spark: Any, path: str, conf: Any
) -> None:
    import pyspark.sql.functions as f

    conf("spark.sql.session.timeZone", "America/New_York")
    frame = spark.read.parquet(path)
    cases = [
        ("d92", 1.1),
        ("d3818", 1.1),
        ("i64", float(BIG)),
        ("f64", Decimal("0.1")),
        ("f32", Decimal("0.1")),
        ("f64", BIG),
        ("ts", "2024-01-01"),
        ("ts", dt.date(2024, 1, 1)),
        ("day", "2024-01-01 12:00:00"),
        ("ts", dt.datetime(2024, 1, 1, 5, tzinfo=UTC)),
    ]
    for name, value in cases:
        theirs = frame.where(f.col(name) == f.lit(value)).select("id").collect()
        wanted = sorted(row["id"] for row in theirs)
        assert by_us(spark, path, ps.col(name) == value) == wanted, (name, value)
        assert by_us(spark, path, [(name, "in", [value])]) == wanted, (name, value)
        assert by_us(spark, path, ps.col(name).isin(pa.array([value]))) == wanted, (name, value)
        assert wanted or name == "f32"


def test_nanoseconds_are_compared_as_the_microseconds_that_come_out(
    spark: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "nanos.parquet")
    pq.write_table(
        pa.table({"t": pa.array([-1, 0, 999, 1000, 1999, None], pa.timestamp("ns"))}), path
    )
    for op in ("=", "!=", "<", "<=", ">", ">="):
        condition = f"t {op} timestamp_ntz '1970-01-01 00:00:00'"
        whole = sorted(row[0] for row in read(spark, path).where(condition).collect())
        assert sorted(row[0] for row in read(spark, path, filter=condition).collect()) == whole
    condition = (
        "t in (timestamp_ntz '1970-01-01 00:00:00', timestamp_ntz '1970-01-01 00:00:00.000001')"
    )
    assert read(spark, path, filter=condition).count() == 4


@pytest.mark.parametrize(
    "condition",
    [
        r"s like 'a\\_%'",
        "d3818 = 1.1e0",
        "ts = timestamp '2024-01-01 00:00:00'",
        "MIXED = 1 and st.a = 1",
        "not isnan(f64)",
    ],
)
def test_tasks_give_the_rows_of_the_plan(spark: Any, path: str, conf: Any, condition: str) -> None:
    conf("spark.sql.session.timeZone", "America/New_York")
    theirs = spark.read.parquet(path).where(condition).select("id").collect()
    found = read(spark, path, ["id"], condition, tasks=3).collect()
    assert sorted(found) == sorted(theirs)
    assert found


# -- names ----------------------------------------------------------------------------------------


def test_names_are_those_of_the_session(spark: Any, path: str, conf: Any) -> None:
    from pyspark.errors import AnalysisException

    frame = read(spark, path, ["MIXED", "st.a", "ID", "with.dot"], ps.col("Id") == 1)
    assert frame.columns == ["MIXED", "st", "ID", "with.dot"]
    assert [tuple(row) for row in frame.collect()] == [(2, (2,), 1, 5)]
    conf("spark.sql.caseSensitive", "true")
    assert read(spark, path, ["Mixed"], "Mixed = 2 and st.A = 2").columns == ["Mixed"]
    for condition in ("mixed = 2", "st.a = 1", ps.col("ID") == 1):
        with pytest.raises((ps.PredicateError, AnalysisException)):
            read(spark, path, filter=condition)
    with pytest.raises(ps.PredicateError, match="no column 'MIXED'"):
        read(spark, path, ["MIXED"])


def test_the_text_of_a_uuid_is_refused(spark: Any, tmp_path: Path) -> None:
    """Its column is binary in Spark, where no text equals the bytes."""
    ids = [bytes([i]) * 16 for i in range(5)]
    made = str(tmp_path / "ids.parquet")
    pq.write_table(pa.table({"id": range(5), "u": pa.array(ids, pa.uuid())}), made)
    found = read(spark, made, ["id"], f"u = X'{ids[3].hex()}'").collect()
    assert [row.id for row in found] == [3]
    settings = Settings(spark)
    columns = Columns(opened(spark, made), settings)
    for condition in (f"u = '{ids[3].hex()}'", f"u in ('{ids[3].hex()}')"):
        assert read(spark, made, ["id"], condition).collect() == []  # as Spark says
        with pytest.raises(
            ps.PredicateError, match="UUIDs are binary in Spark; write the bytes as X"
        ):
            spark_filter(condition, columns, settings)
