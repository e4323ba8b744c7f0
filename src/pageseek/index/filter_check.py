"""The Bloom filter of a chunk, compared with the values of its pages (BloomFilter.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pageseek._core import bloom as core
from pageseek._core import build
from pageseek.base.errors import CoreError
from pageseek.format.checksums import ALTERED, filter_key, of_pieces, piece_of, sums_size
from pageseek.format.chunks import chunk_range
from pageseek.format.embedded import BLOOM, InvalidIndexError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import ABSENT, K_F16, K_F32, K_F64
from pageseek.index.bloom_builder import is_half
from pageseek.index.page_reader import Chunk, Page, Values

VALUES_AT_ONCE = 1 << 16  # values that are looked for at a time
HEADER_BYTES = 256  # bytes that hold any header
_FLOATS = {K_F16: np.float16, K_F32: np.float32, K_F64: np.float64}


class FilterCheck:
    """The filter that a chunk says it has. `wrong` takes what is wrong with it, and the number of a page or None."""

    def __init__(
        self, file: FileMetadata, chunk: Chunk, wrong: Callable[[int | None, str], None]
    ) -> None:
        self._file, self._chunk, self._wrong = file, chunk, wrong
        self._float = _FLOATS.get(K_F16 if is_half(chunk.leaf) else chunk.kind or 0)
        self._bits = None if chunk.metadata.bloom_filter_offset == ABSENT else self._read()

    def _read(self) -> memoryview | None:
        """The bits; None where there is no filter."""
        m, end, read = self._chunk.metadata, self._file.footer_start, self._file.store.read
        offset, declared = m.bloom_filter_offset, m.bloom_filter_length
        if not 4 <= offset < end:
            self._wrong(None, f"at byte {offset}, where there is none")
            return None
        (head,) = read([(offset, min(HEADER_BYTES, end - offset))])
        try:
            length, size = core.header(head)
        except CoreError as error:
            self._wrong(None, error.message)
            return None
        if offset + length + size > end:
            self._wrong(None, f"its {size} bytes have no room")
            return None
        if declared not in (ABSENT, length + size):
            self._wrong(None, f"{declared} bytes by the footer, {length + size} by its header")
        (data,) = read([(offset + length, size)])
        bits = memoryview(data)
        self._check_sums(memoryview(head)[:length], bits)
        return bits

    def _check_sums(self, header: memoryview, bits: memoryview) -> None:
        """Compare the checksums of a filter that was attached with some."""
        at, length = self._chunk.metadata.bloom_filter_offset, header.nbytes + bits.nbytes
        entry = self._file.attached_with_sums(BLOOM, at)
        if entry is None or self._file.has_copied_entries:
            return
        try:
            piece = piece_of(entry, at, length, bits.nbytes)
        except InvalidIndexError as error:
            self._wrong(None, str(error))
            return
        (sums,) = self._file.store.read([(at + length, sums_size(bits.nbytes, piece))])
        key = filter_key(header, chunk_range(self._chunk.metadata)[0])
        if of_pieces(bits, key, piece) != sums:
            self._wrong(None, ALTERED)

    def take(self, page: Page) -> None:
        """Look for all values of a page."""
        if self._bits is None or page.values is None:
            return
        n = found = 0
        zeros: Values | None = None
        for piece in page.values.pieces(self._chunk.value_bytes, VALUES_AT_ONCE):
            values, signed_zeros = self._without_specials(piece)
            zeros = signed_zeros or zeros
            looked_for, there = self._found(values, self._bits)
            n, found = n + looked_for, found + there
        if zeros is not None:
            looked_for, there = self._found(zeros, self._bits)
            if looked_for and not there:
                self._wrong(page.number, "it has a zero, and one of neither sign is in it")
        if found < n:
            self._wrong(page.number, f"{n - found} of its {n} values are not in it")

    def _found(self, values: Values, bits: memoryview) -> tuple[int, int]:
        """How many values there are, and how many of them the filter has."""
        assert self._chunk.kind is not None
        try:
            hashes = build.hashes(self._chunk.kind, self._chunk.width, values)
        except CoreError:  # of a type without hashes: what the filter holds is not known
            return 0, 0
        return len(hashes) // 8, core.check(bits, core.places(hashes, bits.nbytes), hashes)

    def _without_specials(self, values: Values) -> tuple[Values, Values | None]:
        """Floats without NaN and zeros, which writers hash each in a way of its own; and zeros of both signs, if there is one: a
        reader looks for both.
        """
        if self._float is None:
            return values, None
        numbers = np.frombuffer(values.data, self._float, values.n)
        valid = values.valid()
        kept = valid & (numbers == numbers) & (numbers != 0)
        zeros = None
        if (valid & (numbers == 0)).any():
            zeros = Values(2, None, None, np.array([0.0, -0.0], self._float).tobytes())
        return values._replace(validity=np.packbits(kept, bitorder="little")), zeros
