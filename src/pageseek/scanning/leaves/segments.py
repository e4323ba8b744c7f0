"""Segments of the pages of one leaf, which threads decode side by side."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from pageseek._core import rows
from pageseek.base.records import NamedTuple

SEGMENT_COST = 1 << 19  # as of `likely_cost`, of pages that are worth a thread of their own
PageBytes: TypeAlias = tuple[memoryview, int, int]  # a page, its first row, its rows


class Segment(NamedTuple):
    """Pages, their bytes, and the selected rows in them."""

    pages: list[PageBytes]
    buffers: Sequence[memoryview]
    ranges: rows.RowRanges


def count_segments(cost: int, threads: int, again: int = 0) -> int:
    """How many segments pages of this cost are worth. `again`: the cost of what each of them does again."""
    return min(threads, cost // max(SEGMENT_COST, again))


def segments_of(pages: Sequence[PageBytes], ranges: rows.RowRanges, n: int) -> list[Segment]:
    """The pages in n segments of about equal size; none where that is less than two."""
    buffers = [data for data, _, _ in pages]
    sizes = [data.nbytes for data in buffers]
    n = min(n, len(pages))
    if n < 2:
        return []
    made: list[Segment] = []
    start = 0
    for stop in stops_of(sizes, n):
        some = list(pages[start:stop])
        (_, first, _), (_, last, count) = some[0], some[-1]
        made.append(Segment(some, buffers[start:stop], ranges.slice(first, last + count)))
        start = stop
    return made


def stops_of(sizes: Sequence[int], n: int) -> list[int]:
    """Where n segments of about equal size end, none of them empty. There are at least n sizes."""
    sums = list(accumulate(sizes))
    stops: list[int] = []
    for i in range(1, n):
        likely = bisect_left(sums, sums[-1] * i / n) + 1
        stops.append(min(max(likely, (stops[-1] if stops else 0) + 1), len(sizes) - n + i))
    return [*stops, len(sizes)]
