"""One leaf of one row group: where its column chunk lies, what decodes it, and how its faults are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek._core.status import HeaderError, PageMismatch
from pageseek.base.errors import CorruptFileError, from_core
from pageseek.format.chunks import has_codes_only
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.nesting import REPEATED, Decoded
from pageseek.format.types import BYTES_KINDS, passing_form, to_arrow
from pageseek.scanning.leaves.output_size import likely_bytes, likely_rows, likely_slots
from pageseek.scanning.requests.steps import IndexMismatch, ScanContext


class PagePlace:
    """Where the page at hand lies, for errors.

    Attributes
    ----------
    number : int or None
        Its number in the chunk. None: the dictionary page, or any page if `at` is 0.
    at : int
        Its byte in the file.
    base : int
        The byte in the file where the buffer begins that holds it.
    """

    __slots__ = ("at", "base", "number")

    def __init__(self) -> None:
        self.number: int | None = None
        self.at = self.base = 0

    def go(self, number: int | None, at: int, base: int | None = None) -> None:
        """Go to a page. `base`: of another buffer."""
        self.number, self.at = number, at
        if base is not None:
            self.base = base


class LeafChunk:
    """What is known of a leaf of a row group before a byte of it is read. It raises the error of a codec that is not there.

    Attributes
    ----------
    chunk : Chunk
        Its metadata in the footer, of the bytes from `start` to `stop`.
    offsets : OffsetIndex or None
        Where its pages lie.
    max_values : int
        Levels that all its pages may have together.
    all_coded : bool
        All its data pages have dictionary codes.
    """

    __slots__ = (
        "all_coded",
        "chunk",
        "codec_settings",
        "context",
        "file",
        "leaf",
        "leaf_type",
        "likely_rows",
        "max_values",
        "nesting_levels",
        "num_rows",
        "offsets",
        "row_group",
        "start",
        "stop",
    )

    def __init__(
        self, file: FileMetadata, row_group: int, part: Part, context: ScanContext
    ) -> None:
        self.leaf, self.leaf_type, self.nesting_levels = part
        leaf = self.leaf
        self.file, self.row_group, self.context = file, row_group, context
        self.offsets = file.offset_indexes.get((row_group, leaf.index))
        self.chunk, self.start, self.stop = file.placed_chunk(row_group, leaf)
        chunk = self.chunk
        self.all_coded = has_codes_only(chunk)
        self.num_rows = file.group_rows[row_group]
        # A run of a few bytes can stand for any number of levels. Only num_values bounds them if the leaf repeats.
        declared = leaf.max_rep and chunk.num_values >= 0
        self.max_values = chunk.num_values if declared else 1 << 62
        self.likely_rows = likely_rows(self.stop - self.start)
        try:
            codec = chunk.codec
            self.codec_settings = context.codec_settings.get(codec) or context.settings_of(
                codec, file
            )
        except core.CoreError as error:
            raise from_core(error, self.where) from error

    def new_decoder(
        self, passes: bool = False, tests: rows.RowTests | None = None
    ) -> core.LeafDecoder:
        """A decoder of its pages. `passes`: of which codes pass a test. `tests`: of its rows."""
        leaf, form = self.leaf, self.leaf_type.core
        return core.LeafDecoder(
            passing_form(form) if passes else form,
            leaf.max_def,
            leaf.max_rep,
            nesting_levels=self.nesting_levels,
            levels_only=leaf.group,
            likely_rows=self.likely_rows,
            max_values=self.max_values,
            codec_settings=self.codec_settings,
            passes=passes,
            tests=tests,
        )

    def hint(self, ranges: rows.RowRanges, buffers: Sequence[memoryview]) -> int:
        """The size that a decoder allocates at once: slots of a nested leaf, bytes of strings of a flat one."""
        chunk, chosen, n = self.chunk, ranges.num_rows, self.num_rows
        if self.nesting_levels:
            return likely_slots(chunk, chosen, n)
        if self.leaf_type.kind not in BYTES_KINDS:
            return 0
        fetched = sum([data.nbytes for data in buffers])
        return likely_bytes(chunk, self.leaf.max_def > 0, chosen, n, fetched)

    def array(self, made: tuple[Any, ...]) -> pa.Array:
        """The values that a decoder has made."""
        return pa.nulls(0) if self.leaf.group else to_arrow(self.leaf_type, *made)

    def nested(self, decoder: core.LeafDecoder, values: pa.Array) -> Decoded:
        """The values of a decoder with their nesting levels."""
        levels: list[tuple[Any, ...]] = []
        for level, (slots, nulls, validity, offsets) in zip(
            self.nesting_levels, decoder.nesting_levels(), strict=True
        ):
            if level[0] == REPEATED:
                levels.append((slots, pa.py_buffer(offsets)))
            else:
                bits = None if validity is None else pa.py_buffer(validity)
                levels.append((slots, nulls, bits))
        return Decoded(decoder.rows, values, levels)

    # -- errors -------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """Where it lies."""
        return f"{self.file.name}: column {self.leaf.name!r}, row group {self.row_group}"

    def where_page(self, place: PagePlace) -> str:
        """Where a page of it lies."""
        if place.number is None and not place.at:  # before the first page
            return self.where
        page = "dictionary page" if place.number is None else f"page {place.number}"
        return f"{self.where}, {page} at byte {place.at}"

    def corrupt(self, message: str, place: PagePlace) -> CorruptFileError:
        """The error of a page."""
        return CorruptFileError(f"{self.where_page(place)}: {message}")

    def placed(self, error: core.CoreError, place: PagePlace, by_index: bool) -> Exception:
        """An error of the core with its place, or IndexMismatch if the offset index led to no such page."""
        indexed = by_index and place.number is not None
        if isinstance(error, PageMismatch) or (indexed and isinstance(error, HeaderError)):
            message = f"page {place.number} at byte {place.at}: {error}"
            note = f"{self.where}: offset index ignored: {message}"
            self.file.ignore_index(self.row_group, self.leaf, note, self.context.report)
            return IndexMismatch(self.leaf, message)
        if isinstance(error, HeaderError):
            base = None if error.offset is None else place.base
            return from_core(error, f"{self.where_page(place)}: page header", base)
        return from_core(error, self.where_page(place))
