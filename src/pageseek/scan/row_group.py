"""A row group, from selection to Arrow: filter columns first, each on the survivors of the one before, then
the payload for the rows that passed.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import placed
from pageseek.format.columns import Column, Part, levels_of, part_of, presence_leaf
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.page_headers import walk, walking_bytes
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.coalesce import pays_ahead
from pageseek.io.range_requests import together
from pageseek.predicate.bound import (
    Bound,
    BoundLeaf,
    all_null,
    conjuncts,
    has_residual,
    leaves_of,
    null_tests,
)
from pageseek.scan.condition_order import Learned, blocks_of
from pageseek.scan.decoded_columns import DecodedColumns, Key
from pageseek.scan.leaf_places import places_wanted
from pageseek.scan.leaf_reader import LeafReader
from pageseek.scan.page_batch import decode_pages
from pageseek.scan.steps import Decode, Read, ScanContext, Steps, reads

_NO_ROWS = rows.RowRanges.empty()
RESIDUAL_WEIGHT = 8  # of a byte that is evaluated outside of the kernels, until it is measured
Held = tuple[int, memoryview]  # bytes of a file, and where they begin
FIRST_STEP = 1 << 14  # rows that are judged at first where a limit may be reached soon
CODED_ROWS = 4096  # from which the entries of a dictionary are worth being made


def _place(kept: Held) -> int:
    return kept[0]


class GroupScan:
    """Reads one row group of one file for one scan."""

    def __init__(
        self,
        file: FileMetadata,
        row_group: int,
        columns: Sequence[Column],
        context: ScanContext,
        options: Options,
        learned: Learned,
        indexed: bool = False,
        walked: bool = False,
        held: Sequence[Held] = (),
    ) -> None:
        """`learned`: of the filter, what the row groups before have shown. `indexed`: the page index may be used.
        `walked`: and, where there is none, what the headers of pages say. `held`: bytes that were fetched before, in
        the order of their places.
        """
        self._indexed, self._walked = indexed, walked
        self._learned = learned
        self._file = file
        self._options = options
        self._row_group = row_group
        self._columns = columns
        self._context = context
        self._report = context.report
        self._leaves = DecodedColumns(file.name, row_group)
        self._read_before: set[int] = set()  # leaves
        self._reuses = bool(held)  # bytes that were fetched before, or for a test
        # bytes of leaves that were tested and are payload, by their place
        self._kept: list[Held] = list(held)
        self._stepwise = False  # what was tested is let go of, and may be read again
        # leaves of which the filter asks for nulls alone, and those that are null wherever it is TRUE
        self._by_levels: dict[Key, Part] = {}
        self._all_null: set[Key] = set()

    def run(
        self,
        ranges: rows.RowRanges,
        bound: Bound | None,
        limit: int | None,
        sure: rows.RowRanges = _NO_ROWS,
    ) -> Steps[tuple[rows.RowRanges, list[list[pa.Array]]]]:
        """The selected rows that pass, and for each column its arrays of them; those that are `sure` to pass are not
        looked at, for which no leaf of the filter may be wanted itself.
        """
        if bound is not None:
            self._ask_levels(bound)
            with self._report.timed("filter"), placed(self._leaves.where()):
                if limit is not None and ranges.num_rows > max(FIRST_STEP, 4 * limit):
                    ranges = yield from self._first(ranges, bound, limit, sure)
                elif sure:
                    ranges = (yield from self._filter(ranges - sure, bound)) | sure
                    self._leaves.clear()  # the rows that are left are others
                else:
                    ranges = yield from self._filter(ranges, bound)
        if limit is not None and ranges.num_rows > limit:
            self._count_limited(ranges, limit)
            ranges = ranges.head(limit)
            self._leaves.head(limit)
        n = ranges.num_rows
        if n == 0:
            return ranges, [[] for _ in self._columns]
        with self._report.timed("payload"):
            parts = {part.leaf.key: part for column in self._columns for part in column.parts}
            for key in self._all_null & parts.keys():
                self._leaves.put_nulls(parts[key], n)
            missing = [part for key, part in parts.items() if key not in self._leaves.arrays]
            if bound is not None and (self._indexed or self._walked):
                yield from self._load_offsets([part.leaf for part in missing], ranges)
            yield from self._read(missing, ranges)
            return ranges, [self._leaves.output(column) for column in self._columns]

    def _load_offsets(self, leaves: Sequence[Leaf], ranges: rows.RowRanges) -> Steps[None]:
        """Where the pages lie of leaves of which nobody has asked, where half of them may be spared: by the offset
        index, and where the file has none by the headers of the pages.
        """
        file, group = self._file, self._row_group
        if self._context.wait_bytes:
            return
        unknown = [
            leaf
            for leaf in leaves
            if file.cached_offset_index(group, leaf)[1] is None
            and not file.has_one_page(group, leaf)
        ]
        if not unknown:
            return
        n = file.group_rows[group]
        part = self._blocks(ranges) / blocks_of(rows.RowRanges.all(n), n)
        if part > 1 / 2:
            return
        unread = file.without_offset_index(group, unknown) if self._indexed else []
        walks = [
            walk(file, group, leaf, tested=False)
            for leaf in unknown
            if self._walked and walking_bytes(file, group, leaf, 1 - part) is not None
        ]
        yield from reads(together(walks), "index")
        places = {
            leaf.index: at for leaf in unread if (at := file.index_range("offset", group, leaf))
        }
        found = dict(zip(places, (yield Read(list(places.values()), "index")), strict=True))
        file.load_offset_indexes(
            group, unread, [found.get(leaf.index) for leaf in unread], self._report
        )

    def _ask_levels(self, bound: Bound) -> None:
        """Of which leaves the filter needs no value: nor is one needed that is null in all rows that pass."""
        asked = null_tests(bound)
        if not asked:
            return
        wanted = {part.leaf.key for column in self._columns for part in column.parts}
        flat = {key for key, test in asked.items() if test.leaf.flat and not test.leaf.group}
        self._all_null = flat & all_null(bound)
        for key, test in asked.items():
            if key in self._all_null or key not in wanted:
                part = levels_of(self._file, test.leaf, self._options)
                if part is not None:
                    self._by_levels[key] = part

    def _count_limited(self, ranges: rows.RowRanges, limit: int) -> None:
        """Count the pages of the payload that the rows beyond the limit would need."""
        if self._report.chunks is None:
            return
        for leaf in {p.leaf.index: p.leaf for c in self._columns for p in c.parts}.values():
            offsets = self._file.cached_offset_index(self._row_group, leaf)[1]
            chunk = self._report.chunks.get((self._file.name, self._row_group, leaf.name))
            if offsets is not None and chunk is not None and leaf.key not in self._leaves.arrays:
                all_pages, wanted = offsets.pages_of(ranges), offsets.pages_of(ranges.head(limit))
                chunk.limited += len(all_pages) - len(wanted)

    def _count_spared(self, leaf: Leaf, ranges: rows.RowRanges) -> None:
        """Count the pages of a leaf that would have been tested if the limit had not been reached."""
        offsets = self._file.cached_offset_index(self._row_group, leaf)[1]
        if self._report.chunks is not None and offsets is not None:
            chunk = self._report.chunks.get((self._file.name, self._row_group, leaf.name))
            if chunk is not None:
                chunk.limited += len(offsets.pages_of(ranges))

    def _read(
        self, parts: Sequence[Part], ranges: rows.RowRanges, tested: bool = False
    ) -> Steps[None]:
        """Fetch the pages of several leaves in one wave, then decode them."""
        coded = tested and ranges.num_rows >= CODED_ROWS
        readers = [self._reader(part, not tested, coded) for part in parts]
        size = yield from self._fetch(readers, ranges)
        single = [reader for reader in readers if reader.one_page]
        if single:
            yield from decode_pages(single)
        found = yield Decode([reader.decode() for reader in readers], size)
        n = ranges.num_rows
        for reader, arrays in zip(readers, found, strict=True):
            self._leaves.put(
                reader.leaf, reader.leaf_type, arrays, reader.decoded, reader.entries, n
            )

    def _fetch(self, readers: Sequence[LeafReader], ranges: rows.RowRanges) -> Steps[int]:
        """Hand the readers their bytes: in one wave, those that are not at hand. Returns how many bytes they have."""
        wanted = [reader.want(ranges) for reader in readers]
        size = sum([length for places in wanted for _, length in places])
        if not self._reuses:
            buffers = iter((yield Read([at for places in wanted for at in places], "data")))
            for reader, places in zip(readers, wanted, strict=True):
                fetched = sum([length for _, length in places])
                reader.give([next(buffers) for _ in places], fetched)
            return size
        different = dict.fromkeys(at for places in wanted for at in places)
        held = {at: data for at in different if (data := self._at_hand(at)) is not None}
        missing = [at for at in different if at not in held]
        new = dict(zip(missing, (yield Read(missing, "data")), strict=True))
        lengths = {at: at[1] for at in missing}
        payload = self._payload()
        for reader, places in zip(readers, wanted, strict=True):
            given = [new[at] if at in new else held[at] for at in places]
            reader.give(given, sum(lengths.pop(at, 0) for at in places))
            if (reader.leaf.group or self._stepwise) and reader.leaf.index in payload:
                self._kept += [(at[0], new[at]) for at in places if at in new]
        self._kept.sort(key=_place)
        return size

    def _payload(self) -> set[int]:
        return {part.leaf.index for column in self._columns for part in column.parts}

    def _at_hand(self, at: tuple[int, int]) -> memoryview | None:
        """The bytes at a place, where they were fetched for a test of the same leaf."""
        offset, length = at
        i = bisect_right(self._kept, offset, key=_place) - 1
        if i < 0:
            return None
        start, data = self._kept[i]
        inside = offset + length <= start + data.nbytes
        return data[offset - start : offset - start + length] if inside else None

    def _reader(self, part: Part, codes: bool, tested: bool) -> LeafReader:
        leaf = part.leaf
        offsets = self._file.cached_offset_index(self._row_group, leaf)[1]
        again = leaf.index in self._read_before
        self._read_before.add(leaf.index)
        levels = self._levels_only(leaf)
        self._reuses |= leaf.group
        return LeafReader(
            self._file,
            self._row_group,
            part,
            self._context,
            offsets,
            codes,
            again,
            levels,
            tested,
        )

    def _levels_only(self, leaf: Leaf) -> bool:
        """Whether nothing but levels will be read of a leaf that stands for a group."""
        return leaf.group and (
            leaf.index not in self._payload() or (leaf.index, -1) in self._all_null
        )

    def _fetch_ahead(
        self, conditions: Sequence[Sequence[BoundLeaf]], ranges: rows.RowRanges
    ) -> Steps[None]:
        """On a remote store, in one wave: the pages of the first condition, those of the others, and those of the
        payload. What would take longer to come than another wave is left for later: it may not be needed.
        """
        wanted = [list(self._tested(tests)[0].values()) for tests in conditions]
        wanted.append(
            [
                part
                for column in self._columns
                for part in column.parts
                if part.leaf.key not in self._all_null
            ]
        )
        different: dict[tuple[int, int], None] = {}
        known: set[int] = set()  # leaves
        for i, parts in enumerate(wanted):
            places: dict[Leaf, list[tuple[int, int]]] = {}
            for leaf in [part.leaf for part in parts]:
                if leaf.index not in known:
                    levels = self._levels_only(leaf)
                    places[leaf] = places_wanted(self._file, self._row_group, leaf, ranges, levels)
            if i and not pays_ahead(
                [at for ats in places.values() for at in ats], self._context.wait_bytes
            ):
                continue
            for leaf, ats in places.items():
                known.add(leaf.index)
                missing = [at for at in ats if self._at_hand(at) is None]
                different.update(dict.fromkeys(missing))
                counts = self._report.chunk(self._file.name, self._row_group, leaf.name, None)
                counts.bytes += sum(length for _, length in missing)
        self._reuses = True
        buffers = yield Read(list(different), "data")
        self._kept += [(at[0], data) for at, data in zip(different, buffers, strict=True)]
        self._kept.sort(key=_place)

    # -- filter -------------------------------------------------------------------------------

    def _row_bytes(self, bound: Bound) -> float:
        """Bytes of a row, decompressed, of the columns that a condition reads; more where Arrow evaluates it."""
        leaves = [self._presence_leaf(t.leaf) for t in leaves_of(bound)]
        chunks = {leaf.index: self._file.chunk(self._row_group, leaf) for leaf in leaves}
        size = sum(c.total_uncompressed_size for c in chunks.values())
        weight = RESIDUAL_WEIGHT if has_residual(bound) else 1
        return float(weight * size / max(self._file.group_rows[self._row_group], 1))

    def _first(
        self, ranges: rows.RowRanges, bound: Bound, limit: int, sure: rows.RowRanges
    ) -> Steps[rows.RowRanges]:
        """Rows that pass, at least the first `limit` of them: judged a few pages at a time, until there are enough."""
        tested = {test.leaf.index: test.leaf for test in leaves_of(bound)}.values()
        offsets = [self._file.cached_offset_index(self._row_group, leaf)[1] for leaf in tested]
        whole = [one is None for one in offsets]
        found, step = _NO_ROWS, max(FIRST_STEP, 4 * limit)
        self._stepwise = self._reuses = True
        while ranges and found.num_rows < limit:
            stop = ranges.head(step).bounds[1]
            if any(whole):  # their bytes come at once anyway
                stop = ranges.bounds[1]
            elif offsets[0] is not None:  # no page of the first is begun twice
                starts = offsets[0].first_row
                stop = int(starts[np.searchsorted(starts, stop)])
            piece = ranges.slice(ranges.bounds[0], stop)
            found |= (yield from self._filter(piece - sure, bound)) | (piece & sure)
            self._leaves.clear()  # the rows that are left are others
            ranges = ranges - piece
            step *= 2
        for leaf in tested:
            self._count_spared(leaf, ranges)
        return found

    def _filter(self, ranges: rows.RowRanges, bound: Bound) -> Steps[rows.RowRanges]:
        """The rows for which the filter is TRUE: conjunct by conjunct, in the order that has shown itself best."""
        parts = list(enumerate(conjuncts(bound)))
        measures = False
        if len(parts) > 1:
            parts, measures = self._learned.order([part for _, part in parts], self._row_bytes)
        payload = {part.leaf.key for column in self._columns for part in column.parts}
        tested = [{t.leaf.key: t for t in leaves_of(part)} for _, part in parts]
        last = {key: i for i, tests in enumerate(tested) for key in tests}  # that needs it
        held = self._leaves.arrays
        if self._context.wait_bytes:
            yield from self._fetch_ahead([list(tests.values()) for tests in tested], ranges)
        for i, ((place, part), tests) in enumerate(zip(parts, tested, strict=True)):
            if not ranges:
                break
            began = time.perf_counter()
            yield from self._read_tested([t for key, t in tests.items() if key not in held], ranges)
            n, before = ranges.num_rows, ranges
            mask, count = self._leaves.evaluate(part, n)
            seconds = time.perf_counter() - began
            for key in [k for k in held if k not in payload and last.get(k, -1) <= i]:
                self._leaves.let_go(key)  # no later condition needs it
            if count < n:
                ranges = ranges.refine(mask)
                if not count:
                    self._leaves.clear()
                self._leaves.keep(mask, n, count)
            if measures:
                left, now = self._blocks(ranges), self._blocks(before)
                self._learned.note(place, (n, now), (count, left), seconds)
        return ranges

    def _blocks(self, ranges: rows.RowRanges) -> int:
        return blocks_of(ranges, self._file.group_rows[self._row_group])

    def _read_tested(self, tests: Sequence[BoundLeaf], ranges: rows.RowRanges) -> Steps[None]:
        """The leaves of tests."""
        parts, shared, told = self._tested(tests)
        leaves = self._leaves
        missing = [part for key, part in parts.items() if key not in leaves.arrays]
        yield from self._read(missing, ranges, tested=True)
        for leaf in shared:
            leaves.share_presence(leaf)
        for key, other in told.items():
            if key != other:
                leaves.tell_by(key, other)

    def _tested(
        self, tests: Sequence[BoundLeaf]
    ) -> tuple[dict[Key, Part], list[Leaf], dict[Key, Key]]:
        """What to read for tests: the parts; those leaves that only tell whether a struct is there, and are payload,
        and are read as that; and for the key of each test that of what is read for it.
        """
        wanted: dict[Key, Part] = {}
        if any(test.leaf.group for test in tests):
            wanted = {p.leaf.key: p for column in self._columns for p in column.parts}
        parts: dict[Key, Part] = {}
        shared: list[Leaf] = []
        told: dict[Key, Key] = {}
        for test in tests:
            by_levels = self._by_levels.get(test.leaf.key)
            if by_levels is not None:
                told[test.leaf.key] = by_levels.leaf.key
                parts[by_levels.leaf.key] = by_levels
                continue
            leaf = self._presence_leaf(test.leaf)
            told[test.leaf.key] = leaf.key
            payload = wanted.get((leaf.index, -1))
            if leaf.group and leaf.max_rep == 0 and payload is not None and payload.nesting_levels:
                shared.append(leaf)
                parts[payload.leaf.key] = payload
            else:
                parts[leaf.key] = part_of(self._file, leaf, test.leaf_type, self._options)
        return parts, shared, told

    def _presence_leaf(self, leaf: Leaf) -> Leaf:
        if not leaf.group:
            return leaf
        return presence_leaf(self._file, self._row_group, leaf, self._payload())
