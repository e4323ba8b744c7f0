"""Row groups against the Bloom filters of their column chunks (BloomFilter.md).

A filter tells surely which values a chunk does not hold, so that `=` and IN can be ruled out where every literal
is absent; it knows nothing of nulls, ranges, or what is not equal. What is hashed are the bytes that the file
has, so that only values with one form each can be looked for: not numbers in BYTE_ARRAY, nor NaN, and of zeros
either sign.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from pageseek._core import bloom as core
from pageseek._core import rows
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.records import dataclass
from pageseek.format.checksums import ALTERED, SUM, filter_key, of_pieces, piece_of, sums_size
from pageseek.format.chunks import DICTIONARY_ENCODINGS, Chunk, chunk_range
from pageseek.format.embedded import BLOOM
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, K_I8, K_I16, K_U8, K_U16
from pageseek.io.range_requests import Wanted, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.predicate.in_literals import Listed
from pageseek.prune.chunk_pruner import (
    NONE_PASSES,
    InvalidIndexError,
    bytes_at_stake,
    chunk_of,
    ignored,
)
from pageseek.prune.protocol import Price, Proof, PruneContext

HEAD = 64  # bytes that a header is sure to lie in, unless it has fields that the format has not
FEW = 16  # literals that no filter is too small for
USUAL_RATE = 0.01  # of values that are absent and found, at which writers size filters, or below
WORTH = 4096  # bytes of a filter read at once that cost no more than a block read by itself
_OFFSET = Chunk._fields.index("bloom_filter_offset")
_NARROW = frozenset((K_I8, K_I16, K_U8, K_U16))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a filter lies, and its length where the footer has it. `bits`: of these those of the bitset, if its header has the
    fields of the format only. `piece`: the bytes of the bitset that each checksum behind it is of; 0 where it has none.
    """

    offset: int
    length: int | None
    bits: int | None
    piece: int

    @property
    def total(self) -> int:
        """Bytes of the filter and its checksums, if it has them."""
        assert self.length is not None and self.bits is not None
        return self.length + sums_size(self.bits, self.piece)


class BloomPruner:
    """Rules out row groups, for `=` and IN, by their Bloom filters."""

    name = "bloom_filter"
    cheap, whole, coarse = True, False, True

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether some chunk of the column has a filter."""
        if leaf.group or leaf.max_rep:
            return False
        try:
            return bool((file.figures(leaf)[:, _OFFSET] != ABSENT).any())
        except PageseekError:  # of a row group that may not be read
            return True

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """Of the filter, or of its blocks that would be read; None where that proves nothing."""
        found = _question(context, test)
        if found is None:
            return None
        place, hashes = found
        if not hashes:
            return Price(0)
        n, length = len(hashes) // 8, place.length
        if place.piece:
            few = _by_blocks(place.total, hashes)
            cost = HEAD + n * (place.piece + SUM) if few else place.total
        elif length is None or (place.bits is not None and _by_blocks(place.bits, hashes)):
            cost = HEAD + n * int(core.BLOCK)
        else:
            cost = length
        stake = bytes_at_stake(context, test.leaf)
        if n >= FEW:  # that each of many is found absent is unlikely, even if they are
            stake = int(stake * (1 - _rate(context, test.leaf, length)) ** n)
        fetched = context.to_fetch(place.offset, cost)
        return Price(fetched, 0, fetched < stake, stake)

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Ask for the blocks of the literals, or the whole filter where it is small."""
        return (yield from together([_prune(context, test) for test in tests]))


def _prune(
    context: PruneContext, test: BoundLeaf
) -> Generator[Wanted, list[memoryview], Proof | None]:
    found = _question(context, test)
    if found is None:
        return None
    place, hashes = found
    try:
        ask = _absent_for_sure if place.piece else _absent
        absent = not hashes or (yield from ask(context, test, place, hashes))
    except (CoreError, InvalidIndexError) as error:
        context.report.note(
            ignored(context.file, context.row_group, test.leaf, "Bloom filter", error)
        )
        return None
    return NONE_PASSES if absent else None


def _question(context: PruneContext, test: BoundLeaf) -> tuple[Place, bytes] | None:
    """Where the filter lies, and the hashes to look for in it; None where it can prove nothing of the test."""
    leaf, leaf_type = test.leaf, test.leaf_type
    asked = (rows.OP_NE,) if test.negate else (rows.OP_EQ, rows.OP_IN)  # NOT (x != 5) is x = 5
    if test.op not in asked or leaf.group or leaf.max_rep:
        return None
    chunk = None if leaf_type.is_null else chunk_of(context, leaf)
    if chunk is None or chunk.bloom_filter_offset == ABSENT or not core.hashable(leaf_type.core):
        return None
    if context.file.writer.omits_from_filters and chunk.encodings & DICTIONARY_ENCODINGS:
        return None
    hashes = _hashes(test)
    if hashes is None:
        return None
    try:
        place = _place(context, chunk)
    except InvalidIndexError as error:
        context.report.note(ignored(context.file, context.row_group, leaf, "Bloom filter", error))
        return None
    if leaf_type.kind in _NARROW and not _in_range(context, leaf):
        return None
    return place, hashes


