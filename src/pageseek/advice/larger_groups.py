"""Row groups put together, as they would lie in files with larger ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pageseek._core import rows
from pageseek.advice.layout import ChunkPages, Group

MOST_DICTIONARY = 1 << 20  # bytes, from which on a writer stores values in the pages


def joined_groups(groups: Sequence[Group], most: int) -> list[list[int]]:
    """The numbers of row groups that follow one another and have about so many rows together, if they have the same leaves."""
    made: list[list[int]] = []
    n = 0
    for i, group in enumerate(groups):
        last = groups[made[-1][-1]] if made else None
        same = last is not None and last.leaves.keys() == group.leaves.keys() and last.conditions == group.conditions  # fmt: skip
        if not same or n + group.num_rows > most:
            made.append([])
            n = 0
        made[-1].append(i)
        n += group.num_rows
    return made


def joined(groups: Sequence[Group], values: Mapping[int, float]) -> Group:
    """One row group of several. Its chunks lie one behind the other. `values`: bytes of the different values of some leaves."""
    if len(groups) == 1:
        return groups[0]
    sizes = [group.num_rows for group in groups]
    leaves, at = {}, 0
    for number in groups[0].leaves:
        chunk = _chunk([group.leaves[number] for group in groups], at, values.get(number))
        leaves[number], at = chunk, chunk.stop
    first = groups[0]
    return replace(
        first,
        num_rows=sum(sizes),
        ranges=shifted([group.ranges for group in groups], sizes),
        sure=shifted([group.sure for group in groups], sizes),
        leaves=leaves,
    )


def shifted(ranges: Sequence[rows.RowRanges], sizes: Sequence[int]) -> rows.RowRanges:
    """Rows of row groups of these sizes, one behind the other."""
    made = rows.RowRanges.empty()
    for one, before in zip(ranges, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True):
        made = made | one.shift(before)
    return made


def _chunk(chunks: Sequence[ChunkPages], start: int, values: float | None) -> ChunkPages:
    """`start`: the byte at which the chunk begins. `values`: bytes of its different values, None if that is not known."""
    dictionary, in_pages = _dictionary([one.dictionary for one in chunks], values)
    sizes = np.concatenate(
        [
            one.sizes + (one.dictionary * in_pages * np.diff(one.starts) / max(one.num_rows, 1)).astype(np.int64)
            for one in chunks
        ]
    )  # fmt: skip
    before = np.cumsum([0, *[one.num_rows for one in chunks]]).tolist()
    starts = [one.starts[:-1] + first for one, first in zip(chunks, before[:-1], strict=True)]
    ends = start + dictionary + np.cumsum(np.append(0, sizes))
    return replace(
        chunks[0],
        starts=np.append(np.concatenate(starts), before[-1]).astype(np.int64),
        offsets=ends[:-1].astype(np.int64),
        sizes=sizes,
        start=start,
        stop=int(ends[-1]),
        dictionary=dictionary,
        coded=int(np.ceil(sum(one.coded for one in chunks) * (1 - in_pages))),
        all_coded=not in_pages and all(one.all_coded for one in chunks),
        index_bytes=(
            sum(one.index_bytes[0] for one in chunks),
            sum(one.index_bytes[1] for one in chunks),
        ),
        values_bytes=sum(one.values_bytes for one in chunks),
    )


def _dictionary(sizes: Sequence[int], values: float | None) -> tuple[int, float]:
    """The bytes of one dictionary in place of several, and the part of the values that moves to the pages, since a writer gives up
    a dictionary that grows. Where it is not known how many values the dictionaries share, they share none.
    """
    total, largest = sum(sizes), max(sizes)
    if values is not None:
        total = min(total, max(round(values), largest))
    most = max(largest, MOST_DICTIONARY)
    if total <= most:
        return total, 0.0
    return most, (total - most) / sum(sizes)
