"""Run by the tests as a process of its own: reads a directory in a session of the given kind, prints JSON.

usage: job.py {master|remote} URL DIRECTORY
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from far_queries import compared

import pageseek as ps
from pageseek.base.errors import UnsupportedError
from pageseek.spark import (
    aggregate,
    attach_index,
    input_files,
    load,
    lookup,
    optimize,
    read,
    report,
    reports,
    write,
)  # fmt: skip
from pageseek.spark.tasks.sizing import parallelism_of

warnings.simplefilter("ignore")
OLD = "t < timestamp '1500-03-02 00:00:00'"


def who(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many rows each executor gave: its workers are children of one daemon."""
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"executor": [os.getppid()], "rows": [batch.num_rows]})


def session(kind: str, url: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    builder = builder.remote(url) if kind == "remote" else builder.master(url)
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.task.maxFailures": "1",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def wait_for_executors(spark: Any, count: int) -> None:
    manager = spark.sparkContext._jsc.sc()
    until = time.monotonic() + 60
    while manager.getExecutorMemoryStatus().size() <= count and time.monotonic() < until:
        time.sleep(0.1)


def join_of(spark: Any, frame: Any) -> str:
    """The join that Spark chooses for a frame and a large one, with a broadcast limit of half a megabyte."""
    others, said = spark.range(0, 1 << 40).withColumnRenamed("id", "k"), io.StringIO()
    setting = "spark.sql.autoBroadcastJoinThreshold"
    spark.conf.set(setting, "500000")
    with contextlib.redirect_stdout(said):
        others.join(frame, "k").explain()
    spark.conf.unset(setting)
    plan = said.getvalue()
    return next(kind for kind in ("BroadcastHashJoin", "SortMergeJoin") if kind in plan)


def meanings(spark: Any, directory: str) -> list[Any]:
    """SQL that hangs on the session's settings."""
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "America/New_York")
    found = [
        read(spark, directory, ["K"], condition).count()
        for condition in (
            "t = timestamp '1970-01-01 00:00:00' and K = 18000",
            "t = timestamp '1969-12-31 19:00:00'",
            "t >= '1800-01-01' and K < 3",
            r"S = 'row\0404711'",
            "d = 1.1e0",
        )
    ]
    spark.conf.set(zone, before)
    return found


def lookups(spark: Any, directory: str) -> list[Any]:
    """Joins with keys that are sent and keys that are shuffled: whether they are Spark's, and their rows."""
    keys = spark.range(0, 30000, 7).selectExpr("id k", "-id other", "cast(id as string) text")
    files = spark.read.parquet(directory)
    found = []
    for how, limit in (("inner", 10**6), ("inner", 10), ("left", 10**6), ("left", 10)):
        ours = lookup(spark, directory, keys, "k", ["s"], how, broadcast_limit=limit, tasks=3)
        theirs = keys.join(files.select("k", "s"), "k", how)
        found.append(sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect())))
    alone = keys.select("k")
    for how, limit in (("inner", 10**6), ("inner", 10), ("semi", 10**6), ("semi", 10)):
        found.append(
            lookup(spark, directory, alone, "k", ["s"], how, broadcast_limit=limit).count()
        )
    found.append(lookup(spark, directory, [7, 8, -1], "k", how="left").count())
    found.append(lookup(spark, directory, [("row 7", 7)], ["s", "k"], ["t"]).count())
    return found


def old_times(spark: Any) -> list[Any]:
    """Whether both readers agree on timestamps in the old calendar, without and with a filter."""
    mode = "spark.sql.parquet.datetimeRebaseModeInWrite"
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    spark.conf.set(mode, "LEGACY")
    with tempfile.TemporaryDirectory() as root:
        path = f"{root}/old"
        spark.sql("select timestamp '1500-03-01 01:02:03' as t").write.parquet(path)
        wanted, *found = [
            frame.selectExpr("unix_micros(t)").collect()[0][0]
            for frame in (
                spark.read.parquet(path),
                read(spark, path),
                read(spark, path, filter=OLD),
            )
        ]
        found = [made == wanted for made in found]
    for key in (mode, "spark.sql.session.timeZone", "spark.sql.parquet.outputTimestampType"):
        spark.conf.unset(key)
    return found


