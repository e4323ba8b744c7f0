"""Finds the bytes of a column chunk that hold selected rows."""

from __future__ import annotations

from pageseek._core import rows
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import OffsetIndex, Page
from pageseek.format.schema import Leaf


def pages_wanted(
    offsets: OffsetIndex | None, ranges: rows.RowRanges, num_rows: int, levels: bool
) -> list[Page] | None:
    """The pages of a chunk that hold rows, by its offset index; None: the whole chunk. `levels`: the dictionary is not read."""
    if offsets is None or (ranges.num_rows == num_rows and not levels):
        return None
    pages = offsets.pages_of(ranges)
    return None if not levels and len(pages) == offsets.num_pages > 1 else pages


def places_wanted(
    file: FileMetadata, row_group: int, leaf: Leaf, ranges: rows.RowRanges, levels: bool
) -> list[tuple[int, int]]:
    """The (offset, length) of the bytes that these rows need on a remote store, dictionary included."""
    _, start, stop = file.placed_chunk(row_group, leaf)
    offsets = file.offset_indexes.get((row_group, leaf.index))
    pages = pages_wanted(offsets, ranges, file.group_rows[row_group], levels)
    if offsets is None or pages is None:
        return [(start, stop - start)]
    places = [(offset, length) for _, offset, length, _, _ in pages]
    if places and not levels and offsets.start > start:
        places.append((start, offsets.start - start))
    return places
