"""`load`: queries over its DataFrame have the answers of Spark's own reader, by whichever way they are read."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import load
from pageseek.spark.table import native
from support.spark_folder import FILES, ROWS, write_folder

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("load")
    write_folder(made)
    return str(made)


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


def way(frame: Any) -> str:
    """Who reads a DataFrame, by its physical plan."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    if "LocalTableScan" in plan:
        return "driver"
    return "native" if "leaves to Spark's reader" in plan else "tasks"


def test_little_is_read_by_the_driver_without_a_job(spark: Any, folder: str):
    frame = load(spark, folder).where("k = 4711").select("d", "s")
    assert way(frame) == "driver"
    assert way(load(spark, folder, local=False).where("k = 4711")) == "tasks"
    context = spark.sparkContext
    jobs = context.statusTracker().getJobIdsForGroup
    context.setJobGroup("ours", "")
    assert [row.s for row in frame.collect()] == ["row 211"]
    context.setJobGroup("others", "")
    assert spark.range(3).count() == 3
    assert len(jobs("others")) > 0  # the tracker has seen all that came before
    assert len(jobs("ours")) == 0


def test_most_rows_of_the_files_are_read_by_sparks_reader(spark: Any, folder: str, eager: None):
    frame, own = load(spark, folder), spark.read.parquet(folder)
    assert way(frame) == "native"
    assert rows(frame) == rows(own)
    some = frame.where("k >= 4000")
    assert way(some) == "native"
    assert len(some._jdf.queryExecution().optimizedPlan().toString()) > 0
    assert rows(some) == rows(own.where("k >= 4000"))
    assert "reader 2 of 3 files" in some._jdf.queryExecution().executedPlan().toString()
    assert way(load(spark, folder, native=False)) == "tasks"


def test_sparks_reader_gets_no_file_that_it_reads_otherwise(spark: Any, tmp_path: Path):
    many = 200_000
    pq.write_table(
        pa.table({"k": pa.array(range(many), pa.int64()), "t": pa.array([0] * many, pa.duration("us"))}),
        tmp_path / "a.parquet",
    )  # fmt: skip
    frame = load(spark, str(tmp_path))
    assert way(frame) == "tasks"
    assert frame.schema["t"].dataType.typeName() == "daytimeinterval"
    assert frame.where("k < 200").count() == 200


def test_files_whose_types_differ_are_no_work_for_sparks_reader(
    spark: Any, tmp_path: Path, eager: None
):
    for i, kind in enumerate((pa.int32(), pa.int64())):
        values = pa.array(range(i * 3000, (i + 1) * 3000), kind)
        pq.write_table(pa.table({"k": values}), tmp_path / f"{i}.parquet")
    frame = load(spark, str(tmp_path))
    assert way(frame) == "tasks"
    assert sorted(row.k for row in frame.collect()) == list(range(6000))


def test_nan_is_found_although_sparks_reader_would_prune_it(spark: Any, folder: str, eager: None):
    frame = load(spark, folder).where("f >= float('nan') or k > 100")
    assert way(frame) == "native"
    assert frame.count() == ROWS * FILES - 101 + len([k for k in range(101) if k % 11 == 0])


@pytest.mark.parametrize("local", [True, False])
def test_rows_without_columns_are_counted(spark: Any, folder: str, local: bool):
    frame = load(spark, folder, local=local, native=False)
    assert frame.where("k = 7").select().collect() == [()]
    assert frame.where("k < 0").select().collect() == []
    assert frame.limit(5).groupBy().count().collect()[0][0] == 5
    assert frame.where("k < 9").limit(5).groupBy().count().collect()[0][0] == 5
    assert frame.where("k > 8 and upper(s) = 'ROW 9'").count() == len(
        [k for k in range(9, 12000, 900) if k % 7 != 3]
    )


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's reader is taken for few rows, too."""
    monkeypatch.setattr(native, "MANY_VALUES", 1000)
    monkeypatch.setattr(native, "FILE_SECONDS", 0.0)


