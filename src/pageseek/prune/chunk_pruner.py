"""What pruners of column chunks have in common: what is at stake, and what they make of doubt."""

from __future__ import annotations

from typing import Any

from pageseek._core import rows
from pageseek.base.errors import PageseekError
from pageseek.format.embedded import DoubtError
from pageseek.format.parquet_file import ParquetFile
from pageseek.format.schema import Leaf
from pageseek.prune.protocol import Proof, Site

__all__ = ["NONE_PASSES", "DoubtError", "at_stake", "chunk_of", "ignored"]

NONE_PASSES = Proof(rows.RowRanges.empty(), rows.RowRanges.empty())


def chunk_of(site: Site, leaf: Leaf) -> Any:
    """The column chunk; None where it cannot be read, which the read itself will tell."""
    try:
        return site.file.chunk(site.row_group, leaf)
    except PageseekError:
        return None


def at_stake(site: Site, leaf: Leaf) -> int:
    """Bytes of the pages of a leaf that hold the rows in question, as far as the page index is at hand."""
    _, start, stop = site.file.placed_chunk(site.row_group, leaf)
    offsets = site.file.cached_offset_index(site.row_group, leaf)[1]
    if offsets is None:
        return stop - start if site.ranges else 0
    return sum([length for _, _, length, _, _ in offsets.pages_of(site.ranges)])


def ignored(file: ParquetFile, row_group: int, leaf: Leaf, what: str, why: object) -> str:
    """The note of a structure that is not trusted."""
    return f"{file.name}: {leaf.name!r}, row group {row_group}: {what} ignored: {why}"
