"""Which condition of a filter to judge first: what it lets through against what it costs, learned as a scan goes.

Conditions that must all hold are best judged in the order of cost / (1 - share that passes): what is cheap and
rules out much comes first. Before the first row group both are guesses; from then on they are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pageseek._core import rows
from pageseek.predicate.bind import Bound, BoundAnd, BoundConst, BoundLeaf, BoundOr

ENOUGH = 1024  # rows from which a measurement says something
_SHARES = {
    rows.OP_EQ: 0.01,
    rows.OP_NE: 0.99,
    rows.OP_IS_NULL: 0.1,
    rows.OP_IS_NAN: 0.05,
    rows.OP_ALWAYS: 1.0,
    rows.OP_NEVER: 0.0,
}


def likely_share(bound: Bound) -> float:
    """The share of rows that a condition lets through, as long as nothing is known."""
    if isinstance(bound, BoundConst):
        return float(bound.value)
    if isinstance(bound, (BoundAnd, BoundOr)):
        missed = 1.0
        for arg in bound.args:
            share = likely_share(arg)
            missed *= share if isinstance(bound, BoundAnd) else 1 - share
        return missed if isinstance(bound, BoundAnd) else 1 - missed
    if isinstance(bound, BoundLeaf):
        share = _SHARES.get(bound.op, 0.3)
        if bound.op == rows.OP_IN:
            share = min(0.01 * bound.literals[0], 0.5)
        elif bound.op == rows.OP_PREFIX:
            share = min(0.05 * bound.literals[0], 0.5)
        return 1 - share if bound.negate else share
    return 0.5


class Learned:
    """What the conditions of one filter cost and let through, by their place in it. One for each scan."""

    __slots__ = ("_measured",)

    def __init__(self) -> None:
        self._measured: dict[int, tuple[int, int, float]] = {}  # rows in, rows out, seconds

    def note(self, place: int, rows_in: int, rows_out: int, seconds: float) -> None:
        """A condition was judged."""
        if rows_in >= ENOUGH:
            before = self._measured.get(place, (0, 0, 0.0))
            self._measured[place] = (
                before[0] + rows_in,
                before[1] + rows_out,
                before[2] + seconds,
            )

    def order(
        self, parts: Sequence[Bound], row_bytes: Callable[[Bound], float]
    ) -> list[tuple[int, Bound]]:
        """The conditions with their places, the one to begin with first. `row_bytes`: of the columns it reads."""
        sizes = [row_bytes(part) for part in parts]
        known = [(self._measured[i], sizes[i]) for i in self._measured if i < len(parts)]
        judged = sum(rows_in * size for (rows_in, _, _), size in known)
        byte = sum(seconds for (_, _, seconds), _ in known) / judged if judged else 1.0

        def rank(place: int) -> float:
            rows_in, rows_out, seconds = self._measured.get(place, (0, 0, 0.0))
            if rows_in:
                share, cost = rows_out / rows_in, seconds / rows_in
            else:
                share, cost = likely_share(parts[place]), sizes[place] * byte
            return cost / max(1 - share, 1e-6)

        return [(i, parts[i]) for i in sorted(range(len(parts)), key=rank)]
