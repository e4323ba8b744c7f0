"""Divides large row groups of a plan into pieces, so that little of one is in memory at a time, and several tasks can share it.

A piece has rows of its own, and is read by the pages that hold them, as any selection is. At a cut, a page of each column
and its dictionary are read by both pieces. So pieces are much larger than that, and a column whose pages are not known, which
each piece would have to read whole, keeps its row group from being divided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import CorruptFileError
from pageseek.base.report import Report
from pageseek.format.chunks import page_header
from pageseek.format.file_metadata import NO_LEAVES, FileMetadata
from pageseek.format.page_headers import DICTIONARY_PAGE, WINDOW, walk, walking_seconds
from pageseek.format.page_index import OffsetIndex
from pageseek.format.schema import Leaf
from pageseek.format.types import BOOLEAN, BYTE_ARRAY, FIXED, FLOAT, INT32
from pageseek.io.range_requests import together
from pageseek.prune.column_index import load_indexes
from pageseek.prune.registry import COLUMN_INDEX, PAGE_HEADERS
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.steps import Steps

PIECE_BYTES = 32 << 20  # of decoded values
GAIN = 8  # a piece is so many times what it reads in common with the next
WALK_SECONDS = 1 / 4e9  # that page headers may take for each decoded byte: an eighth of decoding it
TEXT_BYTES = 24  # of a text, where its chunk has no bounds
Only: TypeAlias = Callable[[Leaf], bool]
# of texts in dictionaries, their mean length, by the row group and the leaf
Lengths: TypeAlias = Mapping[tuple[int, int], int]
_NO_LENGTHS: Lengths = MappingProxyType({})
_BY_DICTIONARY = 1 << 2 | 1 << 8  # parquet.thrift, Encoding
_WIDTHS = {BOOLEAN: 1, INT32: 4, FLOAT: 4}


def divide_for_memory(scan: FileScan, report: Report) -> Steps[tuple[GroupPlan, ...]]:
    """The row groups of the plan of a file, in pieces of PIECE_BYTES. Without a limit, the rows that pass a filter are divided once
    they are known (`FileScan.divide_passed`). Before, only what is tested counts.
    """
    lengths = yield from _entry_lengths(scan)
    groups = scan.plan.groups
    if all(_size(scan, group, lengths) < 2 * PIECE_BYTES for group in groups):
        return groups  # none is divided before its filter nor after
    use, tested = scan.bound_request.leaves, None
    if scan.request.limit is None:
        scan.divide_passed = partial(_divide_passed, lengths)

        def tested(leaf: Leaf) -> bool:
            return leaf.group or leaf.index in use.tested

    wanted = [
        _size(scan, group, lengths, None if group.fully_matched else tested) // PIECE_BYTES
        for group in groups
    ]
    return (yield from divide(scan, groups, wanted, report, lengths))


def _divide_passed(
    lengths: Lengths, scan: FileScan, group: GroupPlan, report: Report
) -> Steps[Sequence[GroupPlan]]:
    """The rows of a row group that passed the filter, in pieces of PIECE_BYTES."""
    use = scan.bound_request.leaves

    def payload(leaf: Leaf) -> bool:
        return not leaf.group and leaf.index in use.payload

    wanted = _size(scan, group, lengths, payload) // PIECE_BYTES
    return (yield from divide(scan, [group], [wanted], report, lengths, payload))


def divide_long_texts(scan: FileScan, report: Report) -> Steps[tuple[GroupPlan, ...]]:
    """As `divide_for_memory`, but only row groups that codes of long texts make large."""
    lengths = yield from _entry_lengths(scan)
    groups = scan.plan.groups
    if not lengths:
        return groups
    long = {number for (number, _), length in lengths.items() if length > TEXT_BYTES}
    wanted = [
        _size(scan, group, lengths) // PIECE_BYTES if group.row_group in long else 1
        for group in groups
    ]
    return (yield from divide(scan, groups, wanted, report, lengths))


def _entry_lengths(scan: FileScan) -> Steps[Lengths]:
    """The mean length of a text in each dictionary whose footer does not bound it, by the header of the dictionary page."""
    file, asked = scan.file, {}
    coded = {
        leaf.index
        for leaf, leaf_type in scan.bound_request.leaves.read()
        if pa.types.is_dictionary(leaf_type.type)  # comes out as codes
    }
    required = scan.bound_request.leaves.required(file)
    for number in [group.row_group for group in scan.plan.groups]:
        for leaf in required(number):
            if leaf.group or leaf.index in coded or leaf.element.type != BYTE_ARRAY:
                continue
            chunk, start, stop = file.placed_chunk(number, leaf)
            known = min(chunk.statistics_max_value_length, chunk.statistics_min_value_length)
            told = known >= 0 and chunk.statistics_is_max_exact != 0
            if (
                not told
                and chunk.encodings & _BY_DICTIONARY
                and chunk.num_values * chunk.total_uncompressed_size > PIECE_BYTES
            ):
                asked[number, leaf.index] = leaf, start, min(WINDOW, stop - start)
    if not asked:
        return {}
    lengths: dict[tuple[int, int], int] = {}
    found = yield [(start, size) for _, start, size in asked.values()]
    for (key, (leaf, start, _)), data in zip(asked.items(), found, strict=True):
        with suppress(CorruptFileError):  # raised again when it is read
            header = page_header(data, 0, partial(getattr, leaf, "name"), start)
            if header.type == DICTIONARY_PAGE and header.num_values > 0:
                lengths[key] = max(header.uncompressed_size, 0) // header.num_values
    return lengths


def divide(
    scan: FileScan,
    groups: Sequence[GroupPlan],
    wanted: Sequence[int],
    report: Report,
    lengths: Lengths = _NO_LENGTHS,
    only: Only | None = None,
) -> Steps[tuple[GroupPlan, ...]]:
    """Row groups of a file in pieces.

    Parameters
    ----------
    wanted : sequence of int
        How many pieces of each row group, at most.
    lengths : mapping
        Of the texts in dictionaries, where they are known.
    only : callable, optional
        Whether a leaf will be read; otherwise all that the scan reads will be.
    """
    file, prune = scan.file, scan.request.prune
    required = _required(scan, only)
    large = [
        group.row_group
        for group, n in zip(groups, wanted, strict=True)
        if n > 1 and _may_divide(file, group)
    ]
    if not large:
        return tuple(groups)
    if COLUMN_INDEX in prune:
        yield from load_indexes(file, large, required, (), scan.request.options, report)
    if PAGE_HEADERS in prune:
        yield from together(
            [
                walk(file, group.row_group, leaf, tested=False)
                for group in groups
                if group.row_group in large
                for leaf in _walked(file, group, required(group.row_group))
            ]
        )
    made: list[GroupPlan] = []
    for group, n in zip(groups, wanted, strict=True):
        if group.row_group in large:
            made += _pieces(file, required(group.row_group), group, n, lengths)
        else:
            made.append(group)
    return tuple(made)


def _required(scan: FileScan, only: Only | None) -> Callable[[int], list[Leaf]]:
    """For each row group, the leaves that the scan reads, or `only` some of them."""
    required = scan.bound_request.leaves.required(scan.file)
    if only is None:
        return required
    return lambda number: [leaf for leaf in required(number) if only(leaf)]


def _walked(file: FileMetadata, group: GroupPlan, leaves: Sequence[Leaf]) -> list[Leaf]:
    """The leaves of a row group whose pages are not known, if it is worth it to find them all by their headers."""
    unknown, seconds, size, common = [], 0.0, 0, 0
    number = group.row_group
    for leaf in leaves:
        size += decoded_bytes(leaf, file.chunk(number, leaf), file.group_rows[number])
        if file.offset_indexes.get((number, leaf.index)) is None:
            spent = walking_seconds(file, number, leaf)
            if spent is None:
                common += _at_a_cut(file, number, leaf)
            else:
                unknown.append(leaf)
                seconds += spent
    size = size * group.ranges.num_rows // max(file.group_rows[number], 1)
    return unknown if seconds < WALK_SECONDS * size and 2 * GAIN * common < size else []


def _may_divide(file: FileMetadata, group: GroupPlan) -> bool:
    """Whether the rows of a row group are known, and no index that told them has been found wrong since."""
    dropped = file.dropped.get(group.row_group, NO_LEAVES)
    return group.pages_pruned and not dropped - group.ignored


def _pieces(
    file: FileMetadata, leaves: Sequence[Leaf], group: GroupPlan, wanted: int, lengths: Lengths
) -> list[GroupPlan]:
    """A row group in at most so many pieces of about as many rows. They end with pages of the widest column, unless a page is
    longer than a piece.
    """
    number = group.row_group
    size = common = widest = 0
    ends: OffsetIndex | None = None
    for leaf in leaves:
        chunk = file.chunk(number, leaf)
        offsets = file.offset_indexes.get((number, leaf.index))
        own = decoded_bytes(
            leaf, chunk, file.group_rows[number], lengths.get((number, leaf.index), 0)
        )
        size += own
        common += _at_a_cut(file, number, leaf)
        if own > widest:
            widest, ends = own, offsets
    size = size * group.ranges.num_rows // max(file.group_rows[number], 1)
    n = min(wanted, size // max(GAIN * common, 1))
    if n < 2:
        return [group]
    ranges = group.ranges
    made: list[GroupPlan] = []
    start, last = ranges.bounds
    for i in range(1, n + 1):
        stop = last if i == n else ranges.head(ranges.num_rows * i // n).bounds[1]
        if ends is not None and i < n:
            first_rows = ends.first_row
            end = int(first_rows[np.searchsorted(first_rows, stop)])
            if end - stop <= ranges.num_rows // n:
                stop = end
        piece = ranges.slice(start, min(stop, last))
        if piece:
            made.append(_piece(group, piece, first=not made))
            start = stop
    return made


def _piece(group: GroupPlan, ranges: rows.RowRanges, first: bool) -> GroupPlan:
    return group._replace(
        ranges=ranges,
        matching=group.matching & ranges,
        cost=group.cost * ranges.num_rows // group.ranges.num_rows,
        divided=True,
        counted=group.counted and first,
    )


def _size(scan: FileScan, group: GroupPlan, lengths: Lengths, only: Only | None = None) -> int:
    """About the bytes of the decoded rows of a row group, in all leaves or `only` in some."""
    file, number = scan.file, group.row_group
    n = file.group_rows[number]
    size = 0
    for leaf in _required(scan, only)(number):
        entry = lengths.get((number, leaf.index), 0)
        size += decoded_bytes(leaf, file.chunk(number, leaf), n, entry)
    return size * group.ranges.num_rows // max(n, 1)


def decoded_bytes(leaf: Leaf, chunk: Any, num_rows: int, entry: int = 0) -> int:
    """About the bytes of the decoded values of a chunk. The footer does not tell the lengths of texts in a dictionary: they
    are taken to be those of the bounds, or `entry` where that is more.
    """
    if leaf.group:
        return num_rows
    kind = leaf.element.type
    width = _WIDTHS.get(kind, 8)
    if kind == FIXED:
        width = leaf.element.type_length
    elif kind == BYTE_ARRAY:
        known = max(chunk.statistics_max_value_length, chunk.statistics_min_value_length)
        width = max(known, entry, TEXT_BYTES)
    return max(int(chunk.total_uncompressed_size), int(chunk.num_values) * width, 0)


def _at_a_cut(file: FileMetadata, number: int, leaf: Leaf) -> int:
    """About the bytes that two pieces both read of a chunk, decompressed: a page, and the dictionary. All, if its pages are
    not known.
    """
    chunk, start, stop = file.placed_chunk(number, leaf)
    stored: int = max(chunk.total_uncompressed_size, 0)
    offsets = file.offset_indexes.get((number, leaf.index))
    if offsets is None:
        return stored
    return stored // max(offsets.num_pages, 1) + (offsets.start - start) * stored // max(
        stop - start, 1
    )
