"""How many tasks a plan is worth."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pageseek.scan.scan_plan import ScanPlan

TASK_SECONDS = 0.25  # work worth a task: one more costs about 0.04 s of scheduling and piping
BYTES_PER_SECOND = 128e6  # fetched and decompressed: 32 MB a task
VALUES_PER_SECOND = 50e6  # decoded, normalised and sent to the JVM
TASKS_PER_CORE = 4  # more would only wait; fewer would leave cores idle behind a slow task
UNKNOWN_PARALLELISM = 8
ROW_BYTES, TEXT_BYTES = 8, 20  # as Spark takes them where it knows no statistics


def work(plan: ScanPlan) -> float:
    """About the seconds that one core needs for a plan."""
    values = plan.num_rows * max(len(plan.schema), 1)
    return plan.cost / BYTES_PER_SECOND + values / VALUES_PER_SECOND


def task_count(plan: ScanPlan, parallelism: Callable[[], int]) -> int:
    """The number of tasks: each with enough to do, and not many for each core.

    `parallelism` gives the cores; it is not asked where one task will do.
    """
    worth = int(work(plan) / TASK_SECONDS)
    return 1 if worth < 2 else min(worth, TASKS_PER_CORE * max(parallelism(), 1))


def ids_of(plan: ScanPlan, tasks: int) -> tuple[int, int]:
    """How many ids stand behind a DataFrame, and which of them, each so many, is one of a task.

    Spark takes 8 bytes an id for the size of what a Python function makes of them, and would broadcast anything that
    is made of few. The step is a power of two: the other ids are sorted out by one instruction each.
    """
    step = 1
    while step * tasks * 8 < size(plan):
        step *= 2
    return step * tasks, step


def size(plan: ScanPlan) -> int:
    """About the bytes of what a plan gives to Spark: as Spark counts rows of its types, or as the files have them."""
    rows = plan.num_rows if plan.request.limit is None else min(plan.num_rows, plan.request.limit)
    width = ROW_BYTES + sum(_width(field.type) for field in plan.schema)
    if plan.request.limit is not None:
        return rows * width
    return max(rows * width, plan.cost)


def _width(kind: pa.DataType) -> int:
    """What Spark takes for the size of a value."""
    if pa.types.is_nested(kind):
        return sum(_width(kind.field(i).type) for i in range(kind.num_fields))
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:  # text and binary
        return TEXT_BYTES


def parallelism_of(spark: SparkSession) -> int:
    """The cores of a session, as far as it tells.

    A Classic session knows. A Connect client sees only settings: without one that says it, a small
    number is assumed.
    """
    if "connect" not in type(spark).__module__:
        return int(spark.sparkContext.defaultParallelism)
    settings = {
        key: spark.conf.get(key, None) or ""  # "" is no default of a number
        for key in (
            "spark.sql.leafNodeDefaultParallelism",
            "spark.default.parallelism",
            "spark.executor.instances",
            "spark.executor.cores",
            "spark.master",
        )
    }
    told, default, executors, cores, master = settings.values()
    for value in (told, default):
        if value.isdecimal():
            return int(value)
    if executors.isdecimal() and cores.isdecimal():
        return int(executors) * int(cores)
    local = re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", master)
    return int(local[1]) if local else UNKNOWN_PARALLELISM
