"""Bloom filters (BloomFilter.md): where one lies, which of its blocks are read, and whether they hold hashes of values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pageseek._core import bloom as core
from pageseek.base.records import dataclass
from pageseek.format.checksums import ALTERED, SUM, filter_key, of_pieces, piece_of, sums_size
from pageseek.format.chunks import chunk_range
from pageseek.format.embedded import BLOOM, InvalidIndexError
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.io.range_requests import Asking, Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.protocol import PruneContext

HEADER_BYTES = 64  # bytes that hold any header with the fields of the format
PLACE = "place of a Bloom filter"  # among the indexes that a file keeps
PLACE_BYTES = 300  # memory of one
WORTH = 4096  # bytes read in one piece that cost as much as a block read by itself


@dataclass(frozen=True, slots=True)
class Place:
    """Where a filter lies.

    `length`: its bytes, if the footer has them. `bits`: the bytes of its bitset, if its header has only the fields of the
    format. `piece`: the bytes of the bitset that each checksum behind it covers, 0 without checksums. `known`: its header was
    read, and says the same.
    """

    offset: int
    length: int | None
    bits: int | None
    piece: int
    known: bool = False

    @property
    def total(self) -> int:
        """Bytes of the filter and its checksums."""
        assert self.length is not None and self.bits is not None
        return self.length + sums_size(self.bits, self.piece)

    def cost(self, hashes: bytes) -> int:
        """The bytes that are read to look up hashes: single blocks, or the whole filter if it is small."""
        n = len(hashes) // 8
        if self.piece:
            few = _by_blocks(self.total, hashes)
            return HEADER_BYTES + n * (self.piece + SUM) if few else self.total
        if self.length is None or (self.bits is not None and _by_blocks(self.bits, hashes)):
            return HEADER_BYTES * (not self.known) + n * int(core.BLOCK)
        return self.length


def place_of(context: PruneContext, chunk: Any, leaf: Leaf) -> Place:
    """Where the filter of a chunk lies, which the file keeps. InvalidIndexError: it cannot lie there."""
    key = PLACE, context.row_group, leaf.index
    found: Place | None = context.file.indexes.get(key)
    if found is None:
        found = _place_of(context, chunk)
        context.file.keep_index(key, found, PLACE_BYTES)
    return found


def _place_of(context: PruneContext, chunk: Any) -> Place:
    offset, length = chunk.bloom_filter_offset, chunk.bloom_filter_length
    start, stop = chunk_range(chunk)
    least = core.BLOCK + 2 if length == ABSENT else length
    if offset < 4 or least <= core.BLOCK or offset + least > context.file.footer_start:
        raise InvalidIndexError(f"{least} bytes at {offset} are no place for it")
    if offset < stop and start < offset + least:
        raise InvalidIndexError(f"at byte {offset} lie the pages of the column")
    bits = None if length == ABSENT else _usual_bitset(length)
    piece, entry = 0, context.file.attached_with_sums(BLOOM, offset)
    if entry is not None:
        try:
            if bits is None:
                raise InvalidIndexError("its length is not one of a filter that was attached")
            piece = piece_of(entry, offset, length, bits)
        except InvalidIndexError:
            if not context.file.has_copied_entries:
                raise
    return Place(offset, None if length == ABSENT else length, bits, piece)


def _usual_bitset(length: int) -> int | None:
    """Bytes of the bitset of a filter that takes `length` bytes with its header, if that has only the fields of the format."""
    for digits in range(1, 6):  # bytes of the varint of the size; the rest of a header takes 14
        size = length - 14 - digits
        if size > 0 and size % core.BLOCK == 0 and (2 * size).bit_length() <= 7 * digits:
            return size if (2 * size).bit_length() > 7 * (digits - 1) else None
    return None


def _by_blocks(size: int, hashes: bytes) -> bool:
    """Whether single blocks of a bitset are read, and not all of it."""
    return bool(len(hashes) // 8 * WORTH < size)


def is_absent(context: PruneContext, test: BoundLeaf, place: Place, hashes: bytes) -> Asking[bool]:
    """Whether none of the hashes was inserted. CoreError or InvalidIndexError: the filter cannot be trusted."""
    return (_is_absent_checked if place.piece else _is_absent)(context, test, place, hashes)


def _is_absent(context: PruneContext, test: BoundLeaf, place: Place, hashes: bytes) -> Asking[bool]:
    offset, length, size = place.offset, place.length, place.bits
    if place.known and size is not None and _by_blocks(size, hashes):
        assert length is not None
        blocks, at = core.blocks(hashes, size)
        found = yield _wanted(offset + length - size, blocks)
        return _none_in(found, at, hashes)
    end = context.file.footer_start
    first = min(HEADER_BYTES, end - offset) if length is None else length
    wanted: Wanted = []
    at = b""
    if length is not None and size is not None and _by_blocks(size, hashes):
        first = length - size
        blocks, at = core.blocks(hashes, size)
        wanted = _wanted(offset + first, blocks)
    head, *found = yield [(offset, first), *wanted]
    if not head.nbytes:
        raise InvalidIndexError("its bytes could not be read")
    guess = size
    header, size = core.header(head)
    if length is not None and header + size != length:
        raise InvalidIndexError(f"{header + size} bytes by its header, {length} by the footer")
    start, stop = chunk_range(context.file.chunk(context.row_group, test.leaf))
    if header + size > end - offset or (offset < stop and start < offset + header + size):
        raise InvalidIndexError(f"its {header + size} bytes at {offset} have no room")
    _refuse_large(context, size)
    if length is not None and guess == size:
        key = PLACE, context.row_group, test.leaf.index
        context.file.keep_index(key, replace(place, known=True), 0)
    if _by_blocks(size, hashes):
        if not found or guess != size:
            blocks, at = core.blocks(hashes, size)
            found = yield _wanted(offset + header, blocks)
        return _none_in(found, at, hashes)
    bitset = head[header:]
    if bitset.nbytes < size:
        (bitset,) = yield [(offset + header, size)]
    bitset = bitset[:size]
    if bitset.nbytes != size:
        raise InvalidIndexError("its bytes could not be read")
    if not np.frombuffer(bitset, np.uint8).any() and _has_values(context, test):
        raise InvalidIndexError("it is empty, and the column is not")
    return bool(core.check(bitset, core.places(hashes, size), hashes) == 0)


def _wanted(start: int, blocks: list[int]) -> Wanted:
    """The blocks of a bitset that begins there."""
    return [(start + at, core.BLOCK) for at in blocks]


def _none_in(blocks: list[memoryview], at: bytes, hashes: bytes) -> bool:
    """Whether blocks have none of the hashes. `at`: where in them the block of each begins."""
    if any(block.nbytes != core.BLOCK for block in blocks):
        raise InvalidIndexError("its bytes could not be read")
    return bool(core.check(b"".join(blocks), at, hashes) == 0)


def _is_absent_checked(
    context: PruneContext, test: BoundLeaf, place: Place, hashes: bytes
) -> Asking[bool]:
    """`_is_absent` of a filter with checksums, which are read with the pieces that they cover."""
    offset, length, size, piece = place.offset, place.length, place.bits, place.piece
    assert length is not None and size is not None
    _refuse_large(context, size)
    head, at = length - size, _places(hashes, size)
    bits: bytes | memoryview
    sums: bytes | memoryview
    if _by_blocks(place.total, hashes):
        numbers, kept = np.unique(at // piece, return_inverse=True)
        at = kept.astype(np.uint64) * piece + at % piece
        pieces = [(i * piece, min(piece, size - i * piece)) for i in numbers.tolist()]
        wanted = [(offset, head)]
        wanted += [(offset + head + begin, nbytes) for begin, nbytes in pieces]
        wanted += [(offset + length + SUM * (begin // piece), SUM) for begin, _ in pieces]
        header, *found = yield wanted
        bits, sums = b"".join(found[: len(pieces)]), b"".join(found[len(pieces) :])
    else:
        (whole,) = yield [(offset, place.total)]
        header, bits, sums = whole[:head], whole[head:length], whole[length:]
    declared = core.header(header)
    start, _ = chunk_range(context.file.chunk(context.row_group, test.leaf))
    altered = of_pieces(bits, filter_key(header, start), piece) != sums
    if altered and not context.file.has_copied_entries:
        raise InvalidIndexError(ALTERED)
    if declared != (head, size):
        raise InvalidIndexError(f"{sum(declared)} bytes by its header, {length} by the footer")
    return bool(core.check(bits, at, hashes) == 0)


def _refuse_large(context: PruneContext, size: int) -> None:
    if size > context.file.max_metadata_bytes:
        raise InvalidIndexError(f"its {size} bytes are more than max_metadata_bytes")


def _has_values(context: PruneContext, test: BoundLeaf) -> bool:
    nulls = context.file.null_count(context.row_group, test.leaf)
    return nulls is None or nulls < context.file.group_rows[context.row_group]


def _places(hashes: bytes, size: int) -> Any:
    return np.frombuffer(core.places(hashes, size), np.uint64)
