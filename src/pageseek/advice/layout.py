"""Where the pages lie that a filter may need: the row groups that planning left, with their pages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pageseek._core import rows
from pageseek.base.errors import PageseekError, UnsupportedError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.chunks import CODECS, declared_pages, has_codes_only, may_have_dictionary
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_headers import WINDOW, likely_pages, walk, walking_bytes
from pageseek.format.schema import Leaf
from pageseek.io.fetch import Fetcher
from pageseek.io.range_requests import answered
from pageseek.predicate.expression import Expression
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.requests.binding import BoundRequests
from pageseek.scanning.requests.plan import FilePlan
from pageseek.storage.store import request_bytes, wait_bytes

I64 = npt.NDArray[np.int64]
MOST_FILES = 64  # files whose pages are looked at; of more, some that lie far apart stand for all
MOST_GROUPS = 1024  # row groups, in the same way
MOST_ROWS = 1 << 25  # rows of these together
MOST_GROUP_ROWS = 1 << 28  # rows of one of them
PAGE_BYTES = 8  # the least that a page takes with its header


@dataclass(slots=True)
class ChunkPages:
    """The pages of a column chunk.

    Attributes
    ----------
    starts : int64 array
        The first row of each page, and the rows of the row group.
    offsets, sizes : int64 array
        Bytes of the file.
    dictionary : int
        Bytes before the first data page.
    coded : int
        The first data pages that need the dictionary.
    all_coded : bool
        The footer says that all do.
    indexed, findable : bool
        The file has an offset index; without one, a scan may find the pages by their headers.
    index_bytes : (int, int)
        Bytes of the column index, and of the offset index.
    placed : bool
        It is known where its pages lie, by an index or by their headers; else they are taken to have equal sizes.
    planned : bool
        Planning knew that, so that single pages are read to test them.
    walk_bytes : int
        Bytes of page headers that a scan reads to find the pages.
    """

    leaf: Leaf
    starts: I64
    offsets: I64
    sizes: I64
    start: int
    stop: int
    dictionary: int
    coded: int
    all_coded: bool
    indexed: bool
    findable: bool
    placed: bool
    planned: bool
    index_bytes: tuple[int, int] = (0, 0)
    walk_bytes: int = 0
    values_bytes: int = 0  # decompressed
    codec: str = ""

    @property
    def num_pages(self) -> int:
        return len(self.sizes)

    @property
    def num_rows(self) -> int:
        return int(self.starts[-1])

    def touched(self, wanted: rows.RowRanges) -> I64:
        """The numbers of the pages that hold some of these rows."""
        if not wanted:
            return np.zeros(0, np.int64)
        verdict = rows.pages_touched(wanted, self.starts.tobytes())
        return np.flatnonzero(np.frombuffer(verdict, np.uint8)).astype(np.int64)

    def places(
        self, wanted: rows.RowRanges, far: bool, known: bool
    ) -> tuple[list[tuple[int, int]], int]:
        """The (offset, length) of what these rows need, as the reader fetches it, and the number of pages. `known`: it knows
        where pages lie.
        """
        if not wanted:
            return [], 0
        if not known:
            return [(self.start, self.stop - self.start)], self.num_pages
        pages = self.touched(wanted)
        if len(pages) == self.num_pages:
            return [(self.start, self.stop - self.start)], self.num_pages
        found = list(zip(self.offsets[pages].tolist(), self.sizes[pages].tolist(), strict=True))
        # from a store the dictionary comes with the pages; locally only if one of them needs it
        if self.dictionary and (far or self.all_coded or pages[0] < self.coded):
            found.insert(0, (self.start, self.dictionary))
        return found, len(pages)

    def with_pages(self, page_rows: int) -> ChunkPages:
        """The chunk as it would be with pages of so many rows, found by a page index."""
        n = self.num_rows
        starts = np.append(np.arange(0, max(n, 1), page_rows, dtype=np.int64), n)
        each = (self.stop - self.start - self.dictionary) / max(n, 1)
        ends = (self.start + self.dictionary + starts * each).astype(np.int64)
        coded = int(np.ceil(len(starts[1:]) * self.coded / max(self.num_pages, 1)))
        pages = len(starts) - 1
        return replace(
            self, starts=starts, offsets=ends[:-1], sizes=np.diff(ends), coded=coded, indexed=True, findable=True,
            placed=True, planned=True, index_bytes=likely_index_bytes(pages, self.leaf), walk_bytes=0,
        )  # fmt: skip

    def scaled(self, pages: float, dictionary: float) -> ChunkPages:
        """The chunk with these shares of the bytes of its pages and of its dictionary."""
        sizes = (self.sizes * pages).astype(np.int64)
        dictionary = round(self.dictionary * dictionary)
        ends = self.start + dictionary + np.cumsum(np.append(0, sizes))
        return replace(
            self, sizes=sizes, offsets=ends[:-1], stop=int(ends[-1]), dictionary=dictionary
        )

    def with_index(self) -> ChunkPages:
        """The chunk with a page index."""
        if self.indexed:
            return self
        pages = likely_index_bytes(self.num_pages, self.leaf)
        return replace(
            self, indexed=True, findable=True, planned=True, index_bytes=pages, walk_bytes=0
        )


def likely_index_bytes(pages: int, leaf: Leaf) -> tuple[int, int]:
    """About the bytes of a ColumnIndex and of an OffsetIndex; bounds of texts take more than those of numbers."""
    bound = 24 if leaf.element.type in (6, 7) else 9
    return pages * (2 * bound + 3) + 20, pages * 9 + 10


@dataclass(slots=True)
class Group:
    """A row group that planning left.

    Attributes
    ----------
    ranges, sure : RowRanges
        Rows that may pass the filter, and rows that are known to pass.
    conditions : list of list of int
        The leaves that each condition of the filter reads.
    payload : list of int
        The leaves of the result.
    """

    file: int
    row_group: int
    num_rows: int
    ranges: rows.RowRanges
    sure: rows.RowRanges
    leaves: dict[int, ChunkPages]
    conditions: list[list[int]]
    payload: list[int]


@dataclass(slots=True)
class Layout:
    """The row groups that planning left, or some of many.

    Attributes
    ----------
    share : float
        The part of the planned row groups that `groups` are.
    gap, wait : int
        Latency x bandwidth of the store, in bytes; `wait` is 0 where a wave costs next to nothing.
    """

    files: list[FilePlan] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    share: float = 1.0
    far: bool = False
    gap: int = 0
    wait: int = 0

    @property
    def num_rows(self) -> int:
        """Rows that may pass the filter."""
        return sum(group.ranges.num_rows for group in self.groups)


def spread(n: int, most: int) -> list[int]:
    """Numbers below `n`, at most so many, that lie evenly."""
    if n <= most:
        return list(range(n))
    return [int((i + 0.5) * n / most) for i in range(most)]


def layout_of(plan: ScanPlan, conditions: Sequence[Expression], report: Report) -> Layout:
    """The pages of what a plan reads. Of files and row groups that are many, some stand for all.

    `conditions`: the filter, in the parts that are joined by AND. `report`: counts what is read.
    """
    request = plan.request
    binders = [
        BoundRequests(replace(request, filter=one, columns=(), row_number=None))
        for one in conditions
    ]
    payload = BoundRequests(replace(request, filter=None, row_number=None))
    made = Layout()
    total = sum(len(one.groups) for one in plan.files)
    chosen = [plan.files[i] for i in spread(len(plan.files), MOST_FILES)]
    most = max(MOST_GROUPS // max(len(chosen), 1), 1)
    for one in chosen:
        if not one.groups:
            continue
        file = cache.open(one.source, report)
        made.far |= one.source.far
        made.gap = max(made.gap, int(request_bytes(file.store)))
        made.wait = max(made.wait, wait_bytes(file.store))
        number = len(made.files)
        made.files.append(one)
        tested = [binder.of(file, one.source).leaves.required(file) for binder in binders]
        wanted = payload.of(file, one.source).leaves.required(file)
        for i in spread(len(one.groups), most):
            plan_of_group = one.groups[i]
            group = plan_of_group.row_group
            if file.group_rows[group] > MOST_GROUP_ROWS:
                raise UnsupportedError(
                    f"{file.name}: row group {group} has {file.group_rows[group]:,} rows, more than the {MOST_GROUP_ROWS:,} "
                    "that advise estimates with; rewrite the file with smaller ones (row_group_rows=...)"
                )
            needed = [leaves(group) for leaves in tested]
            given = wanted(group)
            every = {
                leaf.index: leaf for leaf in [*given, *[leaf for some in needed for leaf in some]]
            }
            chunks = _chunks(file, group, list(every.values()), report)
            sure = plan_of_group.ranges if plan_of_group.fully_matched else plan_of_group.matching
            made.groups.append(
                Group(
                    number, group, file.group_rows[group], plan_of_group.ranges, sure, chunks,
                    [[leaf.index for leaf in some] for some in needed], [leaf.index for leaf in given],
                )
            )  # fmt: skip
    rows_of_all = sum(group.num_rows for group in made.groups)
    if rows_of_all > MOST_ROWS:
        fewer = spread(len(made.groups), len(made.groups) * MOST_ROWS // rows_of_all or 1)
        made.groups = [made.groups[i] for i in fewer]
    made.share = len(made.groups) / total if total else 1.0
    return made


def find_pages(layout: Layout, group: Group, leaf: int, report: Report) -> bool:
    """Find the pages of a chunk without an offset index by their headers; whether they were found."""
    chunk, one = group.leaves[leaf], layout.files[group.file]
    file = cache.open(one.source, report)
    with suppress(PageseekError):
        fetcher = Fetcher(file.store, report, file.tail)
        answered(
            walk(file, group.row_group, chunk.leaf, False),
            lambda wanted: fetcher.read(wanted, "index"),
        )
    made = _chunks(file, group.row_group, [chunk.leaf], report)[leaf]
    offsets = file.offset_indexes.get((group.row_group, leaf))
    if offsets is None:
        return False
    group.leaves[leaf] = replace(made, planned=chunk.planned)
    return True


def _chunks(
    file: FileMetadata, group: int, leaves: Sequence[Leaf], report: Report
) -> dict[int, ChunkPages]:
    """The pages of chunks of a row group, by leaf number. Offset indexes that are not in memory are read."""
    unread = [leaf for leaf in leaves if (group, leaf.index) not in file.offset_indexes]
    places = {leaf.index: at for leaf in unread if (at := file.index_range("offset", group, leaf))}
    if places:
        found = Fetcher(file.store, report, file.tail).read(list(places.values()), "index")
        data = dict(zip(places, found, strict=True))
        there = [leaf for leaf in unread if leaf.index in data]
        file.load_offset_indexes(group, there, [data[leaf.index] for leaf in there], report)
    return {leaf.index: _pages(file, group, leaf) for leaf in leaves}


def _pages(file: FileMetadata, group: int, leaf: Leaf) -> ChunkPages:
    chunk, start, stop = file.placed_chunk(group, leaf)
    num_rows = file.group_rows[group]
    found = file.offset_indexes.get((group, leaf.index))
    declared = file.index_range("offset", group, leaf)
    walked = found is not None and (declared is None or file.was_walked(group, leaf))
    if found is not None:
        starts, offsets, sizes = found.first_row, found.offset, found.compressed_size
        dictionary, pages = max(found.start - start, 0), found.num_pages
    else:
        most = max((stop - start) // PAGE_BYTES, 1)
        pages = min(declared_pages(chunk) or max(round(likely_pages(chunk)), 1), most)
        dictionary = max(chunk.data_page_offset - start, 0)
        starts = np.linspace(0, num_rows, pages + 1).astype(np.int64)
        ends = np.linspace(start + dictionary, stop, pages + 1).astype(np.int64)
        offsets, sizes = ends[:-1], np.diff(ends)
    coded = pages if may_have_dictionary(chunk) else 0
    if chunk.encoding_stats == 1:
        coded = int(chunk.dictionary_data_pages)
    columns = file.index_range("column", group, leaf)
    findable = found is not None or walking_bytes(file, group, leaf, 1.0) is not None
    return ChunkPages(
        leaf, starts, offsets, sizes, start, stop, dictionary, coded,
        has_codes_only(chunk),
        found is not None and not walked, findable, found is not None, found is not None,
        (columns[1] if columns else 0, declared[1] if declared else 0),
        pages * WINDOW if walked or (found is None and findable) else 0,
        max(int(chunk.total_uncompressed_size), 0), CODECS[chunk.codec] if 0 <= chunk.codec < len(CODECS) else "",
    )  # fmt: skip
