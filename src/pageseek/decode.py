"""One leaf of one row group: the pages that a selection needs, fetched and decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek.codecs import decompressor
from pageseek.errors import CorruptFileError, from_core
from pageseek.fetch import Fetcher
from pageseek.metadata import OffsetIndex, ParquetFile, chunk_range, page_header, to_arrow
from pageseek.schema import ABSENT, Form, Leaf

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)
DICTIONARY_ENCODINGS = (2, 8)
SLOW_STORE = 1e-3  # seconds of latency from which a dictionary is fetched along with its pages


_NO_ROWS = rows.RowRanges.empty()


class IndexMismatch(Exception):
    """The offset index of a leaf does not fit the pages that it points to: nothing it said can be trusted."""

    def __init__(self, leaf: Leaf, message: str) -> None:
        super().__init__(message)
        self.leaf = leaf


class LeafReader:
    """Reads selected rows of one leaf of one row group. Selections must come in ascending order.

    `want(ranges)` names the bytes, `give(buffers)` hands them over, `read()` decodes: so that the bytes of
    many leaves are fetched together.
    """

    def __init__(
        self,
        file: ParquetFile,
        row_group: int,
        leaf: Leaf,
        form: Form,
        fetcher: Fetcher,
        offsets: OffsetIndex | None,
    ) -> None:
        self.leaf = leaf
        self.form = form
        self._file = file
        self._row_group = row_group
        self._fetcher = fetcher
        self._offsets = offsets
        self._chunk = file.chunk(row_group, leaf)
        self._num_rows = file.row_groups[row_group].num_rows
        self._start, self._stop = chunk_range(self._chunk)
        self._report = fetcher.report.leaf(leaf.name)
        self._ranges: rows.RowRanges = _NO_ROWS
        self._pages: list[int] | None = None  # pages wanted; None: the whole chunk
        self._buffers: list[memoryview] = []
        self._dictionary_at: tuple[int, int] | None = None
        self._dictionary_data: memoryview | None = None
        self._at = 0  # byte in the file of the page at hand, for errors
        self._page_number: int | None = None  # None: the dictionary page
        try:
            self._decompress = decompressor(self._chunk.codec)
        except core.CoreError as error:
            raise from_core(error, self._where()) from error
        if offsets is not None:
            self._report.pages_total += offsets.num_pages
            first = int(offsets.offset[0])
            if first > self._start:
                self._dictionary_at = self._start, first - self._start

    def _where(self) -> str:
        return f"{self._file.name}: column {self.leaf.name!r}, row group {self._row_group}"

    def _where_page(self) -> str:
        page = "dictionary page" if self._page_number is None else f"page {self._page_number}"
        return f"{self._where()}, {page} at byte {self._at}"

    def _corrupt(self, message: str) -> CorruptFileError:
        return CorruptFileError(f"{self._where_page()}: {message}")

    # -- fetching -----------------------------------------------------------------------------

    def want(self, ranges: rows.RowRanges) -> list[tuple[int, int]]:
        """The (offset, length) of the bytes that these rows need."""
        self._ranges = ranges
        offsets = self._offsets
        wanted: list[tuple[int, int]] = []
        if offsets is None or ranges.num_rows == self._num_rows:
            self._pages = None
            wanted.append((self._start, self._stop - self._start))
        else:
            self._pages = offsets.pages_of(ranges)
            if len(self._pages) == 1:
                wanted.append(
                    (
                        int(offsets.offset[self._pages[0]]),
                        int(offsets.compressed_size[self._pages[0]]),
                    )
                )
            else:
                starts, sizes = offsets.offset[self._pages], offsets.compressed_size[self._pages]
                wanted.extend(zip(starts.tolist(), sizes.tolist(), strict=True))
            if self._dictionary_at is not None and self._dictionary_is_sure():
                wanted.append(self._dictionary_at)
        self._report.bytes += sum(length for _, length in wanted)
        return wanted

    def _dictionary_is_sure(self) -> bool:
        chunk = self._chunk
        if chunk.encoding_stats == 1 and chunk.other_data_pages == 0:
            return True
        return self._file.store.latency >= SLOW_STORE

    def give(self, buffers: list[memoryview]) -> None:
        """The bytes asked for by `want`, in its order."""
        if self._pages is not None and len(buffers) > len(self._pages):
            self._dictionary_data = buffers.pop()
        self._buffers = buffers

    # -- decoding -----------------------------------------------------------------------------

    def read(self) -> list[pa.Array]:
        """The rows asked for, as arrays of the form's storage type: one, or more where offsets run out.

        Raises IndexMismatch where the pages are not what the offset index says: the rows asked for may
        themselves have been chosen on its word, so the caller has to begin again without it.
        """
        try:
            return self._decode()
        except IndexMismatch as mismatch:
            self._fetcher.report.note(f"{self._where()}: offset index ignored: {mismatch}")
            raise
        finally:
            self._buffers = []
            self._dictionary_data = None

    def _decode(self) -> list[pa.Array]:
        try:
            decoder = core.LeafDecoder(
                self.form.core, 1 if self.leaf.max_def else 0, 0, lsb_levels=self._file.lsb_levels
            )
            pages = self._walk(decoder) if self._pages is None else self._indexed(decoder)
            arrays: list[pa.Array] = []
            decoder.begin(self._ranges)
            state: int | None = core.TAKE_PAGE if self._ranges else core.TAKE_DONE
            while state != core.TAKE_DONE:
                if state == core.TAKE_FULL:
                    arrays.append(to_arrow(self.form, *decoder.finish()))
                    decoder.begin(self._ranges)
                    state = decoder.resume()
                    continue
                state = next(pages, None)
                if state is None:
                    raise CorruptFileError(
                        f"{self._where()}: the chunk ends at row {decoder.row}, the row group has {self._num_rows} rows"
                    )
            arrays.append(to_arrow(self.form, *decoder.finish()))
        except core.CoreError as error:
            raise from_core(error, self._where_page()) from error
        self._report.rows_decoded += self._ranges.num_rows
        return arrays

    def _indexed(self, decoder: core.LeafDecoder) -> Iterator[int]:
        """Hand over the fetched pages; each answer of the decoder is yielded."""
        offsets = self._offsets
        assert offsets is not None and self._pages is not None
        for data, page in zip(self._buffers, self._pages, strict=True):
            self._page_number, self._at = page, int(offsets.offset[page])
            first = int(offsets.first_row[page])
            try:
                header = page_header(data, 0, self._where_page, self._at)
            except CorruptFileError as error:
                raise IndexMismatch(
                    self.leaf, f"no page header at byte {self._at}: {error}"
                ) from error
            size = header.header_length + header.compressed_size
            if header.type not in (DATA_PAGE, DATA_PAGE_V2):
                raise IndexMismatch(
                    self.leaf, f"page {page} is of type {header.type}, not a data page"
                )
            if size != data.nbytes:
                raise IndexMismatch(self.leaf, f"page {page} has {size} bytes, not {data.nbytes}")
            if header.num_values != int(offsets.first_row[page + 1]) - first:
                raise IndexMismatch(self.leaf, f"page {page} has {header.num_values} rows")
            yield self._page(decoder, data[header.header_length :], header, first)

    def _walk(self, decoder: core.LeafDecoder) -> Iterator[int]:
        """Go through the chunk header by header; pages without a selected row are not decompressed."""
        (data,) = self._buffers
        at, row, page = 0, 0, 0
        while row < self._num_rows and at < data.nbytes:
            self._page_number, self._at = page, self._start + at
            header = page_header(data, at, self._where_page, self._start)
            body_at = at + header.header_length
            stop_at = body_at + header.compressed_size
            if stop_at > data.nbytes:
                raise self._corrupt(f"{header.compressed_size} bytes reach beyond the chunk")
            if header.type == DICTIONARY_PAGE:
                self._dictionary_data = data[at:stop_at]
                self._dictionary_at = self._start + at, stop_at - at
            elif header.type in (DATA_PAGE, DATA_PAGE_V2):
                stop = row + header.num_values
                if stop > self._num_rows:
                    raise self._corrupt(
                        f"its rows {row} to {stop} go beyond the {self._num_rows} of the row group"
                    )
                if self._ranges.meets(row, stop):
                    yield self._page(decoder, data[body_at:stop_at], header, row)
                if self._offsets is None:
                    self._report.pages_total += 1
                row, page = stop, page + 1
            at = stop_at

    def _page(
        self, decoder: core.LeafDecoder, body: memoryview, header: Any, first_row: int
    ) -> int:
        if header.crc != ABSENT:
            self._check(body, header.crc)
        if header.encoding in DICTIONARY_ENCODINGS and not decoder.has_dictionary:
            here = self._page_number, self._at
            self._load_dictionary(decoder)
            self._page_number, self._at = here
        self._report.pages_read += 1
        if header.type == DATA_PAGE:
            plain = self._decompress(body, header.uncompressed_size)
            return decoder.page(
                plain, None, 1, header.encoding, header.def_encoding, header.rep_encoding,
                header.num_values, -1, -1, 0, 0, first_row,
            )  # fmt: skip
        levels = header.rep_length + header.def_length
        if levels > body.nbytes or levels > header.uncompressed_size:
            raise self._corrupt(f"levels of {levels} bytes in a page of {body.nbytes}")
        values: Any = body[levels:]
        size = header.uncompressed_size - levels
        if header.is_compressed != 0 and not (size == 0 and values.nbytes == 0):
            values = self._decompress(values, size)
        elif values.nbytes != size:
            raise self._corrupt(f"{values.nbytes} bytes of values, {size} declared")
        nulls = -1 if header.num_nulls == ABSENT else header.num_nulls
        return decoder.page(
            values, body[:levels], 2, header.encoding, 3, 3, header.num_values, nulls,
            header.num_rows, header.rep_length, header.def_length, first_row,
        )  # fmt: skip

    def _check(self, body: memoryview, crc: int) -> None:
        if core.crc32(body) != crc & 0xFFFFFFFF:
            raise self._corrupt("the checksum of the page does not match its bytes")

    def _load_dictionary(self, decoder: core.LeafDecoder) -> None:
        if self._dictionary_at is None:
            raise self._corrupt("dictionary-encoded, and the chunk has no dictionary page")
        at, length = self._dictionary_at
        if self._dictionary_data is None:
            (self._dictionary_data,) = self._fetcher.read([(at, length)], "data")
            self._report.bytes += length
        data = self._dictionary_data
        self._page_number, self._at = None, at
        header = page_header(data, 0, self._where_page, at)
        if header.type != DICTIONARY_PAGE:
            raise self._corrupt(f"page of type {header.type}, not a dictionary")
        if header.encoding not in (0, 2):
            raise self._corrupt(f"encoding {header.encoding}, not PLAIN")
        body = data[header.header_length : header.header_length + header.compressed_size]
        if body.nbytes != header.compressed_size:
            raise self._corrupt(f"{header.compressed_size} bytes reach beyond its place")
        if header.crc != ABSENT:
            self._check(body, header.crc)
        self._report.dictionary_pages += 1
        decoder.dictionary(self._decompress(body, header.uncompressed_size), header.num_values)
