"""Reads leaves of one row group: fetches their pages in waves, and decodes the selected rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from pageseek._core import rows
from pageseek.format.chunks import has_codes_only
from pageseek.format.columns import Part
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.io.coalesce import pays_ahead
from pageseek.io.range_requests import DecodePages
from pageseek.predicate.bound import Bound
from pageseek.predicate.masks import Bitmap
from pageseek.predicate.masks import joined as joined_masks
from pageseek.predicate.row_tests import row_tests
from pageseek.scanning.leaves.decoded_columns import DecodedColumns, Key
from pageseek.scanning.leaves.entry_tests import entry_tests
from pageseek.scanning.leaves.few_rows import read_few
from pageseek.scanning.leaves.leaf_places import places_wanted
from pageseek.scanning.leaves.leaf_reader import LeafReader
from pageseek.scanning.leaves.page_batch import decode, fetch, reserve
from pageseek.scanning.requests.leaf_use import LeafUse
from pageseek.scanning.requests.steps import Held, Read, ScanContext, Steps

CODED_ROWS = 4096  # with fewer rows, values are tested rather than dictionary codes


def _place(held: Held) -> int:
    return held[0]


class GroupReader:
    """Reads leaves of one row group for one scan.

    Attributes
    ----------
    decoded : DecodedColumns
        The leaves that were read.
    reuses : bool
        Whether bytes that were fetched before may be needed again.
    stepwise : bool
        Whether tested leaves are dropped after each step, and may be read again.
    all_null : set
        Keys of leaves that are null in every row for which the filter is TRUE.
    """

    __slots__ = (
        "_context",
        "_file",
        "_held",
        "_read_before",
        "_row_group",
        "_use",
        "all_null",
        "decoded",
        "reuses",
        "stepwise",
    )

    def __init__(
        self,
        file: FileMetadata,
        row_group: int,
        use: LeafUse,
        context: ScanContext,
        held: Sequence[Held] = (),
    ) -> None:
        """`held`: bytes that were fetched before, in the order of their offsets."""
        self._file, self._row_group, self._use, self._context = file, row_group, use, context
        self.decoded = DecodedColumns(file.name, row_group)
        self._read_before: set[int] = set()  # leaves
        # bytes of leaves that are tested and payload are added, in the order of their offsets
        self._held: list[Held] = list(held)
        self.reuses = bool(held)
        self.stepwise = False
        self.all_null: set[Key] = set()

    def of_rows(self, start: int, count: int, n: int, context: ScanContext) -> GroupReader:
        """A reader for `count` of the n rows that are decoded, from `start` on. Others may read other rows meanwhile."""
        made = GroupReader(self._file, self._row_group, self._use, context, self._held)
        made.decoded = self.decoded.of_rows(start, count, n)
        made._read_before = set(self._read_before)
        made.all_null, made.reuses = self.all_null, self.reuses
        return made

    def read(
        self, parts: Sequence[Part], ranges: rows.RowRanges, tested: bool = False
    ) -> Steps[None]:
        """Fetch the pages of several leaves in one wave, then decode them. `tested`: dictionary codes will do."""
        if not parts:
            return
        if not tested and self._may_be_few(parts):
            found = yield from read_few(self._file, self._row_group, parts, ranges, self._context)
            if found is not None:
                for part, array in zip(parts, found, strict=True):
                    self.decoded.put(
                        part.leaf, part.leaf_type, [array], None, None, ranges.num_rows
                    )
                return
        coded = tested and ranges.num_rows >= CODED_ROWS
        readers, wanted = [], []
        for part in parts:
            leaf, levels = part.leaf, False
            again = leaf.index in self._read_before
            self._read_before.add(leaf.index)
            if leaf.group:
                levels = self.levels_only(leaf)
                self.reuses = True
            reader = LeafReader(
                self._file,
                self._row_group,
                part,
                self._context,
                codes=not tested,
                again=again,
                levels=levels,
                tested=coded,
            )
            readers.append(reader)
            wanted.append(reader.want(ranges))
        size = yield from self._give(readers, wanted)
        yield from self._decode(readers, size, ranges.num_rows)

    def _may_be_few(self, parts: Sequence[Part]) -> bool:
        """Whether one thread may read several leaves: others have row groups of their own, and this row group has read none of them."""
        context = self._context
        return (
            len(parts) > 1
            and context.row_groups >= context.threads
            and not self.reuses
            and not any(part.leaf.index in self._read_before for part in parts)
        )

    def _give(
        self,
        readers: Sequence[LeafReader],
        wanted: Sequence[list[tuple[int, int]]],
    ) -> Steps[int]:
        """Give the readers the bytes that they want, which are fetched in one wave. Returns the bytes of all readers."""
        if self.reuses:
            return (yield from self._fetch(readers, wanted))
        return (yield from fetch(readers, wanted))

    def _decode(self, readers: Sequence[LeafReader], size: int, n: int) -> Steps[None]:
        """Decode the n rows that readers have the bytes for, `size` bytes."""
        put = self.decoded.put
        for reader, arrays in zip(readers, (yield from decode(readers, size)), strict=True):
            put(reader.leaf, reader.leaf_type, arrays, reader.decoded, reader.entries, n)

    def _fetch(
        self, readers: Sequence[LeafReader], wanted: Sequence[list[tuple[int, int]]]
    ) -> Steps[int]:
        """Give the readers their bytes. Those that are not in memory are fetched in one wave. Returns the bytes of all readers."""
        size = sum([length for places in wanted for _, length in places])
        different = dict.fromkeys(at for places in wanted for at in places)
        held = {at: data for at in different if (data := self._at_hand(at)) is not None}
        missing = [at for at in different if at not in held]
        yield from reserve(readers, size, sum([length for _, length in missing]))
        new = dict(zip(missing, (yield Read(missing, "data")), strict=True))
        lengths = {at: at[1] for at in missing}
        payload = self._use.payload
        times = Counter([at for places in wanted for at in places])
        for reader, places in zip(readers, wanted, strict=True):
            holds = (reader.leaf.group or self.stepwise) and reader.leaf.index in payload
            for at in places:
                # what several threads may need is read now
                if at in new and (holds or times[at] > 1):
                    new[at] = memoryview(new[at])
            given = [new[at] if at in new else held[at] for at in places]
            reader.give(given, sum([lengths.pop(at, 0) for at in places]))
            if holds:
                self._held += [(at[0], new[at]) for at in places if at in new]
        self._held.sort(key=_place)
        return size

    def _at_hand(self, at: tuple[int, int]) -> memoryview | None:
        """The bytes at a place if they were fetched before, else None."""
        offset, length = at
        i = bisect_right(self._held, offset, key=_place) - 1
        if i < 0:
            return None
        start, data = self._held[i]
        inside = offset + length <= start + data.nbytes
        return data[offset - start : offset - start + length] if inside else None

    def test_codes(
        self, part: Part, condition: Bound, ranges: rows.RowRanges
    ) -> Steps[tuple[Bitmap, int] | None]:
        """The rows for which a condition on one leaf is TRUE, as a bitmap and their number, by dictionary codes alone; None where
        values are tested. They may have been read by then.
        """
        leaf, leaf_type = part.leaf, part.leaf_type
        chunk = self._file.chunk(self._row_group, leaf)
        if ranges.num_rows < CODED_ROWS or not has_codes_only(chunk) or leaf_type.is_null:
            return None
        again = leaf.index in self._read_before
        self._read_before.add(leaf.index)
        reader = LeafReader(self._file, self._row_group, part, self._context, again=again)
        wanted, n = [reader.want(ranges)], ranges.num_rows
        size = yield from self._give([reader], wanted)
        data, alone = reader.dictionary
        if reader.native and data is not None:
            tests = entry_tests(part, [data], n, condition, reader.of.codec_settings, alone)
            tasks = [] if tests is None else reader.tasks(tests.passes[0])
            if tests is not None and tasks:
                made = yield DecodePages(tasks, reader.nbytes)
                if all(isinstance(one, tuple) for one in made):
                    reader.count_tested(tasks)
                    return joined_masks([tests.mask(one) for one in made])
        yield from self._decode([reader], size, n)
        return None

    def read_passing(
        self, part: Part, condition: Bound, ranges: rows.RowRanges, keeps: bool
    ) -> Steps[tuple[Bitmap, int] | None]:
        """Read a flat leaf that is tested alone. The rows for which the condition is TRUE, as a bitmap and their number, where the core
        has tested them: the leaf is held for these rows then, if it `keeps` any. None: `decoded` may have the leaf for all rows.
        """
        n, leaf = ranges.num_rows, part.leaf
        tests = row_tests(condition, part.leaf_type, n, keeps)
        if tests is None:
            return None
        again = leaf.index in self._read_before
        self._read_before.add(leaf.index)
        coded = n >= CODED_ROWS
        reader = LeafReader(
            self._file, self._row_group, part, self._context, again=again, tested=coded
        )
        reader.row_tests = tests
        size = yield from self._give([reader], [reader.want(ranges)])
        yield from self._decode([reader], size, n)
        return reader.passing

    def levels_only(self, leaf: Leaf) -> bool:
        """Whether only the levels of a leaf that stands for a group are read."""
        return leaf.group and (
            leaf.index not in self._use.payload or (leaf.index, -1) in self.all_null
        )

    def fetch_ahead(self, wanted: Sequence[Sequence[Part]], ranges: rows.RowRanges) -> Steps[None]:
        """Fetch pages of a remote store in one wave: those of the `wanted` conditions in order, then those of the payload. Pages
        that would take longer than another wave are left for later, since they may turn out to be needless.
        """
        different: dict[tuple[int, int], None] = {}
        known: set[int] = set()  # leaves
        payload = [part for key, part in self._use.parts.items() if key not in self.all_null]
        for i, parts in enumerate([*wanted, payload]):
            places: dict[Leaf, list[tuple[int, int]]] = {}
            for leaf in [part.leaf for part in parts]:
                if leaf.index not in known:
                    levels = self.levels_only(leaf)
                    places[leaf] = places_wanted(self._file, self._row_group, leaf, ranges, levels)
            if i and not pays_ahead(
                [at for ats in places.values() for at in ats],
                self._context.wait_bytes,
                self._context.row_groups,
            ):
                continue
            for leaf, ats in places.items():
                known.add(leaf.index)
                missing = [at for at in ats if self._at_hand(at) is None]
                different.update(dict.fromkeys(missing))
                counts = self._context.report.chunk(
                    self._file.name, self._row_group, leaf.name, None
                )
                counts.bytes += sum(length for _, length in missing)
        self.reuses = True
        size = sum([length for _, length in different])
        yield from reserve((), size, size)
        buffers = yield Read(list(different), "data")
        self._held += [(at[0], data) for at, data in zip(different, buffers, strict=True)]
        self._held.sort(key=_place)
