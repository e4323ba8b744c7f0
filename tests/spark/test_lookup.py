"""`pageseek.spark.lookup` in a local session, compared with Spark's own joins of its own reader."""

from __future__ import annotations

import datetime as dt
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import lookup
from support.lookup_lake import in_order, write_lake

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
NAN = float("nan")
HOWS = ("inner", "left", "semi")


def spark_join(keys: Any, files: Any, on: list[str], how: str) -> Any:
    if how == "semi":
        return files.join(keys, on, "left_semi").select(files.columns)
    return keys.join(files, on, how)


def check(spark: Any, path: Any, keys: Any, on: Any, how: str, **options: Any) -> list[str]:
    """What lookup gives, once it equals Spark's join in rows, names and types."""
    names = [on] if isinstance(on, str) else list(on)
    theirs = spark_join(keys, spark.read.parquet(str(path)), names, how)
    ours = lookup(spark, path, keys, on, how=how, **options)
    assert ours.columns == theirs.columns
    assert [f.dataType for f in ours.schema] == [f.dataType for f in theirs.schema]
    found = in_order(ours.collect())
    assert found == in_order(theirs.collect())
    return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("lookup"))


def some_keys(random: np.random.Generator, n: int) -> pa.Table:
    """Keys that are there and are not, with duplicates and nulls."""
    return pa.table(
        {
            "k": pa.array(random.integers(-20, 9200, n), pa.int64(), mask=random.random(n) < 0.1),
            "g": pa.array(random.integers(0, 50, n), pa.int32(), mask=random.random(n) < 0.1),
            "s": [f"{x:03d}" for x in random.integers(0, 400, n)],
        }
    )


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("limit", [1000, 5], ids=["broadcast", "shuffled"])
def test_random_joins_are_those_of_spark(spark: Any, lake: Path, how: str, limit: int) -> None:
    random = np.random.default_rng(len(how) + limit)
    for on, payload in ((["k"], how == "left"), (["s", "g"], how == "inner")):
        table = some_keys(random, 60).select(on)
        table = pa.concat_tables([table, table.slice(0, 20)])  # duplicates
        if payload:
            table = table.add_column(0, "v", pa.array(map(str, range(80))))
        keys = spark.createDataFrame(table)
        found = check(spark, lake, keys, on, how, broadcast_limit=limit, tasks=3)
        if on == ["k"] or how == "left":
            assert found


VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "i8": ([-128, -1, None, 0, 5, 127], pa.int8()),
    "i32": ([-(2**31), -1, None, 0, 5, 2**31 - 1], pa.int32()),
    "i64": ([-(2**63), -1, None, 0, 2**33, 2**63 - 1], pa.int64()),
    "f32": ([NAN, -0.0, None, 0.0, -math.inf, 1.5], pa.float32()),
    "f64": ([NAN, -0.0, None, 0.0, math.inf, -NAN], pa.float64()),
    "flag": ([True, None, None, True, True, True], pa.bool_()),
    "day": ([dt.date(1999, 1, i) for i in range(1, 6)] + [None], pa.date32()),
    "text": (["", "a", None, "é", "a" * 70 + "b", "a" * 70 + "c"], pa.string()),
    "raw": ([b"", b"a", None, b"\xff", b"\xff" * 70, b"\x00"], pa.binary()),
    "local": ([-1, 0, None, 1, 10**15, -(10**15)], pa.timestamp("us")),
    "utc": ([-1, 0, None, 1, 10**15, -(10**15)], pa.timestamp("us", "UTC")),
    "d9": ([Decimal(n) / 100 for n in (-1, 0, 1, 5, 99999)] + [None], pa.decimal128(9, 2)),
    "d38": ([Decimal(10) ** 37, None, Decimal(-1), Decimal(0)] + [Decimal(7)] * 2, pa.decimal128(38, 0)),
}  # fmt: skip


