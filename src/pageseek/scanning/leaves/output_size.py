"""Estimates the size of decoded column chunks. Decoders allocate it at once, and more as pages need it."""

from __future__ import annotations

from typing import Any

MAX_SLOTS = 1 << 26  # slots that are allocated by the footer's word
MAX_RATIO = 16  # bytes of strings for each fetched byte that are allocated by the footer's word
_DELTA = 1 << 6 | 1 << 7  # parquet.thrift, Encoding: lengths take much less than in PLAIN


def likely_rows(length: int) -> int:
    """An upper estimate of the rows in a chunk of so many bytes."""
    return (1 << 16) + (length << 10)


def likely_bytes(chunk: Any, optional: bool, chosen: int, num_rows: int, fetched: int) -> int:
    """About the bytes of strings in the chosen rows. `fetched`: bytes of their pages."""
    size: int = chunk.total_uncompressed_size
    nulls: int = chunk.statistics_null_count
    if not chunk.encodings & _DELTA and (nulls >= 0 or not optional):
        size -= 4 * (num_rows - min(max(nulls, 0), num_rows))
    size = size * chosen // max(num_rows, 1)
    return max(min(size, MAX_RATIO * fetched), 0)


def likely_cost(chunk: Any, fetched: int) -> int:
    """What fetched pages cost: about the bytes that are unpacked, where one that is read takes as long as six that are written."""
    ratio = chunk.total_uncompressed_size / max(chunk.total_compressed_size, 1)
    return int(fetched * (1 + max(min(ratio, MAX_RATIO), 0) / 6))


def likely_memory(chunk: Any, chosen: int, num_rows: int) -> int:
    """About the bytes of memory of the chosen rows of a chunk."""
    size: int = chunk.total_uncompressed_size
    return max(size, 0) * chosen // max(num_rows, 1)


def likely_slots(chunk: Any, chosen: int, num_rows: int) -> int:
    """About the number of values in the chosen rows of a nested leaf."""
    declared: int = min(chunk.num_values, 8 * chunk.total_uncompressed_size, MAX_SLOTS)
    if chosen < num_rows:
        declared = declared * chosen * 9 // (num_rows * 8)
    return max(declared, 0)
