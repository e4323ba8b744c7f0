"""`pageseek.spark.read` in a local session, compared with Spark's own reader and pyarrow."""

from __future__ import annotations

import datetime as dt
import math
import shutil
import subprocess
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek import col
from pageseek.prune import Proof
from pageseek.spark import read

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
FILES, ROWS = 3, 2000
NAN = float("nan")


def in_order(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Rows in an order that does not depend on tasks; NaN made comparable."""
    plain = [
        tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row) for row in rows
    ]
    return sorted(plain, key=repr)


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return in_order(frame.collect())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files: k sorted over all of them, g in no order with nulls, x with NaN and null, s text."""
    directory = tmp_path_factory.mktemp("lake")
    random = np.random.default_rng(7)
    special = [NAN, -NAN, 0.0, -0.0, math.inf, -math.inf, None, 1.5, -2.5]
    for i in range(FILES):
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        g = random.integers(0, 50, ROWS)
        table = pa.table(
            {
                "k": k,
                "g": pa.array(g, pa.int32(), mask=g < 5),
                "x": pa.array(
                    [special[n] for n in random.integers(0, len(special), ROWS)], pa.float64()
                ),
                "s": [f"{n % 97:03d}" for n in k],
                "d": [Decimal(int(n)).scaleb(-2) for n in k],
            }
        )
        pq.write_table(
            table,
            directory / f"part-{i}.parquet",
            row_group_size=500,
            data_page_size=512,
            write_batch_size=64,
            use_dictionary=["s"],
            write_page_index=True,
        )
    (directory / "_SUCCESS").touch()
    return directory


# -- types ------------------------------------------------------------------------------------

SAME = {
    "flag": pa.array([True, None, False]),
    "i8": pa.array([-128, None, 127], pa.int8()),
    "i16": pa.array([-1, None, 2**15 - 1], pa.int16()),
    "i32": pa.array([-1, None, 2**31 - 1], pa.int32()),
    "i64": pa.array([-1, None, 2**63 - 1], pa.int64()),
    "u8": pa.array([0, None, 255], pa.uint8()),
    "u16": pa.array([0, None, 2**16 - 1], pa.uint16()),
    "u32": pa.array([0, None, 2**32 - 1], pa.uint32()),
    "u64": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "f32": pa.array([1.5, None, NAN], pa.float32()),
    "f64": pa.array([-0.0, None, NAN]),
    "day": pa.array([dt.date(1960, 1, 1), None, dt.date(2024, 2, 29)]),
    "local_ms": pa.array([-1, None, 5], pa.timestamp("ms")),
    "local_us": pa.array([-1, None, 5], pa.timestamp("us")),
    "utc_ms": pa.array([-1, None, 5], pa.timestamp("ms", "UTC")),
    "utc_us": pa.array([-1, None, 5], pa.timestamp("us", "Europe/Paris")),
    "d9": pa.array([Decimal("1.10"), None, Decimal("-2.20")], pa.decimal128(9, 2)),
    "d38": pa.array([Decimal(10**37), None, Decimal(-1)], pa.decimal128(38, 0)),
    "d256": pa.array([Decimal("1.10"), None, Decimal("-2.20")], pa.decimal256(20, 2)),
    "text": pa.array(["", None, "é"]),
    "large": pa.array(["", None, "é"], pa.large_string()),
    "view": pa.array(["", None, "é" * 9], pa.string_view()),
    "words": pa.array(["a", None, "b"]).dictionary_encode(),
    "raw": pa.array([b"", None, b"\xff"]),
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
}


def test_types_and_values_are_those_of_sparks_own_reader(spark: Any, tmp_path: Path):
    path = str(tmp_path / "same.parquet")
    pq.write_table(pa.table(SAME), path, store_decimal_as_integer=True)
    ours, theirs = read(spark, path), spark.read.parquet(path)
    assert ours.schema == theirs.schema
    assert rows_of(ours) == rows_of(theirs)


def test_types_that_sparks_own_reader_refuses_or_changes(spark: Any, tmp_path: Path):
    import pyspark.sql.types as s

    path = str(tmp_path / "more.parquet")
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16, None], pa.binary(16)))
    epoch = dt.datetime(1970, 1, 1)
    tick = dt.timedelta(microseconds=1)
    given = {
        "half": (pa.array([1.5, None], pa.float16()), s.FloatType(), [1.5, None]),
        "id": (ids, s.BinaryType(), [b"x" * 16, None]),
        "nothing": (pa.nulls(2), s.IntegerType(), [None, None]),
        "local_ns": (
            pa.array([-1, 1999], pa.timestamp("ns")),
            s.TimestampNTZType(),
            [epoch - tick, epoch + tick],
        ),
        "span": (pa.array([-1, 1999], pa.duration("ns")), s.DayTimeIntervalType(), [-tick, tick]),
    }
    pq.write_table(pa.table({name: column for name, (column, _, _) in given.items()}), path)
    frame = read(spark, path)
    assert {f.name: f.dataType for f in frame.schema} == {
        name: kind for name, (_, kind, _) in given.items()
    }
    rows = frame.collect()
    assert {name: [row[name] for row in rows] for name in given} == {
        n: v for n, (_, _, v) in given.items()
    }


