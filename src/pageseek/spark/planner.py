"""The planner behind a table: it answers what Spark asks while it plans a query, in the driver's Python."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.errors import FileChangedError
from pageseek.scan.scan import Scan
from pageseek.scan.scan_plan import ScanPlan
from pageseek.spark.aggregates import (
    Aggregation,
    answers,
    has_few_groups,
    is_of_today,
    summarized,
    wire_of,
)
from pageseek.spark.binding import Binding
from pageseek.spark.catalyst import has_nan, is_joined
from pageseek.spark.expected import expected_rows
from pageseek.spark.local import is_small, local_rows
from pageseek.spark.metrics import Run
from pageseek.spark.native import files_of, is_native
from pageseek.spark.plan_schema import paths_of, schema_of
from pageseek.spark.shim import Proxy
from pageseek.spark.sizing import calendars_of, framed, parts_of, size
from pageseek.spark.task import execute, part_reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Choices:
    """What the caller of `load` or `read` chose.

    Attributes
    ----------
    tasks : int, optional
        The greatest number of tasks of a scan.
    local : bool
        Whether the driver reads small scans.
    native : bool
        Whether Spark's own reader may read what a plan leaves.
    python_path : str, optional
        A directory that tasks put on `sys.path`.
    pinned : bool
        Whether all queries have the versions of the files that there are now; else those of when they are planned.
    """

    tasks: int | None = None
    local: bool = True
    native: bool = True
    python_path: str | None = None
    pinned: bool = False


class TablePlanner(Proxy):
    """Plans the scans of one table. A new scan has the settings that the session has at that time."""

    def __init__(self, spark: SparkSession, scan: Scan, choices: Choices) -> None:
        self.spark, self.scan, self.choices = spark, scan, choices
        if scan._request.filter is not None:  # Spark's reader does not know it
            self.choices = replace(choices, native=False)
        plan = scan.plan()
        self.wire, self.schema = schema_of(plan, scan, spark)
        self._versions = {f.source: f.version for f in plan.files} if choices.pinned else {}
        self.last: Run | None = None

    def binding(self) -> Binding:
        """For the conditions of one scan."""
        return Binding(self.spark, self.scan)

    def planned(self, scan: Scan) -> ScanPlan:
        """The plan of a scan.

        Raises
        ------
        FileChangedError
            A file has another version than the queries of this table have.
        """
        plan = scan.plan()
        for file in plan.files:
            if self._versions.get(file.source, file.version) != file.version:
                raise FileChangedError(
                    f"{file.source.name}: the file changed after it was planned; call read again"
                )
        return plan

    def on_number(self, about: str) -> str:
        """What names the last run of its scans; empty before the first."""
        return "" if self.last is None else self.last.number

    def on_accepts(self, about: str) -> str:
        """For each predicate 1 where it is applied here exactly, else 0: there Spark applies it.

        Where Spark's own reader will read the files, Spark applies all.
        """
        given, binding = json.loads(about), self.binding()
        accepted = [binding.pushed(one) is not None for one in given]
        if any(accepted) and self.choices.native:
            scan = binding.filtered(given)
            if is_native(scan, scan.plan(), binding.columns, len(self.schema)):
                return "0" * len(given)
        return "".join("1" if yes else "0" for yes in accepted)

    def on_aggregates(self, about: str) -> str:
        """The schema of an aggregation that is computed here; empty where it is not."""
        request = json.loads(about)
        aggregation = Aggregation.of(request["aggregation"])
        schema = None if aggregation is None else aggregation.schema(self.schema)
        if aggregation is None or schema is None or request["limit"] >= 0:
            return ""
        binding = self.binding()
        scan = binding.filtered(request["predicates"])
        if request["whole"]:
            known = answers(scan, aggregation) and is_of_today(scan, aggregation)
            return schema.json() if known else ""
        plan = scan.select(*aggregation.columns).plan()
        fits = plan.files and has_few_groups(plan, aggregation, binding.columns)
        return schema.json() if fits else ""

    def on_plan(self, about: str) -> PlannedScan:
        """The plan of a scan."""
        return PlannedScan(self, json.loads(about))


class PlannedScan(Proxy):
    """A scan of a table that is planned. It lives as long as Spark keeps its scan."""

    def __init__(self, table: TablePlanner, request: dict[str, Any]) -> None:
        from pyspark.sql.types import StructType

        self._table, self._binding = table, table.binding()
        schema = StructType.fromJson(json.loads(request["schema"]))
        self._aggregation = None
        if "aggregation" in request:
            self._aggregation = Aggregation.of(request["aggregation"])
        given, limit = request["predicates"], request["limit"]
        may_be_native = table.choices.native and not given and limit < 0
        if may_be_native:  # Spark applies them, and here they rule out files
            given = request["given"]
        scan = self._binding.filtered(given)
        if self._aggregation is None:
            scan = scan.select(*paths_of(schema, table.schema))
        else:
            scan = scan.select(*self._aggregation.columns)
        if limit >= 0:
            scan = scan.limit(limit)
        self._scan, self._plan = scan, table.planned(scan)
        self._wire, self._schema = schema_of(self._plan, scan, table.spark)
        self._sent = self._wire
        if self._aggregation is not None:
            self._schema, self._sent = schema, wire_of(self._wire, self._aggregation, schema)
        self.run = Run(self._plan.report)
        self._has_nan = has_nan(request["given"])
        self._by_filters: dict[str, ScanPlan] = {"[]": self._plan}
        self._expected = expected_rows(self._plan, self._binding.columns)
        self.run.way = self._way = self._chosen(may_be_native, is_joined(given))

    def _chosen(self, may_be_native: bool, joined: bool) -> str:
        table, plan = self._table, self._plan
        if self._aggregation is not None:
            whole = not self._aggregation.by and answers(self._scan, self._aggregation)
            return "local" if whole else "tasks"
        if may_be_native and self.on_reader("[]") == "native":
            return "either" if joined else "native"
        if not plan.files:
            return "local"
        local = table.choices.local and is_small(self._expected, plan)
        return "local" if local else "tasks"

    def on_schema(self, about: str) -> str:
        """The schema of the rows that the scan gives."""
        return str(self._schema.json())

    def on_way(self, about: str) -> str:
        """How the scan is read: local, native, tasks, or either of the last two."""
        return self._way

    def on_native(self, about: str) -> str:
        """The files for Spark's own reader."""
        return files_of(self._plan, self._table.schema, not self._has_nan)

    def on_local(self, about: str) -> Any:
        """The rows, as a list of Java."""
        spark, aggregation = self._table.spark, self._aggregation
        batches: Iterable[pa.RecordBatch]
        if aggregation is not None:
            report = self._scan.explain(aggregate=aggregation.figures())
            batches = aggregation.row(self._scan).cast(self._sent).to_batches()
        else:
            report = self._plan.report.to_execute()
            batches = execute(
                self._plan, self._wire, calendars_of(spark, self._plan, self._wire), report
            )
        rows = local_rows(spark, batches, self._schema)
        self._begun().by_driver(report.finish())
        return rows

    def on_partitions(self, about: str) -> bytearray:
        """The parts of the plan for the tasks, with the filters that a join has added."""
        table, plan = self._table, self._joined(about)
        expected = min(self._expected, plan.num_rows)
        parts = parts_of(table.spark, plan, self._wire, table.choices.tasks, expected)
        self.run.planned, self.run.way = plan.report, "tasks"
        self._begun().begin(parts)
        return framed(parts)

    def on_reader(self, about: str) -> str:
        """By what the scan is read with the filters that a join has added: tasks, or native."""
        columns, plan = self._binding.columns, self._joined(about)
        native = is_native(self._scan, plan, columns, len(self._schema))
        self.run.way = "native" if native else "tasks"
        return self.run.way

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
            self._by_filters = {"[]": self._plan, about: self._table.planned(scan)}
        return self._by_filters[about]

    def on_function(self, about: str) -> bytearray:
        """The function of the tasks, as Spark's workers unpickle it."""
        from pyspark.serializers import CloudPickleSerializer

        summary = None
        if self._aggregation is not None:
            summary = partial(summarized, aggregation=self._aggregation, wire=self._sent)
        reader = part_reader(
            self._table.choices.python_path, summary, self.run.accumulator(self._table.spark)
        )
        return bytearray(CloudPickleSerializer().dumps((reader, self._schema)))

    def on_filterable(self, about: str) -> str:
        """The columns by which a join may filter at run time."""
        if self._aggregation is not None:
            return ""
        return "\n".join(name for name in self._schema.names if "\n" not in name)

    def on_description(self, about: str) -> str:
        """What `DataFrame.explain` shows."""
        plan, total = self._plan, self._plan.report
        groups = sum(len(file.groups) for file in plan.files)
        return (
            f"pageseek reads {len(plan.files):,} of {total.files.total:,} files, "
            f"{groups:,} of {total.row_groups.total:,} row groups, "
            f"at most {plan.num_rows:,} of {total.rows.total:,} rows"
            + (f" where {plan.request.filter!r}" if plan.request.filter is not None else "")
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
