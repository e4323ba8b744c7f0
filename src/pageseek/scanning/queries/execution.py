"""Executes a scan where it was built: as batches, as a table, as a count, or for its report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from pageseek.base.batches import batches_of, table_of
from pageseek.base.errors import PageseekError
from pageseek.base.memory import kept
from pageseek.base.progress import Watch, watched
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.io.version_checks import UnconfirmedVersions, optimistically
from pageseek.predicate.parameter_values import parameters_of
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source, Sources

# What plans and executes a scan is imported in functions: the first lookup of a process takes a third less time without it.
if TYPE_CHECKING:
    from pageseek.scanning.plans.prepare import PreparedScan
    from pageseek.scanning.plans.scan_plan import AllColumns, ScanPlan


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a scan. It reads remote files in the version that the cache has, and begins again where one of them
    turns out to have changed.
    """

    sources: Sources
    request: Request
    progress: bool | Watch = False

    def plan(self) -> ScanPlan:
        """What would be read."""
        from pageseek.scanning.plans.prepare import make_plan

        report = Report(nan=self.request.nan, chunks={})
        with watched(self.progress, report):
            return make_plan(self.sources, self.request, report)

    def columns(self) -> AllColumns:
        """The columns of all files."""
        from pageseek.scanning.plans.prepare import all_columns

        report = Report(nan=self.request.nan)
        with watched(self.progress, report):
            return all_columns(self.sources, self.request, report)

    def schema(self) -> pa.Schema:
        """The schema of the rows. No file is opened where a table, or the caller, has said which columns there are."""
        from pageseek.scanning.plans.dataset_columns import DatasetColumns

        columns = DatasetColumns(self.sources, self.request, _not_opened)
        if columns.is_given:
            return columns.schema()
        if self.request.limit is not None and not columns.one_schema:
            return self.plan().schema  # files behind the limit are not opened
        return self.columns().schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches. Each is read when the caller takes it."""
        if not self.sources.far:
            return self._batches()[1]
        unconfirmed = UnconfirmedVersions()
        try:
            prepared = self._prepared(self.request, unconfirmed)
        except Exception as error:
            if not unconfirmed.may_explain(error):
                raise
        else:
            return self._optimistic_batches(prepared, unconfirmed)
        return self._batches()[1]

    @short_traceback
    def _optimistic_batches(
        self, prepared: PreparedScan, unconfirmed: UnconfirmedVersions
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a plan. All versions are confirmed before a row is handed out."""
        again = False
        with watched(self.progress, prepared.report), unconfirmed:
            try:
                # the others are confirmed while the first is read
                unconfirmed.ask_all_but(prepared.first_store())
                tables = prepared.tables(streams=True)
                ready = list(islice(tables, 1))
                unconfirmed.confirm_all()
            except Exception as error:
                if not unconfirmed.may_explain(error):
                    raise
                again = True
            while not again and ready:
                yield from batches_of(ready.pop(), self.request.batch_size)
                ready.extend(islice(tables, 1))
        if again:
            yield from self._batches()[1]

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches. Few reads answer a lookup in local files, if they can."""
        found = self._looked_up()
        if found is not None:
            batches = batches_of(found, self.request.batch_size)
            return pa.RecordBatchReader.from_batches(found.schema, batches)
        schema, batches = self._batches()
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        prepared = self._prepared(self.request)
        return prepared.plan.schema, self._watched(prepared)

    @short_traceback
    def _watched(self, prepared: PreparedScan) -> Iterator[pa.RecordBatch]:
        with watched(self.progress, prepared.report):
            for table in prepared.tables(streams=True):
                yield from batches_of(table, self.request.batch_size)

    def _prepared(
        self,
        request: Request,
        unconfirmed: UnconfirmedVersions | None = None,
        ahead: bool = False,
    ) -> PreparedScan:
        """A plan that is executed at once. `ahead`: the whole plan will be executed."""
        from pageseek.scanning.plans.prepare import PreparedScan

        report = Report(nan=request.nan, chunks=None)
        with watched(self.progress, report):
            made = PreparedScan(self.sources, request, report, unconfirmed, ahead=ahead)
        report.analyzed = True
        return made

    def table(self) -> pa.Table:
        """The rows as a table. Few reads answer a lookup in local files, if they can."""
        found = self._looked_up()
        return self.scanned() if found is None else found

    def _looked_up(self) -> pa.Table | None:
        """What few reads answer; None where every step of a scan is needed, also to name an error and its place."""
        condition = self.request.filter
        if condition is None or self.progress or self.sources.far or parameters_of(condition):
            return None
        from pageseek.scanning.points.table_points import (
            points_of,  # late: pageseek is imported quickly
        )

        points = points_of(self.sources, self.request)
        if points is None:
            return None
        with suppress(OSError, PageseekError):
            return points.table({})
        return None

    def scanned(self, counted: Report | None = None) -> pa.Table:
        """The rows as a table, by the steps that every scan takes. `counted`: of another scan, which needs this one; it counts
        what is read, too.
        """
        if not self.sources.far:
            return self._table(None, counted)
        return optimistically(self.sources, lambda versions: self._table(versions, counted))

    def _table(self, unconfirmed: UnconfirmedVersions | None, counted: Report | None) -> pa.Table:
        with self._prepared(self.request, unconfirmed, True) as prepared:
            schema, files = prepared.plan.schema, prepared.plan.files
            several = len(files) > 1 or (len(files) == 1 and len(files[0].groups) > 1)
            with watched(self.progress, prepared.report), kept() if several else nullcontext():
                tables = list(prepared.tables())
        if counted is not None:
            counted.add_reads(prepared.report)
        if len(tables) == 1:
            return tables[0]
        if not schema.names:
            return table_of(schema, sum([table.num_rows for table in tables]), [])
        return pa.concat_tables(tables) if tables else table_of(schema, 0, [[] for _ in schema])

    def count(self) -> int:
        """The number of rows that pass. Without a filter the footers answer."""
        return optimistically(self.sources, self._count)

    def _count(self, unconfirmed: UnconfirmedVersions | None) -> int:
        request = replace(self.request, columns=(), row_number=None)
        if request.filter is not None and not request.selects_rows:
            counts_only = not any(source.deletes for source in self.sources)
            request = replace(request, counts_only=counts_only)
        with self._prepared(request, unconfirmed, True) as prepared:
            plan = prepared.plan
            groups = [group for file in plan.files for group in file.groups]
            if request.filter is None or all(group.fully_matched for group in groups):
                n, limit = plan.num_rows, request.limit
                return n if limit is None else min(n, limit)
            with watched(self.progress, prepared.report):
                return sum([table.num_rows for table in prepared.tables()])

    def explain(self, analyze: bool) -> Report:
        """The report of what would be read. With `analyze` the scan is executed, and the report counts what was read."""
        if analyze:
            return optimistically(self.sources, self._analyzed).finish()
        from pageseek.scanning.plans.prepare import prepare
        from pageseek.scanning.plans.scheduler import Scheduler

        report = Report(nan=self.request.nan, chunks={})
        with watched(self.progress, report):
            prepare(self.sources, Scheduler(self.request, report))
        report.note_unknown()
        return report

    def _analyzed(self, unconfirmed: UnconfirmedVersions | None) -> Report:
        from pageseek.scanning.plans.prepare import PreparedScan

        report = Report(nan=self.request.nan, chunks={})
        with watched(self.progress, report):
            prepared = PreparedScan(self.sources, self.request, report, unconfirmed)
        report = prepared.count_execution()
        with watched(self.progress, report):
            for _ in prepared.tables():
                pass
        return report


def _not_opened(source: Source) -> NoReturn:
    raise AssertionError(f"{source.name}: opened for a schema that is given")
