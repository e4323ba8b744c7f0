"""A plan as parts for tasks: how many it is worth, and the size that Spark takes it to have."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.spark.calendar.calendar_marks import Calendars
from pageseek.spark.session.settings import Settings, ToldSession
from pageseek.spark.tasks.row_size import decoded_row_bytes
from pageseek.spark.tasks.task import pack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_SECONDS = 0.1  # work worth a task
EXTRA_SECONDS = 0.08  # of a core, that one more task costs in scheduling, piping and opening files
UNEVEN = 0.15  # the part of a task's work for which other cores may wait at the end
BYTES_PER_SECOND, FAR_BYTES_PER_SECOND = (
    400e6,
    128e6,
)  # fetched and decompressed, from a disk or a store
VALUES_PER_SECOND = 50e6  # decoded, normalised and sent to the JVM
FILE_SECONDS = 0.003  # to open a file
TASKS_PER_CORE = 4  # more only wait
UNKNOWN_PARALLELISM = 8
ROW_BYTES, TEXT_BYTES = 8, 20  # what Spark assumes if it has no statistics
ID_BYTES = 8
FEW_IDS = 1 << 16  # to make them costs less than a column beside them
_BINARIES = 16
_WIDE = f"struct<{','.join(f'f{i}: binary' for i in range(_BINARIES))}>"
# of a row with such a column, against one of an id: Spark assumes 100 bytes for a binary value
WIDER = (ROW_BYTES + ID_BYTES + _BINARIES * 100) // (ROW_BYTES + ID_BYTES)


def work(plan: ScanPlan, expected: int) -> float:
    """About the seconds that one core needs for a plan that is expected to give so many rows."""
    values = expected * max(len(plan.schema), 1)
    files = len(plan.files) * FILE_SECONDS
    return plan.cost / rate_of(plan) + values / VALUES_PER_SECOND + files


def rate_of(plan: ScanPlan) -> float:
    """The bytes that a core fetches and decompresses in a second."""
    far = bool(plan.files) and plan.files[0].source.far
    return FAR_BYTES_PER_SECOND if far else BYTES_PER_SECOND


def task_count(plan: ScanPlan, expected: int, parallelism: Callable[[], int]) -> int:
    """The number of tasks: one for each core that is worth it, and more as far as they even out more than they cost.

    n tasks cost n * EXTRA_SECONDS / cores, and cores wait at the end for about UNEVEN / n of the work. The sum is least at the
    root below. Parts cost about the same, so that each core gets as many of them. `parallelism` returns the number of
    cores. It is not called if one task is enough.
    """
    seconds = work(plan, expected)
    worth = round(seconds / TASK_SECONDS)
    if worth < 2:
        return 1
    cores = max(parallelism(), 1)
    even = math.sqrt(UNEVEN * seconds * cores / EXTRA_SECONDS)
    rounds = min(max(int(even / cores), 1), TASKS_PER_CORE)
    return min(worth, rounds * cores)


def range_of(spark: SparkSession, plan: ScanPlan, tasks: int) -> tuple[DataFrame, int]:
    """What a DataFrame is made of: ids in the first column, a partition for each task; and the step between those of tasks.

    Spark takes the output of a Python function to be as large as its input, and broadcasts what is small. So there are more ids
    than tasks, and for a large plan a column beside them that Spark takes to be wide. The step is a power of two: Spark drops
    the ids between by one instruction each.
    """
    told = size(plan)
    step = _step(told, tasks, ID_BYTES)
    wide = step * tasks > FEW_IDS
    if wide:
        step = _step(told, tasks, ID_BYTES * WIDER)
    made = spark.range(0, step * tasks, 1, tasks)
    if step > 1:
        made = made.where(f"(id & {step - 1}) = 0")
    return made.selectExpr("id", f"cast(null as {_WIDE}) as wide") if wide else made, step


def _step(told: int, tasks: int, id_bytes: int) -> int:
    """The step by which the ids of tasks have so many bytes."""
    step = 1
    while step * tasks * id_bytes < told:
        step *= 2
    return step


def size(plan: ScanPlan) -> int:
    """About the bytes that a plan gives to Spark: by the size of a row as Spark counts it, at least the bytes of the decoded
    values, and those that are read.
    """
    rows = plan.num_rows if plan.request.limit is None else min(plan.num_rows, plan.request.limit)
    counted = ROW_BYTES + sum(_width(field.type) for field in plan.schema)
    size = rows * max(counted, decoded_row_bytes(plan))
    return size if plan.request.limit is not None else max(size, plan.cost)


def _width(kind: pa.DataType) -> int:
    """The bytes that Spark assumes for a value."""
    if pa.types.is_nested(kind):
        return sum(_width(kind.field(i).type) for i in range(kind.num_fields))
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:  # text and binary
        return TEXT_BYTES


def parallelism_of(spark: SparkSession) -> int:
    """The cores of a session.

    A Classic session knows them. Connect clients and processes without a session see only settings; if none tells, a small number is assumed.
    """
    if "connect" not in type(spark).__module__ and not isinstance(spark, ToldSession):
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


def parts_of(
    spark: SparkSession, plan: ScanPlan, wire: pa.Schema, tasks: int | None, expected: int
) -> list[bytes]:
    """A plan for `expected` rows as parts, as tasks take them: at most `tasks`, or as many as the work is worth."""
    if not plan.files:
        return []
    if tasks is None:
        tasks = task_count(plan, expected, lambda: parallelism_of(spark))
    calendars = calendars_of(spark, plan, wire)
    return [pack(part, wire, calendars) for part in plan.divide(tasks).split(tasks)]


def calendars_of(spark: SparkSession, plan: ScanPlan, wire: pa.Schema) -> Calendars | None:
    """How old dates and times of a plan are converted; None where no column has any."""
    return Calendars.of(plan, wire, Settings(spark))


def framed(parts: Sequence[bytes]) -> bytearray:
    """Pieces of bytes as the Java side takes them: their number, then the length and the bytes of each."""
    made = bytearray(struct.pack(">i", len(parts)))
    for part in parts:
        made += struct.pack(">i", len(part)) + part
    return made
