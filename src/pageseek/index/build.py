"""All indexes of a chunk, built in one pass over its pages."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pageseek.base.errors import KindError, PageseekError, UnsupportedError
from pageseek.base.progress import Watch
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.bloom_builder import BloomBuilder, bytes_for
from pageseek.index.chunk_walk import each_chunk
from pageseek.index.page_index_builder import PageIndex, PageIndexer
from pageseek.index.page_reader import Chunk, Page, SpansError
from pageseek.index.page_values import ConvertedPage
from pageseek.prune.kind import Builder, IndexedColumn, NotBuiltError
from pageseek.storage import Store


class Collecting:
    """A generator of a kind, which is sent the pages of one chunk until it raises NotBuiltError."""

    def __init__(
        self, kind: str, where: str, column: IndexedColumn, asking: Generator[None, Any, Any]
    ) -> None:
        self._what, self._column, self._asking = f"{where}: kind {kind!r}", column, asking
        self._begun = False
        self._error: NotBuiltError | None = None

    def take(self, page: Page) -> None:
        """Send a page with values."""
        self._send(ConvertedPage(page, self._column))

    def done(self) -> Any:
        """What the generator returns after the last page, or its NotBuiltError."""
        made = self._send(None)
        return made if self._error is None else self._error

    def _send(self, page: ConvertedPage | None) -> Any:
        if self._error is not None:
            return None
        try:
            if not self._begun:
                next(self._asking)
                self._begun = True
            self._asking.send(page)
        except StopIteration as done:
            if page is None:
                return done.value
            raise KindError(f"{self._what}: it returned before the last page") from None
        except NotBuiltError as error:
            self._error = error
            return None
        except PageseekError:
            raise
        except Exception as error:  # of a user's kind
            raise KindError(f"{self._what}: {type(error).__name__}: {error}") from error
        if page is None:
            raise KindError(f"{self._what}: it asks for more after the last page")
        return None


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What is built for the chunks of one leaf.

    Attributes
    ----------
    column
        The column of embedded indexes; None without any.
    page_index, bloom
        The row groups that get a page index, and a Bloom filter.
    rate
        False positives of the Bloom filters.
    builders
        The builders of embedded kinds, by name. They take all row groups; one that gives up is taken out meanwhile.
    """

    leaf: Leaf
    column: IndexedColumn | None = None
    page_index: frozenset[int] = frozenset()
    bloom: frozenset[int] = frozenset()
    rate: float = 0.0
    builders: dict[str, Builder] = field(default_factory=dict)

    def asks(self, row_group: int) -> bool:
        """Whether anything is built for this chunk."""
        return bool(self.builders) or row_group in self.page_index or row_group in self.bloom


@dataclass(slots=True)
class BuiltIndexes:
    """What was built for one chunk. `parts`: by embedded kind what its builder takes, or the NotBuiltError."""

    row_group: int
    leaf: Leaf
    page_index: PageIndex | None = None
    bloom: bytes | None = None
    bloom_sums: bytes = b""
    parts: dict[str, Any] = field(default_factory=dict)


def build_chunks(
    file: FileMetadata,
    store: Store,
    specs: Sequence[IndexSpec],
    report: Report,
    order_given: bool,
    threads: int | None,
    progress: bool | Watch,
) -> Iterable[BuiltIndexes]:
    """All indexes, chunk by chunk in the order of the file.

    Parameters
    ----------
    store
        Where the pages are read.
    order_given
        The footer gets column orders, since it has none.

    Raises
    ------
    PageseekError
        A chunk cannot be read.
    UnsupportedError
        An index needs the values of a chunk whose rows go on from page to page.
    """
    of = {spec.leaf.index: spec for spec in specs}
    chunks = [
        (group, spec.leaf)
        for group in range(file.num_row_groups)
        for spec in specs
        if spec.asks(group) and file.group_rows[group]
    ]

    def work(chunk: Chunk) -> BuiltIndexes:
        return _build(file, chunk, of[chunk.leaf.index], order_given)

    def held(group: int, leaf: Leaf) -> int:
        spec = of[leaf.index]
        return bytes_for(leaf, file.chunk(group, leaf), spec.rate) if group in spec.bloom else 0

    return each_chunk(file, chunks, work, report, threads, progress, store, held)


def _build(file: FileMetadata, chunk: Chunk, spec: IndexSpec, order_given: bool) -> BuiltIndexes:
    """The indexes of one chunk."""
    row_group = chunk.row_group
    made = BuiltIndexes(row_group, spec.leaf)
    indexer = PageIndexer(file, chunk, order_given) if row_group in spec.page_index else None
    bloom = BloomBuilder(chunk, spec.rate) if row_group in spec.bloom else None
    collecting: dict[str, Collecting] = {}
    for name, builder in list(spec.builders.items()):
        assert spec.column is not None
        collecting[name] = Collecting(name, chunk.where, spec.column, builder.collect())
    takers: list[PageIndexer | BloomBuilder | Collecting] = [*collecting.values()]
    if bloom is not None:
        takers.append(bloom)
    if not takers and indexer is None:
        return made
    values = bool(takers) or (indexer is not None and indexer.wants_values)
    if indexer is not None:
        takers.append(indexer)
    try:
        with closing(chunk.pages(values)) as pages:
            for page in pages:
                for taker in takers:
                    taker.take(page)
                del page  # before the next one is read
    except SpansError:
        if bloom is not None or spec.column is not None:
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
    made.parts = {name: one.done() for name, one in collecting.items()}
    return made
