"""Row groups against the dictionaries of their column chunks.

Where every data page is of codes, as the encoding_stats of the chunk say (parquet.thrift, PageEncodingStats), the
dictionary has every value but null, and perhaps some that no row has: a test that no entry passes, no row does; one
that every entry passes, every row does that is not null.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek._core.pages import DICTIONARY_PAGE
from pageseek.base.errors import PageseekError
from pageseek.format.chunks import page_header
from pageseek.format.codecs import decompressor
from pageseek.format.schema import Leaf
from pageseek.format.types import Form
from pageseek.io.range_requests import Wanted, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.chunk_pruner import NONE_PASSES, DoubtError, at_stake, chunk_of, ignored
from pageseek.prune.protocol import Proof, Site

HEAD = 256  # bytes that a page header is likely to lie in
LARGEST = 16 << 20  # bytes of a dictionary, decompressed, that is looked at
MOST = LARGEST // 4  # entries
FEW = 16  # literals of IN
DOUBT = 8  # times a dictionary has to be smaller than the pages, where many values would pass
_OF_CODES = (
    1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8
)  # encodings beside them: of dictionary, levels


class DictionaryPruner:
    """Rules out row groups, and proves them, by the dictionaries of their column chunks."""

    name = "dictionary"
    cheap, whole, coarse = False, False, True

    def cost(self, site: Site, test: BoundLeaf) -> int | None:
        """Bytes of the dictionary page, or None where it proves nothing or is no less than what it can spare."""
        place = _place(site, test)
        if place is None:
            return None
        cost = HEAD if place[1] is None else place[1]
        doubt = 1 if _asks_for_few(test) else DOUBT
        return cost if cost * doubt < at_stake(site, test.leaf) else None

    def judge(
        self, site: Site, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Ask for the dictionary of each column that is tested, and put its entries to the tests."""
        columns: dict[tuple[tuple[int, int], Form], list[int]] = {}
        for i, test in enumerate(tests):
            if _place(site, test) is not None:
                columns.setdefault((test.leaf.key, test.form), []).append(i)
        proofs: list[Proof | None] = [None] * len(tests)
        asking = [_judge(site, [tests[i] for i in members]) for members in columns.values()]
        for members, found in zip(columns.values(), (yield from together(asking)), strict=True):
            for i, proof in zip(members, found, strict=True):
                proofs[i] = proof
        return proofs


def _asks_for_few(test: BoundLeaf) -> bool:
    """Whether a dictionary of many entries may well have none that passes: few values pass at all."""
    if test.op == rows.OP_IN:
        return not test.negate and test.literals[0] <= FEW
    return test.op == (rows.OP_NE if test.negate else rows.OP_EQ)


def _place(site: Site, test: BoundLeaf) -> tuple[int, int | None] | None:
    """Where the dictionary page lies, and its length as far as it is known; None where it can prove nothing."""
    leaf = test.leaf
    if test.op == rows.OP_IS_NULL or leaf.group or leaf.max_rep or test.form.is_null:
        return None
    chunk = chunk_of(site, leaf)
    if (
        chunk is None
        or chunk.encoding_stats != 1
        or chunk.other_data_pages != 0
        or chunk.dictionary_data_pages <= 0
        or chunk.encodings & ~_OF_CODES
    ):
        return None
    _, start, stop = site.file.placed_chunk(site.row_group, leaf)
    offsets = site.file.cached_offset_index(site.row_group, leaf)[1]
    if offsets is None:
        length = chunk.data_page_offset - start
    elif offsets.num_pages != chunk.dictionary_data_pages:
        return None  # pages that the statistics of encodings do not know
    else:
        length = offsets.start - start
    return start, length if 0 < length < stop - start else None


def _judge(
    site: Site, tests: Sequence[BoundLeaf]
) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
    """The tests of one leaf, by its dictionary."""
    test = tests[0]
    try:
        page = yield from _page(site, test)
        if page is None:
            return [None] * len(tests)
        entries = _entries(site, test, page)
        proofs = [_proof(site, one, entries) for one in tests]
        if site.kept is not None and not all(proof is NONE_PASSES for proof in proofs):
            start = site.file.placed_chunk(site.row_group, test.leaf)[1]
            site.kept.put(start, page)
        return proofs
    except (PageseekError, DoubtError) as doubt:
        site.report.note(ignored(site.file, site.row_group, test.leaf, "dictionary", doubt))
        return [None] * len(tests)


def _page(site: Site, test: BoundLeaf) -> Generator[Wanted, list[memoryview], memoryview | None]:
    """The bytes of the dictionary page; None where it turns out to be no less than what it can spare."""
    place = _place(site, test)
    assert place is not None
    start, length = place
    if length is None:
        stop = site.file.placed_chunk(site.row_group, test.leaf)[2]
        (head,) = yield [(start, min(HEAD, stop - start))]
        found = page_header(head, 0, lambda: "dictionary", start)
        length = found.header_length + found.compressed_size
        if found.type != DICTIONARY_PAGE or length > stop - start:
            raise DoubtError(f"no dictionary page at byte {start}")
        if length >= at_stake(site, test.leaf):
            return None
    (page,) = yield [(start, length)]
    if page.nbytes != length:
        raise DoubtError("its bytes could not be read")
    return page


def _entries(site: Site, test: BoundLeaf, page: memoryview) -> tuple[int, Any, Any]:
    """(number, values, offsets or None) of the entries."""
    leaf: Leaf = test.leaf
    chunk = site.file.chunk(site.row_group, leaf)
    codec, decompress = decompressor(chunk.codec)
    decoder = core.LeafDecoder(
        test.form.core, 0, 0, codec=codec, decompress=decompress, max_page=LARGEST
    )
    decoder.head(page)
    if decoder.stop != page.nbytes:  # what is kept would hide it
        raise DoubtError("more than it lies before the first page")
    n = decoder.num_values
    if n == 0:
        nulls = site.file.null_count(site.row_group, leaf)
        if nulls is not None and nulls < chunk.num_values:
            raise DoubtError("it is empty, and the column is not")
        return 0, b"", None
    if n > MOST:
        raise DoubtError(f"its {n} entries are too many")
    made, _, _, offsets, values = decoder.entries()
    if made != n:
        raise DoubtError(f"{made} of {n} entries")
    return n, values, offsets


def _proof(site: Site, test: BoundLeaf, entries: tuple[int, Any, Any]) -> Proof | None:
    n, values, offsets = entries
    form = test.form
    passed = 0
    if n:
        _, passed = rows.compare(
            form.kind, form.width, n, None, values, offsets,
            test.op, test.negate, test.against(n), test.nan,
        )  # fmt: skip
    if passed == 0:
        return NONE_PASSES
    if passed == n and site.file.null_count(site.row_group, test.leaf) == 0:
        every = rows.RowRanges.all(site.file.group_rows[site.row_group])
        return Proof(every, every)
    return None
