"""Builds a `lookup` index: hashes of all values with their rows, sorted into blocks. What does not fit into memory waits in a file."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pageseek._core.bloom import xxh64
from pageseek.base.report import format_size
from pageseek.format.lookup_form import (
    MAX_ENTRIES,
    U64,
    block_bytes,
    block_of,
    block_size,
    directory_bytes,
    directory_of,
    num_blocks,
    row_bits_of,
)
from pageseek.format.value_hashes import hashes_of
from pageseek.index.spilled import SpilledEntries, SpillingBuilder
from pageseek.prune.kind import IndexedColumn, NotBuiltError, PageValues

PART_BLOCKS = 256  # blocks that are made at a time
MAX_BODY_BYTES = 1 << 30
_TOO_LARGE = f"it would have more than {format_size(MAX_BODY_BYTES)}"
ENTRY = np.dtype([("hash", "<u8"), ("row", "<u8")])


class LookupBuilder(SpillingBuilder):
    """Builds the index of one column."""

    def __init__(self, column: IndexedColumn) -> None:
        self._first_rows = np.concatenate([[0], np.cumsum(column.group_rows)]).astype(np.int64)
        self._num_rows = int(self._first_rows[-1])
        self._blocks = num_blocks(self._num_rows)
        self._parts = -(-self._blocks // PART_BLOCKS)
        least = directory_bytes(self._num_rows) + self._blocks * int(block_size(0, 1))
        self._is_too_large = least > MAX_BODY_BYTES  # whatever the rows are
        # of each block
        self._entries = np.zeros(0 if self._is_too_large else self._blocks, np.int64)
        self._spilled = SpilledEntries(ENTRY)

    @property
    def nbytes(self) -> int:
        """The bytes of entries in memory."""
        return self._spilled.nbytes

    def spill(self) -> None:
        """Let go of what is held in memory: it waits in a file."""
        self._spilled.spill()

    def collect(self) -> Generator[None, PageValues | None, npt.NDArray[np.void]]:
        """The hashes and the rows of a row group, sorted by part."""
        hashes, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        while (page := (yield)) is not None:
            found, there = known_hashes(page.values)
            hashes.append(found)
            rows.append(page.first_row + np.flatnonzero(there))
        return self.entries(np.concatenate(hashes), np.concatenate(rows))

    def entries(self, hashes: U64, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
        """What `add` takes of a row group: hashes and rows, sorted by part."""
        made = np.empty(len(hashes), ENTRY)
        made["hash"], made["row"] = hashes, rows
        return made[np.argsort(self._part_of(hashes), kind="stable")]

    def _part_of(self, hashes: U64) -> npt.NDArray[np.int64]:
        return block_of(hashes, self._blocks) // PART_BLOCKS

    def add(self, row_group: int, part: npt.NDArray[np.void]) -> None:
        """Take the entries of a row group. NotBuiltError: a value has very many rows, or the file has."""
        if self._is_too_large:
            raise NotBuiltError(_TOO_LARGE)
        blocks = block_of(part["hash"], self._blocks)
        self._entries += np.bincount(blocks, minlength=self._blocks)
        if self._entries.max() > MAX_ENTRIES:
            raise NotBuiltError("some values have very many rows, which no lookup finds one by one")
        part["row"] += np.uint64(self._first_rows[row_group])
        self._spilled.add(part, np.bincount(blocks // PART_BLOCKS, minlength=self._parts))

    def finish(self) -> bytearray:
        """The body of the index. NotBuiltError: there are too many rows."""
        if self._is_too_large:
            raise NotBuiltError(_TOO_LARGE)
        row_bits = row_bits_of(self._num_rows)
        at = directory_bytes(self._num_rows)
        size = at + int(block_size(self._entries, row_bits).sum())
        if size > MAX_BODY_BYTES:
            raise NotBuiltError(f"it would have {format_size(size)}")
        made = bytearray(size)  # put together in place: it may be large
        blocks: list[tuple[int, int, int]] = []
        with closing(self._spilled):
            for hashes, rows in self._each_block():
                data = block_bytes(hashes, rows, row_bits)
                blocks.append((len(data), len(hashes), xxh64(data) & 0xFFFFFFFF))
                made[at : at + len(data)] = data
                at += len(data)
        total = int(self._entries.sum())
        start = directory_of(blocks, total, self._num_rows)
        made[: len(start)] = start
        return made

    def _each_block(self) -> Iterator[tuple[U64, npt.NDArray[np.int64]]]:
        """The hashes and rows of each block."""
        for part in range(self._parts):
            entries = np.concatenate([np.empty(0, ENTRY), *self._spilled.of_part(part)])
            order = np.argsort(block_of(entries["hash"], self._blocks), kind="stable")
            hashes, rows = entries["hash"][order], entries["row"][order].astype(np.int64)
            first = part * PART_BLOCKS
            counts = self._entries[first : first + PART_BLOCKS]
            for start, stop in pairwise([0, *np.cumsum(counts).tolist()]):
                yield hashes[start:stop], rows[start:stop]


def known_hashes(values: pa.Array) -> tuple[U64, npt.NDArray[np.bool_]]:
    """The hashes of the values that have one, and which do: those that are neither null nor NaN."""
    there = values.is_valid()
    if pa.types.is_floating(values.type):
        there = pc.fill_null(pc.invert(pc.is_nan(values)), False)
    flags: npt.NDArray[np.bool_] = there.to_numpy(zero_copy_only=False)
    return hashes_of(values if flags.all() else values.filter(there)), flags
