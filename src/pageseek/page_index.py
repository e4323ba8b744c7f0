"""The page index of a column chunk: where its pages are, and what is known of their values.

Sources: parquet.thrift (OffsetIndex, ColumnIndex), PageIndex.md. What contradicts itself is refused here, with
an exception that the caller turns into a note: an index is never trusted in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import metadata as core
from pageseek._core import rows, search
from pageseek.bounds import Bounds, trusted_order
from pageseek.schema import Leaf
from pageseek.types import ABSENT, Form

Page = tuple[int, int, int, int, int]  # number, offset, compressed size, first row, rows


@dataclass(frozen=True, slots=True)
class OffsetIndex:
    """Where the data pages of a chunk are. Arrays of int64, one entry a page; `first_row` has one more,
    the number of rows in the row group.
    """

    offset: npt.NDArray[np.int64]
    compressed_size: npt.NDArray[np.int64]
    first_row: npt.NDArray[np.int64]

    @property
    def num_pages(self) -> int:
        return len(self.offset)

    def pages_of(self, ranges: rows.RowRanges) -> list[Page]:
        """The pages that hold the rows, in order."""
        if ranges.num_ranges == 1:  # a lookup: two searches
            start, stop = ranges.bounds
            return search.locate(start, stop, self.first_row, self.offset, self.compressed_size)
        touched = np.flatnonzero(
            np.frombuffer(rows.pages_touched(ranges, self.first_row), np.uint8)
        )
        first = self.first_row[touched]
        columns = (
            touched,
            self.offset[touched],
            self.compressed_size[touched],
            first,
            self.first_row[touched + 1] - first,
        )
        return list(zip(*(column.tolist() for column in columns), strict=True))


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """What is known of the values of each page of a chunk."""

    null_pages: npt.NDArray[np.uint8]
    null_counts: npt.NDArray[np.int64] | None
    nan_counts: npt.NDArray[np.int64] | None
    boundary_order: str
    bounds: Bounds

    @property
    def num_pages(self) -> int:
        return len(self.null_pages)

    @property
    def zones(self) -> rows.Zones:
        """The pages as zones to probe."""
        return self.bounds.zones

    @property
    def lower(self) -> pa.Array:
        """The least value of each page, null where it has none that may be trusted."""
        return self.bounds.lower

    @property
    def upper(self) -> pa.Array:
        """The greatest value of each page, null where it has none that may be trusted."""
        return self.bounds.upper


class Contradiction(Exception):
    """An index that contradicts itself or its neighbours."""


def int64s(data: bytes) -> npt.NDArray[np.int64]:
    """Integers of the core, as an array."""
    return np.frombuffer(data, np.int64)


def parse_offset_index(
    data: memoryview, num_rows: int, start: int, stop: int, max_bytes: int
) -> OffsetIndex | None:
    """An offset index whose pages lie in the chunk at bytes [start, stop); None if it lists no page.

    CoreError or Contradiction where it cannot be trusted. `max_bytes`: what it may take, parsed.
    """
    n, offset, size, first, _ = core.offset_index(data, num_rows, start, stop, max_arena=max_bytes)
    if n == 0:
        return None
    return OffsetIndex(int64s(offset), int64s(size), np.append(int64s(first), num_rows))


def parse_column_index(
    data: memoryview,
    leaf: Leaf,
    form: Form,
    orders: npt.NDArray[np.int64],
    offsets: OffsetIndex,
    max_bytes: int,
) -> ColumnIndex:
    """A column index that fits the offset index of its chunk; CoreError or Contradiction otherwise."""
    n, order, null_pages, lo, lo_len, hi, hi_len, nulls, nans = core.column_index(
        data, max_arena=max_bytes
    )
    if n != offsets.num_pages:
        raise Contradiction(f"{n} pages, the offset index has {offsets.num_pages}")
    null_page = np.frombuffer(null_pages, np.uint8)
    counts = np.diff(offsets.first_row)
    null_counts = int64s(nulls) if nulls is not None else None
    nan_counts = int64s(nans) if nans is not None else None
    null = null_page.astype(np.bool_)
    if null_counts is not None and (
        (null_counts > counts).any() or (null_counts[null] != counts[null]).any()
    ):
        raise Contradiction("its null counts do not fit its null pages")
    if leaf.max_def == 0 and (counts[null] > 0).any():
        raise Contradiction("it has null pages, the column has no nulls")
    places = np.stack([int64s(lo), int64s(lo_len), int64s(hi), int64s(hi_len)])
    if not trusted_order(leaf, orders):
        places[:] = ABSENT
    elif null.any():
        places[:, null] = ABSENT
    bounds = Bounds(form, data, places, null_page, null_counts, nan_counts, counts, order)
    kept = ("unordered", "ascending", "descending")[bounds.zones.order]
    return ColumnIndex(null_page, null_counts, nan_counts, kept, bounds)
