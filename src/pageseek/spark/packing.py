"""How many tasks a plan is worth."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pageseek.scan.plan import ScanPlan

TASK_SECONDS = 0.25  # work worth a task: one more costs about 0.04 s of scheduling and piping
BYTES_PER_SECOND = 128e6  # fetched and decompressed: 32 MB a task
VALUES_PER_SECOND = 50e6  # decoded, normalised and sent to the JVM
TASKS_PER_CORE = 4  # more would only wait; fewer would leave cores idle behind a slow task
UNKNOWN_PARALLELISM = 8


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


def parallelism_of(spark: SparkSession) -> int:
    """The cores of a session, as far as it tells.

    A Classic session knows. A Connect client sees only settings: without one that says it, a small
    number is assumed.
    """
    if "connect" not in type(spark).__module__:
        return int(spark.sparkContext.defaultParallelism)
    settings = {
        key: spark.conf.get(key, "") or ""
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
