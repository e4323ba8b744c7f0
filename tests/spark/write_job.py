"""Run by the tests as a process of its own: writes in a session whose tasks fail, or wait to be killed.

usage: write_job.py {retries|wait|attach} FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pageseek.spark import attach_index, write

warnings.simplefilter("ignore")
ROWS = 60_000
writing: Any = sys.modules[write.__module__]  # the function has the name of its module


def once(marks: str, name: str) -> bool:
    """Whether nobody has asked before."""
    try:
        os.close(os.open(os.path.join(marks, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def dying(marks: str, make_task: Callable[..., Any]) -> Callable[..., Any]:
    """Tasks of which one raises after it has written a file, and the worker of another is killed."""

    def make(*given: Any) -> Any:
        inner = make_task(*given)

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            def passed() -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    yield batch
                    at = batch.column(0)[0].as_py() * 4 // ROWS
                    if at == 1 and once(marks, "raised"):
                        raise RuntimeError("the first attempt fails")
                    if at == 2 and once(marks, "killed"):
                        os.kill(os.getpid(), signal.SIGKILL)
                if at == 3 and once(marks, "reported"):  # after its files are complete
                    list(
                        inner(
                            iter([pa.record_batch({"id": pa.array([at * ROWS // 4], pa.int64())})])
                        )
                    )
                    os.kill(os.getpid(), signal.SIGKILL)

            yield from inner(passed())

        return task

    return make


def waiting(marks: str, make_task: Callable[..., Any]) -> Callable[..., Any]:
    """Tasks of which the last one never ends."""

    def make(*given: Any) -> Any:
        inner = make_task(*given)

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            def passed() -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    yield batch
                    if batch.column(0)[0].as_py() * 4 // ROWS == 3:
                        Path(marks, "waits").touch()
                        time.sleep(600)

            yield from inner(passed())

        return task

    return make


def main(kind: str, folder: str) -> None:
    from pyspark.sql import SparkSession

    marks = f"{folder}-marks"
    os.makedirs(marks, exist_ok=True)
    builder = SparkSession.builder.master("local[2,4]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC", "spark.log.level": "OFF", "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    }.items():  # fmt: skip
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    frame = spark.range(0, ROWS, 1, 4)
    real = writing.make_task
    if kind == "wait":
        writing.make_task = waiting(marks, real)
        write(frame, folder, mode="append", file_rows=4000)
    writing.make_task = dying(marks, real)
    done = write(frame, folder, mode="overwrite", file_rows=4000)
    made = attach_index(spark, folder, distinct=["id"], tasks=2)
    found = {
        "rows": done.rows, "files": len(done.files), "marks": sorted(os.listdir(marks)),
        "read": spark.read.parquet(folder).distinct().count(), "status": sorted(set(made["status"].to_pylist())),
    }  # fmt: skip
    sys.stdout.write("ANSWERS " + json.dumps(found) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
