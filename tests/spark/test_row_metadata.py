"""Types that Spark tells in the footers of its own files, compared with Spark's own reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import load, read, register
from pageseek.spark.columns.row_metadata import KEY, spark_fields

pytestmark = pytest.mark.spark


MANY = ", ".join(f"'k{i}', id + {i}" for i in range(300))
KINDS = """named_struct('i', tinyint(3), 'd', date '2024-01-01', 't', timestamp '1500-01-01 01:02:03.5',
    'n', timestamp_ntz '2024-01-01 01:02:03', 'b', X'00ff', 'f', float(1.5), 'x', 2.5D, 's', repeat('long', 30), 'o', id = 3,
    'q', id * 1000000007, 'p', 1.25BD, 'r', 12345678901234567890.5BD, 'l', array(named_struct('z', id)), 'e',
    slice(array(id), 1, 0))"""
OTHERS = """case id when 1 then parse_json('null') when 2 then parse_json('"a"') when 3 then parse_json('17') when 4 then
    parse_json('{}') when 5 then parse_json('{"a":"text","zz":7,"c":[1,null,{"y":1}]}') when 6 then
    parse_json('{"b":{"f":1,"more":[]}}') end"""
PARTS = "named_struct('a', id, 'b', named_struct('f', true), 'c', array(1, 2))"
SHREDDED = (("null", KINDS), (OTHERS, PARTS), ("null", f"named_struct('a', id, {MANY})"))


def texts(frame: Any) -> list[str]:
    """Rows as texts: Python has no year-month interval."""
    columns = [f"cast(`{name}` as string) as `{name}`" for name in frame.columns]
    return sorted(map(repr, frame.selectExpr(*columns).collect()))


def test_intervals(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "i")
    spark.sql(
        "select id, make_ym_interval(0, int(id) - 1) ym, cast(make_ym_interval(int(id), 0) as interval year) y, "
        "make_dt_interval(int(id), 2, 3, 4.5) ds, interval '1' day d, array(make_ym_interval(0, int(id)), null) l, "
        "named_struct('d', interval '2' hour, 'm', interval '3' month, 'x', id) s, map('k', interval '1-2' year to month) m, "
        "nullif(interval '5' minute, interval '5' minute) n from range(4)"
    ).write.parquet(path)
    native = spark.read.parquet(path)
    ours = read(spark, path)
    assert ours.schema == native.schema
    assert texts(ours) == texts(native)
    condition = "id > 1"
    some = native.where(condition).select("s", "ym")
    assert texts(read(spark, path, ["s", "ym"], condition)) == texts(some)
    assert read(spark, path, filter="id < 0").schema == native.schema
    for choices in ({}, {"local": False}, {"local": False, "native": False}):
        by_load = load(spark, path, **choices)
        assert by_load.schema == native.schema
        assert texts(by_load) == texts(native), choices


def test_comments_collations_and_char(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "c")
    spark.sql(
        "create table commented (c char(5), v varchar(7) comment 'short', s struct<c: char(3) comment 'in'>) "
        f"using parquet location '{path}'"
    )
    try:
        spark.sql("insert into commented values ('a', 'b', named_struct('c', 'x'))")
        native = spark.read.parquet(path)
        for ours in (read(spark, path), load(spark, path), load(spark, path, local=False)):
            assert ours.schema == native.schema
            assert ours.collect() == native.collect()
        assert read(spark, path, ["V"]).schema["V"].metadata == {"comment": "short"}
    finally:
        spark.sql("drop table commented")
    path = str(tmp_path / "collated")
    spark.sql("select 'Ab' collate UTF8_LCASE as c, 1 as i").write.parquet(path)
    native, ours = spark.read.parquet(path), read(spark, path)
    assert ours.schema == native.schema
    assert ours.where("c = 'aB'").collect() == native.where("c = 'aB'").collect()


def test_a_schema_of_a_user_says_the_metadata_of_columns(spark: Any, tmp_path: Path) -> None:
    register(spark)
    path = str(tmp_path / "own")
    columns = "id bigint comment 'of the file', c char(5), s struct<x: bigint, y: string>, k bigint"
    spark.sql(f"create table own ({columns}) using parquet location '{path}'")
    given = "k bigint, ID bigint comment 'top', s struct<Y: string, x: bigint comment 'in'>, a array<struct<n: int comment 'new'>>"
    defined = (
        "id bigint comment 'top', c char(5) comment 'padded', s struct<x: bigint comment 'in'>"
    )
    try:
        spark.sql("insert into own values (1, 'a', named_struct('x', 7L, 'y', 'b'), 3)")
        for schema in (given, "id bigint, c string"):
            native = spark.read.schema(schema).parquet(path)
            for local in ("true", "false"):
                ours = spark.read.format("pageseek").option("local", local).schema(schema)
                frame = ours.load(path)
                assert frame.schema == native.schema
                assert frame.collect() == native.collect()
                assert frame.where("id = 1").select(native.columns[1]).count() == 1
                if schema == given:
                    assert frame.select("s.x").collect() == native.select("s.x").collect()
        for name, of in (("defined", "pageseek"), ("like_it", "parquet")):
            spark.sql(f"create table {name} ({defined}) using {of} location '{path}'")
        ours, native = spark.table("defined"), spark.table("like_it")
        assert ours.schema == native.schema
        for condition in ("c = 'a'", "c = 'a    '", "c < 'b'", "c <> 'a'"):
            assert ours.where(condition).collect() == native.where(condition).collect()
        for figure in ("max(c)", "count(c)", "min(s.x)"):
            assert ours.selectExpr(figure).collect() == native.selectExpr(figure).collect()
        assert [one.description for one in spark.catalog.listColumns("defined")] == [
            one.description for one in spark.catalog.listColumns("like_it")
        ]
    finally:
        for name in ("own", "defined", "like_it"):
            spark.sql(f"drop table if exists {name}")


def test_user_defined_types(spark: Any, tmp_path: Path) -> None:
    from pyspark.ml.linalg import Vectors

    path = str(tmp_path / "u")
    rows = [(1, Vectors.dense([1.0, 2.0])), (2, Vectors.sparse(3, [1], [4.0])), (3, None)]
    spark.createDataFrame(rows, ["id", "v"]).write.parquet(path)
    native = spark.read.parquet(path)
    for ours in (read(spark, path), load(spark, path), load(spark, path, local=False)):
        assert ours.schema == native.schema
        assert sorted(ours.collect()) == sorted(native.collect())
    assert read(spark, path, filter="id = 7").schema == native.schema


def test_variants(spark: Any, tmp_path: Path, conf: Callable[[str, str], None]) -> None:
    conf("spark.sql.variant.writeShredding.enabled", "false")
    path = str(tmp_path / "v")
    spark.sql(
        """select id, if(id = 1, null, parse_json('{"a": ' || id || ', "b": [1.5, "x", null]}')) v,
        named_struct('w', parse_json('[true]')) s from range(3)"""
    ).write.parquet(path)
    native = spark.read.parquet(path)
    for ours in (read(spark, path), load(spark, path), load(spark, path, local=False)):
        assert ours.schema == native.schema
        assert texts(ours) == texts(native)
    assert read(spark, path, ["v"], "v is null").count() == 1


def test_variants_that_are_shredded(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
) -> None:
    conf("spark.sql.variant.writeShredding.enabled", "true")
    conf("spark.sql.variant.inferShreddingSchema", "true")
    for i, (others, typed) in enumerate(SHREDDED):
        path = str(tmp_path / str(i))
        if i == 1:  # of values of many kinds none is inferred
            conf("spark.sql.variant.inferShreddingSchema", "false")
            given = "a bigint, b struct<f: boolean>, c array<bigint>, absent string"
            conf("spark.sql.variant.forceShreddingSchemaForTest", given)
        spark.sql(
            f"select id, coalesce({others}, to_variant_object({typed})) v from range(20)"
        ).coalesce(1).write.parquet(path)
        leaves = pq.ParquetDataset(path).fragments[0].metadata.num_columns
        assert leaves > 5
        native = spark.read.parquet(path)
        for ours in (read(spark, path), load(spark, path, local=False, native=False)):
            assert ours.schema == native.schema
            assert texts(ours) == texts(native)
            kinds = "id", "schema_of_variant(v) k"
            assert sorted(map(repr, ours.selectExpr(*kinds).collect())) == sorted(
                map(repr, native.selectExpr(*kinds).collect())
            )
    assert read(spark, path, ["id"]).count() == 20


def without_sparks(path: Path, other: Path) -> str:
    """The same files as another writer leaves them, without Spark's key in the footer."""
    other.mkdir()
    for file in path.glob("*.parquet"):
        data = file.read_bytes()
        assert KEY in data
        (other / file.name).write_bytes(data.replace(KEY, KEY.replace(b"spark", b"spork")))
    return str(other)


