"""Spark's view of a DataFrame: its size decides the join, its partitions the number of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import read
from pageseek.spark.tasks import sizing

pytestmark = pytest.mark.spark
ROWS = 2_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small file of many rows: what matters is what comes out of it."""
    path = tmp_path_factory.mktemp("joins") / "large.parquet"
    table = pa.table({"k": np.arange(ROWS), "v": np.zeros(ROWS, np.int64)})
    pq.write_table(table, path, row_group_size=ROWS // 8)
    return str(path)


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().toString())


def told(frame: Any) -> int:
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def test_only_what_is_small_is_broadcast(spark: Any, large: str) -> None:
    assert spark.conf.get("spark.sql.autoBroadcastJoinThreshold") == "10485760b"
    others = spark.range(0, 1 << 40).withColumnRenamed("id", "k")
    for tasks in (1, 4):
        joined = plan_of(others.join(read(spark, large, tasks=tasks), "k"))
        assert "SortMergeJoin" in joined
        assert "BroadcastHashJoin" not in joined
        few = read(spark, large, filter=ps.col("k") < 1000, tasks=tasks)
        assert "BroadcastHashJoin" in plan_of(others.join(few, "k"))
    setting = "spark.sql.autoBroadcastJoinThreshold"
    spark.conf.set(setting, str(1 << 30))
    try:
        assert "BroadcastHashJoin" in plan_of(others.join(read(spark, large), "k"))
    finally:
        spark.conf.unset(setting)


def test_the_size_that_is_told_is_of_the_order_of_the_rows(spark: Any, large: str) -> None:
    whole = read(spark, large, tasks=3)
    assert ROWS * 16 <= told(whole) <= ROWS * 16 * 4
    assert told(read(spark, large, limit=10)) < 4096
    assert told(read(spark, large, filter=ps.col("k") == 7)) < 16 << 20  # a row group at most


@pytest.mark.parametrize("tasks", [1, 64])
@pytest.mark.parametrize("told_bytes", [1, 1 << 10, 1 << 20, 1 << 30, 1 << 40])
def test_a_size_is_told_by_few_ids(
    spark: Any, monkeypatch: pytest.MonkeyPatch, told_bytes: int, tasks: int
) -> None:
    monkeypatch.setattr(sizing, "size", lambda _: told_bytes)
    plan: Any = None  # only its size matters
    frame, step = sizing.range_of(spark, plan, tasks)
    size = told(frame.mapInArrow(_rows_of_a_task, "rows long"))
    assert told_bytes <= size < max(2 * told_bytes, 3 * sizing.ID_BYTES * tasks)
    assert step * tasks <= max(sizing.FEW_IDS, 2 * told_bytes // 800, tasks)
    if step * tasks < 1 << 22:
        found = [row[0] for row in frame.collect()]
        assert found == [i * step for i in range(tasks)]
        assert frame.rdd.glom().map(len).collect() == [1] * tasks


@pytest.mark.parametrize("tasks", [1, 3, 8])
def test_a_task_is_one_partition_without_a_shuffle(spark: Any, large: str, tasks: int) -> None:
    frame = read(spark, large, ["k"], tasks=tasks)
    assert frame.rdd.getNumPartitions() == tasks
    plan = plan_of(frame)
    assert "Exchange" not in plan
    assert "AdaptiveSparkPlan" not in plan
    found = frame.mapInArrow(_rows_of_a_task, "rows long").collect()
    assert len(found) == tasks
    assert all(row[0] > 0 for row in found)
    assert sum(row[0] for row in found) == ROWS
    assert frame.agg({"k": "sum"}).collect()[0][0] == ROWS * (ROWS - 1) // 2


def _rows_of_a_task(batches: Any) -> Any:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})
