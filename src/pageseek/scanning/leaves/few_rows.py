"""Few rows of one row group of a local file: all leaves of them as the work of one thread of the core.

Leaf by leaf, Python would take longer for the bookkeeping than the core for the pages. What does not fit is read leaf by leaf,
which also names the place of an error: nested leaves, those that come out as dictionaries, leaves of several pages without an offset
index in memory, codecs that the core does not know, and many pages, which several threads share.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from pageseek._core import rows
from pageseek._core.codecs import CodecSettings
from pageseek.base import log
from pageseek.base.errors import CoreError
from pageseek.base.report import Report
from pageseek.format.chunks import has_codes_only
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import CoreForm, LeafType
from pageseek.io.range_requests import DecodePages
from pageseek.scanning.leaves.output_size import likely_memory, likely_rows
from pageseek.scanning.requests.steps import LEAST_RESERVED, Reserve, ScanContext, Steps
from pageseek.storage.local import LocalStore

if TYPE_CHECKING:
    from pageseek._core.points import PointTask

# as PointReader takes it
PointLeaf: TypeAlias = tuple[CoreForm, int, int, CodecSettings, bytes, bytes, bytes, int, int, bool]
MOST_BYTES = 4 << 20  # compressed bytes of pages, about


def point_leaf(
    file: FileMetadata, row_group: int, leaf: Leaf, leaf_type: LeafType, context: ScanContext
) -> PointLeaf | None:
    """A leaf of a row group as PointReader takes it; None of another codec, and of several pages without an offset index in memory."""
    offsets = file.offset_indexes.get((row_group, leaf.index))
    chunk, start, stop = file.placed_chunk(row_group, leaf)
    codec = chunk.codec
    settings = context.codec_settings.get(codec) or context.settings_of(codec, file)
    if not settings.own:
        return None
    if offsets is not None:
        first, buffers = offsets.start, offsets.buffers
    else:
        first = max(chunk.data_page_offset, start)
        if first >= stop or not file.has_one_page(row_group, leaf):
            return None
        numbers = [0, file.group_rows[row_group]], [first], [stop - first]
        one, two, three = [array("q", some).tobytes() for some in numbers]
        buffers = one, two, three
    in_front = first - start
    coded = in_front > 0 and has_codes_only(chunk)
    size = likely_rows(stop - start)
    return leaf_type.core, leaf.max_def, size, settings, *buffers, start, max(in_front, 0), coded


def is_simple(part: Part) -> bool:
    """Whether the core can make a column of a leaf by itself."""
    leaf, leaf_type, nesting_levels = part
    return not (
        leaf.group
        or not leaf.flat
        or nesting_levels
        or leaf_type.is_null
        or pa.types.is_dictionary(leaf_type.type)
    )


def read_few(
    file: FileMetadata,
    row_group: int,
    parts: Sequence[Part],
    ranges: rows.RowRanges,
    context: ScanContext,
) -> Steps[list[pa.Array] | None]:
    """The array of each leaf; None where they are read leaf by leaf."""
    store, num_rows = file.store, file.group_rows[row_group]
    if not isinstance(store, LocalStore) or log.begun() or ranges.num_rows == num_rows:
        return None
    from pageseek._core.points import AVAILABLE, PointReader, PointTask  # late: few scans need it

    if not AVAILABLE or not all(map(is_simple, parts)):
        return None
    try:
        size, memory = _cost(file, row_group, parts, ranges)
        if size > MOST_BYTES:
            return None
        leaves = []
        for leaf, leaf_type, _ in parts:
            made = point_leaf(file, row_group, leaf, leaf_type, context)
            if made is None:
                return None
            leaves.append(made)
        reader = PointReader(leaves, list(range(len(leaves))))
    except CoreError:  # raised again, with the place, leaf by leaf
        return None
    keeps_open = store.open_file  # first: without it the descriptor is none
    task = PointTask(reader, store.descriptor, keeps_open, ranges.ranges, 2 * MOST_BYTES, size)
    if size >= LEAST_RESERVED:
        yield Reserve(size + memory)
    (batch,) = yield DecodePages([task], size)
    done = batch is not None and batch.num_rows == ranges.num_rows
    _count(file, row_group, parts, task, ranges.num_rows if done else None, context.report)
    if not done:
        return None
    stored = _schema_of(tuple([leaf_type.storage for _, leaf_type, _ in parts]))
    found: list[pa.Array] = pa.RecordBatch._import_from_c(batch.address, stored).columns
    return found


def _cost(
    file: FileMetadata, row_group: int, parts: Sequence[Part], ranges: rows.RowRanges
) -> tuple[int, int]:
    """About the compressed bytes of the pages, and the bytes of memory of their rows; without offset indexes, of whole chunks."""
    num_rows, chosen = file.group_rows[row_group], ranges.num_rows
    share, runs = chosen / num_rows, len(ranges.to_numpy())
    size, memory = 0.0, 0
    for leaf, _, _ in parts:
        offsets = file.offset_indexes.get((row_group, leaf.index))
        chunk, start, stop = file.placed_chunk(row_group, leaf)
        num_pages = 1 if offsets is None else max(offsets.num_pages, 1)
        size += (stop - start) * min(share + runs / num_pages, 1)
        memory += likely_memory(chunk, chosen, num_rows)
    return int(size), memory


def _count(
    file: FileMetadata,
    row_group: int,
    parts: Sequence[Part],
    task: PointTask,
    num_rows: int | None,
    report: Report,
) -> None:
    """Count what was read, as the way leaf by leaf does. `num_rows`: of them; None: they are read again."""
    size = 0
    for part, (pages, dictionaries, nbytes) in zip(parts, task.counts, strict=True):
        leaf = part.leaf
        # which another scan may have dropped
        offsets = file.offset_indexes.get((row_group, leaf.index))
        num_pages = None if offsets is None or num_rows is None else offsets.num_pages
        counts = report.chunk(file.name, row_group, leaf.name, num_pages)
        counts.bytes += nbytes
        size += nbytes
        if num_rows is None:
            continue
        counts.pages_total += pages if offsets is None else 0
        counts.pages_read += pages
        counts.dictionary_pages += dictionaries
        counts.rows_decoded += num_rows
    report.requests += task.requests
    report.waves += 1
    report.bytes["data"] += size


@lru_cache(maxsize=64)
def _schema_of(types: tuple[pa.DataType, ...]) -> pa.Schema:
    """The schema of a batch of leaves of these types."""
    return pa.schema([pa.field(str(i), one) for i, one in enumerate(types)])
