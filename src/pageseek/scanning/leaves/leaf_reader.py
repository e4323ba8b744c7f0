"""Reads one leaf of one row group: the pages that hold selected rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek.base.errors import from_core
from pageseek.base.report import LeafReport
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.nesting import Decoded
from pageseek.format.page_index import Page
from pageseek.format.types import BYTES_KINDS, K_D128, K_D256, K_FIXED, to_arrow
from pageseek.io.range_requests import PageTask
from pageseek.predicate.masks import Bitmap
from pageseek.predicate.row_tests import rows_that_pass
from pageseek.scanning.leaves.chunk_headers import pages_of_chunk
from pageseek.scanning.leaves.dictionary_codes import CodesDecoder
from pageseek.scanning.leaves.leaf_chunk import LeafChunk, PagePlace
from pageseek.scanning.leaves.leaf_places import pages_wanted
from pageseek.scanning.leaves.output_size import likely_cost, likely_memory
from pageseek.scanning.leaves.page_walk import PageWalk
from pageseek.scanning.leaves.segments import PageBytes, Segment, count_segments, segments_of
from pageseek.scanning.requests.steps import ScanContext, Steps

# a dictionary code of these is tested faster than a value
CODED_KINDS = BYTES_KINDS | {K_FIXED, K_D128, K_D256}

_NO_ROWS = rows.RowRanges.empty()


class LeafReader:
    """Reads selected rows of one leaf of one row group. Selections must come in ascending order.

    `want(ranges)` names the bytes, `give(buffers)` hands them over, `decode()` decodes: the bytes of many leaves are
    fetched together.

    Attributes
    ----------
    of : LeafChunk
        What is known of the leaf.
    native : bool
        The core can decode all pages in one call: `task` and `take` in place of `decode`.
    row_tests : RowTests, optional
        Tests of the rows, which the core makes while it decodes. What has to be decoded in another way is not tested.
    passing : (bitmap, int), optional
        The rows that passed them, and their number: `arrays` has no other ones then.
    """

    __slots__ = (
        "_buffers",
        "_codes",
        "_counts",
        "_decoder",
        "_dictionary_at",
        "_dictionary_data",
        "_levels",
        "_made",
        "_pages",
        "_pages_seen",
        "_ranges",
        "_report",
        "_segments",
        "_skipped",
        "arrays",
        "decoded",
        "entries",
        "leaf",
        "leaf_type",
        "native",
        "nbytes",
        "of",
        "passing",
        "row_tests",
    )

    def __init__(
        self,
        file: FileMetadata,
        row_group: int,
        part: Part,
        context: ScanContext,
        codes: bool = False,
        again: bool = False,
        levels: bool = False,
        tested: bool = False,
    ) -> None:
        """`codes`: a column that comes out as a dictionary keeps its codes if all pages have them. `again`: the pages of this
        leaf were counted before. `levels`: only the levels of a leaf that stands for a group are read. `tested`: codes
        will do; `entries` then has their values.
        """
        leaf, leaf_type, nesting_levels = part
        self.leaf, self.leaf_type = leaf, leaf_type
        self.decoded: Decoded | None = None
        self.entries: pa.Array | None = None
        self.arrays: list[pa.Array] | None = None  # once it is decoded
        self.native = False
        self.row_tests: rows.RowTests | None = None
        self.passing: tuple[Bitmap, int] | None = None
        self.nbytes = 0  # compressed bytes of the pages, or of the chunk
        self.of = of = LeafChunk(file, row_group, part, context)
        offsets = of.offsets
        self._levels = levels
        num_pages = None if offsets is None or again else offsets.num_pages
        self._report = context.report.chunk(file.name, row_group, leaf.name, num_pages)
        self._counts = LeafReport() if again else self._report  # of pages and rows
        self._ranges: rows.RowRanges = _NO_ROWS
        self._pages: list[Page] | None = None  # the pages that are read; None: the whole chunk
        self._buffers: list[memoryview] = []
        self._dictionary_at: tuple[int, int] | None = None
        self._dictionary_data: memoryview | None = None
        self._skipped = 0  # bytes at the start of the chunk that were not fetched with the rest
        self._pages_seen = 0  # of a chunk, by its headers
        self._made: tuple[Any, ...] | int | None = None  # what `read_pages` made
        self._segments: list[core.LeafDecoder] = []
        try:
            self._decoder: core.LeafDecoder = of.new_decoder()
            self._codes: CodesDecoder | None = None
            kept = (
                codes
                and leaf_type.type is not leaf_type.storage
                and pa.types.is_dictionary(leaf_type.type)
            )
            bare = tested and leaf_type.kind in CODED_KINDS and not leaf.group
            if (kept or bare) and not nesting_levels and of.all_coded:
                self._codes = CodesDecoder(
                    leaf_type,
                    leaf.max_def,
                    bare,
                    likely_rows=of.likely_rows,
                    codec_settings=of.codec_settings,
                )
        except core.CoreError as error:
            raise from_core(error, of.where) from error
        if offsets is not None and offsets.start > of.start:
            self._dictionary_at = of.start, offsets.start - of.start

    # -- fetching -----------------------------------------------------------------------------

    def want(self, ranges: rows.RowRanges) -> list[tuple[int, int]]:
        """The (offset, length) of the bytes that these rows need. Called once."""
        self._ranges, kept = ranges, 0
        of = self.of
        self._pages = pages_wanted(of.offsets, ranges, of.num_rows, self._levels)
        if self._pages is None:
            first = self._first_data_page() if self._levels else 0
            kept = 0 if self._levels else of.context.kept.length_at(of.start)
            self._skipped = kept or max(first - of.start, 0)
            wanted = [(of.start + self._skipped, of.stop - of.start - self._skipped)]
            if kept:  # the dictionary comes as a buffer of its own
                self._dictionary_at = of.start, kept
                wanted.append(self._dictionary_at)
        else:
            wanted = []
            for _, offset, length, _, _ in self._pages:
                wanted.append((offset, length))
            # a remote dictionary is fetched with the pages, even if no page uses it
            place = self._dictionary_at
            likely = of.context.wait_bytes > 0 or of.all_coded
            if place is not None and likely and not self._levels:
                wanted.append(place)
        if self._codes is None and of.codec_settings.own:
            if self._pages is not None:
                self.native = bool(self._pages)
            else:  # where rows may go on in the next page, only levels tell where it begins
                self.native = (kept > 0 or not self._skipped) and (
                    not self.leaf.max_rep or of.file.has_one_page(of.row_group, self.leaf)
                )
        return wanted

    def _first_data_page(self) -> int:
        """The offset of the first data page if it lies behind a dictionary, else 0."""
        first: int = self.of.chunk.data_page_offset
        return first if self.of.start < first < self.of.stop else 0

    def give(self, buffers: list[memoryview], fetched: int) -> None:
        """Take the bytes that `want` named, in its order. `fetched`: how many of them were not in memory before."""
        self._report.bytes += fetched
        if len(buffers) > (1 if self._pages is None else len(self._pages)):
            self._dictionary_data = buffers.pop()
        self._buffers = buffers
        for data in buffers:
            self.nbytes += data.nbytes

    @property
    def memory(self) -> int:
        """About the bytes of memory that the rows will take."""
        return likely_memory(self.of.chunk, self._ranges.num_rows, self.of.num_rows)

    # -- decoding -----------------------------------------------------------------------------

    def tasks(self, passes: bytes | None = None) -> list[PageTask]:
        """The arguments of the core's `read_pages`: one task, or one for each of several segments of the pages.

        `passes`: which entries of the dictionary pass a test. What the tasks make is for `count_tested` then, not for `take`.
        There are none if the chunk has another dictionary.
        """
        of, segments = self.of, list[Segment]()
        threads = of.context.threads
        behind = passes is not None and self._is_behind_dictionary
        n = 1
        if threads > 1 and self.leaf.flat and not (self.leaf.group or of.nesting_levels):
            n = count_segments(likely_cost(of.chunk, self.nbytes), threads)
        divides = n > 1
        if behind or divides:
            pages, dictionary = self._page_bytes()
            if behind and (not pages or dictionary is not self._dictionary_data):
                return []
            if divides:
                segments = segments_of(pages, self._ranges, self._num_segments(pages, dictionary))
        if not segments:
            return [self._task(passes, pages if behind else None)]
        if dictionary is not None:
            dictionary = memoryview(dictionary)  # threads share it: it is read now
        known = dictionary if passes is None else [passes]
        self._segments = [of.new_decoder(passes is not None, self.row_tests) for _ in segments]
        made: list[PageTask] = []
        for decoder, (places, buffers, ranges) in zip(self._segments, segments, strict=True):
            hint = of.hint(ranges, buffers)
            made.append((decoder, places, ranges.buffers, hint, known, False))
        return made

    def _num_segments(self, pages: Sequence[PageBytes], dictionary: memoryview | None) -> int:
        """How many segments the pages that are read are worth. Each unpacks the dictionary again."""
        chunk = self.of.chunk
        own = likely_cost(chunk, sum([data.nbytes for data, _, _ in pages]))
        again = self._dictionary_at[1] if self._dictionary_at is not None else 0
        if dictionary is not None:
            again = dictionary.nbytes
        return count_segments(own, self.of.context.threads, likely_cost(chunk, again))

    def _page_bytes(self) -> tuple[list[PageBytes], memoryview | None]:
        """The pages that are read, and the dictionary page; no pages if the headers of a chunk do not add up."""
        pages = self._pages
        if pages is None:
            (data,) = self._buffers
            found = pages_of_chunk(self._decoder, data, self.of.num_rows, self._ranges)
            if found is None:
                return [], None
            self._pages_seen = found.seen
            known = found.dictionary  # the last before the data counts
            return found.pages, self._dictionary_data if known is None else known
        made = [
            (data, first, count)
            for data, (*_, first, count) in zip(self._buffers, pages, strict=True)
        ]
        return made, self._dictionary_data

    def _task(self, passes: bytes | None, known: list[PageBytes] | None) -> PageTask:
        """One task for all pages. `known`: those of a chunk whose dictionary was given apart, which could have another one."""
        of, pages = self.of, self._pages
        several = pages is None or len(pages) > 1
        hint = of.hint(self._ranges, self._buffers) if several or of.nesting_levels else 0
        if pages is None:
            places = [(self._buffers[0], 0, of.num_rows)]
        else:
            places, _ = self._page_bytes()
        ranges = self._ranges.buffers
        if passes is not None:
            whole = pages is None and known is None
            return of.new_decoder(True), known or places, ranges, 0, [passes], whole
        if self.row_tests is not None:
            self._decoder = of.new_decoder(tests=self.row_tests)
        return self._decoder, places, ranges, hint, self._dictionary_data, pages is None

    def take(self, results: Sequence[tuple[Any, ...] | int | None]) -> tuple[int, int] | None:
        """Take the results of `read_pages`. It sets `arrays`, or `decode` has to run. If a page needs the dictionary, returns the
        (offset, length) of that, to try again.
        """
        if len(results) > 1:
            return self._take_segments(results)
        (made,) = results
        if isinstance(made, tuple):
            of, decoder, pages = self.of, self._decoder, self._pages
            try:
                array = of.array(made)
                if of.nesting_levels:
                    self.decoded = of.nested(decoder, array)
            except core.CoreError as error:
                place = PagePlace()
                if pages is not None and len(pages) == 1:
                    place.go(*pages[0][:2])
                raise of.placed(error, place, pages is not None) from error
            finally:
                self._count([decoder])
                decoder.release()
            self.arrays, self.passing = [array], rows_that_pass([decoder])
            return None
        self._made = made
        if made is None:  # rows may have been taken
            self._decoder = self.of.new_decoder()
            return None
        return self._dictionary_at

    def _take_segments(
        self, results: Sequence[tuple[Any, ...] | int | None]
    ) -> tuple[int, int] | None:
        decoders, self._segments = self._segments, []
        if None in results:  # `decode` begins again, and names the place
            return None
        if core.TAKE_DICTIONARY in results:
            return self._dictionary_at
        made = [one for one in results if isinstance(one, tuple)]
        try:
            arrays = [to_arrow(self.leaf_type, *one) for one in made]
        except core.CoreError as error:
            raise self.of.placed(error, PagePlace(), self._pages is not None) from error
        finally:
            self._count(decoders)
        self.arrays, self.passing = arrays, rows_that_pass(decoders)
        return None

    def count_tested(self, tasks: Sequence[PageTask]) -> None:
        """Count what `tasks` with `passes` have read."""
        self._segments = []
        self._count([task[0] for task in tasks])
        self._decoder.release()

    def _count(self, decoders: Sequence[core.LeafDecoder]) -> None:
        """Count what the decoders of all pages have read, and let go of the bytes."""
        self._buffers, self._dictionary_data = [], None
        counts = self._counts
        if self._pages is None and self.of.offsets is None:
            counts.pages_total += self._pages_seen or decoders[0].pages_seen
        used = False
        for decoder in decoders:
            counts.pages_read += decoder.pages_read
            used |= decoder.has_dictionary
        self._report.dictionary_pages += used
        counts.rows_decoded += self._ranges.num_rows

    @property
    def _is_behind_dictionary(self) -> bool:
        """Whether the bytes of the chunk begin behind its dictionary, which was given as a buffer of its own."""
        return self._pages is None and self._dictionary_data is not None

    @property
    def dictionary(self) -> tuple[memoryview | None, bool]:
        """Bytes that begin with the dictionary page, as far as they were given, and whether they may have nothing else."""
        if self._pages is not None or self._dictionary_data is not None:
            return self._dictionary_data, True
        return self._buffers[0], False

    def give_dictionary(self, data: memoryview) -> None:
        """Take the bytes of the dictionary page."""
        self._dictionary_data = data
        self._report.bytes += data.nbytes

    def decode(self) -> Steps[list[pa.Array]]:
        """The selected rows as arrays of the leaf's storage type, page by page: one, or several if 32-bit offsets are too few. A
        nested leaf gives one, and `decoded` has its nesting levels.

        Raises IndexMismatch as `PageWalk.decode` does.
        """
        walk = PageWalk(
            self.of,
            self._decoder,
            self._codes,
            self._ranges,
            self._pages,
            self._buffers,
            self._skipped,
            self._dictionary_at,
            self._dictionary_data,
            self._report,
            self._counts,
        )
        self._buffers, self._dictionary_data = [], None
        arrays = yield from walk.decode(self._made)
        self.decoded = walk.decoded
        self._counts.rows_decoded += self._ranges.num_rows
        if walk.codes is not None and walk.codes.bare:
            self.entries = walk.codes.entries
        return arrays