def test_times_of_day_need_sparks_time_type(spark: Any, tmp_path: Path):
    import pyspark.sql.types as s

    path = tmp_path / "time.parquet"
    pq.write_table(
        pa.table(
            {
                "ms": pa.array([1, None], pa.time32("ms")),
                "ns": pa.array([1999, None], pa.time64("ns")),
            }
        ),
        path,
    )
    setting = "spark.sql.timeType.enabled"
    if hasattr(s, "TimeType"):
        spark.conf.set(setting, "true")
        try:
            frame = read(spark, path)
            assert [tuple(row) for row in frame.where("ns is not null").collect()] == [
                (dt.time(microsecond=1000), dt.time(microsecond=1))
            ]
            assert frame.schema["ms"].dataType == s.TimeType()
            assert read(spark, path, filter=col("ms") > dt.time(1)).schema == frame.schema
        finally:
            spark.conf.set(setting, "false")
    with pytest.raises(
        ps.UnsupportedError, match=rf"time\.parquet: column 'ms' is a time of day.*{setting}"
    ):
        read(spark, path)


def test_int96_is_an_instant_in_microseconds(spark: Any, tmp_path: Path):
    path = str(tmp_path / "int96.parquet")
    far = dt.datetime(9999, 12, 31, 23, 59, 59)
    pq.write_table(
        pa.table({"t": pa.array([-1, 1001, None], pa.timestamp("ns"))}),
        path,
        use_deprecated_int96_timestamps=True,
    )
    ours, theirs = read(spark, path), spark.read.parquet(path)
    assert ours.schema == theirs.schema
    assert rows_of(ours) == rows_of(theirs)
    out = str(tmp_path / "spark")
    setting = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(setting, "INT96")
    try:
        spark.sql(f"select timestamp'{far}' as t").coalesce(1).write.parquet(out)
    finally:
        spark.conf.unset(setting)
    assert rows_of(read(spark, out)) == rows_of(spark.read.parquet(out))


def test_a_timestamp_beyond_microseconds_fails_naming_file_and_column(spark: Any, tmp_path: Path):
    path = tmp_path / "far.parquet"
    pq.write_table(pa.table({"when": pa.array([2**60], pa.timestamp("ms"))}), path)
    with pytest.raises(Exception, match=r"UnsupportedError.*far\.parquet: column 'when'"):
        read(spark, path).collect()


# -- filters ----------------------------------------------------------------------------------

FILTERS = [
    (col("k") == 1234, "k = 1234"),
    (col("k") == -1, "k = -1"),
    (col("k").between(480, 520), "k between 480 and 520"),
    (col("g") == 7, "g = 7"),
    (~(col("g") == 7), "not (g = 7)"),
    (col("g").is_null() & (col("k") < 700), "g is null and k < 700"),
    (col("g").is_not_null() & col("s").starts_with("01"), "g is not null and s like '01%'"),
    (col("g").isin([3, 8, 40]) | (col("k") >= 5990), "g in (3, 8, 40) or k >= 5990"),
    (~((col("g") > 10) | (col("s") < "090")), "not (g > 10 or s < '090')"),
    (col("d") == Decimal("12.34"), "d = 12.34"),
    (col("x") > 1.0, "x > 1.0"),
    (col("x") >= math.inf, "x >= double('Infinity')"),
    (col("x") < NAN, "x < double('NaN')"),
    (col("x") == NAN, "x = double('NaN')"),
    (col("x") != NAN, "x != double('NaN')"),
    (~(col("x") <= 1.5), "not (x <= 1.5)"),
    (col("x") == 0.0, "x = 0.0"),
    (col("x").is_nan(), "isnan(x)"),
]


@pytest.fixture(scope="module")
def native(spark: Any, lake: Path) -> Any:
    return spark.read.parquet(str(lake))


