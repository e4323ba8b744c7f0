"""Small scans that the driver reads: rows that reach Spark without a job."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.scan.scan_plan import ScanPlan
from pageseek.spark.columns.row_metadata import as_stored
from pageseek.spark.session.settings import Settings
from pageseek.spark.table.shim import java_class
from pageseek.spark.tasks.sizing import size
from pageseek.spark.tasks.task import ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

RESULT = 2000  # rows that are expected: more are read by tasks
MOST_ROWS = 200_000  # that may pass, should the guess be wrong
BYTES = 8 << 20  # to read
DECODED_BYTES = 32 << 20  # of all rows that may pass
_BATCH = 10_000
# parameters of later releases of Spark; the earlier ones take UTC
_TIMEZONE, _LARGE = "timezone", "prefers_large_types"
_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def is_small(expected: int, plan: ScanPlan) -> bool:
    """Whether the driver reads a plan that is expected to give so many rows."""
    few = expected <= RESULT and plan.num_rows <= MOST_ROWS and plan.cost <= BYTES
    return few and size(plan) <= DECODED_BYTES


def local_rows(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: StructType) -> Any:
    """Rows of the driver's JVM, as a list of Java, from the batches that a task would send.

    The JVM takes buffers for those of Spark's Arrow types without a check, so that the types must be exactly these.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    jvm = spark._jvm
    if not schema.names:
        schema = schema.add(ROWS, "void", True)
    large = Settings(spark).get(_LARGE_TYPES, "false") == "true"
    known = signature(to_arrow_schema).parameters
    told = {name: value for name, value in ((_TIMEZONE, "UTC"), (_LARGE, large)) if name in known}
    exact = pa.schema(to_arrow_schema(as_stored(schema), **told))
    packed = java_class(jvm, "java.util.ArrayList")()
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            piece = batch.slice(start, _BATCH).cast(exact)
            packed.add(bytearray(piece.serialize().to_pybytes()))
    converters = java_class(jvm, "scala.jdk.javaapi.CollectionConverters")
    utilities = java_class(jvm, "PythonSQLUtils")
    pieces = converters.asScala(packed.iterator())
    query = utilities.toDataFrame(pieces, schema.json(), spark._jsparkSession).queryExecution()
    relation = query.analyzed()
    if relation.getClass().getSimpleName() != "LocalRelation":  # they were too many bytes for it
        return converters.asJava(query.executedPlan().executeToIterator().toList())
    return converters.asJava(relation.data())
