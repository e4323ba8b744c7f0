"""A scan of a table, planned: it answers what Spark asks about it until its tasks have what they read."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import pyarrow as pa

from pageseek.dataset.file_cache import Confirmed, asked_once
from pageseek.scan.scan_plan import ScanPlan
from pageseek.spark.columns import file_values
from pageseek.spark.columns.plan_schema import name_of, paths_of, schema_of
from pageseek.spark.columns.types import to_wire
from pageseek.spark.filters.catalyst import has_float
from pageseek.spark.table.aggregates import (
    Aggregation,
    row_of_none,
    summarized,
    wire_of,
)
from pageseek.spark.table.local import is_small, local_rows
from pageseek.spark.table.native import is_native
from pageseek.spark.table.native_files import files_of
from pageseek.spark.table.shim import Proxy
from pageseek.spark.table.table import SourceTable
from pageseek.spark.tasks.described import described
from pageseek.spark.tasks.expected import expected_rows
from pageseek.spark.tasks.metrics import Run
from pageseek.spark.tasks.sizing import calendars_of, framed, parts_of, size
from pageseek.spark.tasks.task import execute, part_reader


class PlannedScan(Proxy):
    """A scan of a table that is planned. It lives as long as Spark keeps its scan."""

    def __init__(self, table: SourceTable, request: dict[str, Any], confirmed: Confirmed) -> None:
        """`confirmed`: the versions of files that the store has confirmed for this scan."""
        from pyspark.sql.types import StructType

        self._confirmed = confirmed
        schema = StructType.fromJson(json.loads(request["schema"]))
        stored, self._hidden = schema, table.hidden(schema)
        if self._hidden:
            stored = StructType([f for f in schema if f.name != file_values.COLUMN])
        tested = [*request["predicates"], *request["given"]]
        self._table, self._binding = table, table.binding(tested, bool(self._hidden))
        self._aggregation = None
        if "aggregation" in request:
            self._aggregation = Aggregation.of(request["aggregation"])
        self._is_whole = bool(request.get("whole"))  # Spark takes the rows as they are
        given, limit = request["predicates"], request["limit"]
        may_be_native = table.choices.native and not given and limit < 0
        if may_be_native:  # Spark applies them, and here they rule out files
            given = request["given"]
        scan = self._binding.filtered(given)
        if self._aggregation is None:
            scan = scan.select(*paths_of(stored, table.whole))
        else:
            stored = StructType([table.schema[name] for name in self._aggregation.columns])
            scan = scan.select(*stored.names)
        if limit >= 0:
            scan = scan.limit(limit)
        self._scan, self._types = scan, table.types(stored)
        self._plan = table.planned(scan, self._types)
        self._wire, self._schema = schema_of(self._plan, scan, table.spark)
        if self._hidden:
            self._wire = self._wire.append(file_values.wire_field(self._hidden))
            self._schema = StructType([*self._schema, schema[file_values.COLUMN]])
        self._sent = self._wire
        if self._aggregation is not None:
            self._schema, self._sent = schema, wire_of(self._wire, self._aggregation, schema)
        self.run = Run(self._plan.report, files=self._plan.files, source=table.name)
        self._has_float = has_float(request["given"])
        self._by_filters: dict[str, ScanPlan] = {"[]": self._plan}
        self._expected = expected_rows(self._plan, self._binding.columns)
        self.run.way = self._way = self._chosen(may_be_native)

    def _chosen(self, may_be_native: bool) -> str:
        table, plan = self._table, self._plan
        if self._aggregation is not None:
            nothing = not plan.files and not self._aggregation.by
            return "local" if self._is_whole or nothing else "tasks"
        if may_be_native and self._is_native(plan):
            return "native"
        if not plan.files:
            return "local"
        local = table.choices.local and is_small(self._expected, plan)
        return "local" if local else "tasks"

    def apply(self, question: str, about: Any) -> Any:
        """Answer, with the versions that the scan was planned with."""
        with asked_once(self._confirmed):
            return super().apply(question, about)

    def on_schema(self, about: str) -> str:
        """The schema of the rows that the scan gives."""
        return str(self._schema.json())

    def on_way(self, about: str) -> str:
        """How the scan is read: local, native or tasks. A join's filters may turn native to tasks."""
        return self._way

    def on_native(self, about: str) -> str:
        """The files for Spark's own reader, with the filters that a join has added."""
        plan, columns = self._joined(about), self._binding.columns
        return files_of(plan, columns, self._table.schema, not self._has_float)

    def on_local(self, about: str) -> Any:
        """The rows, as a list of Java."""
        spark, aggregation = self._table.spark, self._aggregation
        batches: Iterable[pa.RecordBatch]
        if aggregation is not None:
            report = self._plan.report
            batches = [row_of_none(aggregation, self._sent)]
            if self._is_whole:
                report = self._scan.explain(aggregate=aggregation.figures())
                found = aggregation.row(self._scan).combine_chunks().to_batches()
                batches = [to_wire(batch, self._sent, name_of(self._scan)) for batch in found]
        else:
            report = self._plan.report.to_execute()
            plan = self._for_tasks(self._plan)
            batches = execute(plan, self._wire, calendars_of(spark, plan, self._wire), report)
        rows = local_rows(spark, batches, self._schema)
        self._begun().by_driver(report.finish())
        return rows

    def on_partitions(self, about: str) -> bytearray:
        """The parts of the plan for the tasks, with the filters that a join has added."""
        table, plan = self._table, self._for_tasks(self._joined(about))
        expected = min(self._expected, plan.num_rows)
        parts = parts_of(table.spark, plan, self._wire, table.choices.tasks, expected)
        self.run.planned, self.run.way = plan.report, "tasks"
        self._begun().begin(parts)
        return framed(parts)

    def _for_tasks(self, plan: ScanPlan) -> ScanPlan:
        return file_values.numbered(plan) if "row_index" in self._hidden else plan

    def on_reader(self, about: str) -> str:
        """By what the scan is read with the filters that a join has added: tasks, or native."""
        native = self._is_native(self._joined(about))
        self.run.way = "native" if native else "tasks"
        if native:
            self._begun().begin([])
        return self.run.way

    def _is_native(self, plan: ScanPlan) -> bool:
        return is_native(self._scan, plan, self._binding.columns, len(self._schema))

    def _begun(self) -> Run:
        """The run, which its table holds as the last one."""
        self._table.last = self.run
        return self.run

    def _joined(self, about: str) -> ScanPlan:
        """The plan with the filters that a join has added."""
        if about not in self._by_filters:
            scan = self._scan
            for one in json.loads(about):
                scan = scan.filter(self._binding.pushed(one))
            self._by_filters = {"[]": self._plan, about: self._table.planned(scan, self._types)}
        return self._by_filters[about]

    def on_function(self, about: str) -> bytearray:
        """The function of the tasks, as Spark's workers unpickle it."""
        from pyspark.serializers import CloudPickleSerializer

        summary = b""
        if self._aggregation is not None:
            summary = pickle.dumps(
                partial(summarized, aggregation=self._aggregation, wire=self._sent)
            )
        reader = part_reader(
            self._table.choices.python_path, summary, self.run.accumulator(self._table.spark)
        )
        return bytearray(CloudPickleSerializer().dumps((reader, self._schema)))

    def on_filterable(self, about: str) -> str:
        """The columns by which a join may filter at run time."""
        if self._aggregation is not None:
            return ""
        names = self._schema.names
        seen = Counter(name.lower() for name in names)
        hidden = file_values.COLUMN if self._hidden else ""
        return "\n".join(
            name
            for name in names
            if "\n" not in name and seen[name.lower()] == 1 and name != hidden
        )

    def on_description(self, about: str) -> str:
        """What `DataFrame.explain` shows."""
        native = self._way == "native"
        return described(
            self._plan, "pageseek leaves to Spark's reader" if native else "pageseek reads"
        )

    def on_number(self, about: str) -> str:
        """What names the run in reports."""
        return self.run.number

    def on_size(self, about: str) -> int:
        """About the bytes that Spark gets."""
        return size(self._plan)

    def on_rows(self, about: str) -> int:
        """At most so many rows."""
        return self._plan.num_rows

    def on_bytes(self, about: str) -> int:
        """About the bytes that are read."""
        return self._plan.cost

    def on_files(self, about: str) -> int:
        """The files that are read."""
        return len(self._plan.files)

    def on_all_files(self, about: str) -> int:
        """The files of the source."""
        return len(self._scan.sources)
