"""What the driver reads of a scan, instead of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pageseek.base.report import Report
from pageseek.base.workers import cores
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.spark.columns.plan_schema import name_of
from pageseek.spark.columns.types import to_wire
from pageseek.spark.table.aggregates import row_of_none
from pageseek.spark.table.local import held, local_rows
from pageseek.spark.table.wanted import Wanted
from pageseek.spark.tasks.sizing import calendars_of
from pageseek.spark.tasks.task import execute


def rows_of(wanted: Wanted) -> tuple[Any, Report]:
    """The rows of a scan as a list of Java, and the report of what was read."""
    aggregation, sent = wanted.aggregation, wanted.sent
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
        batches = _batches(wanted, wanted.for_tasks(wanted.plan), report)
    return as_rows(wanted, batches), report.finish()


def quick_rows_of(wanted: Wanted) -> tuple[list[pa.RecordBatch] | None, Report]:
    """The batches of a scan, read on all cores; None if they are too many for the driver. And what was read."""
    plan, report = wanted.for_tasks(wanted.plan), wanted.plan.report.to_execute()
    request = replace(plan.request, threads=max(plan.request.threads or 1, cores()))
    batches = held(_batches(wanted, replace(plan, request=request), report), plan)
    return batches, report.finish()


def as_rows(wanted: Wanted, batches: Iterable[pa.RecordBatch]) -> Any:
    """The batches of a scan as a list of Java."""
    return local_rows(wanted.table.spark, batches, wanted.schema)


def _batches(wanted: Wanted, plan: ScanPlan, report: Report) -> Iterator[pa.RecordBatch]:
    calendars = calendars_of(wanted.table.spark, plan, wanted.wire)
    return execute(plan, wanted.wire, calendars, report)
