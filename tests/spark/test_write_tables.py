"""`write` into tables of Delta Lake and Iceberg: their own readers and ours find the rows after one commit."""

from __future__ import annotations

import datetime as dt
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.base.errors import PredicateError, UnsupportedError
from pageseek.spark import load, lookup, read, write
from support.delta_by_hand import DeltaTable
from support.lake_tables import KINDS, Made

pytestmark = pytest.mark.spark
SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("k", pa.int32()), ("s", pa.string()), ("d", pa.date32()), ("f", pa.float64()),
        ("m", pa.decimal128(9, 2)), ("t", pa.timestamp("us", "UTC")), ("b", pa.bool_()), ("l", pa.list_(pa.int64())),
    ]
)  # fmt: skip
COLUMNS = (
    "id", "cast(id % 3 as int) as k", "case when id % 4 = 0 then null else concat('a b/%', id % 2) end as s",
    "date_add('1969-12-30', cast(id % 5 as int)) as d", "if(id % 7 = 0, float('nan'), id / 3.0D) as f",
    "cast(id * 1.25 as decimal(9, 2)) as m", "timestamp_micros(id * 1000003) as t", "id % 2 = 0 as b", "array(id, null) as l",
)  # fmt: skip


def frame_of(spark: Any, start: int, end: int) -> Any:
    return spark.range(start, end, 1, 3).selectExpr(*COLUMNS)


def plain(frame: Any) -> list[dict[str, Any]]:
    """The rows as the tables' libraries give them."""
    found = frame.toArrow().to_pylist()
    return sorted(found, key=repr)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partition_by", [[], ["k"], ["s", "d"]])
