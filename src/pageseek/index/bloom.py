"""Split-block Bloom filters of column chunks, sized by what they are to be wrong about (BloomFilter.md)."""

from __future__ import annotations

import math

from pageseek._core import build
from pageseek.errors import UnsupportedError
from pageseek.index.distinct import check_width
from pageseek.index.pages import Chunk, Page
from pageseek.schema import Leaf
from pageseek.types import (
    BOOLEAN,
    BYTE_ARRAY,
    FIXED,
    INT96,
    K_F16,
    L_DECIMAL,
    L_FLOAT16,
    PHYSICAL_NAMES,
    logical_of,
)

RATE = 0.01  # of values that are not there and are found all the same
LARGEST = 128 << 20  # bytes of a filter


def blocks_for(values: int, rate: float) -> int:
    """Blocks, a power of two, in which so many different values are wrong at most about that often."""
    bits = -8 * values / math.log(1 - rate ** (1 / 8))
    blocks = max(math.ceil(bits / (8 * build.BLOCK) * 1.1), 1)  # some blocks are fuller than others
    return int(min(1 << (blocks - 1).bit_length(), LARGEST // build.BLOCK))


def check(leaf: Leaf, rate: float) -> None:
    """Raise UnsupportedError where values of a leaf have no hash of their own, ValueError for a rate that is none."""
    if not 1e-9 <= rate < 1:
        raise ValueError(f"a false-positive rate of {rate!r}: above 0 and below 1, such as {RATE}")
    check_width(leaf)
    physical = leaf.element.type
    several = physical == BYTE_ARRAY and logical_of(leaf.element)[0] == L_DECIMAL
    if physical in (BOOLEAN, INT96) or several:
        what = "DECIMAL in BYTE_ARRAY" if several else PHYSICAL_NAMES[physical]
        raise UnsupportedError(
            f"column {leaf.name!r}: no Bloom filter of {what}; leave it out of bloom=[...]"
        )


class BloomBuilder:
    """Takes in the pages of one chunk."""

    def __init__(self, chunk: Chunk, rate: float) -> None:
        self._kind, self._width, self._rate = chunk.kind, chunk.width, rate
        physical, logical = chunk.leaf.element.type, logical_of(chunk.leaf.element)[0]
        if physical == FIXED and logical == L_FLOAT16:  # of zeros both signs are inserted
            self._kind, self._width = K_F16, 0
        values = max(min(chunk.metadata.num_values, LARGEST), 1)
        self._filter = build.BloomFilter(blocks_for(values, rate))

    def take(self, page: Page) -> None:
        assert page.values is not None and self._kind is not None
        self._filter.insert(self._kind, self._width, page.values)

    def done(self) -> bytes:
        """Header and bits: as few as the rate allows for the values that there are."""
        self._filter.shrink(self._rate)
        return bytes(self._filter.to_bytes())
