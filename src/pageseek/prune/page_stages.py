"""The column index and the page headers: what the bounds of pages prove of the row groups of a file.

These are stages of the driver and no pruners, for two reasons. Beside the bounds they read the pages of columns that
are not tested, which is worth it only for rows that the whole filter leaves; a pruner, with its proofs of single tests,
knows nothing of these. And the indexes of all row groups are parsed leaf by leaf at once, where a generator for each
row group would cost more than the parsing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter

from pageseek._core import rows
from pageseek.format.page_headers import walk, walking_bytes
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import Asking, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.accumulator import MechanismRun, ProofAccumulator
from pageseek.prune.column_index import load_indexes
from pageseek.prune.protocol import Proof
from pageseek.prune.registry import COLUMN_INDEX, PAGE_HEADERS, STATISTICS
from pageseek.prune.sampling import probed
from pageseek.prune.verdicts import ALL, PASSES
from pageseek.storage.store import wait_bytes

MANY_TESTS = 16  # tests from which the bounds of pages are read for a few row groups first
_row_group = attrgetter("context.row_group")


def pages_may_prove(
    run: MechanismRun, row_groups: Sequence[int], tests: Sequence[BoundLeaf]
) -> bool:
    """Whether pages may prove more than the footer: not where every chunk has one page, whose bounds it has evaluated."""
    if not row_groups:
        return False
    for test in tests:
        if test.leaf.group or not run.file.have_one_page(row_groups, test.leaf):
            return True
    for leaf in run.required_leaves(row_groups[0]):  # as of any row group
        if not run.file.have_one_page(row_groups, leaf):
            return True
    return not all(_is_evaluated(run, group, test) for test in tests for group in row_groups)


# -- column index -------------------------------------------------------------------------------


def column_index_stage(
    run: MechanismRun,
    tests: Sequence[BoundLeaf],
    tested: Sequence[Leaf],
    remaining: list[ProofAccumulator],
) -> Asking[None]:
    """Put row groups to their column indexes. `tested`: the leaves of the tests."""
    load = partial(
        load_indexes,
        run.file,
        options=run.options,
        report=run.report,
        needless=partial(_is_needless, run, tests),
    )
    # offset indexes of leaves that are not tested are needed only where rows remain: where a read does not wait, they
    # are read in a wave of their own
    waits = wait_bytes(run.file.store) > 0
    later = len(remaining) > 1 and not waits
    required_leaves = (lambda _: tested) if later else run.required_leaves
    if waits:
        yield from load([*map(_row_group, remaining)], required_leaves, tested)
    done: list[ProofAccumulator] = []
    for some in [remaining] if waits and len(tests) <= MANY_TESTS else probed(remaining):
        done += some
        if not waits:
            yield from load([*map(_row_group, some)], required_leaves, tested)
        if not _add_proofs(run, some, tests):
            run.report.left_out(COLUMN_INDEX, len(remaining) - len(done))
            break  # the offset indexes of the rest are read where few rows are found to pass
    if later:
        groups = [_row_group(accumulator) for accumulator in done if accumulator.context.ranges]
        yield from load(groups, run.required_leaves, ())


def _is_needless(run: MechanismRun, tests: Sequence[BoundLeaf], row_group: int, leaf: Leaf) -> bool:
    """Whether the page index of a chunk can prove no more of the tests than the footer has."""
    if not run.file.has_one_page(row_group, leaf):
        return False
    return all(
        _is_evaluated(run, row_group, test) for test in tests if test.leaf.index == leaf.index
    )


# -- page headers -------------------------------------------------------------------------------


def walking_cost(
    run: MechanismRun, tested: Sequence[Leaf], accumulator: ProofAccumulator
) -> int | None:
    """About the bytes that finding the pages of tested leaves takes; None where no leaf is worth it."""
    file, group = run.file, accumulator.context.row_group
    total = None
    for leaf in tested:
        if file.column_indexes.get((group, leaf.index, run.options)) is not None:
            continue
        size: int | None = 0
        if file.header_index(group, leaf, run.options) is None:
            size = walking_bytes(file, group, leaf, accumulator.share)
        if size is not None:
            total = size if total is None else total + size
    return total


def page_headers_stage(
    run: MechanismRun, tests: Sequence[BoundLeaf], remaining: list[ProofAccumulator]
) -> Asking[None]:
    """Find pages that no index lists: those of the tested leaves, then those of the others that are read."""
    flat = [test for test in tests if not test.leaf.group]
    behind = len(remaining)
    for some in probed(remaining):
        behind -= len(some)
        walks = []
        for accumulator in some:
            leaves = {test.leaf.index: test.leaf for test in accumulator.open(flat)}
            walks += _walks(accumulator, list(leaves.values()), accumulator.share, tested=True)
        yield from together(walks)
        if not _add_proofs(run, some, tests, headers=True):
            run.report.left_out(PAGE_HEADERS, behind)
            break
    walks = []
    for accumulator in remaining:
        share = accumulator.share
        if 0 < share < 1:  # where no row was ruled out, all pages are wanted anyway
            leaves_read = run.required_leaves(accumulator.context.row_group)
            walks += _walks(accumulator, leaves_read, 1 - share, tested=False)
    yield from together(walks)


def _walks(
    accumulator: ProofAccumulator, leaves: Sequence[Leaf], share: float, tested: bool
) -> list[Asking[None]]:
    file, group = accumulator.context.file, accumulator.context.row_group
    return [
        walk(file, group, leaf, tested)
        for leaf in leaves
        if walking_bytes(file, group, leaf, share) is not None
    ]


# -- bounds of pages ----------------------------------------------------------------------------


def _is_evaluated(run: MechanismRun, group: int, test: BoundLeaf) -> bool:
    """Whether the statistics of the footer have proved what the bounds of the only page of a chunk can prove."""
    if STATISTICS not in run.use or test.leaf.group:
        return False
    if test.op == rows.OP_IS_NULL:
        return run.file.null_count(group, test.leaf) is not None
    zones = run.file.group_zones(test.leaf, run.options)
    return zones is not None and bool(zones.known[group])


def _add_proofs(
    run: MechanismRun,
    some: Sequence[ProofAccumulator],
    tests: Sequence[BoundLeaf],
    headers: bool = False,
) -> bool:
    """Add what the bounds of pages prove; whether that is anything."""
    gained = False
    for accumulator in some:
        group, proofs = accumulator.context.row_group, []
        for test in tests:
            proofs.append(_proof(run, group, test, headers))  # noqa: PERF401 (as a rule there is one)
        gained |= accumulator.add(tests, proofs)
    return gained


def _proof(run: MechanismRun, group: int, test: BoundLeaf, headers: bool) -> Proof | None:
    """What a column index in memory proves of a test, or in its place the statistics in the `headers` of pages."""
    file, leaf = run.file, test.leaf
    offsets = file.offset_indexes.get((group, leaf.index))
    if offsets is None or leaf.group:
        return None
    if offsets.num_pages <= 1 and test.op != rows.OP_IS_NULL and _is_evaluated(run, group, test):
        return None  # the bounds of the only page are those of the chunk
    if headers:
        index = file.header_index(group, leaf, run.options)
    else:
        index = file.column_indexes.get((group, leaf.index, run.options))
    if index is None:
        return None
    verdict, passes = index.zones.probe(test.op, test.against(0), test.nan), PASSES[test.negate]
    must = rows.RowRanges.empty()
    if run.wants_matches:
        file.chunk(group, leaf)  # raises where it cannot be read, whatever its index says
        must = offsets.rows_of(verdict.translate(ALL[passes]), 1)
    return Proof(offsets.rows_of(verdict, passes), must)
