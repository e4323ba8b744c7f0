"""Spark's own reader over what a plan leaves: of folders with values, and as a side of joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import load, report
from pageseek.spark.table import native

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's reader is taken for few rows, too."""
    monkeypatch.setattr(native, "MANY_VALUES", 1000)
    monkeypatch.setattr(native, "FILE_SECONDS", 0.0)


@pytest.fixture(scope="module")
def folders(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of folders, whose names have values of five types, nulls and escapes."""
    path = str(tmp_path_factory.mktemp("native") / "a")
    values = (
        "id",
        "id * 2 as v",
        "id % 2 as k",
        "id % 2 + 5000000000 as l",
        "concat('a b/%', id % 2) as s",
        "date_add('1969-12-30', int(id % 2)) as d",
        "timestamp_seconds(1700000000 + (id % 2) * 3600) as t",
        "case when id % 3 = 0 then null else 'x' end as n",
    )
    frame = spark.range(24_000).selectExpr(*values)
    frame.repartition(1).write.partitionBy("k", "l", "s", "d", "t", "n").parquet(path)
    return path


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def is_native(frame: Any) -> bool:
    return "leaves to Spark's reader" in plan_of(frame)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_folders_with_values_are_read_by_sparks_reader(
    spark: Any, folders: str, conf: Any, zone: str
):
    conf("spark.sql.session.timeZone", zone)
    ours, own = load(spark, folders), spark.read.parquet(folders)
    assert ours.schema == own.schema
    for condition, columns in (
        ("true", ["*"]),
        ("k = 1", ["d", "v", "k"]),
        ("n is null and id > 10", ["t", "n", "s"]),
        ("d = date'1969-12-31' or v < 9000", ["l", "id"]),
        ("l > 5000000000", ["k", "s", "l"]),
    ):
        found = ours.where(condition).select(*columns)
        assert is_native(found), condition
        assert "ColumnarToRow" in plan_of(found)
        expected = own.where(condition).select(*columns)
        assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect())), condition  # fmt: skip


def test_a_folder_that_hides_a_column_of_the_file_is_read_by_tasks(spark: Any, tmp_path: Path):
    inner = tmp_path / "k=7"
    inner.mkdir()
    numbers = list(range(3000))
    pq.write_table(pa.table({"k": numbers, "v": numbers}), inner / "a.parquet")
    ours, own = load(spark, str(tmp_path)), spark.read.parquet(str(tmp_path))
    assert not is_native(ours)
    assert ours.select("v", "k").collect() == own.select("v", "k").collect()


def test_names_that_differ_in_case_alone_filter_no_join(spark: Any, tmp_path: Path, conf: Any):
    conf("spark.sql.caseSensitive", "true")
    numbers = list(range(3000))
    pq.write_table(pa.table({"k": numbers, "K": numbers}), tmp_path / "a.parquet")
    frame = load(spark, str(tmp_path), native=False)
    others = spark.range(5)
    assert frame.join(others, frame["k"] == others["id"]).count() == 5
    conf("spark.sql.caseSensitive", "false")
    assert frame.count() == 3000


def test_who_reads_a_side_of_a_join_is_decided_by_its_keys(spark: Any, folders: str):
    from pyspark.sql.functions import broadcast

    ours, own = load(spark, folders), spark.read.parquet(folders)
    for side in (ours, ours.where("id >= 0"), ours.where("id >= 0 and v < 1000000")):
        assert is_native(side)
        for most, few in ((5, True), (20_000, False)):
            keys = broadcast(spark.range(24_000).where(f"id < {most}"))
            joined = side.join(keys, "id")
            expected = own.join(keys, "id")
            assert sorted(map(repr, joined.collect())) == sorted(map(repr, expected.collect()))
            assert ("Spark's own reader reads" in str(report(joined))) == (not few)


def test_tasks_of_sparks_reader_are_those_of_the_row_groups_that_are_left(
    spark: Any, tmp_path: Path, conf: Any
):
    conf("spark.sql.files.maxPartitionBytes", "7000")
    conf("spark.sql.files.openCostInBytes", "0")
    numbers = list(range(48_000))
    table = pa.table({"k": numbers, "v": [n * 7919 % 48_000 for n in numbers]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4000, use_dictionary=False)
    ours, own = load(spark, str(tmp_path)), spark.read.parquet(str(tmp_path))
    whole = own.rdd.getNumPartitions()
    for start in range(0, 48_000, 6000):
        for end in range(start + 6000, 48_001, 6000):
            condition = f"k >= {start} and k < {end}"
            found = ours.where(condition)
            assert is_native(found)
            assert found.rdd.getNumPartitions() <= whole * (end - start + 8000) / 48_000 + 4
            assert sorted(row.v for row in found.collect()) == sorted(table["v"][start:end].to_pylist())  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [
        "st.n = id or st.n is null",
        "id <> st.n or id is null",
        "case when id = 2 then st.n = 2 else st.n = id end",
        "case when id = 2 then false when id < 3 then null else true end or id = 0",
        "not case when id = 2 then false when id < 3 then null else true end",
        "case when id > 2 then null else id = 1 end and st.n >= 0",
    ],
)
def test_conditions_that_spark_cannot_push_do_not_rule_out_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    monkeypatch.setattr(native, "MANY_VALUES", 0)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": range(9), "st": [{"n": n % 5} for n in range(9)]}), path)
    wanted = spark.read.parquet(path).selectExpr("id", condition)
    kept = sorted(row[0] for row in wanted.collect() if row[1])
    found = load(spark, path).where(condition)
    assert sorted(row.id for row in found.collect()) == kept


@pytest.mark.parametrize("columns", [["p", "x"], ["x"], ["x", "p"], ["q", "x", "p"]])
def test_columns_of_folders_in_any_order(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str]
) -> None:
    from pageseek.spark import read

    monkeypatch.setattr(native, "MANY_VALUES", 0)
    for p in (1, 2):
        folder = tmp_path / f"p={p}" / "q=z"
        folder.mkdir(parents=True)
        pq.write_table(
            pa.table({"k": range(9), "x": [n * p for n in range(9)]}), folder / "0.parquet"
        )
    path = str(tmp_path)
    whole = spark.read.parquet(path)
    wanted = sorted(map(tuple, whole.select(*columns).collect()))
    assert sorted(map(tuple, read(spark, path, columns).collect())) == wanted
    wanted = sorted(map(tuple, whole.where("k % 2 = 1").select(*columns).collect()))
    found = load(spark, path, columns=columns, filter="k % 2 = 1")
    assert "leaves to Spark's reader" in found._jdf.queryExecution().toString()
    assert sorted(map(tuple, found.collect())) == wanted


def test_a_file_with_a_colon_in_its_name_is_read_by_tasks(spark: Any, tmp_path: Path):
    table = pa.table({"k": list(range(5000)), "x": list(range(5000))})
    for name in ("at-10.parquet", "at-10:00.parquet"):
        pq.write_table(table, tmp_path / name)
    frame = load(spark, str(tmp_path), local=False)
    assert not is_native(frame)
    assert frame.count() == 10_000
    assert len(frame.collect()) == 10_000
    assert is_native(load(spark, str(tmp_path / "at-10.parquet"), local=False))


def test_many_small_files_are_read_by_tasks(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(40):
        pq.write_table(
            pa.table({"k": range(500), "s": [f"{i} {n}" for n in range(500)]}),
            tmp_path / f"{i:02}.parquet",
        )
    native_first = load(spark, str(tmp_path), local=False)
    assert is_native(native_first)
    monkeypatch.setattr(native, "FILE_SECONDS", 1e-3)
    by_tasks = load(spark, str(tmp_path), local=False)
    assert not is_native(by_tasks)
    assert sorted(by_tasks.collect()) == sorted(native_first.collect())


@pytest.mark.parametrize(
    "kind",
    [pa.large_string(), pa.string_view(), pa.large_binary(), pa.binary_view()],
    ids=str,
)
def test_stored_arrow_types_that_are_one_type_of_spark(
    spark: Any, tmp_path: Path, kind: pa.DataType
):
    """Many writers store string_view or large_string beside the same Parquet type."""
    values = [None if i % 7 == 0 else f"value {i % 100}" for i in range(3000)]
    table = pa.table({"t": pa.array(values).cast(kind), "i": range(3000)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").field("t").type == kind
    ours, own = load(spark, str(tmp_path)), spark.read.parquet(str(tmp_path))
    assert ours.schema == own.schema
    assert is_native(ours)
    assert ours.collect() == own.collect()
