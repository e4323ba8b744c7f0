"""Builds a `trigram` index: the blocks of rows that have each three bytes, row group by row group."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.arrays import distinct_numbers
from pageseek.base.report import format_size
from pageseek.format.trigram_form import (
    BLOCK_ROWS,
    GRAM,
    HEAD,
    I64,
    MAX_SLOT_BITS,
    PART,
    PART_BYTES,
    U8,
    body,
    num_blocks,
    part_bytes,
    slots_of,
)
from pageseek.index.distinct_builder import stored, type_of
from pageseek.index.spilled import SpilledEntries, SpillingBuilder
from pageseek.prune.kind import IndexedColumn, NotBuiltError

MAX_BODY_BYTES = 1 << 30
SLOTS = 1 << MAX_SLOT_BITS
BLOCK_BITS = 40  # of an entry: a slot, and a block
PART_SLOTS = 1024  # slots that are made at a time
PIECE = 1 << 20  # bytes of text that are hashed at a time
MIN_SLOT_BITS = 8
SPARE = 2  # slots for each that is used, where there are fewer than MAX_SLOT_BITS allow


class TrigramBuilder(SpillingBuilder):
    """Builds the index of one column."""

    def __init__(self, column: IndexedColumn) -> None:
        groups = [num_blocks([n]) for n in column.group_rows]
        self._type = type_of(column.leaf)
        self._first_blocks = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)
        self._blocks = int(self._first_blocks[-1])
        self._used = np.zeros(SLOTS, np.bool_)
        self._spilled = SpilledEntries(np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of entries in memory."""
        return self._spilled.nbytes

    def spill(self) -> None:
        """Let go of what is held in memory: it waits in a file."""
        self._spilled.spill()

    def collect(self) -> Generator[None, Any, I64]:
        """The slots of a row group with their blocks, in order."""
        present = np.zeros(
            SLOTS + 1, np.uint8
        )  # in the block that is being read; the last stands for no slot
        block, found = 0, [np.empty(0, np.int64)]
        while (page := (yield)) is not None:
            data, ends = _texts(stored(page.raw, self._type))
            first, stop = page.first_row, page.first_row + page.num_rows
            for start in range(first - first % BLOCK_ROWS, stop, BLOCK_ROWS):
                if start // BLOCK_ROWS != block:
                    found.append(_taken(present) << BLOCK_BITS | block)
                    block = start // BLOCK_ROWS
                low, high = max(start, first) - first, min(start + BLOCK_ROWS, stop) - first
                _mark(present, data, ends[low : high + 1])
        found.append(_taken(present) << BLOCK_BITS | block)
        return np.sort(np.concatenate(found))

    def add(self, row_group: int, part: I64) -> None:
        """Take the slots of a row group."""
        slots = part >> BLOCK_BITS
        self._used[slots] = True
        counts = np.bincount(slots // PART_SLOTS, minlength=SLOTS // PART_SLOTS)
        self._spilled.add(part + self._first_blocks[row_group], counts)

    def finish(self) -> bytearray:
        """The body of the index. NotBuiltError: it would be too large."""
        used = int(np.count_nonzero(self._used))
        bits = max(MIN_SLOT_BITS, min(MAX_SLOT_BITS, (SPARE * used).bit_length()))
        with closing(self._spilled):
            return body(bits, self._blocks, self._parts(bits))

    def _parts(self, bits: int) -> Iterator[tuple[int, bytes]]:
        """How many slots each part has, and its bytes."""
        sets: list[I64] = []
        size, total = 0, HEAD.size
        last = (1 << bits) - 1
        for slot, found in enumerate(self._each_slot(bits)):
            sets.append(found)
            size += min(2 * len(found) + 4, self._blocks // 8 + 1)
            if size >= PART_BYTES or slot == last:
                data = part_bytes(sets, self._blocks)
                total += len(data) + PART.itemsize
                if total > MAX_BODY_BYTES:
                    raise NotBuiltError(f"it would have more than {format_size(MAX_BODY_BYTES)}")
                yield len(sets), data
                sets, size = [], 0

    def _each_slot(self, bits: int) -> Iterator[I64]:
        """The blocks of each slot; slots of fewer bits are several of the others together."""
        spare = MAX_SLOT_BITS - bits
        for part in range(SLOTS // PART_SLOTS):
            several = np.concatenate([np.empty(0, np.int64), *self._spilled.of_part(part)])
            slots, blocks = several >> (BLOCK_BITS + spare), several & ((1 << BLOCK_BITS) - 1)
            keys = distinct_numbers(slots << BLOCK_BITS | blocks)
            first = part * PART_SLOTS >> spare
            wanted = np.arange(first, first + (PART_SLOTS >> spare) + 1, dtype=np.int64)
            limits = np.searchsorted(keys, wanted << BLOCK_BITS)
            for low, high in pairwise(limits.tolist()):
                yield keys[low:high] & ((1 << BLOCK_BITS) - 1)


def _taken(present: U8) -> I64:
    """The slots that are marked; the marks are removed."""
    found = np.flatnonzero(present[:-1])
    present[:] = 0
    return found


def _texts(values: pa.Array) -> tuple[U8, I64]:
    """The bytes of texts one behind the other, and where each ends, from 0; a null has none."""
    values = pc.fill_null(values.cast(pa.large_binary()), b"")
    _, ends, data = values.buffers()
    n = len(values)
    offsets = np.frombuffer(ends, np.int64, values.offset + n + 1)[values.offset :]
    return np.frombuffer(data or b"", np.uint8), offsets


def _mark(present: U8, data: U8, ends: I64) -> None:
    """Mark the slots of the texts that lie between `ends`."""
    first, stop = int(ends[0]), int(ends[-1])
    for at in range(first, stop - GRAM + 1, PIECE):
        high = min(at + PIECE + GRAM - 1, stop)
        slots = slots_of(data[at:high])
        low_end, high_end = np.searchsorted(ends, [at + 1, high])
        inner = ends[low_end:high_end]
        for before in (
            1,
            2,
        ):  # three bytes that begin so many before the end of a text reach into the next one
            across = inner - at - before
            across = across[(across >= 0) & (across < len(slots))]
            slots[across] = SLOTS
        present[slots] = 1
