"""A column chunk page by page, its values with the bytes of the file. Indexes are built from it, and verified by it.

Sources: parquet.thrift (PageHeader), README.md of the format (Data Pages).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core.metadata import TRUNCATED
from pageseek._core.pages import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE
from pageseek._core.status import PageMismatch
from pageseek.base.errors import CoreError, CorruptFileError, UnsupportedError, from_core
from pageseek.base.limits import DEFAULT
from pageseek.base.records import NamedTuple
from pageseek.format.chunks import page_header
from pageseek.format.codecs import decompressor
from pageseek.format.columns import PRESENCE, part_of
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    INT96,
    K_BOOL,
    K_BYTES,
    K_F32,
    K_F64,
    K_FIXED,
    K_I32,
    K_I64,
    MAX_FIXED,
    Options,
)
from pageseek.index.page_budget import Room

WINDOW = 8 << 20  # bytes of a chunk that are held at a time, or a whole page
LIKELY = 256 << 20  # bytes of text for which memory is taken before they are decoded, at most
HEADER, LARGEST_HEADER = (
    1 << 10,
    16 << 20,
)  # bytes in which a page header is looked for, at first and at most
_MILLISECONDS = 1  # unit of INT96 (ps_leaf_spec): every day fits
CODES = 2, 8  # encodings of codes: PLAIN_DICTIONARY, RLE_DICTIONARY
Read = Callable[[int, int], memoryview]  # (offset, length) to bytes
Takes = Callable[[int], None]  # called with the bytes of memory that a page takes


class Physical(NamedTuple):
    """How values of a physical type are decoded, with the bytes of the file.

    `kind`: their ps_kind. `width`: bytes of a value, 0 for bits and texts. `arrow`: the Arrow type with such buffers.
    """

    kind: int
    width: int
    arrow: pa.DataType


_PHYSICAL = {
    BOOLEAN: Physical(K_BOOL, 0, pa.bool_()),
    INT32: Physical(K_I32, 4, pa.int32()),
    INT64: Physical(K_I64, 8, pa.int64()),
    FLOAT: Physical(K_F32, 4, pa.float32()),
    DOUBLE: Physical(K_F64, 8, pa.float64()),
    BYTE_ARRAY: Physical(K_BYTES, 0, pa.binary()),
}


def physical_of(leaf: Leaf) -> Physical | None:
    """How the values of a leaf are decoded; None for INT96, whose values no index has, and for a width that no value can have."""
    if leaf.element.type == FIXED:
        length = leaf.element.type_length
        return Physical(K_FIXED, length, pa.binary(length)) if 0 < length <= MAX_FIXED else None
    return _PHYSICAL.get(leaf.element.type)


class SpansError(Exception):
    """Rows go on from one page to the next, so that no page can be read by itself."""


class Values(NamedTuple):
    """Values as `_core.build` takes them: how many, validity or None, offsets or None, data."""

    n: int
    validity: Any
    offsets: Any
    data: Any

    @property
    def nbytes(self) -> int:
        """The bytes of its buffers."""
        return sum(memoryview(part).nbytes for part in self[1:] if part is not None)

    def valid(self) -> npt.NDArray[np.bool_]:
        """Which of them are not null."""
        if self.validity is None:
            return np.ones(self.n, np.bool_)
        bits = np.frombuffer(self.validity, np.uint8)
        return np.unpackbits(bits, count=self.n, bitorder="little").view(np.bool_)

    def pieces(self, width: int, rows: int) -> Iterator[Values]:
        """Pieces of `rows` values, a multiple of 8. `width`: the bytes of a value of a fixed width; bits cannot be cut."""
        data = memoryview(self.data).cast("B")
        validity, offsets = (
            None if part is None else memoryview(part).cast("B")
            for part in (self.validity, self.offsets)
        )
        for at in range(0, self.n, rows):
            n = min(rows, self.n - at)
            yield Values(
                n,
                None if validity is None else validity[at // 8 : (at + n + 7) // 8],
                None if offsets is None else offsets[4 * at : 4 * (at + n + 1)],
                data if offsets is not None else data[at * width : (at + n) * width],
            )


class Page(NamedTuple):
    """A data page. `offset`: of its header in the file. `size`: bytes of header and body. `first_row` counts from the first row
    of the row group. `num_values`: levels; `nulls` of them have no value, which is counted only if the caller wants values.
    `values` is None where the caller does not want them, or where values of this type are never decoded. `head`: the bytes of a
    header with statistics, else empty.
    """

    number: int
    offset: int
    size: int
    first_row: int
    num_rows: int
    num_values: int
    nulls: int
    values: Values | None
    header: Any
    head: bytes


class Chunk:
    """One column chunk, which can be read several times. It is not shared between threads."""

    def __init__(
        self, file: FileMetadata, row_group: int, leaf: Leaf, read: Read, room: Room | None = None
    ) -> None:
        """`read`: reads bytes of the file, and counts them. `room`: memory for the pages of all chunks that are read at a time."""
        self._file, self.row_group, self.leaf, self._read = file, row_group, leaf, read
        self.metadata, self._start, self._stop = file.placed_chunk(row_group, leaf)
        self.num_rows = file.group_rows[row_group]
        physical, found = leaf.element.type, physical_of(leaf)
        length = leaf.element.type_length if physical == FIXED else 0
        self.kind = None if found is None else found.kind
        self.width, self.value_bytes = length, 0 if found is None else found.width
        self._leaf_type = physical, length, self.kind or 0, length, 0, 0, 0
        if physical == INT96:  # only nulls are counted
            self._leaf_type = physical, 0, K_I64, 0, _MILLISECONDS, 0, 0
        self.tells_nulls = physical != FIXED or found is not None  # if the caller wants values
        self._at = 0  # offset of the page that is read, for errors
        self._room = Room() if room is None else room
        self._window, self._base = memoryview(b""), self._start  # bytes at hand, and where they lie
        self._entries, self._entry = 0, 0.0  # bytes of the dictionary, and of one of its values

    @property
    def where(self) -> str:
        return f"{self._file.name}: column {self.leaf.name!r}, row group {self.row_group}"

    def pages(self, values: bool) -> Generator[Page]:
        """Its data pages, with their `values` if the caller wants them. The caller closes the generator.

        Raises
        ------
        SpansError
            Rows go on in the next page.
        PageseekError
            The chunk cannot be read.
        """
        try:
            yield from self._pages(values)
        except PageMismatch as error:
            raise SpansError(str(error)) from error
        except CoreError as error:
            raise from_core(error, f"{self.where}, page at byte {self._at}") from error

    def _decoder(self, levels_only: bool) -> Any:
        leaf, file = self.leaf, self._file
        codec, decompress = decompressor(self.metadata.codec)
        nesting_levels: tuple[Any, ...] = ()
        if not leaf.flat:
            nesting_levels = part_of(file, leaf, PRESENCE, Options()).nesting_levels
        leaf_type = PRESENCE.core if levels_only else self._leaf_type
        return core.LeafDecoder(
            leaf_type,
            leaf.max_def,
            leaf.max_rep,
            nesting_levels=nesting_levels,
            levels_only=levels_only,
            lsb_levels=file.writer.lsb_levels,
            codec=codec,
            decompress=decompress,
            max_page=DEFAULT.max_page_bytes,
            max_output=DEFAULT.max_output_bytes,
            always_compressed=file.writer.always_compressed,
        )

    def joined(self) -> Generator[Page]:
        """The whole chunk as one page, or a few where its values take too much memory: for chunks whose rows go on from page to
        page. The last one has the counts of levels and nulls. Errors as of `pages`.
        """
        try:
            yield from self._joined()
        except CoreError as error:
            raise from_core(error, f"{self.where}, page at byte {self._at}") from error

    def _joined(self) -> Generator[Page]:
        decoder, row = self._decoder(levels_only=False), 0
        ranges, levels, known = struct.pack("<2q", 0, self.num_rows), 0, 0

        def made(header: Any, last: bool) -> Page:
            nonlocal known
            size, absent, validity, offsets, bits = decoder.finish()
            known += size - absent
            values = None
            if self.kind is not None:
                values = Values(size, validity if absent else None, offsets, bits)
            n, nulls = (levels, levels - known) if last else (0, 0)
            size = self._stop - self._start
            return Page(0, self._start, size, 0, self.num_rows, n, nulls, values, header, b"")

        decoder.begin(ranges)
        header: Any = None
        with closing(self._walk(values=True, decoded=True)) as pages:
            for header, data, _, _ in pages:
                decoder.head(data)
                if header.type == DICTIONARY_PAGE:
                    decoder.take_dictionary()
                    continue
                state = decoder.take(row, False)
                while state == core.TAKE_FULL:
                    yield made(header, False)
                    decoder.begin(ranges)
                    state = decoder.resume()
                if state == core.TAKE_DICTIONARY:
                    raise self._no_dictionary()
                row, levels = row + decoder.page_rows, levels + header.num_values
        if decoder.end() != core.TAKE_DONE:
            raise CorruptFileError(
                f"{self.where}: the chunk ends at row {decoder.row}, the row group has {self.num_rows}"
            )
        yield made(header, True)

    def _no_dictionary(self) -> CorruptFileError:
        return CorruptFileError(
            f"{self.where}, page at byte {self._at}: dictionary-encoded, and the chunk has no dictionary page"
        )

    def _pages(self, asked: bool) -> Generator[Page]:
        repeated, asked = self.leaf.max_rep > 0, asked and self.tells_nulls
        values = asked and self.kind is not None
        counts = self._rows_of_pages() if repeated else None
        decoder: Any = self._decoder(levels_only=not asked) if asked or repeated else None
        row = number = 0
        with closing(self._walk(asked, asked or repeated)) as pages:
            for header, data, at, takes in pages:
                if header.type == DICTIONARY_PAGE:
                    if asked:
                        decoder.head(data)
                        decoder.take_dictionary()
                    continue
                n: int = header.num_values
                count = n if counts is None else counts[number]
                made, nulls, size = None, 0, data.nbytes
                head = (
                    bytes(data[: header.header_length]) if header.statistics_present == 1 else b""
                )
                if decoder is not None:
                    hint = self._text_bytes(header) if values and self.leaf.flat else 0
                    made, nulls = self._decoded(decoder, data, row, count, n, values, hint)
                    decoder.release()
                del data  # a large page is held in one form at a time
                if size > WINDOW:
                    self._window = memoryview(b"")
                takes(0 if made is None else made.nbytes)
                page = Page(number, at, size, row, count, n, nulls, made, header, head)
                made = None
                yield page
                del page
                row, number = row + count, number + 1
                if row > self.num_rows:
                    raise CorruptFileError(
                        f"{self.where}, page at byte {at}: its rows go beyond the {self.num_rows} of the row group"
                    )
                if row == self.num_rows and not repeated:  # readers ignore what follows
                    break
        if row != self.num_rows:
            raise CorruptFileError(
                f"{self.where}: its pages have {row} rows, the row group {self.num_rows}"
            )

    def _decoded(
        self, decoder: Any, data: memoryview, row: int, count: int, n: int, values: bool, hint: int
    ) -> tuple[Values | None, int]:
        if not n:
            return Values(0, None, None, b"") if values else None, 0
        if not count:
            raise SpansError("all its values belong to a row that begins before it")
        ranges = struct.pack("<2q", row, row + count)
        found = decoder.read_page(data, row, count, ranges, hint)
        if isinstance(found, int):
            if (
                found == core.TAKE_PAGE and self.leaf.max_rep
            ):  # its last row may go on in a page that follows
                found = decoder.end()
            if found == core.TAKE_DICTIONARY:
                raise self._no_dictionary()
            if found != core.TAKE_DONE:
                raise UnsupportedError(
                    f"{self.where}, page at byte {self._at}: a page of more than 2 GiB of text"
                )
            found = decoder.finish()
        size, absent, validity, offsets, bits = found
        nulls = n - (size - absent)
        return Values(size, validity if absent else None, offsets, bits) if values else None, nulls

    def _rows_of_pages(self) -> list[int]:
        """How many rows begin in each page of a repeated leaf, counted by the levels."""
        decoder, counts = self._decoder(levels_only=True), []
        decoder.begin(struct.pack("<2q", 0, max(self.num_rows, 1)))
        row = 0
        with closing(self._walk(values=False, decoded=True)) as pages:
            for header, data, _, _ in pages:
                if header.type == DICTIONARY_PAGE:
                    continue
                decoder.head(data)
                decoder.take(row, False)
                counts.append(decoder.page_rows)
                row += counts[-1]
                decoder.release()
        return counts

    def _need(self, header: Any, values: bool, decoded: bool) -> int:
        """About the bytes that a page takes: as it is stored, decompressed, and its values."""
        stored, plain, n = header.compressed_size, header.uncompressed_size, header.num_values
        if not decoded:
            return int(stored)
        out = n // 8
        if values and header.type != DICTIONARY_PAGE:
            if self.kind == K_BYTES:
                out += 4 * n + self._text_bytes(header)
            else:
                out += n * self.value_bytes
        return int(stored + plain + out)

    def _text_bytes(self, header: Any) -> int:
        """About the bytes of the texts of a page, so that they are allocated at once."""
        if self.kind != K_BYTES:
            return 0
        of_codes = int(header.num_values * self._entry)
        size = of_codes if header.encoding in CODES else header.uncompressed_size
        return min(max(size, 0), LIKELY)

    def _walk(self, values: bool, decoded: bool) -> Generator[tuple[Any, memoryview, int, Takes]]:
        """Data pages and the dictionary page, each with its header, its bytes, its place, and a function that takes the memory
        that the page takes in the end. `values`, `decoded`: what the caller makes of pages, by which their memory is estimated.
        """
        at, room = self._start, self._room
        most = self._file.max_metadata_bytes
        try:
            while at < self._stop:
                self._at, size = at, min(HEADER, self._stop - at)
                while True:
                    try:
                        header = page_header(self._brought(at, size), 0, lambda: self.where, at)
                        break
                    except CorruptFileError as error:
                        cause = error.__cause__
                        cut = isinstance(cause, CoreError) and cause.status == TRUNCATED
                        if not cut or size >= min(LARGEST_HEADER, most, self._stop - at):
                            raise
                        size = min(size * 8, self._stop - at)
                size = header.header_length + header.compressed_size
                if size > self._stop - at:
                    raise CorruptFileError(
                        f"{self.where}, page at byte {at}: its {size} bytes reach beyond the chunk, which ends at {self._stop}"
                    )
                if header.type in (DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE):
                    with room.page(self._need(header, values, decoded)) as takes:
                        yield header, self._brought(at, size), at, takes
                if header.type == DICTIONARY_PAGE and values:  # the decoder keeps it
                    plain = header.uncompressed_size
                    self._entry = plain / max(header.num_values, 1)
                    room.keep(plain - self._entries)
                    self._entries = plain
                at += size
        finally:
            room.keep(-self._entries)
            self._entries, self._window = 0, memoryview(b"")

    def _brought(self, at: int, length: int) -> memoryview:
        """Bytes of the chunk, read a window at a time."""
        held, base = self._window, self._base
        if not base <= at <= at + length <= base + held.nbytes:
            size = min(max(length, WINDOW), self._stop - at)
            del held
            self._window = memoryview(b"")  # free before others are read
            self._window, self._base = held, base = self._read(at, size), at
        return held[at - base : at - base + length]
