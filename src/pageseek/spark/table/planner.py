"""The planner behind a table: it answers what Spark asks while it plans a query, in the driver's Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pageseek.datasets.confirmed import Confirmed, asked_once
from pageseek.datasets.file_cache import cache
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.spark.filters.binding import Binding
from pageseek.spark.table.aggregates import Aggregation, answers, has_few_groups, is_of_today
from pageseek.spark.table.native import is_native, may_be_native
from pageseek.spark.table.planned_scan import PlannedScan
from pageseek.spark.table.shim import Proxy
from pageseek.spark.table.table import GONE, SourceTable
from pageseek.spark.table.wanted import Wanted
from pageseek.storage.listed_versions import FEWEST

T = TypeVar("T")


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
        self._asked: UnconfirmedVersions | None = None  # until the scan is planned
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
        return self._current(partial(self._accepted, json.loads(about)))

    def _accepted(self, given: list[Any]) -> str:
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
        return self._current(partial(self._aggregated, json.loads(about)))

    def _aggregated(self, request: dict[str, Any]) -> str:
        aggregation = Aggregation.of(request["aggregation"])
        schema = None if aggregation is None else aggregation.schema(self.table.schema)
        if aggregation is None or schema is None or request["limit"] >= 0 or self.table.absent:
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
        asked = self._asked
        made = self._current(partial(self._planned, json.loads(about)))
        if asked is not None:
            self._stop_asking()
            made.add_asked(asked.report)
        return made

    def _planned(self, request: dict[str, Any]) -> PlannedScan:
        if self.table.absent:
            raise FileNotFoundError(self.table.absent)
        asked, wanted = self._asked, Wanted(self.table, request, self._binding)
        made = PlannedScan(wanted, self._confirmed, asked is not None and asked.left)
        if asked is not None:
            asked.confirm_all()
        return made

    def _current(self, answer: Callable[[], T]) -> T:
        """An answer. If a version that the store was asked for turns out to be past, all files are asked for theirs first."""
        if self._asked is not None:
            try:
                return answer()
            except Exception as error:
                if not self._asked.may_explain(error):
                    raise
            self._stop_asking()
            self._confirmed.versions.clear()
        return answer()

    def _stop_asking(self) -> None:
        """Give up the questions that are not answered, and count all."""
        if self._asked is not None:
            with self._asked:
                self._asked = None
