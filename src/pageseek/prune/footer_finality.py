"""Whether any mechanism could add to what the statistics of the footer prove of many row groups.

A row group is final if the driver and every pruner would read nothing and prove nothing. If that is not sure, it is not final, and they
are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pageseek._core import rows
from pageseek.base.late_modules import npt
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.bloom_filter import BloomPruner
from pageseek.prune.dictionary import HEADER_BYTES, DictionaryPruner
from pageseek.prune.protocol import DOUBT
from pageseek.prune.registry import (
    COLUMN_INDEX,
    LOG,
    OF_MANY_FILES,
    OF_OPENED,
    PAGE_HEADERS,
    STATISTICS,
    names,
)

Figures: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
# mechanisms that by the footer prove nothing of some row groups; lists of values were asked before, and files with indexes of
# rows that were not are opened
_KNOWN = {
    LOG, STATISTICS, COLUMN_INDEX, PAGE_HEADERS, BloomPruner.name, DictionaryPruner.name, *OF_MANY_FILES, *OF_OPENED,
}  # fmt: skip


def may_be_final(tests: Sequence[BoundLeaf], use: frozenset[str]) -> bool:
    """Whether row groups may be final at all, by the filter and the mechanisms that are used."""
    return (
        STATISTICS in use
        and not (use & set(names())) - _KNOWN
        and not any(test.leaf.group for test in tests)
    )


def more_than_footers(use: frozenset[str]) -> bool:
    """Whether any mechanism that is used needs more of a file than its footer, and lists of values."""
    return bool(use & set(names()) - {LOG, STATISTICS, *OF_MANY_FILES})


def final(
    tests: Sequence[BoundLeaf],
    pages: Figures,
    read: Figures,
    figure: Callable[[Leaf, str], Figures],
    start: Callable[[Leaf], Figures],
    known: Callable[[Leaf], Flags | None],
    counts_nulls: Callable[[Leaf], bool],
    exact: Callable[[BoundLeaf], Flags | bool],
) -> tuple[Flags, Figures]:
    """Which row groups are final, and the bytes of their dictionaries, which cost too much to read. All their chunks must be
    sound.

    Parameters
    ----------
    pages, read
        For each row group: the number of pages if all chunks that are read have as many, else -1; the bytes of these chunks.
    figure, start, known, counts_nulls : callable
        For a tested leaf in each row group: a field of CHUNK_FIELDS, the first byte, whether its statistics can be used, and
        whether its null counts are trusted.
    exact : callable
        For a test in each row group: whether all values are known, and the test was put to them.
    """
    # a single page cannot be left out by itself, and its bounds are those of the chunk
    last: Flags = pages == 1
    dear = np.zeros(len(read), np.int64)
    for test in tests:
        leaf = test.leaf
        decided: Flags | bool = True
        if test.op != rows.OP_IS_NULL:
            usable = known(leaf)
            decided = False if usable is None else usable
        elif leaf.max_def:
            nulls = figure(leaf, "statistics_null_count")
            there = (nulls >= 0) & (nulls <= figure(leaf, "num_values"))
            decided = there & (figure(leaf, "statistics_present") == 1) & counts_nulls(leaf)
        decided &= figure(leaf, "bloom_filter_offset") == ABSENT
        size = _dictionary(leaf, figure, start)
        # not one whose dictionary pays: by the price in dictionary.py, and the bytes saved in pruner_stage.py
        decided &= ~((size > 0) & (DOUBT * size < read))
        last &= decided | exact(test)
        dear = np.maximum(dear, np.where(exact(test), 0, size))
    return last, dear * last


def _dictionary(
    leaf: Leaf, figure: Callable[[Leaf, str], Figures], start: Callable[[Leaf], Figures]
) -> Figures:
    """The bytes of the dictionary of each row group that may prove something, 0 where there is none."""
    has = (figure(leaf, "encoding_stats") == 1) & (figure(leaf, "dictionary_data_pages") > 0)
    length = figure(leaf, "data_page_offset") - start(leaf)
    inside = (length > 0) & (length < figure(leaf, "total_compressed_size"))
    return np.asarray(np.where(inside, length, HEADER_BYTES) * has)
