"""Column names by the session's case sensitivity, in files that spell them differently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, read, register
from pageseek.spark.columns.plan_schema import empty_frame

pytestmark = pytest.mark.spark


def test_names_that_differ_in_case_alone_are_ambiguous(
    spark: Any, tmp_path: Path, conf: Any
) -> None:
    from pyspark.errors import AnalysisException

    path = str(tmp_path / "both.parquet")
    pq.write_table(pa.table({"id": [1], "ID": [2], "s": [{"a": 1, "A": 2}]}), path)
    for condition in ("id = 1", "ID = 1", "s.a = 1"):
        with pytest.raises(AnalysisException, match=r"(?i)ambiguous"):
            read(spark, path, filter=condition)
    with pytest.raises(ps.PredicateError, match=r"ambiguous.*caseSensitive"):
        read(spark, path, filter=ps.col("Id") == 1)
    with pytest.raises(ps.PredicateError, match="ambiguous"):
        read(spark, path, ["id"])
    conf("spark.sql.caseSensitive", "true")
    assert read(spark, path, ["ID"], "id = 1 and s.A = 2").collect() == [(2,)]


def test_a_schema_may_name_one_of_two_columns_that_differ_in_case_alone(
    spark: Any, tmp_path: Path
) -> None:
    register(spark)
    path = str(tmp_path / "both.parquet")
    pq.write_table(pa.table({"id": [1], "X": [2], "x": [3], "a": [{"X": 4, "x": 5, "y": 6}]}), path)
    for schema, wanted in (
        ("id long, x long", (1, 3)),
        ("X long, ID long", (2, 1)),
        ("x long, X long", (3, 2)),
        ("a struct<y: long, X: long>", ((6, 4),)),
        ("a struct<x: long, X: long>, x long", ((5, 4), 3)),
    ):
        frame = spark.read.format("pageseek").schema(schema).load(path)
        assert frame.collect() == [wanted], schema


def test_names_that_java_takes_for_one(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "alike.parquet")
    pq.write_table(pa.table({"ſ": [1, 1], "s": [2, 3], "µ": [4, 4], "μ": [5, 6]}), path)
    theirs, small = spark.read.parquet(path), load(spark, path)
    for ours in (
        small,
        load(spark, path, local=False, native=False),
        load(spark, path, local=False),
    ):
        assert ours.collect() == theirs.collect()
        assert ours.where("s = 3").select("ſ", "μ").collect() == [(1, 6)]
    assert small.select("ſ").collect() == [(1,), (1,)]
    assert small.groupBy("ſ").max("μ").collect() == [(1, 6)]


def test_names_of_folders_and_of_later_files(spark: Any, tmp_path: Path) -> None:
    for day, table in (
        ("2024-01-01", pa.table({"k": [1, 2]})),
        ("2024-01-02", pa.table({"k": [3, 4], "Later": [5.5, 6.5]})),
    ):
        folder = tmp_path / f"Day={day}"
        folder.mkdir()
        pq.write_table(table, folder / "0.parquet")
    found = read(spark, str(tmp_path), ["K", "DAY"], "DAY = '2024-01-02' and later > 5.4")
    assert found.columns == ["K", "DAY"]
    assert sorted(row["K"] for row in found.collect()) == [3, 4]
    assert read(spark, str(tmp_path), ["k"], "day < timestamp '2024-01-01 00:00:01'").count() == 2


def test_files_that_spell_a_column_in_another_case(spark: Any, tmp_path: Path, conf: Any) -> None:
    for i, names in enumerate(
        (["id", "Name", "x"], ["ID", "name", "X"], ["x", "Id", "NAME"], ["id", "other"])
    ):
        columns = {name: [i * 10 + n for n in range(5)] for name in names}
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    path = str(tmp_path)
    theirs = spark.read.parquet(path)
    for ours in (
        read(spark, path),
        load(spark, path),
        load(spark, path, local=False, native=False),
    ):
        assert ours.columns[:3] == theirs.columns == ["id", "Name", "x"]
        assert sorted(map(repr, ours.select("id", "Name", "x").collect())) == sorted(
            map(repr, theirs.collect())
        )
    for condition in ("ID > 12", "name in (3, 13, 23, 33)", "x is null", "x = id and NAME >= 12"):
        wanted = sorted(map(repr, theirs.where(condition).select("id", "x").collect()))
        assert sorted(map(repr, read(spark, path, ["id", "x"], condition).collect())) == wanted
        found = load(spark, path).where(condition).select("id", "x")
        assert sorted(map(repr, found.collect())) == wanted, condition
    assert load(spark, path).groupBy().max("x").collect() == theirs.groupBy().max("x").collect()
    conf("spark.sql.caseSensitive", "true")
    assert read(spark, path).columns == [
        "id",
        "Name",
        "x",
        "ID",
        "name",
        "X",
        "Id",
        "NAME",
        "other",
    ]


def test_files_that_spell_fields_of_structs_in_another_case(
    spark: Any, tmp_path: Path, conf: Any
) -> None:
    spellings = "st A b C", "ST a B c", "St A B C", "st a b x"
    for i, (st, a, b, c) in enumerate(one.split() for one in spellings):
        kind = pa.struct([(b, pa.struct([(c, pa.string()), ("z", pa.int64())])), (a, pa.int64())])
        ids = range(i * 10, i * 10 + 5)
        rows = [None if n % 10 == 3 else {a: n, b: {c: f"x{n}", "z": n}} for n in ids]
        columns = {
            "id": pa.array(ids),
            st: pa.array(rows, kind),
            "l": pa.array([[row, None] for row in rows], pa.list_(kind)),
            "m": pa.array([[("k", row)] for row in rows], pa.map_(pa.string(), kind)),
        }
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    path = str(tmp_path)
    theirs = spark.read.parquet(path)
    queries = {
        "true": ["id", "st.a", "ST.b.C", "l.a", "l[0].b.c x", "m['k'].B.z y"],
        "St.a > 12": ["id", "st.A", "m['k'].A x"],
        "ST.B.c = 'x21' or st.b.Z >= 33": ["id", "l.A", "l.b.z"],
        "st.b.c is null": ["id", "st is null x", "st.b is null y", "st.a"],
        "l[0].A < 14 and m['k'].b.c > 'x'": ["count(1)", "max(st.a)", "min(ST.b.c)"],
    }
    for how in ({}, {"local": False, "native": False}):
        ours = load(spark, path, **how)
        for condition, columns in queries.items():
            found, wanted = (
                sorted(map(repr, frame.where(condition).selectExpr(*columns).collect()))
                for frame in (ours, theirs)
            )
            assert found == wanted, (how, condition)
            assert found != []
    whole = read(spark, path, filter="id = 11").collect()[0]
    for value in (whole["st"], whole["l"][0], whole["m"]["k"]):
        assert value.asDict(True) == {"b": {"C": "x11", "z": 11, "x": None}, "A": 11}
    assert read(spark, path, ["id", "sT.B.c"], "ST.a = 12").collect() == [(12, (("x12",),))]
    conf("spark.sql.caseSensitive", "true")
    names = load(spark, path).schema["l"].dataType.elementType.names
    assert names == ["b", "A", "B", "a"]


def test_an_empty_frame_has_any_number_of_columns_and_no_task(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "wide.parquet")
    pq.write_table(pa.table({f"c{i}": [i] for i in range(3000)}), path)
    schema = spark.read.parquet(path).schema
    assert read(spark, path, filter="c7 = 8").schema == schema
    assert read(spark, path, [], "c7 = 8").count() == 0
    made = empty_frame(spark, schema)
    assert made.schema == schema
    assert made.collect() == []
    assert "LocalRelation <empty>" in made._jdf.queryExecution().optimizedPlan().toString()


@pytest.mark.parametrize("case", ["false", "true"])
def test_a_column_may_have_the_name_of_a_path_into_another(
    spark: Any, tmp_path: Path, conf: Any, case: str
) -> None:
    conf("spark.sql.caseSensitive", case)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [{"b": 1, "c": 2}], "a.b": [7], "x": [1], "x.y": [3]}), path)
    for columns, wanted in (
        (["a", "a.b"], (((1, 2), 7))),
        (["x.y", "x"], (3, 1)),
        (["a", "a.c", "x.y"], ((1, 2), 3)),  # a field of a column that is there
        (["a.b"], (7,)),
    ):
        for ours in (
            read(spark, path, columns),
            read(spark, path, columns, "x = 1"),
            read(spark, path, columns, "upper(string(x)) = '1'"),
            load(spark, path, columns=columns),
        ):
            assert ours.collect() == [wanted], columns
