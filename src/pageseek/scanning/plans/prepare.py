"""Plans: to be executed elsewhere, or at once with files that stay open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.io.version_checks import UnconfirmedVersions
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.plans.planner import Planner
from pageseek.scanning.plans.scan_plan import AllColumns, ScanPlan
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.scanning.plans.tables import TableReader
from pageseek.scanning.requests.plan import FilePlan
from pageseek.scanning.requests.request import Request
from pageseek.storage import Sources, Store

if TYPE_CHECKING:
    from pageseek.scanning.many_files.batched_file import BatchedFile

# Remote files stay open from planning to reading. A file that is opened again is asked for its version again.
MOST_OPEN = 256
# of files that may be read as one, about 2 kB each; further files are opened
MOST_FOOTERS = 1 << 16
MOST_UNNOTED = 1024  # footers whose calendars are looked at together
MOST_OPEN_WITH_BYTES = 16  # of these, files that also keep bytes that were read to prune


class PreparedScan:
    """A plan that is executed where it was made, with the files that stay open. The end of its block stops reading ahead.

    `ahead`: the whole plan will be executed.
    """

    __slots__ = ("_footers", "_scans", "_scheduler", "plan", "report")

    def __init__(
        self,
        sources: Sources,
        request: Request,
        report: Report,
        unconfirmed: UnconfirmedVersions | None = None,
        ahead: bool = False,
    ) -> None:
        self.report, self._scheduler = report, Scheduler(request, report, unconfirmed)
        try:
            self.plan, self._scans, self._footers = prepare(
                sources, self._scheduler, lazy=True, ahead=ahead
            )
        except PredicateError as error:
            self._scheduler.stop()
            raise error.with_traceback(None) from None  # the filter is at fault, no step in here
        except BaseException:
            self._scheduler.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.stop()

    def count_execution(self) -> Report:
        """Count what is read from now on, in a report that also has what was planned."""
        self.report = self._scheduler.report = report = self.plan.report.to_execute()
        if self._scheduler.unconfirmed is not None:
            self._scheduler.unconfirmed.report = report
        return report

    def first_store(self) -> list[Store]:
        """The store of the first file of the plan, if it is open."""
        return [scan.file.store for scan in self._scans[:1] if scan is not None]

    def tables(self, streams: bool = False) -> Iterator[pa.Table]:
        """The rows in order: a table for each row group that has some. `streams`: see TableReader."""
        plan = self.plan
        reader = TableReader(
            plan.schema,
            plan.files,
            self._scans,
            self._scheduler,
            streams=streams,
            footers=self._footers,
        )
        return reader.tables()


def make_plan(sources: Sources, request: Request, report: Report | None = None) -> ScanPlan:
    """Open the files and prune them. This reads the footers, and those parts of the page index that the filter needs.

    `report`: an empty one, which is filled.
    """
    scheduler = Scheduler(request, Report(nan=request.nan, chunks={}) if report is None else report)
    plan = prepare(sources, scheduler, fold=True, defers=True).plan
    plan.report.fold()
    return plan


def all_columns(sources: Sources, request: Request, report: Report) -> AllColumns:
    """The columns of all files. This reads their footers. `report`: one without chunks, which is filled."""
    lean = replace(request, prune=frozenset(), limit=None)
    planner = Planner(sources, lean, Scheduler(lean, report))
    schema = planner.all_columns()
    made = replace(request, dataset_schema=planner.request.dataset_schema)
    return AllColumns(made, schema)


class Prepared(NamedTuple):
    """A plan, and its files that stay open. These are a single file, also one that is left of many, and remote files, which use
    up no descriptors.

    `scans`, `footers`: empty, or one entry for each file of the plan. `footers`: those of files that may be read as one.
    """

    plan: ScanPlan
    scans: list[FileScan | None]
    footers: list[BatchedFile | None]


def prepare(
    sources: Sources,
    scheduler: Scheduler,
    lazy: bool = False,
    fold: bool = False,
    ahead: bool = False,
    defers: bool = False,
) -> Prepared:
    """Make a plan.

    `lazy`, `fold`, `defers`: see Planner. `ahead`: the whole plan is executed, so that row groups of remote files are read while further
    files are opened.
    """
    request, report = scheduler.request, scheduler.report
    if report.chunks is not None:
        name_what_is_read(report, sources, request)
    planner = Planner(sources, request, scheduler, lazy, fold, defers=defers)
    request = scheduler.request = planner.request
    alone, unconfirmed = len(sources) == 1, scheduler.unconfirmed
    # a single file leaves nothing to open meanwhile; a limit may make further files needless
    ahead = ahead and request.limit is None and not alone
    files: list[FilePlan] = []
    scans: list[FileScan | None] = []
    footers: list[BatchedFile | None] = []
    # else they are not needed again (TableReader): a plan of a million files would hold all of their footers
    executes = lazy and request.limit is None
    held = full = 0  # files that stay open, and those that keep bytes
    only: FileScan | None = None
    unnoted: list[BatchedFile] = []
    for plan, scan, footer in planner.files():
        only = None if files else scan
        files.append(plan)
        joins = footer is not None and footer.homogeneous.schema_group.joins
        footers.append(footer if joins and executes and len(footers) < MOST_FOOTERS else None)
        if report.chunks is not None and scan is not None:  # it is open anyway
            from pageseek.datasets.legacy_calendar import calendar_note, zone_of

            pairs = scan.file.key_value_metadata
            note = calendar_note(scan.file.name, pairs, scan.bound_request.leaves.read())
            if note is not None:
                report.note(note)
                report.old_zones.add(zone_of(pairs))
        if report.chunks is not None and footer is not None:
            unnoted.append(footer)
            if len(unnoted) == MOST_UNNOTED:
                _note_calendars(unnoted, report)
        remote = plan.source.far and held < MOST_OPEN
        if scan is None or not (
            alone or (remote and (full < MOST_OPEN_WITH_BYTES or not scan.bound_request.kept))
        ):
            scans.append(None)
            continue
        scans.append(scan)
        if ahead and scan.bound_request.bound is not None:
            scheduler.begin(scan)
        held, full = held + 1, full + bool(scan.bound_request.kept)
    if only is not None and not held:
        scans, held = [only], 1
    _note_calendars(unnoted, report)
    schema = planner.columns.schema()
    scheduler.files.close()
    report.columns = list(schema.names)
    if unconfirmed is not None:  # files that do not stay open are confirmed now
        unconfirmed.ask_all_but([scan.file.store for scan in scans if scan is not None])
    some = any(footer is not None for footer in footers)
    made = ScanPlan(request, schema, tuple(files), report)
    return Prepared(made, scans if held else [], footers if some else [])


def name_what_is_read(report: Report, sources: Sources, request: Request) -> None:
    """Say in a report what it is of."""
    report.source = sources[0].name if len(sources) == 1 else f"{len(sources):,} files"
    report.filter = "" if request.filter is None else repr(request.filter)


def _note_calendars(files: list[BatchedFile], report: Report) -> None:
    """Note which files that are read have values of Spark's old calendar, one for each way that they were written. Empties the list."""
    if not files:
        return
    from pageseek.datasets.legacy_calendar import VERSION, calendar_note, zone_of
    from pageseek.scanning.many_files.batched_file import pairs_of_spark

    for schema_group, some in groupby(files, lambda file: file.homogeneous.schema_group):
        leaves = list(schema_group.bound_request.leaves.read())
        if calendar_note("", {VERSION: b"1"}, leaves) is None:  # no column has such values
            continue
        for name, pairs in pairs_of_spark(list(some)):
            note = calendar_note(name, pairs, leaves)
            if note is not None:
                report.note(note)
                report.old_zones.add(zone_of(pairs))
    files.clear()