@pytest.mark.parametrize("limit", [1000, 0], ids=["broadcast", "shuffled"])
def test_each_type_joins_as_in_spark(spark: Any, tmp_path: Path, limit: int) -> None:
    whole = pa.table({name: pa.array(values, kind) for name, (values, kind) in VALUES.items()})
    whole = whole.append_column("row", pa.array(range(6)))
    for i in range(2):
        pq.write_table(whole.slice(3 * i, 3), tmp_path / f"{i}.parquet", write_page_index=True)
    names = list(VALUES) if limit else ["i8", "f64", "text", "raw", "utc", "d38"]
    ours, theirs = [], []
    files = spark.read.parquet(str(tmp_path))
    for name in names:
        table, of_type = whole.select([name]), files.select(name, "row")
        table = pa.concat_tables([table.slice(1), table.slice(0, 2)])
        keys = spark.createDataFrame(table, files.select(name).schema)
        found = lookup(spark, str(tmp_path), keys, name, ["row"], broadcast_limit=limit)
        assert found.schema[name].dataType == of_type.schema[name].dataType, name
        ours.append(told(found, name))
        theirs.append(told(keys.join(of_type, name), name))
    found, wanted = (
        in_order(reduce(lambda a, b: a.union(b), all_).collect()) for all_ in (ours, theirs)
    )
    assert found == wanted
    assert len(found) > 5 * len(names)


def told(frame: Any, name: str) -> Any:
    """A key as text, its type and its row."""
    shown = f"hex({name})" if name == "raw" else f"cast({name} as string)"
    return frame.selectExpr(f"'{name}' name", f"{shown} key", "row")


def test_types_that_only_the_files_have(spark: Any, tmp_path: Path) -> None:
    """Unsigned integers, nanoseconds and INT96 become other types in Spark, and still prune by their own."""
    path, old = str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")
    table = pa.table(
        {
            "u8": pa.array([0, 200, None], pa.uint8()),
            "u64": pa.array([1, 2**64 - 1, None], pa.uint64()),
            "half": pa.array([1.5, NAN, None], pa.float16()),
            "ns": pa.array([-1, 1999, None], pa.timestamp("ns")),
            "word": pa.array(["x", "y", None]).dictionary_encode(),
            "two": pa.array([b"ab", b"cd", None], pa.binary(2)),
            "row": [0, 1, 2],
        }
    )
    pq.write_table(table, path)
    pq.write_table(table.select(["ns", "row"]), old, use_deprecated_int96_timestamps=True)
    keys = {
        "u8": pa.array([200, 0, 201, -56, 2**40], pa.int64()),
        "u64": pa.array([Decimal(2**64 - 1), Decimal(-1), Decimal(2)], pa.decimal128(20, 0)),
        "half": pa.array([NAN, 1.0], pa.float32()),
        "ns": pa.array([1, 0], pa.timestamp("us")),
        "word": pa.array(["y", "z"]),
        "two": pa.array([b"cd", b"abc"]),
    }
    wanted = {
        "u8": [0, 1],
        "u64": [1],
        "half": [1],
        "ns": [1],
        "word": [1],
        "two": [1],
        "int96": [1],
    }
    for limit in (100, 0):
        frames = []
        for name, values in keys.items():
            schema = "ns timestamp_ntz" if name == "ns" else None
            frame = spark.createDataFrame(pa.table({name: values}), schema)
            found = lookup(spark, path, frame, name, ["row"], broadcast_limit=limit)
            frames.append(found.selectExpr(f"'{name}' name", "row"))
        instants = pa.table({"ns": pa.array([1, 0], pa.timestamp("us", "UTC"))})
        found = lookup(spark, old, instants, "ns", ["row"], broadcast_limit=limit)
        frames.append(found.selectExpr("'int96' name", "row"))
        every = reduce(lambda a, b: a.union(b), frames).collect()
        assert in_order(every) == in_order((name, row) for name in wanted for row in wanted[name])


@pytest.mark.parametrize("limit", [10, 0])
@pytest.mark.parametrize("columns", [None, ["f", "v"]])
def test_the_types_are_those_over_all_files(
    spark: Any, tmp_path: Path, limit: int, columns: list[str] | None
) -> None:
    narrow = {"id": pa.int32(), "v": pa.int32(), "f": pa.float32()}
    wide = {"id": pa.int64(), "v": pa.int64(), "f": pa.float64()}
    for name, kinds, ids in (("a", narrow, [1, 2]), ("b", wide, [3, 2**40])):
        table = pa.table({one: pa.array(ids, pa.int64()).cast(kind) for one, kind in kinds.items()})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    found = lookup(spark, tmp_path, [1, 2**40], "id", columns, broadcast_limit=limit)
    assert found.schema["v"].dataType.simpleString() == "bigint"
    rows = found.select("id", "v", "f").collect()
    assert sorted(map(tuple, rows)) == [(1, 1, 1.0), (2**40, 2**40, 2.0**40)]


