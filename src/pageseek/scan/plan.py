"""What will be read: files with versions, row groups with rows. Picklable; this is what Spark ships."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import field, replace
from functools import partial

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.arrays import of_numpy
from pageseek.base.batches import batches_of, table_of
from pageseek.base.errors import FileChangedError, PageseekError
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.base.workers import Job, WorkerPool, cores
from pageseek.dataset.dataset_schema import SchemaAdapter
from pageseek.dataset.file_cache import cache
from pageseek.format.chunks import declared_pages
from pageseek.format.schema import Leaf
from pageseek.io.coalesce import PARALLEL, SENDING
from pageseek.io.fetch import Fetcher
from pageseek.prune import COLUMN_INDEX, PAGE_HEADERS
from pageseek.scan.bound_request import BoundRequest, BoundRequests
from pageseek.scan.condition_order import Learned
from pageseek.scan.file_plan import Early, FilePlan, GroupPlan, Opened
from pageseek.scan.leaf_reader import IndexMismatch, places_wanted
from pageseek.scan.pruning import Steps, judge, last_proof, load_offsets
from pageseek.scan.request import Request
from pageseek.scan.row_group import GroupScan, Held
from pageseek.storage import RemoteStore, Store
from pageseek.storage.store import SLOW_STORE

SMALL = 1 << 18  # values that one thread has read before another is ready
# values of a row group below which threads wait for each other, for the interpreter's lock, rather than work: by two
# threads files of 5,000 rows and 4 columns took 1.8 times as long, of 20,000 rows and 12 columns 1.2 times, of 16 as long
PIECE = 1 << 18
HEAVY = 1 << 20  # bytes of a row group that are work for a thread, however few values they are
FAR_AHEAD = 16  # row groups that may wait for a remote store at a time
AT_ONCE = 4  # requests that a file is worth before row groups share one, unless it is tiny
UNKNOWN = 8 << 20  # bytes that a job in a file may take that is not open yet


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

    def batches(
        self, opened: Sequence[Opened | None], report: Report | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The same with files that were opened to plan it, where there are some."""
        for table in self.tables(report, opened):
            yield from batches_of(table, self.request.batch_size)

    def tables(
        self, report: Report | None = None, opened: Sequence[Opened | None] = ()
    ) -> Iterator[pa.Table]:
        """The rows of the plan, a table for each row group that has some. `opened`: of its files those that were
        opened for it a moment ago; empty where none was.
        """
        if report is None:  # nobody looks at it
            report = Report(analyzed=True, chunks=None)
        elif not report.analyzed:
            self._begin(report)
        pool = self._pool(opened)
        if pool is None:
            yield from self._one_by_one(report, opened, None)
            return
        with pool:
            beside = self.request.limit is None and sum(len(f.groups) for f in self.files) > 1
            yield from (self._side_by_side if beside else self._one_by_one)(report, opened, pool)

    def _pool(self, opened: Sequence[Opened | None]) -> WorkerPool | None:
        """Who works on it, where one thread by itself would take longer."""
        threads = self.request.threads or cores()
        if any(opened):
            far = any(one is not None and one.file.store.latency >= SLOW_STORE for one in opened)
        else:
            far = any(file.source.far for file in self.files)
        rows_left = self.num_rows if self.request.limit is None else self.request.limit
        values, pieces = (
            rows_left * max(len(self.schema), 1),
            sum(len(f.groups) for f in self.files),
        )
        size = sum(file.version.size for file in self.files)
        light = values < PIECE * pieces and size < HEAVY * pieces
        if not far and (threads == 1 or values < SMALL or light):
            return None
        return WorkerPool(threads, FAR_AHEAD if far else threads + 1, self.request.max_ahead_bytes)

    def _one_by_one(
        self, report: Report, opened: Sequence[Opened | None], pool: WorkerPool | None
    ) -> Iterator[pa.Table]:
        left, learned, steps = self.request.limit, Learned(), Steps()
        bound_requests = BoundRequests(self.request)
        working = nullcontext if pool is None else pool.working
        for i, file_plan in enumerate(self.files):
            if left == 0:
                return
            reading = Reading(self, file_plan, learned, bound_requests, pool)
            fetcher = reading.open(report, opened[i] if opened else None)
            waiting = file_plan.groups
            while waiting and left != 0:
                n = steps.next(waiting, left, fetcher.latency)
                for group in reading.judged(waiting[:n], fetcher):
                    if left == 0:
                        break
                    with working():
                        table = reading.read(group, left, fetcher)
                    report.step()
                    if table is None:
                        continue
                    if left is not None:
                        left -= table.num_rows
                    yield table
                waiting = waiting[n:]
            reading.finish(report)

    def _side_by_side(
        self, report: Report, opened: Sequence[Opened | None], pool: WorkerPool
    ) -> Iterator[pa.Table]:
        """Row groups on several cores, and in several waits, at once; the tables in their order all the same."""
        learned, bound_requests = Learned(), BoundRequests(self.request)

        def jobs() -> Iterator[Job[tuple[list[pa.Table], Exception | None, Report, int]]]:
            for i, file_plan in enumerate(self.files):
                reading = Reading(self, file_plan, learned, bound_requests, pool)
                given = opened[i] if opened else None
                for number, weight in reading.jobs(given):
                    yield Job(partial(reading.beside, number, report, given), weight)

        for tables, failed, part, lane in pool.in_order(jobs()):
            report.join(part, lane)
            report.step()
            while tables:
                yield tables.pop(0)  # one at a time is held
            if failed is not None:
                raise failed

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

    def open_file(
        self, file_plan: FilePlan, report: Report, bound_requests: BoundRequests | None = None
    ) -> Opened:
        """One of the files, of the version that was planned, and what is asked of it: as of others, if there are."""
        file = cache.open(file_plan.source, report, self.request.limits.max_metadata_bytes)
        if file.store.version != file_plan.version:
            raise FileChangedError(
                f"{file.name}: the file changed after it was planned "
                f"({file_plan.version.tag} -> {file.store.version.tag}); plan again"
            )
        if bound_requests is None:
            return Opened(file, BoundRequest.of(file, self.request, file_plan.source))
        return Opened(file, bound_requests.of(file, file_plan.source))


