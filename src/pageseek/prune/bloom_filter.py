"""Row groups against the Bloom filters of their column chunks (BloomFilter.md).

A filter proves which values a chunk does not hold. It rules out a row group for `=` and IN if every literal is absent, and
proves nothing for nulls, ranges, or inequality. Writers hash the bytes of the file, so only values of a single form
can be looked up: no numbers in BYTE_ARRAY and no NaN. A zero is looked up with both signs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pageseek._core import bloom as core
from pageseek._core import rows
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.log import not_trusted
from pageseek.format.chunks import DICTIONARY_ENCODINGS, Chunk
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, K_I8, K_I16, K_U8, K_U16
from pageseek.io.range_requests import Asking, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.predicate.in_literals import Listed
from pageseek.prune.bloom_blocks import Place, is_absent, place_of
from pageseek.prune.chunk_pruner import (
    NONE_PASSES,
    InvalidIndexError,
    bytes_at_stake,
    ignored,
    placed_chunk,
)
from pageseek.prune.protocol import Price, Proof, PruneContext

MANY_LITERALS = 16  # from here on a filter may well find an absent value by mistake
USUAL_RATE = 0.01  # most filters find at most this share of absent values: writers size them so
_OFFSET = Chunk._fields.index("bloom_filter_offset")
_NARROW = frozenset((K_I8, K_I16, K_U8, K_U16))


class BloomPruner:
    """Rules out row groups, for `=` and IN, by their Bloom filters."""

    name = "bloom_filter"
    cheap, whole, coarse = True, False, True
    patterns = False

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether some chunk of the column has a filter."""
        if leaf.group or leaf.max_rep:
            return False
        try:
            return bool((file.figures(leaf)[:, _OFFSET] != ABSENT).any())
        except PageseekError:  # of a row group that may not be read
            return True

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """The bytes of the filter, or of its blocks that would be read; None where that proves nothing."""
        found = _question(context, test)
        if found is None:
            return None
        place, hashes = found
        if not hashes:
            return Price(0)
        placed = placed_chunk(context, test.leaf)
        assert placed is not None
        chunk, start, stop, offsets = placed
        n, at_stake = len(hashes) // 8, bytes_at_stake(context.ranges, start, stop, offsets)
        if n >= MANY_LITERALS:  # times the chance that none is found by mistake
            at_stake = int(at_stake * (1 - _rate(chunk.num_values, place.length)) ** n)
        fetched = context.to_fetch(place.offset, place.cost(hashes))
        return Price(fetched, 0, fetched < at_stake, at_stake)

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Asking[list[Proof | None]]:
        """Read the blocks of the literals, or the whole filter where it is small."""
        asking = [_prune(context, test) for test in tests]
        if len(asking) == 1:
            return [(yield from asking[0])]
        return (yield from together(asking))


def _prune(context: PruneContext, test: BoundLeaf) -> Asking[Proof | None]:
    found = _question(context, test)
    if found is None:
        return None
    place, hashes = found
    try:
        absent = not hashes or (yield from is_absent(context, test, place, hashes))
    except (CoreError, InvalidIndexError) as error:
        text = ignored(context.file, context.row_group, test.leaf, "Bloom filter", error)
        not_trusted(text, context.report)
        return None
    return NONE_PASSES if absent else None


def _question(context: PruneContext, test: BoundLeaf) -> tuple[Place, bytes] | None:
    """Where the filter lies, and the hashes to look up in it; None where it can prove nothing of the test."""
    leaf, leaf_type = test.leaf, test.leaf_type
    if not _asks_for_values(test):
        return None
    placed = placed_chunk(context, leaf)
    if placed is None or not core.hashable(leaf_type.core):
        return None
    chunk = placed[0]
    if chunk.bloom_filter_offset == ABSENT:
        return None
    if context.file.writer.omits_from_filters and chunk.encodings & DICTIONARY_ENCODINGS:
        return None
    hashes = _hashes(test)
    if hashes is None:
        return None
    try:
        place = place_of(context, chunk, leaf)
    except InvalidIndexError as error:
        text = ignored(context.file, context.row_group, leaf, "Bloom filter", error)
        not_trusted(text, context.report)
        return None
    if leaf_type.kind in _NARROW and not _in_range(context, leaf):
        return None
    return place, hashes


def _asks_for_values(test: BoundLeaf) -> bool:
    """Whether a test is `=` or IN of a column that may have filters."""
    equal = (rows.OP_NE,) if test.negate else (rows.OP_EQ, rows.OP_IN)  # NOT (x != 5) is x = 5
    leaf = test.leaf
    return test.op in equal and not (leaf.group or leaf.max_rep or test.leaf_type.is_null)


def filter_hashes(test: BoundLeaf) -> bytes | None:
    """The hashes of which a filter needs one, uint64 each; None where filters prove nothing by themselves."""
    leaf_type = test.leaf_type
    if not _asks_for_values(test) or leaf_type.kind in _NARROW or not core.hashable(leaf_type.core):
        return None
    return _hashes(test)


def _rate(num_values: int, length: int | None) -> float:
    """How often a filter is wrong about a value that is absent, by its size if all values of the chunk were different."""
    if length is None:
        return USUAL_RATE
    return min(float((1 - math.exp(-max(num_values, 1) / length)) ** 8), USUAL_RATE)


def _hashes(test: BoundLeaf) -> bytes | None:
    """The hashes of the literals. Those of a list are made once for all row groups."""
    if isinstance(test.literals, Listed):
        return test.literals.hashes(test.leaf_type.core)
    try:
        return core.hashes(test.leaf_type.core, test.literals)
    except CoreError:  # NaN
        return None


def _in_range(context: PruneContext, leaf: Leaf) -> bool:
    """Whether every value fits the column's type. A larger one is read as another value, but hashed as it is stored."""
    try:
        values = context.file.chunk_values(context.row_group, leaf, context.options)
    except PageseekError:  # the metadata of another row group cannot be read
        return False
    return values.lower is not None
