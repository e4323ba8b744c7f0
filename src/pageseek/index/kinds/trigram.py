"""Blocks of rows whose texts may match LIKE or begin with a text, by the three-byte pieces that all matches have
(docs/format.md, kind `trigram`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pageseek._core import rows
from pageseek.base.errors import UnsupportedError
from pageseek.format import trigram_form as form
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import BYTES_KINDS
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf, BoundPattern
from pageseek.prune.kind import IndexedColumn, required_values
from pageseek.prune.partial_index import Body, Latest, PartialIndexKind, read_directory, read_whole
from pageseek.prune.protocol import Proof, PruneContext

if TYPE_CHECKING:
    from pageseek.index.trigram_builder import TrigramBuilder

FIRST_BYTES = 16 << 10  # that have the directory of most indexes
MOST_GRAMS = 16  # pieces of a pattern that are searched for
REPLACED = "\ufffd".encode()  # Arrow may take bytes that are no UTF-8 for this character


class FileTrigrams:
    """The index of a column of one file. `known`: by pieces of text the blocks that have all of them."""

    def __init__(self, directory: form.TrigramDirectory, body: Body) -> None:
        self.directory, self.body = directory, body
        self.known = Latest()

    def slots(self, texts: tuple[bytes, ...]) -> list[int]:
        """Slots of texts, MOST_GRAMS at most, from all over them."""
        found = sorted({slot for text in texts for slot in self.directory.slots(text)})
        step = max(len(found) / MOST_GRAMS, 1)
        return [found[int(i * step)] for i in range(min(len(found), MOST_GRAMS))]


class TrigramKind(PartialIndexKind):
    """Rules out blocks of rows that do not have all pieces of a text."""

    name, version = form.KIND, form.VERSION
    title = "trigram index"
    whole = patterns = True

    # -- build ------------------------------------------------------------------------------------

    def check_column(self, column: IndexedColumn) -> None:
        """Raise UnsupportedError for columns without texts."""
        if column.leaf_type.kind not in BYTES_KINDS:
            raise UnsupportedError(
                f"column {column.name!r}: {column.type} is no text; leave it out of trigram=[...]"
            )

    def build(self, column: IndexedColumn) -> TrigramBuilder:
        """The pieces of the texts of all row groups, put together."""
        from pageseek.index.trigram_builder import TrigramBuilder

        return TrigramBuilder(column)

    # -- prune ------------------------------------------------------------------------------------

    def takes(self, context: PruneContext, test: BoundLeaf) -> bool:
        """Whether all values that pass have some text of three bytes."""
        return bool(_texts(test))

    def first_bytes(self, file: FileMetadata) -> int:
        """Those of most directories."""
        return FIRST_BYTES

    def cost(self, context: PruneContext, test: BoundLeaf, index: FileTrigrams | None) -> int:
        """The parts of the index that have the pieces, unless their blocks are known."""
        texts = _texts(test)
        if index is None:
            return form.PART_BYTES * min(sum(len(text) - 2 for text in texts), MOST_GRAMS)
        if _key(texts) in index.known:
            return 0
        directory = index.directory
        parts = {directory.part_of(slot) for slot in index.slots(texts)}
        return sum(directory.place(part)[1] for part in parts)

    def begin(
        self, file: FileMetadata, test: BoundLeaf, body: Body
    ) -> Asking[tuple[FileTrigrams, int]]:
        """The directory, of which the first bytes may be a part."""
        size = form.head_length(body.start)
        data = yield from read_directory(body, size, form.MAX_DIRECTORY_BYTES)
        blocks = form.num_blocks(file.group_rows)
        directory = form.TrigramDirectory(data, blocks, body.length)
        return FileTrigrams(directory, body), 4 * directory.nbytes

    def proof(
        self, context: PruneContext, test: BoundLeaf, index: FileTrigrams
    ) -> Asking[Proof | None]:
        """The blocks of the row group that have all pieces."""
        texts, file, group = _texts(test), context.file, context.row_group
        found: rows.RowRanges | None = index.known.get(_key(texts))
        if found is None:
            found = yield from _blocks(index, texts)
        before, num_rows = form.num_blocks(file.group_rows[:group]), file.group_rows[group]
        mine = found.slice(before, before + form.num_blocks([num_rows])).shift(-before)
        ranges = np.minimum(mine.to_numpy() * form.BLOCK_ROWS, num_rows)
        return Proof(rows.RowRanges(np.ascontiguousarray(ranges)), rows.RowRanges.empty())


def _texts(test: BoundLeaf) -> tuple[bytes, ...]:
    """Texts of three bytes or more that every value has which passes; none where there are no such."""
    if test.negate or test.leaf.group or test.leaf_type.kind not in BYTES_KINDS:
        return ()
    found: list[bytes] = []
    if isinstance(test, BoundPattern):
        found = [part for part in test.pattern.parts if isinstance(part, bytes)]
    elif test.op == rows.OP_PREFIX:
        n, data, _ = test.literals
        found = [bytes(data)] if n == 1 else []
    elif test.op == rows.OP_EQ:
        values = required_values(test)
        if values is not None and len(values) == 1:
            value = values[0].as_py()
            found = [value.encode() if isinstance(value, str) else bytes(value)]
    return tuple(text for text in found if len(text) >= form.GRAM and REPLACED not in text)


def _key(texts: tuple[bytes, ...]) -> bytes:
    return b"".join([len(text).to_bytes(8, "little") + text for text in texts])


def _blocks(index: FileTrigrams, texts: tuple[bytes, ...]) -> Asking[rows.RowRanges]:
    """The blocks of the file that have all pieces of texts."""
    directory = index.directory
    slots = index.slots(texts)
    parts = [directory.part_of(slot) for slot in slots]
    needed = sorted(set(parts))
    data = yield from read_whole(index.body, [directory.place(part) for part in needed])
    known: rows.RowRanges | None = index.known.get(_key(texts))
    if known is not None:  # row groups ask together, and the first decodes
        return known
    of_part = dict(zip(needed, data, strict=True))
    for part, one in of_part.items():
        directory.check(part, one)
    found = rows.RowRanges.all(directory.blocks)
    for slot, part in zip(slots, parts, strict=True):
        found &= directory.found(slot, part, of_part[part])
    index.known.keep(_key(texts), found)
    return found


KIND = TrigramKind()
