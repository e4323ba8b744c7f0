"""ColumnIndex and OffsetIndex of a chunk, from the pages that it has (PageIndex.md)."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from pageseek._core import build
from pageseek.base.errors import CoreError
from pageseek.format.bounds import TYPE_ORDER
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import OffsetIndex, parse_column_index
from pageseek.format.types import FLOAT_KINDS, Options
from pageseek.index.page_bounds import Order
from pageseek.index.page_reader import Chunk, Page

UNORDERED, ASCENDING, DESCENDING = range(3)  # parquet.thrift, BoundaryOrder


@dataclass(slots=True)
class PageIndex:
    """The bytes of OffsetIndex and ColumnIndex, None where the chunk cannot have one, and why not."""

    offsets: bytes | None = None
    column: bytes | None = None
    why_not: list[str] = field(default_factory=list)


class PageIndexer:
    """Builds the page index of one chunk from its pages, in their order."""

    def __init__(self, file: FileMetadata, chunk: Chunk, order_given: bool) -> None:
        """`order_given`: the new footer declares the order of the type for all columns, where the old one declares none."""
        self._file, self._chunk = file, chunk
        leaf = chunk.leaf
        self._order: Order | None = None
        self._why_not: list[str] = []
        declared = TYPE_ORDER if order_given else None
        if leaf.index < len(file.orders):
            declared = file.orders[leaf.index]
        order = None if chunk.kind is None else Order(leaf, chunk.kind, chunk.width)
        if order is None or not order.known:
            self._why_not.append("values of its type have no order")
        elif order.fits(declared):
            self._order = order
        elif declared is None:
            self._why_not.append(
                "the footer does not say how its values are ordered, and has bounds that this would change"
            )
        else:
            self._why_not.append(
                "the footer says that its values are ordered in a way that is not known"
            )
        self._places, self._sizes, self._rows = array("q"), array("q"), array("q")
        self._nulls, self._nans = array("q"), array("q")
        self._null_pages = bytearray()
        self._least: list[bytes] = []
        self._most: list[bytes] = []
        self._empty = False

    @property
    def wants_values(self) -> bool:
        """Whether it needs the values of pages."""
        return self._order is not None

    def take(self, page: Page) -> None:
        self._empty |= page.num_rows == 0
        self._places.append(page.offset)
        self._sizes.append(page.size)
        self._rows.append(page.first_row)
        if self._order is None:
            return
        found = self._order.bounds(page)
        self._nulls.append(page.nulls)
        self._null_pages.append(found is None)
        low, high, nans = found or (b"", b"", 0)
        self._nans.append(nans)
        if nans:
            # bounds leave NaN out, which is legal; but readers conclude that no NaN is greater than the upper bound
            self._why_not.append(
                f"page {page.number} has NaN, which other engines call the greatest value, and no bound can tell"
            )
            self._order = None
            return
        self._least.append(low)
        self._most.append(high)

    def done(self) -> PageIndex:
        """The index of the whole chunk."""
        if self._empty:
            return PageIndex(why_not=["it has a page without rows"])
        if not self._places:
            return PageIndex(why_not=["it has no pages"])
        made = PageIndex(
            build.offset_index(self._places, self._sizes, self._rows), None, self._why_not
        )
        if self._order is not None:
            made.column = self._column(made)
        return made

    def _column(self, made: PageIndex) -> bytes:
        """The ColumnIndex, with the boundary order that a reader will find."""
        assert self._order is not None
        nans = self._nans if self._order.kind in FLOAT_KINDS else None

        def written(order: int) -> bytes:
            return build.column_index(
                bytes(self._null_pages), self._least, self._most, order, self._nulls, nans
            )

        leaf, file = self._chunk.leaf, self._file
        rows = array("q", [*self._rows, self._chunk.num_rows])
        offsets = OffsetIndex(
            len(self._places), self._places.tobytes(), self._sizes.tobytes(), rows.tobytes()
        )
        orders = file.orders
        if leaf.index >= len(orders):
            orders = memoryview(array("q", [TYPE_ORDER]) * file.num_leaves)
        # an order of nothing but null pages has made readers fail (parquet-java 2809)
        for order in (ASCENDING, DESCENDING) if any(self._least) or any(self._most) else ():
            data = written(order)
            try:
                found = parse_column_index(
                    memoryview(data), leaf, file.leaf_type(leaf, Options()), orders, offsets,
                    file.max_metadata_bytes,
                )  # fmt: skip
            except CoreError:
                break
            if found.zones.order == order:
                return data
        return written(UNORDERED)
