"""The page index of a column chunk: where its pages are, and their bounds and counts.

Sources: parquet.thrift (OffsetIndex, ColumnIndex), PageIndex.md. The core refuses an index that contradicts itself. The caller
notes the error and does not use the index.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from pageseek._core import metadata as core
from pageseek._core import rows, search
from pageseek.base.late_modules import npt
from pageseek.format.bounds import Bounds, trusted_order
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType

Page = tuple[int, int, int, int, int]  # number, offset, compressed size, first row, rows


class OffsetIndex:
    """Where the data pages of a chunk are. Arrays of int64, one entry a page; `first_row` has one more,
    the number of rows in the row group.
    """

    __slots__ = ("_offset", "_size", "num_pages", "start", "starts")

    def __init__(self, num_pages: int, offset: bytes, size: bytes, rows: bytes) -> None:
        self.num_pages = num_pages
        self._offset, self._size = offset, size
        self.starts = rows  # the bytes of `first_row`
        self.start = int.from_bytes(offset[:8], sys.byteorder, signed=True)  # of the first page

    @property
    def buffers(self) -> tuple[bytes, bytes, bytes]:
        """The bytes of `first_row`, `offset` and `compressed_size`."""
        return self.starts, self._offset, self._size

    @property
    def offset(self) -> npt.NDArray[np.int64]:
        return int64s(self._offset)

    @property
    def compressed_size(self) -> npt.NDArray[np.int64]:
        return int64s(self._size)

    @property
    def first_row(self) -> npt.NDArray[np.int64]:
        return int64s(self.starts)

    def __repr__(self) -> str:
        return f"<OffsetIndex of {self.num_pages:,} page{'s' * (self.num_pages != 1)}>"

    def rows_of(self, verdict: bytes, bit: int) -> rows.RowRanges:
        """The rows of the pages whose verdict has a bit."""
        return rows.zones_to_ranges(verdict, bit, self.starts)

    def pages_of(self, ranges: rows.RowRanges) -> list[Page]:
        """The pages that hold the rows, in order."""
        if self.num_pages == 1 and ranges:
            size, num_rows = int64s(self._size), int64s(self.starts)
            return [(0, self.start, int(size[0]), 0, int(num_rows[1]))]
        if ranges.num_ranges == 1:  # a lookup: two searches
            start, stop = ranges.bounds
            return search.locate(start, stop, self.starts, self._offset, self._size)
        first_row = self.first_row
        pages = np.flatnonzero(np.frombuffer(rows.pages_touched(ranges, self.starts), np.uint8))
        first = first_row[pages]
        columns = (
            pages,
            self.offset[pages],
            self.compressed_size[pages],
            first,
            first_row[pages + 1] - first,
        )
        return list(zip(*(column.tolist() for column in columns), strict=True))


class ColumnIndex:
    """Bounds, nulls and NaN of each page of a chunk."""

    __slots__ = ("_nan_counts", "_null_counts", "_null_pages", "bounds", "num_pages")

    def __init__(
        self,
        num_pages: int,
        null_pages: bytes,
        null_counts: bytes | None,
        nan_counts: bytes | None,
        bounds: Bounds,
    ) -> None:
        self.num_pages = num_pages
        self._null_pages, self._null_counts = null_pages, null_counts
        self._nan_counts, self.bounds = nan_counts, bounds

    def __repr__(self) -> str:
        return f"<ColumnIndex of {self.num_pages:,} page{'s' * (self.num_pages != 1)}>"

    @property
    def null_pages(self) -> npt.NDArray[np.uint8]:
        """1 for a page of nothing but nulls."""
        return np.frombuffer(self._null_pages, np.uint8)

    @property
    def null_counts(self) -> npt.NDArray[np.int64] | None:
        """The nulls of each page, where the file counts them."""
        return None if self._null_counts is None else int64s(self._null_counts)

    @property
    def nan_counts(self) -> npt.NDArray[np.int64] | None:
        """The NaN of each page, where the file counts them."""
        return None if self._nan_counts is None else int64s(self._nan_counts)

    @property
    def boundary_order(self) -> str:
        """The order of the bounds, as far as the file declares it and the bounds agree."""
        return ("unordered", "ascending", "descending")[self.zones.order]

    @property
    def zones(self) -> rows.Zones:
        """The pages as zones."""
        return self.bounds.zones

    @property
    def lower(self) -> pa.Array:
        """The least value of each page; null if there is none that can be trusted."""
        return self.bounds.lower

    @property
    def upper(self) -> pa.Array:
        """The greatest value of each page; null if there is none that can be trusted."""
        return self.bounds.upper


def int64s(data: bytes | memoryview) -> npt.NDArray[np.int64]:
    """The int64 values of a buffer of the core."""
    return np.frombuffer(data, np.int64)


def parse_offset_indexes(
    found: list[tuple[memoryview, int, int]], num_rows: int, max_bytes: int
) -> list[OffsetIndex | core.CoreError | None]:
    """The offset indexes of chunks of one row group. None stands for an index without pages, CoreError for one that cannot be
    trusted.

    `found`: for each the bytes of the index, and the first byte and the end of its chunk. `max_bytes`: memory that each may take.
    """
    made = core.offset_indexes(found, num_rows, max_arena=max_bytes)
    return [
        one if isinstance(one, core.CoreError) else OffsetIndex(*one) if one[0] else None
        for one in made
    ]


def parse_column_index(
    data: memoryview,
    leaf: Leaf,
    leaf_type: LeafType,
    orders: memoryview,
    offsets: OffsetIndex,
    max_bytes: int,
    trust_counts: bool = True,
) -> ColumnIndex:
    """A column index that agrees with the offset index of its chunk, else CoreError.

    `trust_counts`: its null counts and null pages can be believed.
    """
    order, null_pages, places, nulls, nans, counts = core.page_bounds(
        data,
        offsets.starts,
        leaf.max_def == 0,
        trusted_order(leaf, orders),
        leaf.max_rep > 0,
        max_arena=max_bytes,
    )
    n = offsets.num_pages
    empty = null_pages if trust_counts else None
    counted = trust_counts and leaf.max_rep == 0  # in lists they count values, verdicts are on rows
    known = nulls if counted else None
    bounds = Bounds(leaf_type, data, places, n, empty, known, nans, counts, order, max_bytes)
    return ColumnIndex(n, null_pages, nulls, nans, bounds)