AGGREGATES = [
    "count(*)",
    "count(*), count(small), min(k), max(k), min(s), max(day), min(t), max(d)",
    "count(x), sum(small), sum(d), max(b)",
    "sum(k), avg(small)",
    "count(distinct c)",
    "max(f), min(x)",
    "max(st.a), count(list)",
]


@pytest.mark.covering(1)
@pytest.mark.parametrize("columns", AGGREGATES)
@pytest.mark.parametrize("by", ["", "c, small"])
def test_aggregates_are_sparks(spark: Any, folder: str, columns: str, by: str):
    for name, frame in (
        ("ours", load(spark, folder, native=False)),
        ("own", spark.read.parquet(folder)),
    ):
        frame.createOrReplaceTempView(f"aggregated_{name}")
    found = {}
    for name in ("ours", "own"):
        said = f"select {by + ', ' if by else ''}{columns} from aggregated_{name} where k >= 100 and k < 9000"
        found[name] = rows(spark.sql(said + (f" group by {by}" if by else "")))
    assert found["ours"] == found["own"]


def test_counts_and_extremes_known_from_metadata_need_no_task(spark: Any, folder: str):
    frame = load(spark, folder)
    counted = frame.groupBy().count()
    assert way(counted) == "driver"
    assert counted.collect()[0][0] == FILES * ROWS
    extremes = frame.where("k >= 10").selectExpr("min(k)", "max(day)")
    assert way(frame.selectExpr("min(k)", "max(s)")) == "driver"
    assert extremes.collect()[0][0] == 10


def test_a_join_with_few_keys_reads_their_pages(spark: Any, folder: str):
    from pyspark.sql.functions import broadcast

    from pageseek.spark import report

    keys = spark.range(0, 10).selectExpr("id * 3 as k").where("k % 2 = 1 and k < 50")
    for frame in (load(spark, folder), load(spark, folder, native=False)):
        joined = frame.join(broadcast(keys), "k")
        assert sorted(row.k for row in joined.collect()) == [3, 9, 15, 21, 27]
        read = report(joined).to_dict()
        assert read["files"]["read"] == 1
        assert read["rows"]["read"] <= 1500
    whole = load(spark, folder).join(spark.range(0, 12_000).withColumnRenamed("id", "k"), "k")
    assert whole.count() == FILES * ROWS


def test_where_after_load_reads_the_pages_of_the_same_scan(spark: Any, folder: str):
    import pageseek as ps
    from pageseek.spark import report

    condition = "k between 100 and 900 and c = 'b'"
    wanted = (
        ps.scan(folder + "/*.parquet", nan="spark", threads=1)
        .filter(condition)
        .select("k", "s", "c")
    )
    expected = wanted.explain(analyze=True).to_dict()
    (file,) = wanted.plan().files
    chunk = pq.read_metadata(file.source.path).row_group(0)
    (c,) = [
        chunk.column(i) for i in range(chunk.num_columns) if chunk.column(i).path_in_schema == "c"
    ]
    dictionary = c.data_page_offset - c.dictionary_page_offset
    for local in (True, False):
        frame = load(spark, folder, local=local).where(condition).select("k", "s", "c")
        assert len(frame.collect()) == expected["rows"]["out"]
        found = report(frame).to_dict()
        for unit in ("files", "row_groups", "pages"):
            assert found[unit]["read"] == expected[unit]["read"], unit
        # Planning has read the dictionary of `c`; what reads the rows elsewhere reads it again.
        assert found["bytes"]["data"] - expected["bytes"]["data"] in (0, dictionary)


def test_a_report_says_that_it_is_incomplete_or_that_nothing_was_read(spark: Any, folder: str):
    from pageseek.spark import report

    frame = load(spark, folder, local=False, native=False, tasks=4).select("k")
    assert "no action has read this yet" in str(report(frame))
    assert len(frame.take(1)) == 1
    frame.collect()
    assert report(frame).to_dict()["rows"]["read"] == FILES * ROWS
    with pytest.raises(Exception, match="no scan of"):
        report(spark.range(3))


