"""Small row groups of a file that are read as one: the steps of a row group cost more than its pages do.

Row groups of one data page a column are joined. Their rows are counted from the first row of the first of them. The core decodes
the chunks of a column one after the other into one array. A filter is evaluated for all of them at once. What fails here is read
again row group by row group, which names the place; so is what becomes much larger than the footer lets expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter

import numpy as np
import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import BYTES_KINDS, to_arrow
from pageseek.predicate.bound import null_tests
from pageseek.scanning.accounting import count_kept
from pageseek.scanning.file_scan import FileScan, Rows
from pageseek.scanning.group_filter import GroupFilter
from pageseek.scanning.group_reader import LEAST_RESERVED, GroupReader
from pageseek.scanning.leaf_use import LeafUse
from pageseek.scanning.output_size import MAX_RATIO, likely_memory, likely_rows
from pageseek.scanning.plan import GroupPlan, Joint
from pageseek.scanning.request_sharing import weight
from pageseek.scanning.segments import count_segments, stops_of
from pageseek.scanning.steps import DecodePages, PageTask, Read, Reserve, ScanContext, Steps

MOST_ROWS = 1 << 16  # of row groups that are joined
MOST_BYTES = 4 << 20  # of memory that they take, about
MOST_OUTPUT = 4 * MOST_BYTES  # of each buffer: later codes may stand for far more than those before
SMALL_ROWS = MOST_ROWS // 4  # of a row group that is worth it
_ANY = 1 << 62  # values of a page: those of a flat leaf are as many as its rows


class _UnfitError(Exception):
    """The core did not decode a column of the joined row groups."""


class Place(NamedTuple):
    """A row group among the joined ones: its number, its first row there, its rows."""

    number: int
    first: int
    num_rows: int


def joined(
    scan: FileScan,
    groups: Iterable[GroupPlan],
    context: ScanContext,
    growth: Callable[[], float],
) -> Iterator[Joint]:
    """The row groups in order, those that are read as one together.

    `growth`: of the tables so far, the most bytes for each one that the footer let expect, since codes may stand for long
    strings; 0 before the first.
    """
    leaves = _fitting(scan, context)
    together: list[GroupPlan] = []
    num_rows = nbytes = 0
    for group in groups:
        likely = max(weight(scan, group), 1)
        fits = leaves is not None and _is_small(scan, group, leaves, context)
        if together and (
            not fits
            or together[0].fully_matched != group.fully_matched
            or num_rows + group.ranges.num_rows > MOST_ROWS
            or not 0 < (nbytes + likely) * growth() <= MOST_BYTES
        ):
            yield Joint(together, nbytes)
            together, num_rows, nbytes = [], 0, 0
        if fits:
            together.append(group)
            num_rows += group.ranges.num_rows
            nbytes += likely
        else:
            yield Joint([group], likely)
    if together:
        yield Joint(together, nbytes)


def _fitting(scan: FileScan, context: ScanContext) -> list[Leaf] | None:
    """The leaves that are read of the row groups of a file, if these can be joined."""
    bound_request, file = scan.bound_request, scan.file
    use, bound = bound_request.leaves, bound_request.bound
    if context.wait_bytes or context.kept or scan.begun or file.num_row_groups < 2:
        return None
    if bound is not None and null_tests(bound):  # by levels alone
        return None
    leaves: dict[int, Leaf] = {}
    for leaf, leaf_type in use.read():
        if not leaf.flat or leaf.group or pa.types.is_dictionary(leaf_type.type):
            return None
        leaves[leaf.index] = leaf
    if any(part.nesting_levels for part in use.parts.values()):
        return None
    return list(leaves.values())


def _is_small(
    scan: FileScan, group: GroupPlan, leaves: Sequence[Leaf], context: ScanContext
) -> bool:
    file, number = scan.file, group.row_group
    if (
        group.ranges.num_rows > SMALL_ROWS
        or group.divided
        or group.matching
        or number in file.dropped
        or file.group_rows[number] > SMALL_ROWS
    ):
        return False
    try:
        for leaf in leaves:
            codec = file.chunk(number, leaf).codec
            settings = context.codec_settings.get(codec) or context.settings_of(codec, file)
            if not settings.own or not file.has_one_page(number, leaf):
                return False
    except (CoreError, PageseekError):  # raised again when it is read by itself
        return False
    return True


def read_joined(
    scan: FileScan, groups: Sequence[GroupPlan], context: ScanContext
) -> Steps[Rows | None]:
    """The rows of joined row groups that pass, counted from the first row of the first one, and the arrays of each column.

    None if they have to be read one by one.
    """
    file, bound_request, report = scan.file, scan.bound_request, context.report
    use = bound_request.leaves
    context.row_groups = len(scan.plan.groups)
    reader = JoinedReader(file, groups, use, context)
    decoded, ranges = reader.decoded, reader.ranges
    try:
        if bound_request.bound is not None and not groups[0].fully_matched:
            began = perf_counter()
            number = groups[0].row_group
            filtering = GroupFilter(
                file, number, bound_request, bound_request.bound, reader, context, reader.num_rows
            )
            ranges = yield from filtering.passing(ranges)
            report.spent("filter", began)
        arrays: list[list[pa.Array]] = [[] for _ in bound_request.columns]
        if ranges:
            began = perf_counter()
            missing = [part for key, part in use.parts.items() if key not in decoded.arrays]
            yield from reader.read(missing, ranges)
            arrays = [decoded.output(column) for column in bound_request.columns]
            report.spent("payload", began)
    except (_UnfitError, PageseekError, CoreError):
        return None
    if any(group.row_group in file.dropped for group in groups):  # by another scan, meanwhile
        return None
    reader.count(report)
    for group in groups:
        number = group.row_group
        count_kept(file, bound_request, group, report)
        report.done(file.name, number, group.ranges.num_rows, file.group_rows[number])
    return Rows(ranges, arrays)


class JoinedReader(GroupReader):
    """Reads leaves of joined row groups.

    Attributes
    ----------
    ranges : RowRanges
        The rows to read.
    num_rows : int
        Rows from the first row of the first row group to the last row of the last one.
    """

    __slots__ = "_counts", "_places", "num_rows", "ranges"

    def __init__(
        self, file: FileMetadata, groups: Sequence[GroupPlan], use: LeafUse, context: ScanContext
    ) -> None:
        super().__init__(file, groups[0].row_group, use, context)
        base = file.first_row(groups[0].row_group)
        self._places: list[Place] = []
        pairs = []
        for group in groups:
            number = group.row_group
            place = Place(number, file.first_row(number) - base, file.group_rows[number])
            self._places.append(place)
            pairs.append(group.ranges.to_numpy() + place.first)
        self.ranges = rows.RowRanges(np.concatenate(pairs))
        self.num_rows = place.first + place.num_rows
        # of each leaf the row groups that were read, their bytes, rows and dictionary pages
        self._counts: list[tuple[Leaf, list[Place], int, rows.RowRanges, list[int]]] = []

    def read(
        self, parts: Sequence[Part], ranges: rows.RowRanges, tested: bool = False
    ) -> Steps[None]:
        """Fetch and decode several leaves, as GroupReader does. Dictionary codes are never kept, as each row group has its own."""
        if not parts:
            return
        file = self._file
        chosen = self._places
        if ranges is not self.ranges:
            chosen = [one for one in chosen if ranges.meets(one.first, one.first + one.num_rows)]
        wanted, memory = [], 0
        for part in parts:
            for one in chosen:
                chunk, start, stop = file.placed_chunk(one.number, part.leaf)
                wanted.append((start, stop - start))
                memory += likely_memory(chunk, one.num_rows, one.num_rows)
        size = sum([length for _, length in wanted])
        if size >= LEAST_RESERVED:
            yield Reserve(size + memory)
        buffers = yield Read(wanted, "data")
        tasks: list[PageTask] = []
        ends = []
        for i, part in enumerate(parts):
            tasks += self._tasks(
                part, buffers[i * len(chosen) : (i + 1) * len(chosen)], chosen, ranges
            )
            ends.append(len(tasks))
        made = yield DecodePages(tasks, size)
        at = 0
        for i, (part, end) in enumerate(zip(parts, ends, strict=True)):
            some, decoders = made[at:end], [task[0] for task in tasks[at:end]]
            at = end
            if not all(isinstance(one, tuple) for one in some):
                raise _UnfitError
            arrays = [to_arrow(part.leaf_type, *one) for one in some]
            self.decoded.put(part.leaf, part.leaf_type, arrays, None, None, ranges.num_rows)
            length = sum([n for _, n in wanted[i * len(chosen) : (i + 1) * len(chosen)]])
            dictionaries = [decoder.dictionary_pages for decoder in decoders]
            self._counts.append((part.leaf, chosen, length, ranges, dictionaries))

    def _tasks(
        self,
        part: Part,
        buffers: Sequence[memoryview],
        chosen: Sequence[Place],
        ranges: rows.RowRanges,
    ) -> list[PageTask]:
        """The work of the core for one leaf: one task, or several segments."""
        context, leaf = self._context, part.leaf
        codecs = [self._file.chunk(one.number, leaf).codec for one in chosen]
        if len(set(codecs)) > 1:
            raise _UnfitError
        settings = context.codec_settings.get(codecs[0]) or context.settings_of(
            codecs[0], self._file
        )
        sizes = [data.nbytes for data in buffers]
        stops = [len(chosen)]
        if context.report.chunks is not None:  # it wants to know of each chunk by itself
            stops = list(range(1, len(chosen) + 1))
        elif (n := min(count_segments(sum(sizes), context.threads), len(chosen))) > 1:
            stops = stops_of(sizes, n)
        tasks: list[PageTask] = []
        start = 0
        for stop in stops:
            some = chosen[start:stop]
            first, last = some[0], some[-1]
            mine = ranges
            if len(stops) > 1:
                mine = ranges.slice(first.first, last.first + last.num_rows)
            nbytes = sum(sizes[start:stop])
            decoder = core.LeafDecoder(
                part.leaf_type.core,
                leaf.max_def,
                leaf.max_rep,
                MOST_OUTPUT,
                likely_rows=likely_rows(nbytes),
                max_values=_ANY,
                codec_settings=settings,
            )
            pages = [
                (data, one.first, one.num_rows)
                for data, one in zip(buffers[start:stop], some, strict=True)
            ]
            hint = 0
            if part.leaf_type.kind in BYTES_KINDS:
                hint = self._hint(leaf, some, mine.num_rows, nbytes)
            tasks.append((decoder, pages, mine.buffers, hint, None, True))
            start = stop
        return tasks

    def _hint(self, leaf: Leaf, places: Sequence[Place], chosen: int, fetched: int) -> int:
        """About the bytes of strings in the chosen rows."""
        size = num_rows = 0
        for one in places:
            size += max(self._file.chunk(one.number, leaf).total_uncompressed_size, 0)
            num_rows += one.num_rows
        return min(size * chosen // max(num_rows, 1), MAX_RATIO * fetched)

    def count(self, report: Report) -> None:
        """Count what was read. Each chunk has one page."""
        file = self._file
        for leaf, places, nbytes, ranges, dictionaries in self._counts:
            if report.chunks is None:
                counts = report.chunk(file.name, places[0].number, leaf.name, len(places))
                counts.bytes += nbytes
                counts.pages_read += len(places)
                counts.rows_decoded += ranges.num_rows
                counts.dictionary_pages += sum(dictionaries)
                continue
            for one, found in zip(places, dictionaries, strict=True):
                _, start, stop = file.placed_chunk(one.number, leaf)
                offsets = file.offset_indexes.get((one.number, leaf.index))
                counts = report.chunk(
                    file.name, one.number, leaf.name, None if offsets is None else 1
                )
                counts.bytes += stop - start
                counts.pages_total += offsets is None
                counts.pages_read += 1
                counts.rows_decoded += ranges.slice(one.first, one.first + one.num_rows).num_rows
                counts.dictionary_pages += found

    def fetch_ahead(self, wanted: Sequence[Sequence[Part]], ranges: rows.RowRanges) -> Steps[None]:
        """Nothing is fetched ahead of a local file."""
        yield from ()
