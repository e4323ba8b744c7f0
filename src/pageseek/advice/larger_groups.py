"""Row groups put together, as they would lie in files with larger ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pageseek._core import rows
from pageseek.advice.layout import ChunkPages, Group


def joined_groups(groups: Sequence[Group], most: int) -> list[list[int]]:
    """The numbers of row groups that follow one another and have about so many rows together, if they have the same leaves."""
    made: list[list[int]] = []
    n = 0
    for i, group in enumerate(groups):
        last = groups[made[-1][-1]] if made else None
        alike = last is not None and last.leaves.keys() == group.leaves.keys() and last.conditions == group.conditions  # fmt: skip
        if not alike or n + group.num_rows > most:
            made.append([])
            n = 0
        made[-1].append(i)
        n += group.num_rows
    return made


def joined(groups: Sequence[Group]) -> Group:
    """One row group of several. Its chunks lie one behind the other."""
    if len(groups) == 1:
        return groups[0]
    sizes = [group.num_rows for group in groups]
    leaves, at = {}, 0
    for number in groups[0].leaves:
        chunk = _chunk([group.leaves[number] for group in groups], at)
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


def _chunk(chunks: Sequence[ChunkPages], start: int) -> ChunkPages:
    """`start`: the byte at which the chunk begins."""
    dictionary = max(one.dictionary for one in chunks)  # a writer gives it up where it grows
    sizes = np.concatenate([one.sizes for one in chunks])
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
        coded=sum(one.coded for one in chunks),
        all_coded=all(one.all_coded for one in chunks),
        index_bytes=(
            sum(one.index_bytes[0] for one in chunks),
            sum(one.index_bytes[1] for one in chunks),
        ),
        values_bytes=sum(one.values_bytes for one in chunks),
    )
