"""What will be read: files with versions, row groups with rows. Picklable; this is what Spark ships."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pageseek._core import rows
from pageseek.cache import cache
from pageseek.chunks import stated_pages
from pageseek.decode import IndexMismatch
from pageseek.errors import FileChangedError, PageseekError
from pageseek.execute import GroupScan
from pageseek.fetch import Fetcher
from pageseek.judge import Steps, judge, last_proof, load_offsets
from pageseek.ordering import Learned
from pageseek.prune import COLUMN_INDEX
from pageseek.report import Report
from pageseek.request import FilePlan, GroupPlan, Opened, Request, Scope
from pageseek.tables import batches_of, table_of


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

    @property
    def num_rows(self) -> int:
        """Rows that may pass the filter, at most."""
        return sum(group.ranges.num_rows for file in self.files for group in file.groups)

    @property
    def cost(self) -> int:
        """About the bytes that will be read."""
        return sum(group.cost for file in self.files for group in file.groups)

    def split(self, n: int) -> list[ScanPlan]:
        """At most `n` plans of nearly equal cost, each row group in exactly one; empty ones are left out.

        File order is kept inside each part. A limit holds for each part on its own.
        """
        if n < 1:
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
            for i in sorted({i for i, _ in members}):
                groups = tuple(self.files[i].groups[j] for at, j in members if at == i)
                files.append(replace(self.files[i], groups=groups))
            parts.append(replace(self, files=tuple(files), report=Report()))
        return parts

    def execute(self, report: Report | None = None) -> Iterator[pa.RecordBatch]:
        """The batches of the plan, in file order. `report` is filled as they come."""
        for table in self.tables(report):
            yield from batches_of(table, self.request.batch_size)

    def batches(self, opened: Sequence[Opened]) -> Iterator[pa.RecordBatch]:
        """The same with files that were opened to plan it, where there are some."""
        for table in self.tables(opened=opened):
            yield from batches_of(table, self.request.batch_size)

    def tables(
        self, report: Report | None = None, opened: Sequence[Opened] = ()
    ) -> Iterator[pa.Table]:
        """The rows of the plan, a table for each row group that has some. `opened`: its files, if they were
        opened for it a moment ago.
        """
        if report is None:  # nobody looks at it
            report = Report(analyzed=True, chunks=None)
        elif not report.analyzed:
            self._begin(report)
        left, learned, steps = self.request.limit, Learned(), Steps()
        for i, file_plan in enumerate(self.files):
            if left == 0:
                return
            reading = Reading(self, file_plan, report, opened[i] if opened else None, learned)
            waiting = file_plan.groups
            while waiting and left != 0:
                n = steps.next(waiting, left, reading.latency)
                for group in reading.judged(waiting[:n]):
                    if left == 0:
                        break
                    table = reading.read(group, left)
                    if table is None:
                        continue
                    if left is not None:
                        left -= table.num_rows
                    yield table
                waiting = waiting[n:]
            reading.finish()

    def _begin(self, report: Report) -> None:
        """Of a report that planning did not fill: what there is to read is what the plan holds."""
        report.analyzed, report.nan, report.columns = (
            True,
            self.request.nan,
            list(self.schema.names),
        )
        report.filter = "" if self.request.filter is None else repr(self.request.filter)
        report.files.total += len(self.files)
        report.row_groups.total += sum(len(file.groups) for file in self.files)
        report.rows.total += self.num_rows
        report.file_bytes += sum(file.version.size for file in self.files)

    def open_file(self, file_plan: FilePlan, report: Report) -> Opened:
        """One of the files, of the version that was planned, and what is asked of it."""
        file = cache.open(file_plan.source, report, self.request.limits.max_metadata_bytes)
        if file.store.version != file_plan.version:
            raise FileChangedError(
                f"{file.name}: the file changed after it was planned "
                f"({file_plan.version.tag} -> {file.store.version.tag}); plan again"
            )
        return Opened(file, Scope.of(file, self.request))


class Reading:
    """One file of a plan while its row groups are read, in their order. `opened`: if it was for the plan, a moment ago."""

    def __init__(
        self,
        plan: ScanPlan,
        file_plan: FilePlan,
        report: Report,
        opened: Opened | None,
        learned: Learned,
    ) -> None:
        self._plan, self._file_plan, self._learned = plan, file_plan, learned
        self._planned_here = opened is not None
        self.opened = opened or plan.open_file(file_plan, report)
        file, scope = self.opened.file, self.opened.scope
        self.fetcher = Fetcher(file.store, report, file.tail, plan.request.limits, scope.kept)
        self._begun, self._unchecked = False, True
        self._before = dict(report.row_groups.pruned_by)
        ours, theirs = plan.schema, scope.schema
        self._other = theirs is not ours and theirs.types != ours.types
        self.latency = file.store.latency

    def judged(self, groups: Sequence[GroupPlan]) -> Sequence[GroupPlan]:
        """The same row groups, those that only the footer has judged as far as other mechanisms leave them rows."""
        file, scope, report = self.opened.file, self.opened.scope, self.fetcher.report
        if not self._planned_here:
            load_offsets(file, scope, [g for g in groups if g.judged], self.fetcher)
        if all(group.judged for group in groups):
            return groups
        with report.timed("prune"):
            done = [group for group in groups if group.judged]
            made = judge(self.opened, [group for group in groups if not group.judged], self.fetcher)
        return sorted([*done, *made], key=lambda group: group.row_group)

    def read(self, group: GroupPlan, left: int | None) -> pa.Table | None:
        """The rows of a row group that pass, at most so many as are `left`; None where there are none."""
        file = self.opened.file
        if not self._begun:
            self.fetcher.report.files.read += 1
            self._begun = True
        self._unchecked = True
        try:
            found, arrays = self._read(group, left)
        except PageseekError:
            file.store.check()  # what was read may be of another version
            raise
        n = found.num_rows
        if not n:
            return None
        self.fetcher.report.rows_out += n
        schema = self._plan.schema
        if file.store.version.strong:  # to ask costs nothing there
            file.store.check()
            self._unchecked = False
        if self._other:  # nulls inside structs, that only another file may have
            given = list(schema)[len(schema) - len(arrays) :]
            arrays = [
                [array.cast(f.type) for array in column]
                for f, column in zip(given, arrays, strict=True)
            ]
        if self._plan.request.row_number is not None:
            first = self._file_plan.first_row + file.first_row(group.row_group)
            arrays = [[pa.array(found.rows() + first)], *arrays]
        return table_of(schema, n, arrays)

    def finish(self) -> None:
        """No more of the file is read."""
        if self._unchecked:
            self.opened.file.store.check()
        if not self._begun:  # no row group was left when they were judged
            report = self.fetcher.report
            report.files.prune(last_proof(self._before, report), 1)

    def _read(
        self, group: GroupPlan, left: int | None
    ) -> tuple[rows.RowRanges, list[list[pa.Array]]]:
        file, scope, fetcher = self.opened.file, self.opened.scope, self.fetcher
        request, report = self._plan.request, fetcher.report
        ranges, sure = group.ranges, group.sure
        while True:
            scan = GroupScan(
                file,
                group.row_group,
                scope.columns,
                fetcher,
                request.options,
                self._learned,
                COLUMN_INDEX in request.prune,
            )
            try:
                found = scan.run(ranges, None if group.proven else scope.bound, left, sure)
            except IndexMismatch as mismatch:
                file.drop_index(group.row_group, mismatch.leaf)
                before = ranges.num_rows
                if not group.proven:  # rows may have been ruled out on the word of this index
                    first = self._file_plan.first_row + file.first_row(group.row_group)
                    ranges = request.asked(first, file.group_rows[group.row_group])
                    sure = rows.RowRanges.empty()
                more = ranges.num_rows - before
                stated = stated_pages(file.chunk(group.row_group, mismatch.leaf))
                report.restart(file.name, group.row_group, mismatch.leaf.name, stated, more)
            else:
                total = file.group_rows[group.row_group]
                report.done(file.name, group.row_group, ranges.num_rows, total)
                return found
