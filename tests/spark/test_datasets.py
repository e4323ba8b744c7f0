"""Datasets in Spark: partition columns and files with different columns, compared with Spark's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import read

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("lake")
    for k, d in (
        ("1", "2024-01-01"),
        ("2", "2024-01-02"),
        ("__HIVE_DEFAULT_PARTITION__", "2024-01-02"),
    ):
        folder = root / f"k={k}" / f"d={d}"
        folder.mkdir(parents=True)
        table = pa.table({"a": pa.array([1, 2, None], pa.int64()), "s": ["x", None, "z"]})
        pq.write_table(table, folder / "p.parquet")
    return str(root)


def rows(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize(
    "condition",
    [
        None,
        "k = 1",
        "k is null and a > 1",
        "d = date '2024-01-02' or s = 'x'",
        "not (k = 1)",
        "a < k",
    ],
)
def test_folders_as_spark_has_them(spark: Any, lake: str, condition: str | None) -> None:
    theirs = spark.read.parquet(lake)
    ours = read(spark, lake, filter=condition)
    assert ours.dtypes == theirs.dtypes
    assert rows(ours) == rows(theirs if condition is None else theirs.where(condition))
    assert rows(read(spark, lake, ["d", "a"], condition)) == rows(
        (theirs if condition is None else theirs.where(condition)).select("d", "a")
    )


def test_files_that_differ(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32())}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": pa.array([3], pa.int64()), "n": ["x"]}), tmp_path / "1.parquet")
    frame = read(spark, str(tmp_path), filter=(ps.col("n") == "x") | (ps.col("a") == 2))
    assert frame.dtypes == [("a", "bigint"), ("n", "string")]
    assert rows(frame) == ["Row(a=2, n=None)", "Row(a=3, n='x')"]
    assert read(spark, str(tmp_path), [], filter="n is null").count() == 2


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_folders_that_are_tables(spark: Any, tmp_path: Path, kind: str) -> None:
    old, new = (pa.table({"id": range(i, i + 10), "k": ["x", "y"] * 5}) for i in (0, 100))
    root = str(tmp_path / "t")
    if kind == "delta":
        deltalake = pytest.importorskip("deltalake")
        deltalake.write_deltalake(root, old, partition_by=["k"])
        deltalake.write_deltalake(root, new, mode="overwrite")
    else:
        sql = pytest.importorskip("pyiceberg.catalog.sql")
        catalog = sql.SqlCatalog(
            "c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}"
        )
        catalog.create_namespace("n")
        table = catalog.create_table("n.t", schema=old.schema)
        table.append(old)
        table.overwrite(new)
        root = table.metadata.location
    for source in (root, [root]):
        assert sorted(row.id for row in read(spark, source).collect()) == list(range(100, 110))
        assert read(spark, source, filter="k = 'x' and id < 104").count() == 2
    assert read(spark, root, ["id"], table=False).count() == 20
    with pytest.raises(ps.UnsupportedError, match="table=False"):
        read(spark, str(tmp_path))
    if kind == "delta":
        deltalake.DeltaTable(root).delete()
        empty = read(spark, root)
        assert empty.dtypes == [("id", "bigint"), ("k", "string")]
        assert empty.count() == 0
