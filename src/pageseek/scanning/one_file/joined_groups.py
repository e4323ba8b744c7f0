"""Reads small row groups as one (group_joints.py says which).

Their rows are counted
from the first row of the first of them. The core decodes the chunks of a column one after the other into one array. A filter is
evaluated for all of them at once. If it leaves few rows, the pages of further columns that each row group needs are read, all together. What
fails here is read again row group by row group, which names the place; so is what becomes much larger than the footer lets expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek._core.codecs import CodecSettings
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.chunks import declared_pages, has_codes_only
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import BYTES_KINDS, passing_form, to_arrow
from pageseek.io.range_requests import DecodePages, PageTask
from pageseek.predicate.bound import Bound
from pageseek.predicate.masks import Bitmap
from pageseek.predicate.masks import joined as joined_masks
from pageseek.predicate.row_tests import row_tests, rows_that_pass
from pageseek.scanning.leaves.entry_tests import entry_tests
from pageseek.scanning.leaves.leaf_places import pages_wanted
from pageseek.scanning.leaves.leaf_reader import CODED_KINDS, LeafReader
from pageseek.scanning.leaves.output_size import MAX_RATIO, likely_cost, likely_rows
from pageseek.scanning.leaves.page_batch import decode, fetch, reserve
from pageseek.scanning.leaves.segments import count_segments, stops_of
from pageseek.scanning.one_file.file_scan import FileScan, Rows
from pageseek.scanning.one_file.group_filter import GroupFilter
from pageseek.scanning.one_file.group_joints import MOST_BYTES
from pageseek.scanning.one_file.group_reader import GroupReader
from pageseek.scanning.requests.accounting import count_kept
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.condition_order import few_blocks
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.steps import IndexMismatch, Read, ScanContext, Steps

MOST_OUTPUT = MOST_BYTES  # of each buffer: later codes may stand for far more than those before
# with more rows, numbers are tested by the codes of a dictionary, whose entries are evaluated in Python
CODE_TEST_ROWS = 1 << 13
_ANY = 1 << 62  # values of a page: those of a flat leaf are as many as its rows


class _UnfitError(Exception):
    """The core did not decode a column of the joined row groups."""


class Place(NamedTuple):
    """A row group among the joined ones: its number, its first row there, its rows."""

    number: int
    first: int
    num_rows: int

    def of(self, ranges: rows.RowRanges) -> rows.RowRanges:
        """Those of some rows that lie in the row group, counted from its own first row."""
        return ranges.slice(self.first, self.first + self.num_rows).shift(-self.first)


def read_joined(
    scan: FileScan, groups: Sequence[GroupPlan], context: ScanContext
) -> Steps[Rows | None]:
    """The rows of joined row groups that pass, counted from the first row of the first one, and the arrays of each column.

    None if they have to be read one by one.
    """
    file, bound_request, report = scan.file, scan.bound_request, context.report
    use = bound_request.leaves
    context.row_groups = len(scan.plan.groups)
    reader = JoinedReader(file, groups, bound_request, context)
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
    except (_UnfitError, IndexMismatch, PageseekError, CoreError, pa.ArrowException):
        return None
    if any(group.row_group in file.dropped for group in groups):  # by another scan, meanwhile
        return None
    return Rows(ranges, arrays, count_read=partial(_count, scan, groups, reader, report))


def _count(
    scan: FileScan, groups: Sequence[GroupPlan], reader: JoinedReader, report: Report
) -> None:
    """Count joined row groups that were read."""
    file = scan.file
    reader.count(report)
    for group in groups:
        if scan.joined is None:
            count_kept(file, scan.bound_request, group, report)
        num_rows = file.group_rows[group.row_group]
        report.done(*file.key_of(group.row_group), group.ranges.num_rows, num_rows)


class _Fetched(NamedTuple):
    """The chunks of a leaf in joined row groups, in their order: the first record, what the footer says, and the bytes."""

    leaf: Leaf
    first: Any
    sizes: list[int]
    unpacked: list[int]
    codecs: set[int]
    buffers: list[memoryview]

    def hint(self, start: int, stop: int, num_rows: int, chosen: int) -> int:
        """About the bytes of strings in the chosen ones of so many rows, of the chunks from `start` to `stop`."""
        size = sum([max(one, 0) for one in self.unpacked[start:stop]])
        return min(size * chosen // max(num_rows, 1), MAX_RATIO * sum(self.sizes[start:stop]))


class _Decoded(NamedTuple):
    """What was decoded of a leaf, as reports count it.

    `told`: the records of the chunks, by whose numbers of data pages each is counted where several have one decoder.
    """

    leaf: Leaf
    places: Sequence[Place]
    chunks: _Fetched
    ranges: rows.RowRanges
    decoders: list[Any]
    told: list[Any] | None

    @property
    def is_as_told(self) -> bool:
        """Whether the decoders have seen the pages that the footer tells."""
        if self.told is None:
            return True
        pages, dictionaries = sum(map(_pages, self.told)), sum(map(_has_codes, self.told))
        return (pages, dictionaries) == (
            sum([decoder.pages_read for decoder in self.decoders]),
            sum([decoder.dictionary_pages for decoder in self.decoders]),
        )


def _pages(chunk: Any) -> int:
    """The data pages of a chunk, by a footer that counts them."""
    return declared_pages(chunk) or 0


def _has_codes(chunk: Any) -> bool:
    """Whether data pages have codes of a dictionary, by a footer that counts pages."""
    return bool(chunk.dictionary_data_pages)


class JoinedReader(GroupReader):
    """Reads leaves of joined row groups.

    Attributes
    ----------
    ranges : RowRanges
        The rows to read.
    num_rows : int
        Rows from the first row of the first row group to the last row of the last one.
    """

    __slots__ = (
        "_apart",
        "_bound_request",
        "_counts",
        "_places",
        "_planned_rows",
        "_undecoded",
        "num_rows",
        "ranges",
    )

    def __init__(
        self,
        file: FileMetadata,
        groups: Sequence[GroupPlan],
        bound_request: BoundRequest,
        context: ScanContext,
    ) -> None:
        super().__init__(file, groups[0].row_group, bound_request.leaves, context)
        self._bound_request = bound_request
        base = file.first_row(groups[0].row_group)
        self._places: list[Place] = []
        self._planned_rows: list[int] = []  # of each row group
        for group in groups:
            number = group.row_group
            place = Place(number, file.first_row(number) - base, file.group_rows[number])
            self._places.append(place)
            self._planned_rows.append(group.ranges.num_rows)
        self.num_rows = place.first + place.num_rows
        if sum(self._planned_rows) == self.num_rows:
            self.ranges = rows.RowRanges.all(self.num_rows)
        else:
            pairs = [
                group.ranges.to_numpy() + place.first
                for group, place in zip(groups, self._places, strict=True)
            ]
            self.ranges = rows.RowRanges(np.concatenate(pairs))
        self._counts: list[_Decoded] = []
        self._undecoded: _Fetched | None = None
        self._apart: ScanContext | None = None  # of what is read by the pages of each row group

    def read(
        self, parts: Sequence[Part], ranges: rows.RowRanges, tested: bool = False
    ) -> Steps[None]:
        """Fetch and decode several leaves, as GroupReader does. Dictionary codes are never kept, as each row group has its own."""
        if not parts:
            return
        chosen = self._chosen(ranges)
        if ranges is self.ranges or self._want_all_pages(parts, chosen, ranges, tested):
            yield from self._read_chunks(parts, chosen, ranges)
        else:
            yield from self._read_apart(parts, chosen, ranges, tested)

    def read_passing(
        self, part: Part, condition: Bound, ranges: rows.RowRanges, keeps: bool
    ) -> Steps[tuple[Bitmap, int] | None]:
        """As GroupReader has it, where the row groups are not read one by one."""
        tests = row_tests(condition, part.leaf_type, ranges.num_rows, keeps)
        if tests is None:
            return None
        chosen = self._chosen(ranges)
        if ranges is not self.ranges and not self._want_all_pages([part], chosen, ranges, True):
            return None
        decoders = yield from self._read_chunks([part], chosen, ranges, tests)
        return rows_that_pass(decoders)

    def _chosen(self, ranges: rows.RowRanges) -> list[Place]:
        """The row groups that have some of the rows."""
        if ranges is self.ranges:
            return self._places
        return [one for one in self._places if ranges.meets(one.first, one.first + one.num_rows)]

    def _read_chunks(
        self,
        parts: Sequence[Part],
        chosen: Sequence[Place],
        ranges: rows.RowRanges,
        tests: rows.RowTests | None = None,
    ) -> Steps[list[core.LeafDecoder]]:
        """Fetch and decode whole chunks of several leaves. Returns what decoded them. `tests`: of the one leaf."""
        size, fetched = yield from self._fetch_chunks(parts, chosen)
        tasks: list[PageTask] = []
        ends, told = [], []
        for part, chunks in zip(parts, fetched, strict=True):
            told.append(self._told(chunks, chosen, ranges))
            tasks += self._tasks(part, chunks, chosen, ranges, told[-1], tests=tests)
            ends.append(len(tasks))
        made = yield DecodePages(tasks, size)
        at = 0
        for part, chunks, pages, end in zip(parts, fetched, told, ends, strict=True):
            some, decoders = made[at:end], [task[0] for task in tasks[at:end]]
            at = end
            if not all(isinstance(one, tuple) for one in some):
                raise _UnfitError
            arrays = [to_arrow(part.leaf_type, *one) for one in some]
            self.decoded.put(part.leaf, part.leaf_type, arrays, None, None, ranges.num_rows)
            self._decoded(_Decoded(part.leaf, chosen, chunks, ranges, decoders, pages))
        return [task[0] for task in tasks]

    def _decoded(self, one: _Decoded) -> None:
        """Keep what was decoded for `count`."""
        if not one.is_as_told:
            raise _UnfitError
        self._counts.append(one)

    def _told(
        self, chunks: _Fetched, chosen: Sequence[Place], ranges: rows.RowRanges
    ) -> list[Any] | None:
        """The records of the chunks, where the report counts chunks by themselves and the footer tells the pages that are read."""
        if self._context.report.chunks is None:
            return None
        told = []
        for one in chosen:
            chunk = self._file.chunk(one.number, chunks.leaf)
            pages = declared_pages(chunk)
            if pages is None or (pages != 1 and ranges is not self.ranges):
                return None
            told.append(chunk)
        return told

    def _fetch_chunks(
        self, parts: Sequence[Part], chosen: Sequence[Place]
    ) -> Steps[tuple[int, list[_Fetched]]]:
        """Read the chunks of leaves. Returns the sum of their bytes, and what was read of each leaf."""
        held, self._undecoded = self._undecoded, None
        if (
            held is not None
            and len(parts) == 1
            and parts[0].leaf is held.leaf
            and len(held.sizes) == len(chosen)
        ):
            return sum(held.sizes), [held]
        file, leaves = self._file, [part.leaf for part in parts]
        placed = file.placed_chunks([one.number for one in chosen], leaves)
        size = memory = 0
        for sizes, unpacked in zip(placed.sizes, placed.unpacked, strict=True):
            size += sum(sizes)
            memory += sum([one for one in unpacked if one > 0])
        yield from reserve((), size, size + memory)
        buffers = yield Read(placed.ranges, "data")
        return size, [
            _Fetched(
                leaf, file.chunk(chosen[0].number, leaf), placed.sizes[i], placed.unpacked[i], placed.codecs[i],
                placed.cut(i, buffers),
            )
            for i, leaf in enumerate(leaves)
        ]  # fmt: skip

    def test_codes(
        self, part: Part, condition: Bound, ranges: rows.RowRanges
    ) -> Steps[tuple[Bitmap, int] | None]:
        """As GroupReader has it, where the footer says that all pages of long row groups have codes."""
        leaf_type, chosen = part.leaf_type, self._places
        if ranges is not self.ranges or leaf_type.is_null or leaf_type.kind in CODED_KINDS:
            return None
        for one in chosen:
            chunk = self._file.chunk(one.number, part.leaf)
            if not has_codes_only(chunk) or one.num_rows < CODE_TEST_ROWS:
                return None
        size, (chunks,) = yield from self._fetch_chunks([part], chosen)
        settings = self._settings(chunks)
        tests = entry_tests(part, chunks.buffers, ranges.num_rows, condition, settings)
        made: list[Any] = [None]
        if tests is not None:
            told = self._told(chunks, chosen, ranges)
            tasks = self._tasks(part, chunks, chosen, ranges, told, tests.passes)
            made = yield DecodePages(tasks, size)
        if tests is None or not all(isinstance(one, tuple) for one in made):
            self._undecoded = chunks  # which are decoded next
            return None
        decoders = [task[0] for task in tasks]
        self._decoded(_Decoded(part.leaf, chosen, chunks, ranges, decoders, told))
        return joined_masks([tests.mask(one) for one in made])

    def _want_all_pages(
        self, parts: Sequence[Part], chosen: Sequence[Place], ranges: rows.RowRanges, tested: bool
    ) -> bool:
        """Whether a row group that were read by itself would be read whole, too, in these leaves."""
        file = self._file
        for one in chosen:
            own: rows.RowRanges | None = None
            for part in parts:
                leaf = part.leaf
                if file.has_one_page(one.number, leaf):
                    continue
                offsets = file.offset_indexes.get((one.number, leaf.index))
                if offsets is not None and offsets.num_pages > 1:
                    starts = offsets.first_row + one.first  # a slice of the rows takes longer
                    if rows.pages_touched(ranges, starts).count(1) == offsets.num_pages:
                        continue
                if own is None:
                    own = one.of(ranges)
                    few = not tested and few_blocks(own, one.num_rows)
                if offsets is None:
                    if few:
                        return False
                elif pages_wanted(offsets, own, one.num_rows, False) is not None:
                    return False
        return True

    def _read_apart(
        self, parts: Sequence[Part], chosen: Sequence[Place], ranges: rows.RowRanges, tested: bool
    ) -> Steps[None]:
        """Read leaves of each row group by the pages that it needs, since these are not all. All are read together."""
        file, context = self._file, self._context
        if self._apart is None:  # if the joined read fails, all is read and counted again
            self._apart = context.counting(context.report.trial())
        readers: list[LeafReader] = []
        wanted: list[list[tuple[int, int]]] = []
        for one in chosen:
            own = one.of(ranges)
            if not tested:
                unknown = [
                    part.leaf
                    for part in parts
                    if (one.number, part.leaf.index) not in file.offset_indexes
                    and not file.has_one_page(one.number, part.leaf)
                ]
                if unknown:
                    from pageseek.scanning.leaves.late_offsets import load_late_offsets

                    yield from load_late_offsets(
                        file, self._bound_request, one.number, unknown, own, context
                    )
            for part in parts:
                reader = LeafReader(file, one.number, part, self._apart)
                readers.append(reader)
                wanted.append(reader.want(own))
        size = yield from fetch(readers, wanted)
        found = yield from decode(readers, size)
        for i, part in enumerate(parts):
            arrays = [array for some in found[i :: len(parts)] for array in some]
            self.decoded.put(part.leaf, part.leaf_type, arrays, None, None, ranges.num_rows)

    def _tasks(
        self,
        part: Part,
        chunks: _Fetched,
        chosen: Sequence[Place],
        ranges: rows.RowRanges,
        told: list[Any] | None,
        passes: list[bytes] | None = None,
        tests: rows.RowTests | None = None,
    ) -> list[PageTask]:
        """The work of the core for one leaf: one task, or several segments. `passes`: of each chunk the entries of its dictionary
        that pass a test, which become the result. `tests`: of its rows.
        """
        context, leaf = self._context, part.leaf
        settings = self._settings(chunks)
        form = part.leaf_type.core
        if passes is not None:
            form = passing_form(form)
        sizes, buffers = chunks.sizes, chunks.buffers
        stops = [len(chosen)]
        if context.report.chunks is not None and told is None:  # decoders count for each chunk
            stops = list(range(1, len(chosen) + 1))
        else:
            worth = count_segments(likely_cost(chunks.first, sum(sizes)), context.threads)
            n = min(worth, len(chosen))
            if n > 1:
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
                form,
                leaf.max_def,
                leaf.max_rep,
                MOST_OUTPUT,
                likely_rows=likely_rows(nbytes),
                max_values=_ANY,
                codec_settings=settings,
                passes=passes is not None,
                tests=tests,
            )
            pages = [
                (data, one.first, one.num_rows)
                for data, one in zip(buffers[start:stop], some, strict=True)
            ]
            hint = 0
            if passes is None and part.leaf_type.kind in BYTES_KINDS:
                hint = chunks.hint(start, stop, sum([one.num_rows for one in some]), mine.num_rows)
            known = None if passes is None else passes[start:stop]
            tasks.append((decoder, pages, mine.buffers, hint, known, True))
            start = stop
        return tasks

    def _settings(self, chunks: _Fetched) -> CodecSettings:
        if len(chunks.codecs) > 1:
            raise _UnfitError
        (codec,), context = chunks.codecs, self._context
        return context.codec_settings.get(codec) or context.settings_of(codec, self._file)

    def count(self, report: Report) -> None:
        """Count what was read."""
        file = self._file
        if self._apart is not None:
            report.take(self._apart.report)
        if report.chunks is not None:
            self._count_chunks(report)
            return
        for leaf, places, chunks, ranges, decoders, _ in self._counts:
            known, unknown = 0, False
            for one in places:
                offsets = file.offset_indexes.get((one.number, leaf.index))
                if offsets is not None:
                    known += offsets.num_pages
                else:
                    unknown = True
            counts = report.chunk(file.name, places[0].number, leaf.name, known)
            counts.bytes += sum(chunks.sizes)
            counts.rows_decoded += ranges.num_rows
            if unknown:
                seen = sum([decoder.pages_seen for decoder in decoders])
                counts.pages_total += max(seen - known, 0)
            for decoder in decoders:
                counts.pages_read += decoder.pages_read
                counts.dictionary_pages += decoder.dictionary_pages

    def _count_chunks(self, report: Report) -> None:
        """Count each chunk by itself."""
        file = self._file
        of_places = -1, self._planned_rows  # the rows that were read of each row group
        for leaf, places, chunks, ranges, decoders, told in self._counts:
            if ranges is not self.ranges and of_places[0] != id(ranges):
                of_places = id(ranges), [one.of(ranges).num_rows for one in places]
            num_rows = self._planned_rows if ranges is self.ranges else of_places[1]
            if told is None:
                pages = [(one.pages_seen, one.pages_read, one.dictionary_pages) for one in decoders]
            else:
                pages = [(_pages(one), _pages(one), int(_has_codes(one))) for one in told]
            for one, size, (seen, read, dictionary), n in zip(
                places, chunks.sizes, pages, num_rows, strict=True
            ):
                offsets = file.offset_indexes.get((one.number, leaf.index))
                num_pages = (
                    declared_pages(file.chunk(one.number, leaf))
                    if offsets is None
                    else offsets.num_pages
                )
                counts = report.chunk(*file.key_of(one.number), leaf.name, num_pages)
                counts.bytes += size
                counts.pages_total += seen if num_pages is None else 0
                counts.pages_read += read
                counts.rows_decoded += n
                counts.dictionary_pages += dictionary

    def fetch_ahead(self, wanted: Sequence[Sequence[Part]], ranges: rows.RowRanges) -> Steps[None]:
        """Nothing is fetched ahead of a local file."""
        yield from ()
