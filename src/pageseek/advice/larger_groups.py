"""Row groups as `rewrite` writes them: large ones of several, in small pages, with small dictionaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np

from pageseek._core import rows
from pageseek.advice.layout import ChunkPages, Group

# of `rewrite`: rows of a page and of a row group, and the bytes of different values above which a column has no dictionary
SMALL_PAGE, USUAL_GROUP, MOST_DICTIONARY = 1_000, 1_000_000, 128 << 10
UNKNOWN_DICTIONARY = 8 << 10  # bytes of values of a dictionary of which nothing is known
IN_ORDER = 0.3  # what sorted values take of the bytes of others: from a tenth where they repeat to nearly all at random
VALUES_IN_ORDER = 0.5  # the same of a dictionary
OF_VALUES = 0.4  # what zstd leaves of the bytes of different values, about
# about what zstd, by which files are rewritten, leaves of the bytes of texts and of numbers; of codes it leaves all
BY_ZSTD = {
    "uncompressed": (0.4, 0.7),
    "snappy": (0.6, 0.8),
    "lz4": (0.6, 0.8),
    "lz4_raw": (0.6, 0.8),
}
BYTE_ARRAY, FLOATS = 6, (4, 5)  # parquet.thrift, Type; floats become no smaller in order


def joined_groups(groups: Sequence[Group]) -> list[list[int]]:
    """The numbers of row groups that follow one another and become one, if they have the same leaves."""
    made: list[list[int]] = []
    n = 0
    for i, group in enumerate(groups):
        last = groups[made[-1][-1]] if made else None
        same = last is not None and last.leaves.keys() == group.leaves.keys() and last.conditions == group.conditions  # fmt: skip
        if not same or n + group.num_rows > USUAL_GROUP:
            made.append([])
            n = 0
        made[-1].append(i)
        n += group.num_rows
    return made


def joined(groups: Sequence[Group], values: Mapping[int, float]) -> Group:
    """One row group of several. Its chunks lie one behind the other. `values`: bytes of the different values of some leaves."""
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


def as_rewritten(
    groups: Sequence[Group], total: int, values: Mapping[int, float], ordered: int | None = None
) -> Group:
    """A row group of a file with `total` rows in another order, of which these row groups are a sample. Only its chunks count.

    `values`: as of `joined`. `ordered`: the number of the leaf by which the rows are sorted.
    """
    largest, *others = sorted(groups, key=lambda one: -one.num_rows)
    same = [largest, *[one for one in others if one.leaves.keys() == largest.leaves.keys()]]
    chosen, n, most = list[Group](), 0, min(total, USUAL_GROUP)
    for group in cycle(same):
        if chosen and n + group.num_rows > most:
            break
        chosen.append(group)
        n += max(group.num_rows, 1)
    made = joined(chosen, values)
    if ordered is not None:
        leaves = dict(made.leaves)
        chunk = leaves[ordered]
        if chunk.leaf.element.type not in FLOATS:
            leaves[ordered] = chunk.scaled(IN_ORDER, VALUES_IN_ORDER)
        made = replace(made, leaves=leaves)
    return made


def shifted(ranges: Sequence[rows.RowRanges], sizes: Sequence[int]) -> rows.RowRanges:
    """Rows of row groups of these sizes, one behind the other."""
    made = rows.RowRanges.empty()
    for one, before in zip(ranges, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True):
        made = made | one.shift(before)
    return made


def _chunk(chunks: Sequence[ChunkPages], start: int, values: float | None) -> ChunkPages:
    """`start`: the byte at which the chunk begins. `values`: bytes of its different values, None if that is not known."""
    # the limit is one of values, and dictionaries are compressed
    stored, plain = (
        sum(one.stop - one.start for one in chunks),
        sum(one.values_bytes for one in chunks),
    )
    most = MOST_DICTIONARY * min(stored / max(plain, 1), 1.0)
    dictionary, in_pages = _dictionary([one.dictionary for one in chunks], values, round(most))
    share = sum(one.coded for one in chunks) / max(sum(one.num_pages for one in chunks), 1)
    coded = share * (1 - in_pages)  # zstd leaves the codes as they are
    likely = UNKNOWN_DICTIONARY if values is None else values
    if not share and likely < min(MOST_DICTIONARY, plain):  # the writer makes one where none is
        dictionary, share = round(likely * OF_VALUES), 1.0
    pages = sum(int(one.sizes.sum()) + round(one.dictionary * in_pages) for one in chunks)
    num_rows = sum(one.num_rows for one in chunks)
    made = replace(
        chunks[0],
        starts=np.array([0, num_rows], np.int64),
        start=start,
        stop=start + dictionary + pages,
        dictionary=dictionary,
        all_coded=not in_pages and all(one.all_coded for one in chunks),
        values_bytes=plain,
        codec="zstd",
    ).with_pages(SMALL_PAGE)
    made = replace(made, coded=math.ceil(made.num_pages * share * (1 - in_pages)))
    small = _by_zstd(chunks[0])
    return made.scaled(small + (1 - small) * coded, small)


def _by_zstd(chunk: ChunkPages) -> float:
    texts, numbers = BY_ZSTD.get(chunk.codec, (1.0, 1.0))
    return texts if chunk.leaf.element.type == BYTE_ARRAY else numbers


def _dictionary(sizes: Sequence[int], values: float | None, most: int) -> tuple[int, float]:
    """The bytes of one dictionary in place of several, and the part of the values that moves to the pages: none, or all where it
    would have more than `most` bytes. Where it is not known how many values the dictionaries share, they share none.
    """
    total, largest = sum(sizes), max(sizes)
    if values is not None:
        total = min(total, max(round(values), largest))
    return (total, 0.0) if total <= most else (0, 1.0)
