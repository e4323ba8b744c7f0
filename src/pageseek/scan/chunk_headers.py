"""What the page headers of a column chunk say, walked one after the other without decoding a page."""

from __future__ import annotations

from typing import Any

from pageseek._core.pages import DATA_PAGE, DATA_PAGE_V2
from pageseek.base.errors import CoreError


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