def checked(store: Store, report: Report) -> None:
    """Raise FileChangedError where a file is another version now, and count what it takes to see that."""
    store.check()
    if isinstance(store, RemoteStore) and not store.version.strong:  # it was a request
        report.requests += 1
        report.waves += 1
        report.retried(*store.retries.take())


def _places(opened: Opened, group: GroupPlan) -> dict[Leaf, list[tuple[int, int]]]:
    """The (offset, length) of what is read of the leaves of a row group where nothing is tested."""
    file, number = opened.file, group.row_group
    leaves = {
        part.leaf.index: part.leaf
        for column in opened.bound_request.columns
        for part in column.parts
    }
    return {
        leaf: places_wanted(file, number, leaf, group.ranges, False) for leaf in leaves.values()
    }


Run = tuple[Sequence[GroupPlan], int]  # that are read in one go; about the bytes that they take


class Reading:
    """One file of a plan while its row groups are read: in their order, or side by side."""

    def __init__(
        self,
        plan: ScanPlan,
        file_plan: FilePlan,
        learned: Learned,
        bound_requests: BoundRequests | None = None,
        pool: WorkerPool | None = None,
    ) -> None:
        self._plan, self._file_plan, self._learned, self._pool = plan, file_plan, learned, pool
        self._bound_requests = bound_requests
        self._opened: Opened | None = None
        self._opening, self._counting = threading.Lock(), threading.Lock()
        self._left = len(file_plan.groups)
        self._begun, self._unchecked = False, True
        self._adapter: SchemaAdapter | None = None
        self._planned_here = self._ready = False
        # pieces of work, as far as they are known, and those that follow
        self._runs: list[Run] = []
        self._further: Iterator[Run] | None = None
        self._grouping = threading.Lock()
        self._before: dict[str, int] = {}

    @property
    def opened(self) -> Opened:
        """The file, and what is asked of it."""
        assert self._opened is not None
        return self._opened

    def open(self, report: Report, opened: Opened | None = None) -> Fetcher:
        """Open the file, unless it is, and give what reads from it and counts that. `opened`: if it was opened for the
        plan, a moment ago.
        """
        if self._opened is None:
            self._planned_here = opened is not None
            far = self._pool if self._file_plan.source.far else None
            with nullcontext() if far is None else far.waiting():
                self._opened = opened or self._plan.open_file(
                    self._file_plan, report, self._bound_requests
                )
            self._before = dict(report.row_groups.pruned_by)
            self._adapter = self._opened.bound_request.adapter(
                self._plan.schema, self._file_plan.source
            )
        file, bound_request, _, version_check, _ = self._opened
        limits = self._plan.request.limits
        threads = self._plan.request.threads or cores()
        return Fetcher(
            file.store,
            report,
            file.tail,
            limits,
            bound_request.kept,
            self._pool,
            version_check,
            threads,
        )

    def judged(self, groups: Sequence[GroupPlan], fetcher: Fetcher) -> Sequence[GroupPlan]:
        """The same row groups, those that only the footer has judged as far as other mechanisms leave them rows."""
        file, bound_request, report = self.opened.file, self.opened.bound_request, fetcher.report
        if not self._planned_here:
            load_offsets(file, bound_request, [g for g in groups if g.judged], fetcher)
        if all(group.judged for group in groups):
            return groups
        with report.timed("prune"):
            done = [group for group in groups if group.judged]
            made = judge(self.opened, [group for group in groups if not group.judged], fetcher)
        return sorted([*done, *made], key=lambda group: group.row_group)

    def weight(self, group: GroupPlan, found: Opened) -> int:
        """About the bytes of memory that a row group takes while it is read: what it has decompressed, and decoded."""
        file, number = found.file, group.row_group
        try:
            chunks = [
                file.chunk(number, leaf)
                for leaf in found.bound_request.required_leaves(file)(number)
            ]
        except PageseekError:  # who reads it will say so, in its turn
            return UNKNOWN
        size: int = sum(max(chunk.total_uncompressed_size, 0) for chunk in chunks)
        return 2 * size * group.ranges.num_rows // max(file.group_rows[number], 1)

    def jobs(self, opened: Opened | None) -> Iterator[tuple[int, int]]:
        """The pieces of work that the row groups make: the number of each, and about the bytes that it takes. As long
        as the file is not open there is one for each row group, and the last may find that nothing is left.
        """
        for number, group in enumerate(self._file_plan.groups):
            if opened is None and not self._ready:
                yield number, max(4 * group.cost, UNKNOWN)
                continue
            run, weight = self._run(number, opened)
            if not run:
                return
            yield number, weight

    def _run(self, number: int, opened: Opened | None) -> Run:
        """A piece of work; nothing where those before have taken all."""
        with self._grouping:
            if self._further is None:
                budget = self._plan.request.max_ahead_bytes // AT_ONCE
                if opened is None:  # nobody has reckoned with more
                    budget = min(budget, UNKNOWN)
                self._further = self._shared(opened or self.opened, budget)
            while len(self._runs) <= number:
                further = next(self._further, None)
                if further is None:
                    return (), 0
                self._runs.append(further)
            return self._runs[number]

    def _shared(self, found: Opened, budget: int) -> Iterator[Run]:
        """The row groups, each by itself; of a remote file those together of which nothing is tested and that one
        request brings sooner than another could be waited for, as long as others go on beside it.

        Bytes between two of them are read over where that costs less than the request: as many are under way at a time
        as PARALLEL, so that each costs a part of a wait, and where one of them takes the whole line already, the bytes
        cost what they would cost it.
        """
        groups, store, bound_request = self._file_plan.groups, found.file.store, found.bound_request
        wait = int(store.latency * store.bandwidth) if store.latency >= SLOW_STORE else 0
        most = max(len(groups) // AT_ONCE, 1)
        run: list[GroupPlan] = []
        weight = start = stop = 0  # of the run
        for group in groups:
            heavy, places = self.weight(group, found), []
            if wait and (bound_request.bound is None or group.proven):
                with suppress(PageseekError):  # who reads it will say so, in its turn
                    places = [at for ats in _places(found, group).values() for at in ats]
            first = min([at for at, _ in places], default=-1)
            last = max([sum(at) for at in places], default=0)
            if run and not (
                0 <= first - stop <= wait // PARALLEL
                and (len(run) < most or last - start <= wait // SENDING)
                and last - start <= wait
                and weight + heavy + last - start <= budget
            ):
                yield run, weight + (stop - start if len(run) > 1 else 0)
                run, weight = [], 0
            start = start if run else first
            stop = last if places else store.size  # else nothing joins it
            run.append(group)
            weight += heavy
        if run:
            yield run, weight + (stop - start if len(run) > 1 else 0)

    def beside(
        self, number: int, report: Report, opened: Opened | None
    ) -> tuple[list[pa.Table], Exception | None, Report, int]:
        """The rows of a piece of work, read beside others of the file, up to the first row group that fails: with what
        was counted, and by which thread.
        """
        part = report.part()
        if not self._ready:
            self._open_once(part, opened)
        run, _ = self._run(number, opened)
        if not run:
            return [], None, part, threading.get_ident()
        fetcher = self.open(part, opened)
        held = self._fetched(run, fetcher) if len(run) > 1 else ()
        tables: list[pa.Table] = []
        for i, group in enumerate(run):
            try:
                table = self.read(group, None, fetcher, held)
            except (PageseekError, OSError) as error:
                if not i:
                    raise
                return tables, error, part, threading.get_ident()
            if table is not None:
                tables.append(table)
        with self._counting:
            self._left -= len(run)
            last = self._left == 0
        if last:
            self.finish(part)
        return tables, None, part, threading.get_ident()

    def _fetched(self, run: Sequence[GroupPlan], fetcher: Fetcher) -> Sequence[Held]:
        """The bytes of row groups, asked for together, by their place."""
        file, report = self.opened.file, fetcher.report
        wanted = {}
        try:
            for group in run:
                for leaf, places in _places(self.opened, group).items():
                    counts = report.chunk(file.name, group.row_group, leaf.name, None)
                    counts.bytes += sum(length for _, length in places)
                    wanted.update(dict.fromkeys(places))
        except PageseekError:  # who reads it will say so, in its turn
            pass
        buffers = fetcher.read(list(wanted), "data")
        found = [(at, data) for (at, _), data in zip(wanted, buffers, strict=True)]
        return sorted(found, key=lambda held: held[0])

    def _open_once(self, part: Report, opened: Opened | None) -> None:
        """Open the file and load its indexes, unless another thread did so meanwhile."""
        assert self._pool is not None
        with self._pool.waiting():  # who opens it may wait for the store, and then for a core
            self._opening.acquire()
        try:
            if not self._ready:
                self.judged(self._file_plan.groups, self.open(part, opened))
                part.files.read += 1
                self._begun = self._ready = True
        finally:
            self._opening.release()

    def read(
        self, group: GroupPlan, left: int | None, fetcher: Fetcher, held: Sequence[Held] = ()
    ) -> pa.Table | None:
        """The rows of a row group that pass, at most so many as are `left`; None where there are none. `held`: bytes
        that are at hand.
        """
        file, report = self.opened.file, fetcher.report
        if not self._begun:
            report.files.read += 1
            self._begun = True
        self._unchecked = True
        try:
            found, arrays = self._read(group, left, fetcher, held)
        except PageseekError:
            file.store.check()  # what was read may be of another version
            raise
        n = found.num_rows
        if file.store.version.strong:  # to ask costs nothing there
            file.store.check()
            self._unchecked = False
        if not n:
            return None
        report.rows_out += n
        schema = self._plan.schema
        if self._adapter is not None:  # what other files have, and folders say
            arrays = self._adapter(arrays, n)
        if self._plan.request.row_number is not None:
            first = self._file_plan.first_row + file.first_row(group.row_group)
            arrays = [[of_numpy(found.rows() + first)], *arrays]
        return table_of(schema, n, arrays)

    def ahead(self, group: GroupPlan, opened: Opened, part: Report) -> Early:
        """The same, before the schema of the scan is known."""
        try:
            return Early(*self._read(group, None, self.open(part, opened), ()), part)
        except PageseekError:
            opened.file.store.check()  # what was read may be of another version
            raise

    def finish(self, report: Report) -> None:
        """No more of the file is read."""
        self._further = iter(
            ()
        )  # it refers to this, which would hold the file until garbage is collected
        if self._unchecked:
            checked(self.opened.file.store, report)
        if not self._begun:  # no row group was left when they were judged
            report.files.prune(last_proof(self._before, report), 1)

    def _read(
        self, group: GroupPlan, left: int | None, fetcher: Fetcher, held: Sequence[Held]
    ) -> tuple[rows.RowRanges, list[list[pa.Array]]]:
        early = self.opened.early.pop(group.row_group, None) if self.opened.early else None
        if early is not None:
            with nullcontext() if self._pool is None else self._pool.waiting():
                done = early.result()
            fetcher.report.join(done.report, 0)
            return done.found, done.arrays
        file, bound_request = self.opened.file, self.opened.bound_request
        request, report = self._plan.request, fetcher.report
        ranges, sure, without = group.ranges, group.sure, group.without
        while True:
            if (
                file.dropped(group.row_group) - without
            ):  # rows may have been ruled out on their word
                without, before = without | file.dropped(group.row_group), ranges.num_rows
                if not group.proven or request.limit is None:  # else only the limit has cut them
                    first = self._file_plan.first_row + file.first_row(group.row_group)
                    ranges = request.asked(first, file.group_rows[group.row_group])
                    sure = rows.RowRanges.empty()
                more = ranges.num_rows - before
                report.restart(file.name, group.row_group, None, None, more)
            scan = GroupScan(
                file,
                group.row_group,
                bound_request.columns,
                fetcher,
                request.options,
                self._learned,
                COLUMN_INDEX in request.prune,
                PAGE_HEADERS in request.prune,
                held,
            )
            try:
                found = scan.run(ranges, None if group.proven else bound_request.bound, left, sure)
            except IndexMismatch as mismatch:
                file.drop_index(group.row_group, mismatch.leaf)
                declared = declared_pages(file.chunk(group.row_group, mismatch.leaf))
                report.restart(file.name, group.row_group, mismatch.leaf.name, declared, 0)
                continue
            if file.dropped(group.row_group) - without:  # by another scan, meanwhile
                continue
            total = file.group_rows[group.row_group]
            report.done(file.name, group.row_group, ranges.num_rows, total)
            return found


class Ahead:
    """Reads what a filter leaves of remote files while others are still being opened: that saves a wave.

    What waits for its turn takes a share of the memory that the scan may take for row groups read ahead. Leaving the
    block ends what is still under way.
    """

    def __init__(self, request: Request) -> None:
        self._request, self._learned = request, Learned()
        self._left = request.max_ahead_bytes // AT_ONCE
        self._pool: WorkerPool | None = None  # as a rule there is nothing to be done

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.stop()

    def begin(self, opened: Opened, file_plan: FilePlan, report: Report) -> Opened:
        """Begin with the row groups of a file, as long as there is room."""
        plan = ScanPlan(self._request, opened.bound_request.schema, (file_plan,), report)
        if self._pool is None:
            self._pool = WorkerPool(self._request.threads or cores(), FAR_AHEAD, self._left)
        reading = Reading(plan, file_plan, self._learned, pool=self._pool)
        reading.open(report, opened)
        early = {}
        for group in file_plan.groups:
            weight = reading.weight(group, opened)
            if not group.judged or weight > self._left:
                break
            self._left -= weight
            work = partial(reading.ahead, group, opened, report.part())
            early[group.row_group] = self._pool.begin(work)
        return opened._replace(early=early)
