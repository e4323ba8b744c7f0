"""Split-block Bloom filters of column chunks, sized by their rate of false positives (BloomFilter.md)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pageseek._core import bloom as core
from pageseek._core import build
from pageseek.base.errors import UnsupportedError
from pageseek.format.checksums import filter_key, of_pieces
from pageseek.format.chunks import chunk_range
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    BOOLEAN,
    BYTE_ARRAY,
    FIXED,
    INT96,
    K_F16,
    K_F32,
    L_DECIMAL,
    L_FLOAT16,
    PHYSICAL_NAMES,
    logical_of,
)
from pageseek.index.page_reader import Chunk, Page
from pageseek.index.page_values import check_width

RATE = 0.01  # of false positives, if the caller gives none
MIN_RATE = 1e-9
MAX_FILTER_BYTES = 128 << 20  # bytes of a filter
DIGITS = 38  # of a decimal; engines (DuckDB) read those of more as DOUBLE, and look for the bytes of that


def blocks_for(values: int, rate: float) -> int:
    """The blocks, a power of two, in which that many different values have about that rate of false positives at most."""
    bits = -8 * values / math.log(1 - rate ** (1 / 8))
    blocks = max(math.ceil(bits / (8 * build.BLOCK) * 1.1), 1)  # some blocks are fuller than others
    return int(min(1 << (blocks - 1).bit_length(), MAX_FILTER_BYTES // build.BLOCK))


def is_half(leaf: Leaf) -> bool:
    """Whether its values are FLOAT16, which engines look for as FLOAT, too."""
    return leaf.element.type == FIXED and logical_of(leaf.element)[0] == L_FLOAT16


def bytes_for(leaf: Leaf, chunk: Any, rate: float) -> int:
    """The bytes of the filter while a chunk is read. `chunk`: its record in the footer."""
    values = max(min(chunk.num_values, MAX_FILTER_BYTES), 1)
    return blocks_for(2 * values if is_half(leaf) else values, rate) * int(build.BLOCK)


def check_rate(name: str, rate: float) -> None:
    """Raise ValueError for a rate of false positives that cannot be one. `name`: of the column."""
    if not isinstance(rate, int | float) or not MIN_RATE <= rate < 1:
        raise ValueError(
            f"column {name!r}: a false-positive rate of {rate!r}: at least {MIN_RATE} and below 1, such as {RATE}"
        )


def check(leaf: Leaf, rate: float) -> None:
    """Raise UnsupportedError where values of a leaf have no hash of their own, ValueError for a rate that cannot be one."""
    check_rate(leaf.name, rate)
    check_width(leaf)
    physical = leaf.element.type
    what = PHYSICAL_NAMES[physical] if physical in (BOOLEAN, INT96) else ""
    logical, _, digits = logical_of(leaf.element)
    if logical == L_DECIMAL:
        if physical == BYTE_ARRAY:
            what = "DECIMAL in BYTE_ARRAY"
        elif digits > DIGITS:
            what = f"DECIMAL of more than {DIGITS} digits"
    if what:
        raise UnsupportedError(
            f"column {leaf.name!r}: no Bloom filter of {what}; leave it out of bloom=[...]"
        )


class BloomBuilder:
    """Takes in the pages of one chunk."""

    def __init__(self, chunk: Chunk, rate: float) -> None:
        self._kind, self._width, self._rate = chunk.kind, chunk.width, rate
        self._place = chunk_range(chunk.metadata)[0]
        self._half = is_half(chunk.leaf)
        if self._half:  # as floats, so that a zero is inserted with both signs
            self._kind, self._width = K_F16, 0
        self._filter = build.BloomFilter(bytes_for(chunk.leaf, chunk.metadata, rate) // build.BLOCK)

    def take(self, page: Page) -> None:
        assert page.values is not None and self._kind is not None
        self._filter.insert(self._kind, self._width, page.values)
        if self._half:  # engines without such a type (DuckDB) read FLOAT, and look for its bytes
            wide = np.frombuffer(page.values.data, "<f2").astype("<f4")
            self._filter.insert(K_F32, 0, page.values._replace(data=wide))

    def done(self) -> tuple[bytes, bytes]:
        """Header and bits, and the checksums of the bits. The filter is made as small as the rate allows for its values."""
        self._filter.shrink(self._rate)
        made = bytes(self._filter.to_bytes())
        header, _ = core.header(made)
        bits = memoryview(made)
        return made, of_pieces(bits[header:], filter_key(bits[:header], self._place))