def _rate(context: PruneContext, leaf: Leaf, length: int | None) -> float:
    """How often a filter is wrong about a value that is absent, by its size if all values of the chunk were different."""
    if length is None:
        return USUAL_RATE
    values = max(context.file.chunk(context.row_group, leaf).num_values, 1)
    return min(float((1 - math.exp(-values / length)) ** 8), USUAL_RATE)


def _hashes(test: BoundLeaf) -> bytes | None:
    """Of the literals; of a list once for all row groups."""
    if isinstance(test.literals, Listed):
        return test.literals.hashes(test.leaf_type.core)
    try:
        return core.hashes(test.leaf_type.core, test.literals)
    except CoreError:  # NaN
        return None


def _in_range(context: PruneContext, leaf: Leaf) -> bool:
    """Whether no value is greater than its type: that would be read as another one, and is hashed as it is."""
    try:
        said = context.file.chunk_values(context.row_group, leaf, context.options)
    except PageseekError:  # in the metadata of another row group
        return False
    return said.lower is not None


def _place(context: PruneContext, chunk: Any) -> Place:
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
    """Bytes of the bitset of a filter of so many bytes with the header, if it has the fields of the format only."""
    for digits in range(1, 6):  # of the varint that counts them; the rest of a header are 14 bytes
        size = length - 14 - digits
        if size > 0 and size % core.BLOCK == 0 and (2 * size).bit_length() <= 7 * digits:
            return size if (2 * size).bit_length() > 7 * (digits - 1) else None
    return None


def _by_blocks(size: int, hashes: bytes) -> bool:
    """Whether single blocks of a bitset are read rather than all of it."""
    return bool(len(hashes) // 8 * WORTH < size)


def _absent(
    context: PruneContext, test: BoundLeaf, place: Place, hashes: bytes
) -> Generator[Wanted, list[memoryview], bool]:
    """Whether none of the hashes was inserted; CoreError or InvalidIndexError where the filter cannot be trusted."""
    offset, length, guess = place.offset, place.length, place.bits
    end = context.file.footer_start
    first = min(HEAD, end - offset) if length is None else length
    wanted: Wanted = []
    if length is not None and guess is not None and _by_blocks(guess, hashes):
        first = length - guess
        wanted = _blocks(offset + first, guess, hashes)
    head, *blocks = yield [(offset, first), *wanted]
    if not head.nbytes:
        raise InvalidIndexError("its bytes could not be read")
    header, size = core.header(head)
    if length is not None and header + size != length:
        raise InvalidIndexError(f"{header + size} bytes by its header, {length} by the footer")
    start, stop = chunk_range(context.file.chunk(context.row_group, test.leaf))
    if header + size > end - offset or (offset < stop and start < offset + header + size):
        raise InvalidIndexError(f"its {header + size} bytes at {offset} have no room")
    _refuse_large(context, size)
    if _by_blocks(size, hashes):
        if not blocks or guess != size:
            blocks = yield _blocks(offset + header, size, hashes)
        at, kept = np.unique(_places(hashes, size), return_inverse=True)
        if any(block.nbytes != core.BLOCK for block in blocks) or len(blocks) != len(at):
            raise InvalidIndexError("its bytes could not be read")
        found = core.check(b"".join(blocks), (kept * core.BLOCK).astype(np.uint64), hashes)
        return bool(found == 0)
    bitset = head[header:]
    if bitset.nbytes < size:
        (bitset,) = yield [(offset + header, size)]
    bitset = bitset[:size]
    if bitset.nbytes != size:
        raise InvalidIndexError("its bytes could not be read")
    if not np.frombuffer(bitset, np.uint8).any() and _has_values(context, test):
        raise InvalidIndexError("it is empty, and the column is not")
    return bool(core.check(bitset, core.places(hashes, size), hashes) == 0)


def _absent_for_sure(
    context: PruneContext, test: BoundLeaf, place: Place, hashes: bytes
) -> Generator[Wanted, list[memoryview], bool]:
    """The same of a filter with checksums, which are read with what they are of."""
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
    told = core.header(header)
    start, _ = chunk_range(context.file.chunk(context.row_group, test.leaf))
    altered = of_pieces(bits, filter_key(header, start), piece) != sums
    if altered and not context.file.has_copied_entries:
        raise InvalidIndexError(ALTERED)
    if told != (head, size):
        raise InvalidIndexError(f"{sum(told)} bytes by its header, {length} by the footer")
    return bool(core.check(bits, at, hashes) == 0)


def _refuse_large(context: PruneContext, size: int) -> None:
    if size > context.file.max_metadata_bytes:
        raise InvalidIndexError(f"its {size} bytes are more than max_metadata_bytes")


def _has_values(context: PruneContext, test: BoundLeaf) -> bool:
    nulls = context.file.null_count(context.row_group, test.leaf)
    return nulls is None or nulls < context.file.group_rows[context.row_group]


def _places(hashes: bytes, size: int) -> Any:
    return np.frombuffer(core.places(hashes, size), np.uint64)


def _blocks(start: int, size: int, hashes: bytes) -> Wanted:
    """The blocks of a bitset that the hashes fall into, in order."""
    return [(start + at, core.BLOCK) for at in np.unique(_places(hashes, size)).tolist()]
