"""The order in which the conditions of a filter are evaluated, learned from the row groups before.

Conditions joined by AND are best evaluated in the order of cost / (1 - share that passes): cheap and selective conditions come
first. Both numbers are guesses for the first row group, and are measured from then on. The cost of later columns depends on
their pages as much as on their rows. The share is therefore the mean of the share of rows and the share of blocks of
neighbouring rows: rows that pass side by side spare whole pages, scattered rows spare none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.predicate.bound import Bound, BoundConst, BoundLeaf, Unjoined, fold

ENOUGH = 1024  # rows that make a measurement reliable
BLOCK = 1024  # rows, fewer than a page has
FIRST_GROUPS, EACH = 8, 8  # the first row groups are all measured, later ones one in EACH
_SHARES = {
    rows.OP_EQ: 0.01,
    rows.OP_NE: 0.99,
    rows.OP_IS_NULL: 0.1,
    rows.OP_IS_NAN: 0.05,
    rows.OP_ALWAYS: 1.0,
    rows.OP_NEVER: 0.0,
}


def likely_share(bound: Bound) -> float:
    """A guess of the share of rows that pass a condition."""
    return fold(bound, _share, _joined, lambda share: 1 - share)


def _share(part: Unjoined) -> float:
    if isinstance(part, BoundConst):
        return float(part.value)
    if not isinstance(part, BoundLeaf):
        return 0.5
    share = _SHARES.get(part.op, 0.3)
    if part.op == rows.OP_IN:
        share = min(0.01 * part.literals[0], 0.5)
    elif part.op == rows.OP_PREFIX:
        share = min(0.05 * part.literals[0], 0.5)
    return 1 - share if part.negate else share


def _joined(is_and: bool, shares: Iterator[float]) -> float:
    return math.prod(shares) if is_and else 1 - math.prod(1 - share for share in shares)


def blocks_of(ranges: rows.RowRanges, num_rows: int) -> int:
    """The number of blocks of a row group that hold some of these rows."""
    if ranges.num_rows == num_rows:
        return -(-num_rows // BLOCK)
    return rows.pages_touched(ranges, np.arange(0, num_rows + BLOCK, BLOCK)).count(1)


def few_blocks(ranges: rows.RowRanges, num_rows: int) -> bool:
    """Whether at most half of the blocks of a row group hold some of these rows, so that pages of it can be left out."""
    return 2 * blocks_of(ranges, num_rows) <= -(-num_rows // BLOCK)


class Learned:
    """The measured cost and share of each condition of a filter, by its place. There is one for each scan."""

    __slots__ = ("_measured", "_ordered", "_places")

    def __init__(self) -> None:
        self._measured: dict[int, Measured] = {}
        self._ordered = 0  # times
        self._places: list[int] = []  # the last order

    def note(
        self, place: int, before: tuple[int, int], after: tuple[int, int], seconds: float
    ) -> None:
        """Record an evaluation. `before`, `after`: the number of rows, and of the blocks that they lie in."""
        if before[0] >= ENOUGH:
            now = Measured(*before, *after, seconds)
            old = self._measured.get(place)
            self._measured[place] = now if old is None else old + now

    def order(
        self, parts: Sequence[Bound], row_bytes: Callable[[Bound], float]
    ) -> tuple[list[int], bool]:
        """The places of the conditions in the order of evaluation, and whether to measure them this time. `row_bytes`: the bytes
        of a row in the columns that a condition reads.
        """
        self._ordered += 1
        places = self._places
        if len(places) == len(parts) and self._ordered > FIRST_GROUPS and self._ordered % EACH:
            return places, False
        sizes = [row_bytes(part) for part in parts]
        measured = dict(self._measured)  # other threads add to it
        known = [(m, sizes[i]) for i, m in measured.items() if i < len(parts)]
        evaluated = sum(m.blocks_in * BLOCK * size for m, size in known)
        byte = sum(m.seconds for m, _ in known) / evaluated if evaluated else 1.0

        def rank(place: int) -> float:
            m = measured.get(place)
            if m is not None:
                share, cost = m.share, m.seconds / (m.blocks_in * BLOCK)
            else:
                share, cost = likely_share(parts[place]), sizes[place] * byte
            return cost / max(1 - share, 1e-6)

        self._places = places = sorted(range(len(parts)), key=rank)
        return places, True


@dataclass(frozen=True, slots=True)
class Measured:
    """Evaluations of a condition: rows and blocks before and after, and the seconds they took."""

    rows_in: int
    blocks_in: int
    rows_out: int
    blocks_out: int
    seconds: float

    def __add__(self, other: Measured) -> Measured:
        return Measured(
            self.rows_in + other.rows_in,
            self.blocks_in + other.blocks_in,
            self.rows_out + other.rows_out,
            self.blocks_out + other.blocks_out,
            self.seconds + other.seconds,
        )

    @property
    def share(self) -> float:
        """The share that passed."""
        return (self.rows_out / self.rows_in + self.blocks_out / self.blocks_in) / 2
