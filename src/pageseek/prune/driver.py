"""All mechanisms on one file: the cheapest first, each on the rows that those before it left.

The statistics of the footer evaluate all row groups at once. The remaining ones are then put to the mechanisms that may
have to read something, in the order of the bytes they ask for; each is a generator, so that what it wants for all row
groups is fetched in one wave. A column index that is at hand costs nothing and comes before any price is asked: the
others are priced for the rows that it leaves.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from operator import itemgetter

from pageseek._core import rows
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf, tests_of
from pageseek.prune.accumulator import ProofAccumulator
from pageseek.prune.column_index import missing_bytes
from pageseek.prune.page_stages import (
    column_index_stage,
    page_headers_stage,
    pages_may_prove,
    walking_cost,
)
from pageseek.prune.protocol import PruneContext, Pruner
from pageseek.prune.pruner_stage import PrunerStage
from pageseek.prune.registry import COLUMN_INDEX, PAGE_HEADERS, pruners
from pageseek.prune.run import MechanismRun, RemainingRows
from pageseek.prune.sampling import priced

Stage = Generator[Wanted, list[memoryview], None]
# the order of mechanisms that cost the same: first those that evaluate the whole file at once, last those that decode
WHOLE, CHEAP, DECODED, WALKED = range(4)


def run_mechanisms(
    run: MechanismRun, row_groups: Mapping[int, rows.RowRanges]
) -> Generator[Wanted, list[memoryview], dict[int, RemainingRows]]:
    """Put row groups, and the rows of each that are wanted, to all mechanisms."""
    found = [
        ProofAccumulator(
            PruneContext(
                run.file, group, ranges, run.options, run.report, run.kept, run.distinct_index
            ),
            run.bound,
            run.footer,
        )
        for group, ranges in row_groups.items()
    ]
    tests = tests_of(run.bound)
    by = dict.fromkeys(row_groups, "")
    stages: list[tuple[float, int, str, Stage]] = []
    has_pages = pages_may_prove(run, found, tests)
    if COLUMN_INDEX in run.use and has_pages:
        leaves = list({t.leaf.index: t.leaf for t in tests if not t.leaf.group}.values())
        stage = column_index_stage(run, found, tests, leaves)
        cost = 0.0
        if len(run.use) > 2:  # there are others beside this one and the statistics
            missing = partial(missing_bytes, run.file, leaves, run.options)
            cost = priced(list(row_groups), missing) or 0.0
        if cost:
            stages.append((cost, WHOLE, COLUMN_INDEX, stage))
        else:
            yield from _counted(run, COLUMN_INDEX, stage, found, by)
    stages += _others(run, found, tests, has_pages, alone=not stages)
    for _, _, name, stage in sorted(stages, key=itemgetter(0, 1)):
        yield from _counted(run, name, stage, found, by)
    return {
        one.context.row_group: RemainingRows(
            one.context.ranges, one.fully_matched, by[one.context.row_group]
        )
        for one in found
    }


def _counted(
    run: MechanismRun,
    name: str,
    stage: Stage,
    found: Sequence[ProofAccumulator],
    by: dict[int, str],
) -> Stage:
    """A stage, and the report of the rows that it ruled out. `by`: the mechanism that last did so in a row group."""
    before = [accumulator.context.ranges.num_rows for accumulator in found]
    yield from stage
    for rows_in, accumulator in zip(before, found, strict=True):
        remaining = accumulator.context.ranges.num_rows
        if remaining < rows_in:
            run.report.rows.prune(name, rows_in - remaining)
            by[accumulator.context.row_group] = name
            if not remaining:
                run.report.row_groups.prune(name, 1)


def _others(
    run: MechanismRun,
    found: Sequence[ProofAccumulator],
    tests: Sequence[BoundLeaf],
    has_pages: bool,
    alone: bool,
) -> list[tuple[float, int, str, Stage]]:
    """The mechanisms beside the column index that can prove something, with their prices. `alone`: it is no stage that they
    come before or behind.
    """
    remaining = [accumulator for accumulator in found if accumulator.context.ranges]
    if not remaining:
        return []
    stages: list[tuple[float, int, str, Stage]] = []
    if PAGE_HEADERS in run.use and has_pages:
        leaves = list({test.leaf.index: test.leaf for test in tests}.values())
        cost = priced(remaining, partial(walking_cost, run, leaves))
        if cost is not None:
            stages.append((cost, WALKED, PAGE_HEADERS, page_headers_stage(run, found, tests)))
    applicable = _applicable(run, tests)
    alone = alone and not stages and len(applicable) == 1  # so that its place needs no price
    for pruner in applicable:
        one = PrunerStage(run, pruner, tests)
        some = remaining[:1] if pruner.whole else remaining
        cost = 0.0 if alone else priced(some, one.cost)
        if cost is not None:
            rank = WHOLE if pruner.whole else CHEAP if pruner.cheap else DECODED
            stages.append((cost, rank, pruner.name, one.prune(found)))
    return stages


def _applicable(run: MechanismRun, tests: Sequence[BoundLeaf]) -> list[Pruner]:
    """The pruners that find something of a tested column in the footer, looked for once for a file and its tested leaves."""
    every, known = pruners(), run.file.indexes
    leaves = {test.leaf.key: test.leaf for test in tests}
    key = "applicable", run.use, *leaves
    cached: tuple[tuple[Pruner, ...], list[Pruner]] | None = known.get(key)
    if cached is None or cached[0] is not every:  # since then some were registered
        found = []
        for pruner in every:
            if pruner.name in run.use:
                for leaf in leaves.values():
                    if pruner.applies(run.file, leaf):
                        found.append(pruner)
                        break
        known[key] = cached = every, found
    return cached[1]
