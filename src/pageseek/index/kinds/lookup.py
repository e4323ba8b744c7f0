"""The rows of each value of a column, in any order, by a hash table of which a lookup reads one block (docs/format.md, kind `lookup`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pageseek._core import rows
from pageseek.base.errors import UnsupportedError
from pageseek.format import lookup_form as form
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.value_hashes import can_hash
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.kind import IndexedColumn
from pageseek.prune.needed_hashes import has_built_form, needed_hashes
from pageseek.prune.partial_index import Body, Latest, PartialIndexKind, read_whole
from pageseek.prune.protocol import Proof, PruneContext

if TYPE_CHECKING:
    from pageseek.index.lookup_builder import LookupBuilder

# Of MANY values about SAMPLE are looked up first. The others are worth it if at least the share LEFT_OUT of pages would have no row,
# and the bytes of these pages are more than those of the blocks. Fewer than SURE rows of a sample do not tell: it becomes larger.
MANY, SAMPLE, LEFT_OUT, SURE, LARGER = 64, 16, 0.25, 8, 8


class FileLookup:
    """The index of a column of one file.

    Attributes
    ----------
    directory, body
        Its beginning, and where it lies.
    known : Latest
        By hashes the rows of the latest lookups; None of those that have rows in most pages.
    """

    def __init__(self, directory: form.LookupDirectory, body: Body) -> None:
        self.directory, self.body = directory, body
        self.known = Latest()


class HashedRowsKind(PartialIndexKind):
    """Rules out all rows but those that an index has for hashes: of values, or of keys of several columns."""

    version = form.VERSION
    whole = True

    # -- build ------------------------------------------------------------------------------------

    def check_column(self, column: IndexedColumn) -> None:
        """Raise UnsupportedError where equal values of a column have no equal hashes."""
        if not can_hash(column.type):
            raise UnsupportedError(
                f"column {column.name!r}: values of {column.type} have no hashes; leave it out of lookup=[...]"
            )

    # -- prune ------------------------------------------------------------------------------------

    def hashes(self, context: PruneContext, test: BoundLeaf) -> form.U64 | None:
        """The hashes of the values of which a row needs one, in order; None if it needs none, or of another type than was built."""
        hashes = needed_hashes(test)
        return (
            hashes
            if hashes is not None and has_built_form(context.file.schema_tree, test)
            else None
        )

    def takes(self, context: PruneContext, test: BoundLeaf) -> bool:
        """Whether rows need one of some values."""
        return self.hashes(context, test) is not None

    def first_bytes(self, file: FileMetadata) -> int:
        """The directory."""
        return form.directory_bytes(file.num_rows)

    def cost(self, context: PruneContext, test: BoundLeaf, index: FileLookup | None) -> int:
        """The blocks of the values that are looked up first, unless their rows are known."""
        hashes, num_rows = self.hashes(context, test), context.file.num_rows
        assert hashes is not None
        if index is not None and hashes.tobytes() in index.known:
            return 0
        return _bytes_of(_sample(hashes, _step(hashes)), num_rows)

    def begin(
        self, file: FileMetadata, test: BoundLeaf, body: Body
    ) -> Asking[tuple[FileLookup, int]]:
        """The directory."""
        yield from ()
        directory = form.LookupDirectory(body.start, file.num_rows, body.length)
        return FileLookup(directory, body), directory.nbytes

    def proof(
        self, context: PruneContext, test: BoundLeaf, index: FileLookup
    ) -> Asking[Proof | None]:
        """The rows of the row group that may have one of the values. None: they lie in most pages."""
        found = yield from self._rows_of_file(context, test, index)
        if found is None:
            return None
        file, group = context.file, context.row_group
        first = file.first_row(group)
        low, high = np.searchsorted(found, [first, first + file.group_rows[group]])
        return Proof(rows.RowRanges.from_rows(found[low:high] - first), rows.RowRanges.empty())

    def rows_of_file(self, context: PruneContext, test: BoundLeaf) -> Asking[form.I64 | None]:
        """The rows of the whole file that may have one of the values, in order. None: no index tells, or they lie in most pages."""
        return self.asked(context, test, self._rows_of_file)

    def _rows_of_file(
        self, context: PruneContext, test: BoundLeaf, index: FileLookup
    ) -> Asking[form.I64 | None]:
        hashes = self.hashes(context, test)
        assert hashes is not None
        key = hashes.tobytes()
        if key not in index.known:
            yield from _look_up(index, hashes, context, test)
        found: form.I64 | None = index.known.get(key)
        return found


def _num_pages(context: PruneContext, test: BoundLeaf) -> float:
    """About the pages of a column in the file; its row groups, if it has no offset index."""
    file, group = context.file, context.row_group
    offsets = file.offset_indexes.get((group, test.leaf.index))
    share = file.num_rows / max(file.group_rows[group], 1)
    return max(share * (1 if offsets is None else offsets.num_pages), 1)


def _step(hashes: form.U64) -> int:
    """Every how many-th value is looked up first."""
    return len(hashes) // SAMPLE if len(hashes) >= MANY else 1


def _sample(hashes: form.U64, step: int) -> form.U64:
    return hashes if step == 1 else hashes[::step].copy()


def _bytes_of(hashes: form.U64, num_rows: int) -> int:
    """About the bytes of the blocks of some hashes."""
    of_each = form.block_of(hashes, form.num_blocks(num_rows))  # in order, as the hashes are
    blocks = np.count_nonzero(np.diff(of_each, prepend=-1))
    return int(blocks * form.block_size(form.ENTRIES, form.row_bits_of(num_rows)))


def _look_up(
    index: FileLookup, hashes: form.U64, context: PruneContext, test: BoundLeaf
) -> Asking[None]:
    """Keep the rows that may have values of these hashes with the index. Of many values a few are looked up first: others would
    be for nothing if rows of them lie in most pages.
    """
    step = _step(hashes)
    if step > 1:
        file, num_pages = context.file, _num_pages(context, test)
        # unchecked: the chunk of a row group without rows may lie nowhere, and others are checked once they are read
        saved = sum([max(chunk.total_compressed_size, 0) for chunk in file.chunks(test.leaf)])
        size = _bytes_of(hashes, file.num_rows)
        if saved <= size:
            index.known.keep(hashes.tobytes(), None)
            return
        while step > 1:
            some = _sample(hashes, step)
            found = yield from _rows(index, some)
            left_out = math.exp(-len(found) * len(hashes) / len(some) / num_pages)
            if left_out >= LEFT_OUT and left_out * saved > size:
                break
            if len(found) >= SURE:
                index.known.keep(hashes.tobytes(), None)
                return
            step //= LARGER
    yield from _rows(index, hashes)


def _rows(index: FileLookup, hashes: form.U64) -> Asking[form.I64]:
    """The rows that may have values of these hashes, in order."""
    directory = index.directory
    of_each = form.block_of(hashes, directory.num_blocks)  # in order, as the hashes are
    firsts = np.flatnonzero(np.diff(of_each, prepend=-1))
    blocks = of_each[firsts].tolist()
    parts = yield from read_whole(index.body, [directory.place(block) for block in blocks])
    known: form.I64 | None = index.known.get(hashes.tobytes())
    if known is not None:  # row groups ask together, and the first decodes
        return known
    counts = np.diff(firsts, append=len(hashes)).tolist()
    made = directory.rows(blocks, parts, hashes, counts)
    index.known.keep(hashes.tobytes(), made)
    return made


class LookupKind(HashedRowsKind):
    """Rules out all rows but those that an index has for the values of `=` and IN."""

    name, title = form.KIND, "lookup index"

    def build(self, column: IndexedColumn) -> LookupBuilder:
        """The hashes of all row groups, put together."""
        from pageseek.index.lookup_builder import LookupBuilder

        return LookupBuilder(column)


KIND = LookupKind()
