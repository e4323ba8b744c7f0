"""Columns and fields of structs that files spell in another case than a given schema, or than each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import aggregate, load, lookup, read

pytestmark = pytest.mark.spark


def written(folder: Path, *files: dict[str, Any]) -> str:
    for i, columns in enumerate(files):
        pq.write_table(pa.table(columns), folder / f"{i}.parquet")
    return str(folder)


def rows(frame: Any) -> tuple[list[str], list[str]]:
    return frame.columns, sorted(map(repr, frame.collect()))


def check_schema(spark: Any, path: str, schema: str, *conditions: str) -> None:
    """Compare with Spark's own reader."""
    theirs = spark.read.schema(schema).parquet(path)
    ours = spark.read.format("pageseek").schema(schema).load(path)
    for condition in ("true", *conditions):
        wanted = rows(theirs.where(condition))
        assert wanted[1], condition
        assert rows(ours.where(condition)) == wanted, condition
        assert ours.where(condition).count() == len(wanted[1]), condition


@pytest.fixture
def known(spark: Any) -> None:
    from pageseek.spark import register

    register(spark)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    "schema",
    ["id long, zz int", "ID long", "Id decimal(25, 0), ZZ int"],
)
def test_columns_of_a_schema_are_found_in_any_case(spark: Any, tmp_path: Path, schema: str) -> None:
    one = written(tmp_path, {"id": [1]})
    check_schema(spark, one, schema, "iD = 1")
    both = written(tmp_path, {"id": [1]}, {"ID": [2]})
    check_schema(spark, both, schema, "id = 1", "ID = 2", "id > 0")
    frame = spark.read.format("pageseek").schema(schema).load(both)
    assert frame.groupBy().max("id").collect()[0][0] == 2


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("more", ["", ", y: int"])
def test_fields_of_a_schema_are_found_in_any_case(spark: Any, tmp_path: Path, more: str) -> None:
    def file(n: int, st: str, aa: str, m: str) -> dict[str, Any]:
        inner = pa.struct([(aa, pa.int64())])
        return {
            "id": [n],
            st: pa.array([{aa: n, "L": [{aa: n}]}], pa.struct([(aa, pa.int64()), ("L", pa.list_(inner))])),
            m: pa.array([[("k", {aa: n})]], pa.map_(pa.string(), inner)),
        }  # fmt: skip

    path = written(tmp_path, file(1, "St", "Aa", "m"), file(2, "sT", "aA", "M"))
    schema = f"id long, ST struct<AA: long, l: array<struct<aa: long{more}>>>, m map<string, struct<aa: long{more}>>"
    conditions = [f"{one} = {n}" for one in ("st.aa", "st.l[0].aa", "m['k'].aa") for n in (1, 2)]
    check_schema(spark, path, schema, *conditions)


@pytest.mark.usefixtures("known")
def test_a_table_has_the_names_of_its_definition(spark: Any, tmp_path: Path) -> None:
    path = written(tmp_path, {"id": [1]}, {"ID": [2]})
    try:
        spark.sql(f"create table named_so (Id long) using pageseek location '{path}'")
        assert spark.table("named_so").columns == ["Id"]
        assert spark.sql("select * from named_so where id = 2").collect() == [(2,)]
        spark.sql("alter table named_so add columns (note string)")
        assert spark.sql("select * from named_so where id = 2").collect() == [(2, None)]
    finally:
        spark.sql("drop table if exists named_so")


