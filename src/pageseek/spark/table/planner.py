"""The planner behind a table: it answers what Spark asks while it plans a query, in the driver's Python."""

from __future__ import annotations

import json
from typing import Any

from pageseek.datasets.confirmed import Confirmed, asked_once
from pageseek.datasets.file_cache import cache
from pageseek.io.version_checks import UnconfirmedVersions, optimistically
from pageseek.spark.filters.binding import Binding
from pageseek.spark.table.aggregates import Aggregation, answers, has_few_groups, is_of_today
from pageseek.spark.table.native import is_native, may_be_native
from pageseek.spark.table.planned_scan import PlannedScan
from pageseek.spark.table.shim import Proxy
from pageseek.spark.table.table import GONE, SourceTable
from pageseek.spark.table.wanted import Wanted
from pageseek.storage.listed_versions import FEWEST


class TablePlanner(Proxy):
    """Answers what is asked of one table."""

    def __init__(self, table: SourceTable) -> None:
        self.table = table

    def on_number(self, about: str) -> str:
        """What names the last run of its scans; empty before the first."""
        return "" if self.table.last is None else self.table.last.number

    def on_scan(self, about: str) -> ScanPlanner:
        """The planner of a new scan."""
        return ScanPlanner(self.table)


class ScanPlanner(Proxy):
    """Plans one scan of a table, with the settings that the session has then. Spark asks several questions about it; a store is
    asked for the version of a file once, and answers while they are answered here.
    """

    gone = GONE

    def __init__(self, table: SourceTable) -> None:
        self.table, self._confirmed = table, Confirmed()
        self._asked: UnconfirmedVersions | None = None
        sources = table.scan.sources
        if len(sources) < FEWEST and not any(source.partitions for source in sources):
            limit = table.scan._request.limits.max_metadata_bytes
            self._asked = cache.ask_ahead(sources, limit, self._confirmed)
        self._binding: Binding | None = None  # of the predicates that Spark has pushed

    def apply(self, question: str, about: Any) -> Any:
        """Answer, with the versions that were confirmed for the questions before."""
        with asked_once(self._confirmed):
            return super().apply(question, about)

    def on_accepts(self, about: str) -> str:
        """For each predicate 1 where it is applied here exactly, else 0: there Spark applies it.

        Where Spark's own reader will read the files, Spark applies all.
        """
        given = json.loads(about)
        binding = self._binding = self.table.binding(given)
        accepted = [binding.pushed(one) is not None for one in given]
        if any(accepted) and self.table.choices.native:
            scan, columns = binding.filtered(given), binding.columns
            width = len(self.table.schema)
            if may_be_native(scan, columns, width):
                plan = scan.select().plan()  # what is left hangs on no column that is wanted
                if is_native(scan, plan, columns, width):
                    return "0" * len(given)
        return "".join("1" if yes else "0" for yes in accepted)

    def on_aggregates(self, about: str) -> str:
        """The schema of an aggregation that is computed here; empty where it is not."""
        request = json.loads(about)
        aggregation = Aggregation.of(request["aggregation"])
        schema = None if aggregation is None else aggregation.schema(self.table.schema)
        if aggregation is None or schema is None or request["limit"] >= 0:
            return ""
        binding = self.table.binding(request["predicates"])
        scan = binding.filtered(request["predicates"])
        if request["whole"]:
            known = answers(scan, aggregation) and is_of_today(scan, aggregation, self.table.schema)
            return schema.json() if known else ""
        plan = scan.select(*aggregation.columns).plan()
        fits = plan.files and has_few_groups(plan, aggregation, binding.columns)
        return schema.json() if fits else ""

    def on_plan(self, about: str) -> PlannedScan:
        """The plan of a scan, of versions that the store has confirmed."""
        request = json.loads(about)

        def planned(unconfirmed: UnconfirmedVersions | None) -> PlannedScan:
            wanted = Wanted(self.table, request, self._binding)
            at_once = unconfirmed is not None and unconfirmed.left
            return PlannedScan(wanted, self._confirmed, at_once)

        def planned_anew(unconfirmed: UnconfirmedVersions | None) -> PlannedScan:
            if unconfirmed is None:  # a version that was asked for is past
                self._confirmed.versions.clear()
            return planned(unconfirmed)

        asked, self._asked = self._asked, None
        if asked is None:
            return planned(None)
        made = optimistically(self.table.scan._sources, planned_anew, asked)
        made.add_asked(asked.report)
        return made
