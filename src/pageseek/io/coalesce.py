"""Which ranges of a file become one request.

The requests of a wave run side by side. As long as they are few, another request costs hardly more than its sending, while
the bytes between two ranges make a request longer. Where they are more than a store answers at a time, one request less
saves a part of a wait, which is worth latency x bandwidth bytes.

A large request, which one connection answers slowly, is sent in pieces that run side by side too, as long as the store
has room for them.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_REQUEST_BYTES = (
    16 << 20
)  # bytes of one request that coalescing makes; a single range may be larger
PARALLEL = 16  # requests that are answered side by side
SENDING = 8  # a further one of these costs a wait divided by this
WAITS = 4  # the waits that a piece of a large request takes at least
LEAST = 1 << 20  # bytes of such a piece at least


def coalesced(
    ranges: Sequence[tuple[int, ...]], gap: int, parallel: int = PARALLEL
) -> list[tuple[int, int, int]]:
    """Requests as (offset, length, how many of the ranges it serves), in the order of the ranges.

    Parameters
    ----------
    ranges : sequence of (offset, length)
        Ascending by offset; they may overlap. What follows the length is ignored.
    gap : int
        Latency x bandwidth of the store, in bytes: 0 where only neighbours are worth one request.
    """
    if len(ranges) == 1:
        return [(ranges[0][0], ranges[0][1], 1)]
    few = gap // SENDING
    stop, holes, left = 0, [], 1
    for i, one in enumerate(ranges):
        offset = one[0]
        if i:
            holes.append(offset - stop)
            left += offset - stop > few
        stop = max(stop, offset + one[1])
    bridged, share = few, 0
    if (
        left > parallel
    ):  # the smallest holes first, until the requests are few enough, and of like size
        wide = sorted([hole for hole in holes if few < hole <= gap])
        if wide:
            bridged = wide[min(left - parallel, len(wide)) - 1]
            share = (
                stop - ranges[0][0] - sum([hole for hole in holes if hole > bridged])
            ) // parallel
    requests: list[tuple[int, int, int]] = []
    for i, one in enumerate(ranges):
        offset, length = one[0], one[1]
        if i and (hole := holes[i - 1]) <= bridged:
            start, size, members = requests[-1]
            end = max(start + size, offset + length)
            if end - start <= MAX_REQUEST_BYTES and (hole <= few or size < share):
                requests[-1] = start, end - start, members + 1
                continue
        requests.append((offset, length, 1))
    return requests


def pays_ahead(ranges: Sequence[tuple[int, int]], gap: int, beside: int = 1) -> bool:
    """Whether ranges that may prove useless come sooner than another wave of requests. `gap`: as of `coalesced`.

    `beside`: how many such waves run side by side. All of them together save one wait, since each computes while others wait.
    """
    sizes = [length for _, length, _ in coalesced(sorted(ranges), gap)]
    if beside > 1:
        return sum(sizes) <= max(gap // beside, gap // SENDING)
    return max(sizes, default=0) <= gap and sum(sizes) <= gap * PARALLEL // 4


def pieces(sizes: Sequence[int], gap: int, free: int) -> list[int]:
    """The number of pieces in which each of several requests is best sent.

    Parameters
    ----------
    sizes : sequence of int
        The bytes of the requests, which begin together.
    gap : int
        Latency x bandwidth of the store, in bytes; 0 where nothing is gained.
    free : int
        Requests that the store would answer at once.
    """
    if not gap or free <= len(sizes):
        return [1] * len(sizes)
    size = max(WAITS * gap, LEAST, -(-sum(sizes) // free))
    return [max(length // size, 1) for length in sizes]
