"""The ranges that a scan reads from a local store, recorded by a wrapper around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Log:
    """The ranges read from local files, in order."""

    ranges: list[tuple[int, int]] = field(default_factory=list)

    def clear(self) -> None:
        self.ranges.clear()

    def required_leaves(self, places: Sequence[tuple[int, int]]) -> list[int]:
        """The indices of the (offset, size) places of which any byte was read."""
        return [
            i
            for i, (at, size) in enumerate(places)
            if any(at < a + n and a < at + size for a, n in self.ranges)
        ]

    def whole(self, places: Sequence[tuple[int, int]]) -> list[int]:
        """The indices of the places that were read whole."""
        return [
            i
            for i, (at, size) in enumerate(places)
            if any(a <= at and at + size <= a + n for a, n in self.ranges)
        ]
