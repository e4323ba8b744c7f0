"""What the page headers of a column chunk say, walked one after the other without decoding a page."""

from __future__ import annotations

from typing import Any

from pageseek._core import rows
from pageseek._core.pages import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE
from pageseek.base.errors import CoreError
from pageseek.base.records import NamedTuple
from pageseek.scanning.leaves.segments import PageBytes


def count_values(decoder: Any, data: memoryview) -> int | None:
    """The values that pages have by their headers; None where a header cannot be read."""
    at = values = 0
    while at < data.nbytes:
        try:
            kind = decoder.head(data, at)
        except CoreError:
            return None
        if kind in (DATA_PAGE, DATA_PAGE_V2):
            values += decoder.num_values
        at = decoder.stop
    return values


def headers_tell_rows(decoder: Any, data: memoryview, num_rows: int) -> bool:
    """Whether every page header counts rows, all of them those of the row group, and no row is cut: the format forbids that in
    pages of version 2, and old writers did it.
    """
    at = rows_in = 0
    while at < data.nbytes:
        try:
            kind = decoder.head(data, at)
        except CoreError:
            return False  # the decoder raises it again when it comes there
        if kind == DATA_PAGE:
            return False
        if kind == DATA_PAGE_V2:
            if not decoder.begins_row:
                return False
            rows_in += decoder.num_rows
        at = decoder.stop
    return rows_in == num_rows


class ChunkPages(NamedTuple):
    """Data pages with selected rows, the dictionary page before them, and how many data pages there are up to the last one."""

    pages: list[PageBytes]
    dictionary: memoryview | None
    seen: int


def pages_of_chunk(
    decoder: Any, data: memoryview, num_rows: int, ranges: rows.RowRanges
) -> ChunkPages | None:
    """The pages of a chunk that does not repeat. None where the headers do not add up: whoever decodes the chunk finds out why."""
    pages: list[PageBytes] = []
    dictionary = None
    at = row = seen = 0
    last = ranges.bounds[1]
    while at < data.nbytes and row < last:
        try:
            kind = decoder.head(data, at)
        except CoreError:
            return None
        stop = decoder.stop
        if kind in (DATA_PAGE, DATA_PAGE_V2):
            n, seen = decoder.num_values, seen + 1
            if row + n > num_rows:
                return None
            if ranges.meets(row, row + n):
                pages.append((data[at:stop], row, n))
            row += n
        elif kind == DICTIONARY_PAGE and dictionary is None and not seen:
            dictionary = data[at:stop]
        else:
            return None
        at = stop
    return ChunkPages(pages, dictionary, seen) if row >= last else None