def test_what_is_written_is_in_the_table_after_a_commit(
    spark: Any, tmp_path: Path, conf: Any, kind: str, partition_by: list[str]
):
    conf("spark.sql.session.timeZone", "America/New_York")
    made = Made(kind, tmp_path, SCHEMA, partition_by)
    first, second = frame_of(spark, 0, 60), frame_of(spark, 60, 90)
    written = write(first, made.table, mode="append", sort_by="id")
    assert written.rows == 60
    assert written.removed == 0
    write(second.select(*reversed(second.columns)), made.fresh(), mode="append")  # by names
    both = plain(first.union(second))
    assert repr(made.rows()) == repr(both)
    assert repr(plain(load(spark, made.fresh()).select(*SCHEMA.names))) == repr(both)

    few = ps.scan(made.fresh(), filter="id = 77", columns=["id"])
    assert few.to_table().to_pylist() == [{"id": 77}]
    if kind == "delta" and not partition_by:  # by the bounds in its log
        assert few.explain().to_dict()["files"]["read"] == 1

    replaced = write(second, made.fresh(), mode="overwrite")
    assert replaced.removed > 0
    assert repr(made.rows()) == repr(plain(second))
    with pytest.raises(FileExistsError):
        write(second, made.fresh())
    assert write(second, made.fresh(), mode="ignore").files == ()
    assert repr(made.rows()) == repr(plain(second))


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_are_replaced_by_what_is_written(spark: Any, tmp_path: Path, kind: str):
    schema = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("s", pa.string())])
    made = Made(kind, tmp_path, schema, ["k", "s"])
    columns = "id", "cast(id % 3 as int) as k", "nullif(concat('x=/', id % 2), 'x=/0') as s"
    write(spark.range(30).selectExpr(*columns), made.table, mode="append")
    new = spark.range(100, 103).selectExpr("id", "cast(1 as int) as k", "cast(null as string) as s")
    written = write(new, made.fresh(), mode="overwrite", dynamic=True)
    assert written.removed > 0
    kept = spark.range(30).selectExpr(*columns).where("not (k = 1 and s is null)")
    assert repr(made.rows()) == repr(plain(kept.union(new)))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_of_a_write_that_fails(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    made = Made(kind, tmp_path, pa.schema([("id", pa.int64())]), [])
    write(spark.range(5), made.table, mode="append")
    before = made.files()
    with pytest.raises(UnsupportedError, match=r"'id' is bigint there, and string.*cast"):
        write(spark.range(5).selectExpr("cast(id as string) as id"), made.fresh(), mode="append")
    with pytest.raises(PredicateError, match=r"no column 'ID2'.*'id'"):
        write(spark.range(5).withColumnRenamed("id", "ID2"), made.fresh(), mode="append")
    with pytest.raises(UnsupportedError, match="partitioned by nothing"):
        write(spark.range(5), made.fresh(), mode="append", partition_by="id")
    failing = spark.range(5).selectExpr("if(id = 3, cast(raise_error('no') as bigint), id) as id")
    with pytest.raises(Exception, match="no"):
        write(failing, made.fresh(), mode="append")
    table = made.fresh()
    name = "create_write_transaction" if kind == "delta" else "transaction"

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(type(table), name, broken)
    with pytest.raises(Exception, match="broken"):
        write(spark.range(5), table, mode="append")
    monkeypatch.undo()
    assert made.files() == before
    assert len(made.rows()) == 5


def test_a_delta_table_with_vectors_and_mapped_columns(spark: Any, tmp_path: Path):
    """It is read in every way. Files with a vector cannot be replaced, as the log would keep them."""
    pytest.importorskip("deltalake")
    kinds = {"id": "long", "s": "string", "k": "integer"}
    table = DeltaTable(tmp_path / "t", "name", kinds, ["k"], random.Random(3))
    for _ in range(3):
        table.add(100)
        table.delete()
    root = str(tmp_path / "t")
    for frame in (load(spark, root), read(spark, root), load(spark, root, local=False)):
        assert repr(plain(frame)) == repr(sorted(table.rows(), key=repr))
    wanted = [row for row in table.rows() if row["id"] == 5 and row["s"] is not None]
    assert wanted
    for frame in (
        load(spark, root).where("id = 5 and s is not null"),
        read(spark, root, filter="id = 5 and s is not null"),
    ):
        assert repr(plain(frame)) == repr(sorted(wanted, key=repr))
    assert load(spark, root).count() == len(table.rows())
    least = load(spark, root).selectExpr("min(id)", "max(id)", "count(s)").first()
    ids = [row["id"] for row in table.rows() if row["id"] is not None]
    assert tuple(least) == (min(ids), max(ids), sum(row["s"] is not None for row in table.rows()))
    keys = spark.createDataFrame([(5,), (77,)], "key long")
    found = lookup(spark, root, keys, on={"key": "id"})
    assert found.count() == sum(row["id"] == 5 for row in table.rows())
    plain_table = DeltaTable(tmp_path / "p", "none", kinds, [], random.Random(3))
    plain_table.add(100)
    plain_table.delete()
    frame = load(spark, root).limit(3)
    with pytest.raises(
        UnsupportedError,
        match=r"has a deletion vector.*by pageseek.rewrite\(table, in_place=True\)",
    ):
        write(frame, str(tmp_path / "p"), mode="overwrite")
    assert as_rows(str(tmp_path / "p")) == sorted(map(repr, plain_table.rows()))
    write(frame, str(tmp_path / "p"), mode="append")
    assert len(as_rows(str(tmp_path / "p"))) == len(plain_table.rows()) + 3


@pytest.mark.parametrize("seed", [5, 11])
def test_an_iceberg_table_with_deletes(spark: Any, tmp_path: Path, seed: int):
    """Deletes by position and by equality, partition specs that changed: it is read in every way."""
    pytest.importorskip("pyiceberg")
    from support.iceberg_by_hand import Model, as_text

    made = Model(tmp_path, seed)
    made.append()
    for _ in range(8):
        made.act()
    made.positions()
    made.values()
    rows = made.rows()
    root = str(made.table.metadata.location).removeprefix("file://")
    assert len(rows) > 30 and any(one.deletes for one in ps.scan(root)._sources)
    for source in (made.table, root):
        for frame in (load(spark, source), read(spark, source), load(spark, source, local=False)):
            assert as_text(plain(frame)) == as_text(rows)
    wanted = [row for row in rows if row["v"] == 3 or row["k"] is None]
    condition = "v = 3 or k is null"
    for frame in (load(spark, root).where(condition), read(spark, root, filter=condition)):
        assert as_text(plain(frame)) == as_text(wanted)
    assert load(spark, root).count() == len(rows)
    assert load(spark, root).where("n.x = 2").count() == sum(
        (r["n"] or {}).get("x") == 2 for r in rows
    )
    ids = [row["id"] for row in rows if row["id"] is not None]
    least = load(spark, root).selectExpr("min(id)", "max(id)", "count(k)").first()
    assert tuple(least) == (min(ids), max(ids), sum(row["k"] is not None for row in rows))
    keys = spark.createDataFrame([(one,) for one in range(10)], "key long")
    assert lookup(spark, root, keys, on={"key": "id"}).count() == sum(one < 10 for one in ids)
    old = made.table.snapshots()[0].snapshot_id
    assert load(spark, root, snapshot=old).count() == ps.scan(root, snapshot=old).count_rows() > 0
    made.catalog.close()


def as_rows(path: str) -> list[str]:
    return sorted(map(repr, ps.read_table(path).to_pylist()))


def test_a_delta_table_with_rules_of_its_own_is_refused(spark: Any, tmp_path: Path):
    deltalake = pytest.importorskip("deltalake")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    path = str(tmp_path / "t")
    table = deltalake.DeltaTable.create(path, schema)
    some = spark.range(4).selectExpr("if(id = 2, null, id) as id", "id as v")
    with pytest.raises(UnsupportedError, match="'id' may have no nulls"):
        write(some, path, mode="append")
    write(spark.range(4).selectExpr("id", "cast(null as bigint) as v"), path, mode="append")
    table = deltalake.DeltaTable(path)
    assert table.to_pyarrow_table().num_rows == 4
    table.alter.add_constraint({"positive": "id >= 0"})
    with pytest.raises(UnsupportedError, match=r"delta\.constraints\.positive"):
        write(spark.range(4).selectExpr("id", "id as v"), path, mode="append")
    with pytest.raises(UnsupportedError, match="lies in, a table"):
        write(spark.range(4), os.path.join(path, "inner"), mode="append")


def test_bounds_in_the_log_prune_and_never_too_much(spark: Any, tmp_path: Path):
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "t")
    deltalake.DeltaTable.create(path, SCHEMA)
    frame = frame_of(spark, 0, 300)
    write(frame, path, mode="append", cluster_by="id", files=5)
    for condition in (
        "id = 250", "s = 'a b/%1'", "s is null", "d = date'1970-01-02'", "f > 1e9", "m = 12.50",
        "t = timestamp_micros(77 * 1000003)", "b", "f = float('nan')",
    ):  # fmt: skip
        expected = plain(frame.where(condition))
        assert repr(plain(load(spark, path).where(condition))) == repr(expected), condition
    table = deltalake.DeltaTable(path)
    bounds = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert len(bounds) == 5
    assert {one["null_count.s"] for one in bounds} == {15}
    assert max(one["max.m"] for one in bounds) == Decimal("373.75")
    assert max(one["max.d"] for one in bounds) == dt.date(1970, 1, 3)
    assert all("max.f" not in one or one["max.f"] is None for one in bounds)