def test_names_are_those_of_a_join(spark: Any, lake: Path) -> None:
    keys = spark.createDataFrame(pa.table({"v": ["a", "b"], "ID": [3, 3], "x.y": [1, 2]}))
    found = lookup(spark, lake, keys, {"id": "K"}, ["V", "k", "g"])
    assert found.columns == ["ID", "v", "x.y", "V", "g"]
    rows = [(row[0], row[3]) for row in found.collect()]
    assert in_order(rows) == in_order([(3, "value 2"), (3, "value 3")] * 2)
    semi = lookup(spark, lake, keys, {"ID": "k"}, ["K", "v"], "semi")
    assert semi.columns == ["K", "v"]
    assert in_order(semi.collect()) == in_order([(3, "value 2"), (3, "value 3")])
    assert lookup(spark, lake, keys, {"ID": "k"}, [], "semi").count() == 2
    alone = keys.select("ID")
    assert lookup(spark, lake, alone, {"ID": "k"}, []).columns == ["ID"]
    assert lookup(spark, lake, alone, {"ID": "k"}, []).count() == 4


def test_nothing_comes_of_no_keys_or_no_rows(spark: Any, lake: Path, tmp_path: Path) -> None:
    pq.write_table(pq.read_table(lake / "0.parquet").slice(0, 0), tmp_path / "empty.parquet")
    none = spark.createDataFrame(pa.table({"k": pa.array([], pa.int64())}))
    nulls = spark.createDataFrame(pa.table({"k": pa.array([None, None], pa.int64())}))
    some = spark.createDataFrame(pa.table({"k": [3, 10**6]}))
    for how in HOWS:
        for limit in (100, 0):
            assert check(spark, lake, none, "k", how, broadcast_limit=limit) == []
            found = check(spark, lake, nulls, "k", how, broadcast_limit=limit)
            assert len(found) == (2 if how == "left" else 0)
            found = check(spark, tmp_path, some, "k", how, broadcast_limit=limit)
            assert len(found) == (2 if how == "left" else 0)
    assert lookup(spark, lake, [], "k").count() == 0


def test_keys_of_another_type_are_refused(spark: Any, lake: Path) -> None:
    text = spark.createDataFrame(pa.table({"k": ["3"]}))
    with pytest.raises(ps.PredicateError, match=r"'k' is bigint.*is string.*cast\('bigint'\)"):
        lookup(spark, lake, text, "k")
    with pytest.raises(ps.PredicateError, match="no column 'q' among 'k'"):
        lookup(spark, lake, text, {"q": "k"})
    with pytest.raises(ps.PredicateError, match="'q'"):
        lookup(spark, lake, text, {"k": "q"})
    with pytest.raises(ps.UnsupportedError, match="does not join"):
        lookup(spark, lake, spark.range(1).selectExpr("array(id, null) tags"), "tags")
    with pytest.raises(ValueError, match="how='outer'"):
        lookup(spark, lake, [1], "k", how="outer")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tuple of 2 values"):
        lookup(spark, lake, [1], ["k", "g"])


def test_fields_of_structs_are_no_columns_of_on(spark: Any, tmp_path: Path, conf: Any) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": [{"x": 1}], "k": [1], "a.b": [7]}), path)
    for sensitive in ("false", "true"):
        conf("spark.sql.caseSensitive", sensitive)
        for columns in (None, ["k"], ["s"]):
            with pytest.raises(ps.PredicateError, match=r"'s\.x' is a field of a struct.*join"):
                lookup(spark, path, [1], "s.x", columns)
        with pytest.raises(ps.PredicateError, match=r"'s\.x' is a field of a struct"):
            lookup(spark, path, [1], "k", ["s.x"])
        with pytest.raises(ps.PredicateError, match=r"no column|nothing at that path|no field"):
            lookup(spark, path, [1], "s.y")
        assert lookup(spark, path, [7], "a.b", ["k"]).collect() == [(7, 1)]
        with pytest.raises(ps.PredicateError, match=r"did you mean 'a\.b'"):
            lookup(spark, path, [7], "`a.b`")


