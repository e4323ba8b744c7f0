"""Small scans that the driver reads: rows that reach Spark without a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.scan.scan_plan import ScanPlan
from pageseek.spark.calendar_marks import Calendars
from pageseek.spark.settings import Settings
from pageseek.spark.task import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

ROWS, BYTES = (
    2000,
    8 << 20,
)  # rows that are expected, and bytes to read: a scan of more is read by tasks
MOST_ROWS = 200_000  # that may pass, should the guess be wrong
_BATCH = 10_000


def is_small(expected: int, plan: ScanPlan) -> bool:
    """Whether the driver reads a plan that is expected to give so many rows."""
    return expected <= ROWS and plan.num_rows <= MOST_ROWS and plan.cost <= BYTES


def rows_here(plan: ScanPlan, wire: pa.Schema, settings: Settings) -> Iterator[pa.RecordBatch]:
    """The batches that tasks would give for a plan."""
    return rows_of(plan, wire, Calendars.of(plan, wire, settings))


def local_relation(
    spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: StructType
) -> Any:
    """A Java DataFrame over rows in the driver's JVM, from batches in wire types."""
    jvm = spark._jvm
    packed = jvm.java.util.ArrayList()
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            piece = batch.slice(start, _BATCH)
            packed.add(bytearray(piece.serialize().to_pybytes()))
    pieces = jvm.scala.jdk.javaapi.CollectionConverters.asScala(packed.iterator())
    return jvm.PythonSQLUtils.toDataFrame(pieces, schema.json(), spark._jsparkSession)


def java_rows(spark: SparkSession, frame: Any) -> Any:
    """The internal rows of such a DataFrame, as a list of Java."""
    data = frame.queryExecution().analyzed().data()
    return spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(data)