@pytest.mark.parametrize("shredded", ["true", "false"])
def test_groups_that_the_file_calls_variants(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None], shredded: str
) -> None:
    conf("spark.sql.variant.writeShredding.enabled", shredded)
    conf("spark.sql.variant.inferShreddingSchema", shredded)
    spark.sql(
        """select id, if(id % 3 = 1, null, parse_json('{"a": ' || id || ', "b": [1.5, "x", null]}')) v,
        named_struct('w', parse_json(string(id)), 'k', id) s, array(parse_json('1'), null) l,
        map('k', cast(null as variant), 'm', parse_json('"x"')) m from range(20)"""
    ).coalesce(1).write.parquet(str(tmp_path / "own"))
    path = without_sparks(tmp_path / "own", tmp_path / "others")
    for source in (path, str(tmp_path / "own")):
        native = spark.read.parquet(source)
        assert "variant" in native.schema["v"].dataType.simpleString()
        for ours in (load(spark, source), load(spark, source, local=False), read(spark, source)):
            assert ours.schema == native.schema
            wanted = (
                "id",
                "string(v)",
                "string(s.w)",
                "s.k",
                "string(l[0])",
                "l[1] is null",
                "string(m['m'])",
                "m['k'] is null",
            )
            assert sorted(ours.selectExpr(*wanted).collect()) == sorted(
                native.selectExpr(*wanted).collect()
            )
            assert len(ours.collect()) == 20  # whole values, too
    many = spark.range(250_000)  # as many as are left to Spark's own reader
    many.selectExpr("id", "parse_json(string(id)) v").coalesce(1).write.parquet(
        str(tmp_path / "many")
    )
    path = without_sparks(tmp_path / "many", tmp_path / "many others")
    assert load(spark, path).selectExpr("sum(v::bigint)").collect() == [(249_999 * 125_000,)]


