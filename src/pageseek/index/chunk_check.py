"""One column chunk read whole, and all its indexes compared with what was read."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from functools import partial
from typing import Any

from pageseek.base.errors import PageseekError
from pageseek.format.embedded import BLOOM, PAGE_INDEX
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import ABSENT
from pageseek.index.filter_check import FilterCheck
from pageseek.index.findings import Finding
from pageseek.index.page_bounds import Bounds, Order
from pageseek.index.page_index_check import PageIndexCheck
from pageseek.index.page_reader import Chunk, Page, SpansError
from pageseek.index.statistics_check import wrong_encodings, wrong_statistics
from pageseek.index.stored_indexes import StoredIndexes

STATISTICS, PAGE_HEADERS, ENCODINGS = "statistics", "page_headers", "encoding_stats"


class ChunkCheck:
    """One chunk.

    Attributes
    ----------
    findings : list of Finding
    kinds : list of str
        The kinds of index that it has.
    parts : dict
        What embedded kinds have made of its pages, by kind.
    """

    def __init__(self, file: FileMetadata, chunk: Chunk, stored: StoredIndexes) -> None:
        self._file, self.chunk, self._stored = file, chunk, stored
        self.findings: list[Finding] = []
        self.kinds: list[str] = []
        self.parts: dict[str, Any] = {}
        self._order: Order | None = None
        if chunk.kind is not None:
            self._order = Order(chunk.leaf, chunk.kind, chunk.width)

    def _wrong(self, kind: str, page: int | None, what: str) -> None:
        chunk = self.chunk
        self.findings.append(Finding(kind, chunk.leaf.name, chunk.row_group, page, what))

    def run(self) -> None:
        """Go through the pages of the chunk."""
        file, chunk, m = self._file, self.chunk, self.chunk.metadata
        if m.offset_index_offset != ABSENT or m.column_index_offset != ABSENT:
            self.kinds.append(PAGE_INDEX)
        if m.bloom_filter_offset != ABSENT:
            self.kinds.append(BLOOM)
        index: PageIndexCheck | None = PageIndexCheck(file, chunk, partial(self._wrong, PAGE_INDEX))
        bloom = FilterCheck(file, chunk, partial(self._wrong, BLOOM))
        before = len(self.findings)
        try:
            try:
                pages, bounds = self._go_through(chunk.pages(values=True), bloom)
            except SpansError as error:
                del self.findings[before:]
                if index is not None and index.offsets is not None:
                    self._wrong(PAGE_INDEX, None, f"rows go on from one page to the next: {error}")
                index = None
                pages, bounds = self._go_through(chunk.joined(), bloom)
        except PageseekError as error:
            self._wrong("data", None, str(error))
            return
        order, orders, i = self._order, file.orders, chunk.leaf.index
        if order is not None and not order.fits(orders[i] if i < len(orders) else None):
            order = None
        if index is not None:
            index.compare(pages, bounds, order)
        if chunk.tells_nulls:
            self._check_statistics(pages, bounds, order)
        for what in wrong_encodings(chunk, pages) if index is not None else ():
            self._wrong(ENCODINGS, None, what)

    def _go_through(
        self, pages: Generator[Page], bloom: FilterCheck
    ) -> tuple[list[Page], list[Bounds]]:
        """The pages without their values, and the bounds of these. The filter and the embedded kinds get each page."""
        checks = dict(self._stored.checks(self.chunk))
        kept: list[Page] = []
        bounds: list[Bounds] = []
        with closing(pages):
            for page in pages:
                kept.append(page._replace(values=None))
                if page.values is None:
                    bounds.append(None)
                    continue
                bounds.append(self._order.bounds_whole(page) if self._order else None)
                bloom.take(page)
                for check in checks.values():
                    check.take(page)
                del page  # before the next one is read
        self.parts = {kind: check.done() for kind, check in checks.items()}
        self.kinds += self.parts
        return kept, bounds

    def _check_statistics(
        self, pages: list[Page], bounds: list[Bounds], order: Order | None
    ) -> None:
        """Those of the chunk in the footer, and those that headers have of their pages."""
        leaf, m = self.chunk.leaf, self.chunk.metadata
        if m.statistics_present == 1:
            self.kinds.append(STATISTICS)
            nulls = sum(page.nulls for page in pages)
            for what in wrong_statistics(m, self._file.footer, leaf, order, nulls, bounds):
                self._wrong(STATISTICS, None, what)
        if leaf.max_rep:  # no reader uses those, and writers do not agree which levels are nulls
            return
        headers = [(page, real) for page, real in zip(pages, bounds, strict=True) if page.head]
        if headers:
            self.kinds.append(PAGE_HEADERS)
        for page, real in headers:
            for what in wrong_statistics(page.header, page.head, leaf, order, page.nulls, [real]):
                self._wrong(PAGE_HEADERS, page.number, what)
