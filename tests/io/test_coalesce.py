"""Which ranges become one request: compared with the rules for every pair of neighbours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pageseek.io.coalesce import MAX_REQUEST_BYTES, PARALLEL, SENDING, coalesced

RANGES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30)), min_size=1, max_size=60).map(
    sorted
)


@given(RANGES, st.integers(0, 120), st.integers(1, 20))
def test_each_range_lies_in_its_request(ranges, gap, parallel):
    requests = coalesced(ranges, gap, parallel)
    assert sum(members for _, _, members in requests) == len(ranges)
    left = iter(ranges)
    for start, size, members in requests:
        served = [next(left) for _ in range(members)]
        assert min(offset for offset, _ in served) == start
        assert max(offset + length for offset, length in served) == start + size


@given(RANGES, st.integers(0, 120), st.integers(1, 20))
def test_what_is_bridged(ranges, gap, parallel):
    """Holes of an eighth always; wider ones up to the gap only while requests are too many, which none is then."""
    stops = [max(o + n for o, n in ranges[: i + 1]) for i in range(len(ranges))]
    holes = [offset - stop for (offset, _), stop in zip(ranges[1:], stops, strict=False)]
    requests = coalesced(ranges, gap, parallel)
    last, cuts = 0, set()
    for _, _, members in requests[:-1]:
        last += members
        cuts.add(last - 1)
    few = gap // SENDING
    assert all(holes[i] > few for i in cuts)
    bridged = [hole for i, hole in enumerate(holes) if i not in cuts]
    assert max(bridged, default=0) <= gap
    narrow = 1 + sum(hole > few for hole in holes)
    if narrow <= parallel:
        assert len(requests) == narrow
    elif all(hole <= gap for hole in holes):
        assert len(requests) <= 2 * parallel
    else:
        assert len(requests) <= 2 * parallel + sum(hole > gap for hole in holes)


def test_a_near_store_joins_neighbours_only():
    assert coalesced([(0, 10), (10, 5), (16, 4)], 0) == [(0, 15, 2), (16, 4, 1)]
    assert coalesced([(0, 10), (4, 2), (4, 20)], 0) == [(0, 24, 3)]


def test_no_request_grows_beyond_the_largest():
    piece = MAX_REQUEST_BYTES // 4
    ranges = [(i * piece, piece) for i in range(9)]
    sizes = [size for _, size, _ in coalesced(ranges, 1 << 20)]
    assert sizes == [MAX_REQUEST_BYTES, MAX_REQUEST_BYTES, piece]
    assert coalesced([(0, 3 * MAX_REQUEST_BYTES)], 0) == [(0, 3 * MAX_REQUEST_BYTES, 1)]


def test_many_distant_ranges_are_joined_until_they_are_few():
    gap = 8000
    ranges = [(i * 5000, 100) for i in range(PARALLEL)]
    assert len(coalesced(ranges, gap)) == PARALLEL
    ranges = [(i * 5000, 100) for i in range(10 * PARALLEL)]
    members = [members for _, _, members in coalesced(ranges, gap)]
    assert PARALLEL - 2 <= len(members) <= PARALLEL + 2  # of like size
    assert max(members) <= 11
    ranges = [(i * i * 100, 50) for i in range(40)]
    requests = coalesced(ranges, gap)
    assert len(requests) <= 2 * PARALLEL
    assert requests[0][2] > 1  # the near ones
    assert [members for _, _, members in requests[-5:]] == [1] * 5
