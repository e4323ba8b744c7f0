"""`load` over files whose columns have several types: each query has the types over all files, also if it opens few of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pageseek.spark import load, read, register
from support.sql_doors import ORACLE, settings
from support.writer import INT32, Column, Struct, integer, write

pytestmark = pytest.mark.spark
NARROW = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.float32())])),
        ("l", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
    ]
)
WIDE = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("st", pa.struct([("a", pa.int64()), ("b", pa.float64()), ("c", pa.string())])),
        ("l", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.int32())]))),
    ]
)


def _rows(schema: pa.Schema, start: int) -> pa.Table:
    values: list[dict[str, Any]] = [
        {
            "i": i,
            "f": i + 0.5,
            "st": {"a": i, "b": i + 0.5, "c": "c"},
            "l": [{"x": i, "y": "y", "z": 1}, None],
        }
        for i in range(start, start + 50)
    ]
    kept = [{name: row[name] for name in schema.names} for row in values]
    for row in kept:
        row["st"] = {name: row["st"][name] for name in schema.field("st").type.names}
        names = schema.field("l").type.value_type.names
        row["l"] = [None if one is None else {n: one[n] for n in names} for one in row["l"]]
    return pa.Table.from_pylist(kept, schema)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("types")
    for day, schema, start in ((1, NARROW, 0), (2, WIDE, 2**40)):
        (made / f"day={day}").mkdir()
        pq.write_table(_rows(schema, start), made / f"day={day}" / "a.parquet")
    return str(made)


@pytest.mark.covering(1)
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("columns", ["f", "st.b", "st.a, st.c", "l.x", "l.z, st.b", "st, l"])
def test_few_files_give_the_types_of_all(
    spark: Any, folder: str, columns: str, local: bool
) -> None:
    frame = load(spark, folder, local=local, native=local)
    wanted = ["i", *columns.split(", ")]
    every = frame.selectExpr(*wanted).toArrow()
    assert sorted(every["i"].to_pylist()) == [*range(50), *range(2**40, 2**40 + 50)]
    queries = {
        "day = 1": every.filter(pc.less(every["i"], 1000)),
        "day = 2": every.filter(pc.greater(every["i"], 1000)),
        "i = 7": every.filter(pc.equal(every["i"], 7)),
    }
    for condition, expected in queries.items():
        found = frame.where(condition).selectExpr(*wanted).toArrow()
        assert found.schema == every.schema
        assert found.sort_by("i").equals(expected.sort_by("i"))
    few = frame.selectExpr(*wanted).limit(3).toArrow()
    assert few.schema == every.schema
    assert few.num_rows == 3
    assert all(row in every.to_pylist() for row in few.to_pylist())


def test_fields_beside_a_filter_have_the_types_of_all(spark: Any, folder: str) -> None:
    found = read(spark, folder, ["i", "st.a"], "st.b > 40 and upper(st.c) is null")
    assert found.schema["st"].dataType.simpleString() == "struct<a:bigint>"
    assert sorted((row.i, row.st.a) for row in found.collect()) == [(n, n) for n in range(40, 50)]


@pytest.mark.parametrize("condition", ["day = 1", "day = 2", "day > 0"])
def test_aggregates_have_the_types_of_all(spark: Any, folder: str, condition: str) -> None:
    days = {"day = 1": [0], "day = 2": [2**40], "day > 0": [0, 2**40]}[condition]
    low, high = min(days), max(days) + 49
    frame = load(spark, folder).where(condition)
    assert tuple(frame.selectExpr("min(i)", "max(i)", "count(st)").first()) == (
        low,
        high,
        50 * len(days),
    )
    groups = frame.groupBy("day").agg({"i": "max"}).collect()
    assert sorted(row[1] for row in groups) == [day + 49 for day in days]


def test_values_beyond_an_unsigned_type_come_as_they_are_stored(spark: Any, tmp_path: Path) -> None:
    values = {8: [0, 255, -1, 300, None, -256], 16: [0, 65_535, -1, 70_000, None, -65_536]}
    columns = [
        Column(
            f"u{bits}", INT32, of, [2, 2, 2], logical=integer(bits, False), encodings="dictionary"
        )
        for bits, of in values.items()
    ]
    path = str(tmp_path / "odd.parquet")
    Path(path).write_bytes(write(columns))
    own = spark.read.parquet(path)
    assert [tuple(row) for row in own.collect()] == list(zip(*values.values(), strict=True))
    conditions = ["true", *(f"u{bits} = {v}" for bits, of in values.items() for v in of if v)]
    conditions += ["u8 < 0", "u16 > 65535", "u8 in (-1, 300)", "u16 between -1 and 5", "u8 is null"]
    for how in ({}, {"local": False, "native": False}):
        frame = load(spark, path, **how)
        assert frame.schema == own.schema
        for condition in conditions:
            with settings(spark, ORACLE):
                expected = own.where(condition).collect()
            assert frame.where(condition).collect() == expected, condition
            assert read(spark, path, filter=condition).collect() == expected, condition
        ends = ["min(u8)", "max(u8)", "min(u16)", "max(u16)"]
        assert frame.selectExpr(*ends).collect() == own.selectExpr(*ends).collect()


@pytest.mark.parametrize("door", ["load", "read", "format"])
def test_settings_choose_the_types_that_parquet_leaves_open(
    spark: Any, conf: Any, tmp_path: Path, door: str
) -> None:
    conf("spark.sql.parquet.inferTimestampNTZ.enabled", "false")
    conf("spark.sql.parquet.binaryAsString", "true")
    conf("spark.sql.session.timeZone", "America/New_York")
    path, told = str(tmp_path / "a.parquet"), str(tmp_path / "told")
    times = pa.array([0, 1, 3_600_000_000, None], pa.timestamp("us"))
    texts = pa.array([b"a", b"b", b"\xff", None], pa.large_binary())
    inside = pa.StructArray.from_arrays([times, texts], ["t", "b"])
    pq.write_table(pa.table({"k": [0, 1, 2, 3], "t": times, "b": texts, "s": inside}), path)
    spark.sql("select timestamp_ntz '2020-01-01' as t, X'61' as b, 1 as k").write.parquet(told)

    def frame(source: str) -> Any:
        if door == "format":
            return spark.read.format("pageseek").load(source)
        return {"load": load, "read": read}[door](spark, source)

    register(spark)
    for source in (path, told):  # files of Spark keep the types that it says in them
        ours, own = frame(source), spark.read.parquet(source)
        assert ours.schema == own.schema
        for condition in (
            "true",
            "t = timestamp '1969-12-31 19:00:00'",
            "t > timestamp '1969-12-31 19:00:00'",
            "s.t = timestamp '1969-12-31 20:00:00'" if source == path else "true",
            "b = 'a'",
            "b >= 'b'",
            "s.b in ('a', 'b')" if source == path else "true",
        ):
            one, other = (f.where(condition).selectExpr("k", "t", "hex(b)") for f in (ours, own))
            assert sorted(map(str, one.collect())) == sorted(map(str, other.collect())), condition


def test_columns_of_nulls_alone_have_the_types_of_sparks_reader(
    spark: Any, tmp_path: Path, conf: Any
) -> None:
    from pageseek.spark import aggregate, lookup

    unknown = Struct({11: Struct({})})
    physical = {"b": 0, "i": 1, "l": 2, "t": 3, "f": 4, "d": 5, "s": 6}
    columns = [
        Column(name, number, [None] * 4, logical=unknown, optional=True)
        for name, number in physical.items()
    ]
    columns.append(Column("id", INT32, [1, 2, 3, 4], optional=False))
    (tmp_path / "a.parquet").write_bytes(write(columns))
    path = str(tmp_path)
    theirs = spark.read.parquet(path)
    for ours in (load(spark, path), load(spark, path, local=False), read(spark, path)):
        assert ours.schema == theirs.schema
        for condition in (
            "true",
            "i = 3",
            "l is null and id > 2",
            "i <=> null",
            "s = X'00' or d > 1",
            "t < current_timestamp()",
        ):
            assert sorted(ours.where(condition).collect()) == sorted(
                theirs.where(condition).collect()
            ), condition
        for query in (
            lambda f: f.groupBy("i", "s").agg({"l": "sum", "d": "max", "id": "count"}),
            lambda f: f.groupBy().agg({"i": "min", "t": "max", "b": "count"}),
        ):
            assert query(ours).collect() == query(theirs).collect()
    assert aggregate(spark, path, ["count", ("i", "min"), ("l", "sum")]).collect() == [
        (4, None, None)
    ]
    assert lookup(spark, path, [3], on="id", columns=["i", "t"]).collect() == [(3, None, None)]
    assert lookup(spark, path, [3], on="i").collect() == []
    pq.write_table(pa.table({"i": [7], "id": pa.array([5], pa.int32())}), tmp_path / "b.parquet")
    assert load(spark, path).where("i = 7").select("id").collect() == [(5,)]
    assert load(spark, path).schema["i"].dataType.simpleString() == "bigint"
    nested = pa.table(
        {"n": pa.array([{"x": None, "y": 1}], pa.struct([("x", pa.null()), ("y", pa.int64())]))}
    )
    other = tmp_path / "nested"
    other.mkdir()
    pq.write_table(nested, other / "n.parquet")
    mine, own = load(spark, str(other)), spark.read.parquet(str(other))
    assert mine.schema == own.schema
    assert mine.collect() == own.collect()
