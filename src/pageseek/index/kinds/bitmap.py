"""The rows of each value of a column of few values (docs/format.md, kind `bitmap`): every test of single values is decided exactly."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import UnsupportedError
from pageseek.format.bitmap_form import KIND as NAME
from pageseek.format.bitmap_form import VERSION, BitmapDirectory, head_length
from pageseek.format.embedded import (
    MAGIC,
    PAYLOAD_HEAD_BYTES,
    InvalidIndexError,
    Pointer,
    fingerprint,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import FLOAT_KINDS
from pageseek.io.range_requests import Wanted, together
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.embedded_pruner import EmbeddedPruner
from pageseek.prune.kind import IndexedColumn
from pageseek.prune.protocol import Price, Proof, PruneContext, passing

if TYPE_CHECKING:
    from pageseek.index.bitmap_builder import BitmapBuilder

FIRST_READ = 8 << 10  # bytes that have the directory of most indexes
MOST_DIRECTORY = 64 << 20


class FileBitmaps:
    """The index of a column of one file."""

    def __init__(self, directory: BitmapDirectory, values: pa.Array, offset: int) -> None:
        """`values`: in the type of the column, null last. `offset`: of the body in the file."""
        self.directory, self.values, self.offset = directory, values, offset

    def passing(self, test: BoundLeaf) -> npt.NDArray[np.bool_]:
        """Which values pass a test; the last one is null."""
        return passing(test, self.values)


class BitmapKind:
    """Proves for each row of a row group whether it passes a test."""

    name, version = NAME, VERSION
    title = "bitmap index"
    cheap = True
    whole = coarse = False
    largest = 1 << 30  # bytes of a payload that `verify` holds

    def __init__(self) -> None:
        self._embedded = EmbeddedPruner(self.name, self.version, self.title, None)

    # -- build ------------------------------------------------------------------------------------

    def check_column(self, column: IndexedColumn) -> None:
        """Raise UnsupportedError for floats: NaN and zeros of two signs are no single values."""
        if column.leaf_type.kind in FLOAT_KINDS:
            raise UnsupportedError(
                f"column {column.name!r}: a bitmap index has no {column.type}; leave it out of bitmap=[...]"
            )

    def build(self, column: IndexedColumn) -> BitmapBuilder:
        """The rows of all row groups, put together."""
        from pageseek.index.bitmap_builder import BitmapBuilder

        return BitmapBuilder(column)

    # -- prune ------------------------------------------------------------------------------------

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer lists an index of the column."""
        return self._embedded.applies(file, leaf)

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """The bytes of the directory, or of the sets that the test needs; None where the file has no index of the column."""
        file, key = context.file, _key(test)
        if test.leaf.group or test.leaf_type.is_null:
            return None
        found = file.indexes.get(key)
        if found is None:
            pointer = self._embedded.pointer(context, test.leaf)
            if pointer is None:
                return None
            if key in file.indexes:
                file.note_ignored_indexes(None, test.leaf, context.report)
                return None
            return Price(context.to_fetch(pointer.offset, min(FIRST_READ, pointer.length)))
        places, _ = _needed(found, test, context.row_group)
        return Price(sum([context.to_fetch(found.offset + at, n) for at, n in places.values()]))

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Read the directory, unless it is in memory, and the sets of rows that the tests need."""
        return (yield from together([self._proof(context, test) for test in tests]))

    def _proof(
        self, context: PruneContext, test: BoundLeaf
    ) -> Generator[Wanted, list[memoryview], Proof | None]:
        pointer = self._embedded.pointer(context, test.leaf)
        if pointer is None:
            return None
        file, group = context.file, context.row_group
        num_rows = file.group_rows[group]
        try:
            index = yield from self._index(context, test, pointer)
            if index is None:
                return None
            places, inverted = _needed(index, test, group)
            read = []
            if places:
                read = yield [(index.offset + at, length) for at, length in places.values()]
            found = rows.RowRanges.empty()
            for (number, (_, length)), data in zip(places.items(), read, strict=True):
                if data.nbytes != length:
                    raise InvalidIndexError("its bytes could not be read")
                found |= index.directory.rows(group, number, data, num_rows)
        except InvalidIndexError as error:
            context.kind = self.name
            context.ignore(test, error)
            file.keep_index(_key(test), None, 0)
            return None
        if inverted:
            found = found.complement(0, num_rows)
        return Proof(found, found, True)

    def _index(
        self, context: PruneContext, test: BoundLeaf, pointer: Pointer
    ) -> Generator[Wanted, list[memoryview], FileBitmaps | None]:
        """The index of a column of the file; None where it is known to be wrong."""
        file, key = context.file, _key(test)
        if key not in file.indexes:
            chunks = fingerprint(file, test.leaf)
            if pointer.chunks != chunks:
                raise InvalidIndexError(
                    "it was built from other column chunks: the file was written anew"
                )
            (data,) = yield [(pointer.offset, min(FIRST_READ, pointer.length))]
            if data[:8] != MAGIC + bytes(4) or data[8:16] != chunks.to_bytes(8, "little"):
                raise InvalidIndexError("it does not begin as an index does")
            offset = pointer.offset + PAYLOAD_HEAD_BYTES
            length = pointer.length - PAYLOAD_HEAD_BYTES
            size = head_length(data[PAYLOAD_HEAD_BYTES:])
            if size > min(length, MOST_DIRECTORY):
                raise InvalidIndexError(f"a directory of {size} bytes in {length}")
            if size > data.nbytes - PAYLOAD_HEAD_BYTES:
                (data,) = yield [(offset, size)]
            else:
                data = data[PAYLOAD_HEAD_BYTES:]
            directory = BitmapDirectory(data, list(file.group_rows), length)
            values = directory.values.array(test.leaf_type)
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
            if key not in file.indexes:  # the generator of another row group may have been first
                made = FileBitmaps(directory, values, offset)
                file.keep_index(key, made, 4 * directory.nbytes)
        found: FileBitmaps | None = file.indexes[key]
        return found


def _key(test: BoundLeaf) -> tuple[str, int, Any]:
    return NAME, test.leaf.index, test.leaf_type


def _needed(
    index: FileBitmaps, test: BoundLeaf, group: int
) -> tuple[dict[int, tuple[int, int]], bool]:
    """The places of the sets of rows that decide a test in a row group, by value; and whether they are of rows that do not pass."""
    counts = index.directory.counts[group]
    passes = index.passing(test)
    there = counts > 0
    inverted = bool(counts[passes].sum() > counts[~passes].sum())
    wanted = np.flatnonzero(there & (passes != inverted)).tolist()
    return {number: index.directory.place(group, number) for number in wanted}, inverted


KIND = BitmapKind()
