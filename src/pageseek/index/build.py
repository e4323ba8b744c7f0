"""All indexes that are wanted of a chunk, in one pass over its pages."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from pageseek.base.errors import UnsupportedError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.bloom_builder import BloomBuilder
from pageseek.index.distinct_builder import DistinctBuilder, GroupValues
from pageseek.index.page_index_builder import PageIndex, PageIndexer
from pageseek.index.page_reader import Chunk, SpansError

Builder = PageIndexer | BloomBuilder | DistinctBuilder


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What is wanted of the chunks of one leaf: of which row groups each kind, and the rate of Bloom filters."""

    leaf: Leaf
    page_index: frozenset[int] = frozenset()
    bloom: frozenset[int] = frozenset()
    distinct: frozenset[int] = frozenset()
    rate: float = 0.0
    lists: bool = False  # the values are to be listed in the form of our own
    published: bool = False  # and in the published one

    def asks(self, row_group: int) -> bool:
        """Whether anything is wanted of this chunk."""
        return any(row_group in one for one in (self.page_index, self.bloom, self.distinct))


@dataclass(slots=True)
class BuiltIndexes:
    """What was made of one chunk."""

    row_group: int
    leaf: Leaf
    page_index: PageIndex | None = None
    bloom: bytes | None = None
    bloom_sums: bytes = b""
    distinct: GroupValues | None = None


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
    distinct = DistinctBuilder(chunk) if row_group in spec.distinct else None
    builders: list[Builder] = [one for one in (indexer, bloom, distinct) if one is not None]
    values = bloom is not None or distinct is not None
    if indexer is not None:
        values |= indexer.wants_values
    try:
        with closing(chunk.pages(values)) as pages:
            for page in pages:
                for builder in builders:
                    builder.take(page)
                del page  # before the next one is read
    except SpansError:
        if bloom is not None or distinct is not None:
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
    made.distinct = None if distinct is None else distinct.done()
    return made
