"""Records of row groups, column chunks and page headers as the core gives them.

Source: parquet.thrift (RowGroup, ColumnChunk, ColumnMetaData, PageHeader).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pageseek._core import metadata as core
from pageseek.base.errors import (
    CoreError,
    CorruptFileError,
    PageseekError,
    UnsupportedError,
    from_core,
)
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, physical_name, shown_record

DICTIONARY_ENCODINGS = 1 << 2 | 1 << 8  # parquet.thrift, Encoding
CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")

RowGroup = NamedTuple("RowGroup", [(name, int) for name in core.ROW_GROUP_FIELDS])  # type: ignore[misc]
Chunk = NamedTuple("Chunk", [(name, int) for name in core.CHUNK_FIELDS])  # type: ignore[misc]
PageHeader = NamedTuple("PageHeader", [(name, int) for name in core.PAGE_HEADER_FIELDS])  # type: ignore[misc]

RowGroup.__repr__ = Chunk.__repr__ = PageHeader.__repr__ = shown_record  # type: ignore[method-assign]

CHUNK = struct.Struct(f"<{len(core.CHUNK_FIELDS)}q")
_PAGE_HEADER = struct.Struct(f"<{len(core.PAGE_HEADER_FIELDS)}q").unpack


def records(kind: Any, data: bytes) -> list[Any]:
    """Consecutive records of one kind."""
    width = len(kind._fields)
    return [kind._make(values) for values in struct.iter_unpack(f"<{width}q", data)]


def chunk_range(chunk: Any) -> tuple[int, int]:
    """The first byte of a column chunk, dictionary page included, and the byte after its last."""
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset != ABSENT and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    return start, start + chunk.total_compressed_size


def may_have_dictionary(chunk: Any) -> bool:
    """Whether a dictionary page may lie before the first data page."""
    return chunk.dictionary_page_offset != ABSENT or bool(chunk.encodings & DICTIONARY_ENCODINGS)


def page_header(data: memoryview, at: int, where: Callable[[], str], base: int) -> Any:
    """The PageHeader at data[at:]. `base`: the offset of data[0] in the file."""
    try:
        return PageHeader._make(_PAGE_HEADER(core.page_header(data, at)))
    except CoreError as error:
        raise from_core(error, f"{where()}: page header", base) from error


def refusal(where: str, leaf: Leaf, chunk: Any, num_rows: int) -> PageseekError:
    """The error of a chunk that cannot be read. `num_rows`: of its row group."""
    if chunk.crypto != ABSENT or not chunk.has_metadata:
        return UnsupportedError(
            f"{where}: the column is encrypted, and encrypted columns are not supported; leave it out by columns=[...]"
        )
    if chunk.file_path_length not in (ABSENT, 0):
        return UnsupportedError(f"{where}: the chunk lies in another file, which is not supported")
    if chunk.type != leaf.element.type:
        return CorruptFileError(
            f"{where}: the schema says {physical_name(leaf.element.type)}, the chunk {physical_name(chunk.type)}"
        )
    if leaf.max_rep == 0 and chunk.num_values != num_rows:
        return CorruptFileError(f"{where}: {chunk.num_values} values in {num_rows} rows")
    start, stop = chunk_range(chunk)
    return CorruptFileError(f"{where}: the chunk at bytes {start} to {stop} lies outside the file")


def declared_pages(chunk: Any) -> int | None:
    """The number of data pages by the footer (parquet.thrift, PageEncodingStats); None if it does not say."""
    if chunk.encoding_stats != 1:
        return None
    return int(chunk.dictionary_data_pages + chunk.other_data_pages)


def all_declared_pages(chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`declared_pages` of chunks, -1 where the footer does not say. `chunks`: the fields of Chunk are the last axis."""
    declared, coded, others = (
        chunks[..., Chunk._fields.index(name)]
        for name in ("encoding_stats", "dictionary_data_pages", "other_data_pages")
    )
    return np.where(declared == 1, coded + others, -1)


def has_codes_only(chunk: Any) -> bool:
    """Whether all data pages have codes of the dictionary, by the footer."""
    return bool(chunk.encoding_stats == 1 and chunk.other_data_pages == 0)


class PlacedChunks(NamedTuple):
    """The column chunks of some leaves in some row groups, which can be read.

    Attributes
    ----------
    sizes, unpacked : list of list of int
        For each leaf the bytes of each chunk, and what they are unpacked, as the footer says.
    codecs : list of set of int
        Those of each leaf.
    ranges : list of (int, int)
        The (offset, length) of bytes that hold all chunks.
    places : list of (list of int, list of int), optional
        For each leaf which of the ranges holds each chunk, and where it begins there. None: each chunk is a range, those of a leaf
        one behind the other.
    """

    sizes: list[list[int]]
    unpacked: list[list[int]]
    codecs: list[set[int]]
    ranges: list[tuple[int, int]]
    places: list[tuple[list[int], list[int]]] | None = None

    def cut(self, leaf: int, buffers: Sequence[Any]) -> list[Any]:
        """The chunks of the leaf with this number. `buffers`: the bytes of each range."""
        sizes = self.sizes[leaf]
        if self.places is None:
            return list(buffers[leaf * len(sizes) : (leaf + 1) * len(sizes)])
        return [
            buffers[i][at : at + size]
            for i, at, size in zip(*self.places[leaf], sizes, strict=True)
        ]


class Sound(NamedTuple):
    """For each chunk whether it can be read, its first byte, and its size."""

    sound: npt.NDArray[np.bool_]
    start: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]


def sound_chunks(
    table: npt.NDArray[np.int64], types: Any, repeated: Any, rows: Any, ends: Any
) -> Sound:
    """FooterFile.placed_chunk for many chunks at once.

    Parameters
    ----------
    table : int64 array
        Its last dimension has the fields of Chunk. The other arguments are arrays of the dimensions before, or scalars.
    types, repeated
        The physical type of each leaf, and whether it repeats, by the schema.
    rows
        The rows of each row group.
    ends
        The offset that each chunk must not pass.
    """

    def of(name: str) -> npt.NDArray[np.int64]:
        return np.asarray(table[..., Chunk._fields.index(name)])

    start, other = of("data_page_offset"), of("dictionary_page_offset")
    start = np.where((other > 0) & (other < start), other, start)
    path, size = of("file_path_length"), of("total_compressed_size")
    sound = (
        (of("crypto") == ABSENT)
        & (of("has_metadata") != 0)
        & ((path == ABSENT) | (path == 0))
        & (of("type") == types)
        & (repeated | (of("num_values") == rows))
        & (start >= 4) & (start <= ends) & (size >= 0) & (size <= ends - start)
    )  # fmt: skip
    return Sound(sound, start, size)
