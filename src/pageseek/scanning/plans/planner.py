"""From a request to a plan: opens the files of a scan in order, binds and prunes them, and counts what they leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.predicate.bound import tests_of
from pageseek.prune.registry import LOG, LOOKUPS, applicable
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.one_file.limit_steps import LimitSteps
from pageseek.scanning.plans.dataset_columns import DatasetColumns
from pageseek.scanning.plans.footer_selection import (
    check_selected,
    check_taken,
    count_pruned,
    plan_by_footer,
    plans_by_footers,
    ranges_by_footer,
)
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.scanning.requests.accounting import (
    DELETED,
    LIMIT,
    PARTITION,
    TAKE,
    account,
    last_proof,
)
from pageseek.scanning.requests.catalog_answers import CatalogAnswers
from pageseek.scanning.requests.log_answers import LogAnswers
from pageseek.scanning.requests.plan import FilePlan, Footer, GroupPlan
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source, Sources, Version

if TYPE_CHECKING:
    from pageseek.format.file_metadata import FileMetadata
    from pageseek.scanning.many_files.batched_file import BatchedFile, DecidedFiles
    from pageseek.scanning.many_files.footer_batches import FooterBatches
    from pageseek.scanning.requests.bound_request import BoundRequest

FEWEST_FILES = 8  # files that are as quickly opened one by one
MOST_EXAMINED = 4096  # files of a plan whose undecided row groups are put to all mechanisms
VALUES_LIKE_A_FILE = (
    256  # values of IN that take about as long to look up in a file as the rest of it takes
)
# of these, files that are small: to read many as one costs less than to ask which pages are needed of each
MOST_ASKED = 64


class Planned(NamedTuple):
    """A file that has rows left to read. `scan`: the open file; None where its footer was pruned together with others. `footer`: that
    footer.
    """

    plan: FilePlan
    scan: FileScan | None
    footer: BatchedFile | None = None


class Planner:
    """Runs the files of a scan to the state before their rows are read.

    Parameters
    ----------
    lazy : bool
        The plan is executed at once. Row groups that a limit may make needless are then pruned as they are reached.
    fold : bool
        The report needs sums only, no entry for each column chunk.
    batches : bool
        Footers of many similar files may be pruned together, so that these are not opened.
    defers : bool
        The plan is executed later, in parts. Of a great many files the undecided row groups are then put to the mechanisms that
        need more than the footer by who reads them: MOST_EXAMINED files take seconds here, and the others would take minutes.
        Fewer are examined for long lists of IN, if each value is looked up in an index of each file.
    """

    def __init__(
        self,
        sources: Sources,
        request: Request,
        scheduler: Scheduler,
        lazy: bool = False,
        fold: bool = False,
        batches: bool = True,
        defers: bool = False,
    ) -> None:
        self._sources, self._scheduler, self._report = sources, scheduler, scheduler.report
        self._lazy, self._fold = lazy, fold
        self._left_to_examine, self._left_to_ask = float(MOST_EXAMINED), MOST_ASKED
        self._num_unasked = 0  # small files
        self._may_defer = defers and request.limit is None and not request.selects_rows
        self._counted = request.take is not None or request.row_number is not None
        self.request = request
        self._catalogs = CatalogAnswers.of(sources, request)
        open_file = partial(scheduler.files.open, report=scheduler.report)
        self.columns = DatasetColumns(sources, request, open_file)
        if len(sources) > 1 and sources.far:
            every = np.arange(len(sources))
            scheduler.files.expect(lambda: [sources[i] for i in self._wanted(every).tolist()])
        self.columns.resolve_types()
        self.request = request = self.columns.request
        # a row selection or a catalog chooses files, too
        self._chosen = request.selected is not None or self._catalogs is not None
        self._log = None if self._counted else LogAnswers.of(sources, request, self._report)
        self._left, self._first_row = request.limit, 0
        self._schemas: dict[Any, Any] = {}  # each by itself, so that equal ones are one object
        left = len(sources) if self._log is None else self._log.num_left
        self._batches = self._footer_batches() if batches and left >= FEWEST_FILES else None

    def _footer_batches(self) -> FooterBatches | None:
        """Prunes the footers of many local files together. None where few are opened."""
        request = self.request
        if self._chosen:
            return None
        if self.columns.one_schema or self._sources.far:
            return None
        from pageseek.scanning.many_files.footer_batches import (
            FooterBatches,  # late: for many files
        )

        return FooterBatches(
            self._sources, request, self._report, self._wanted, self.columns.requests.said,
            self._pattern,
        )  # fmt: skip

    def _end_batches(self) -> None:
        """Let go of the batches, which hold methods of the planner: megabytes of tails would wait for the collector of garbage."""
        if self._batches is not None:
            self._batches.close()
            self._batches = None

    def _pattern(self, source: Source) -> tuple[FileMetadata, BoundRequest]:
        """A file that is opened before its turn, and the request bound to it."""
        file = self._scheduler.files.open(source, self._report)
        return file, self.columns.requests.of(file, source)

    def _wanted(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of some positions whose files are opened, by what the log, folders, the row selection and catalogs say. Where rows
        have numbers all files are.
        """
        if self._counted:
            return positions
        if self._log is not None:
            positions = self._log.left(positions)
        if not self._chosen and self.columns.may_match_all:
            return positions
        return positions[[self._is_wanted(self._sources[i]) for i in positions.tolist()]]

    def _is_wanted(self, source: Source) -> bool:
        """Whether a file is opened, by its folders, the row selection and catalogs."""
        selected = self.request.selected
        if selected is not None and source.name not in selected:
            return False
        return self.columns.may_match(source) and not (
            self._catalogs is not None and self._catalogs.rules_out(source)
        )

    # -- all files ------------------------------------------------------------------------------

    def files(self) -> Iterator[Planned]:
        """The files that have rows left, in order."""
        sources, report = self._sources, self._report
        report.files.total = len(sources)
        at = 0
        while at < len(sources):
            if self._left == 0 and self.columns.known:
                report.files.prune(LIMIT, len(sources) - at)
                break
            if self._log is not None and self._log.rules_out(at):
                at = self._skip_to(self._log.next_left(at), at)
                continue
            pruned = None
            if self._batches is not None and not self._counted:
                pruned = self._batches.gone(at)
            if pruned is not None:
                count_pruned(pruned, report)
                at, self._first_row = at + pruned.files, self._first_row + pruned.rows
                continue
            decided = self._decided(at)
            if decided is not None:
                for planned in self._plan_decided(at, decided):
                    yield planned
                    report.step()
                at += len(decided.numbers)
                continue
            source = sources[at]
            at += 1
            may_match = self.columns.may_match(source)
            if not may_match and not self._counted:
                report.files.prune(PARTITION, 1)
                continue
            if self._chosen and not (self._counted or self._is_wanted(source)):
                by = None if self._catalogs is None else self._catalogs.rules_out(source)
                report.files.prune(by or TAKE, 1)
                continue
            one = self._plan(at - 1, source, may_match)
            if one is not None:
                yield one
            report.step()
        else:  # no limit was reached
            if self.request.take is not None:
                check_taken(self.request.take, self._first_row)
        self._end_batches()
        if self._num_unasked:
            report.note(
                f"page indexes, dictionaries, filters and lookup indexes of {self._num_unasked:,} small files were not asked: to read these files together "
                "costs less"
            )

    def _skip_to(self, stop: int, at: int) -> int:
        """Count the files that the log rules out, by their folders where these do, too."""
        report, by_folders = self._report, 0
        if not self.columns.may_match_all:
            by_folders = sum(not self.columns.may_match(one) for one in self._sources[at:stop])
        report.files.prune(PARTITION, by_folders)
        report.files.prune(LOG, stop - at - by_folders)
        report.step(stop - at)
        return stop

    def _decided(self, at: int) -> DecidedFiles | None:
        """The files from a position on that are planned together by their footers; None if the first is not."""
        if self._batches is None or self._counted or self._left is not None:
            return None
        found = self._batches.decided(at, self._joins, self._defers)
        if found is None:
            return None
        sources = self._sources[at : at + len(found.numbers)]
        # a file that has deletes is opened
        n = next((i for i, one in enumerate(sources) if one.deletes), len(sources))
        return found.head(n) if n else None

    def _plan_decided(self, at: int, files: DecidedFiles) -> Iterator[Planned]:
        """The files from a position on, by their footers."""
        report, homogeneous = self._report, files.homogeneous
        sources = self._sources[at : at + len(files.numbers)]
        schema = homogeneous.schema_group.like
        footer = cache(partial(Footer, self._schemas.setdefault(schema, schema)))
        plans, num_rows = plans_by_footers(
            files, sources, self._first_row, footer, report, self._fold, self._defers
        )
        self._first_row += num_rows
        report.files.read += len(plans)
        if report.chunks is not None and not self._left_to_ask:
            self._num_unasked += sum(
                not file.is_final and all(group.pages_pruned for group in plan.groups)
                for plan, file in zip(plans, files.each(), strict=True)
            )
        for plan, file in zip(plans, files.each(), strict=True):
            yield Planned(plan, None, file)

    def _plan(self, at: int, source: Source, may_match: bool) -> Planned | None:
        """The row groups that are left of a file: by its footer if that was read with others, else by the file itself."""
        report, scan, found = self._report, None, None
        batched = None if self._batches is None else self._batched(at)
        if batched is None:
            scan = self._open(source, at)
            if self._left is None and self._batches is not None:
                # with this file open, footers like its own can be read in batches
                batched = self._batched(at, scan.file.store.version)
        if batched is not None:
            found = plan_by_footer(
                batched, source, self.request, self._left, report, self._lazy,
                self._first_row, may_match, self._fold, self._defers,
                self._joins,
            )  # fmt: skip
        if batched is not None and found is not None:
            scan, (groups, proof) = None, found
            if (
                report.chunks is not None
                and not (self._left_to_ask or batched.is_final)
                and groups
                and all(group.pages_pruned for group in groups)  # else who reads them asks
            ):
                self._num_unasked += 1
            version, num_rows = batched.version, sum(batched.counts)
            schema, row_groups = batched.homogeneous.schema_group.like, batched.num_row_groups
        else:
            if batched is not None and self._left_to_ask and batched.is_small:
                self._left_to_ask -= 1
            if scan is None:
                scan = self._open(source, at, batched)
            version, num_rows = scan.file.store.version, scan.file.num_rows
            schema, row_groups = scan.file.schema_key, scan.file.num_row_groups
            if batched is not None and batched.version == version:
                scan.idle = batched.idle
            groups, proof = self._prune(scan, may_match)
        if self.request.selected is not None:
            check_selected(self.request.selected, source, num_rows)
        footer = Footer(self._schemas.setdefault(schema, schema), row_groups)
        plan = FilePlan(source, version, groups, self._first_row, footer)
        self._first_row += num_rows
        report.file_bytes += version.size
        if not groups:
            report.files.prune(proof, 1)
            unconfirmed = self._scheduler.unconfirmed
            if scan is not None and unconfirmed is not None:
                unconfirmed.ask(scan.file.store)
            return None
        if self._left is not None:
            self._left -= sum([group.ranges.num_rows for group in groups if group.fully_matched])
        report.files.read += 1
        if scan is not None:
            scan.plan = plan
            return Planned(plan, scan)
        return Planned(plan, None, batched)

    def all_columns(self) -> pa.Schema:
        """The columns of all files, of whose rows nothing is asked."""
        report, at = self._report, 0
        report.files.total = len(self._sources)
        while at < len(self._sources):
            similar = 0 if self._batches is None else self._batches.similar(at)
            if not similar:
                similar, source = 1, self._sources[at]
                if len(self._wanted(np.array([at]))):
                    self._open(source, at)
            at += similar
            report.step(similar)
        self._end_batches()
        schema = self.columns.schema()
        self._scheduler.files.close()
        return schema

    # -- one file -------------------------------------------------------------------------------

    @property
    def _defers(self) -> bool:
        """Whether undecided row groups are left to who reads them."""
        return self._may_defer and self._left_to_examine <= 0

    @property
    def _joins(self) -> bool:
        """Whether small files are read as one where their footers do not decide."""
        executes = self._lazy and self._report.chunks is None
        return self.request.row_number is None and (executes or not self._left_to_ask)

    def _batched(self, at: int, opened: Version | None = None) -> BatchedFile | None:
        """The footer of a file if it was read with others, and is of the version that was `opened`."""
        found = None if self._batches is None else self._batches.of(at)
        if found is None or opened is None or found.version == opened:
            return found
        return None

    def _open(self, source: Source, at: int, batched: BatchedFile | None = None) -> FileScan:
        """Open a file and bind the request to it. `batched`: its footer, where it was read with others."""
        known = None
        if batched is not None:
            known = batched.known
        elif self._batches is not None:
            known = self._batches.end(at)
        file = self._scheduler.files.open(source, self._report, known)
        scan = FileScan(source, file, self.request, self._first_row)
        self.columns.opened += 1
        if batched is not None and batched.version == file.store.version:
            schema_group = batched.homogeneous.schema_group
            file.adopt_columns(schema_group.tree)
            scan.bound_request = schema_group.bound_request.again()
            return scan
        began = perf_counter()
        scan.bound_request = self.columns.requests.of(file, source)
        self.columns.add(scan.bound_request, file.name)
        self._report.spent("open", began)
        if self._batches is not None:
            self._batches.learn(file, scan.bound_request, source, at)
        return scan

    def _prune(self, scan: FileScan, may_match: bool) -> tuple[tuple[GroupPlan, ...], str]:
        """The row groups of a file to read; where there are none, also the mechanism that ruled out the last."""
        report = self._report
        if not scan.file.store.version.strong:
            report.version = "weak"
        began = perf_counter()
        before, indexes = dict(report.row_groups.pruned_by), report.bytes["index"]
        groups = self._pruned(scan, may_match)
        scan.file.count_reads(report)
        proof = "" if groups else last_proof(before, report)
        report.spent("prune", began)
        if not groups and report.bytes["index"] > indexes:
            self._scheduler.lane(scan, report).confirm()  # the index may be of another version
        return groups, proof

    def _pruned(self, scan: FileScan, may_match: bool) -> tuple[GroupPlan, ...]:
        report, left = self._report, self._left
        counts, proof = scan.file.group_rows, scan.proof
        may, fully = proof.may, proof.must
        if scan.bound_request.bound is None:
            may = fully = b"\1" * len(counts)
        catalogs = self._catalogs and self._catalogs.rows_of(scan.source, scan.file.num_rows)
        deleted = scan.deleted(report) if any(may) else None
        ranges = ranges_by_footer(
            counts, may, fully, scan.bound_request, left, report, scan.source, self._first_row,
            may_match, named=catalogs or (), deleted=deleted,
        )  # fmt: skip
        if not ranges:
            return ()
        by = DELETED if deleted else ""
        groups = [
            GroupPlan(i, found, bool(fully[i]), 0, pages_pruned=bool(fully[i]), by=by)
            for i, found in ranges.items()
        ]
        lane = self._scheduler.lane(scan, report)
        alone = len(self._sources) == 1
        undecided = not all(group.pages_pruned for group in groups)
        if not self._defers:
            self._left_to_examine -= _effort(scan) if undecided else 0
        elif undecided:
            pruned = [group for group in groups if group.pages_pruned]
            later = [self._deferred(scan, group) for group in groups if not group.pages_pruned]
            found = [*lane.run(scan.prune_pages(pruned, report)), *later]
            return self._counted_groups(sorted(found, key=lambda group: group.row_group))
        if self._lazy and left is not None and not (alone and LimitSteps.is_one(groups, left)):
            pruned = [group for group in groups if group.pages_pruned]
            made = iter(lane.run(scan.prune_pages(pruned, report)))
            groups = [next(made) if group.pages_pruned else group for group in groups]
        else:
            groups = lane.run(scan.prune_pages(groups, report))
        return self._counted_groups(groups)

    def _deferred(self, scan: FileScan, group: GroupPlan) -> GroupPlan:
        """A row group that is put to no further mechanism here."""
        if self._report.chunks is None:
            return group
        cost, held = account(scan.file, scan.bound_request, group, LIMIT, self._report)
        self._report.bytes["data"] += cost - held
        return group._replace(cost=cost)

    def _counted_groups(self, groups: Sequence[GroupPlan]) -> tuple[GroupPlan, ...]:
        """The row groups that are read, which the report counts."""
        for group in groups:
            self._report.row_groups.read += 1
            self._report.rows.read += group.ranges.num_rows
        return tuple(groups)


def _effort(scan: FileScan) -> float:
    """How many files with one value each take as long to examine. The time of lookup indexes alone grows much with the values."""
    bound, use = scan.bound_request.bound, scan.bound_request.request.prune & LOOKUPS
    tests = [] if bound is None or not use else tests_of(bound)
    values = sum([test.literals[0] for test in tests])
    if values < VALUES_LIKE_A_FILE or not applicable(scan.file, use, [t.leaf for t in tests]):
        return 1.0
    return 1 + values / VALUES_LIKE_A_FILE
