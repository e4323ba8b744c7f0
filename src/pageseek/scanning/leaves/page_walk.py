"""Decodes the pages of one leaf one by one: those that the core's tasks leave, and those with a fault, which gets a place here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek._core.pages import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE
from pageseek._core.status import PageMismatch
from pageseek.base.errors import CORRUPT, CorruptFileError
from pageseek.base.log import not_trusted
from pageseek.base.report import LeafReport
from pageseek.format.nesting import Decoded
from pageseek.format.page_index import Page
from pageseek.scanning.leaves.chunk_headers import count_values, headers_tell_rows
from pageseek.scanning.leaves.dictionary_codes import CodesDecoder
from pageseek.scanning.leaves.leaf_chunk import LeafChunk, PagePlace
from pageseek.scanning.requests.steps import Read, Steps


class _HeadersLieError(Exception):
    """Page headers count other rows than their pages have. Pages may have been skipped by these counts."""


class PageWalk:
    """One walk through the pages of a leaf that hold selected rows.

    Parameters
    ----------
    of : LeafChunk
        The leaf.
    decoder : LeafDecoder
        What decodes values. It is released at the end.
    codes : CodesDecoder or None
        Decodes in its place where all pages have codes.
    ranges : RowRanges
        The selected rows.
    pages : list of Page or None
        The pages that hold them, as the offset index has them; None: `buffers` is the chunk, whose headers tell.
    buffers : list of memoryview
        The bytes of the pages, or of the chunk behind its first `skipped` bytes.
    dictionary_at : tuple or None
        The (offset, length) of the dictionary page, if that lies apart.
    dictionary_data : memoryview or None
        Its bytes, if they were fetched.
    report, counts : LeafReport
        Count the bytes that are fetched, and the pages. They differ where pages were counted before.
    """

    def __init__(
        self,
        of: LeafChunk,
        decoder: core.LeafDecoder,
        codes: CodesDecoder | None,
        ranges: rows.RowRanges,
        pages: list[Page] | None,
        buffers: list[memoryview],
        skipped: int,
        dictionary_at: tuple[int, int] | None,
        dictionary_data: memoryview | None,
        report: LeafReport,
        counts: LeafReport,
    ) -> None:
        self.decoded: Decoded | None = None  # of a nested leaf
        self.codes = codes
        self._of, self._ranges = of, ranges
        self._decoder: Any = decoder
        self._pages, self._buffers, self._skipped = pages, buffers, skipped
        self._dictionary_at, self._dictionary_data = dictionary_at, dictionary_data
        self._report, self._counts = report, counts
        self._place = PagePlace()
        self._trust_header_counts = True  # of rows, in headers of version 2

    def decode(self, made: tuple[Any, ...] | int | None) -> Steps[list[pa.Array]]:
        """The selected rows as arrays of the leaf's storage type: one, or several if 32-bit offsets are too few. A nested leaf
        gives one, and `decoded` has its nesting levels. `made`: what `read_pages` has made of the only page.

        Raises IndexMismatch if the pages are not what the offset index says. The rows themselves may have been chosen by
        that index, so that the caller begins again without it.
        """
        if self._skipped and not self._fetched_all():
            yield from self._fetch_whole()
        try:
            try:
                if self.codes is None:
                    arrays = yield from self._decode(made)
                else:
                    arrays = yield from self._decode_codes(self.codes)
            except _HeadersLieError as error:
                text = f"{self._of.where_page(self._place)}: row counts of headers ignored: {error}"
                not_trusted(text, self._of.context.report)
                self._trust_header_counts, self._decoder = False, self._of.new_decoder()
                arrays = yield from self._decode(None)
        except core.CoreError as error:
            raise self._of.placed(error, self._place, self._pages is not None) from error
        finally:
            self._buffers = []
            self._dictionary_data = None
            self._decoder.release()
        return arrays

    def _corrupt(self, message: str) -> CorruptFileError:
        return self._of.corrupt(message, self._place)

    def _fetched_all(self) -> bool:
        """Whether the fetched pages have all values of the chunk. Its first data page may lie elsewhere than the footer says."""
        (data,) = self._buffers
        return bool(count_values(self._decoder, data) == self._of.chunk.num_values)

    def _fetch_whole(self) -> Steps[None]:
        start = self._of.start
        length, self._skipped = self._of.stop - start, 0
        self._buffers = yield Read([(start, length)], "data")
        self._report.bytes += length

    def _decode_codes(self, codes: CodesDecoder) -> Steps[list[pa.Array]]:
        """Decode dictionary codes. If that fails, decode values, whose error names the fault."""
        counts, values = self._counts, self._decoder
        before = counts.pages_read, counts.pages_total, self._report.dictionary_pages
        self._decoder = codes
        try:
            return (yield from self._decode(None))
        except (core.CoreError, CorruptFileError, pa.ArrowException):
            counts.pages_read, counts.pages_total, self._report.dictionary_pages = before
            self.codes, self._decoder = None, values
            return (yield from self._decode(None))
        finally:
            codes.release()

    def _arrow(self, n: int, nulls: int, validity: Any, offsets: Any, values: Any) -> pa.Array:
        if self.codes is None or self._of.leaf.group:
            return self._of.array((n, nulls, validity, offsets, values))
        return self.codes.arrow(n, nulls, validity, values, whole=n == self._of.num_rows)

    def _decode(self, made: tuple[Any, ...] | int | None) -> Steps[list[pa.Array]]:
        of, decoder, ranges = self._of, self._decoder, self._ranges.buffers
        states: Iterator[int] | None = None
        if self._pages is not None and len(self._pages) == 1:
            self._place.go(*self._pages[0][:2])
            if made is None:
                hint = of.hint(self._ranges, self._buffers) if of.nesting_levels else 0
                made = decoder.read_page(self._buffers[0], *self._pages[0][3:], ranges, hint)
            elif decoder.has_dictionary:
                self._report.dictionary_pages += 1
            if made != core.TAKE_DICTIONARY:
                self._counts.pages_read += 1
                if not isinstance(made, int):
                    array = self._arrow(*made)
                    return self._finished([array])
                states = iter([made])
        if states is None:
            decoder.begin(ranges, hint=of.hint(self._ranges, self._buffers))
            if self._pages is not None:
                states = self._indexed(self._pages)
            else:
                states = self._walk_repeated() if of.leaf.max_rep else self._walk()
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
                if not of.nesting_levels or decoder.end() != core.TAKE_DONE:
                    raise CorruptFileError(
                        f"{of.where}: the chunk ends at row {decoder.row}, the row group has {of.num_rows} rows"
                    )
        arrays.append(self._arrow(*self._finish()))
        return self._finished(arrays)

    def _finish(self) -> tuple[Any, ...]:
        try:
            made: tuple[Any, ...] = self._decoder.finish()
        except core.CoreError:
            several = self._place.number != 0 if self._pages is None else len(self._pages) > 1
            if several:  # any of the pages may hold the value
                self._place.go(None, 0)
            raise
        return made

    def _finished(self, arrays: list[pa.Array]) -> list[pa.Array]:
        if self._of.nesting_levels:
            self.decoded = self._of.nested(self._decoder, arrays[0])
        return arrays

    def _indexed(self, pages: list[Page]) -> Iterator[int]:
        """Give the decoder the fetched pages, and yield each of its answers."""
        decoder = self._decoder
        for data, (page, offset, _, first, count) in zip(self._buffers, pages, strict=True):
            self._place.go(page, offset)
            decoder.head(data, 0, count)
            state = decoder.take(first)
            if state == core.TAKE_DICTIONARY:
                yield state
                self._place.go(page, offset)
                decoder.head(data, 0, count)
                state = decoder.take(first)
            self._counts.pages_read += 1
            yield state

    def _walk(self) -> Iterator[int]:
        """Give the decoder the pages of the chunk, header by header. Pages without a selected row are not decompressed."""
        (data,) = self._buffers
        of, decoder = self._of, self._decoder
        at, row, page = 0, 0, 0
        self._place.base = start = of.start + self._skipped
        while row < of.num_rows and at < data.nbytes:
            self._place.go(page, start + at)
            kind = decoder.head(data, at)
            stop_at = decoder.stop
            if kind == DICTIONARY_PAGE:
                self._dictionary_data = data[at:stop_at]
                self._dictionary_at = start + at, stop_at - at
            elif kind in (DATA_PAGE, DATA_PAGE_V2):
                stop = row + decoder.num_values
                if stop > of.num_rows:
                    raise self._corrupt(
                        f"its rows {row} to {stop} go beyond the {of.num_rows} of the row group"
                    )
                if of.offsets is None:  # before the yield: the last one does not return
                    self._counts.pages_total += 1
                if self._ranges.meets(row, stop):
                    state = decoder.take(row)
                    if state == core.TAKE_DICTIONARY:
                        yield state
                        self._place.go(page, start + at, start)
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
        of, decoder = self._of, self._decoder
        at, row, page, values = 0, 0, 0, 0
        self._place.base = start = of.start + self._skipped
        told = (
            self._trust_header_counts
            and self._ranges.num_rows < of.num_rows
            and headers_tell_rows(self._decoder, data, of.num_rows)
        )
        while at < data.nbytes:
            self._place.go(page, start + at)
            kind = decoder.head(data, at)
            stop_at = decoder.stop
            if kind == DICTIONARY_PAGE:
                self._dictionary_data = data[at:stop_at]
                self._dictionary_at = start + at, stop_at - at
            elif kind in (DATA_PAGE, DATA_PAGE_V2):
                if of.offsets is None:
                    self._counts.pages_total += 1
                values += decoder.num_values
                if values > of.max_values:
                    raise self._corrupt(
                        f"its values and those before are {values}, the footer gives its chunk {of.max_values}; "
                        "read without this column, or have the file written again"
                    )
                count = decoder.num_rows
                if not told or self._ranges.meets(row, row + count):
                    state = decoder.take(row, told)
                    if state == core.TAKE_DICTIONARY:
                        yield state
                        self._place.go(page, start + at, start)
                        decoder.head(data, at)
                        state = decoder.take(row, told)
                    self._counts.pages_read += 1
                    if told and decoder.page_rows != count:
                        raise _HeadersLieError(
                            f"it has {decoder.page_rows} rows, its header says {count}"
                        )
                    count = decoder.page_rows
                    yield state
                if row + count > of.num_rows:
                    raise self._corrupt(
                        f"its rows {row} to {row + count} go beyond the {of.num_rows} of the row group"
                    )
                row, page = row + count, page + 1
                if of.file.writer.understates_chunks and values >= of.chunk.num_values:
                    return  # behind it may lie another chunk
            at = stop_at

    def _load_dictionary(self) -> Steps[None]:
        if self._dictionary_at is None:
            raise self._corrupt("dictionary-encoded, and the chunk has no dictionary page")
        at, length = self._dictionary_at
        if self._dictionary_data is None:
            (data,) = yield Read([(at, length)], "data")
            self._dictionary_data = data
            self._report.bytes += data.nbytes
        self._place.go(None, at, at)
        decoder = self._decoder
        kind = decoder.head(self._dictionary_data)
        if self._pages is not None and (kind != DICTIONARY_PAGE or decoder.stop != length):
            raise PageMismatch(CORRUPT, None, "more than a dictionary lies before the first page")
        decoder.take_dictionary()
        self._report.dictionary_pages += 1
