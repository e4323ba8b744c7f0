"""Pages of files without a page index: their headers say where they are, how many rows they have and, where the
writer left statistics in them (parquet.thrift, DataPageHeader), between which bounds their values lie.

A chunk is walked from header to header, with one small read each; that is little against decoding it, where the
store is near and the pages are many. What was found is kept with the file, as a page index would be.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Any

import numpy as np

from pageseek._core import metadata as core
from pageseek.base.errors import CoreError, CorruptFileError, PageseekError
from pageseek.format.chunks import Chunk, PageHeader, page_header
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_index import OffsetIndex
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.io.range_requests import Wanted

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
WINDOW = 160  # bytes that hold most headers, even with statistics of numbers
MAX_HEADER_BYTES = 1 << 20  # bytes of a header, at most
FEWEST = 4  # pages of a chunk that is worth walking, at least
PAGE_SECONDS = 20e-6  # seconds to parse one header
DECODED = 500e6  # compressed bytes decoded in a second, about
USUAL_PAGE = 1 << 20  # bytes of a page, decompressed, if the footer does not tell

_STATISTICS = len(Chunk._fields) - Chunk._fields.index("statistics_present")
_BEFORE = struct.pack(
    f"<{len(Chunk._fields) - _STATISTICS}q", *[ABSENT] * (len(Chunk._fields) - _STATISTICS)
)
_SAID = [
    PageHeader._fields.index(f"statistics_{name}")
    for name in ("null_count", "max_offset", "min_offset", "max_value_offset", "min_value_offset")
]
_PLACES = [PageHeader._fields.index(f"statistics_{name}_offset") for name in ("max", "min", "max_value", "min_value")]  # fmt: skip


def walking_bytes(file: FileMetadata, row_group: int, leaf: Leaf, part: float) -> int | None:
    """About the bytes that are read to find the pages of a chunk; None if that is likely to cost more than it spares.

    `part`: the share of its rows that may be spared.
    """
    if file.offset_indexes.get((row_group, leaf.index)) is not None:
        return None
    cost = walking_seconds(file, row_group, leaf)
    if cost is None:
        return None
    chunk = file.chunk(row_group, leaf)
    pays = cost < part * chunk.total_compressed_size / DECODED / 2
    return int(likely_pages(chunk) * WINDOW) if pays else None


def walking_seconds(file: FileMetadata, row_group: int, leaf: Leaf) -> float | None:
    """About the time to walk the pages of a chunk that has no offset index; None if that cannot be done, or not with use."""
    if leaf.max_rep or leaf.group or file.was_walked(row_group, leaf):  # the last, without success
        return None
    if file.index_range("offset", row_group, leaf) is not None:  # it was read and is not used
        return None
    try:
        pages = likely_pages(file.chunk(row_group, leaf))
    except PageseekError:
        return None
    return pages * (PAGE_SECONDS + file.store.latency) if pages >= FEWEST else None


def likely_pages(chunk: Any) -> float:
    """About the number of pages of a chunk, by its encoding_stats, else by its size."""
    if chunk.encoding_stats == 1:
        return float(max(chunk.dictionary_data_pages + chunk.other_data_pages, 0))
    return float(max(chunk.total_uncompressed_size, 0) / USUAL_PAGE)


def walk(
    file: FileMetadata,
    row_group: int,
    leaf: Leaf,
    tested: bool,
) -> Generator[Wanted, list[memoryview], None]:
    """Read the page headers of one chunk, and keep them with the file if they agree with the footer.

    `tested`: the bounds are needed; the walk ends at a page without bounds. It also ends if there are many more pages than
    expected.
    """
    found = yield from _found(file, row_group, leaf, tested)
    file.adopt_pages(row_group, leaf, found)


def _found(
    file: FileMetadata, row_group: int, leaf: Leaf, tested: bool
) -> Generator[Wanted, list[memoryview], tuple[OffsetIndex, memoryview, bytes] | None]:
    chunk, start, stop = file.placed_chunk(row_group, leaf)
    most = 2 * likely_pages(chunk) + 16
    num_rows = file.group_rows[row_group]
    at, row, window = start, 0, WINDOW
    offsets: list[int] = []
    sizes: list[int] = []
    first_rows: list[int] = []
    headers, records = bytearray(), bytearray()
    while row < num_rows and at < stop:
        (data,) = yield [(at, min(window, stop - at))]
        try:
            header = page_header(data, 0, lambda: leaf.name, at)
        except CorruptFileError as error:
            cause = error.__cause__
            cut = isinstance(cause, CoreError) and cause.status == core.TRUNCATED
            if not cut or window >= min(MAX_HEADER_BYTES, stop - at):
                return None  # reading the chunk raises it
            window = min(window * 8, MAX_HEADER_BYTES)
            continue
        end = at + header.header_length + header.compressed_size
        if end > stop:
            return None
        if header.type in (DATA_PAGE, DATA_PAGE_V2):
            if tested and all(header[place] == ABSENT for place in _SAID):
                return None
            if len(offsets) >= most or len(headers) > file.max_metadata_bytes:
                return None
            offsets.append(at)
            sizes.append(end - at)
            first_rows.append(row)
            row += header.num_values
            records += _record(header, len(headers))
            headers += data[: header.header_length]
        elif header.type != DICTIONARY_PAGE or offsets:
            return None  # a page of another type lies between the data pages
        at, window = end, max(WINDOW, header.header_length * 2)
    if row != num_rows or not offsets:
        return None
    arrays = (
        np.array(values, np.int64).tobytes() for values in (offsets, sizes, [*first_rows, row])
    )
    return OffsetIndex(len(offsets), *arrays), memoryview(bytes(headers)), bytes(records)


def _record(header: PageHeader, moved: int) -> bytes:
    """The statistics of a page as a record of CHUNK_FIELDS. `moved`: the new offset of the header's bytes."""
    values: list[int] = list(header)
    for place in _PLACES:
        if values[place] != ABSENT:
            values[place] += moved
    return _BEFORE + struct.pack(f"<{_STATISTICS}q", *values[-_STATISTICS:])
