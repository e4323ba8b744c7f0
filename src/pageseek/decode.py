"""One leaf of one row group: the pages that a selection needs, fetched and decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
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
        self._file = file
        self._row_group = row_group
        self.leaf = leaf
        self.form = form
        self._fetcher = fetcher
        self._offsets = offsets
        self._chunk = file.chunk(row_group, leaf)
        self._num_rows = file.row_groups[row_group].num_rows
        self._start, self._stop = chunk_range(self._chunk)
        self._where = f"{file.name}: column {leaf.name!r}, row group {row_group}"
        self._decompress = decompressor(self._chunk.codec, self._where)
        self._report = fetcher.report.leaf(leaf.name)
        if offsets is not None:
            self._report.pages_total += offsets.num_pages
        self._ranges: rows.RowRanges = rows.RowRanges.empty()
        self._pages: list[int] | None = None  # pages wanted; None: the whole chunk
        self._buffers: list[memoryview] = []
        self._dictionary_at: tuple[int, int] | None = None
        self._dictionary_data: memoryview | None = None
        if offsets is not None and offsets.offset[0] > self._start:
            self._dictionary_at = self._start, int(offsets.offset[0]) - self._start

    @property
    def bytes_per_row(self) -> float:
        """What decoding a row costs, about: for the order of filters."""
        return self._chunk.total_uncompressed_size / max(self._num_rows, 1)

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
            touched = np.frombuffer(rows.pages_touched(ranges, offsets.first_row), np.uint8)
            self._pages = np.flatnonzero(touched).tolist()
            starts, sizes = offsets.offset[self._pages].tolist(), offsets.compressed_size[self._pages].tolist()
            wanted.extend(zip(starts, sizes, strict=True))
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
            self._fetcher.report.note(f"{self._where}: offset index ignored: {mismatch}")
            raise
        finally:
            self._buffers = []
            self._dictionary_data = None

    def _decode(self) -> list[pa.Array]:
        max_def = 1 if self.leaf.max_def else 0
        try:
            decoder = core.LeafDecoder(self.form.core, max_def, 0)
            pages = self._walk(decoder) if self._pages is None else self._indexed(decoder)
            arrays: list[pa.Array] = []
            decoder.begin(self._ranges.ranges)
            state = core.TAKE_DONE if not self._ranges else core.TAKE_PAGE
            while state != core.TAKE_DONE:
                if state == core.TAKE_FULL:
                    arrays.append(to_arrow(self.form, *decoder.finish()))
                    decoder.begin(self._ranges.ranges)
                    state = decoder.resume()
                    continue
                state = next(pages, None)  # type: ignore[assignment]
                if state is None:
                    raise CorruptFileError(
                        f"{self._where}: the chunk ends at row {decoder.row}, the row group has {self._num_rows} rows"
                    )
            arrays.append(to_arrow(self.form, *decoder.finish()))
        except core.CoreError as error:
            raise from_core(error, self._where) from error
        self._report.rows_decoded += self._ranges.num_rows
        return arrays

    def _indexed(self, decoder: core.LeafDecoder) -> Iterator[int]:
        """Hand over the fetched pages; each answer of the decoder is yielded."""
        offsets = self._offsets
        assert offsets is not None and self._pages is not None
        for data, page in zip(self._buffers, self._pages, strict=True):
            at, first = int(offsets.offset[page]), int(offsets.first_row[page])
            where = f"{self._where}, page {page}"
            try:
                header = page_header(data, 0, where, at)
            except CorruptFileError as error:
                raise IndexMismatch(self.leaf, f"no page header at byte {at}: {error}") from error
            size = header.header_length + header.compressed_size
            if header.type not in (DATA_PAGE, DATA_PAGE_V2):
                raise IndexMismatch(self.leaf, f"page {page} is of type {header.type}, not a data page")
            if size != data.nbytes:
                raise IndexMismatch(self.leaf, f"page {page} has {size} bytes, not {data.nbytes}")
            if header.num_values != int(offsets.first_row[page + 1]) - first:
                raise IndexMismatch(self.leaf, f"page {page} has {header.num_values} rows")
            yield self._page(decoder, data[header.header_length :], header, first, at, where)

    def _walk(self, decoder: core.LeafDecoder) -> Iterator[int]:
        """Go through the chunk header by header; pages without a selected row are not decompressed."""
        (data,) = self._buffers
        at, row, page = 0, 0, 0
        bounds = iter(self._ranges)
        wanted = next(bounds, None)
        while row < self._num_rows and at < data.nbytes:
            where = f"{self._where}, page {page}"
            header = page_header(data, at, where, self._start)
            body_at = at + header.header_length
            if header.compressed_size > data.nbytes - body_at:
                raise CorruptFileError(
                    f"{where} at byte {self._start + at}: {header.compressed_size} bytes reach beyond the chunk"
                )
            body = data[body_at : body_at + header.compressed_size]
            if header.type == DICTIONARY_PAGE:
                self._dictionary_data = data[at : body_at + header.compressed_size]
                self._dictionary_at = self._start + at, header.header_length + header.compressed_size
            elif header.type in (DATA_PAGE, DATA_PAGE_V2):
                stop = row + header.num_values
                if stop > self._num_rows:
                    raise CorruptFileError(
                        f"{where} at byte {self._start + at}: its rows {row} to {stop} go beyond the {self._num_rows} of the row group"
                    )
                while wanted is not None and wanted[1] <= row:
                    wanted = next(bounds, None)
                if wanted is not None and wanted[0] < stop:
                    yield self._page(decoder, body, header, row, self._start + at, where)
                if self._offsets is None:
                    self._report.pages_total += 1
                row, page = stop, page + 1
            at = body_at + header.compressed_size

    def _page(
        self, decoder: core.LeafDecoder, body: memoryview, header: Any, first_row: int, at: int, where: str
    ) -> int:
        self._check(body, header, at, where)
        if header.encoding in DICTIONARY_ENCODINGS and not decoder.has_dictionary:
            self._load_dictionary(decoder, where)
        self._report.pages_read += 1
        try:
            if header.type == DATA_PAGE:
                plain = self._decompress(body, header.uncompressed_size, f"{where} at byte {at}")
                return decoder.page(
                    plain, None, 1, header.encoding, header.def_encoding, header.rep_encoding,
                    header.num_values, -1, -1, 0, 0, first_row,
                )  # fmt: skip
            levels = header.rep_length + header.def_length
            if levels > body.nbytes or levels > header.uncompressed_size:
                raise CorruptFileError(f"{where} at byte {at}: levels of {levels} bytes in a page of {body.nbytes}")
            values: Any = body[levels:]
            size = header.uncompressed_size - levels
            if header.is_compressed != 0 and not (size == 0 and values.nbytes == 0):
                values = self._decompress(values, size, f"{where} at byte {at}")
            elif values.nbytes != size:
                raise CorruptFileError(f"{where} at byte {at}: {values.nbytes} bytes of values, {size} declared")
            return decoder.page(
                values, body[:levels], 2, header.encoding, 3, 3, header.num_values, header.num_nulls,
                header.num_rows, header.rep_length, header.def_length, first_row,
            )  # fmt: skip
        except core.CoreError as error:
            raise from_core(error, f"{where} at byte {at}") from error

    @staticmethod
    def _check(body: memoryview, header: Any, at: int, where: str) -> None:
        if header.crc != ABSENT and core.crc32(body) != header.crc & 0xFFFFFFFF:
            raise CorruptFileError(f"{where} at byte {at}: the checksum of the page does not match its bytes")

    def _load_dictionary(self, decoder: core.LeafDecoder, where: str) -> None:
        if self._dictionary_at is None:
            raise CorruptFileError(f"{where}: dictionary-encoded, and the chunk has no dictionary page")
        at, length = self._dictionary_at
        if self._dictionary_data is None:
            (self._dictionary_data,) = self._fetcher.read([(at, length)], "data")
            self._report.bytes += length
        data = self._dictionary_data
        where = f"{self._where}, dictionary page at byte {at}"
        header = page_header(data, 0, where, at)
        if header.type != DICTIONARY_PAGE:
            raise CorruptFileError(f"{where}: page of type {header.type}, not a dictionary")
        if header.encoding not in (0, 2):
            raise CorruptFileError(f"{where}: encoding {header.encoding}, not PLAIN")
        body = data[header.header_length : header.header_length + header.compressed_size]
        if body.nbytes != header.compressed_size:
            raise CorruptFileError(f"{where}: {header.compressed_size} bytes reach beyond its place")
        self._check(body, header, at, where)
        self._report.dictionary_pages += 1
        plain = self._decompress(body, header.uncompressed_size, where)
        try:
            decoder.dictionary(plain, header.num_values)
        except core.CoreError as error:
            raise from_core(error, where) from error
