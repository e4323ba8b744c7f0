"""What the driver reads of a scan, instead of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pageseek.base.report import Report
from pageseek.spark.columns.plan_schema import name_of
from pageseek.spark.columns.types import to_wire
from pageseek.spark.table.aggregates import row_of_none
from pageseek.spark.table.local import local_rows
from pageseek.spark.table.wanted import Wanted
from pageseek.spark.tasks.sizing import calendars_of
from pageseek.spark.tasks.task import execute


def rows_of(wanted: Wanted) -> tuple[Any, Report]:
    """The rows of a scan as a list of Java, and the report of what was read."""
    aggregation, spark, sent = wanted.aggregation, wanted.table.spark, wanted.sent
    batches: Iterable[pa.RecordBatch]
    if aggregation is not None:
        report = wanted.plan.report
        batches = [row_of_none(aggregation, sent)]
        if wanted.is_whole:
            report = wanted.scan.explain(aggregate=aggregation.figures())
            found = aggregation.row(wanted.scan).combine_chunks().to_batches()
            batches = [to_wire(batch, sent, name_of(wanted.scan)) for batch in found]
    else:
        report = wanted.plan.report.to_execute()
        plan = wanted.for_tasks(wanted.plan)
        batches = execute(plan, wanted.wire, calendars_of(spark, plan, wanted.wire), report)
    rows = local_rows(spark, batches, wanted.schema)
    return rows, report.finish()
