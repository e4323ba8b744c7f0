"""Few row groups that stand for many: to estimate a price, and to find out whether a mechanism rules out anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
PRICED = 8  # row groups by which a mechanism is priced
PROBE = 8  # row groups that show whether a mechanism rules out anything


def summed(costs: Iterable[int | None]) -> int | None:
    """The sum of the costs that are known; None if none is."""
    total = None
    for cost in costs:
        if cost is not None:
            total = cost if total is None else total + cost
    return total


def priced(items: Sequence[T], price: Callable[[T], int | None]) -> float | None:
    """About what many items cost together, by a few of them that lie far apart; None where not one has a price."""
    if len(items) == 1:
        return price(items[0])
    step = max(len(items) // PRICED, 1)
    total = summed(map(price, items[::step]))
    if total is not None:
        return float(total * step)
    return 0.0 if step > 1 and any(price(item) is not None for item in items) else None


def probed(items: list[T]) -> Iterable[list[T]]:
    """Many items in batches, drawn from all over the file, each twice the one before. The caller stops at a batch of which
    nothing was ruled out. Few items are one batch.
    """
    return [items] if len(items) < 2 * PROBE else _growing(items)


def _growing(items: list[T]) -> Iterator[list[T]]:
    import random  # few scans need it, and its import takes a while

    drawn = random.Random(len(items)).sample(items, len(items))
    at, size = 0, PROBE
    while at < len(drawn):
        yield drawn[at : at + size]
        at, size = at + size, size * 2
