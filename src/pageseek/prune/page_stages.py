"""The column index and the page headers: what the bounds of pages prove of the row groups of a file.

These are stages of the driver and no pruners, for two reasons. Beside the bounds they read the pages of columns that
are not tested, which is worth it only for rows that the whole filter leaves; a pruner, with its proofs of single tests,
knows nothing of these. And the indexes of all row groups are parsed leaf by leaf at once, where a generator for each
row group would cost more than the parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from pageseek._core import rows
from pageseek.format.page_headers import walk, walking_bytes
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import Wanted, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.accumulator import ProofAccumulator
from pageseek.prune.column_index import RequiredLeaves, load_indexes, page_proof
from pageseek.prune.protocol import Proof, PruneContext
from pageseek.prune.registry import COLUMN_INDEX, PAGE_HEADERS, STATISTICS
from pageseek.prune.run import MechanismRun, share_of_rows
from pageseek.prune.sampling import probed, summed
from pageseek.storage.store import wait_bytes

MANY = 16  # tests from which the bounds of pages are asked for a few row groups first


def pages_may_prove(
    run: MechanismRun, found: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf]
) -> bool:
    """Whether pages may prove more than the footer: not where every chunk has one page, whose bounds it has evaluated."""
    groups = [accumulator.context.row_group for accumulator in found]
    if not groups:
        return False
    for test in tests:
        if test.leaf.group or not run.file.have_one_page(groups, test.leaf):
            return True
    for leaf in run.required_leaves(groups[0]):  # as of any row group
        if not run.file.have_one_page(groups, leaf):
            return True
    return not all(_is_evaluated(run, group, test) for test in tests for group in groups)


def column_index_stage(
    run: MechanismRun,
    found: Sequence[ProofAccumulator],
    tests: Sequence[BoundLeaf],
    leaves: Sequence[Leaf],
) -> Generator[Wanted, list[memoryview], None]:
    """Put the row groups to their column indexes. `leaves`: those that are tested."""
    remaining = [accumulator for accumulator in found if accumulator.context.ranges]
    # offset indexes of leaves that are not tested are of no use where no row remains: where a read does not wait, they
    # are read in a wave of their own
    waits = wait_bytes(run.file.store) > 0
    later = len(remaining) > 1 and not waits
    required_leaves: RequiredLeaves = (lambda _: leaves) if later else run.required_leaves
    if waits:
        yield from _load(run, remaining, required_leaves, leaves, tests)
    done: list[ProofAccumulator] = []
    for some in [remaining] if waits and len(tests) <= MANY else probed(remaining):
        done += some
        if not waits:
            yield from _load(run, some, required_leaves, leaves, tests)
        if not _add_proofs(run, some, tests):
            run.report.left_out(COLUMN_INDEX, len(remaining) - len(done))
            break  # the offset indexes of the rest are read where few rows are found to pass
    if later:
        done = [accumulator for accumulator in done if accumulator.context.ranges]
        yield from _load(run, done, run.required_leaves, (), tests)


def page_headers_stage(
    run: MechanismRun, found: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf]
) -> Generator[Wanted, list[memoryview], None]:
    """Find pages where no index tells of them: those of the tested leaves, then those of the rest that is read."""
    tested = [test for test in tests if not test.leaf.group]
    remaining = [accumulator for accumulator in found if accumulator.context.ranges]
    behind = len(remaining)
    for some in probed(remaining):
        behind -= len(some)
        walks = []
        for accumulator in some:
            leaves = {test.leaf.index: test.leaf for test in accumulator.open(tested)}.values()
            share = share_of_rows(accumulator.context)
            walks += _walks(accumulator.context, [*leaves], share, tested=True)
        yield from together(walks)
        if not _add_proofs(run, some, tests, headers=True):
            run.report.left_out(PAGE_HEADERS, behind)
            break
    walks = []
    for accumulator in found:
        context = accumulator.context
        share = share_of_rows(context)
        if context.ranges and share < 1:  # else all pages are wanted anyway
            leaves_read = run.required_leaves(context.row_group)
            walks += _walks(context, leaves_read, 1 - share, tested=False)
    yield from together(walks)


def walking_cost(
    run: MechanismRun, leaves: Sequence[Leaf], accumulator: ProofAccumulator
) -> int | None:
    """About the bytes that finding the pages of tested leaves takes; None where that is not worth it."""
    context, file = accumulator.context, run.file
    group, share = context.row_group, share_of_rows(context)
    return summed(
        [
            walking_bytes(file, group, leaf, share)
            if file.header_index(group, leaf, run.options) is None
            else 0
            for leaf in leaves
        ]
    )


def _walks(
    context: PruneContext, leaves: Sequence[Leaf], share: float, tested: bool
) -> list[Generator[Wanted, list[memoryview], None]]:
    file, group = context.file, context.row_group
    return [
        walk(file, group, leaf, tested)
        for leaf in leaves
        if walking_bytes(file, group, leaf, share) is not None
    ]


def _load(
    run: MechanismRun,
    found: Sequence[ProofAccumulator],
    required_leaves: RequiredLeaves,
    leaves: Sequence[Leaf],
    tests: Sequence[BoundLeaf],
) -> Generator[Wanted, list[memoryview], None]:
    groups = [accumulator.context.row_group for accumulator in found]
    needless = _needless(run, tests)
    return load_indexes(
        run.file, groups, required_leaves, leaves, run.options, run.report, needless
    )


def _needless(run: MechanismRun, tests: Sequence[BoundLeaf]) -> Callable[[int, Leaf], bool]:
    """For a chunk: whether its page index can prove no more of the tests than the footer has."""
    of_leaf: dict[int, list[BoundLeaf]] = {}
    for test in tests:
        of_leaf.setdefault(test.leaf.index, []).append(test)

    def needless(group: int, leaf: Leaf) -> bool:
        return run.file.has_one_page(group, leaf) and all(
            _is_evaluated(run, group, test) for test in of_leaf.get(leaf.index, ())
        )

    return needless


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
        group = accumulator.context.row_group
        gained |= accumulator.add(tests, [_proof(run, group, test, headers) for test in tests])
    return gained


def _proof(run: MechanismRun, group: int, test: BoundLeaf, headers: bool) -> Proof | None:
    offsets = run.file.offset_indexes.get((group, test.leaf.index))
    if offsets is None or (
        offsets.num_pages <= 1 and test.op != rows.OP_IS_NULL and _is_evaluated(run, group, test)
    ):
        return None  # the bounds of the only page are those of the chunk
    return page_proof(run.file, group, test, run.options, run.wants_matches, headers)