def test_no_type_is_advised_by_which_lookup_does_not_join(spark: Any, tmp_path: Path) -> None:
    made = spark.sql("select interval '1' day d, interval '1' month m, 'a' collate UTF8_LCASE c")
    made.coalesce(1).write.parquet(str(tmp_path / "a"))
    for name, keys in (("d", [dt.timedelta(1)]), ("m", [1]), ("c", ["A"]), ("c", [1])):
        with pytest.raises(ps.UnsupportedError, match=rf"{name!r} is .*does not join: use read\("):
            lookup(spark, tmp_path / "a", keys, name)


def test_no_cast_is_advised_that_finds_other_rows_than_a_join(spark: Any, lake: Path) -> None:
    keys = spark.createDataFrame([(3.5,)], "k double")
    with pytest.raises(
        ps.PredicateError, match=r"is double: use read\(\.\.\.\)\.join.* if that changes none"
    ):
        lookup(spark, lake, keys, "k")


@pytest.mark.parametrize("condition", ["upper(s) = '001'", "k + 1 = 4"])
def test_a_filter_that_only_spark_knows_says_what_to_write(
    spark: Any, lake: Path, condition: str
) -> None:
    with pytest.raises(
        ps.PredicateError, match=r"load\(\.\.\.\)\.where\(\.\.\.\), or what lookup returns"
    ):
        lookup(spark, lake, [3], "k", filter=condition)


def test_a_column_of_spark_is_a_filter_of_the_files(spark: Any, lake: Path) -> None:
    from pyspark.sql import functions as f

    keys = spark.createDataFrame([(k,) for k in range(40)], "k long")
    both = (f.col("k") > 3) & ((f.col("s") < "02") | f.col("s").isNull())
    for condition, how in (
        (both, "left"),
        (f.lit(5) + 2 == f.col("K"), "semi"),
        ("k = 5 + 2", "semi"),
    ):
        theirs = spark_join(keys, spark.read.parquet(str(lake)).where(condition), ["k"], how)
        ours = lookup(spark, lake, keys, "k", how=how, filter=condition)
        assert in_order(ours.collect()) == in_order(theirs.collect())
    for condition in (f.upper("s") == "A", both & (f.rand() < 0.5), f.lit(False)):
        with pytest.raises(ps.PredicateError, match=r"keys\.join\(load.*where.*, on, how\)"):
            lookup(spark, lake, [3], "k", filter=condition)