def test_metadata_that_does_not_fit_counts_for_nothing(spark: Any, tmp_path: Path) -> None:
    given = b"""{"type": "struct", "fields": [
        {"name": "a", "type": "interval year to month", "nullable": true, "metadata": {}},
        {"name": "b", "type": "no such type", "nullable": true, "metadata": {}},
        {"name": "c", "type": {"type": "udt", "class": "x.Y", "sqlType": "integer"}, "nullable": true, "metadata": {}}]}"""
    table = pa.table({"a": ["x"], "b": [1], "c": pa.array([1], pa.int32())})
    for text in (given, b"{", b"[]"):
        path = str(tmp_path / "f.parquet")
        pq.write_table(table.replace_schema_metadata({KEY: text}), path)
        assert read(spark, path).dtypes == [("a", "string"), ("b", "bigint"), ("c", "int")]
    assert list(spark_fields({KEY: given})) == ["a"]


@pytest.mark.parametrize("condition", [None, "a > 5"])
def test_columns_that_are_named_twice(spark: Any, tmp_path: Path, condition: str | None) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": [1, 2], "b.c": [3, 4]}), path)
    native = spark.read.parquet(path)
    native = native if condition is None else native.where(condition)
    for names in (["a", "a"], ["a", "b.c", "A"], ["b.c", "b.c", "a"]):
        ours = read(spark, path, names, condition)
        wanted = native.select(*[f"`{name}`" for name in names])
        assert ours.columns == wanted.columns
        assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, wanted.collect()))
