"""The fewest changes that gain most: one after the other, as long as one halves what some query reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pageseek.advice.commands import Target, command_of, python_of, title_of
from pageseek.advice.estimates import ATTACHED, CLUSTER, GROUP_ROWS, PAGE_ROWS, SORT, Change
from pageseek.advice.reading import Cost
from pageseek.advice.results import Recommendation
from pageseek.base.records import NamedTuple
from pageseek.base.report import counted, format_size

HALF = 0.5
DEARER = 1.1  # times the bytes that may be read where requests are halved
MORE = 0.25  # of what a query read at first that a further change has to spare
LITTLE = 16_000, 2  # bytes, and requests, that are not worth a change
# bytes that a rewrite has to spare: a share of what is written, or so many where that is a lot
SHARE, REWRITE = 0.01, 1 << 20
REQUESTS = 100  # that larger row groups have to spare
BETTER = 16  # a rewrite has to leave so many times less than an index
# the same where the index leaves more than this part of what is read now
BETTER_THAN_LITTLE, WELL = 2, 0.25
AS_CHEAP = 1.25  # changes that add at most so many times as much are as cheap
AS_GOOD = 1.5  # what leaves at most so many times as much as the best is as good; the cheaper change is taken


_Found = tuple[float, Change, list[Cost | None]]  # gain, change, costs after it


class Tried(NamedTuple):
    """A query with its costs: of the files as they are, with each change alone, and with the rows in an order that is made for
    other queries.
    """

    text: str
    before: Cost
    after: dict[Change, Cost]
    disordered: Cost
    after_all: Callable[[Sequence[Change]], Cost]


def is_worth_it(before: Cost, after: Cost, change: Change, price: int) -> bool:
    """Whether a change halves the bytes or the requests of a query, and that is worth having. `price`: the bytes that it adds, or
    that are rewritten, for which a small part of these bytes is no reason, and requests alone only where row groups become larger.
    """
    fewer = change.kind == GROUP_ROWS and before.requests - after.requests >= REQUESTS
    if change.kind in ATTACHED or fewer:
        return _halves(before, after)
    spared = before.bytes - after.bytes
    least = max(min(price * SHARE, REWRITE), LITTLE[0])
    return spared >= least and after.bytes <= HALF * before.bytes


def _halves(before: Cost, after: Cost) -> bool:
    bytes_saved, requests_saved = before.bytes - after.bytes, before.requests - after.requests
    if after.bytes <= HALF * before.bytes and bytes_saved > LITTLE[0]:
        return True
    fewer = after.requests <= HALF * before.requests and requests_saved > LITTLE[1]
    return fewer and after.bytes <= max(DEARER * before.bytes, before.bytes + LITTLE[0])


def _is_harmed(one: Tried, now: Cost, change: Change) -> bool:
    """Whether a query would read much more with the rows in the order of a column that it does not test."""
    reorders = change.kind in (SORT, CLUSTER)
    return reorders and now is one.before and one.disordered.bytes > now.bytes / HALF


def _spares_more(first: Cost, now: Cost, after: Cost, change: Change) -> bool:
    """Whether a change spares much of what a query read at first, where others have spared a part of that already. A query that
    is served needs no rewrite beside.
    """
    if now is first:
        return True
    by_bytes = (now.bytes - after.bytes) / max(first.bytes, 1)
    by_requests = (now.requests - after.requests) / max(first.requests, 1)
    return change.kind in ATTACHED and max(by_bytes, by_requests) >= MORE


def _gain(before: Cost, after: Cost) -> float:
    """How often the bytes were halved; of requests, where these are halved more often, half of that."""
    by_bytes = math.log2(max(before.bytes, 1) / max(after.bytes, 1))
    by_requests = math.log2(max(before.requests, 1) / max(after.requests, 1))
    return max(by_bytes, by_requests / 2, 0.01)


def recommended(
    tried: Sequence[Tried], prices: dict[Change, int], target: Target
) -> list[Recommendation]:
    """The changes that are worth it, the one that gains most first."""
    chosen: list[Change] = []
    made: list[Recommendation] = []
    now = [one.before for one in tried]
    rest = list(dict.fromkeys(change for one in tried for change in one.after))
    while rest:
        best, best_after = _best(tried, now, chosen, rest, prices)
        if best is None:
            break
        chosen.append(best)
        rest = [
            one for one in rest if one != best and (one.kind in ATTACHED or best.kind in ATTACHED)
        ]
        made.append(_item(best, tried, now, best_after, prices, target))
        now = [
            after if after is not None else cost
            for cost, after in zip(now, best_after, strict=True)
        ]
    return made


def _best(
    tried: Sequence[Tried],
    now: Sequence[Cost],
    chosen: Sequence[Change],
    rest: Sequence[Change],
    prices: dict[Change, int],
) -> tuple[Change | None, list[Cost | None]]:
    """The change that gains most beside those that were chosen, and the costs of the queries that it makes cheaper."""
    found: list[_Found] = []
    for change in rest:
        after: list[Cost | None] = []
        total = 0.0
        for one, cost in zip(tried, now, strict=True):
            new = _with(one, change, chosen)
            if change not in one.after and _is_harmed(one, cost, change):
                total -= _gain(one.disordered, cost)
                after.append(one.disordered)
                continue
            if (
                new is None
                or not is_worth_it(cost, new, change, prices[change])
                or not _spares_more(one.before, cost, new, change)
            ):
                after.append(None)
                continue
            after.append(new)
            total += _gain(cost, new)
        if total > 0:
            found.append((total, change, after))
    if not found:
        return None, []
    most = max(one[0] for one in found)
    attached = [one for one in found if one[1].kind in ATTACHED]
    if attached:  # indexes need no rewrite: that has to leave much less
        best = max(attached, key=lambda one: one[0])
        top = max(found, key=lambda one: one[0])
        if most < best[0] + math.log2(_better(top, best, now, prices)):
            found, most = attached, best[0]
    good = [one for one in found if one[0] >= most - math.log2(AS_GOOD)]
    cheapest = min(prices[one[1]] for one in good)
    good = [one for one in good if prices[one[1]] <= AS_CHEAP * cheapest]
    _, change, after = min(good, key=lambda one: (_requests(one[2]), prices[one[1]], -one[0]))
    return change, after


def _better(
    rewrite: _Found, index: _Found, now: Sequence[Cost], prices: dict[Change, int]
) -> float:
    """How many times less than an index a rewrite has to leave. Less often where the index leaves much, such as a page index."""
    left, before = _bytes(index[2]), [c for c, one in zip(now, index[2], strict=True) if one is not None]  # fmt: skip
    spared = left - _bytes(rewrite[2])
    much = left > WELL * _bytes(before)
    worth = spared >= min(prices[rewrite[1]] * SHARE, REWRITE)
    return BETTER_THAN_LITTLE if much and worth else BETTER


def _bytes(costs: Sequence[Cost | None]) -> float:
    return sum(one.bytes for one in costs if one is not None)


def _requests(after: Sequence[Cost | None]) -> int:
    return sum(round(one.requests) for one in after if one is not None)


def _with(one: Tried, change: Change, chosen: Sequence[Change]) -> Cost | None:
    """The cost of a query with one more change; None if that is nothing for it."""
    if change not in one.after:
        return None
    if any(_is_harmed(one, one.before, other) for other in chosen if other not in one.after):
        return None  # what was estimated is of the present order
    others = [other for other in chosen if other in one.after]
    if not others:
        return one.after[change]
    rewrites = [other for other in (*others, change) if other.kind not in (*ATTACHED, PAGE_ROWS)]
    if rewrites:  # an index on top of an order is not estimated: the order alone is
        return one.after[change] if change in rewrites else None
    return one.after_all([*others, change])


def _item(
    change: Change,
    tried: Sequence[Tried],
    now: Sequence[Cost],
    after: Sequence[Cost | None],
    prices: dict[Change, int],
    target: Target,
) -> Recommendation:
    harmed = [
        f"{one.text} then takes {format_size(round(new.bytes))} in place of {format_size(round(cost.bytes))}"
        for one, cost, new in zip(tried, now, after, strict=True)
        if new is not None and new.bytes > cost.bytes and change not in one.after
    ]
    whys = [
        f"{one.text}: from {format_size(round(cost.bytes))} in {counted(round(cost.requests), 'request')} to "
        f"{format_size(round(new.bytes))} in {round(new.requests):,}"
        for one, cost, new in zip(tried, now, after, strict=True)
        if new is not None and change in one.after
    ]
    return Recommendation(
        title_of(change),
        "; ".join(whys) + ("; but " + "; ".join(harmed) if harmed else ""),
        command_of(change, target),
        python_of(change, target),
        prices[change] if change.kind in ATTACHED else 0,
        change.kind not in ATTACHED,
    )
