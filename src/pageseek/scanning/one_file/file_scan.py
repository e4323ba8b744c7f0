"""One file on its way through a scan: bind, prune row groups, prune pages, filter, payload.

A state that needs bytes, or jobs done, is a generator of steps (steps.py). A lane runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import CorruptFileError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.chunks import declared_pages
from pageseek.format.file_metadata import NO_LEAVES, FileMetadata
from pageseek.prune.registry import STATISTICS
from pageseek.prune.row_groups import GroupProof, prune_groups
from pageseek.scanning.leaves.late_offsets import load_planned_offsets
from pageseek.scanning.one_file.file_pruning import prune_pages
from pageseek.scanning.one_file.group_reader import GroupReader
from pageseek.scanning.one_file.row_group import filter_group, read_payload
from pageseek.scanning.requests.accounting import count_kept
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.plan import FilePlan, GroupPlan
from pageseek.scanning.requests.request import Request
from pageseek.scanning.requests.steps import Held, IndexMismatch, ScanContext, Steps
from pageseek.storage import Source

_NO_ROWS = rows.RowRanges.empty()
NO_PROOF = GroupProof(b"", b"")


class Passed(NamedTuple):
    """Rows of a row group that passed the filter, and are read later. The first of them is the `start`-th of `total` rows that
    `reader` has decoded.
    """

    group: GroupPlan
    reader: GroupReader
    start: int
    total: int


class Rows(NamedTuple):
    """The rows of a row group that pass, and the arrays of each column. `rest`: further ones that pass, in pieces. `count_read`: counts
    what was read, where that is done only once the rows are taken.
    """

    found: rows.RowRanges
    arrays: list[list[pa.Array]]
    rest: Sequence[Passed] = ()
    count_read: Callable[[], None] | None = None


class SeveralFiles(NamedTuple):
    """Files that are scanned as one, and the bytes of memory that each of their row groups takes. All of these are small."""

    files: Sequence[FilePlan]
    memory: Sequence[int]


class FileScan:
    """A file of a scan, from its footer to its rows.

    Attributes
    ----------
    file : FileMetadata
        The file, which is open.
    bound_request : BoundRequest
        The request in terms of this file, once it is bound.
    plan : FilePlan
        The row groups to read, once the file is pruned.
    first_row : int
        The number of rows in the files before it.
    idle : frozenset of str
        Mechanisms that are known to prove no more than is proved.
    divide_passed : callable, optional
        Divides the rows of a row group that passed, where they are read in pieces if they are large.
    begun : dict
        Row groups that are being read ahead of their turn, with their results (`Scheduler.begin`).
    joined : SeveralFiles, optional
        The files whose row groups these are, where several are read as one.
    """

    __slots__ = (
        "_deleted",
        "_proof",
        "begun",
        "bound_request",
        "divide_passed",
        "file",
        "first_row",
        "idle",
        "joined",
        "plan",
        "request",
        "source",
    )

    bound_request: BoundRequest
    plan: FilePlan

    def __init__(
        self,
        source: Source,
        file: FileMetadata,
        request: Request,
        first_row: int = 0,
    ) -> None:
        self.source, self.file = source, file
        self.request, self.first_row = request, first_row
        self._proof: GroupProof | None = None
        self._deleted: rows.RowRanges | None = None
        self.idle: frozenset[str] = frozenset()
        self.divide_passed: DividePassed | None = None
        self.begun: dict[int, Future[Any]] = {}
        self.joined: SeveralFiles | None = None

    @property
    def num_files(self) -> int:
        """How many files this is."""
        return 1 if self.joined is None else len(self.joined.files)

    @property
    def first_plan(self) -> FilePlan:
        """The plan of the file, or of the first of several."""
        return self.plan if self.joined is None else self.joined.files[0]

    # -- prune ----------------------------------------------------------------------------------

    @property
    def proof(self) -> GroupProof:
        """What the footer proves of each row group."""
        if self._proof is None:
            bound, request = self.bound_request.bound, self.request
            self._proof = NO_PROOF
            if bound is not None:
                self._proof = prune_groups(
                    self.file, bound, request.options, STATISTICS in request.prune
                )
        return self._proof

    def deleted(self, report: Report) -> rows.RowRanges | None:
        """The rows of the file that its table has deleted; None where it has deleted none."""
        if not self.source.deletes:
            return None
        if self._deleted is None:
            from pageseek.scanning.deletes.deleted_rows import (
                deleted_rows,  # late: few scans need it
            )

            self._deleted = deleted_rows(self.source, self.file, report)
        return self._deleted

    def prune_pages(self, groups: Sequence[GroupPlan], report: Report) -> Steps[list[GroupPlan]]:
        """The row groups with the rows that no mechanism rules out; without those that have none."""
        proof = self._proof or self.proof
        return prune_pages(self.file, self.bound_request, proof, groups, report, self.idle)

    def load_offsets(self, report: Report) -> Steps[None]:
        """Load the offset indexes for a plan that was made earlier, or in another process."""
        pruned = [group for group in self.plan.groups if group.pages_pruned]
        return load_planned_offsets(self.file, self.bound_request, pruned, report)

    # -- filter, payload ------------------------------------------------------------------------

    def read(
        self, group: GroupPlan, left: int | None, context: ScanContext, held: Sequence[Held] = ()
    ) -> Steps[Rows]:
        """The rows of a row group that pass, at most `left` of them, and the arrays of each column. `held`: bytes that are in
        memory already.

        A scan that divides reads the first piece of them, and tells the others.
        """
        file, request, report = self.file, self.request, context.report
        number, total = group.row_group, file.group_rows[group.row_group]
        ranges, matching, ignored = group.ranges, group.matching, group.ignored
        bound = None if group.fully_matched else self.bound_request.bound
        context.row_groups = len(self.plan.groups)
        while True:
            if (
                file.dropped.get(number, NO_LEAVES) - ignored
            ):  # these indexes may have ruled out rows
                if group.divided:
                    raise self._divided_wrongly(number, "an offset index does not fit its pages")
                ignored, before = ignored | file.dropped.get(number, NO_LEAVES), ranges.num_rows
                if (
                    not group.fully_matched or request.limit is None
                ):  # else only the limit has cut them
                    first = file.first_row(number)
                    ranges = request.asked(self.source.name, self.first_row, first, total)
                    if deleted := self.deleted(report):
                        ranges -= deleted.slice(first, first + total).shift(-first)
                    matching = _NO_ROWS
                report.restart(file.name, number, None, None, ranges.num_rows - before)
            try:
                found, reader = yield from filter_group(
                    file, number, self.bound_request, context, ranges, bound, left, matching, held
                )
                passed: Sequence[Passed] = ()
                if self.divide_passed is not None and bound is not None and found:
                    whole = group._replace(ranges=found, ignored=ignored)
                    pieces = yield from self.divide_passed(self, whole, report)
                    passed = _passed(pieces, reader)
                if passed:
                    found, reader = passed[0].group.ranges, _reader_of(passed[0], context)
                arrays = yield from read_payload(
                    file, number, self.bound_request, context, found, reader, bound is not None
                )
            except IndexMismatch as mismatch:
                if group.divided:
                    raise self._divided_wrongly(number, str(mismatch)) from mismatch
                file.drop_index(number, mismatch.leaf)
                declared = declared_pages(file.chunk(number, mismatch.leaf))
                report.restart(file.name, number, mismatch.leaf.name, declared, 0)
                continue
            if file.dropped.get(number, NO_LEAVES) - ignored:  # by another scan, meanwhile
                continue
            if ranges is group.ranges:
                count_kept(file, self.bound_request, group, report)
            report.done(file.name, number, ranges.num_rows, total, group.counted)
            return Rows(found, arrays, passed[1:])

    def read_passed(self, passed: Passed, context: ScanContext) -> Steps[Rows]:
        """A piece of the rows that passed, after the first one."""
        number = passed.group.row_group
        try:
            arrays = yield from read_payload(
                self.file,
                number,
                self.bound_request,
                context,
                passed.group.ranges,
                _reader_of(passed, context),
                True,
            )
        except IndexMismatch as mismatch:
            raise self._divided_wrongly(number, str(mismatch)) from mismatch
        if self.file.dropped.get(number, NO_LEAVES) - passed.group.ignored:
            raise self._divided_wrongly(number, "an offset index does not fit its pages")
        return Rows(passed.group.ranges, arrays)

    def _divided_wrongly(self, row_group: int, why: str) -> CorruptFileError:
        """The error of an index that proves wrong after other pieces of the row group were read by it."""
        return CorruptFileError(
            f"{self.file.name}: row group {row_group}: {why}. The row group was divided by this index; leave the index out by "
            "prune=, or rewrite it by pageseek.index.attach"
        )


DividePassed: TypeAlias = Callable[[FileScan, GroupPlan, Report], Steps[Sequence[GroupPlan]]]


def _passed(pieces: Sequence[GroupPlan], reader: GroupReader) -> Sequence[Passed]:
    """The rows that passed, in pieces; none where one is enough."""
    if len(pieces) < 2:
        return ()
    total = sum([piece.ranges.num_rows for piece in pieces])
    made: list[Passed] = []
    start = 0
    for piece in pieces:
        made.append(Passed(piece, reader, start, total))
        start += piece.ranges.num_rows
    return made


def _reader_of(passed: Passed, context: ScanContext) -> GroupReader:
    n = passed.group.ranges.num_rows
    return passed.reader.of_rows(passed.start, n, passed.total, context)
