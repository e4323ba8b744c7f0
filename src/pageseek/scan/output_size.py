"""How much room a decoder makes at once for what a column chunk becomes: more is made when pages show that they need it."""

from __future__ import annotations

from typing import Any

MAX_SLOTS = 1 << 26  # of which room is made on the word of the footer
MAX_RATIO = 16  # bytes of strings for each byte that was fetched, of which room is made on its word
_DELTA = 1 << 6 | 1 << 7  # parquet.thrift, Encoding: lengths take much less than in PLAIN


def likely_rows(length: int) -> int:
    """Rows that a chunk of this many bytes may well have."""
    return (1 << 16) + (length << 10)


def likely_bytes(chunk: Any, optional: bool, chosen: int, num_rows: int, fetched: int) -> int:
    """About the bytes of the strings of the rows that were chosen. `fetched`: bytes of their pages."""
    size: int = chunk.total_uncompressed_size
    nulls: int = chunk.statistics_null_count
    if not chunk.encodings & _DELTA and (nulls >= 0 or not optional):
        size -= 4 * (num_rows - min(max(nulls, 0), num_rows))
    size = size * chosen // max(num_rows, 1)
    return max(min(size, MAX_RATIO * fetched), 0)


def likely_slots(chunk: Any, chosen: int, num_rows: int) -> int:
    """About how many values the chosen rows of a nested leaf have."""
    declared: int = min(chunk.num_values, 8 * chunk.total_uncompressed_size, MAX_SLOTS)
    if chosen < num_rows:
        declared = declared * chosen * 9 // (num_rows * 8)
    return max(declared, 0)
