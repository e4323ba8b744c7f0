"""Filters of every kind, written by hand, through every door: the rows of Spark's own reader, and none refused."""

from __future__ import annotations

from typing import Any

import pytest

from pageseek.spark import register
from support import sql_doors
from support.meaning_files import IN_A_GAP, IN_TEXTS, REFUSED, write_all, write_int96
from support.sql_comparison import ANSI, CASE, ZONE

pytestmark = pytest.mark.spark

# Such few rows are quicker without code made for them.
QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
CONDITIONS = r"""
i32 = '1'
i32 in ('1', 2, null)
i32 not in (1, null)
i32 <=> null
not (i32 <=> null) and not (i32 <=> 1)
i32 between 3 and 1
i32 between symmetric 3 and 1
i32 + i8 > 1
i32 % 2 = 1
i8 / 2 = 0.5
-i8 > 100S
try_add(i32, 1) is null
i64 = 9007199254740993D
i64 > 1e18
i64 in (9007199254740993, 1.5, '2')
u8 = 255 and u8 < 256
u8 in (-1, 256, 1)
u32 = 4294967295
u32 > i32
coalesce(i16, 0) = 0
nullif(i16, 1) is null
greatest(i8, i16) = i16
f32 = 0.1
f32 = 0.1f
f32 = cast('NaN' as float)
f32 > 1e38
f64 = 'NaN'
f64 <> double('NaN')
f64 >= double('infinity')
f64 = -0.0 and f32 <> 7
f64 in (0.1, 1.1d, 'NaN')
isnan(f64) or isnan(f32)
not isnan(f64)
nanvl(f64, 1.0) = 1.0
cast(f64 as string) = '-0.0'
f64 = f32
d92 = '0.10'
d92 = 1.1
d92 in (0.1, 1.10000, 1.1e0)
d92 + 0.05 = 0.15
d92 < d3818
round(d92) = 1
d2010 = cast(0.1 as decimal(38, 20))
d3818 = 1.1d
d3818 between 1.1 and '1.2'
d380 > 1e37
abs(d92) > 2
s = 'A' or s = 'a '
s = 5
s like 'a\\_%'
s like 'a!_b' escape '!'
s like '%\\%%'
s like 'a\\\\b'
s like any ('a_b', '%x%')
s like all ('a%', '%b')
s not like all ('a%', '5%')
s not like any ('a%', '5%')
s ilike 'A_B'
s rlike '^[a-z]_'
s regexp '\\s'
s between 'A' and 'a'
trim(s) = 'a'
upper(s) in ('A', "IT'S")
substring(s, 2, 1) = '_'
s || 'x' = 'ax'
concat(s, null) is null
locate('x', s) > 0
length(s) = 1 and s <> '😀'
startswith(s, 'a') and endswith(s, 'b')
contains(s, '%')
s > 'it\'s' or s = '\u00e9'
lower(s) in (lower('A'), null)
b
b = false or b is null
b is not true
b <=> (i32 > 1)
if(b, i32 = 1, i32 = 2)
case when b then i32 > 1 when i32 = 1 then null else s = 'a' end
not case when i32 = 1 then false when i32 < 1 then null else true end
day = '2024-01-01'
day in (date '2024-01-01', '1883-01-01')
day > '2024-01-01 12:00:00'
day + interval 1 day = date '2024-01-02'
day = timestamp '2024-01-01 00:00:00'
date_add(day, 1) in ('2024-01-02', '1970-01-02')
year(day) = 2024 and month(day) > 1
date_trunc('MONTH', day) = timestamp '2024-03-01'
datediff(day, date '1970-01-01') = 0
day between date '1883-01-01' and timestamp '1970-01-01 00:00:01'
ts = '2024-01-01'
ts = timestamp '2024-01-01 05:00:00Z'
ts in ('2024-01-01', timestamp '2024-03-10 07:30:00Z')
ts - interval 5 hours = timestamp '2024-01-01 00:00:00Z'
ts > date '2024-01-01' - interval '1' year
ts between timestamp_ntz '2024-03-10 02:30:00' and '2024-11-03 01:30:00'
hour(ts) in (0, 19)
cast(ts as date) = day
ts = ms
ms >= '2024-01-01 00:00:00.0005'
ntz = '2024-01-01 00:00:00.123456'
ntz = timestamp '2024-03-10 03:30:00'
ntz < ts
to_date(ntz) = date '2024-11-03' and ntz > '2024-11-03 01:30:00'
unix_timestamp(ts) % 3600 = 0
MIXED = 1 or mixed = 2
`MiXeD` in (1, null)
ST.a = 1
st.B.c <=> 'x'
St is null
st.b is null and st is not null
`with.dot` = 5 and not `WITH.DOT` = 1
with.dot = 7
`with`.DOT is null
bytes = X'00FF'
bytes in (X'61', X'')
bytes > 'a'
hex(bytes) like '0%'
list[0] > 1
array_contains(list, 0.10)
size(list) = 0
exists(list, x -> x is null)
(i32, s) = (1, 'a')
struct(i32, b) in (struct(1, true), struct(2, false))
not (i32 = 1 and (s = 'a' or b)) is null
(i32 > 1 or null) and not (s = 'a' and null)
i32 in (select 1)
rand(1) >= 0 and i32 = 1
xxhash64(i32) % 2 = 0
1 = 1 and i32 = 1
null
false or i32 = 2
""".strip().splitlines()
INT96 = [
    condition for condition in CONDITIONS if condition.startswith("ts ") and "= ms" not in condition
]
INT96 += ["cast(ts as date) = date '2024-01-01'", "hour(ts) = 0 or ts is null", "ts <=> null"]


