"""All mechanisms on one file: the cheapest first, each on what those before it left.

The statistics of the footer evaluate all row groups at once. What is left is then put to the mechanisms that may have
to read something, in the order of the bytes they ask for; each is a generator, so that what it wants for all row
groups is fetched in one wave.

A pruner evaluates one row group and knows of no other. The column index and the page headers are stages of the driver
instead: what they read beside the bounds, the pages of columns that are not tested, is worth reading only for rows
that the whole filter left, of which a pruner with its proofs of single tests knows nothing; and the indexes of all
row groups are parsed leaf by leaf in one go, where a generator for each row group would cost more than the parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_headers import walk, walking_bytes
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.fetch import Kept
from pageseek.io.range_requests import Wanted, together
from pageseek.predicate.bound import Bound, BoundLeaf, tests_of
from pageseek.prune.accumulator import ProofAccumulator
from pageseek.prune.column_index import RequiredLeaves, load_indexes, missing_bytes, page_proof
from pageseek.prune.protocol import Price, Proof, PruneContext, Pruner
from pageseek.prune.registry import COLUMN_INDEX, PAGE_HEADERS, STATISTICS, pruners
from pageseek.prune.row_groups import GroupProof
from pageseek.storage.store import SLOW_STORE

T = TypeVar("T")
MANY = 16  # tests from which the bounds of pages are asked for a few row groups first
PRICED = 8  # row groups by which a mechanism is priced
PROBE = 8  # row groups that show whether a mechanism is of any use
DOUBT = 8  # times what a pruner reads, what it may spare has to be worth: it may prove nothing
FILE_SECONDS = 20e-6  # at least, that a file takes which is read, beside its bytes


@dataclass(frozen=True, slots=True)
class Left:
    """The rows of one row group that may pass the filter, and those of them that surely do. `by`: the mechanism that
    last ruled out some, "" if none did.
    """

    ranges: rows.RowRanges
    sure: rows.RowRanges
    by: str


@dataclass(frozen=True, slots=True)
class MechanismRun:
    """One file to prune: what the footer said already, and which leaves will be read of a row group.

    `surely`: whether it is of use to know which rows pass without being looked at.
    """

    file: FileMetadata
    bound: Bound
    footer: GroupProof
    required_leaves: RequiredLeaves
    use: frozenset[str]
    options: Options
    report: Report
    surely: bool
    kept: Kept | None = None
    distinct_index: str | None = None  # as of PruneContext

    def prune(
        self, row_groups: Mapping[int, rows.RowRanges]
    ) -> Generator[Wanted, list[memoryview], dict[int, Left]]:
        """Put the row groups, and the rows of each that are wanted, to all mechanisms."""
        report = self.report
        found = [
            ProofAccumulator(
                PruneContext(
                    self.file, group, asked, self.options, report, self.kept, self.distinct_index
                ),
                self.bound,
                self.footer,
            )
            for group, asked in row_groups.items()
        ]
        tests = tests_of(self.bound)
        by = dict.fromkeys(row_groups, "")
        for name, stage in self._stages(found, tests):
            before = [accumulator.context.ranges.num_rows for accumulator in found]
            yield from stage
            for rows_in, accumulator in zip(before, found, strict=True):
                left = accumulator.context.ranges.num_rows
                if left < rows_in:
                    report.rows.prune(name, rows_in - left)
                    by[accumulator.context.row_group] = name
                if rows_in and not left:
                    report.row_groups.prune(name, 1)
        return {
            group: Left(e.context.ranges, e.fully_matched, by[group])
            for group, e in zip(row_groups, found, strict=True)
        }

    def _stages(
        self, found: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf]
    ) -> list[tuple[str, Generator[Wanted, list[memoryview], None]]]:
        """The mechanisms that can prove something, those that read least first."""
        # of those that cost the same, first what is evaluated once for the whole file, last what has to be decoded
        stages: list[tuple[float, int, str, Generator[Wanted, list[memoryview], None]]] = []
        paged = not self._is_said(found, tests)
        if COLUMN_INDEX in self.use and paged:
            leaves = list({t.leaf.index: t.leaf for t in tests if not t.leaf.group}.values())
            cost: float | None = 0
            if len(self.use) > 2:  # only then there is an order
                cost = _priced(
                    found,
                    lambda e: missing_bytes(self.file, e.context.row_group, leaves, self.options),
                )
            stages.append((cost or 0, 0, COLUMN_INDEX, self._pages(found, tests, leaves)))
        kinds = list({(test.leaf.key, test.op, test.negate): test for test in tests}.values())
        for pruner in self._applicable(tests):
            cost = _priced(found[:1] if pruner.whole else found, partial(_cost, pruner, kinds))
            if cost is not None:
                rank = 0 if pruner.whole else 1 if pruner.cheap else 2
                stages.append((cost, rank, pruner.name, self._asked_of(pruner, found, tests)))
        if PAGE_HEADERS in self.use and paged:
            leaves = list({t.leaf.index: t.leaf for t in tests}.values())
            cost = _priced(found, partial(self._walking, leaves))
            if cost is not None:
                stages.append((cost, 3, PAGE_HEADERS, self._walked(found, tests)))
        return [(name, stage) for *_, name, stage in sorted(stages, key=lambda one: one[:2])]

    def _applicable(self, tests: Sequence[BoundLeaf]) -> list[Pruner]:
        """The pruners that find something of a tested column in the footer. They are looked for once for a file and leaf."""
        every, known = pruners(), self.file.indexes
        found: set[Pruner] = set()
        cached: tuple[tuple[Pruner, ...], dict[str, bool]] | None
        for key, leaf in {test.leaf.key: test.leaf for test in tests}.items():
            cached = known.get(("applies", key))
            if cached is None or cached[0] is not every:  # since then some were registered
                cached = every, {}
                known["applies", key] = cached
            for pruner in every:
                if pruner.name in self.use:
                    having = cached[1].get(pruner.name)
                    if having is None:
                        having = cached[1][pruner.name] = pruner.applies(self.file, leaf)
                    if having:
                        found.add(pruner)
        return [pruner for pruner in every if pruner in found]

    def _walking(self, leaves: Sequence[Leaf], accumulator: ProofAccumulator) -> int | None:
        context = accumulator.context
        group, part = context.row_group, self._part(context)
        sizes = [
            walking_bytes(self.file, group, leaf, part)
            if self.file.header_index(group, leaf, self.options) is None
            else 0
            for leaf in leaves
        ]
        return _sum(sizes)

    def _asked_of(
        self, pruner: Pruner, found: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], None]:
        found = [accumulator for accumulator in found if accumulator.context.ranges]
        behind = len(found)
        for some in [found] if pruner.cheap else _probed(found):
            behind -= len(some)
            asked = self._paying(pruner, some, tests)
            proofs = yield from together([pruner.prune(e.context, wanted) for e, wanted in asked])
            gained = not asked
            for (accumulator, wanted), proof in zip(asked, proofs, strict=True):
                gained |= accumulator.add(wanted, proof)
            if not gained:
                self.report.left_out(pruner.name, behind)
                break  # nor will it rule out much of the rest

    def _paying(
        self, pruner: Pruner, some: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf]
    ) -> list[tuple[ProofAccumulator, list[BoundLeaf]]]:
        """The row groups that are worth being put to a mechanism, and the tests of each that it may say something of."""
        asked: list[tuple[ProofAccumulator, list[BoundLeaf]]] = []
        costs: list[tuple[int, bool]] = []  # bytes, and whether some have to be waited for
        for accumulator in some:
            prices = [(test, _price(pruner, accumulator.context, test)) for test in tests]
            known = {id(test): price for test, price in prices if price is not None}
            able = [test for test, price in prices if price is not None and price.pays]
            wanted = accumulator.open(able, pruner.coarse)
            if wanted:
                asked.append((accumulator, wanted))
                of_each = [known[id(test)] for test in wanted]
                fetched = any(price.fetched for price in of_each)
                costs.append((sum([price.size for price in of_each]), fetched))
                continue
            dear = [test for test, price in prices if price is not None and not price.pays]
            for test in accumulator.open(dear, pruner.coarse)[:1]:
                price = known[id(test)]
                self.report.too_dear(pruner.name, price.size, price.at_stake)
        worth = self._worth(pruner, [accumulator.context for accumulator, _ in asked], costs)
        return [one for one, pays in zip(asked, worth, strict=True) if pays]

    def _worth(
        self, pruner: Pruner, sites: Sequence[PruneContext], costs: Sequence[tuple[int, bool]]
    ) -> list[bool]:
        """Of each row group whether what may be spared is worth what it costs. What is read once for the whole file is
        weighed against all of them.
        """
        if not any(size for size, _ in costs):  # all is in memory
            return [True] * len(sites)
        store = self.file.store
        wait = store.latency * store.bandwidth
        spared = [self._spared(context) for context in sites]
        if pruner.whole:
            cost, fetched = max(costs)
            whole = sum(spared) + FILE_SECONDS * store.bandwidth
            pays = DOUBT * (cost + wait * fetched) < whole
            if not pays:
                seconds = store.latency * fetched
                self.report.too_dear(pruner.name, cost, int(whole), seconds, len(sites))
            return [pays] * len(sites)
        made = []
        for (cost, fetched), stake in zip(costs, spared, strict=True):
            made.append(not cost or DOUBT * (cost + wait * fetched) < stake)
            if not made[-1]:
                self.report.too_dear(pruner.name, cost, int(stake), store.latency * fetched)
        return made

    def _spared(self, context: PruneContext) -> float:
        """The bytes of a row group that need not be read where none of its rows is left."""
        size: int = sum(
            self.file.chunk(context.row_group, leaf).total_compressed_size
            for leaf in self.required_leaves(context.row_group)
        )
        return size * self._part(context)

    def _pages(
        self, found: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf], leaves: Sequence[Leaf]
    ) -> Generator[Wanted, list[memoryview], None]:
        found = [accumulator for accumulator in found if accumulator.context.ranges]
        near = self.file.store.latency < SLOW_STORE
        # a payload's offset index is of no use where no row is left: worth another wave, if that is cheap
        later = len(found) > 1 and near
        if not near:
            yield from self._load(found, self.required_leaves, leaves, tests)
        asked: list[ProofAccumulator] = []
        for some in _probed(found) if near or len(tests) > MANY else [found]:
            asked += some
            if near:
                required_leaves: RequiredLeaves = (
                    (lambda _: leaves) if later else self.required_leaves
                )
                yield from self._load(some, required_leaves, leaves, tests)
            gained = False
            for accumulator in some:
                group = accumulator.context.row_group
                gained |= accumulator.add(tests, [self._page_proof(group, test) for test in tests])
            if not gained:
                self.report.left_out(COLUMN_INDEX, len(found) - len(asked))
                break  # the offset indexes of the rest are read where few rows are found to pass
        if later:
            yield from self._load(
                [e for e in asked if e.context.ranges], self.required_leaves, (), tests
            )

    def _walked(
        self, found: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], None]:
        """Find the pages where no index tells of them: those of the tested leaves, then of what is read of the rest."""
        tested = [test for test in tests if not test.leaf.group]
        open_ones = [accumulator for accumulator in found if accumulator.context.ranges]
        behind = len(open_ones)
        for some in _probed(open_ones):
            behind -= len(some)
            walks = []
            for accumulator in some:
                leaves = {test.leaf.index: test.leaf for test in accumulator.open(tested)}.values()
                part = self._part(accumulator.context)
                walks += self._walks(accumulator.context, [*leaves], part, tested=True)
            yield from together(walks)
            gained = False
            for accumulator in some:
                group = accumulator.context.row_group
                proofs = [self._page_proof(group, test, headers=True) for test in tests]
                gained |= accumulator.add(tests, proofs)
            if not gained:
                self.report.left_out(PAGE_HEADERS, behind)
                break
        walks = []
        for accumulator in found:
            context = accumulator.context
            part = self._part(context)
            if context.ranges and part < 1:  # else all pages are wanted anyway
                walks += self._walks(
                    context, self.required_leaves(context.row_group), 1 - part, tested=False
                )
        yield from together(walks)

    def _walks(
        self, context: PruneContext, leaves: Sequence[Leaf], part: float, tested: bool
    ) -> list[Generator[Wanted, list[memoryview], None]]:
        file, group = context.file, context.row_group
        return [
            walk(file, group, leaf, tested)
            for leaf in leaves
            if walking_bytes(file, group, leaf, part) is not None
        ]

    def _part(self, context: PruneContext) -> float:
        """The share of the rows of a row group that is left."""
        return float(context.ranges.num_rows / max(self.file.group_rows[context.row_group], 1))

    def _load(
        self,
        found: Sequence[ProofAccumulator],
        required_leaves: RequiredLeaves,
        leaves: Sequence[Leaf],
        tests: Sequence[BoundLeaf],
    ) -> Generator[Wanted, list[memoryview], None]:
        groups = [accumulator.context.row_group for accumulator in found]
        needless = self._needless(tests)
        return load_indexes(
            self.file, groups, required_leaves, leaves, self.options, self.report, needless
        )

    def _needless(self, tests: Sequence[BoundLeaf]) -> Callable[[int, Leaf], bool]:
        """Of a chunk: whether its page index can say no more of the tests than the footer has."""
        asked: dict[int, list[BoundLeaf]] = {}
        for test in tests:
            asked.setdefault(test.leaf.index, []).append(test)

        def needless(group: int, leaf: Leaf) -> bool:
            return self.file.has_one_page(group, leaf) and all(
                self._is_evaluated(group, test) for test in asked.get(leaf.index, ())
            )

        return needless

    def _is_said(self, found: Sequence[ProofAccumulator], tests: Sequence[BoundLeaf]) -> bool:
        """Whether that holds of all chunks that are read: pages have nothing to add."""
        if not found or any(test.leaf.group for test in tests):
            return not found
        groups = [accumulator.context.row_group for accumulator in found]
        if not all(self._is_evaluated(group, test) for test in tests for group in groups):
            return False
        leaves = {test.leaf.index: test.leaf for test in tests}
        leaves |= {
            leaf.index: leaf for leaf in self.required_leaves(groups[0])
        }  # as of any of them
        return all(self.file.have_one_page(groups, leaf) for leaf in leaves.values())

    def _is_evaluated(self, group: int, test: BoundLeaf) -> bool:
        """Whether the statistics of the footer have said what the bounds of the only page of a chunk can say."""
        if STATISTICS not in self.use or test.leaf.group:
            return False
        if test.op == rows.OP_IS_NULL:
            return self.file.null_count(group, test.leaf) is not None
        zones = self.file.group_zones(test.leaf, self.options)
        return zones is not None and bool(zones.known[group])

    def _is_one_page(self, group: int, test: BoundLeaf) -> bool:
        """Whether a chunk has one page, and the statistics of the footer have evaluated it."""
        offsets = self.file.cached_offset_index(group, test.leaf)[1]
        if offsets is None or offsets.num_pages > 1 or test.op == rows.OP_IS_NULL:
            return False
        return self._is_evaluated(group, test)

    def _page_proof(self, group: int, test: BoundLeaf, headers: bool = False) -> Proof | None:
        if self._is_one_page(group, test):
            return None  # its bounds are those of the chunk
        return page_proof(self.file, group, test, self.options, self.surely, headers)


def _sum(costs: Sequence[int | None]) -> int | None:
    """Of the costs that are known; None if none is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _price(pruner: Pruner, context: PruneContext, test: BoundLeaf) -> Price | None:
    found = pruner.price(context, test)
    return Price(found) if isinstance(found, int) else found


def _cost(pruner: Pruner, tests: Sequence[BoundLeaf], accumulator: ProofAccumulator) -> int | None:
    prices = [_price(pruner, accumulator.context, test) for test in tests]
    return _sum([price.size * price.pays for price in prices if price is not None])


def _priced(items: Sequence[T], price: Callable[[T], int | None]) -> float | None:
    """About what many items cost together, by a few of them that lie far apart; None where not one has a price."""
    step = max(len(items) // PRICED, 1)
    total = _sum([price(item) for item in items[::step]])
    if total is not None:
        return float(total * step)
    return 0.0 if any(price(item) is not None for item in items) else None


def _probed(items: Sequence[T]) -> Iterator[list[T]]:
    """Many items in batches, drawn from all over the file, each twice the one before: who finds that a batch was in
    vain need not go on. Few of them are one batch.
    """
    if len(items) < 2 * PROBE:
        yield list(items)
        return
    import random  # which few scans need, and which takes a while

    drawn = random.Random(len(items)).sample(items, len(items))
    at, size = 0, PROBE
    while at < len(drawn):
        yield drawn[at : at + size]
        at, size = at + size, size * 2
