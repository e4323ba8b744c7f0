"""One leaf of one row group: the pages that a selection needs, fetched and decoded."""

from __future__ import annotations

from collections.abc import Iterator
import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek.codecs import decompressor
from pageseek.errors import CorruptFileError, from_core
from pageseek.fetch import Fetcher
from pageseek.metadata import OffsetIndex, ParquetFile, chunk_range, to_arrow
from pageseek.schema import Form, Leaf

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
        self._base = 0  # byte in the file of the buffer that holds it
        self._page_number: int | None = None  # None: the dictionary page
        try:
            self._codec = decompressor(self._chunk.codec)
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
        decoder = self._chunk_decoder()
        try:
            return self._decode(decoder)
        except IndexMismatch as mismatch:
            self._fetcher.report.note(f"{self._where()}: offset index ignored: {mismatch}")
            raise
        except core.HeaderError as error:
            base = None if error.offset is None else self._base
            raise from_core(error, f"{self._where_page()}: page header", base) from error
        except core.CoreError as error:
            raise from_core(error, self._where_page()) from error
        finally:
            self._buffers = []
            self._dictionary_data = None

    def _chunk_decoder(self) -> core.LeafDecoder:
        codec, decompress = self._codec
        return core.LeafDecoder(
            self.form.core,
            1 if self.leaf.max_def else 0,
            0,
            lsb_levels=self._file.lsb_levels,
            codec=codec,
            decompress=decompress,
        )

    def _decode(self, decoder: core.LeafDecoder) -> list[pa.Array]:
        arrays: list[pa.Array] = []
        ranges = self._ranges.ranges
        decoder.begin(ranges)
        if self._ranges:
            states = self._walk(decoder) if self._pages is None else self._indexed(decoder)
            for state in states:
                while state == core.TAKE_FULL:
                    arrays.append(to_arrow(self.form, *decoder.finish()))
                    decoder.begin(ranges)
                    state = decoder.resume()
                if state == core.TAKE_DONE:
                    break
            else:
                raise CorruptFileError(
                    f"{self._where()}: the chunk ends at row {decoder.row}, the row group has {self._num_rows} rows"
                )
        arrays.append(to_arrow(self.form, *decoder.finish()))
        self._report.rows_decoded += self._ranges.num_rows
        return arrays

    def _indexed(self, decoder: core.LeafDecoder) -> Iterator[int]:
        """Hand over the fetched pages; each answer of the decoder is yielded."""
        offsets = self._offsets
        assert offsets is not None and self._pages is not None
        first_row = memoryview(offsets.first_row)
        for data, page in zip(self._buffers, self._pages, strict=True):
            self._page_number, self._at = page, int(offsets.offset[page])
            self._base = self._at
            first = first_row[page]
            try:
                decoder.head(data, 0, first_row[page + 1] - first)
                state = decoder.take(first)
                if state == core.TAKE_DICTIONARY:
                    self._load_dictionary(decoder)
                    self._page_number, self._at = page, self._base
                    decoder.head(data)
                    state = decoder.take(first)
            except core.PageMismatch as error:
                raise IndexMismatch(self.leaf, f"page {page} {error}") from error
            except core.HeaderError as error:
                raise IndexMismatch(
                    self.leaf, f"no page header at byte {self._at}: {error}"
                ) from error
            self._report.pages_read += 1
            yield state

    def _walk(self, decoder: core.LeafDecoder) -> Iterator[int]:
        """Go through the chunk header by header; pages without a selected row are not decompressed."""
        (data,) = self._buffers
        at, row, page = 0, 0, 0
        bounds = iter(self._ranges)
        wanted = next(bounds, None)
        self._base = self._start
        while row < self._num_rows and at < data.nbytes:
            self._page_number, self._at = page, self._start + at
            kind = decoder.head(data, at)
            stop_at = decoder.stop
            if kind == core.DICTIONARY_PAGE:
                self._dictionary_data = data[at:stop_at]
                self._dictionary_at = self._start + at, stop_at - at
            elif kind in (core.DATA_PAGE, core.DATA_PAGE_V2):
                stop = row + decoder.num_values
                if stop > self._num_rows:
                    raise self._corrupt(
                        f"its rows {row} to {stop} go beyond the {self._num_rows} of the row group"
                    )
                while wanted is not None and wanted[1] <= row:
                    wanted = next(bounds, None)
                if wanted is not None and wanted[0] < stop:
                    state = decoder.take(row)
                    if state == core.TAKE_DICTIONARY:
                        self._load_dictionary(decoder)
                        self._page_number, self._at, self._base = page, self._start + at, self._start
                        decoder.head(data, at)
                        state = decoder.take(row)
                    self._report.pages_read += 1
                    yield state
                if self._offsets is None:
                    self._report.pages_total += 1
                row, page = stop, page + 1
            at = stop_at

    def _load_dictionary(self, decoder: core.LeafDecoder) -> None:
        if self._dictionary_at is None:
            raise self._corrupt("dictionary-encoded, and the chunk has no dictionary page")
        at, length = self._dictionary_at
        if self._dictionary_data is None:
            (self._dictionary_data,) = self._fetcher.read([(at, length)], "data")
            self._report.bytes += length
        self._page_number, self._at, self._base = None, at, at
        try:
            decoder.head(self._dictionary_data)
        except core.HeaderError as error:  # the index does not speak of this page
            raise from_core(error, f"{self._where_page()}: page header", at) from error
        decoder.take_dictionary()
        self._report.dictionary_pages += 1
