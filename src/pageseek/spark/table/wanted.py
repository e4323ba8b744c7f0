"""What Spark wants of a scan, as a scan of this package and its plan."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import Any

from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.spark.columns import file_values
from pageseek.spark.columns.plan_schema import paths_of, schema_of
from pageseek.spark.filters.binding import Binding
from pageseek.spark.filters.catalyst import has_float
from pageseek.spark.table.aggregates import Aggregation, summarized, wire_of
from pageseek.spark.table.table import SourceTable
from pageseek.spark.tasks.expected import expected_rows


class Wanted:
    """A scan of a table, as Spark has asked for it.

    Attributes
    ----------
    table : SourceTable
        The table.
    binding : Binding
        What its filters are bound by.
    hidden : list of str
        The wanted fields of the hidden column.
    aggregation : Aggregation, optional
        What tasks, or the driver, make of the rows.
    is_whole : bool
        Whether Spark takes the figures of the aggregation as they are, or those of parts.
    may_be_native : bool
        Whether Spark's own reader may read it. Spark applies all filters then, and here they rule out files.
    has_float : bool
        Whether a filter is one of a float.
    scan : Scan
        What is read.
    plan : ScanPlan
        Its plan, with the filters of the query only.
    expected : int
        About the rows that pass these.
    wire : pyarrow.Schema
        The types of what is read on its way to Spark.
    schema : StructType
        The columns that Spark gets.
    sent : pyarrow.Schema
        Their types on the way.
    """

    def __init__(
        self, table: SourceTable, request: dict[str, Any], binding: Binding | None = None
    ) -> None:
        """`binding`: that of the predicates, if Spark was told before which of them are applied here."""
        from pyspark.sql.types import StructType

        schema = asked = StructType.fromJson(json.loads(request["schema"]))
        if "aggregation" not in request:
            schema = table.with_similar(schema)
        stored, self.hidden = schema, table.hidden(schema)
        if self.hidden:
            stored = StructType([f for f in schema if f.name != file_values.COLUMN])
        tested = [*request["predicates"], *request["given"]]
        if self.hidden or binding is None:
            binding = table.binding(tested, bool(self.hidden))
        self.table, self.binding = table, binding
        self.aggregation = None
        if "aggregation" in request:
            self.aggregation = Aggregation.of(request["aggregation"])
        self.is_whole = bool(request.get("whole"))
        given, limit = request["predicates"], request["limit"]
        self.may_be_native = table.choices.native and not given and limit < 0
        self.may_be_native &= schema is asked
        if self.may_be_native:
            given = request["given"]
        self.has_float = has_float(request["given"])
        scan = self.binding.filtered(given)
        if self.aggregation is None:
            scan = scan.select(*paths_of(stored, table.whole))
        else:
            stored = StructType([table.schema[name] for name in self.aggregation.columns])
            scan = scan.select(*stored.names)
        if limit >= 0:
            scan = scan.limit(limit)
        self.scan, self._types = scan, table.types(stored)
        self.plan = table.planned(scan, self._types)
        self._by_filters: dict[str, ScanPlan] = {"[]": self.plan}
        self.expected = expected_rows(self.plan, self.binding.columns)
        self.wire, self.schema = schema_of(self.plan, scan, table.spark)
        if self.hidden:
            self.wire = self.wire.append(file_values.wire_field(self.hidden))
            self.schema = StructType([*self.schema, schema[file_values.COLUMN]])
        self.sent = self.wire
        if self.aggregation is not None:
            self.schema, self.sent = schema, wire_of(self.wire, self.aggregation, schema)

    def joined(self, filters: str) -> ScanPlan:
        """The plan with the filters that a join has added, as JSON."""
        if filters not in self._by_filters:
            scan = self.scan
            for one in json.loads(filters):
                scan = scan.filter(self.binding.pushed(one))
            self._by_filters = {"[]": self.plan, filters: self.table.planned(scan, self._types)}
        return self._by_filters[filters]

    def for_tasks(self, plan: ScanPlan) -> ScanPlan:
        """A plan with what the hidden column needs."""
        return file_values.numbered(plan) if "row_index" in self.hidden else plan

    def summary(self) -> bytes:
        """What tasks make of their rows, pickled; empty if they send them as they are."""
        if self.aggregation is None:
            return b""
        return pickle.dumps(partial(summarized, aggregation=self.aggregation, wire=self.sent))
