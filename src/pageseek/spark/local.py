"""Small scans that the driver reads: rows that reach Spark without a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.scan.scan_plan import ScanPlan
from pageseek.spark.types import to_wire

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


def wired(
    batches: Iterable[pa.RecordBatch], wire: pa.Schema, source: str
) -> Iterator[pa.RecordBatch]:
    """Batches in wire types."""
    for batch in batches:
        yield to_wire(batch, wire, source)


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


def rows_of(spark: SparkSession, frame: Any) -> Any:
    """The internal rows of such a DataFrame, as a list of Java."""
    data = frame.queryExecution().analyzed().data()
    return spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(data)
