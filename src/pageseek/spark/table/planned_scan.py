"""A scan of a table, planned: it answers what Spark asks about it until its tasks have what they read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from pageseek.base.report import Report
from pageseek.datasets.confirmed import Confirmed, asked_once
from pageseek.spark.columns.file_values import COLUMN
from pageseek.spark.session.settings import as_java
from pageseek.spark.table.driver import as_rows, quick_rows_of, rows_of
from pageseek.spark.table.local import is_quick, is_small
from pageseek.spark.table.native import is_native
from pageseek.spark.table.native_files import files_of
from pageseek.spark.table.shim import Proxy
from pageseek.spark.table.table import GONE
from pageseek.spark.table.wanted import Wanted
from pageseek.spark.tasks.described import described
from pageseek.spark.tasks.metrics import Run
from pageseek.spark.tasks.sizing import framed, parts_of, size
from pageseek.spark.tasks.task import part_reader


class PlannedScan(Proxy):
    """A scan of a table that is planned. It lives as long as Spark keeps its scan."""

    gone = GONE

    def __init__(self, wanted: Wanted, confirmed: Confirmed, at_once: bool = False) -> None:
        """`confirmed`: the versions of files that the store has confirmed for this scan. `at_once`: whether the driver reads few rows
        now, since the store is still asked for versions, instead of when Spark wants them.
        """
        self._wanted, self._confirmed = wanted, confirmed
        plan = wanted.plan
        self.run = Run(plan.report, files=plan.files, source=wanted.table.name)
        self._read: tuple[list[pa.RecordBatch], Report] | None = None  # while it was planned
        self.run.way = self._way = self._chosen(at_once)

    def _chosen(self, at_once: bool) -> str:
        wanted, plan = self._wanted, self._wanted.plan
        if wanted.aggregation is not None:
            nothing = not plan.files and not wanted.aggregation.by
            return "local" if wanted.is_whole or nothing else "tasks"
        if wanted.may_be_native and self._is_native("[]"):
            return "native"
        if not plan.files:
            return "local"
        if not wanted.table.choices.local:
            return "tasks"
        small = is_small(wanted.expected, plan)
        if small and not at_once:
            return "local"
        if small or is_quick(wanted.expected, plan):
            batches, report = quick_rows_of(wanted)
            if batches is None:
                self.run.in_vain = report
            else:
                self._read = batches, report
        return "tasks" if self._read is None else "local"

    def add_asked(self, asked: Report) -> None:
        """Count the questions for versions, which the store has answered meanwhile."""
        self.run.planned.add_spent(asked)
        if self._read is not None:
            self._read[1].add_spent(asked)

    def apply(self, question: str, about: Any) -> Any:
        """Answer, with the versions that the scan was planned with."""
        with asked_once(self._confirmed):
            return super().apply(question, about)

    def on_schema(self, about: str) -> str:
        """The schema of the rows that the scan gives."""
        return str(self._wanted.schema.json())

    def on_way(self, about: str) -> str:
        """How the scan is read: local, native or tasks. A join's filters may turn native to tasks."""
        return self._way

    def on_native(self, about: str) -> str:
        """The files for Spark's own reader, with the filters that a join has added."""
        wanted = self._wanted
        columns, exact = wanted.binding.columns, not wanted.has_float
        return files_of(wanted.joined(about), columns, wanted.table.schema, exact)

    def on_local(self, about: str) -> Any:
        """The rows, as a list of Java."""
        if self._read is None:
            rows, report = rows_of(self._wanted)
        else:
            batches, report = self._read
            rows, self._read = as_rows(self._wanted, batches), None
        self._begun().by_driver(report)
        return rows

    def on_partitions(self, about: str) -> bytearray:
        """The parts of the plan for the tasks, with the filters that a join has added."""
        wanted = self._wanted
        plan = wanted.for_tasks(wanted.joined(about))
        expected, tasks = min(wanted.expected, plan.num_rows), wanted.table.choices.tasks
        parts = parts_of(wanted.table.spark, plan, wanted.wire, tasks, expected)
        self.run.planned, self.run.way = plan.report, "tasks"
        self._begun().begin(parts)
        return framed(parts)

    def on_reader(self, about: str) -> str:
        """By what the scan is read with the filters that a join has added: tasks, or native."""
        if self._is_native(about):
            return self.on_reader_of_batches(about)
        self.run.way = "tasks"
        return self.run.way

    def on_reader_of_batches(self, about: str) -> str:
        """Spark's own reader, whatever the filters leave: Spark was told that batches come."""
        self.run.way = "native"
        self._begun().begin([])
        return self.run.way

    def _is_native(self, filters: str) -> bool:
        """`filters`: those that a join has added, as JSON."""
        wanted = self._wanted
        plan, columns = wanted.joined(filters), wanted.binding.columns
        return is_native(wanted.scan, plan, columns, len(wanted.schema))

    def _begun(self) -> Run:
        """The run, which its table holds as the last one."""
        self._wanted.table.last = self.run
        return self.run

    def on_function(self, about: str) -> bytearray:
        """The function of the tasks, as Spark's workers unpickle it."""
        from pyspark.serializers import CloudPickleSerializer

        table, reports = self._wanted.table, self.run.accumulator(self._wanted.table.spark)
        reader = part_reader(table.choices.python_path, self._wanted.summary(), reports)
        return bytearray(CloudPickleSerializer().dumps((reader, self._wanted.schema)))

    def on_filterable(self, about: str) -> str:
        """The columns by which a join may filter at run time."""
        if self._wanted.aggregation is not None:
            return ""
        names = self._wanted.schema.names
        seen = Counter(map(as_java, names))
        hidden = COLUMN if self._wanted.hidden else ""
        return "\n".join(
            name
            for name in names
            if "\n" not in name and seen[as_java(name)] == 1 and name != hidden
        )

    def on_description(self, about: str) -> str:
        """What `DataFrame.explain` shows."""
        native = self._way == "native"
        return described(
            self._wanted.plan, "pageseek leaves to Spark's reader" if native else "pageseek reads"
        )

    def on_number(self, about: str) -> str:
        """What names the run in reports."""
        return self.run.number

    def on_size(self, about: str) -> int:
        """About the bytes that Spark gets."""
        return size(self._wanted.plan)

    def on_rows(self, about: str) -> int:
        """At most so many rows."""
        return self._wanted.plan.num_rows

    def on_bytes(self, about: str) -> int:
        """About the bytes that are read."""
        return self._wanted.plan.cost

    def on_files(self, about: str) -> int:
        """The files that are read."""
        return len(self._wanted.plan.files)

    def on_all_files(self, about: str) -> int:
        """The files of the source."""
        return len(self._wanted.scan.sources)
