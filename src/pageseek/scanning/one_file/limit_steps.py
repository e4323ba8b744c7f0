"""The number of row groups that are pruned before their rows are read, in a scan with a limit."""

from __future__ import annotations

from collections.abc import Sequence

from pageseek.scanning.requests.plan import GroupPlan


class LimitSteps:
    """Few row groups at first, then more with each step, so that at most a few times the necessary ones are pruned.

    If reads wait for the store, steps are wide: a scan that finds nothing then waits a few times only.
    """

    # the size of the first step, and the factor from one step to the next
    QUICK, WAITING = (1, 2), (8, 8)

    def __init__(self) -> None:
        self._size = 0

    @classmethod
    def is_one(cls, groups: Sequence[GroupPlan], left: int) -> bool:
        """Whether all are pruned in the first step, for any store."""
        return len(groups) < 2 or cls().next(groups, left, False) >= len(groups)

    def next(self, groups: Sequence[GroupPlan], left: int, waits: bool) -> int:
        """The number of row groups to prune next; at least as many as hold the rows that are `left`."""
        if all(group.pages_pruned for group in groups):
            return len(groups)
        first, growth = self.WAITING if waits else self.QUICK
        self._size = self._size * growth or first
        least = 0
        for group in groups:
            if left <= 0:
                break
            least, left = least + 1, left - group.ranges.num_rows
        return max(self._size, least)