@pytest.mark.usefixtures("known")
def test_a_stream_finds_the_columns_of_its_schema_in_any_case(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = written(folder, {"id": [1], "St": [{"A": 1}]}, {"ID": [2], "st": [{"a": 2}]})
    stream = (
        spark.readStream.format("pageseek").schema("iD long, st struct<a: long>, x int").load(path)
    )
    query = (
        stream.writeStream.format("memory").queryName("spelled_stream")
        .option("checkpointLocation", str(tmp_path / "seen")).trigger(availableNow=True).start()
    )  # fmt: skip
    try:
        assert query.awaitTermination(120)
        found = spark.table("spelled_stream")
        assert found.columns == ["iD", "st", "x"]
        assert sorted(found.selectExpr("iD", "st.a", "x").collect()) == [(1, 1, None), (2, 2, None)]
    finally:
        query.stop()


@pytest.mark.usefixtures("known")
def test_a_schema_makes_bytes_of_texts_and_texts_of_bytes(spark: Any, tmp_path: Path) -> None:
    inside = {"t": [{"s": "q"}, {"s": "r"}], "l": [["a"], []]}
    path = written(tmp_path, {"s": ["a", "b"], "b": [b"x", b"\xff"], **inside})
    for schema in ("s binary, b string", "t struct<s: binary>, l array<binary>, b binary"):
        theirs = spark.read.schema(schema).parquet(path)
        for choice in ("true", "false"):
            ours = spark.read.format("pageseek").options(local=choice, native=choice)
            assert rows(ours.schema(schema).load(path)) == rows(theirs)
    check_schema(spark, path, "s binary, b string", "s = x'61'", "b = 'x'", "b like 'x%'")


@pytest.mark.usefixtures("known")
def test_case_matters_to_a_schema_where_it_does_to_the_session(
    spark: Any, tmp_path: Path, conf: Any
) -> None:
    path = written(tmp_path, {"id": [1], "s": [{"A": 1}]}, {"ID": [2], "s": [{"a": 2}]})
    conf("spark.sql.caseSensitive", "true")
    check_schema(spark, path, "ID long, s struct<A: long>, zz int", "ID = 2", "s.A = 1")


@pytest.mark.parametrize("schema", ["x int, X int", "X long, x long"])
@pytest.mark.usefixtures("known")
def test_a_schema_may_have_columns_that_differ_in_case_alone(
    spark: Any, tmp_path: Path, conf: Any, schema: str
) -> None:
    two, three = pa.array([2], pa.int32()), pa.array([3], pa.int32())
    path = written(tmp_path, {"X": two}, {"x": three, "X": two}, {"x": three}, {"y": two})
    conf("spark.sql.caseSensitive", "true")
    check_schema(spark, path, schema, "X = 2", "x = 3", "x = 3 or X = 2")


LATER = {"id": [1]}, {"id": [2], "Xx": [20]}, {"id": [3], "xx": [30]}, {"ID": [4], "xX": [40]}


@pytest.mark.parametrize(
    "made",
    [
        load,
        lambda spark, path: load(spark, path, local=False, native=False),
        read,
        lambda spark, path: spark.read.format("pageseek").load(path),
    ],
)
@pytest.mark.usefixtures("known")
def test_later_files_that_spell_a_column_in_two_ways(
    spark: Any, tmp_path: Path, made: Callable[..., Any]
) -> None:
    path = written(tmp_path, *LATER)
    theirs, ours = spark.read.option("mergeSchema", "true").parquet(path), made(spark, path)
    assert rows(ours) == rows(theirs)
    for condition in ("xx > 20", "XX = 20", "xX is null"):
        wanted = rows(theirs.where(condition).select("xx"))
        assert wanted[1]
        assert rows(ours.where(condition).select("xx")) == wanted
    assert ours.groupBy().max("xx").collect() == [(40,)]


def test_what_names_a_column_that_later_files_spell_in_two_ways(spark: Any, tmp_path: Path) -> None:
    path = written(tmp_path, *LATER)
    for found in (
        read(spark, path, ["id", "XX"], "xx >= 30"),
        read(spark, path, ["id", "XX"], ps.col("xX") >= 30),
        load(spark, path, columns=["id", "XX"], filter="xx >= 30"),
        load(spark, path, columns=["id", "XX"]).where("xx >= 30"),
    ):
        assert found.columns == ["id", "XX"]
        assert sorted(found.collect()) == [(3, 30), (4, 40)]
    assert sorted(lookup(spark, path, [30, 20, 5], "xx").select("id").collect()) == [(2,), (3,)]
    assert lookup(spark, path, [4], "id", ["xx"]).select("xx").collect() == [(40,)]
    assert lookup(spark, path, [4], "id").select("xx").collect() == [(40,)]
    assert aggregate(spark, path, [("xx", "max"), ("XX", "count")]).collect() == [(40, 3)]
    assert sorted(aggregate(spark, path, ["count"], by="xx").na.fill(0).collect()) == [
        (0, 1),
        (20, 1),
        (30, 1),
        (40, 1),
    ]


def test_later_files_that_spell_a_field_in_two_ways(spark: Any, tmp_path: Path, conf: Any) -> None:
    path = written(
        tmp_path,
        {"s": [{"z": 1}], "l": [[{"z": 1}]]},
        {"s": [{"A": 1}], "l": [[{"A": 1}]]},
        {"S": [{"a": 2, "B": {"C": 1}}], "l": [[{"a": 2}]]},
        {"s": [{"b": {"c": 2, "Z": 1}}], "L": [[{"A": 3}]]},
    )
    theirs = spark.read.option("mergeSchema", "true").parquet(path)
    columns = ["s.z", "s.a", "s.b.c", "s.b.z z2", "l[0].a a2"]
    for ours in (
        load(spark, path),
        load(spark, path, local=False, native=False),
        read(spark, path),
    ):
        for condition in ("true", "s.a >= 1", "s.b.c = 2", "l[0].a = 2", "s.a is null"):
            wanted = rows(theirs.where(condition).selectExpr(*columns))
            assert wanted[1]
            assert rows(ours.where(condition).selectExpr(*columns)) == wanted, condition
    for condition in (ps.col("s", "a") >= 1, "s.a >= 1"):
        assert sorted(read(spark, path, ["s.A"], condition).selectExpr("s.a").collect()) == [(1,), (2,)]  # fmt: skip
    assert aggregate(spark, path, [("s.a", "max")]).collect() == [(2,)]
    conf("spark.sql.caseSensitive", "true")
    assert "S" in load(spark, path).columns


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("kind", ["int", "string"])
def test_columns_of_folders_have_the_names_of_a_schema(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    for day in ("01", "02"):
        (tmp_path / f"day={day}").mkdir()
        written(tmp_path / f"day={day}", {"id": [int(day)]})
    check_schema(spark, str(tmp_path), f"ID long, DAY {kind}", "id = 2", "day = '02'", "Day > '01'")
    check_schema(spark, str(tmp_path), f"ID long, zz int, DAY {kind}", "day = '02'")


@pytest.mark.usefixtures("known")
def test_columns_of_folders_come_behind_those_of_a_schema(spark: Any, tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}" / "k=a").mkdir(parents=True)
        written(tmp_path / f"day={day}" / "k=a", {"id": [day], "z": [7], "day": [9]})
    for schema in (
        "k string, day int, id long",
        "DAY string, none int, Z long, ID long",
        "id long",
    ):
        check_schema(spark, str(tmp_path), schema, "day = 2", "k = 'a'")
    view = (
        "create temporary view folders_last (k string, id long) using pageseek options (path '{}')"
    )
    spark.sql(view.format(tmp_path))
    assert spark.table("folders_last").columns == ["id", "day", "k"]
    spark.catalog.dropTempView("folders_last")
    try:  # a table has the columns of its definition
        spark.sql(
            f"create table folders_as_defined (k string, id long) using pageseek location '{tmp_path}'"
        )
        assert spark.table("folders_as_defined").where("id = 2").collect() == [("a", 2)]
    finally:
        spark.sql("drop table if exists folders_as_defined")


@pytest.mark.usefixtures("known")
def test_a_schema_names_the_columns_of_a_lakes_table(spark: Any, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = pa.table({"id": [1, 2], "day": [1, 2]})
    deltalake.write_deltalake(str(tmp_path), table, partition_by=["day"])
    frame = spark.read.format("pageseek").schema("ID long, Day long").load(str(tmp_path))
    assert frame.columns == ["ID", "Day"]
    assert frame.where("day = 2").collect() == [(2, 2)]
    assert frame.where("id = 1").collect() == [(1, 1)]


@pytest.mark.usefixtures("known")
def test_fields_of_a_lakes_table_are_found_in_any_case(spark: Any, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    path, rows_of = str(tmp_path), [{"Aa": 1, "b": {"C": 5}}, {"Aa": 2, "b": {"C": 6}}]
    deltalake.write_deltalake(path, pa.table({"id": [1, 2], "s": rows_of, "l": [[{"Aa": 1}], []]}))
    for frame in (
        load(spark, path),
        load(spark, path, local=False, native=False),
        read(spark, path),
        spark.read.format("pageseek").load(path),
    ):
        for condition in ("S.aA = 2", "s.B.c = 6", "size(L.AA) = 0"):
            found = frame.where(condition).selectExpr("ID", "S.AA", "s.B.C")
            assert found.collect() == [(2, 2, 6)], condition
    for condition in ("S.AA = 1", ps.col("S", "aa") == 1, ps.col("s.b.c") == 5):
        assert read(spark, path, ["iD", "S.aa"], condition).collect() == [(1, (1,))]
    assert aggregate(spark, path, [("S.aa", "max")]).collect() == [(2,)]
    with pytest.raises(
        Exception, match=r"schema=: a table has its own; table=False reads the bare"
    ):
        spark.read.format("pageseek").schema("id long, S struct<AA: long>").load(path)


@pytest.mark.usefixtures("known")
def test_two_columns_of_a_file_for_one_of_the_schema_are_an_error(
    spark: Any, tmp_path: Path
) -> None:
    path = written(tmp_path, {"id": [1], "x": [1]}, {"iD": [2], "ID": [3], "X": [2]})
    reader = spark.read.format("pageseek")
    for schema in ("id long, x long", "id long, zz int, x long"):
        with pytest.raises(Exception, match=r"1\.parquet: column 'id' may be 'iD' or 'ID'"):
            reader.schema(schema).load(path).select("id").collect()
    assert sorted(reader.schema("x long, zz int").load(path).collect()) == [(1, None), (2, None)]


@pytest.mark.usefixtures("known")
def test_two_fields_of_a_file_for_one_of_the_schema_are_an_error(
    spark: Any, tmp_path: Path
) -> None:
    path = written(
        tmp_path, {"s": [{"id": 1, "x": 1}]}, {"S": [{"iD": 2, "ID": 3, "X": 2}], "y": [1]}
    )
    error = r"1\.parquet: column 's', field 'id' may be 'iD' or 'ID', which differ in case alone"
    for frame in (load(spark, path), read(spark, path)):
        for broken in (frame, frame.select("s")):
            with pytest.raises(Exception, match=error):
                broken.collect()
        with pytest.raises(Exception, match="Ambiguous reference to the field `id`"):
            frame.select("s.id")
        assert sorted(frame.selectExpr("s.x x2", "y").collect(), key=str) == [(1, None), (2, 1)]
    reader = spark.read.format("pageseek")
    with pytest.raises(Exception, match=error):
        reader.schema("s struct<id: long, x: long>, y long").load(path)
    found = reader.schema("y long, zz int").load(path).collect()
    assert sorted(found, key=str) == [(1, None), (None, None)]
