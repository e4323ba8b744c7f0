"""What a scan reads of row groups: its waves of pages, condition by condition, then the columns of the rows that passed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pageseek._core import rows
from pageseek.advice.layout import ChunkPages, Group
from pageseek.io.coalesce import coalesced, pays_ahead
from pageseek.scanning.requests.condition_order import blocks_of

# of a row group: with more rows left, a scan does not look for the pages of a chunk without an index
FEW = 1 / 2
FAR_INDEX = 2  # requests for the page indexes of a remote file, which lie together at its end


@dataclass(slots=True)
class Cost:
    """Bytes and requests of a query, without those of the footers.

    `index`: bytes of page indexes, Bloom filters and embedded indexes, or of page headers. `pages`: data pages.
    """

    index: float = 0.0
    data: float = 0.0
    requests: float = 0.0
    pages: float = 0.0

    @property
    def bytes(self) -> float:
        """All of them."""
        return self.index + self.data

    def add(self, other: Cost, times: float = 1.0) -> None:
        """Count another cost, so many times."""
        self.index += times * other.index
        self.data += times * other.data
        self.requests += times * other.requests
        self.pages += times * other.pages

    def scaled(self, share: float) -> Cost:
        """The cost of the whole that this is a share of."""
        made = Cost()
        made.add(self, 1 / max(share, 1e-12))
        return made


Passing = Callable[[tuple[int, ...]], rows.RowRanges]


def read_group(
    group: Group, passing: Passing, far: bool, gap: int, wait: int, beside: int = 1
) -> Cost:
    """The cost of the pages of one row group.

    Parameters
    ----------
    passing : callable
        The rows of the group that pass all of some conditions, which are given by their numbers.
    far, gap, wait
        As of Layout: whether the store is remote; latency x bandwidth; that, where a wave costs more than bytes.
    beside : int
        Row groups that are read side by side.
    """
    cost = Cost()
    left = group.ranges
    if not left:
        return cost
    done: dict[int, rows.RowRanges] = {}  # the rows for which leaves were read
    payload = list(dict.fromkeys(group.payload))

    def fetch(wanted: Sequence[tuple[int, rows.RowRanges]], tests: bool = True) -> None:
        places: list[tuple[int, int]] = []
        for leaf, ranges in wanted:
            if leaf in done:
                continue
            done[leaf] = ranges
            chunk = group.leaves[leaf]
            found, pages = chunk.places(ranges, far, chunk.planned if tests else chunk.findable)
            places += found
            cost.pages += pages
        if places:
            requests = coalesced(sorted(places), gap)
            cost.requests += len(requests)
            cost.data += sum(length for _, length, _ in requests)

    order = order_of(group, passing)
    tested = left - group.sure if group.sure else left
    if wait:
        fetch(_ahead(group, order, tested, left, far, wait, beside))
    now: tuple[int, ...] = ()
    for i in order:
        if not tested:
            break
        fetch([(leaf, tested) for leaf in dict.fromkeys(group.conditions[i])])
        now = (*now, i)
        # of few rows the sample does not say which: those that pass all need not be among those that pass one
        tested = passing(now) & group.ranges
        if group.sure:
            tested = tested - group.sure
    left = tested | (group.sure & left) if group.sure else tested
    if left:
        few = blocks_of(left, group.num_rows) <= FEW * blocks_of(
            rows.RowRanges.all(group.num_rows), group.num_rows
        )
        wanted = []
        for leaf in payload:
            chunk = group.leaves[leaf]
            if leaf in done:
                continue
            if chunk.indexed or (few and chunk.findable):
                wanted.append((leaf, left))
                if not chunk.indexed:
                    cost.index += chunk.walk_bytes
                    cost.requests += chunk.num_pages + bool(chunk.dictionary)
            else:
                wanted.append((leaf, rows.RowRanges.all(group.num_rows)))
        fetch(wanted, tests=False)
    return cost


def _ahead(
    group: Group,
    order: Sequence[int],
    tested: rows.RowRanges,
    left: rows.RowRanges,
    far: bool,
    wait: int,
    beside: int,
) -> list[tuple[int, rows.RowRanges]]:
    """What a remote scan fetches in its first wave: the first condition, and what takes no longer than another wave."""
    made: list[tuple[int, rows.RowRanges]] = []
    waves = [group.conditions[i] for i in order] + [group.payload]
    for number, leaves in enumerate(waves):
        ranges = tested if number < len(order) else left
        places = [at for leaf in leaves for at in _planned_places(group.leaves[leaf], ranges, far)]
        if number == 0 or pays_ahead(places, wait, beside):
            made += [(leaf, ranges) for leaf in leaves]
    return made


def _planned_places(chunk: ChunkPages, ranges: rows.RowRanges, far: bool) -> list[tuple[int, int]]:
    return chunk.places(ranges, far, chunk.planned)[0]


def order_of(group: Group, passing: Passing) -> list[int]:
    """The order in which conditions are evaluated: cheap and selective ones first (`scan.condition_order`)."""
    numbers = range(len(group.conditions))
    if len(group.conditions) < 2:
        return list(numbers)
    n = max(group.num_rows, 1)
    blocks = max(blocks_of(rows.RowRanges.all(n), n), 1)

    def rank(i: int) -> float:
        found = passing((i,))
        share = (found.num_rows / n + (blocks_of(found, n) if found else 0) / blocks) / 2
        size = sum(group.leaves[leaf].values_bytes for leaf in group.conditions[i])
        return size / max(1 - share, 1e-6)

    return sorted(numbers, key=rank)


def index_cost(groups: Sequence[Group], kept: Sequence[bool], gap: int) -> Cost:
    """The cost of the page indexes of row groups, of the payload's only in those that are `kept`; or of page headers."""
    files: set[int] = set()
    cost = Cost()
    for group, read in zip(groups, kept, strict=True):
        tested = dict.fromkeys(leaf for some in group.conditions for leaf in some)
        n = 0
        for leaf in tested:
            chunk = group.leaves[leaf]
            walks = chunk.walk_bytes if chunk.planned else 0
            cost.index += sum(chunk.index_bytes) if chunk.indexed else walks
            n += 2 if chunk.indexed else 0
            cost.requests += 0 if chunk.indexed or not walks else chunk.num_pages
        more = [leaf for leaf in group.payload if leaf not in tested] if read else []
        indexed = [group.leaves[leaf] for leaf in more if group.leaves[leaf].indexed]
        cost.index += sum(chunk.index_bytes[1] for chunk in indexed)
        # the indexes of neighbouring columns lie side by side
        if not gap:
            cost.requests += min(n, 2) + bool(indexed)
        elif n:
            files.add(group.file)
    cost.requests += FAR_INDEX * len(files)
    return cost


def chunk_bytes(group: Group) -> int:
    """Bytes of the chunks that are read of a row group, at most."""
    return sum(one.stop - one.start for one in group.leaves.values())