def test_a_changed_file_is_planned_anew_and_a_planned_query_refuses_it(spark: Any, tmp_path: Path):
    import os

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": list(range(5000))}), path)
    frame = load(spark, str(tmp_path), local=False, native=False)
    assert len(frame.collect()) == 5000
    pq.write_table(pa.table({"k": list(range(7000))}), path)
    os.utime(path, (1, 1))
    assert frame.where("k >= 0").count() == 7000
    with pytest.raises(Exception, match="FileChangedError"):
        frame.collect()


def test_nested_columns_are_pruned(spark: Any, folder: str):
    from pageseek.spark import report

    frame = load(spark, folder, native=False).where("k < 3000").select("st.a")
    frame.collect()
    assert set(report(frame).to_dict()["leaves"]) == {"k", "st.a"}


def test_memory_is_refused(spark: Any):
    with pytest.raises(Exception, match="bytes in memory"):
        load(spark, b"PAR1")


def test_what_tasks_get_is_unpickled_where_pageseek_is_not_to_be_seen(spark: Any, folder: str):
    import subprocess
    import sys

    from pageseek.datasets.confirmed import Confirmed
    from pageseek.spark.sources.opening import opened
    from pageseek.spark.table.planned_scan import PlannedScan
    from pageseek.spark.table.table import Choices, SourceTable
    from pageseek.spark.table.wanted import Wanted

    table = SourceTable(spark, opened(spark, folder), Choices(), "events")
    counts = {"by": [{"column": ["c"]}], "functions": [{"name": "count_all", "of": []}]}
    schema = "c string, f0 bigint"
    for more, wanted in (
        ({}, table.schema.json()),
        ({"aggregation": counts}, spark.createDataFrame([], schema).schema.json()),
    ):
        request = {"schema": wanted, "predicates": [], "given": [], "limit": -1, **more}
        function = bytes(PlannedScan(Wanted(table, request), Confirmed()).on_function(""))
        code = "import pickle, sys; sys.modules['pageseek'] = None; pickle.loads(sys.stdin.buffer.read())"
        subprocess.run([sys.executable, "-c", code], input=function, check=True)


def test_texts_with_a_collation_are_compared_by_spark(spark: Any, tmp_path: Path):
    folder = str(tmp_path / "texts")
    spark.sql(
        "select s collate UTF8_LCASE as a, upper(s) collate UTF8_LCASE as b, s "
        "from values ('x'), ('Y'), ('z') as t(s)"
    ).write.parquet(folder)
    ours, own = load(spark, folder), spark.read.parquet(folder)
    assert ours.schema == own.schema
    for condition in ("a = b", "a = 'X'", "a in ('X', 'y')", "a < 'Z'", "a like 'X%'", "s = 'x'"):
        assert rows(ours.where(condition)) == rows(own.where(condition)), condition
    extremes = ("min(a)", "max(b)", "count(distinct a)", "max(s)")
    assert ours.selectExpr(*extremes).collect() == own.selectExpr(*extremes).collect()


def test_filters_that_are_given_at_once_leave_collations_to_spark(spark: Any, tmp_path: Path):
    from pageseek import UnsupportedError, col
    from pageseek.spark import read

    folder = str(tmp_path / "texts")
    spark.sql("select 'x' collate UTF8_LCASE as a, 1 as k").write.parquet(folder)
    with pytest.raises(UnsupportedError, match=r"'a' has a collation.*load"):
        read(spark, folder, filter=col("a") == "X")
    assert read(spark, folder, filter="a = 'X'").collect() == [("x", 1)]
    assert read(spark, folder, filter="k = 1").collect() == [("x", 1)]


