"""What pruners of column chunks share: the chunk and its offset index, the bytes that they may save, notes of what is not trusted."""

from __future__ import annotations

from typing import Any

from pageseek._core import rows
from pageseek.base.errors import PageseekError
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import OffsetIndex
from pageseek.format.schema import Leaf
from pageseek.prune.protocol import Proof, PruneContext

__all__ = ["NONE_PASSES", "InvalidIndexError", "bytes_at_stake", "ignored", "placed_chunk"]

NONE_PASSES = Proof(rows.RowRanges.empty(), rows.RowRanges.empty())


def placed_chunk(
    context: PruneContext, leaf: Leaf
) -> tuple[Any, int, int, OffsetIndex | None] | None:
    """The column chunk, its first byte, the byte after its last, and its offset index if that is in memory. None where the
    chunk cannot be read: the scan raises the error if it reads it.
    """
    file, group = context.file, context.row_group
    try:
        chunk, start, stop = file.placed_chunk(group, leaf)
    except PageseekError:
        return None
    return chunk, start, stop, file.offset_indexes.get((group, leaf.index))


def bytes_at_stake(
    ranges: rows.RowRanges, start: int, stop: int, offsets: OffsetIndex | None
) -> int:
    """Bytes of the pages of a chunk from `start` to `stop` that hold the rows in question; of all pages without its offset
    index.
    """
    if offsets is None:
        return stop - start if ranges else 0
    size = 0
    for _, _, length, _, _ in offsets.pages_of(ranges):
        size += length
    return size


def ignored(file: FileMetadata, row_group: int, leaf: Leaf, what: str, why: object) -> str:
    """The note of a structure that is not trusted."""
    return f"{file.name}: {leaf.name!r}, row group {row_group}: {what} ignored: {why}"
