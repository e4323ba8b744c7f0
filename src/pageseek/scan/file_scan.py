"""One file on its way through a scan: bind, prune row groups, prune pages, filter, payload.

A state that needs bytes, or jobs done, is a generator of steps (steps.py). A lane runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.arrays import of_numpy
from pageseek.base.batches import table_of
from pageseek.base.report import Report
from pageseek.dataset.dataset_schema import SchemaAdapter
from pageseek.format.chunks import declared_pages
from pageseek.format.file_metadata import FileMetadata
from pageseek.prune import (
    COLUMN_INDEX,
    PAGE_HEADERS,
    STATISTICS,
    GroupProof,
    MechanismRun,
    RemainingRows,
    load_indexes,
    prune_groups,
    run_mechanisms,
)
from pageseek.scan.accounting import LIMIT, TAKE, account
from pageseek.scan.bound_request import BoundRequest, BoundRequests
from pageseek.scan.leaf_reader import IndexMismatch
from pageseek.scan.plan import FilePlan, GroupPlan
from pageseek.scan.request import Request
from pageseek.scan.row_group import GroupScan, Held
from pageseek.scan.steps import ScanContext, Steps, reads
from pageseek.storage import Source

_NO_ROWS = rows.RowRanges.empty()
NO_PROOF = GroupProof(b"", b"")


class Rows(NamedTuple):
    """The rows of a row group that pass, and the arrays of each column of the file."""

    found: rows.RowRanges
    arrays: list[list[pa.Array]]


class FileScan:
    """A file of a scan, from its footer to its rows.

    Attributes
    ----------
    file : FileMetadata
        The file, which is open.
    bound_request : BoundRequest
        What is asked of it, once `bind` has run.
    plan : FilePlan
        What is left to read of it.
    first_row : int
        The number of rows in the files before it.
    begun : dict
        Row groups that are read already, and what gives their rows (`Scheduler.begin`).
    """

    __slots__ = (
        "_adapter",
        "_proof",
        "_schema",
        "begun",
        "bound_request",
        "file",
        "first_row",
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
        self._schema: pa.Schema | None = None  # of the tables that were made last
        self._adapter: SchemaAdapter | None = None
        self.begun: dict[int, Future[Any]] = {}

    # -- bind -----------------------------------------------------------------------------------

    def bind(self, requests: BoundRequests) -> None:
        """Bind the request to the columns of the file."""
        self.bound_request = requests.of(self.file, self.source)

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

    def prune_pages(self, groups: Sequence[GroupPlan], report: Report) -> Steps[list[GroupPlan]]:
        """The row groups with the rows that no mechanism denies; without those that have none.

        Mechanisms are asked of row groups of which only the footer was. A report of chunks then has the pages and bytes that
        are left to read.
        """
        file, bound_request, request = self.file, self.bound_request, self.request
        open_groups = {group.row_group: group.ranges for group in groups if not group.pages_pruned}
        left: dict[int, RemainingRows] = {}
        if open_groups:
            assert bound_request.bound is not None
            ignored = {group: file.dropped(group) for group in open_groups}
            run = MechanismRun(
                file,
                bound_request.bound,
                self.proof,
                bound_request.required_leaves(file),
                request.prune,
                request.options,
                report,
                bound_request.asks_for_matches,
                bound_request.kept,
                request.distinct_index,
            )
            left = yield from reads(run_mechanisms(run, open_groups), "index")
            tested_alone = not bound_request.tests_payload
            groups = [
                group
                if group.pages_pruned
                else replace(
                    group,
                    ranges=left[group.row_group].ranges,
                    cost=0,
                    matching=left[group.row_group].fully_matched if tested_alone else _NO_ROWS,
                    pages_pruned=True,
                    ignored=ignored[group.row_group],
                )
                for group in groups
            ]
        found = [group for group in groups if group.ranges]
        if request.limit is not None or request.selects_rows:
            yield from self._load_offsets(found, report)
        if report.chunks is None:
            return found
        cut = TAKE if request.selects_rows else LIMIT
        costs = {}
        for group in groups:
            told = left.get(group.row_group)
            by = cut if told is None else told.by or cut
            costs[group.row_group], held = account(file, bound_request, group, by, report)
            if not report.analyzed:  # else they are counted when they are read
                report.bytes["data"] += costs[group.row_group] - held
        return [replace(group, cost=costs[group.row_group]) for group in found]

    def load_offsets(self, report: Report) -> Steps[None]:
        """The offset indexes that a plan of another process, or of another time, rests on."""
        pruned = [group for group in self.plan.groups if group.pages_pruned]
        return self._load_offsets(pruned, report)

    def _load_offsets(self, groups: Sequence[GroupPlan], report: Report) -> Steps[None]:
        """The offset indexes of row groups of which not every page may be needed, where they are not at hand.

        They are when this process made the plan; they are not in another, or when the file was opened again.
        """
        if COLUMN_INDEX not in self.request.prune:
            return
        file, required = self.file, self.bound_request.required_leaves(self.file)
        counts = file.group_rows
        parts = [
            group.row_group
            for group in groups
            if not group.fully_matched or group.ranges.num_rows < counts[group.row_group]
        ]
        if parts:
            loading = load_indexes(file, parts, required, (), self.request.options, report)
            yield from reads(loading, "index")

    # -- filter, payload ------------------------------------------------------------------------

    def read(
        self, group: GroupPlan, left: int | None, context: ScanContext, held: Sequence[Held] = ()
    ) -> Steps[Rows]:
        """The rows of a row group that pass, at most as many as are `left`, and the arrays of each column. `held`: bytes that
        are at hand.
        """
        file, request, report = self.file, self.request, context.report
        number, total = group.row_group, file.group_rows[group.row_group]
        ranges, matching, ignored = group.ranges, group.matching, group.ignored
        bound = None if group.fully_matched else self.bound_request.bound
        while True:
            if file.dropped(number) - ignored:  # rows may have been ruled out on their word
                ignored, before = ignored | file.dropped(number), ranges.num_rows
                if (
                    not group.fully_matched or request.limit is None
                ):  # else only the limit has cut them
                    first = file.first_row(number)
                    ranges = request.asked(self.source.name, self.first_row, first, total)
                    matching = _NO_ROWS
                report.restart(file.name, number, None, None, ranges.num_rows - before)
            scan = GroupScan(
                file,
                number,
                self.bound_request.columns,
                context,
                request.options,
                self.bound_request.learned,
                COLUMN_INDEX in request.prune,
                PAGE_HEADERS in request.prune,
                held,
            )
            try:
                found, arrays = yield from scan.run(ranges, bound, left, matching)
            except IndexMismatch as mismatch:
                file.drop_index(number, mismatch.leaf)
                declared = declared_pages(file.chunk(number, mismatch.leaf))
                report.restart(file.name, number, mismatch.leaf.name, declared, 0)
                continue
            if file.dropped(number) - ignored:  # by another scan, meanwhile
                continue
            report.done(file.name, number, ranges.num_rows, total)
            return Rows(found, arrays)

    def table(self, group: GroupPlan, read: Rows, schema: pa.Schema) -> pa.Table:
        """The rows that `read` has found as a table of the scan's schema."""
        if self._schema is not schema:
            self._schema = schema
            self._adapter = self.bound_request.adapter(schema, self.source)
        n, arrays = read.found.num_rows, read.arrays
        if self._adapter is not None:  # what other files have, and folders say
            arrays = self._adapter(arrays, n)
        if self.request.row_number is not None:
            first = self.first_row + self.file.first_row(group.row_group)
            arrays = [[of_numpy(read.found.rows() + first)], *arrays]
        return table_of(schema, n, arrays)
