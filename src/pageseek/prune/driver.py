"""All mechanisms on one file: the cheapest first, each on the rows that those before it left.

The statistics of the footer evaluate all row groups at once. The other mechanisms may have to read something. Each is a
generator, so that what it wants for all row groups is fetched in one wave. They run in the order of the bytes that they
read. A column index in memory costs nothing and runs first; the others are priced for the rows that it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter

from pageseek._core import rows
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf, conjuncts, patterns_of, tests_of
from pageseek.prune.accumulator import MechanismRun, ProofAccumulator
from pageseek.prune.column_index import missing_bytes
from pageseek.prune.page_stages import (
    column_index_stage,
    page_headers_stage,
    pages_may_prove,
    walking_cost,
)
from pageseek.prune.protocol import PruneContext
from pageseek.prune.pruner_stage import PrunerStage
from pageseek.prune.registry import COLUMN_INDEX, LOG, PAGE_HEADERS, applicable
from pageseek.prune.sampling import priced

# what it costs, its place among stages that cost the same, the name of the mechanism, and what runs it on row groups
Stage = tuple[float, int, str, Callable[[list[ProofAccumulator]], Asking[None]]]
# mechanisms that evaluate the whole file at once come first, those that decode last
WHOLE, CHEAP, DECODED, WALKED = range(4)


def run_mechanisms(
    run: MechanismRun, row_groups: Mapping[int, rows.RowRanges]
) -> Asking[dict[int, ProofAccumulator]]:
    """Put row groups, and the rows of each that are wanted, to all mechanisms. Returns what they proved, by row group."""
    proved = {}
    required = [part for part in conjuncts(run.bound) if isinstance(part, BoundLeaf)]
    for group, ranges in row_groups.items():
        context = PruneContext(
            run.file, group, ranges, run.options, run.report, run.kept, run.distinct_index, required,
            counts_only=run.counts_only,
        )  # fmt: skip
        proved[group] = ProofAccumulator(context, run.bound, run.footer)
    found = list(proved.values())
    tests = tests_of(run.bound)
    leaves = {}
    for test in tests:
        if not test.leaf.group:
            leaves[test.leaf.index] = test.leaf
    tested = list(leaves.values())
    stages: list[Stage] = []
    has_pages = pages_may_prove(run, list(row_groups), tests)
    if COLUMN_INDEX in run.use and has_pages:
        column_index = partial(column_index_stage, run, tests, tested)
        cost = 0.0
        if len(run.use - {LOG}) > 2:  # there are others beside this one and the statistics
            cost = missing_bytes(run.file, list(row_groups), tested, run.options)
        if cost:
            stages.append((cost, WHOLE, COLUMN_INDEX, column_index))
        else:
            yield from _put(run, COLUMN_INDEX, column_index, found)
    remaining = []
    for accumulator in found:
        if accumulator.context.ranges:
            remaining.append(accumulator)  # noqa: PERF401 (of few, a comprehension would cost more)
    if remaining:
        if PAGE_HEADERS in run.use and has_pages:
            walking = priced(remaining, partial(walking_cost, run, tested))
            if walking is not None:
                headers = partial(page_headers_stage, run, tests)
                stages.append((walking, WALKED, PAGE_HEADERS, headers))
        stages += _pruner_stages(run, remaining, tests, alone=not stages)
    for _, _, name, stage in sorted(stages, key=itemgetter(0, 1)):
        yield from _put(run, name, stage, found)
    return proved


def _put(
    run: MechanismRun,
    name: str,
    stage: Callable[[list[ProofAccumulator]], Asking[None]],
    found: Sequence[ProofAccumulator],
) -> Asking[None]:
    """Put the row groups that have rows left to a stage, and report the rows that it ruled out. Those that are counted are done."""
    remaining, before = [], []
    for accumulator in found:
        if accumulator.context.ranges and not accumulator.counted:
            remaining.append(accumulator)
            before.append(accumulator.context.ranges.num_rows)
    yield from stage(remaining)
    for accumulator, rows_in in zip(remaining, before, strict=True):
        rows_left = accumulator.context.ranges.num_rows
        if rows_left < rows_in:
            run.report.rows.prune(name, rows_in - rows_left)
            accumulator.pruned_by = name
            if not rows_left:
                run.report.row_groups.prune(name, 1)


def _pruner_stages(
    run: MechanismRun,
    remaining: Sequence[ProofAccumulator],
    tests: Sequence[BoundLeaf],
    alone: bool,
) -> list[Stage]:
    """The pruners that may prove something, with their prices. `alone`: no other stage is left to run."""
    stages: list[Stage] = []
    patterns = patterns_of(run.bound)
    with_patterns = [*tests, *patterns] if patterns else tests
    pruners = applicable(run.file, run.use, [test.leaf for test in with_patterns])
    alone = alone and len(pruners) == 1  # its place needs no price
    for pruner in pruners:
        mine = with_patterns if pruner.patterns else tests
        if not mine:
            continue
        one = PrunerStage(run, pruner, mine)
        some = remaining[:1] if pruner.whole else remaining
        cost = 0.0 if alone else priced(some, one.cost)
        if cost is not None:
            rank = WHOLE if pruner.whole else CHEAP if pruner.cheap else DECODED
            stages.append((cost, rank, pruner.name, one.prune))
    return stages
