"""The rows of each value of a column, in any order, by a hash table of which a lookup reads one block (docs/format.md, kind `lookup`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pageseek._core import rows
from pageseek.base.errors import UnsupportedError
from pageseek.format.embedded import (
    MAGIC,
    PAYLOAD_HEAD_BYTES,
    InvalidIndexError,
    Pointer,
    fingerprint,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.lookup_form import (
    ENTRIES,
    VERSION,
    LookupDirectory,
    block_of,
    block_size,
    directory_bytes,
    num_blocks,
    row_bits_of,
)
from pageseek.format.lookup_form import (
    KIND as NAME,
)
from pageseek.format.schema import Leaf
from pageseek.format.value_hashes import can_hash, hashed_form, hashes_of
from pageseek.io.range_requests import Wanted, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.embedded_pruner import EmbeddedPruner
from pageseek.prune.kind import IndexedColumn, required_values
from pageseek.prune.protocol import Price, Proof, PruneContext

if TYPE_CHECKING:
    from pageseek.index.lookup_builder import LookupBuilder

MEMORY = 32  # lookups whose rows are kept with a file
MOST_VALUES = 65_536  # of an IN that is looked up


class FileLookup:
    """The index of a column of one file: its directory, and the rows of the lookups before."""

    def __init__(self, directory: LookupDirectory, offset: int) -> None:
        """`offset`: of the body in the file."""
        self.directory, self.offset = directory, offset
        self._known: dict[bytes, npt.NDArray[np.int64]] = {}

    def known(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64] | None:
        """The rows of these hashes, if they were looked up before."""
        return self._known.get(hashes.tobytes())

    def keep(self, hashes: npt.NDArray[np.uint64], found: npt.NDArray[np.int64]) -> None:
        """Keep the rows of a lookup, for the next row group."""
        known = dict(self._known)
        while len(known) >= MEMORY:
            del known[next(iter(known))]
        self._known = known | {hashes.tobytes(): found}


class LookupKind:
    """Rules out all rows but those that an index has for the values of `=` and IN."""

    name, version = NAME, VERSION
    title = "lookup index"
    cheap = whole = True
    coarse = False
    largest = 1 << 30  # bytes of a payload that `verify` holds

    def __init__(self) -> None:
        self._embedded = EmbeddedPruner(self.name, self.version, self.title, None)

    # -- build ------------------------------------------------------------------------------------

    def check_column(self, column: IndexedColumn) -> None:
        """Raise UnsupportedError where equal values of a column have no equal hashes."""
        if not can_hash(column.type):
            raise UnsupportedError(
                f"column {column.name!r}: values of {column.type} have no hashes; leave it out of lookup=[...]"
            )

    def build(self, column: IndexedColumn) -> LookupBuilder:
        """The hashes of all row groups, put together."""
        from pageseek.index.lookup_builder import LookupBuilder

        return LookupBuilder(column)

    # -- prune ------------------------------------------------------------------------------------

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer lists an index of the column."""
        return self._embedded.applies(file, leaf)

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """The bytes of the directory and of the blocks; None where the file has no index of the column, or it proves nothing."""
        hashes = _hashes(test)
        if hashes is None or not _is_as_built(context.file, test):
            return None
        found: FileLookup | None = context.file.indexes.get(_key(test))
        if found is not None and found.known(hashes) is not None:
            return Price(0)
        pointer, file = self._embedded.pointer(context, test.leaf), context.file
        if pointer is None:
            return None
        if found is None and _key(test) in file.indexes:
            file.note_ignored_indexes(None, test.leaf, context.report)
            return None
        num_rows = file.num_rows
        size = PAYLOAD_HEAD_BYTES + directory_bytes(num_rows)
        fetched = 0 if found is not None else context.to_fetch(pointer.offset, min(size, pointer.length))  # fmt: skip
        blocks = len(np.unique(block_of(hashes, num_blocks(num_rows))))
        return Price(fetched + blocks * block_size(ENTRIES, row_bits_of(num_rows)))

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Read the directory, unless it is in memory, and the blocks of the values."""
        return (yield from together([self._proof(context, test) for test in tests]))

    def _proof(
        self, context: PruneContext, test: BoundLeaf
    ) -> Generator[Wanted, list[memoryview], Proof | None]:
        hashes = _hashes(test)
        if hashes is None or not _is_as_built(context.file, test):
            return None
        pointer = self._embedded.pointer(context, test.leaf)
        if pointer is None:
            return None
        try:
            index = yield from self._index(context, test, pointer)
            if index is None:
                return None
            found = index.known(hashes)
            if found is None:
                found = yield from _rows(index, hashes)
                index.keep(hashes, found)
        except InvalidIndexError as error:
            context.kind = self.name
            context.ignore(test, error)
            context.file.keep_index(_key(test), None, 0)
            return None
        file, group = context.file, context.row_group
        first = file.first_row(group)
        low, high = np.searchsorted(found, [first, first + file.group_rows[group]])
        at = found[low:high] - first
        may = rows.RowRanges(np.ascontiguousarray(np.stack([at, at + 1], axis=1)))
        return Proof(may, rows.RowRanges.empty())

    def _index(
        self, context: PruneContext, test: BoundLeaf, pointer: Pointer
    ) -> Generator[Wanted, list[memoryview], FileLookup | None]:
        """The index of a column of the file; None where it is known to be wrong."""
        file, key = context.file, _key(test)
        if key not in file.indexes:
            chunks = fingerprint(file, test.leaf)
            size = PAYLOAD_HEAD_BYTES + directory_bytes(file.num_rows)
            if pointer.chunks != chunks:
                raise InvalidIndexError(
                    "it was built from other column chunks: the file was written anew"
                )
            if size > pointer.length:
                raise InvalidIndexError(f"{pointer.length} bytes where {size} or more are due")
            (data,) = yield [(pointer.offset, size)]
            if data.nbytes != size:
                raise InvalidIndexError("its bytes could not be read")
            if data[:8] != MAGIC + bytes(4) or data[8:16] != chunks.to_bytes(8, "little"):
                raise InvalidIndexError("it does not begin as an index does")
            length = pointer.length - PAYLOAD_HEAD_BYTES
            directory = LookupDirectory(data[PAYLOAD_HEAD_BYTES:], file.num_rows, length)
            if key not in file.indexes:  # the generator of another row group may have been first
                made = FileLookup(directory, pointer.offset + PAYLOAD_HEAD_BYTES)
                file.keep_index(key, made, directory.nbytes)
        found: FileLookup | None = file.indexes[key]
        return found


def _key(test: BoundLeaf) -> tuple[str, int]:
    return NAME, test.leaf.index


def _is_as_built(file: FileMetadata, test: BoundLeaf) -> bool:
    """Whether values of the type that a scan gives the column have the hashes of the type that `attach` gave it."""
    built = file.schema_tree.parquet_leaf_type(test.leaf).storage
    return hashed_form(built) == hashed_form(test.leaf_type.storage)


_latest: dict[int, tuple[BoundLeaf, npt.NDArray[np.uint64] | None]] = {}  # replaced, not changed


def _hashes(test: BoundLeaf) -> npt.NDArray[np.uint64] | None:
    """The hashes of the values that a row must have; None of a test that needs none, or may need NaN. All row groups ask for them."""
    global _latest
    known = _latest.get(id(test))
    if known is not None and known[0] is test:
        return known[1]
    made = _made_hashes(test)
    few = dict(list(_latest.items())[-7:])
    _latest = few | {id(test): (test, made)}
    return made


def _made_hashes(test: BoundLeaf) -> npt.NDArray[np.uint64] | None:
    values = required_values(test)
    if values is None or not can_hash(values.type) or len(values) > MOST_VALUES:
        return None
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return None
    return np.unique(hashes_of(values))


def _rows(
    index: FileLookup, hashes: npt.NDArray[np.uint64]
) -> Generator[Wanted, list[memoryview], npt.NDArray[np.int64]]:
    """The rows that may have values of these hashes, in order."""
    directory = index.directory
    of_each = block_of(hashes, directory.num_blocks)  # in order, as the hashes are
    numbers, firsts = np.unique(of_each, return_index=True)
    blocks, ends = numbers.tolist(), [*firsts[1:].tolist(), len(hashes)]
    places = [directory.place(block) for block in blocks]
    read = yield [(index.offset + at, length) for at, length in places]
    found = []
    several = zip(blocks, firsts.tolist(), ends, read, places, strict=True)
    for block, first, last, data, (_, length) in several:
        if data.nbytes != length:
            raise InvalidIndexError("its bytes could not be read")
        entries = directory.entries(block, data)
        found.append(entries.find(hashes[first:last]))
    made = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
    if len(made) and made[-1] >= directory.num_rows:
        raise InvalidIndexError(f"it names row {made[-1]} of {directory.num_rows}")
    return made


KIND = LookupKind()
