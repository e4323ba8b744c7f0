"""Counts, least and greatest values: from the metadata if they prove them, else from as few pages as possible.

If all rows of a row group pass the filter, its exact statistics answer for it. Other row groups, and their pages, are
read only if their bounds allow a value less, or greater, than those known by then. A report counts the first as
"answered", and what need not be read as "bounds".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from pageseek.base.arrays import of_numpy
from pageseek.base.errors import CorruptFileError
from pageseek.base.report import Report
from pageseek.io.version_checks import UnconfirmedVersions, optimistically
from pageseek.scanning.aggregates.aggregate_columns import (
    Wanted,
    parse,
    place_of,
    type_at,
    values_at,
)
from pageseek.scanning.aggregates.aggregate_metadata import BOUNDS, MetadataAnswers
from pageseek.scanning.aggregates.aggregate_values import ColumnValues
from pageseek.scanning.plans.dataset_columns import with_dotted_names
from pageseek.scanning.plans.planner import Planned, Planner
from pageseek.scanning.plans.prepare import name_what_is_read
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.scanning.plans.tables import TableReader
from pageseek.scanning.requests.request import Request
from pageseek.storage import Sources

T = TypeVar("T")
MOST_OPEN = 16  # files that are kept open from planning to reading
MOST_ROWS = (1 << 63) - 1


def aggregate(sources: Sources, request: Request, asked: Iterable[Any]) -> pa.Table:
    """One row with the figures, named `count` or `column_function`."""
    return _run(sources, request, asked, False, Aggregation.table)


def explain(sources: Sources, request: Request, asked: Iterable[Any], analyze: bool) -> Report:
    """The report of an aggregation: what the metadata answer, what may have to be read; with `analyze`, what was."""
    if analyze:
        report = _run(sources, request, asked, True, lambda work: work.report)
        report.rows_out = 1
        return report.finish()
    work = Aggregation(sources, request, parse(asked), account=True, analyze=False)
    work.foresee()
    work.report.note_unknown()
    return work.report


def _run(
    sources: Sources,
    request: Request,
    asked: Iterable[Any],
    account: bool,
    answer: Callable[[Aggregation], T],
) -> T:
    """The answer of an aggregation that has read its files."""
    wanted = parse(asked)

    def run(unconfirmed: UnconfirmedVersions | None) -> T:
        work = Aggregation(sources, request, wanted, account, unconfirmed=unconfirmed)
        work.run()
        return answer(work)

    return optimistically(sources, run)


class Aggregation:
    """One aggregation. The metadata of all files are asked first: what they tell spares the reading of others."""

    def __init__(
        self,
        sources: Sources,
        request: Request,
        wanted: Sequence[Wanted],
        account: bool,
        analyze: bool = True,
        unconfirmed: UnconfirmedVersions | None = None,
    ) -> None:
        report = Report(nan=request.nan, chunks={} if account else None)
        if account:
            name_what_is_read(report, sources, request)
        scheduler = self._scheduler = Scheduler(request, report, unconfirmed)
        if sources:
            scheduler.files.keep(sources[0], report)
        open_file = partial(scheduler.files.open, report=report)
        paths = dict.fromkeys(one.path for one in wanted if one.path)
        named = [(".".join(path),) for path in paths]
        request = with_dotted_names(request, named, sources, open_file)
        places = {path: place_of(sources, open_file, path, request) for path in paths}
        names = tuple(dict.fromkeys(name for name, _ in places.values()))
        self._wanted = wanted
        self._columns = {path: ColumnValues(name, below) for path, (name, below) in places.items()}
        self._num_rows = 0  # that were read
        self._narrows = request.limit is None and all(one.function != "count" for one in wanted)
        request = replace(request, columns=names, row_number=None)
        if not paths and request.filter is not None and not request.selects_rows:
            counts_only = not any(source.deletes for source in sources)
            request = replace(request, counts_only=counts_only)
        scheduler.request = request
        planner = Planner(sources, request, scheduler, lazy=analyze, batches=False)
        self._request = scheduler.request = planner.request
        self._metadata = MetadataAnswers(self._request, wanted, self._columns)
        keeps = len(sources) <= MOST_OPEN
        self._left: list[Planned] = []
        for plan, scan, _ in planner.files():
            assert scan is not None
            left = self._metadata.unanswered(scan, report)
            if left:
                scan.plan = plan = replace(plan, groups=tuple(left))
                self._left.append(Planned(plan, scan if keeps else None))
        self._schema = planner.columns.schema()
        scheduler.files.close()
        report.columns = list(self._schema.names)
        # reading counts what is read
        self.report = scheduler.report = report.to_execute() if account and analyze else report
        self.report.analyzed = analyze
        self.report.files = report.files.begun()
        self.report.row_groups, self.report.rows = report.row_groups.begun(), report.rows.begun()
        if unconfirmed is not None:
            unconfirmed.report = self.report
            unconfirmed.ask_all_but(
                [scan.file.store for _, scan, _ in self._left if scan is not None]
            )

    def run(self) -> None:
        """Read what the metadata did not answer."""
        reader = TableReader(
            self._schema,
            [plan for plan, _, _ in self._left],
            [scan for _, scan, _ in self._left],
            self._scheduler,
            self._metadata.narrowed if self._narrows else None,
        )
        for table in reader.tables():
            self._num_rows += table.num_rows
            for column in self._columns.values():
                column.read(values_at(table, column.name, column.below))

    def foresee(self) -> None:
        """Count what `run` may have to read, by the metadata."""
        report, scheduler = self.report, self._scheduler
        report.bytes["data"] = 0
        for plan, opened, _ in self._left:
            scan = opened or scheduler.reopen(plan, report)
            groups = plan.groups
            if self._narrows:
                lane = scheduler.lane(scan, report)
                groups = tuple([self._metadata.narrowed(scan, group, lane) for group in groups])
            groups = tuple([group for group in groups if group.ranges])
            if groups:
                report.files.read += 1
            else:
                report.files.prune(BOUNDS, 1)
            for group in groups:
                report.row_groups.read += 1
                report.rows.read += group.ranges.num_rows
                report.bytes["data"] += self._metadata.recount(scan, group, report)

    def table(self) -> pa.Table:
        """The figures, in the order of the request."""
        made = {}
        for one in self._wanted:
            if not one.path:
                num_rows = self._num_rows + self._metadata.num_rows
                if num_rows > MOST_ROWS:
                    raise CorruptFileError(
                        f"{num_rows:,} rows, as the files claim: more than a count holds"
                    )
                made[one.name] = of_numpy(np.array([num_rows], np.int64))
            else:
                column = self._columns[one.path]
                kind = type_at(self._schema, column.name, column.below)
                made[one.name] = column.figure(one.function, kind, self._request.nan == "spark")
        return pa.table(made)
