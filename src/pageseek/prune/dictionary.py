"""Row groups against the dictionaries of their column chunks.

If every data page is dictionary-encoded, as the encoding_stats of the chunk say (parquet.thrift, PageEncodingStats), the
dictionary has every value but null, and perhaps some that no row has. If no entry passes a test, no row passes; if every
entry passes, every row passes that is not null.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek._core.pages import DICTIONARY_PAGE
from pageseek.base.errors import PageseekError
from pageseek.base.log import not_trusted
from pageseek.format.chunks import Chunk, has_codes_only, page_header
from pageseek.format.codecs import decompressor
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import OffsetIndex
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    INT96,
    K_BYTES,
    K_LARGE_BYTES,
    LeafType,
)
from pageseek.io.range_requests import Asking, DecodePages, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.chunk_pruner import (
    NONE_PASSES,
    InvalidIndexError,
    bytes_at_stake,
    ignored,
    placed_chunk,
)
from pageseek.prune.protocol import Price, Proof, PruneContext

HEADER_BYTES = 256  # bytes that hold most page headers
LARGEST_DICTIONARY = 16 << 20  # bytes of a dictionary, decompressed, that is read at most
MOST_ENTRIES = LARGEST_DICTIONARY // 4  # its entries at most
WIDEST = 16  # bytes that an entry may take beyond those that it has in the page
FEW_LITERALS = 16  # literals of IN that leave few values to pass
WIDTHS = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}  # of an entry, by its physical type
MARGIN = 8  # a dictionary has to be so much smaller than the pages where many values would pass
_CODED = Chunk._fields.index("dictionary_data_pages")
# encodings of dictionaries, codes and levels: PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY
_OF_CODES = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8

# of a dictionary page: its first byte, its length if that is known, the end of the chunk, and the offset index
_Place = tuple[int, int | None, int, OffsetIndex | None]


class DictionaryPruner:
    """Rules out row groups, and proves them, by the dictionaries of their column chunks."""

    name = "dictionary"
    cheap, whole, coarse = False, False, True
    patterns = False

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether all data pages of some chunk of the column may be dictionary-encoded."""
        if leaf.group or leaf.max_rep:
            return False
        try:
            return bool((file.figures(leaf)[:, _CODED] > 0).any())
        except PageseekError:  # of a row group that may not be read
            return True

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """The bytes of the dictionary page, None where it proves nothing. It is decoded even where it is in memory, so it has
        to be smaller than the pages that it may save.
        """
        place = _place(context, test)
        if place is None:
            return None
        start, length, stop, offsets = place
        size = HEADER_BYTES if length is None else length
        at_stake = bytes_at_stake(context.ranges, start, stop, offsets)
        pays = size * (1 if _asks_for_few(test) else MARGIN) < at_stake
        return Price(context.file.to_fetch(start, size), size, pays, at_stake)

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Asking[list[Proof | None]]:
        """Read the dictionary of each column that is tested, and put its entries to the tests."""
        places: dict[tuple[tuple[int, int], LeafType], _Place] = {}
        members: dict[tuple[tuple[int, int], LeafType], list[int]] = {}
        for i, test in enumerate(tests):
            key = test.leaf.key, test.leaf_type
            place = _place(context, test)
            if place is not None:
                places[key] = place
                members.setdefault(key, []).append(i)
        proofs: list[Proof | None] = [None] * len(tests)
        asking = [
            _prune(context, [tests[i] for i in members[key]], place)
            for key, place in places.items()
        ]
        for numbers, found in zip(members.values(), (yield from together(asking)), strict=True):
            for i, proof in zip(numbers, found, strict=True):
                proofs[i] = proof
        return proofs


def _asks_for_few(test: BoundLeaf) -> bool:
    """Whether so few values pass a test that a dictionary of many entries is likely to have none of them."""
    if test.op == rows.OP_IN:
        return not test.negate and test.literals[0] <= FEW_LITERALS
    return test.op == (rows.OP_NE if test.negate else rows.OP_EQ)


def _place(context: PruneContext, test: BoundLeaf) -> _Place | None:
    """Where the dictionary page lies; None where it can prove nothing of a test."""
    leaf = test.leaf
    if test.op == rows.OP_IS_NULL or leaf.group or leaf.max_rep or test.leaf_type.is_null:
        return None
    placed = placed_chunk(context, leaf)
    if placed is None:
        return None
    chunk, start, stop, offsets = placed
    if (
        not has_codes_only(chunk)
        or chunk.dictionary_data_pages <= 0
        or chunk.encodings & ~_OF_CODES
    ):
        return None
    if offsets is None:
        length = chunk.data_page_offset - start
    elif offsets.num_pages != chunk.dictionary_data_pages:
        return None  # there are pages beyond those that the statistics of encodings count
    else:
        length = offsets.start - start
    return start, length if 0 < length < stop - start else None, stop, offsets


def _prune(
    context: PruneContext, tests: Sequence[BoundLeaf], place: _Place
) -> Asking[list[Proof | None]]:
    """Put the entries of a leaf's dictionary to its tests."""
    test = tests[0]
    try:
        page = yield from _page(context, place)
        if page is None:
            return [None] * len(tests)
        n, passing = yield from _passing(context, tests, page)
        proofs = [
            _proof(context, one, n, passed) for one, passed in zip(tests, passing, strict=True)
        ]
        if context.kept is not None and not all(proof is NONE_PASSES for proof in proofs):
            context.kept.put(place[0], page)
        return proofs
    except (PageseekError, InvalidIndexError) as error:
        text = ignored(context.file, context.row_group, test.leaf, "dictionary", error)
        not_trusted(text, context.report)
        return [None] * len(tests)


