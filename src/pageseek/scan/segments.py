"""Segments of the pages of one leaf, which threads decode side by side."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from pageseek._core import rows
from pageseek.format.page_index import Page

SEGMENT_BYTES = 1 << 20  # of fetched pages that are worth a thread of their own


class Segment(NamedTuple):
    """Pages as (bytes, first row, rows), these bytes, and the selected rows in them."""

    places: list[tuple[memoryview, int, int]]
    buffers: Sequence[memoryview]
    ranges: rows.RowRanges


def segments_of(
    pages: Sequence[Page], buffers: Sequence[memoryview], ranges: rows.RowRanges, threads: int
) -> list[Segment]:
    """The pages in segments of about equal size; none where one thread does as well. `buffers`: the bytes of each page."""
    sizes = [data.nbytes for data in buffers]
    n = min(threads, sum(sizes) // SEGMENT_BYTES, len(pages))
    if n < 2:
        return []
    made: list[Segment] = []
    start = 0
    for stop in stops_of(sizes, n):
        places = [
            (data, first, count)
            for data, (*_, first, count) in zip(buffers[start:stop], pages[start:stop], strict=True)
        ]
        (_, first, _), (_, last, count) = places[0], places[-1]
        made.append(Segment(places, buffers[start:stop], ranges.slice(first, last + count)))
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
