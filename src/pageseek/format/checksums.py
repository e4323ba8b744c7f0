"""Checksums of page indexes and Bloom filters that were attached: Parquet has none for them.

The form is that of docs/format.md. That of a page index is its last field, the extension that the format keeps free
(BinaryProtocolExtensions.md), which other readers pass over; those of a filter follow it. Each says of which chunk it is.
"""

from __future__ import annotations

from pageseek._core import bloom as core
from pageseek._core import metadata
from pageseek.format.embedded import InvalidIndexError, Pointer

FIELD = metadata.SUM_FIELD  # before the checksum: how the field begins, and its UUID
SUM = 8  # bytes of a checksum
PIECE_BYTES = 512  # bytes of a filter that have a checksum
MAX_PIECE_BYTES = 1 << 16  # bytes of a piece, at most
ALTERED = "its bytes are not those that were attached: the checksum differs"
GONE = "its bytes are not those that were attached: the checksum that it was attached with is not there"


def with_sum(made: bytes, place: int) -> bytes:
    """A ColumnIndex or OffsetIndex with its checksum. `place`: the first byte of its chunk."""
    body = made[:-1] + FIELD
    found: int = core.xxh64(body) ^ place
    return b"".join((body, found.to_bytes(SUM, "little"), b"\0"))


def filter_key(header: memoryview | bytes, place: int) -> int:
    """The number that enters the checksums of all pieces of a filter."""
    return (core.xxh64(header) ^ place) % (1 << 64)


def of_pieces(bits: memoryview | bytes, key: int, piece: int = PIECE_BYTES) -> bytes:
    """The checksums of a bitset."""
    return core.pieces(bits, piece, key)


def sums_size(bits: int, piece: int = PIECE_BYTES) -> int:
    """The bytes that the checksums of a bitset of `bits` bytes take."""
    return -(-bits // piece) * SUM


def piece_of(entry: Pointer, offset: int, length: int, bits: int) -> int:
    """The bytes that each checksum of an attached filter covers. `bits`: the bytes of the bitset among its `length` bytes.

    Raises InvalidIndexError if the entry contradicts itself.
    """
    piece = entry.sums
    if piece % core.BLOCK or not core.BLOCK <= piece <= MAX_PIECE_BYTES:
        raise InvalidIndexError(f"it has checksums of {piece} bytes each, which is not known")
    if offset + length + sums_size(bits, piece) > entry.offset + entry.length:
        raise InvalidIndexError("its checksums have no room where the file says that they are")
    return piece
