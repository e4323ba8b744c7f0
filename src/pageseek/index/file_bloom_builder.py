"""Builds a `file_bloom` index: a Bloom filter of the different values of a column in the whole file."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import closing

import numpy as np

from pageseek._core.bloom import BLOCK
from pageseek.base.arrays import distinct_numbers
from pageseek.base.report import format_size
from pageseek.format.file_bloom_form import (
    SECTOR_BLOCKS,
    U64,
    bits_of,
    block_of,
    body,
    body_bytes,
)
from pageseek.index.lookup_builder import known_hashes
from pageseek.index.spilled import SpilledEntries, SpillingBuilder
from pageseek.prune.kind import NotBuiltError, PageValues

PARTS = 64  # of the hashes, in their order
AT_ONCE = 1 << 18  # hashes of neighboring parts that are put into the filter together
MAX_BODY_BYTES = 128 << 20
SPARE = 1.1  # some blocks are fuller than others


class FileBloomBuilder(SpillingBuilder):
    """Builds the index of one column. `rate`: how often it may be wrong about a value that is absent."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._spilled = SpilledEntries(np.uint64)

    @property
    def nbytes(self) -> int:
        """The bytes of hashes in memory."""
        return self._spilled.nbytes

    def spill(self) -> None:
        """Let go of what is held in memory: it waits in a file."""
        self._spilled.spill()

    def collect(self) -> Generator[None, PageValues | None, U64]:
        """The different hashes of a row group."""
        made = [np.empty(0, np.uint64)]
        while (page := (yield)) is not None:
            made.append(distinct_numbers(known_hashes(page.values)[0]))
        return distinct_numbers(np.concatenate(made))

    def add(self, row_group: int, part: U64) -> None:
        """Take the hashes of a row group."""
        self._spilled.add(part, np.bincount(block_of(part, PARTS), minlength=PARTS))

    def finish(self) -> bytes:
        """The body of the index. NotBuiltError: it would be too large."""
        with closing(self._spilled):
            runs = self._runs()
            made = list(self._hashes_of(runs)) if len(runs) == 1 else None
            values = sum(len(hashes) for hashes in made or self._hashes_of(runs))
            bits = -8 * values / math.log(1 - self._rate ** (1 / 8))
            blocks = max(math.ceil(bits / (8 * BLOCK) * SPARE), 1)
            if body_bytes(blocks) > MAX_BODY_BYTES:
                raise NotBuiltError(f"it would have {format_size(body_bytes(blocks))}")
            filled = np.zeros((blocks, BLOCK), np.uint8)
            for hashes in made or self._hashes_of(runs):
                if len(hashes):
                    of_each = block_of(hashes, blocks)
                    first, stop = int(of_each[0]), int(of_each[-1]) + 1
                    flags = np.zeros((stop - first) * 8 * BLOCK, np.uint8)
                    flags[((of_each - first)[:, None] * (8 * BLOCK) + bits_of(hashes)).ravel()] = 1
                    packed = np.packbits(flags, bitorder="little").reshape(-1, BLOCK)
                    filled[first:stop] |= packed  # runs meet within a block
            starts = range(0, blocks, SECTOR_BLOCKS)
            return body(blocks, (filled[i : i + SECTOR_BLOCKS].tobytes() for i in starts))

    def _runs(self) -> list[tuple[int, int]]:
        """Neighboring parts that are taken together: the first, and the end. Each run has AT_ONCE hashes or is one part."""
        runs, start, held = [], 0, 0
        for part, n in enumerate(self._spilled.counts(PARTS).tolist()):
            if held and held + n > AT_ONCE:
                runs.append((start, part))
                start, held = part, 0
            held += n
        return [*runs, (start, PARTS)]

    def _hashes_of(self, runs: list[tuple[int, int]]) -> Iterator[U64]:
        """The different hashes of each run, in order."""
        none = np.empty(0, np.uint64)
        for start, stop in runs:
            several = list(self._spilled.of_parts(start, stop))
            # those of one row group are in order, and different
            yield (
                several[0]
                if len(several) == 1
                else distinct_numbers(np.concatenate([none, *several]))
            )
