"""Reads one leaf of one row group: the pages that hold selected rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek._core.pages import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE
from pageseek._core.status import HeaderError, PageMismatch
from pageseek.base.errors import CORRUPT, CorruptFileError, from_core
from pageseek.base.log import not_trusted
from pageseek.base.report import LeafReport
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.nesting import REPEATED, Decoded
from pageseek.format.page_index import Page
from pageseek.format.types import (
    BYTES_KINDS,
    K_D128,
    K_D256,
    K_FIXED,
    passing_form,
    to_arrow,
)
from pageseek.io.range_requests import PageTask
from pageseek.scanning.leaves.chunk_headers import count_values, headers_tell_rows, pages_of_chunk
from pageseek.scanning.leaves.dictionary_codes import CodesDecoder
from pageseek.scanning.leaves.leaf_places import pages_wanted
from pageseek.scanning.leaves.output_size import (
    likely_bytes,
    likely_cost,
    likely_rows,
    likely_slots,
)
from pageseek.scanning.leaves.segments import PageBytes, Segment, count_segments, segments_of
from pageseek.scanning.requests.steps import IndexMismatch, Read, ScanContext, Steps

# a dictionary code of these is tested faster than a value
CODED_KINDS = BYTES_KINDS | {K_FIXED, K_D128, K_D256}

_NO_ROWS = rows.RowRanges.empty()


class _HeadersLieError(Exception):
    """Page headers count other rows than their pages have. Pages may have been skipped by these counts."""


class LeafReader:
    """Reads selected rows of one leaf of one row group. Selections must come in ascending order.

    `want(ranges)` names the bytes, `give(buffers)` hands them over, `decode()` decodes: the bytes of many leaves are
    fetched together.

    Attributes
    ----------
    native : bool
        The core can decode all pages in one call: `task` and `take` in place of `decode`.
    """

    __slots__ = (
        "_all_coded",
        "_at",
        "_base",
        "_buffers",
        "_codes",
        "_context",
        "_counts",
        "_decoder",
        "_dictionary_at",
        "_dictionary_data",
        "_file",
        "_levels",
        "_likely_rows",
        "_made",
        "_max_values",
        "_nesting_levels",
        "_num_rows",
        "_offsets",
        "_page_number",
        "_pages",
        "_pages_seen",
        "_ranges",
        "_report",
        "_row_group",
        "_segments",
        "_skipped",
        "_start",
        "_stop",
        "_trust_header_counts",
        "arrays",
        "chunk",
        "codec_settings",
        "decoded",
        "entries",
        "leaf",
        "leaf_type",
        "native",
        "nbytes",
    )  # fmt: skip

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
        self.leaf = leaf
        self.leaf_type = leaf_type
        self.decoded: Decoded | None = None
        self.entries: pa.Array | None = None
        self.arrays: list[pa.Array] | None = None  # after `take`
        self.native = False
        self.nbytes = 0  # compressed bytes of the pages, or of the chunk
        self._nesting_levels = nesting_levels
        self._file = file
        self._row_group = row_group
        self._context = context
        self._offsets = offsets = file.offset_indexes.get((row_group, leaf.index))
        self.chunk, self._start, self._stop = file.placed_chunk(row_group, leaf)
        chunk = self.chunk
        self._all_coded = chunk.encoding_stats == 1 and chunk.other_data_pages == 0
        self._num_rows = file.group_rows[row_group]
        # A run of a few bytes can stand for any number of levels. Only num_values bounds them if the leaf repeats.
        declared = leaf.max_rep and chunk.num_values >= 0
        self._max_values = chunk.num_values if declared else 1 << 62
        self._levels = levels
        num_pages = None if offsets is None or again else offsets.num_pages
        self._report = context.report.chunk(file.name, row_group, leaf.name, num_pages)
        self._counts = LeafReport() if again else self._report  # of pages and rows
        self._ranges: rows.RowRanges = _NO_ROWS
        self._pages: list[Page] | None = None  # the pages that are read; None: the whole chunk
        self._buffers: list[memoryview] = []
        self._dictionary_at: tuple[int, int] | None = None
        self._dictionary_data: memoryview | None = None
        self._at = 0  # byte in the file of the page at hand, for errors
        self._base = 0  # byte in the file of the buffer that holds it
        self._skipped = 0  # bytes at the start of the chunk that were not fetched with the rest
        self._pages_seen = 0  # of a chunk, by its headers
        self._page_number: int | None = None  # None: the dictionary page
        self._trust_header_counts = True  # of rows, in headers of version 2
        self._made: tuple[Any, ...] | int | None = None  # what `read_pages` made
        self._segments: list[core.LeafDecoder] = []
        try:
            codec = chunk.codec
            self.codec_settings = context.codec_settings.get(codec) or context.settings_of(
                codec, file
            )
            self._likely_rows = likely_rows(self._stop - self._start)
            self._decoder: Any = self._new_decoder()
            self._codes: CodesDecoder | None = None
            kept = (
                codes
                and leaf_type.type is not leaf_type.storage
                and pa.types.is_dictionary(leaf_type.type)
            )
            bare = tested and leaf_type.kind in CODED_KINDS and not leaf.group
            if (kept or bare) and not nesting_levels and self._all_coded:
                self._codes = CodesDecoder(
                    leaf_type,
                    leaf.max_def,
                    bare,
                    likely_rows=self._likely_rows,
                    codec_settings=self.codec_settings,
                )
        except core.CoreError as error:
            raise from_core(error, self._where()) from error
        if offsets is not None and offsets.start > self._start:
            self._dictionary_at = self._start, offsets.start - self._start

    def _new_decoder(self, passes: bool = False) -> core.LeafDecoder:
        leaf, form = self.leaf, self.leaf_type.core
        return core.LeafDecoder(
            passing_form(form) if passes else form,
            leaf.max_def,
            leaf.max_rep,
            nesting_levels=self._nesting_levels,
            levels_only=leaf.group,
            likely_rows=self._likely_rows,
            max_values=self._max_values,
            codec_settings=self.codec_settings,
            passes=passes,
        )

    def _where(self) -> str:
        return f"{self._file.name}: column {self.leaf.name!r}, row group {self._row_group}"

    def _where_page(self) -> str:
        if self._page_number is None and not self._at:  # before the first page
            return self._where()
        page = "dictionary page" if self._page_number is None else f"page {self._page_number}"
        return f"{self._where()}, {page} at byte {self._at}"

    def _corrupt(self, message: str) -> CorruptFileError:
        return CorruptFileError(f"{self._where_page()}: {message}")

    # -- fetching -----------------------------------------------------------------------------

    def want(self, ranges: rows.RowRanges) -> list[tuple[int, int]]:
        """The (offset, length) of the bytes that these rows need. Called once."""
        self._ranges, kept = ranges, 0
        self._pages = pages_wanted(self._offsets, ranges, self._num_rows, self._levels)
        if self._pages is None:
            first = self._first_data_page() if self._levels else 0
            kept = 0 if self._levels else self._context.kept.length_at(self._start)
            self._skipped = kept or max(first - self._start, 0)
            wanted = [(self._start + self._skipped, self._stop - self._start - self._skipped)]
            if kept:  # the dictionary comes as a buffer of its own
                self._dictionary_at = self._start, kept
                wanted.append(self._dictionary_at)
        else:
            wanted = []
            for _, offset, length, _, _ in self._pages:
                wanted.append((offset, length))
            # a remote dictionary is fetched with the pages, even if no page uses it
            place = self._dictionary_at
            likely = self._context.wait_bytes > 0 or self._all_coded
            if place is not None and likely and not self._levels:
                wanted.append(place)
        if self._codes is None and self.codec_settings.own:
            if self._pages is not None:
                self.native = bool(self._pages)
            else:  # where rows may go on in the next page, only levels tell where it begins
                self.native = (kept > 0 or not self._skipped) and (
                    not self.leaf.max_rep or self._file.has_one_page(self._row_group, self.leaf)
                )
        return wanted

    def _first_data_page(self) -> int:
        """The offset of the first data page if it lies behind a dictionary, else 0."""
        chunk = self.chunk
        first: int = chunk.data_page_offset
        return first if self._start < first < self._stop else 0

    def give(self, buffers: list[memoryview], fetched: int) -> None:
        """Take the bytes that `want` named, in its order. `fetched`: how many of them were not in memory before."""
        self._report.bytes += fetched
        if len(buffers) > (1 if self._pages is None else len(self._pages)):
            self._dictionary_data = buffers.pop()
        self._buffers = buffers
        for data in buffers:
            self.nbytes += data.nbytes

    # -- decoding -----------------------------------------------------------------------------

    def tasks(self, passes: bytes | None = None) -> list[PageTask]:
        """The arguments of the core's `read_pages`: one task, or one for each of several segments of the pages.

        `passes`: which entries of the dictionary pass a test. What the tasks make is for `count_tested` then, not for `take`.
        There are none if the chunk has another dictionary.
        """
        threads, segments = self._context.threads, list[Segment]()
        behind = passes is not None and self._is_behind_dictionary
        n = 1
        if threads > 1 and self.leaf.flat and not (self.leaf.group or self._nesting_levels):
            n = count_segments(likely_cost(self.chunk, self.nbytes), threads)
        divides = n > 1
        if behind or divides:
            pages, dictionary = self._page_bytes()
            if behind and (not pages or dictionary is not self._dictionary_data):
                return []
            if divides:
                segments = segments_of(pages, self._ranges, n)
        if not segments:
            return [self._task(passes, pages if behind else None)]
        known = dictionary if passes is None else [passes]
        self._segments = [self._new_decoder(passes is not None) for _ in segments]
        made: list[PageTask] = []
        for decoder, (places, buffers, ranges) in zip(self._segments, segments, strict=True):
            hint = self._hint(ranges, buffers)
            made.append((decoder, places, ranges.buffers, hint, known, False))
        return made

    def _page_bytes(self) -> tuple[list[PageBytes], memoryview | None]:
        """The pages that are read, and the dictionary page; no pages if the headers of a chunk do not add up."""
        pages = self._pages
        if pages is None:
            (data,) = self._buffers
            found = pages_of_chunk(self._decoder, data, self._num_rows, self._ranges)
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
        pages = self._pages
        several = pages is None or len(pages) > 1
        hint = self._hint(self._ranges, self._buffers) if several or self._nesting_levels else 0
        if pages is None:
            places = [(self._buffers[0], 0, self._num_rows)]
        else:
            places, _ = self._page_bytes()
        ranges = self._ranges.buffers
        if passes is not None:
            whole = pages is None and known is None
            return self._new_decoder(True), known or places, ranges, 0, [passes], whole
        return self._decoder, places, ranges, hint, self._dictionary_data, pages is None

    def take(self, results: Sequence[tuple[Any, ...] | int | None]) -> tuple[int, int] | None:
        """Take the results of `read_pages`. It sets `arrays`, or `decode` has to run. If a page needs the dictionary, returns the
        (offset, length) of that, to try again.
        """
        if len(results) > 1:
            return self._take_segments(results)
        (made,) = results
        if isinstance(made, tuple):
            decoder, pages = self._decoder, self._pages
            if pages is not None and len(pages) == 1:
                self._page_number, self._at = pages[0][:2]
            try:
                array = pa.nulls(0) if self.leaf.group else to_arrow(self.leaf_type, *made)
                if self._nesting_levels:
                    self._finished([array])
            except core.CoreError as error:
                raise self._placed(error) from error
            finally:
                self._count([decoder])
                decoder.release()
            self.arrays = [array]
            return None
        self._made = made
        if made is None:  # rows may have been taken
            self._decoder = self._new_decoder()
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
            raise self._placed(error) from error
        finally:
            self._count(decoders)
        self.arrays = arrays
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
        if self._pages is None and self._offsets is None:
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
        """The selected rows as arrays of the leaf's storage type: one, or several if 32-bit offsets are too few. A nested leaf
        gives one, and `decoded` has its nesting levels.

        Raises IndexMismatch if the pages are not what the offset index says. The rows themselves may have been chosen by
        that index, so that the caller begins again without it.
        """
        if self._skipped and not self._fetched_all():
            yield from self._fetch_whole()
        try:
            try:
                if self._codes is None:
                    arrays = yield from self._decode()
                else:
                    arrays = yield from self._decode_codes(self._codes)
            except _HeadersLieError as error:
                text = f"{self._where_page()}: row counts of headers ignored: {error}"
                not_trusted(text, self._context.report)
                self._trust_header_counts, self._decoder = False, self._new_decoder()
                arrays = yield from self._decode()
        except core.CoreError as error:
            raise self._placed(error) from error
        finally:
            self._buffers = []
            self._dictionary_data = None
            self._decoder.release()
        self._counts.rows_decoded += self._ranges.num_rows
        if self._codes is not None and self._codes.bare:
            self.entries = self._codes.entries
        return arrays

    def _fetched_all(self) -> bool:
        """Whether the fetched pages have all values of the chunk. Its first data page may lie elsewhere than the footer says."""
        (data,) = self._buffers
        return bool(count_values(self._decoder, data) == self.chunk.num_values)

    def _fetch_whole(self) -> Steps[None]:
        length, self._skipped = self._stop - self._start, 0
        self._buffers = yield Read([(self._start, length)], "data")
        self._report.bytes += length

    def _placed(self, error: core.CoreError) -> Exception:
        """An error of the core with its place, or IndexMismatch if the offset index led to no such page."""
        indexed = self._pages is not None and self._page_number is not None
        if isinstance(error, PageMismatch) or (indexed and isinstance(error, HeaderError)):
            message = f"page {self._page_number} at byte {self._at}: {error}"
            note = f"{self._where()}: offset index ignored: {message}"
            self._file.ignore_index(self._row_group, self.leaf, note, self._context.report)
            return IndexMismatch(self.leaf, message)
        if isinstance(error, HeaderError):
            base = None if error.offset is None else self._base
            return from_core(error, f"{self._where_page()}: page header", base)
        return from_core(error, self._where_page())

    def _decode_codes(self, codes: CodesDecoder) -> Steps[list[pa.Array]]:
        """Decode dictionary codes. If that fails, decode values, whose error names the fault."""
        counts, values = self._counts, self._decoder
        before = counts.pages_read, counts.pages_total, self._report.dictionary_pages
        self._decoder = codes
        try:
            return (yield from self._decode())
        except (core.CoreError, CorruptFileError, pa.ArrowException):
            counts.pages_read, counts.pages_total, self._report.dictionary_pages = before
            self._codes, self._decoder = None, values
            return (yield from self._decode())
        finally:
            codes.release()

    def _arrow(self, n: int, nulls: int, validity: Any, offsets: Any, values: Any) -> pa.Array:
        if self.leaf.group:
            return pa.nulls(0)
        if self._codes is None:
            return to_arrow(self.leaf_type, n, nulls, validity, offsets, values)
        return self._codes.arrow(n, nulls, validity, values, whole=n == self._num_rows)

    def _decode(self) -> Steps[list[pa.Array]]:
        decoder, ranges = self._decoder, self._ranges.buffers
        states: Iterator[int] | None = None
        made, self._made = self._made, None
        if self._pages is not None and len(self._pages) == 1:
            self._page_number, self._at = self._pages[0][:2]
            if made is None:
                hint = self._hint(self._ranges, self._buffers) if self._nesting_levels else 0
                made = decoder.read_page(self._buffers[0], *self._pages[0][3:], ranges, hint)
            elif decoder.has_dictionary:
                self._report.dictionary_pages += 1
            if made != core.TAKE_DICTIONARY:
                self._counts.pages_read += 1
                if not isinstance(made, int):
                    array = self._arrow(*made)
                    return self._finished([array]) if self._nesting_levels else [array]
                states = iter([made])
        if states is None:
            decoder.begin(ranges, hint=self._hint(self._ranges, self._buffers))
            if self._pages is not None:
                states = self._indexed(self._pages)
            else:
                states = self._walk_repeated() if self.leaf.max_rep else self._walk()
        arrays: list[pa.Array] = []
        if self._ranges:
            for state in states:
                if state == core.TAKE_DICTIONARY:  # the page is taken again
                    yield from self._load_dictionary()
                    continue
                while state == core.TAKE_FULL:
                    arrays.append(self._arrow(*self._finish()))
                    decoder.begin(ranges)
                    state = decoder.resume()
                if state == core.TAKE_DONE:
                    break
            else:
                if not self._nesting_levels or decoder.end() != core.TAKE_DONE:
                    raise CorruptFileError(
                        f"{self._where()}: the chunk ends at row {decoder.row}, the row group has {self._num_rows} rows"
                    )
        arrays.append(self._arrow(*self._finish()))
        return self._finished(arrays)

    def _finish(self) -> tuple[Any, ...]:
        try:
            made: tuple[Any, ...] = self._decoder.finish()
        except core.CoreError:
            several = self._page_number != 0 if self._pages is None else len(self._pages) > 1
            if several:  # any of the pages may hold the value
                self._page_number, self._at = None, 0
            raise
        return made

    def _hint(self, ranges: rows.RowRanges, buffers: Sequence[memoryview]) -> int:
        """The size that a decoder allocates at once: slots of a nested leaf, bytes of strings of a flat one."""
        chunk, chosen, n = self.chunk, ranges.num_rows, self._num_rows
        if self._nesting_levels:
            return likely_slots(chunk, chosen, n)
        if self.leaf_type.kind not in BYTES_KINDS:
            return 0
        fetched = sum([data.nbytes for data in buffers])
        return likely_bytes(chunk, self.leaf.max_def > 0, chosen, n, fetched)

    def _finished(self, arrays: list[pa.Array]) -> list[pa.Array]:
        if not self._nesting_levels:
            return arrays
        nesting_levels: list[tuple[Any, ...]] = []
        for nesting_level, (slots, nulls, validity, offsets) in zip(
            self._nesting_levels, self._decoder.nesting_levels(), strict=True
        ):
            if nesting_level[0] == REPEATED:
                nesting_levels.append((slots, pa.py_buffer(offsets)))
            else:
                bits = None if validity is None else pa.py_buffer(validity)
                nesting_levels.append((slots, nulls, bits))
        self.decoded = Decoded(self._decoder.rows, arrays[0], nesting_levels)
        return arrays

    def _indexed(self, pages: list[Page]) -> Iterator[int]:
        """Give the decoder the fetched pages, and yield each of its answers."""
        decoder = self._decoder
        for data, (page, offset, _, first, count) in zip(self._buffers, pages, strict=True):
            self._page_number, self._at = page, offset
            decoder.head(data, 0, count)
            state = decoder.take(first)
            if state == core.TAKE_DICTIONARY:
                yield state
                self._page_number, self._at = page, offset
                decoder.head(data, 0, count)
                state = decoder.take(first)
            self._counts.pages_read += 1
            yield state

    def _walk(self) -> Iterator[int]:
        """Give the decoder the pages of the chunk, header by header. Pages without a selected row are not decompressed."""
        (data,) = self._buffers
        decoder = self._decoder
        at, row, page = 0, 0, 0
        self._base = start = self._start + self._skipped
        while row < self._num_rows and at < data.nbytes:
            self._page_number, self._at = page, start + at
            kind = decoder.head(data, at)
            stop_at = decoder.stop
            if kind == DICTIONARY_PAGE:
                self._dictionary_data = data[at:stop_at]
                self._dictionary_at = start + at, stop_at - at
            elif kind in (DATA_PAGE, DATA_PAGE_V2):
                stop = row + decoder.num_values
                if stop > self._num_rows:
                    raise self._corrupt(
                        f"its rows {row} to {stop} go beyond the {self._num_rows} of the row group"
                    )
                if self._offsets is None:  # before the yield: the last one does not return
                    self._counts.pages_total += 1
                if self._ranges.meets(row, stop):
                    state = decoder.take(row)
                    if state == core.TAKE_DICTIONARY:
                        yield state
                        self._page_number, self._at, self._base = page, start + at, start
                        decoder.head(data, at)
                        state = decoder.take(row)
                    self._counts.pages_read += 1
                    yield state
                row, page = stop, page + 1
            at = stop_at

    def _walk_repeated(self) -> Iterator[int]:
        """Give the decoder the pages of a leaf that repeats. A row may continue in the next page, and only the levels tell how
        many rows begin in a page, unless headers of version 2 count them and can be trusted.
        """
        (data,) = self._buffers
        decoder = self._decoder
        at, row, page, values = 0, 0, 0, 0
        self._base = start = self._start + self._skipped
        told = (
            self._trust_header_counts
            and self._ranges.num_rows < self._num_rows
            and headers_tell_rows(self._decoder, data, self._num_rows)
        )
        while at < data.nbytes:
            self._page_number, self._at = page, start + at
            kind = decoder.head(data, at)
            stop_at = decoder.stop
            if kind == DICTIONARY_PAGE:
                self._dictionary_data = data[at:stop_at]
                self._dictionary_at = start + at, stop_at - at
            elif kind in (DATA_PAGE, DATA_PAGE_V2):
                if self._offsets is None:
                    self._counts.pages_total += 1
                values += decoder.num_values
                if values > self._max_values:
                    raise self._corrupt(
                        f"its values and those before are {values}, the footer gives its chunk {self._max_values}; "
                        "read without this column, or have the file written again"
                    )
                count = decoder.num_rows
                if not told or self._ranges.meets(row, row + count):
                    state = decoder.take(row, told)
                    if state == core.TAKE_DICTIONARY:
                        yield state
                        self._page_number, self._at, self._base = page, start + at, start
                        decoder.head(data, at)
                        state = decoder.take(row, told)
                    self._counts.pages_read += 1
                    if told and decoder.page_rows != count:
                        raise _HeadersLieError(
                            f"it has {decoder.page_rows} rows, its header says {count}"
                        )
                    count = decoder.page_rows
                    yield state
                if row + count > self._num_rows:
                    raise self._corrupt(
                        f"its rows {row} to {row + count} go beyond the {self._num_rows} of the row group"
                    )
                row, page = row + count, page + 1
                if self._file.writer.understates_chunks and values >= self.chunk.num_values:
                    return  # behind it may lie another chunk
            at = stop_at

    def _load_dictionary(self) -> Steps[None]:
        if self._dictionary_at is None:
            raise self._corrupt("dictionary-encoded, and the chunk has no dictionary page")
        at, length = self._dictionary_at
        if self._dictionary_data is None:
            (data,) = yield Read([(at, length)], "data")
            self.give_dictionary(data)
        self._page_number, self._at, self._base = None, at, at
        decoder = self._decoder
        kind = decoder.head(self._dictionary_data)
        if self._pages is not None and (kind != DICTIONARY_PAGE or decoder.stop != length):
            raise PageMismatch(CORRUPT, None, "more than a dictionary lies before the first page")
        decoder.take_dictionary()
        self._report.dictionary_pages += 1
