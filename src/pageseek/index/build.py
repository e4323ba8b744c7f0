"""All indexes that are wanted of a chunk, in one pass over its pages."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pageseek.base.errors import KindError, PageseekError, UnsupportedError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.bloom_builder import BloomBuilder
from pageseek.index.page_index_builder import PageIndex, PageIndexer
from pageseek.index.page_reader import Chunk, Page, SpansError
from pageseek.index.page_values import ConvertedPage
from pageseek.prune.kind import Builder, IndexedColumn, NotBuiltError


class Collecting:
    """A generator of a kind that is sent the pages of one chunk, and returns what it makes of them."""

    def __init__(
        self, kind: str, where: str, column: IndexedColumn, asking: Generator[None, Any, Any]
    ) -> None:
        self._what, self._column, self._asking = f"{where}: kind {kind!r}", column, asking
        self._begun = False

    def take(self, page: Page) -> None:
        """Send a page with values."""
        self._send(ConvertedPage(page, self._column))

    def done(self) -> Any:
        """What the generator returns after the last page."""
        return self._send(None)

    def _send(self, page: ConvertedPage | None) -> Any:
        try:
            if not self._begun:
                next(self._asking)
                self._begun = True
            self._asking.send(page)
        except StopIteration as done:
            if page is None:
                return done.value
            raise KindError(f"{self._what}: it returned before the last page") from None
        except (PageseekError, NotBuiltError):
            raise
        except Exception as error:  # of a kind of a user's
            raise KindError(f"{self._what}: {type(error).__name__}: {error}") from error
        if page is None:
            raise KindError(f"{self._what}: it asks for more after the last page")
        return None


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What is wanted of the chunks of one leaf: of which row groups the indexes of Parquet, the rate of Bloom filters, and
    the builders of embedded kinds by name, which take all row groups.
    """

    leaf: Leaf
    column: IndexedColumn | None = None
    page_index: frozenset[int] = frozenset()
    bloom: frozenset[int] = frozenset()
    rate: float = 0.0
    builders: Mapping[str, Builder] = field(default_factory=dict)

    def asks(self, row_group: int) -> bool:
        """Whether anything is wanted of this chunk."""
        return bool(self.builders) or row_group in self.page_index or row_group in self.bloom


@dataclass(slots=True)
class BuiltIndexes:
    """What was made of one chunk. `parts`: of each embedded kind what its builder takes in, or why it has none."""

    row_group: int
    leaf: Leaf
    page_index: PageIndex | None = None
    bloom: bytes | None = None
    bloom_sums: bytes = b""
    parts: dict[str, Any] = field(default_factory=dict)


def build(file: FileMetadata, chunk: Chunk, spec: IndexSpec, order_given: bool) -> BuiltIndexes:
    """What is wanted of one chunk.

    Raises
    ------
    PageseekError
        It cannot be read.
    UnsupportedError
        Values are wanted of a chunk whose rows go on from page to page.
    """
    row_group = chunk.row_group
    made = BuiltIndexes(row_group, spec.leaf)
    indexer = PageIndexer(file, chunk, order_given) if row_group in spec.page_index else None
    bloom = BloomBuilder(chunk, spec.rate) if row_group in spec.bloom else None
    collecting: dict[str, Collecting] = {}
    for name, builder in spec.builders.items():
        assert spec.column is not None
        collecting[name] = Collecting(name, chunk.where, spec.column, builder.collect())
    values = bloom is not None or bool(collecting)
    if indexer is not None:
        values |= indexer.wants_values
    try:
        with closing(chunk.pages(values)) as pages:
            for page in pages:
                if indexer is not None:
                    indexer.take(page)
                if bloom is not None:
                    bloom.take(page)
                for name in list(collecting):
                    try:
                        collecting[name].take(page)
                    except NotBuiltError as error:
                        made.parts[name] = error
                        del collecting[name]
                del page  # before the next one is read
    except SpansError:
        if bloom is not None or spec.builders:
            raise UnsupportedError(
                f"{chunk.where}: its rows go on from one page to the next, which only page_index passes over; "
                "leave the column out"
            ) from None
        made.page_index = PageIndex(why_not=["its rows go on from one page to the next"])
        return made
    if indexer is not None:
        made.page_index = indexer.done()
    if bloom is not None:
        made.bloom, made.bloom_sums = bloom.done()
    for name, one in collecting.items():
        try:
            made.parts[name] = one.done()
        except NotBuiltError as error:
            made.parts[name] = error
    return made
