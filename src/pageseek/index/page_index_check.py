"""The page index of a chunk, compared with its pages (PageIndex.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from pageseek._core import metadata as core
from pageseek.base.errors import CoreError
from pageseek.format.chunks import chunk_range
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import int64s
from pageseek.format.types import ABSENT
from pageseek.index.page_bounds import Bounds, Order
from pageseek.index.page_reader import Chunk, Page
from pageseek.index.statistics_check import shown

_ORDERS = ("unordered", "ascending", "descending")


class PageIndexCheck:
    """The page index that a chunk says it has. `wrong` takes what is wrong with it, and the number of a page or None."""

    def __init__(
        self, file: FileMetadata, chunk: Chunk, wrong: Callable[[int | None, str], None]
    ) -> None:
        self._file, self._chunk, self._wrong = file, chunk, wrong
        m = chunk.metadata
        self.offsets: Any = None
        self._column: Any = None
        data = self._read(m.offset_index_offset, m.offset_index_length, "an offset index")
        if data is not None:
            try:
                self.offsets = core.offset_index(data, chunk.num_rows, *chunk_range(m))
            except CoreError as error:
                wrong(None, f"offset index: {error.message}")
        data = self._read(m.column_index_offset, m.column_index_length, "a column index")
        if data is not None:
            self._data = data
            if m.offset_index_offset == ABSENT:
                wrong(None, "a column index without an offset index")
            try:
                self._column = core.column_index(data)
            except CoreError as error:
                wrong(None, f"column index: {error.message}")

    def _read(self, offset: int, length: int, what: str) -> memoryview | None:
        if offset == ABSENT:
            return None
        if offset < 4 or length <= 0 or offset + length > self._file.footer_start:
            self._wrong(None, f"{what} of {length} bytes at {offset} has no room in the file")
            return None
        (read,) = self._file.store.read([(offset, length)])
        data = memoryview(read)
        (state,) = core.sums([(data, *chunk_range(self._chunk.metadata))])
        why = self._file.why_altered(state, offset)
        if why is not None:
            self._wrong(None, f"{what}: {why}")
        return data

    def compare(self, pages: Sequence[Page], real: Sequence[Bounds], order: Order | None) -> None:
        """Compare it with the pages. `real`: their bounds; `order`: of bounds, None where it is not known."""
        if self.offsets is not None:
            self._compare_offsets(pages)
        if self._column is not None and self._chunk.tells_nulls:
            self._compare_column(pages, real, order)

    def _compare_offsets(self, pages: Sequence[Page]) -> None:
        n, *parts = self.offsets[:4]
        offsets, sizes, rows = (int64s(part).tolist() if part else [] for part in parts)
        if n != len(pages):
            self._wrong(None, f"{n} pages in the offset index, {len(pages)} in the chunk")
        for page, offset, size, row in zip(pages, offsets, sizes, rows):  # noqa: B905
            for name, said, real in (
                ("offset", offset, page.offset),
                ("size", size, page.size),
                ("first row", row, page.first_row),
            ):
                if said != real:
                    self._wrong(page.number, f"{name} {said}, and it is {real}")

    def _compare_column(
        self, pages: Sequence[Page], real: Sequence[Bounds], order: Order | None
    ) -> None:
        n, claimed, null_pages, *places, nulls, nans = self._column
        if n != len(pages):
            self._wrong(None, f"{n} pages in the column index, {len(pages)} in the chunk")
            return
        low_at, low_size, high_at, high_size = (int64s(part).tolist() for part in places)
        null_counts = int64s(nulls).tolist() if nulls else None
        nan_counts = int64s(nans).tolist() if nans else None
        said: list[tuple[bytes, bytes]] = []
        for i, (page, bounds) in enumerate(zip(pages, real, strict=True)):
            empty = page.nulls == page.num_values
            if bool(null_pages[i]) != empty:
                what = "is marked as a null page, and has values"
                if empty:
                    what = "has nothing but nulls, and is not marked as a null page"
                self._wrong(page.number, what)
            if null_counts is not None and null_counts[i] != page.nulls:
                self._wrong(page.number, f"{null_counts[i]} nulls, and it has {page.nulls}")
            if nan_counts is not None and bounds is not None and nan_counts[i] != bounds[2]:
                self._wrong(page.number, f"{nan_counts[i]} NaN, and it has {bounds[2]}")
            if not null_pages[i]:
                low = bytes(self._data[low_at[i] : low_at[i] + low_size[i]])
                high = bytes(self._data[high_at[i] : high_at[i] + high_size[i]])
                said.append((low, high))
                if order is not None and bounds is not None and bounds[0]:
                    self._compare_bounds(page.number, low, high, bounds, order)
        if claimed and order is not None:
            self._check_order(claimed, said, order)

    def _compare_bounds(
        self, page: int, low: bytes, high: bytes, real: tuple[bytes, bytes, int], order: Order
    ) -> None:
        if not (order.is_value(low) and order.is_value(high)):
            self._wrong(page, "a bound is no value of the column")
            return
        if order.less(real[0], low):
            self._wrong(page, f"least {shown(low)}, and it has {shown(real[0])}")
        if order.less(high, real[1]):
            self._wrong(page, f"greatest {shown(high)}, and it has {shown(real[1])}")

    def _check_order(self, claimed: int, said: list[tuple[bytes, bytes]], order: Order) -> None:
        """Whether the bounds go the way that the index claims (parquet.thrift, BoundaryOrder)."""
        for before, after in pairwise(said):
            for one, other in zip(before, after, strict=True):  # the lower bounds, the upper bounds
                if not (order.is_value(one) and order.is_value(other)):
                    return
                if order.less(other, one) if claimed == 1 else order.less(one, other):
                    self._wrong(None, f"bounds are said to be {_ORDERS[claimed]}, and are not")
                    return
