"""One large row group: several tasks share it, and a worker holds little of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, lookup, read, report
from pageseek.spark.columns.plan_schema import schema_of
from pageseek.spark.tasks.sizing import parts_of

ROWS = 40_000
MB = 1 << 20
READ = """
import resource, sys, threading
from pathlib import Path
from pageseek.base.version import __version__
from pageseek.spark.tasks.task import run

def private():
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) << 10

def count(part):
    return sum(batch.num_rows for batch in run(Path(part).read_bytes(), __version__))

small, large = sys.argv[1:]
count(small)  # imports what a worker has imported once
before, most, ended = private(), 0, threading.Event()

def watch():
    global most
    while not ended.wait(0.002):
        most = max(most, private())

watcher = threading.Thread(target=watch)
watcher.start()
rows = count(large)
ended.set()
watcher.join()
print(rows, most - before)
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with one row group of small pages."""
    rng, k = np.random.default_rng(3), np.arange(ROWS)
    ends = pa.array(np.r_[0, np.cumsum(k % 3)], pa.int32())
    table = pa.table(
        {
            "k": k,
            "x": rng.random(ROWS),
            "s": [None if i % 5 == 1 else f"row {i}" for i in k],
            "list": pa.ListArray.from_arrays(ends, pa.array(rng.integers(0, 9, (k % 3).sum()))),
            "st": pa.StructArray.from_arrays([pa.array(k % 50), pa.array(k / 2)], ["a", "b"]),
        }
    )
    path = tmp_path_factory.mktemp("large") / "one.parquet"
    pq.write_table(
        table, path, row_group_size=ROWS, data_page_size=1_000, write_batch_size=64, use_dictionary=False,
        compression="none", write_page_index=True,
    )  # fmt: skip
    return str(path)


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.spark
def test_several_tasks_read_one_row_group_and_each_row_comes_once(spark: Any, one: str) -> None:
    own = spark.read.parquet(one)
    ours = load(spark, one, tasks=5, local=False, native=False)
    assert ours.rdd.getNumPartitions() == 5
    for condition in (
        "true",
        "k between 5000 and 30001 and x < 0.5",
        "s is null and st.a > 20",
        "size(list) = 2",
    ):
        assert rows(ours.where(condition)) == rows(own.where(condition)), condition
    assert rows(ours.select("list", "st.b")) == rows(own.select("list", "st.b"))
    assert len(set(rows(ours.where("x < 0.9").limit(20_000)))) == 20_000
    numbers = ours.selectExpr("k - _metadata.row_index d").distinct()
    assert rows(numbers) == ["Row(d=0)"]
    asked = read(spark, one, ["k", "s"], "x < 0.5", tasks=3)
    assert rows(asked) == rows(own.where("x < 0.5").select("k", "s"))
    keys = pa.table({"k": range(0, 2 * ROWS, 3)})
    assert rows(lookup(spark, one, keys, "k", ["x"], tasks=4)) == rows(
        spark.range(0, 2 * ROWS, 3).withColumnRenamed("id", "k").join(own.select("k", "x"), "k")
    )


@pytest.mark.spark
def test_the_report_counts_a_shared_row_group_and_its_pages_once(spark: Any, one: str) -> None:
    ours = load(spark, one, tasks=5, local=False, native=False).select("k", "x")
    assert len(ours.collect()) == ROWS
    said = report(ours).to_dict()
    assert said["row_groups"] == {"total": 1, "read": 1, "pruned_by": {}}
    assert said["files"]["read"] == 1
    assert said["rows"]["read"] == ROWS
    assert (
        said["pages"]["total"]
        == said["pages"]["read"]
        == ps.open(one).offset_index(0, "k").num_pages * 2
    )
    total, few = said["pages"]["total"], ours.where("k >= 20000")
    assert few.collect()
    said = report(few).to_dict()
    assert said["pages"]["total"] == total > said["pages"]["read"]
    assert said["pages"]["pruned_by"] == {"column_index": total - said["pages"]["read"]}


@pytest.mark.spark
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)
@pytest.mark.parametrize("index", [True, False])
def test_a_worker_holds_little_of_a_large_row_group(
    spark: Any, tmp_path: Path, index: bool
) -> None:
    texts = pa.array([f"a text of some length {i}" for i in range(500)])
    rng, parts = np.random.default_rng(1), []
    for n in (1_000, 5_000_000):
        few = texts.take(pa.array(rng.integers(0, 500, n)))
        table, path = (
            pa.table({"id": np.arange(n), "x": rng.random(n), "few": few}),
            tmp_path / f"{n}.parquet",
        )
        pq.write_table(
            table, path, row_group_size=n, write_page_index=index, use_dictionary=["few"]
        )
        scan = ps.scan(path, threads=1)
        plan = scan.plan()
        (part,) = parts_of(spark, plan, schema_of(plan, scan, spark)[0], 1, n)
        parts.append(str(path.with_suffix(".part")))
        Path(parts[-1]).write_bytes(part)
    done = subprocess.run(
        [sys.executable, "-c", READ, *parts], capture_output=True, text=True, check=True
    )
    found, most = map(int, done.stdout.split())
    assert found == table.num_rows
    assert table.nbytes > 200 * MB
    assert most < 192 * MB
