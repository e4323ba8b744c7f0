"""Run by the tests as a process of its own: reads, looks up, streams, attaches and optimizes while workers or executors are killed.

usage: read_job.py URL {worker|executor|wait|none} FOLDER STAGE...
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from job import wait_for_executors

from pageseek.spark import attach_index, load, lookup, optimize, register

warnings.simplefilter("ignore")
HERE = str(Path(__file__).parent)


def session(url: str) -> Any:
    """A session that tries a task four times, whose workers are those of `killing_daemon`."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(url)
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC", "spark.log.level": "OFF", "spark.python.daemon.module": "killing_daemon",
        "spark.executorEnv.PYTHONPATH": HERE, "spark.executorEnv.KILL_MARKS": os.environ["KILL_MARKS"],
    }.items():  # fmt: skip
        builder = builder.config(key, value)
    return builder.getOrCreate()


def figures(frame: Any) -> list[Any]:
    """The number of rows, and sums of their values."""
    return list(frame.selectExpr("count(*)", "sum(k)", "sum(x)").collect()[0])


def loaded(spark: Any, folder: str) -> list[Any]:
    ours = load(spark, folder, local=False, native=False, tasks=4)
    return figures(ours.where("k % 10 < 9"))


def looked_up(spark: Any, folder: str, limit: int) -> list[Any]:
    keys = spark.range(0, 1 << 20, 3).withColumnRenamed("id", "k")
    return figures(lookup(spark, folder, keys, "k", ["x"], broadcast_limit=limit, tasks=4))


def streamed(spark: Any, folder: str) -> list[Any]:
    register(spark)
    frame = spark.readStream.format("pageseek").option("maxFilesPerTrigger", "3").load(folder)
    writer = frame.writeStream.format("parquet").trigger(availableNow=True)
    output = f"{folder}-streamed"
    writer.option("checkpointLocation", f"{folder}-checkpoint").start(output).awaitTermination()
    return figures(spark.read.parquet(output))


def attached(spark: Any, folder: str) -> list[Any]:
    made = attach_index(spark, folder, distinct=["g"], bloom=["k"], tasks=2)
    return [figures(spark.read.parquet(folder)), sorted(made["status"].to_pylist())]


def optimized(spark: Any, folder: str) -> list[Any]:
    done = optimize(spark, folder, sort_by="k", group_bytes=1, tasks=30)
    return [figures(spark.read.parquet(folder)), done.groups]


STAGES = {
    "load": loaded,
    "broadcast": lambda spark, folder: looked_up(spark, folder, 10**6),
    "shuffled": lambda spark, folder: looked_up(spark, folder, 100),
    "stream": streamed,
    "attach": attached,
    "optimize": optimized,
}


def main(url: str, what: str, folder: str, *stages: str) -> None:
    spark, marks = session(url), Path(os.environ["KILL_MARKS"])
    if url.startswith("local-cluster"):
        wait_for_executors(spark, 2)
    found = {}
    for stage in stages:
        (marks / "stage").write_text(f"{stage} {what}")
        found[stage] = STAGES[stage](spark, folder)
    sys.stdout.write("ANSWERS " + json.dumps(found) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
