"""Whether a file has a value at all, by one small Bloom filter (docs/format.md, kind `file_bloom`)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from pageseek._core import rows
from pageseek.base.errors import UnsupportedError
from pageseek.format import file_bloom_form as form
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.value_hashes import can_hash
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.kind import IndexedColumn
from pageseek.prune.needed_hashes import has_built_form, needed_hashes
from pageseek.prune.partial_index import Body, Latest, PartialIndexKind, read_whole
from pageseek.prune.protocol import Proof, PruneContext

if TYPE_CHECKING:
    from pageseek.index.file_bloom_builder import FileBloomBuilder

FIRST_BYTES = 4 << 10  # that are the whole of small filters
RATE = 0.01  # of false positives, if the caller gives none
_NONE = Proof(rows.RowRanges.empty(), rows.RowRanges.empty())


class FileBloom:
    """The filter of a column of one file. `known`: by hashes whether one of them may be there."""

    def __init__(self, blocks: int, body: Body) -> None:
        self.blocks, self.body = blocks, body
        self.known = Latest()

    def in_start(self, place: tuple[int, int]) -> bool:
        """Whether a sector was read with the head."""
        return sum(place) <= self.body.start.nbytes


class FileBloomKind(PartialIndexKind):
    """Rules out a file that has none of the values of `=` and IN."""

    name, version = form.KIND, form.VERSION
    title = "Bloom filter of the file"
    whole = coarse = near_footer = True

    # -- build ------------------------------------------------------------------------------------

    def check_column(self, column: IndexedColumn) -> None:
        """Raise UnsupportedError where equal values of a column have no equal hashes."""
        if not can_hash(column.type):
            raise UnsupportedError(
                f"column {column.name!r}: values of {column.type} have no hashes; leave it out of file_bloom=[...]"
            )

    def build(self, column: IndexedColumn, rate: float = RATE) -> FileBloomBuilder:
        """The hashes of all row groups, put together."""
        from pageseek.index.file_bloom_builder import FileBloomBuilder

        return FileBloomBuilder(rate)

    def parse(self, column: IndexedColumn, payload: memoryview) -> memoryview:
        """The body, for `verify`. InvalidIndexError: it is none."""
        form.blocks_in(payload, payload.nbytes)
        return payload

    def verify(
        self, column: IndexedColumn, payload: memoryview, row_group: int
    ) -> Generator[None, Any, list[str]]:
        """Values that the filter lacks."""
        from pageseek.index.lookup_builder import known_hashes

        blocks, missing = form.blocks_in(payload, payload.nbytes), 0
        while (page := (yield)) is not None:
            for sector, hashes in form.by_sector(np.unique(known_hashes(page.values)[0]), blocks):
                at, length = form.place(sector, blocks)
                found = form.present(hashes, sector, blocks, payload[at : at + length])
                missing += len(found) - int(found.sum())
        return [f"{missing:,} values of a page are not in it"] if missing else []

    # -- prune ------------------------------------------------------------------------------------

    def takes(self, context: PruneContext, test: BoundLeaf) -> bool:
        """Whether rows need one of a few values, of the type whose hashes `attach` has built."""
        hashes = needed_hashes(test)
        few = hashes is not None and len(hashes) <= form.MOST_VALUES
        return few and has_built_form(context.file.schema_tree, test)

    def first_bytes(self, file: FileMetadata) -> int:
        """The whole of a small filter."""
        return FIRST_BYTES

    def cost(self, context: PruneContext, test: BoundLeaf, index: FileBloom | None) -> int:
        """The sectors of the values, unless the answer is known."""
        hashes = needed_hashes(test)
        assert hashes is not None
        if index is None:
            return form.SECTOR_BYTES * len(hashes)
        if hashes.tobytes() in index.known:
            return 0
        sectors = [
            form.place(sector, index.blocks) for sector, _ in form.by_sector(hashes, index.blocks)
        ]
        return sum([length for at, length in sectors if not index.in_start((at, length))])

    def begin(
        self, file: FileMetadata, test: BoundLeaf, body: Body
    ) -> Asking[tuple[FileBloom, int]]:
        """The head, and the first sectors."""
        yield from ()
        blocks = form.blocks_in(body.start, body.length)
        kept = Body(body.offset, body.length, memoryview(bytes(body.start)))
        return FileBloom(blocks, kept), kept.start.nbytes

    def proof(
        self, context: PruneContext, test: BoundLeaf, index: FileBloom
    ) -> Asking[Proof | None]:
        """That no row has one of the values."""
        hashes = needed_hashes(test)
        assert hashes is not None
        found: bool | None = index.known.get(hashes.tobytes())
        if found is None:
            found = yield from _may_have(index, hashes)
            index.known.keep(hashes.tobytes(), found)
        return None if found else _NONE


def _may_have(index: FileBloom, hashes: form.U64) -> Asking[bool]:
    """Whether the file may have one of the values."""
    sectors = list(form.by_sector(hashes, index.blocks))
    places = [form.place(sector, index.blocks) for sector, _ in sectors]
    read = [place for place in places if not index.in_start(place)]
    data = dict(zip(read, (yield from read_whole(index.body, read)), strict=True))
    for place, (sector, wanted) in zip(places, sectors, strict=True):
        at, length = place
        part = data[place] if place in data else index.body.start[at : at + length]
        if form.present(wanted, sector, index.blocks, part).any():
            return True
    return False


KIND = FileBloomKind()
