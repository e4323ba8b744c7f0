"""The body of a `file_bloom` index: one split-block Bloom filter (BloomFilter.md) of the hashes of a column of the file.

Its blocks lie in sectors with a checksum each, of which a probe reads one (docs/format.md).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pageseek._core import bloom as core
from pageseek._core.bloom import xxh64
from pageseek.base.late_modules import npt
from pageseek.format.embedded import InvalidIndexError

KIND, VERSION = "file_bloom", 1
HEAD = struct.Struct("<IIQ")  # blocks, zero, checksum of this
SECTOR_BLOCKS = 15
WORDS = 8  # of 4 bytes, in a block
MOST_VALUES = 256  # of an IN: a filter is wrong about one of more
CHECKSUM_BYTES = 4
SECTOR_BYTES = SECTOR_BLOCKS * core.BLOCK + CHECKSUM_BYTES
_SALTS = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    np.uint32,
)  # of the words of a block (BloomFilter.md)
U64 = npt.NDArray[np.uint64]


def block_of(hashes: U64, blocks: int | U64) -> npt.NDArray[np.int64]:
    """The block of each hash; in order, as the hashes are."""
    return ((hashes >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)).astype(np.int64)


def block_place(blocks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where in the body blocks begin."""
    return HEAD.size + blocks // SECTOR_BLOCKS * SECTOR_BYTES + blocks % SECTOR_BLOCKS * core.BLOCK


def blocks_at(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The bytes of blocks that begin at some places of the data; IndexError where one does not lie within."""
    # each row of the view is a block, so that a block is copied at once and not byte by byte
    every = np.lib.stride_tricks.as_strided(
        data, (max(len(data) - core.BLOCK + 1, 0), core.BLOCK), (1, 1), writeable=False
    )
    return every[at]


def bits_of(hashes: U64) -> npt.NDArray[np.int64]:
    """The bits that hashes set within their blocks, eight each."""
    keys = hashes.astype(np.uint32)[:, None] * _SALTS
    return (keys >> np.uint32(27)).astype(np.int64) + np.arange(0, 256, 32)


def words_of(hashes: U64) -> npt.NDArray[np.uint32]:
    """The words of a block with just the bits of each hash."""
    return np.uint32(1) << (bits_of(hashes) % 32).astype(np.uint32)


def body(blocks: int, sectors: Iterable[bytes]) -> bytes:
    """The body. `sectors`: the bytes of SECTOR_BLOCKS blocks each, the last of the rest."""
    head = HEAD.pack(blocks, 0, 0)[:-8]
    parts = [head, xxh64(head).to_bytes(8, "little")]
    for data in sectors:
        parts += data, (xxh64(data) & 0xFFFFFFFF).to_bytes(CHECKSUM_BYTES, "little")
    return b"".join(parts)


def body_bytes(blocks: Any) -> Any:
    """The bytes of a body; of an array of numbers of blocks, of each."""
    return HEAD.size + blocks * core.BLOCK + -(-blocks // SECTOR_BLOCKS) * CHECKSUM_BYTES


def blocks_in(start: memoryview, length: int) -> int:
    """The blocks of a body, by its first bytes. InvalidIndexError: it is none."""
    if start.nbytes < HEAD.size:
        raise InvalidIndexError("its head is cut short")
    blocks, zero, checksum = HEAD.unpack(start[: HEAD.size])
    if xxh64(start[: HEAD.size - 8]) != checksum or zero:
        raise InvalidIndexError("the checksum of its head differs")
    if not blocks or body_bytes(blocks) != length:
        raise InvalidIndexError(f"{blocks} blocks in {length} bytes")
    return int(blocks)


def place(sector: int, blocks: int) -> tuple[int, int]:
    """(offset in the body, length) of a sector."""
    n = min(SECTOR_BLOCKS, blocks - sector * SECTOR_BLOCKS)
    return HEAD.size + sector * SECTOR_BYTES, n * core.BLOCK + CHECKSUM_BYTES


def by_sector(hashes: U64, blocks: int) -> Iterator[tuple[int, U64]]:
    """The sectors of hashes that are in order, with their hashes."""
    if not len(hashes):
        return iter(())
    numbers, firsts = np.unique(block_of(hashes, blocks) // SECTOR_BLOCKS, return_index=True)
    return zip(numbers.tolist(), np.split(hashes, firsts[1:]), strict=True)


def present(hashes: U64, sector: int, blocks: int, data: memoryview) -> npt.NDArray[np.bool_]:
    """Which hashes of a sector may be in the filter. InvalidIndexError: its bytes are others."""
    content = data[:-CHECKSUM_BYTES]
    if xxh64(content) & 0xFFFFFFFF != int.from_bytes(data[-CHECKSUM_BYTES:], "little"):
        raise InvalidIndexError(f"the checksum of sector {sector} differs")
    words = np.frombuffer(content, "<u4").reshape(-1, WORDS)
    mine = words[block_of(hashes, blocks) - sector * SECTOR_BLOCKS]
    wanted = words_of(hashes)
    found: npt.NDArray[np.bool_] = ((mine & wanted) == wanted).all(axis=1)
    return found