@pytest.fixture(scope="module")
def kept_by_spark(native: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The rows for which Spark finds each condition true, evaluated without pushdown.

    Its own pushdown is no oracle for NaN: bounds leave NaN out, and Spark 4.3 lets them rule out `x = NaN`.
    """
    width = len(native.columns)
    asked = native.selectExpr("*", *[f"({sql}) as q{i}" for i, (_, sql) in enumerate(FILTERS)])
    rows = [tuple(row) for row in asked.collect()]
    return {
        sql: in_order([row[:width] for row in rows if row[width + i]])
        for i, (_, sql) in enumerate(FILTERS)
    }


@pytest.mark.parametrize(("ours", "sql"), FILTERS, ids=[sql for _, sql in FILTERS])
def test_a_filter_keeps_the_rows_that_spark_keeps(
    spark: Any, lake: Path, kept_by_spark: dict[str, list[Any]], ours: Any, sql: str
):
    assert rows_of(read(spark, lake, filter=ours)) == kept_by_spark[sql]


def test_dnf_lists_and_a_column_that_is_not_selected(spark: Any, lake: Path, native: Any):
    frame = read(
        spark,
        lake,
        ["s", "k"],
        [[("g", "=", 7), ("k", "<", 900)], [("g", "in", [9]), ("x", ">", 1.0)]],
    )
    wanted = native.where("(g = 7 and k < 900) or (g = 9 and x > 1.0)").select("s", "k")
    assert frame.columns == ["s", "k"]
    assert rows_of(frame) == rows_of(wanted)


def test_the_ieee_rule_for_nan_can_be_asked_for(spark: Any, lake: Path):
    ieee = ps.scan(lake, filter=col("x") > 1.0).count_rows()
    assert read(spark, lake, [], col("x") > 1.0, nan="ieee").count() == ieee
    assert read(spark, lake, [], col("x") > 1.0).count() > ieee


def test_an_unfiltered_directory_is_read_whole(spark: Any, lake: Path, native: Any):
    frame = read(spark, lake, tasks=4)
    assert frame.schema == native.schema
    assert frame.rdd.getNumPartitions() == 4
    assert rows_of(frame) == rows_of(native)
    table = pq.read_table(lake)
    assert frame.groupBy().sum("k").collect()[0][0] == sum(table["k"].to_pylist())


# -- pruning and tasks ------------------------------------------------------------------------


def test_a_point_lookup_is_one_task_over_one_row_group(spark: Any, lake: Path):
    found = ps.scan(lake, filter=col("k") == 2600, nan="spark", int96_unit="us").explain().to_dict()
    assert found["files"]["read"] == 1
    assert found["row_groups"] == {"total": 12, "read": 1, "pruned_by": {"statistics": 11}}
    assert found["nan"] == "spark"
    pages = {path: leaf["pages"] for path, leaf in found["leaves"].items()}
    assert pages["k"]["read"] == pages["d"]["read"] == 1
    assert pages["k"]["total"] > 5
    frame = read(spark, lake, filter=col("k") == 2600, tasks=8)
    assert frame.rdd.getNumPartitions() == 1
    assert [row["k"] for row in frame.collect()] == [2600]


def test_nothing_matches_and_no_python_task_runs(spark: Any, lake: Path):
    frame = read(spark, lake, filter=col("k") > 10**9)
    assert frame.schema == read(spark, lake).schema
    assert frame.rdd.getNumPartitions() == 0
    plan = frame._jdf.queryExecution().toString()
    assert "MapInArrow" not in plan
    assert "Python" not in plan
    assert frame.collect() == []


@pytest.mark.parametrize("condition", [None, col("g") == 7, col("k") < 700, col("k") < 0], ids=repr)
def test_no_columns_still_counts_rows(spark: Any, lake: Path, condition: Any):
    frame = read(spark, lake, [], condition, tasks=2)
    assert frame.columns == []
    assert frame.count() == ps.scan(lake, filter=condition).count_rows()


def test_a_limit_holds_over_all_tasks(spark: Any, lake: Path):
    assert read(spark, lake, ["k"], col("g") == 7, limit=5, tasks=4).count() == 5
    assert [r[0] for r in read(spark, lake, ["k"], limit=7).collect()] == list(range(7))
    assert read(spark, lake, limit=700, tasks=4).rdd.getNumPartitions() <= 2
    assert read(spark, lake, limit=0).count() == 0


class _Odd:
    """Denies every odd row group of a file, rightly or not."""

    name, cheap = "odd_groups", True

    def cost(self, site: Any, test: Any) -> int:
        return 0

    def judge(self, site: Any, tests: Any) -> Any:
        yield from ()
        none = ps.RowRanges.empty()
        return [Proof(none, none) if site.row_group % 2 else None for _ in tests]


def test_a_pruner_that_the_driver_registered_prunes_the_plan(spark: Any, lake: Path):
    condition = col("g") >= 0
    ps.register_pruner(_Odd())
    try:
        found = read(spark, lake, ["k"], condition, prune=["odd_groups"], tasks=2)
        local = ps.read_table(lake, ["k"], condition, prune=["odd_groups"])
        kept = sorted(row["k"] for row in found.collect())  # the tasks know nothing of it
    finally:
        ps.unregister_pruner("odd_groups")
    assert kept == sorted(local["k"].to_pylist())
    assert 0 < len(kept) < read(spark, lake, ["k"], condition).count()


def test_a_function_of_megabytes_travels(spark: Any, lake: Path):
    assert read(spark, lake, ["k"], col("k") == 1, python_path="x" * (3 << 20)).collect()[0][0] == 1


def test_workers_keep_footers_between_tasks(spark: Any, lake: Path):
    def opened(batches: Any) -> Any:
        from pageseek.datasets.file_cache import cache

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"files": [len(cache._files)]})

    read(spark, lake, tasks=2).count()
    known = spark.range(0, 2, 1, 2).mapInArrow(opened, "files long").collect()
    assert max(row[0] for row in known) > 0


def test_what_cannot_be_read_is_said_at_once(spark: Any, lake: Path):
    with pytest.raises(ps.PredicateError, match="no column 'nope'"):
        read(spark, lake, filter=col("nope") == 1)
    with pytest.raises(ps.UnsupportedError, match="bytes in memory"):
        read(spark, (lake / "part-0.parquet").read_bytes())
    with pytest.raises(ValueError, match="tasks=0"):
        read(spark, lake, tasks=0)


# -- files that change or are damaged ---------------------------------------------------------


def test_a_file_rewritten_after_planning_fails_the_task(spark: Any, lake: Path, tmp_path: Path):
    directory = Path(shutil.copytree(lake, tmp_path / "copy"))
    frame = read(spark, directory, ["k"])
    path = directory / "part-1.parquet"
    pq.write_table(pa.table({"k": [1]}), path)
    with pytest.raises(
        Exception, match=rf"FileChangedError: {path}: the file changed after it was planned"
    ):
        frame.count()


@pytest.mark.parametrize("pushed", [False, True])
def test_a_file_that_was_ruled_out_is_of_the_planned_version_too(
    spark: Any, tmp_path: Path, pushed: bool
):
    def write(name: str, ids: list[int], folder: int = 1) -> None:
        path = tmp_path / f"f={folder}" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": ids}), path)

    def queried() -> Any:
        if pushed:
            return read(spark, tmp_path).where("id = 5 and f = 1")
        return read(spark, tmp_path, filter=(col("id") == 5) & (col("f") == 1))

    write("a", [4, 5])
    write("b", [6])
    write("c", [5, 5], 2)
    before, again = queried(), queried()
    assert before.select("id").collect() == [(5,)]
    write("b", [5, 5, 5])
    with pytest.raises(Exception, match=r"FileChangedError.*b\.parquet: the file changed"):
        again.collect()
    with pytest.raises(Exception, match=r"FileChangedError.*b\.parquet: the file changed"):
        before.where("id > 0").count()
    made = queried()
    write("b", [6])  # then a plan has no use for it
    with pytest.raises(Exception, match=r"FileChangedError.*b\.parquet: the file changed"):
        made.collect()
    made = queried()
    write("c", [5, 5, 5], 2)  # no file of this folder is reached by the filter of a read
    if not pushed:
        assert made.select("id").collect() == [(5,)]


def test_a_file_removed_after_planning_is_named(spark: Any, lake: Path, tmp_path: Path):
    path = Path(shutil.copy(lake / "part-0.parquet", tmp_path / "gone.parquet"))
    frame = read(spark, path, ["k"])
    path.unlink()
    with pytest.raises(Exception, match=r"(?s)FileNotFoundError.*gone\.parquet"):
        frame.count()


def test_a_damaged_page_names_file_and_column(spark: Any, lake: Path, tmp_path: Path):
    path = tmp_path / "damaged.parquet"
    table = pa.table({"k": np.arange(5000)})
    pq.write_table(table, path, use_dictionary=False, compression="NONE")
    data = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    data[start : start + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(Exception, match=r"CorruptFileError: .*damaged\.parquet: column 'k'"):
        read(spark, path, tasks=1).collect()


# -- TPC-H ------------------------------------------------------------------------------------


def _tpchgen() -> str | None:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    return str(beside) if beside.exists() else shutil.which("tpchgen-cli")


@pytest.fixture(scope="module")
def lineitem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = _tpchgen()
    if command is None:
        pytest.skip("no tpchgen-cli: pip install 'pageseek[bench]'")
    directory = tmp_path_factory.mktemp("tpch")
    subprocess.run(
        [command, "parquet", "-s", "0.01", "--tables", "lineitem", "-o", str(directory)],
        check=True,
        capture_output=True,
    )
    (path,) = directory.rglob("lineitem*.parquet")
    return path


MONTH = (dt.date(1995, 3, 1), dt.date(1995, 3, 31))
QUESTIONS = {
    "order": (col("l_orderkey") == 1347, [("l_orderkey", "=", 1347)]),
    "month": (
        col("l_shipdate").between(*MONTH),
        [("l_shipdate", ">=", MONTH[0]), ("l_shipdate", "<=", MONTH[1])],
    ),
    "both": (
        (col("l_orderkey") < 9000) & col("l_shipdate").between(*MONTH),
        [("l_orderkey", "<", 9000), ("l_shipdate", ">=", MONTH[0]), ("l_shipdate", "<=", MONTH[1])],
    ),
}


@pytest.fixture(scope="module")
def lineitem_table(lineitem: Path) -> pa.Table:
    """As pyarrow reads it, with text that its filters can take."""
    table = pq.read_table(lineitem)
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return table.cast(pa.schema([f.with_type(views.get(f.type, f.type)) for f in table.schema]))


@pytest.mark.parametrize("question", QUESTIONS)
def test_lineitem_equals_pyarrow(
    spark: Any, lineitem: Path, lineitem_table: pa.Table, question: str
):
    ours, theirs = QUESTIONS[question]
    wanted = lineitem_table.filter(pq.filters_to_expression(theirs))
    assert wanted.num_rows > 0
    frame = read(spark, lineitem, filter=ours)
    assert frame.columns == wanted.column_names
    assert rows_of(frame) == in_order(r.values() for r in wanted.to_pylist())


# -- nested columns -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nested") / "nested.parquet"
    n = 3000
    table = pa.table(
        {
            "k": range(n),
            "tags": pa.array([None if i % 7 == 0 else [f"t{i % 5}"] * (i % 4) for i in range(n)]),
            "s": pa.array(
                [
                    None if i % 11 == 0 else {"a": i, "b": {"c": str(i), "d": [i, None]}}
                    for i in range(n)
                ]
            ),
            "m": pa.array(
                [None if i % 13 == 0 else [(f"k{j}", j) for j in range(i % 3)] for i in range(n)],
                pa.map_(pa.string(), pa.int64()),
            ),
        }
    )
    pq.write_table(
        table,
        path,
        row_group_size=1000,
        data_page_size=1024,
        write_batch_size=32,
        write_page_index=True,
    )
    return path


NESTED = {
    "true": None,
    "k = 1234": col("k") == 1234,
    "s.a between 500 and 520": col("s", "a").between(500, 520),
    "s.b.c = '2025'": col("s.b.c") == "2025",
    "tags is null and k between 100 and 200": col("tags").is_null() & col("k").between(100, 200),
}


@pytest.mark.parametrize("sql", NESTED)
def test_nested_columns_are_those_of_sparks_own_reader(spark: Any, nested: Path, sql: str) -> None:
    wanted = spark.read.parquet(str(nested)).where(sql)
    found = read(spark, str(nested), filter=NESTED[sql])
    assert found.schema == wanted.schema
    assert rows_of(found) == rows_of(wanted)
    assert found.count() == wanted.count() > 0


def test_a_field_of_a_struct_is_a_column_of_its_own_reading(spark: Any, nested: Path) -> None:
    found = read(spark, str(nested), columns=["s.b.c", "k"], filter=col("k") < 50)
    assert found.columns == ["s", "k"]
    rows = rows_of(found.selectExpr("k", "s.b.c as c"))
    own = spark.read.parquet(str(nested)).where("k < 50").selectExpr("k", "s.b.c as c")
    assert rows == rows_of(own)
