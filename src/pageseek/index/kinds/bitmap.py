"""The rows of each value of a column of few values (docs/format.md, kind `bitmap`): every test of single values is decided exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import UnsupportedError
from pageseek.format import bitmap_form as form
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import FLOAT_KINDS
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.kind import IndexedColumn
from pageseek.prune.partial_index import Body, PartialIndexKind, read_directory, read_whole
from pageseek.prune.protocol import Proof, PruneContext, passing

if TYPE_CHECKING:
    from pageseek.index.bitmap_builder import BitmapBuilder

FIRST_BYTES = 8 << 10  # that have the directory of most indexes


class FileBitmaps:
    """The index of a column of one file."""

    def __init__(self, directory: form.BitmapDirectory, values: pa.Array, body: Body) -> None:
        """`values`: in the type of the column, null last."""
        self.directory, self.values, self.body = directory, values, body

    def needed(self, test: BoundLeaf, group: int) -> tuple[dict[int, tuple[int, int]], bool]:
        """The places of the sets of rows that decide a test in a row group, by value; and whether they are of rows that fail."""
        counts = self.directory.counts[group]
        passes = passing(test, self.values)
        inverted = bool(counts[passes].sum() > counts[~passes].sum())
        wanted = np.flatnonzero((counts > 0) & (passes != inverted)).tolist()
        return {number: self.directory.place(group, number) for number in wanted}, inverted


class BitmapKind(PartialIndexKind):
    """Proves for each row of a row group whether it passes a test."""

    name, version = form.KIND, form.VERSION
    title = "bitmap index"
    patterns = True

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

    def takes(self, context: PruneContext, test: BoundLeaf) -> bool:
        """Whether a test is one of single values."""
        return not (test.leaf.group or test.leaf_type.is_null)

    def first_bytes(self, file: FileMetadata) -> int:
        """Those of most directories."""
        return FIRST_BYTES

    def cost(self, context: PruneContext, test: BoundLeaf, index: FileBitmaps | None) -> int:
        """The sets that decide the test."""
        if index is None:
            return 0
        if _counts(context):
            return 0
        places, _ = index.needed(test, context.row_group)
        return sum([context.to_fetch(index.body.offset + at, n) for at, n in places.values()])

    def begin(
        self, file: FileMetadata, test: BoundLeaf, body: Body
    ) -> Asking[tuple[FileBitmaps, int]]:
        """The directory, of which the first bytes may be a part."""
        size = form.head_length(body.start)
        data = yield from read_directory(body, size, form.MAX_DIRECTORY_BYTES)
        directory = form.BitmapDirectory(data, list(file.group_rows), body.length)
        values = directory.values.array(test.leaf_type)
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        return FileBitmaps(directory, values, body), 4 * directory.nbytes

    def proof(self, context: PruneContext, test: BoundLeaf, index: FileBitmaps) -> Asking[Proof]:
        """The rows that pass."""
        group = context.row_group
        num_rows = context.file.group_rows[group]
        if _counts(context):  # which rows they are is not asked
            n = int(index.directory.counts[group][passing(test, index.values)].sum())
            some = rows.RowRanges.all(n)
            return Proof(some, some, True, counted=True)
        places, inverted = index.needed(test, group)
        parts = yield from read_whole(index.body, list(places.values()))
        found = rows.RowRanges.empty()
        for number, data in zip(places, parts, strict=True):
            found |= index.directory.rows(group, number, data, num_rows)
        due = int(index.directory.counts[group, list(places)].sum())
        if found.num_rows != due:
            raise InvalidIndexError(f"sets of row group {group} share rows")
        if inverted:
            found = found.complement(0, num_rows)
        return Proof(found, found, True)


def _counts(context: PruneContext) -> bool:
    """Whether the number of rows that pass is all that is wanted of a row group."""
    whole = context.file.group_rows[context.row_group]
    return context.counts_only and bool(context.ranges.num_rows == whole)


KIND = BitmapKind()
