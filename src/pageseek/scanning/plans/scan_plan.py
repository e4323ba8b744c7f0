"""A plan: files with versions, row groups with rows. It is picklable; Spark ships it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import field, replace
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

from pageseek.base.arguments import whole
from pageseek.base.batches import batches_of
from pageseek.base.late_modules import above
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.scanning.plans.opened_file import Together
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.scanning.plans.tables import TableReader, any_files
from pageseek.scanning.requests.plan import FilePlan
from pageseek.scanning.requests.request import Request


@dataclass(frozen=True, slots=True)
class AllColumns:
    """The columns of a scan over all of its files. `request`: the scan's, with what these files have told of it."""

    request: Request
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A pruned scan. `schema` is that of the batches that `execute` yields.

    A plan is picklable and carries the version of each file; executing it on another version raises
    FileChangedError before a byte is decoded.
    """

    request: Request
    schema: pa.Schema
    files: tuple[FilePlan, ...]
    report: Report = field(compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<ScanPlan {above('ScanPlan.__repr__')(self)}>"

    def _repr_html_(self) -> str:
        shown: str = above("ScanPlan._repr_html_")(self)
        return shown

    @property
    def num_rows(self) -> int:
        """Rows that may pass the filter, at most."""
        return sum(group.ranges.num_rows for file in self.files for group in file.groups)

    @property
    def cost(self) -> int:
        """About the number of bytes that will be read."""
        return sum(group.cost for file in self.files for group in file.groups)

    @short_traceback
    def divide(self, n: int) -> ScanPlan:
        """The same rows, for `n` parts of nearly equal cost: row groups that cost more than a part are divided where their
        pages are known. That opens their files.

        Raises
        ------
        FileChangedError
            One of these has another version than the plan.
        """
        part = max(self.cost // max(whole("n", n), 1), 1)
        wanted = [[round(g.cost / part) for g in file.groups] for file in self.files]
        if max((most for some in wanted for most in some), default=0) < 2:
            return self
        scheduler, files = Scheduler(self.request, Report()), list(self.files)
        try:
            for i, some in enumerate(wanted):
                if max(some) > 1:
                    scan = scheduler.reopen(files[i], scheduler.report)
                    scheduler.divide(scan, some, scheduler.report)
                    files[i] = scan.plan
        finally:
            scheduler.stop()
        return replace(self, files=tuple(files))

    @short_traceback
    def split(self, n: int) -> list[ScanPlan]:
        """At most `n` plans of nearly equal cost, none of them empty. Each row group, or piece of one (`divide`), is in exactly one.

        File order is kept inside each plan. A limit holds for each plan on its own.
        """
        if (n := whole("n", n)) < 1:
            raise ValueError(f"split({n}): at least one part")
        pieces = [(g.cost, i, j) for i, f in enumerate(self.files) for j, g in enumerate(f.groups)]
        loads = [(0, 0, part) for part in range(min(n, len(pieces)))]  # cost, row groups, part
        chosen: list[list[tuple[int, int]]] = [[] for _ in loads]
        for cost, i, j in sorted(pieces, key=lambda piece: -piece[0]):
            load, count, part = heapq.heappop(loads)
            chosen[part].append((i, j))
            heapq.heappush(loads, (load + cost, count + 1, part))
        parts = []
        for members in sorted(sorted(part) for part in chosen):
            files = []
            for i, inside in groupby(members, key=itemgetter(0)):
                groups = tuple([self.files[i].groups[j] for _, j in inside])
                files.append(replace(self.files[i], groups=groups, footer=None))
            parts.append(replace(self, files=tuple(files), report=Report()))
        return parts

    @short_traceback
    def execute(self, report: Report | None = None) -> Iterator[pa.RecordBatch]:
        """The batches of the plan, in file order. `report` is filled as they come.

        A large row group is read in pieces of about 32 MB of decoded values where its pages are known.
        """
        for _, batch in self.execute_by_file(report, any_files):
            yield batch
            del batch  # before the next one is made

    @short_traceback
    def execute_by_file(
        self, report: Report | None = None, together: Together | None = None
    ) -> Iterator[tuple[FilePlan, pa.RecordBatch]]:
        """`execute`, with the file of each batch.

        Small files may be read as one. `together` says whether the batches of such a table, and of such a scan, may stay as they are,
        and come with the first of its files; if not, or without it, each batch is of one file.
        """
        if report is None:
            report = Report(analyzed=True, chunks=None)
        elif not report.analyzed:
            self._begin(report)
        scheduler = Scheduler(self.request, report)
        reader = TableReader(self.schema, self.files, (), scheduler, divides=True, footers=None)
        for file, table in reader.by_file(together):
            for batch in batches_of(table, self.request.batch_size):
                yield file, batch
                del batch
            del table  # before the next one is made

    def _begin(self, report: Report) -> None:
        """Fill a report that planning did not fill, by the plan alone."""
        report.analyzed, report.nan = True, self.request.nan
        report.columns = list(self.schema.names)
        report.filter = "" if self.request.filter is None else repr(self.request.filter)
        report.files.total += len(self.files)
        report.row_groups.total += sum(g.counted for file in self.files for g in file.groups)
        report.rows.total += self.num_rows
        report.file_bytes += sum(file.version.size for file in self.files)
