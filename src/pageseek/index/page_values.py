"""The values of a page as Arrow has them, for kinds of index that users register; and which columns can be indexed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pageseek._core import convert
from pageseek.base.errors import UnsupportedError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    FIXED,
    INT96,
    K_BOOL,
    K_FIXED,
    MAX_FIXED,
    PHYSICAL_NAMES,
    to_arrow,
)
from pageseek.index.page_reader import Page
from pageseek.prune.kind import IndexedColumn, NotBuiltError


class ConvertedPage:
    """A page as `Builder.collect` receives it. `raw`: the page with the bytes of the file, for kinds of this package."""

    __slots__ = ("_column", "first_row", "nulls", "num_rows", "raw")

    def __init__(self, page: Page, column: IndexedColumn) -> None:
        self.raw, self._column = page, column
        self.first_row, self.num_rows, self.nulls = page.first_row, page.num_rows, page.nulls

    @property
    def values(self) -> pa.Array:
        """One value for each row, of the type of the column. NotBuiltError: a value cannot be of that type."""
        leaf_type, values = self._column.leaf_type, self.raw.values
        assert values is not None
        n, width = values.n, self._column.leaf.element.type_length
        if leaf_type.kind == K_BOOL:
            return to_arrow(leaf_type, n, -1, values.validity, None, values.data)
        if values.offsets is not None:
            ends = np.frombuffer(values.offsets, np.int32, n + 1).astype(np.int64)
            offsets, lengths = ends[:-1], np.diff(ends)
        else:
            if self._column.leaf.element.type != FIXED:
                width = memoryview(values.data).nbytes // n if n else 0
            offsets, lengths = np.arange(n, dtype=np.int64) * width, np.full(n, width, np.int64)
        places = np.concatenate([offsets, lengths, offsets, lengths]).tobytes()
        made, ends_made, _, _, known = convert.convert_bounds(
            leaf_type.core, memoryview(values.data).cast("B"), places, n
        )
        if not np.frombuffer(known, np.uint8).view(bool)[values.valid()].all():
            raise NotBuiltError("some values are none of its type")
        ends_made = None if leaf_type.kind == K_FIXED else ends_made
        return to_arrow(leaf_type, n, -1, values.validity, ends_made, made)


def indexed_column(file: FileMetadata, leaf: Leaf, kind: str) -> IndexedColumn:
    """The column of an index. UnsupportedError: its values cannot be indexed."""
    check_column(leaf, f"{kind}=[...]")
    return IndexedColumn(leaf, file.schema_tree.parquet_leaf_type(leaf), file.group_rows)


def check_column(leaf: Leaf, option: str) -> None:
    """Raise UnsupportedError where the values of a leaf cannot be indexed. `option`: as the caller asks for an index of it."""
    check_width(leaf)
    if leaf.max_rep:
        raise UnsupportedError(
            f"column {leaf.name!r}: it lies in a list, whose values are not listed; leave it out of {option}"
        )
    if leaf.element.type == INT96:
        raise UnsupportedError(
            f"column {leaf.name!r}: values of {PHYSICAL_NAMES[INT96]} are not listed; leave it out of {option}"
        )


def check_width(leaf: Leaf) -> None:
    """Raise UnsupportedError where values have a width that no reader takes."""
    if leaf.element.type == FIXED and not 0 < leaf.element.type_length <= MAX_FIXED:
        raise UnsupportedError(
            f"column {leaf.name!r}: values of {leaf.element.type_length} bytes; leave the column out"
        )