def test_aggregates_of_no_rows_and_of_large_decimals_are_sparks(spark: Any, tmp_path: Path):
    path, many = str(tmp_path / "a.parquet"), 30_000
    rng = random.Random(3)
    table = pa.table(
        {
            "x": [2 * rng.randrange(10**6) for _ in range(many)],
            "y": list(range(many)),
            "k": ["abc"[n % 3] for n in range(many)],
            "d": pa.array([Decimal("999.99")] * many, pa.decimal128(5, 2)),
            "st": [{"a": n % 3} for n in range(many)],
            "ns": pa.array([n * 1001 for n in range(many)], pa.timestamp("ns")),
        }
    )
    pq.write_table(table, path, use_dictionary=["k"], write_statistics=["y", "ns"])
    ours = load(spark, path, native=False)
    own = spark.createDataFrame(table.drop(["ns"]))
    for columns in ("count(*)", "count(*), sum(y), count(y)", "min(y)"):
        for condition in ("x = 1000001", "x > 5", "y < 0"):
            one, other = (f.where(condition).selectExpr(*columns.split(", ")) for f in (ours, own))
            assert one.collect() == other.collect(), (columns, condition)
    for columns in ("sum(d)", "avg(d)", "max(d)"):
        one, other = (f.groupBy("k").agg({"d": columns[:3]}) for f in (ours, own))
        assert rows(one) == rows(other)
    assert rows(ours.groupBy("st").count()) == rows(own.groupBy("st").count())
    assert ours.selectExpr("max(ns)").collect()[0][0].microsecond == (many - 1) * 1001 // 1000


def test_sparks_reader_gets_no_file_whose_name_it_hides(spark: Any, tmp_path: Path, eager: None):
    for name in ("_b", "a"):
        pq.write_table(pa.table({"k": list(range(3000))}), tmp_path / f"{name}.parquet")
    frame = load(spark, [str(tmp_path / "_b.parquet"), str(tmp_path / "a.parquet")])
    assert len(frame.collect()) == 6000


def test_nan_beside_statistics_is_found_by_every_way(spark: Any, tmp_path: Path, eager: None):
    path = str(tmp_path / "a.parquet")
    values = [n / 3000 for n in range(2995)] + [float("nan")] * 5 + [3.0 + n for n in range(3000)]
    pq.write_table(pa.table({"x": values}), path, row_group_size=3000)
    for options in ({}, {"native": False}, {"native": False, "local": False}):
        assert load(spark, path, **options).where("x > 2").count() == 3005
        assert len(load(spark, path, **options).where("x > 2").collect()) == 3005


def test_a_path_that_is_also_a_column(spark: Any, tmp_path: Path):
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a.b": [1], "a": [{"b": 2, "c": 3}]}), path)
    assert load(spark, path).select("a.b").collect() == [(2,)]
    assert load(spark, path).select("`a.b`").collect() == [(1,)]


def test_a_text_that_is_not_utf8_is_compared_by_spark(spark: Any, tmp_path: Path):
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": ["\ufffd"]}), path)
    assert load(spark, path).where("s = cast(X'FF' as string)").count() == 0


def test_a_file_does_not_choose_what_is_imported(tmp_path: Path):
    from pageseek.spark.columns.row_metadata import KEY, spark_fields

    kind = '{"type": "udt", "pyClass": "this.Zen", "sqlType": "integer", "serializedClass": ""}'
    text = f'{{"type": "struct", "fields": [{{"name": "k", "type": {kind}, "nullable": true, "metadata": {{}}}}]}}'
    made = spark_fields({KEY: text.encode()})
    assert made["k"].dataType.simpleString() == "int"
    import sys

    assert "this" not in sys.modules


def test_extremes_of_old_dates_are_converted(spark: Any, tmp_path: Path, conf: Any):
    conf("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    folder = str(tmp_path / "old")
    spark.sql("select date '1500-03-01' as d, 1 as i").write.parquet(folder)
    own = spark.read.parquet(folder)
    for columns in (("min(d)", "max(d)"), ("max(i)",), ("min(d)", "sum(i)")):
        assert (
            load(spark, folder).selectExpr(*columns).collect() == own.selectExpr(*columns).collect()
        )
