"""The layout of files for lookups."""

from __future__ import annotations

from pageseek.base.records import dataclass

PAGE_ROWS = 1000  # unless it is told
CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Layout:
    """How files are laid out.

    Attributes
    ----------
    page_rows, group_rows : int
        Rows of a page and of a row group, at most.
    codec : str
    group_bytes : int
        Bytes of a row group in memory, at which it ends before it has its rows.
    sorted_by : tuple of (str, bool)
        What the footer says of the order: columns, and whether descending.
    """

    page_rows: int
    group_rows: int
    codec: str
    group_bytes: int
    sorted_by: tuple[tuple[str, bool], ...] = ()
