"""One pruner put to the row groups of a file, if it reads much less than it may save."""

from __future__ import annotations

from collections.abc import Sequence

from pageseek._core import rows
from pageseek.io.coalesce import PARALLEL
from pageseek.io.range_requests import Asking, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.accumulator import MechanismRun, ProofAccumulator
from pageseek.prune.protocol import DOUBT, Price, PruneContext, Pruner
from pageseek.prune.sampling import probed, summed

DECODED = 500e6  # bytes of pages that a core decodes in a second, about
FILE_SECONDS = 20e-6  # the least time that reading a file takes beside its bytes


class PrunerStage:
    """A pruner and the tests that are put to it."""

    def __init__(self, run: MechanismRun, pruner: Pruner, tests: Sequence[BoundLeaf]) -> None:
        self._run, self.pruner, self._tests = run, pruner, tests
        # by row group, with the rows in question when the prices were asked
        self._prices: dict[int, tuple[rows.RowRanges, list[Price | None]]] = {}

    def cost(self, accumulator: ProofAccumulator) -> int | None:
        """The bytes that count for one row group; None where the pruner can prove nothing of it."""
        prices = self._prices_of(accumulator.context)
        if len(prices) > 1:  # tests that differ in their values read the same
            tests = zip(self._tests, prices, strict=True)
            prices = list({(t.leaf.key, t.op, t.negate): price for t, price in tests}.values())
        return summed([None if price is None else price.size * price.pays for price in prices])

    def prune(self, remaining: list[ProofAccumulator]) -> Asking[None]:
        """Put row groups to the pruner: a few first, unless it is cheap, and the rest if it proved something."""
        behind = len(remaining)
        for some in [remaining] if self.pruner.cheap else probed(remaining):
            behind -= len(some)
            paying = self._paying(some)
            gained = not paying
            if paying:
                prune = self.pruner.prune
                asking = [prune(one.context, wanted) for one, wanted in paying]
                proofs = yield from together(asking)
                for (accumulator, wanted), proof in zip(paying, proofs, strict=True):
                    gained |= accumulator.add(wanted, proof)
            if not gained:
                self._run.report.left_out(self.pruner.name, behind)
                break  # it will not rule out much of the rest either

    def _prices_of(self, context: PruneContext) -> list[Price | None]:
        """The price of each test, asked again only if other rows are in question."""
        known = self._prices.get(context.row_group)
        if known is not None and known[0] is context.ranges:
            return known[1]
        prices: list[Price | None] = []
        for test in self._tests:
            price = self.pruner.price(context, test)
            prices.append(Price(price) if isinstance(price, int) else price)
        self._prices[context.row_group] = context.ranges, prices
        return prices

    def _paying(
        self, some: Sequence[ProofAccumulator]
    ) -> list[tuple[ProofAccumulator, list[BoundLeaf]]]:
        """The row groups for which the pruner is worth its price, each with the tests that it may decide."""
        paying: list[tuple[ProofAccumulator, list[BoundLeaf]]] = []
        costs: list[tuple[int, bool]] = []  # bytes, and whether some are fetched
        total = 0
        for accumulator in some:
            prices = self._prices_of(accumulator.context)
            del self._prices[accumulator.context.row_group]
            known: dict[int, Price] = {}
            able: list[BoundLeaf] = []
            dear: list[BoundLeaf] = []
            for test, price in zip(self._tests, prices, strict=True):
                if price is not None:
                    known[id(test)] = price
                    (able if price.pays else dear).append(test)
            wanted = accumulator.open(able, self.pruner.coarse) if able else []
            if wanted:
                paying.append((accumulator, wanted))
                of_each = [known[id(test)] for test in wanted]
                fetched = any(price.fetched for price in of_each)
                size = sum(price.size for price in of_each)
                costs.append((size, fetched))
                total += size
            elif dear:
                for test in accumulator.open(dear, self.pruner.coarse)[:1]:
                    price = known[id(test)]
                    self._run.report.too_dear(self.pruner.name, price.size, price.at_stake)
        if not total:  # all is in memory
            return paying
        worth = self._worth([accumulator for accumulator, _ in paying], costs)
        return [one for one, pays in zip(paying, worth, strict=True) if pays]

    def _worth(
        self, accumulators: Sequence[ProofAccumulator], costs: Sequence[tuple[int, bool]]
    ) -> list[bool]:
        """For each row group whether the bytes that may be saved are worth the cost. What is read once for the whole file is
        weighed against all row groups together. So is a wait, in which the store answers the requests of many.
        """
        store, report, name = self._run.file.store, self._run.report, self.pruner.name
        # the bytes that are fetched, and decoded, in the time of one wait
        wait = store.latency / (1 / store.bandwidth + 1 / DECODED)
        saved = [self._bytes_saved(accumulator) for accumulator in accumulators]
        if self.pruner.whole:
            cost, fetched = max(costs)
            whole = sum(saved) + FILE_SECONDS * store.bandwidth
            pays = DOUBT * (cost + wait * fetched) < whole
            if not pays:
                report.too_dear(name, cost, int(whole), store.latency * fetched, len(saved))
            return [pays] * len(saved)
        asked = [
            fetched and DOUBT * cost < at_stake
            for (cost, fetched), at_stake in zip(costs, saved, strict=True)
        ]
        n = max(sum(asked), 1)
        share = wait * -(-n // PARALLEL) / n
        worth = []
        for (cost, fetched), at_stake in zip(costs, saved, strict=True):
            pays = not cost or DOUBT * (cost + share * fetched) < at_stake
            if not pays:
                report.too_dear(name, cost, int(at_stake), store.latency * fetched)
            worth.append(pays)
        return worth

    def _bytes_saved(self, accumulator: ProofAccumulator) -> float:
        """The bytes of a row group that need not be read if none of its rows remains."""
        chunk, group = self._run.file.chunk, accumulator.context.row_group
        leaves = self._run.required_leaves(group)
        size = sum([chunk(group, leaf).total_compressed_size for leaf in leaves])
        return float(size * accumulator.share)
