"""What pruners of column chunks share: the bytes at stake, and the note of a structure that is not trusted."""

from __future__ import annotations

from typing import Any

from pageseek._core import rows
from pageseek.base.errors import PageseekError
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.prune.protocol import Proof, PruneContext

__all__ = ["NONE_PASSES", "InvalidIndexError", "bytes_at_stake", "chunk_of", "ignored"]

NONE_PASSES = Proof(rows.RowRanges.empty(), rows.RowRanges.empty())


def chunk_of(context: PruneContext, leaf: Leaf) -> Any:
    """The column chunk; None where it cannot be read, which is an error when the scan reads it."""
    try:
        return context.file.chunk(context.row_group, leaf)
    except PageseekError:
        return None


def bytes_at_stake(context: PruneContext, leaf: Leaf) -> int:
    """Bytes of the pages of a leaf that hold the rows in question; of all pages where no offset index is at hand."""
    _, start, stop = context.file.placed_chunk(context.row_group, leaf)
    offsets = context.file.offset_indexes.get((context.row_group, leaf.index))
    if offsets is None:
        return stop - start if context.ranges else 0
    return sum([length for _, _, length, _, _ in offsets.pages_of(context.ranges)])


def ignored(file: FileMetadata, row_group: int, leaf: Leaf, what: str, why: object) -> str:
    """The note of a structure that is not trusted."""
    return f"{file.name}: {leaf.name!r}, row group {row_group}: {what} ignored: {why}"