@pytest.fixture(scope="module")
def files(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    register(spark)
    folder = tmp_path_factory.mktemp("doors")
    return {"all": write_all(folder), "int96": write_int96(folder)}


def wrong_of(
    spark: Any, path: str, conditions: list[str], columns: list[str], turn: int
) -> list[str]:
    """What is wrong with the answers of the doors: each condition is asked through `load`, and through one of the others in turn."""
    with sql_doors.settings(spark, QUICK):
        with sql_doors.settings(spark, sql_doors.ORACLE):
            theirs = sql_doors.answers(sql_doors.native(spark, path, columns), conditions)
        answered = [one for one in theirs if not isinstance(one, Exception)]
        assert len(answered) > 0.7 * len(conditions), theirs
        assert sum(one.total() > 0 for one in answered) > 0.7 * len(answered)
        wrong = []
        first, *others = sql_doors.DOORS
        asked = {first: list(range(len(conditions)))}
        for i in asked[first]:
            asked.setdefault(others[(i + turn) % len(others)], []).append(i)
        for n, (name, places) in enumerate(asked.items()):
            way = {"local": False, "native": False} if n % 2 else {}
            door = sql_doors.door(spark, name, path, columns, **way)
            ours = sql_doors.answers(door, [conditions[i] for i in places])
            for i, other in zip(places, ours, strict=True):
                said = sql_doors.difference(theirs[i], other)
                if said:
                    wrong.append(f"{name}: {conditions[i]}: {said}")
    return wrong


@pytest.mark.parametrize(
    ("zone", "ansi", "turn"),
    [
        ("America/New_York", "true", 0),
        pytest.param("UTC", "false", 1, marks=pytest.mark.slow),
    ],
)
def test_filters_have_the_rows_of_sparks_reader_through_every_door(
    spark: Any, files: dict[str, str], zone: str, ansi: str, turn: int
) -> None:
    assert len(CONDITIONS) > 100
    wanted = {ZONE: zone, ANSI: ansi, CASE: "false"}
    with sql_doors.settings(spark, wanted):
        assert wrong_of(spark, files["all"], CONDITIONS, ["id"], turn) == []
        assert wrong_of(spark, files["int96"], INT96, ["id", "ts"], turn) == []


def test_what_pageseek_itself_does_not_know_is_not_refused(
    spark: Any, files: dict[str, str]
) -> None:
    unknown = [c for c in [*REFUSED, *IN_TEXTS, *IN_A_GAP] if not c.startswith("`st.A`")]
    with sql_doors.settings(spark, {ZONE: "America/New_York", ANSI: "false", CASE: "false"}):
        assert wrong_of(spark, files["all"], unknown, ["id"], 2) == []