def reported(spark: Any, directory: str) -> list[Any]:
    """What reports over Connect have: those of what the client has planned, and the error for what the server plans."""
    one = read(spark, directory, ["k"], ps.col("k") == 4711)
    two = lookup(spark, directory, [7, 8, -1], "k", ["s"])
    both = one.join(two, "k", "left").where("k > 5").select("k")
    made = [report(frame) for frame in (one, two, both)]
    found: list[Any] = [[one.analyzed, one.files.total, one.files.read] for one in made]
    found.append("over Connect, tasks do not report" in str(made[0]))
    found.append([os.path.basename(name) for name in input_files(both)])
    for ask in (report, input_files, reports):
        try:
            ask(load(spark, directory).where("k = 4711"))
        except UnsupportedError as error:
            found.append(str(error))
    return found


def answers(spark: Any, kind: str, directory: str) -> dict[str, Any]:
    found: dict[str, Any] = {"session": type(spark).__module__}
    row = read(spark, directory, ["k", "s"], ps.col("k") == 4711).collect()
    found["point"] = [list(r) for r in row]
    figures = ["count", ("k", "max"), ("s", "count")]
    kept = ps.col("k") < 7000
    for by in ([], ["d"]):
        made = aggregate(spark, directory, figures, by, filter=kept, tasks=3)
        found.setdefault("figures", []).append(
            [made.count(), made.agg({"k_max": "max", "count": "sum"}).collect()[0][:]]
        )
    found["range"] = read(spark, directory, [], ps.col("k").between(100, 299), tasks=3).count()
    empty = read(spark, directory, filter=ps.col("k") < 0)
    found["none"] = empty.count()
    if kind == "remote":
        big = "x" * (3 << 20)  # a function of megabytes, as a plan over very many files would make
        found["none_columns"] = empty.columns
        found["limit"] = read(spark, directory, limit=4000, tasks=4).count()
        found["large_function"] = read(
            spark, directory, ["k"], ps.col("k") == 1, python_path=big
        ).count()
    whole = read(spark, directory, tasks=8)
    found["joins"] = [
        join_of(spark, read(spark, directory, tasks=1)),
        join_of(spark, whole),
        join_of(spark, read(spark, directory, filter=ps.col("k") == 4711)),
    ]
    found["lookups"] = lookups(spark, directory)
    found["meanings"] = meanings(spark, directory)
    found["old"] = old_times(spark)
    found["parallelism"] = parallelism_of(spark)
    found["executors"] = [
        list(r)
        for r in whole.mapInArrow(who, "executor long, rows long")
        .groupBy("executor")
        .sum("rows")
        .collect()
    ]
    if kind == "remote":
        found["reports"] = reported(spark, directory)
        found["far"] = compared(spark, tempfile.mkdtemp(dir=directory, prefix="_"))
    folder = f"{directory}-written"
    done = write(read(spark, directory), folder, cluster_by="k", files=2, bloom=["s"])
    again = write(read(spark, directory, ["k"]), folder, mode="ignore")
    made = attach_index(spark, folder, distinct=["d"], tasks=2)
    found["written"] = [
        done.rows, len(done.files), len(again.files), spark.read.parquet(folder).count(), made["status"].to_pylist(),
        read(spark, folder, ["k"], ps.col("k") == 4711).count(),
    ]  # fmt: skip
    better = optimize(spark, folder, sort_by="k", indexes={"lookup": ["s"]}, group_bytes=1)
    found["optimized"] = [
        better.rows, better.groups, spark.read.parquet(folder).count(), read(spark, folder, ["k"], ps.col("s") == "row 4711").count(),
    ]  # fmt: skip
    victim = sorted(os.listdir(directory))[0]
    stale = read(spark, os.path.join(directory, victim))
    os.utime(os.path.join(directory, victim), (1, 1))
    try:
        stale.count()
    except Exception as error:
        found["changed"] = str(error)
    return found


def main(kind: str, url: str, directory: str) -> None:
    spark = session(kind, url)
    if kind == "master":
        wait_for_executors(spark, 2)
    sys.stdout.write("ANSWERS " + json.dumps(answers(spark, kind, directory)) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
