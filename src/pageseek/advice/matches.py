"""Which rows are likely to pass, and where they lie, by a sample.

Rows that were not sampled pass as those of the sampled blocks nearest to them do. Where too few rows of the sample pass to tell,
the number of rows comes from the different values of the column, and their places from the order of its values.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import rows
from pageseek.advice.column_facts import ColumnFacts, column_at
from pageseek.advice.layout import Layout
from pageseek.advice.questions import EQUAL, OTHER, RANGE, Condition
from pageseek.advice.sampling import Block, Sample

Mask = npt.NDArray[np.bool_]
Places = list[rows.RowRanges]  # the rows of each group
ENOUGH = 8  # rows of a sample that tell where others lie
VALUE_BYTES = 8  # of an entry of a dictionary, about
PIECE = 20_000  # rows in which the order of a column is measured


class Matches:
    """The rows that pass each of some conditions, and all of them, in the row groups of a layout."""

    def __init__(
        self, layout: Layout, sample: Sample, conditions: tuple[Condition, ...], masks: list[Mask]
    ) -> None:
        self.layout, self.sample, self.conditions, self._masks = layout, sample, conditions, masks
        self._places: dict[frozenset[int], tuple[Places, float]] = {}
        self._donors = self._nearest()
        self.facts: list[ColumnFacts | None] = [self._facts_of(one) for one in conditions]
        self.spans = [
            None if facts is None or one.kind == OTHER else facts.span(one)
            for one, facts in zip(conditions, self.facts, strict=True)
        ]
        self.width = cache(self._width)

    def _facts_of(self, condition: Condition) -> ColumnFacts | None:
        table = self.sample.table
        if table is None or not condition.path:
            return None
        column = column_at(table, condition.path)
        if column is None:
            return None
        with suppress(pa.ArrowException):  # values that Arrow does not sort
            return ColumnFacts(column, self.sample.ends, self.layout.num_rows)
        return None

    def _nearest(self) -> list[int]:
        """For each block the number of a sampled one: itself, or one of the two nearest, the nearer one more often."""
        taken, n = np.array(self.sample.taken, np.int64), len(self.sample.blocks)
        if not len(taken) or self.sample.complete:
            return list(range(n))
        numbers = np.arange(n)
        right = np.minimum(np.searchsorted(taken, numbers), len(taken) - 1)
        left = np.maximum(right - 1, 0)
        before, after = numbers - taken[left], taken[right] - numbers
        drawn = np.random.default_rng(n).random(n)
        use_left = (before >= 0) & ((after < 0) | (drawn * (before + after) < after))
        use_left &= after != 0
        chosen: list[int] = np.where(use_left, left, right).tolist()
        return chosen

    # -- rows -------------------------------------------------------------------------------------

    def places(self, which: Iterable[int]) -> Places:
        """The rows that pass all of some conditions, by group."""
        return self._found(frozenset(which))[0]

    def num_rows(self, which: Iterable[int]) -> float:
        """About how many rows pass all of some conditions."""
        return self._found(frozenset(which))[1]

    def _found(self, which: frozenset[int]) -> tuple[Places, float]:
        if which not in self._places:
            found, n = self._find(which)
            every = frozenset(range(len(self.conditions)))
            if (
                which and which != every
            ):  # rows that pass all conditions pass some of them, wherever they were put
                found = [one | all_ for one, all_ in zip(found, self.places(every), strict=True)]
            self._places[which] = found, n
        return self._places[which]

    def _find(self, which: frozenset[int]) -> tuple[Places, float]:
        if not which:
            every = [group.ranges for group in self.layout.groups]
            return every, float(self.layout.num_rows)
        if not self.layout.num_rows:
            return [group.ranges for group in self.layout.groups], 0.0
        mask = np.logical_and.reduce([self._masks[i] for i in which])
        passed, sampled = int(np.count_nonzero(mask)), self.sample.num_rows
        if sampled and (self.sample.complete or passed >= ENOUGH):
            made = self.spread(mask)
            return made, float(sum(one.num_rows for one in made))
        n = self._few(which, passed)
        if len(which) == 1:
            return self._strewn(next(iter(which)), n), n
        # some of the rows that pass the condition that fewest rows pass
        alone = [self._find(frozenset([i])) for i in which]
        return self._some(min(alone, key=itemgetter(1))[0], n), n

    def _few(self, which: frozenset[int], passed: int) -> float:
        """About how many rows pass, where the sample has too few of them."""
        total, shares = float(max(self.layout.num_rows, 1)), 1.0
        for i in which:
            alone = self._alone(i) if len(which) == 1 else self._find(frozenset([i]))[1]
            shares *= min(alone / total, 1.0)
        sampled = self.sample.num_rows
        found = total * shares
        if passed and len(which) > 1:
            found = max(found, passed * total / max(sampled, 1) / 2)
        return min(max(found, min(1.0, total)), total)

    def _alone(self, i: int) -> float:
        one, facts = self.conditions[i], self.facts[i]
        passed, total = int(np.count_nonzero(self._masks[i])), float(self.layout.num_rows)
        sampled = self.sample.num_rows
        if not sampled:
            return self._guess(i) * total
        if facts is None:
            return (passed + 0.5) * total / sampled
        spans = self.spans[i]
        if one.kind == EQUAL and spans is not None:
            return sum(facts.rows_of(first, last) for first, last in dict.fromkeys(spans))
        if one.kind == RANGE and one.low is not None and one.high is not None:
            return facts.rows_between(one.low, one.high, passed)
        return (passed + 0.5) * total / sampled

    def _guess(self, i: int) -> float:
        """A guess of the share of rows that pass, without a sample. Writers give up the dictionary of a column of many values."""
        one = self.conditions[i]
        if one.kind != EQUAL:
            return {RANGE: 0.1}.get(one.kind, 0.3)
        total, shares = max(self.layout.num_rows, 1), []
        for group in self.layout.groups:
            for leaf in group.conditions[i][:1]:
                chunk = group.leaves[leaf]
                distinct = chunk.dictionary / VALUE_BYTES if chunk.all_coded else total
                shares.append(1 / max(distinct, 1.0))
        return min(len(one.values) * sum(shares) / max(len(shares), 1), 1.0)

    # -- places -----------------------------------------------------------------------------------

    def spread(self, mask: Mask) -> Places:
        """What a mask of the sample says of the rows of all groups: of others what the nearest block says."""
        ends = [0, *self.sample.ends.tolist()]
        made = [np.zeros(group.num_rows, np.bool_) for group in self.layout.groups]
        for block, donor in zip(self.sample.blocks, self._donors, strict=True):
            part = mask[ends[donor] : ends[donor + 1]]
            if not part.any():
                continue
            n = block.num_rows
            given = part if len(part) == n else np.resize(part, n)
            into = made[block.group]
            for start, stop in _pieces(block.wanted):
                into[start:stop], given = given[: stop - start], given[stop - start :]
        return [_ranges(one) for one in made]

    def _strewn(self, i: int, n: float) -> Places:
        """About `n` rows at random places among the blocks where values of a condition may lie, in runs as of the column."""
        blocks, facts = self.sample.blocks, self.facts[i]
        if not blocks:
            return [rows.RowRanges.empty() for _ in self.layout.groups]
        run = 1.0 if facts is None else facts.run
        if self.conditions[i].kind == RANGE and self.width(i) < 0.3:
            run = n
        run = min(max(run, 1.0), n)
        random = np.random.default_rng(zlib.crc32(repr(self.conditions[i].expression).encode()))
        near = max(int(self.width(i) * len(blocks) + 0.5), 1)
        first = self._beginning(i, near, random)
        some = blocks[first : first + near]
        total = sum(one.num_rows for one in some)
        runs, length = max(round(n / run), 1), max(round(run), 1)
        starts = random.integers(0, max(total, 1), min(runs, 1 << 22))
        change = np.zeros(total + 1, np.int32)
        np.add.at(change, starts, 1)
        np.subtract.at(change, np.minimum(starts + length, total), 1)
        np.cumsum(change, out=change)
        return self._in_groups(some, change[:total] > 0)

    def _in_groups(self, blocks: Sequence[Block], mask: Mask) -> Places:
        """The rows of blocks that a mask has, by group."""
        made = [np.zeros(group.num_rows, np.bool_) for group in self.layout.groups]
        at = 0
        for block in blocks:
            for start, stop in _pieces(block.wanted):
                made[block.group][start:stop] = mask[at : at + stop - start]
                at += stop - start
        return [_ranges(one) for one in made]

    def _beginning(self, i: int, near: int, random: np.random.Generator) -> int:
        """The first of the `near` blocks in which values may lie: around those of the sample whose bounds say so, else any."""
        facts, spans, n = self.facts[i], self.spans[i], len(self.sample.blocks)
        if facts is not None and spans is not None and near < n:
            ends = self.sample.ends
            meets = facts.overlapping(spans, max(int(ends[-1]) if len(ends) else 1, 1))
            hit = [self.sample.taken[j] for j in range(len(ends)) if ends[j] and meets[ends[j] - 1]]
            if hit:
                middle = int(np.median(hit))
                return min(max(middle - near // 2, 0), n - near)
        return int(random.integers(0, max(n - near + 1, 1)))

    def _some(self, given: Places, n: float) -> Places:
        total = sum(one.num_rows for one in given)
        if total <= n:
            return given
        random = np.random.default_rng(total)
        kept = np.zeros(total, np.bool_)
        kept[random.choice(total, max(round(n), 1), replace=False)] = True
        made, at = [], 0
        for one in given:
            mask = kept[at : at + one.num_rows]
            made.append(one.refine(np.packbits(mask, bitorder="little").tobytes()) if one else one)
            at += one.num_rows
        return made

    # -- bounds -----------------------------------------------------------------------------------

    def _width(self, i: int) -> float:
        """The share of the blocks whose bounds do not rule out the values of a condition."""
        facts, spans = self.facts[i], self.spans[i]
        if facts is None or spans is None:
            return 1.0
        meets = facts.overlapping(spans, PIECE)
        share = float(np.mean(meets)) if len(meets) else 1.0
        if share * len(self.sample.taken) >= 3 or self.sample.complete:
            return share
        passing = sum(facts.share_below(last) - facts.share_below(first) for first, last in spans)
        n = max(len(self.sample.blocks), 1)
        return min(max(share, facts.width(PIECE) + passing + len(spans) / n), 1.0)

    def left_by_bounds(self, i: int, page_rows: int) -> Places:
        """The rows that a page index of pages with about so many rows would leave for a condition."""
        facts, spans = self.facts[i], self.spans[i]
        if facts is None or spans is None:
            return [group.ranges for group in self.layout.groups]
        meets = facts.overlapping(spans, max(page_rows, 1))
        made = self.spread(meets)
        return [one | here for one, here in zip(made, self.places([i]), strict=True)]


def _pieces(some: rows.RowRanges) -> list[tuple[int, int]]:
    return [(int(start), int(stop)) for start, stop in some]


def _ranges(mask: Mask) -> rows.RowRanges:
    return rows.RowRanges.from_bitmap(np.packbits(mask, bitorder="little").tobytes(), 0, len(mask))
