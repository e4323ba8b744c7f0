"""Small scans that the driver reads: rows that reach Spark without a job.

Two kinds of scans are small. Of the first, little may be left, and they are read when Spark wants the rows. Of the second, little
is expected to pass, and what is left takes less time to read than a job takes to begin. These are read while Spark plans, so that
tasks can read them if more passes than was expected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from inspect import signature
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.spark.columns.row_metadata import as_stored
from pageseek.spark.columns.types import to_wire
from pageseek.spark.session.settings import Settings
from pageseek.spark.table.shim import java_class
from pageseek.spark.tasks.expected import likely_bytes
from pageseek.spark.tasks.sizing import rate_of, size
from pageseek.spark.tasks.task import ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# rows that are expected, and their bytes when decoded: more are read by tasks. Spark sends rows of the driver to its tasks, if a
# query does more than collect them.
RESULT, RESULT_BYTES = 5000, 3 << 19
FAR_RESULT, FAR_RESULT_BYTES = 20_000, 6 << 20  # of a store, which tasks would wait for once more
MOST_ROWS = 200_000  # that may pass, should the guess be wrong
BYTES = 8 << 20  # to read
DECODED_BYTES = 32 << 20  # of all rows that may pass
# of a core, to read what takes less time than a job; of a store, whose files tasks would have to open once more
SECONDS, FAR_SECONDS = 0.15, 0.25
FILE_SECONDS = 0.0005  # of a file that the driver has opened
MOST_BYTES = 128 << 20  # to read, should the guess of the time be wrong
MOST_TRIED = 1 << 20  # rows that may pass, should the guess of the rows be wrong
GIVEN_UP = 4  # times as many rows or bytes as the driver reads: tasks read them instead
CALL_BYTES = 64 << 10  # that a call of the JVM may take along
_BATCH = 10_000
# parameters of later releases of Spark; the earlier ones take UTC
_TIMEZONE, _LARGE = "timezone", "prefers_large_types"
_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def is_small(expected: int, plan: ScanPlan) -> bool:
    """Whether the driver reads a plan that is expected to give so many rows, and no more than it can hold in any case."""
    if expected > _most(plan)[0] or plan.num_rows > MOST_ROWS or plan.cost > BYTES:
        return False
    decoded = size(plan)
    return decoded <= DECODED_BYTES and _is_short(expected, decoded, plan)


def is_quick(expected: int, plan: ScanPlan) -> bool:
    """Whether the driver tries to read a plan, because that is likely to be quicker than a job."""
    if expected > _most(plan)[0] or plan.num_rows > MOST_TRIED or plan.cost > MOST_BYTES:
        return False
    most = FAR_SECONDS if _is_far(plan) else SECONDS
    seconds = likely_bytes(plan, expected) / rate_of(plan) + len(plan.files) * FILE_SECONDS
    return seconds <= most and _is_short(expected, size(plan), plan)


def _is_short(expected: int, decoded: int, plan: ScanPlan) -> bool:
    """Whether the expected rows are of few bytes. `decoded`: the bytes of all rows that may pass."""
    return expected * decoded <= _most(plan)[1] * max(plan.num_rows, 1)


def _is_far(plan: ScanPlan) -> bool:
    return any(file.source.far for file in plan.files[:1])


def _most(plan: ScanPlan) -> tuple[int, int]:
    """The rows, and their bytes when decoded, that the driver reads."""
    return (FAR_RESULT, FAR_RESULT_BYTES) if _is_far(plan) else (RESULT, RESULT_BYTES)


def held(batches: Iterable[pa.RecordBatch], plan: ScanPlan) -> list[pa.RecordBatch] | None:
    """The batches of a plan; None if they are much more than the driver reads."""
    rows, size = (GIVEN_UP * one for one in _most(plan))
    made = []
    for batch in batches:
        made.append(batch)
        rows, size = rows - batch.num_rows, size - batch.nbytes
        if rows < 0 or size < 0:
            return None
    return made


def local_rows(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: StructType) -> Any:
    """Rows of the driver's JVM, as a list of Java, from the batches that a task would send.

    The JVM takes buffers for those of Spark's Arrow types without a check, so that the types must be exactly these.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if not schema.names:
        schema = schema.add(ROWS, "void", True)
    large = Settings(spark).get(_LARGE_TYPES, "false") == "true"
    known = signature(to_arrow_schema).parameters
    told = {name: value for name, value in ((_TIMEZONE, "UTC"), (_LARGE, large)) if name in known}
    exact = pa.schema(to_arrow_schema(as_stored(schema), **told))
    pieces = [
        to_wire(batch.slice(start, _BATCH), exact, "rows of the driver")
        for batch in batches
        for start in range(0, batch.num_rows, _BATCH)
    ]
    converters = java_class(spark._jvm, "scala.jdk.javaapi.CollectionConverters")
    utilities = java_class(spark._jvm, "PythonSQLUtils")
    taken = _taken_by_file(spark, pieces, exact) or _taken_by_calls(spark, pieces)
    query = utilities.toDataFrame(taken, schema.json(), spark._jsparkSession).queryExecution()
    relation = query.analyzed()
    if relation.getClass().getSimpleName() != "LocalRelation":  # they were too many bytes for it
        return converters.asJava(query.executedPlan().executeToIterator().toList())
    return converters.asJava(relation.data())


def _taken_by_calls(spark: SparkSession, pieces: Sequence[pa.RecordBatch]) -> Any:
    """Batches in the JVM, as an iterator of Scala. A call takes bytes along as text."""
    packed = java_class(spark._jvm, "java.util.ArrayList")()
    for piece in pieces:
        packed.add(bytearray(piece.serialize().to_pybytes()))
    converters = java_class(spark._jvm, "scala.jdk.javaapi.CollectionConverters")
    return converters.asScala(packed.iterator())


def _taken_by_file(
    spark: SparkSession, pieces: Sequence[pa.RecordBatch], schema: pa.Schema
) -> Any | None:
    """The same, of many bytes by a temporary file. None: they are few, Spark encrypts its files, or none can be written."""
    few = sum(piece.nbytes for piece in pieces) <= CALL_BYTES
    if few or spark.sparkContext._encryption_enabled:
        return None
    try:
        with TemporaryDirectory(prefix="pageseek-") as folder:
            name = os.path.join(folder, "rows")
            with pa.OSFile(name, "wb") as file, pa.ipc.new_stream(file, schema) as stream:
                for piece in pieces:
                    stream.write_batch(piece)
            utilities = java_class(spark._jvm, "PythonSQLUtils")
            return utilities.readArrowStreamFromFile(name)  # it has read all of it
    except OSError:
        return None