def _page(context: PruneContext, place: _Place) -> Asking[memoryview | None]:
    """The bytes of the dictionary page; None where they turn out to be no fewer than those that it can save."""
    start, length, stop, offsets = place
    if length is None:
        (head,) = yield [(start, min(HEADER_BYTES, stop - start))]
        found = page_header(head, 0, lambda: "dictionary", start)
        length = found.header_length + found.compressed_size
        if found.type != DICTIONARY_PAGE or length > stop - start:
            raise InvalidIndexError(f"no dictionary page at byte {start}")
        if length >= bytes_at_stake(context.ranges, start, stop, offsets):
            return None
    page: memoryview
    (page,) = yield [(start, length)]
    if page.nbytes != length:
        raise InvalidIndexError("its bytes could not be read")
    return page


def _passing(
    context: PruneContext, tests: Sequence[BoundLeaf], page: memoryview
) -> Asking[tuple[int, list[int]]]:
    """The number of entries, and how many of them pass each test."""
    test = tests[0]
    leaf: Leaf = test.leaf
    chunk = context.file.chunk(context.row_group, leaf)
    codec, decompress = decompressor(chunk.codec)
    new_decoder = partial(
        core.LeafDecoder,
        test.leaf_type.core,
        0,
        0,
        codec=codec,
        decompress=decompress,
        max_page=LARGEST_DICTIONARY,
        likely_rows=page.nbytes,
        entries_only=True,
    )
    decoder = new_decoder()
    decoder.head(page)
    if decoder.stop != page.nbytes:  # the scan, given the kept page, would not see the rest
        raise InvalidIndexError("more than it lies before the first page")
    n = decoder.num_values
    size = page_header(page, 0, lambda: "dictionary", 0).uncompressed_size
    if n == 0:
        if size:
            raise InvalidIndexError(f"it has no entries, and {size} bytes")
        nulls = context.file.null_count(context.row_group, leaf)
        if nulls is not None and nulls < chunk.num_values:
            raise InvalidIndexError("it is empty, and the column is not")
        return 0, [0] * len(tests)
    if n > MOST_ENTRIES:
        raise InvalidIndexError(f"its {n} entries are too many")
    memory, alone = min(size, LARGEST_DICTIONARY) + WIDEST * n, None
    if len(tests) == 1 and _width(leaf) is not None:  # else values or offsets are wanted
        from pageseek.predicate.row_tests import row_tests  # late: for dictionaries alone

        alone = row_tests(test, test.leaf_type, n, keeps=False)
    if alone is not None:
        decoder, memory = new_decoder(tests=alone), n // 8  # a bit for each entry
    # those of all row groups by one call, on several threads
    (found,) = yield DecodePages(
        [(decoder, [(page, 0, n)], rows.RowRanges.all(n).buffers, 0, None, False)],
        page.nbytes,
        memory,
    )
    if found is not None and decoder.passing is not None:
        made, passed, _ = decoder.passing
        _check_entries(test, n, made, None, size)
        return n, [passed]
    if found is None:  # which a second try names, by another decoder: this one may have taken rows
        decoder = new_decoder()
        decoder.head(page)
        found = decoder.entries()
    made, _, _, offsets, values = found
    _check_entries(test, n, made, offsets, size)
    return n, [_count(one, n, values, offsets) for one in tests]


def _check_entries(test: BoundLeaf, n: int, made: int, offsets: Any, size: int) -> None:
    """InvalidIndexError unless n entries were made, and are all that is in a page of so many bytes."""
    if made != n:
        raise InvalidIndexError(f"{made} of {n} entries")
    if not _fill(test, n, offsets, size):  # codes may stand for entries that the header leaves out
        raise InvalidIndexError(f"its {n} entries do not fill its {size} bytes")


def _width(leaf: Leaf) -> int | None:
    """The bytes of an entry in the page; None for byte strings."""
    element = leaf.element
    return element.type_length if element.type == FIXED else WIDTHS.get(element.type)


def _fill(test: BoundLeaf, n: int, offsets: Any, size: int) -> bool:
    """Whether entries are all that is in a page of so many bytes."""
    width, kind = _width(test.leaf), test.leaf_type.kind
    if width is not None:
        return n * width == size
    if kind not in (K_BYTES, K_LARGE_BYTES):  # numbers of any length, which are converted
        return True
    ends = memoryview(offsets).cast("B").cast("i" if kind == K_BYTES else "q")
    return 4 * n + ends[n] == size


def _count(test: BoundLeaf, n: int, values: Any, offsets: Any) -> int:
    """How many of n entries pass a test."""
    leaf_type = test.leaf_type
    return rows.compare(
        leaf_type.kind, leaf_type.width, n, None, values, offsets,
        test.op, test.negate, test.against(n), test.nan,
    )[1]  # fmt: skip


def _proof(context: PruneContext, test: BoundLeaf, n: int, passed: int) -> Proof | None:
    """What n entries prove of the rows, of which so many pass a test."""
    if passed == 0:
        return NONE_PASSES
    if passed == n and context.file.null_count(context.row_group, test.leaf) == 0:
        every = rows.RowRanges.all(context.file.group_rows[context.row_group])
        return Proof(every, every)
    return None
