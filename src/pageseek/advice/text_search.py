"""What a trigram index would leave of the rows for LIKE and prefixes, by the texts of a sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import rows
from pageseek.advice.column_facts import column_at
from pageseek.advice.matches import Matches, Places
from pageseek.base.arrays import booleans
from pageseek.base.late_modules import compute as pc
from pageseek.base.records import NamedTuple
from pageseek.format import trigram_form as form

FIRST_BYTES = 16 << 10  # that are read of an index first
MOST_GRAMS = 16  # pieces of a pattern that are searched for
MOST_ROWS = 16_384  # of a sample, whose pieces are counted
SET_BITS = 17  # of a block in the set of a piece, about


class TextSearch(NamedTuple):
    """An index of one column. `places`: the rows that it leaves. `parts`: of the index that are read. `size`: of all files' indexes."""

    places: Places
    parts: int
    size: int


def text_search(matches: Matches, i: int, total: int, files: int) -> TextSearch:
    """A trigram index for one condition. `total`: rows of all files."""
    condition, layout = matches.conditions[i], matches.layout
    grams = _grams(condition.texts)
    table = matches.sample.table
    column = None if table is None else column_at(table, condition.text_path)
    blocks = -(-max(total, 1) // form.BLOCK_ROWS)
    places = matches.places([i])
    bits = float(form.BLOCK_ROWS)  # of the index for each block, where nothing was sampled
    if column is not None and len(column):
        texts = column.cast(pa.binary())
        left = np.ones(-(-len(texts) // form.BLOCK_ROWS), np.bool_)
        for gram in grams:
            left &= _by_block(booleans(pc.fill_null(pc.match_substring(texts, gram), False)))
        rows_left = np.repeat(left, form.BLOCK_ROWS)[: len(texts)]
        places = [one | here for one, here in zip(places, matches.spread(rows_left), strict=True)]
        bits = _bits(texts)
    near = []
    for group, one in zip(layout.groups, places, strict=True):
        mask = np.zeros(group.num_rows, np.bool_)
        for start, stop in one:
            first = int(start) // form.BLOCK_ROWS * form.BLOCK_ROWS
            mask[first : -(-int(stop) // form.BLOCK_ROWS) * form.BLOCK_ROWS] = True
        near.append(group.ranges & _ranges(mask))
    size = bits / 8 * blocks
    parts = min(len(grams), max(int(size / max(files, 1) / form.PART_BYTES), 1))
    return TextSearch(near, parts, int(size) + 100 * files)


def _grams(texts: tuple[bytes, ...]) -> list[bytes]:
    """Pieces of texts, MOST_GRAMS at most, from all over them."""
    found = sorted({text[at : at + form.GRAM] for text in texts for at in range(len(text) - form.GRAM + 1)})  # fmt: skip
    step = max(len(found) / MOST_GRAMS, 1)
    return [found[int(i * step)] for i in range(min(len(found), MOST_GRAMS))]


def _by_block(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    starts = np.arange(0, len(mask), form.BLOCK_ROWS)
    return np.logical_or.reduceat(mask, starts)


def _bits(texts: pa.Array) -> float:
    """The bits of the index for each block: pieces of text that few blocks have are numbers of blocks, those of many are a bit a block."""
    counts, blocks = np.zeros(1 << form.MAX_SLOT_BITS, np.int64), 0
    for at in range(0, min(len(texts), MOST_ROWS), form.BLOCK_ROWS):
        data = b"\0\0".join(filter(None, texts[at : at + form.BLOCK_ROWS].to_pylist()))
        blocks += 1
        if len(data) > form.GRAM:
            counts[np.unique(form.slots_of(np.frombuffer(data, np.uint8)))] += 1
    return float(np.minimum(SET_BITS * counts / max(blocks, 1), 1.0).sum())


def _ranges(mask: npt.NDArray[np.bool_]) -> rows.RowRanges:
    return rows.RowRanges.from_bitmap(np.packbits(mask, bitorder="little").tobytes(), 0, len(mask))
