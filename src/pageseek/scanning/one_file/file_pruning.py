"""Puts the row groups of a file to all mechanisms, and counts what these leave."""

from __future__ import annotations

from collections.abc import Sequence

from pageseek._core import rows
from pageseek.base.report import Report
from pageseek.format.file_metadata import NO_LEAVES, FileMetadata
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.accumulator import MechanismRun, ProofAccumulator
from pageseek.prune.driver import run_mechanisms
from pageseek.prune.row_groups import GroupProof
from pageseek.scanning.leaves.late_offsets import load_planned_offsets
from pageseek.scanning.requests.accounting import LIMIT, TAKE, account
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.steps import Steps

_NO_ROWS = rows.RowRanges.empty()


def prune_pages(
    file: FileMetadata,
    bound_request: BoundRequest,
    proof: GroupProof,
    groups: Sequence[GroupPlan],
    report: Report,
    idle: frozenset[str] = frozenset(),
) -> Steps[list[GroupPlan]]:
    """The row groups with the rows that no mechanism rules out; without those that have none.

    Row groups that were pruned by the footer alone are put to the other mechanisms. A report of chunks then has the pages and
    bytes that are left to read. `proof`: what the footer proves of each row group. `idle`: mechanisms that
    would prove nothing.
    """
    request, use = bound_request.request, bound_request.leaves
    open_groups, ignored = {}, {}
    for group in groups:
        if not group.pages_pruned:
            open_groups[group.row_group] = group.ranges
            ignored[group.row_group] = file.dropped.get(group.row_group, NO_LEAVES)
    left: dict[int, ProofAccumulator] = {}
    pruned, found = [], []
    if open_groups:
        assert bound_request.bound is not None
        run = MechanismRun(
            file,
            bound_request.bound,
            proof,
            use.required(file),
            request.prune - idle if idle else request.prune,
            request.options,
            report,
            use.asks_for_matches,
            bound_request.kept,
            request.distinct_index,
            request.counts_only and isinstance(bound_request.bound, BoundLeaf),
        )
        left = yield from run_mechanisms(run, open_groups)
    for group in groups:
        part = group
        if not group.pages_pruned:
            remaining = left[group.row_group]
            part = GroupPlan(
                group.row_group,
                remaining.context.ranges,
                group.fully_matched,
                0,
                _NO_ROWS if use.tests_payload else remaining.fully_matched,
                True,
                ignored[group.row_group],
                by=remaining.pruned_by or group.by,
            )
        pruned.append(part)
        if part.ranges:
            found.append(part)
    if request.limit is not None or request.selects_rows:
        yield from load_planned_offsets(file, bound_request, found, report)
    if report.chunks is None:
        return found
    cut = TAKE if request.selects_rows else LIMIT
    costs = {}
    for group in pruned:
        told = left.get(group.row_group)
        by = ("" if told is None else told.pruned_by) or group.by or cut
        costs[group.row_group], held = account(file, bound_request, group, by, report)
        if not report.analyzed:  # else they are counted when they are read
            report.bytes["data"] += costs[group.row_group] - held
    return [group._replace(cost=costs[group.row_group]) for group in found]