def test_no_key_equals_a_folder_that_has_only_nulls(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "day=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir()
    pq.write_table(pa.table({"k": [1, 2]}), folder / "a.parquet")
    assert spark.read.parquet(str(tmp_path)).schema["day"].dataType.simpleString() == "void"
    keys = spark.createDataFrame(pa.table({"day": [1, None], "x": ["a", "b"]}))
    for how, rows in (("inner", 0), ("left", 2), ("semi", 0)):
        for given in (keys, keys.select("day")):
            for limit in (100, 0):
                assert len(check(spark, tmp_path, given, "day", how, broadcast_limit=limit)) == rows
        for listed in ([1, 2], [None, None], ["a", "b"]):
            assert len(lookup(spark, tmp_path, listed, "day", how=how).collect()) == rows
    both = spark.createDataFrame(pa.table({"day": [1], "k": [1]}))
    assert len(check(spark, tmp_path, both, ["day", "k"], "left")) == 1


def test_a_filter_and_folders_apply_too(spark: Any, tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        pq.write_table(pa.table({"k": [1, 2, 3], "x": [day, 5, 6]}), folder / "a.parquet")
    keys = spark.createDataFrame(pa.table({"day": pa.array([1, 3], pa.int32()), "k": [1, 2]}))
    for limit in (10, 0):
        check(spark, tmp_path, keys, ["day", "k"], "left", broadcast_limit=limit)
        check(spark, tmp_path, keys.select("day"), "day", "inner", broadcast_limit=limit)
        found = lookup(spark, tmp_path, [1, 2], "k", ["x"], filter="x > 1", broadcast_limit=limit)
        assert in_order(found.collect()) == in_order([(1, 2), (2, 5), (2, 5)])


@pytest.mark.parametrize("limit", [100, 0])
def test_a_file_that_changes_is_noticed(spark: Any, tmp_path: Path, limit: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": [1, 2, 3]}), path)
    found = lookup(spark, path, [2], "k", broadcast_limit=limit)
    assert found.count() == 1
    pq.write_table(pa.table({"k": [1, 3, 4, 5]}), path)
    with pytest.raises(Exception, match=r"FileChangedError.*a\.parquet"):
        found.count()


# -- many keys ----------------------------------------------------------------------------------

WORKER_BYTES = 512 << 20  # resident: 170 MB with few keys, 330 MB with 3 million


def told_size(frame: Any) -> int:
    """What Spark takes a frame to have in bytes."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


class Workers(threading.Thread):
    """Watches the memory of the Python workers of this session."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.over = 0, threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            self.most = max([self.most, *map(resident, workers())])
            time.sleep(0.02)

    def __enter__(self) -> Workers:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def workers() -> Iterator[Path]:
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes() if process.name.isdecimal() else b""
        except OSError:  # it has ended
            continue
        if b"pyspark.daemon" in command and command.startswith(os.fsencode(sys.executable)):
            yield process


def resident(process: Path) -> int:
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def many_rows(directory: Path, files: int, rows: int, in_order: bool) -> None:
    """Files whose k are 0, 3, 6 and so on: sorted over all files, or scattered."""
    k = np.arange(files * rows, dtype=np.int64) * 3
    if not in_order:
        np.random.default_rng(5).shuffle(k)
    for i in range(files):
        mine = k[i * rows : (i + 1) * rows]
        table = pa.table({"k": mine, "v": mine % 1000})
        pq.write_table(
            table, directory / f"{i}.parquet", row_group_size=rows // 2, write_page_index=True
        )


@pytest.mark.parametrize(
    ("keys", "in_order"),
    [
        (60_000, True),
        pytest.param(3_000_000, True, marks=pytest.mark.slow),
        pytest.param(3_000_000, False, marks=pytest.mark.slow),
    ],
)
def test_many_keys_are_shuffled_within_the_budget(
    spark: Any, tmp_path: Path, keys: int, in_order: bool
) -> None:
    """Every second key is there, and every key comes twice."""
    many_rows(tmp_path, 8, keys // 16, in_order)
    half = spark.range(keys // 2).selectExpr("if(id % 2 = 0, id div 2 * 3, -id) k")
    both = half.union(half)
    with Workers() as seen:
        found = lookup(spark, tmp_path, both, "k", broadcast_limit=keys // 3, tasks=4)
        assert keys * 8 < told_size(found) < keys * 8 * 16
        answer = found.selectExpr("count(*)", "sum(k)", "sum(v)", "count(distinct k)").collect()[0]
        if keys > 100_000:
            semi = lookup(spark, tmp_path, both, "k", how="semi", broadcast_limit=0, tasks=4)
            once = semi.selectExpr("count(*)", "sum(k)").collect()[0]
            assert tuple(once) == (keys // 4, 3 * (keys // 4) * (keys // 4 - 1) // 2)
    k = np.arange(keys // 4, dtype=np.int64) * 3
    assert tuple(answer) == (2 * len(k), 2 * k.sum(), 2 * (k % 1000).sum(), len(k))
    assert 0 < seen.most < WORKER_BYTES


def test_spark_is_told_of_about_the_bytes_that_come_out(spark: Any, lake: Path) -> None:
    few = lookup(spark, lake, [3, 6], "k")
    assert told_size(few) < 1 << 20
    every = lookup(spark, lake, range(9000), "k", ["v"])
    assert 6000 * 16 <= told_size(every) <= 6000 * 64


@pytest.mark.parametrize("limit", [100, 0])
def test_old_dates_and_times_are_found_as_spark_converts_them(
    spark: Any, tmp_path: Path, conf: Any, limit: int
) -> None:
    """One file has the legacy calendar, the other that of today."""
    days = ("1500-02-28", "1500-03-01", "1582-10-04", "1582-10-15", "1899-12-31", "2024-02-29")
    rows = ", ".join(f"named_struct('d', date '{d}', 't', timestamp '{d} 12:00:00')" for d in days)
    conf("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    for mode in ("LEGACY", "CORRECTED"):
        conf("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
        made = spark.sql(f"select inline(array({rows}))")
        made.selectExpr("d", "t", f"'{mode}' mode").coalesce(1).write.mode("append").parquet(
            str(tmp_path)
        )
    keys = spark.sql(f"select inline(array({rows}))").where("d != date '1582-10-15'")
    for on in ("d", "t"):
        mine = keys.select(on)
        files = spark.read.parquet(str(tmp_path)).select(on, "mode")
        found = lookup(spark, tmp_path, mine, on, ["mode"], broadcast_limit=limit).collect()
        assert in_order(found) == in_order(mine.join(files, on).collect())
        assert len(found) == 10
