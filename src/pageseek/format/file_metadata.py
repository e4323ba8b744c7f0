"""One file with its page index. Both are parsed as they are needed, and kept.

Sources: parquet.thrift (ColumnIndex, OffsetIndex), PageIndex.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pageseek._core import metadata as core
from pageseek.base.errors import CoreError
from pageseek.base.limits import DEFAULT
from pageseek.base.report import Report
from pageseek.format.bounds import Bounds
from pageseek.format.chunks import chunk_range, may_have_dictionary
from pageseek.format.file_attached import AttachedFile
from pageseek.format.page_index import (
    ColumnIndex,
    OffsetIndex,
    parse_column_index,
    parse_offset_indexes,
)
from pageseek.format.schema import Leaf
from pageseek.format.statistics import declared_bounds
from pageseek.format.types import ABSENT, L_UNKNOWN, Options, logical_of
from pageseek.io.fetch import Fetcher
from pageseek.storage import Source, Store

NO_LEAVES: frozenset[int] = frozenset()


class FileMetadata(AttachedFile):
    """One file of one version, with all its metadata.

    `column_index(row_group, leaf)` and `offset_index(row_group, leaf)` give the page index. Safe to share between threads.

    Attributes
    ----------
    offset_indexes, column_indexes : dict
        The indexes that were read, by row group and leaf number, those of columns by Options too. None stands for one that the
        file has not, or that cannot be used. Only this class changes them.
    dropped : dict
        The leaves of a row group whose page index was dropped, if there are some.
    """

    def __init__(
        self,
        source: Source,
        store: Store,
        report: Report | None = None,
        max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
        tail: bytes | memoryview | None = None,
    ) -> None:
        """`tail`: the last bytes of this version, if they are in memory."""
        super().__init__(source, store, report, max_metadata_bytes, tail)
        self.column_indexes: dict[tuple[int, int, Options], ColumnIndex | None] = {}
        self._walked: dict[tuple[int, int], tuple[OffsetIndex, memoryview, bytes] | None] = {}
        self._header_indexes: dict[tuple[int, int, Options], ColumnIndex | None] = {}
        self.offset_indexes: dict[tuple[int, int], OffsetIndex | None] = {}
        self.dropped: dict[int, frozenset[int]] = {}

    # -- page index -----------------------------------------------------------------------------

    def index_range(
        self, which: str, row_group: int, leaf: Leaf, report: Report | None = None
    ) -> tuple[int, int] | None:
        """The (offset, length) of the "column" or "offset" index of a chunk. None if the chunk has none, or if the place is
        impossible, which the `report` notes.
        """
        chunk = self._chunks.get((row_group, leaf.index)) or self._chunk(row_group, leaf)
        if chunk.crypto != ABSENT:
            return None
        if which == "column":
            offset, length = chunk.column_index_offset, chunk.column_index_length
        else:
            offset, length = chunk.offset_index_offset, chunk.offset_index_length
        if offset in (ABSENT, 0) or length in (ABSENT, 0):  # some writers put zeros for none
            return None
        if (
            offset < 4
            or length < 0
            or length > self.max_metadata_bytes
            or offset + length > self.store.size - 8
        ):
            if report is not None:
                why = f"{length} bytes at byte {offset} have no room in the file"
                if length > self.max_metadata_bytes:
                    why = f"its {length} bytes are more than max_metadata_bytes"
                self._ignored(which, row_group, leaf, why, report)
            return None
        return offset, length

    def drop_index(self, row_group: int, leaf: Leaf) -> None:
        """Forget the page index of a chunk for good: its pages have shown it to be wrong."""
        self.offset_indexes[row_group, leaf.index] = None
        if self.was_walked(row_group, leaf):
            self._walked[row_group, leaf.index] = None
        for key in [k for k in list(self.column_indexes) if k[:2] == (row_group, leaf.index)]:
            self.column_indexes[key] = None
        self.dropped[row_group] = self.dropped.get(row_group, NO_LEAVES) | {leaf.index}

    def load_offset_indexes(
        self,
        row_group: int,
        leaves: Sequence[Leaf],
        data: Sequence[memoryview | None],
        report: Report,
    ) -> None:
        """Parse, check and keep offset indexes. An index that cannot be trusted is kept as None, with a note."""
        known, size = self.offset_indexes, self.store.size
        wanted: list[tuple[memoryview, int, int]] = []
        places: list[tuple[Leaf, Any]] = []
        for leaf, part in zip(leaves, data, strict=True):
            if part is None:
                known.setdefault((row_group, leaf.index))  # page headers may have replaced it
                continue
            placed = self._checked.get((row_group, leaf.index))
            if placed is None:
                chunk = self._chunk(row_group, leaf)
                placed = chunk, *chunk_range(chunk)
            chunk, start, stop = placed
            if 0 <= start <= stop <= size:
                wanted.append((part, start, stop))
                places.append((leaf, chunk))
            else:
                known[row_group, leaf.index] = None
                self._ignored("offset", row_group, leaf, "its chunk lies outside the file", report)
        for part, _, _ in wanted:
            self._parsed += 2 * part.nbytes
        states = core.sums(wanted)
        made = parse_offset_indexes(wanted, self.group_rows[row_group], self.max_metadata_bytes)
        for (leaf, chunk), (_, start, _), state, found in zip(
            places, wanted, states, made, strict=True
        ):
            why = None
            if state == core.SUM_DIFFERS or (state == core.SUM_NONE and self._summed is not None):
                why = self.why_altered(state, chunk.offset_index_offset)
            if isinstance(found, CoreError):
                why, found = why or found.message, None
            elif found is not None and found.start > start and not may_have_dictionary(chunk):
                why = why or "its first page is not the first of the chunk"
            if why is not None:
                self._ignored("offset", row_group, leaf, why, report)
                found = None
            known[row_group, leaf.index] = found

    def adopt_pages(
        self, row_group: int, leaf: Leaf, found: tuple[OffsetIndex, memoryview, bytes] | None
    ) -> None:
        """Keep the page headers of a chunk in place of its missing page index. None: they could not be used.

        `found`: where the pages are, the bytes of the headers, and a record a page for `declared_bounds`, with places of
        bounds in these bytes.
        """
        if leaf.index in self.dropped.get(
            row_group, NO_LEAVES
        ):  # another scan found the headers wrong
            found = None
        self._walked[row_group, leaf.index] = found
        if found is not None:
            self._parsed += found[1].nbytes + len(found[2])
            self.offset_indexes[row_group, leaf.index] = found[0]

    def was_walked(self, row_group: int, leaf: Leaf) -> bool:
        """Whether the page headers of a chunk were read."""
        return (row_group, leaf.index) in self._walked

    def header_index(self, row_group: int, leaf: Leaf, options: Options) -> ColumnIndex | None:
        """The statistics in the page headers of a chunk, if these were read."""
        walked = self._walked.get((row_group, leaf.index))
        if walked is None:
            return None
        key = row_group, leaf.index, options
        if key not in self._header_indexes:
            self._header_indexes[key] = self._of_headers(leaf, options, *walked)
        return self._header_indexes[key]

    def _of_headers(
        self, leaf: Leaf, options: Options, offsets: OffsetIndex, data: memoryview, records: bytes
    ) -> ColumnIndex | None:
        leaf_type = self.leaf_type(leaf, options)
        bounds, counts = self.usable_statistics(leaf)
        if not bounds or leaf_type.is_null or logical_of(leaf.element)[0] == L_UNKNOWN:
            return None
        found = declared_bounds(records, data, leaf, leaf_type, self._orders, self.writer)
        if found is None:
            return None
        places, nulls, nans = found
        n, nulls_known = offsets.num_pages, nulls if counts else None
        rows_in = np.diff(offsets.first_row).tobytes()
        limit = self.max_metadata_bytes
        made = Bounds(leaf_type, data, places, n, None, nulls_known, nans, rows_in, 0, limit)
        return ColumnIndex(n, bytes(n), nulls_known, nans, made)

    def _ignored(self, which: str, row_group: int, leaf: Leaf, why: str, report: Report) -> None:
        where = f"{self.name}: {leaf.name!r}, row group {row_group}"
        self.ignore_index(row_group, leaf, f"{where}: {which} index ignored: {why}", report)

    def load_column_index(
        self, row_group: int, leaf: Leaf, options: Options, data: memoryview | None, report: Report
    ) -> ColumnIndex | None:
        """Parse, check and keep a column index; None, with a note, if it cannot be trusted.

        The offset index of the chunk must have been loaded: a column index without one proves nothing.
        """
        found = None
        offsets = self.offset_indexes.get((row_group, leaf.index))
        bounds, counts = self.usable_statistics(leaf)
        known = bounds and logical_of(leaf.element)[0] != L_UNKNOWN
        if data is not None and offsets is not None and known:
            self._parsed += 3 * data.nbytes  # the bytes, and what is made of them
            chunk = self._chunk(row_group, leaf)
            (state,) = core.sums([(data, *chunk_range(chunk))])
            why = self.why_altered(state, chunk.column_index_offset)
            try:
                if why is None:
                    found = parse_column_index(
                        data,
                        leaf,
                        self.leaf_type(leaf, options),
                        self._orders,
                        offsets,
                        self.max_metadata_bytes,
                        counts,
                    )
            except CoreError as error:
                why = error.message
            if found is not None:
                why = self._contradicted(row_group, leaf, options, found, counts)
                if why is not None:
                    found = None
            if why is not None:
                self._ignored("column", row_group, leaf, why, report)
        self.column_indexes[row_group, leaf.index, options] = found
        return found

    def _contradicted(
        self, row_group: int, leaf: Leaf, options: Options, index: ColumnIndex, counts: bool
    ) -> str | None:
        """Why a column index cannot be that of its chunk: the statistics of the chunk contradict it. None: they do not."""
        pages = index.null_counts if counts and leaf.max_def and not leaf.max_rep else None
        told = None if pages is None else self.null_count(row_group, leaf)
        if pages is not None and told is not None and (counted := int(pages.sum())) != told:
            return f"its pages have {counted} nulls, and by its statistics the chunk has {told}"
        zones = self.group_zones(leaf, options)
        page = None if zones is None else index.zones.out_of_bounds(zones, row_group)
        if page is None:
            return None
        return f"the bounds of page {page} lie outside of those that the chunk's statistics have"

    def offset_index(self, row_group: int, leaf: Leaf | str) -> OffsetIndex | None:
        """Where the pages of a column chunk are, or None (parquet.thrift, OffsetIndex). IndexError: no such chunk."""
        self._check_row_group(row_group)
        leaf = self._resolve(leaf)
        if (row_group, leaf.index) not in self.offset_indexes:
            self.read_page_indexes(row_group, [leaf], [], Options())
        return self.offset_indexes[row_group, leaf.index]

    def _check_row_group(self, row_group: int) -> None:
        if not 0 <= row_group < self.num_row_groups:
            raise IndexError(
                f"{self.name}: no row group {row_group}; there are {self.num_row_groups}"
            )

    def read_page_indexes(
        self, row_group: int, leaves: Sequence[Leaf], bounded: Sequence[Leaf], options: Options
    ) -> None:
        """Read what is not in memory, together: the offset indexes of leaves, and the column indexes of some of them."""
        known = self.column_indexes
        offsets = [leaf for leaf in leaves if (row_group, leaf.index) not in self.offset_indexes]
        bounds = [leaf for leaf in bounded if (row_group, leaf.index, options) not in known]
        if not offsets and not bounds:
            return
        report = Report()
        offsets, bounds = list(dict.fromkeys(offsets)), list(dict.fromkeys(bounds))
        places = [self.index_range("offset", row_group, leaf) for leaf in offsets]
        places += [self.index_range("column", row_group, leaf) for leaf in bounds]
        wanted = [place for place in places if place]
        fetched = iter(Fetcher(self.store, report, self._tail).read(wanted, "index"))
        data = [next(fetched) if place else None for place in places]
        n = len(offsets)
        if offsets:
            self.load_offset_indexes(row_group, offsets, data[:n], report)
        for leaf, part in zip(bounds, data[n:], strict=True):
            self.load_column_index(row_group, leaf, options, part, report)

    def column_index(self, row_group: int, leaf: Leaf | str) -> ColumnIndex | None:
        """Bounds and null counts of the pages of a chunk, or None (parquet.thrift, ColumnIndex). IndexError: no such chunk."""
        leaf, options = self._resolve(leaf), Options()
        if (row_group, leaf.index, options) not in self.column_indexes:
            self._check_row_group(row_group)
            self.read_page_indexes(row_group, [leaf], [leaf], options)
        return self.column_indexes[row_group, leaf.index, options]
