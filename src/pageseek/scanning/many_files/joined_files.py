"""Small files that are read as one: to open a file and to take each of its steps costs more than its pages do.

Their footers were read together. The row groups of all of them become those of one file, whose bytes are those of the files,
far apart. Row groups are then read as those of a single file are (joined_groups.py). What fails here is read again file by file,
which names the file; so is a file that has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any

import numpy as np

from pageseek._core import metadata as core
from pageseek.base.errors import FileChangedError
from pageseek.base.in_parts import in_parts
from pageseek.base.late_modules import npt
from pageseek.base.report import Report
from pageseek.format.chunks import Chunk, PlacedChunks, all_declared_pages, sound_chunks
from pageseek.format.page_index import OffsetIndex, int64s
from pageseek.format.schema import Leaf
from pageseek.format.writers import Writer
from pageseek.io.tails import TailBatch
from pageseek.scanning.many_files.batched_file import BatchedFile, pairs_of_spark
from pageseek.scanning.many_files.footer_table import AT, SHARED
from pageseek.scanning.many_files.homogeneous_files import may_join
from pageseek.scanning.many_files.schema_group import SchemaGroup
from pageseek.scanning.one_file.file_scan import FileScan, SeveralFiles
from pageseek.scanning.requests.plan import FilePlan, GroupPlan
from pageseek.scanning.requests.request import Request
from pageseek.storage import Version
from pageseek.storage.store import Buffer

FEWEST_FILES = 2
MOST_CHUNKS = 1 << 15  # of files that are scanned as one: about 1 kB of memory each
STRIDE = 1 << 40  # bytes from the first one of a file to that of the next: no request takes in both


class JoinedStore:
    """The bytes of several local files, STRIDE from one to the next. Nothing stays open.

    A read finds out whether a file still has the version whose footer was read.
    """

    latency = 0.0
    bandwidth = 2e9

    def __init__(
        self, name: str, batch: TailBatch, places: npt.NDArray[np.int64], threads: int
    ) -> None:
        self.name, self.size = name, len(places) * STRIDE
        self.version = Version(self.size, "", True)
        self._batch, self._places, self._threads = batch, places, threads

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        """The bytes at each (offset, length). FileChangedError where a file was replaced, or cannot be read."""
        wanted = np.array(ranges, np.int64).reshape(-1, 2)
        lengths = np.ascontiguousarray(wanted[:, 1])
        members = self._places[wanted[:, 0] // STRIDE]
        behind = self._batch.sizes[members] - wanted[:, 0] % STRIDE - lengths
        room, spans = self._batch.longer(members, lengths, self._threads, behind)
        changed = np.flatnonzero(spans[:, 1] != lengths)
        if len(changed):
            raise FileChangedError(
                f"{self._batch.paths[members.item(changed.item(0))]}: it cannot be read as it was"
            )
        stops = np.cumsum(lengths)
        return [
            room[start:stop]
            for start, stop in zip((stops - lengths).tolist(), stops.tolist(), strict=True)
        ]

    def check(self) -> None:
        """Each read has checked the versions."""

    def close(self) -> None:
        """Nothing is open."""


class JoinedFiles:
    """The row groups of several files, with what reading them as one needs of a FileMetadata.

    Attributes
    ----------
    group_rows : list of int
        The rows of each row group.
    offset_indexes, dropped : dict
        Empty: chunks are read whole.
    """

    tail = None

    def __init__(
        self,
        name: str,
        store: JoinedStore,
        writer: Writer,
        group_rows: list[int],
        columns: dict[int, int],
        chunks: npt.NDArray[np.int64],
        start: npt.NDArray[np.int64],
        size: npt.NDArray[np.int64],
        keys: list[tuple[str, int]],
    ) -> None:
        """`columns`: the position of each leaf that is read. `chunks`: the records of their chunks, shape (row groups, leaves, fields).
        `start`, `size`: where these begin, and their bytes. `keys`: the file of each row group, and its number there.
        """
        self.name, self.store, self.writer, self.group_rows = name, store, writer, group_rows
        self.num_row_groups = len(group_rows)
        self.offset_indexes: dict[tuple[int, int], OffsetIndex] = {}
        self.dropped: dict[int, frozenset[int]] = {}
        self._first_rows = list(accumulate(group_rows, initial=0))
        self._columns, self._keys = columns, keys
        self._chunks, self._start, self._size = chunks, start, size
        self._unpacked = chunks[:, :, AT["total_uncompressed_size"]]
        self._codecs = chunks[:, :, AT["codec"]]

    def first_row(self, row_group: int) -> int:
        """The rows of all row groups before one."""
        return self._first_rows[row_group]

    def key_of(self, row_group: int) -> tuple[str, int]:
        """The file of a row group, and its number there."""
        return self._keys[row_group]

    def placed_chunk(self, row_group: int, leaf: Leaf) -> tuple[Any, int, int]:
        """A column chunk with its first byte and the byte after its last."""
        at = row_group, self._columns[leaf.index]
        start = self._start.item(at)
        return Chunk._make(self._chunks[at].tolist()), start, start + self._size.item(at)

    def placed_chunks(self, row_groups: Sequence[int], leaves: Sequence[Leaf]) -> PlacedChunks:
        """Their column chunks. Neighbours are one range, so that most files are read at once."""
        at = np.ix_(row_groups, [self._columns[leaf.index] for leaf in leaves])
        starts, sizes = self._start[at], self._size[at]
        unpacked, codecs = self._unpacked[at], self._codecs[at]
        order = np.argsort(starts, axis=None, kind="stable")  # of files, too, by STRIDE
        first = starts.ravel()[order]
        stop = first + sizes.ravel()[order]
        opens = np.append(True, first[1:] != stop[:-1])
        opening = first[opens]
        lengths = stop[np.append(opens[1:], True)] - opening
        holder = np.empty_like(order)
        holder[order] = np.cumsum(opens) - 1
        within = starts.ravel() - opening[holder]
        holders, begins_there = holder.reshape(starts.shape).T, within.reshape(starts.shape).T
        return PlacedChunks(
            sizes.T.tolist(),
            unpacked.T.tolist(),
            [set(some) for some in codecs.T.tolist()],
            list(zip(opening.tolist(), lengths.tolist(), strict=True)),
            [
                (of.tolist(), begin.tolist())
                for of, begin in zip(holders, begins_there, strict=True)
            ],
        )

    def chunk(self, row_group: int, leaf: Leaf) -> Any:
        return self.placed_chunk(row_group, leaf)[0]

    def has_one_page(self, row_group: int, leaf: Leaf) -> bool:
        """Whether pages are never left out: chunks are read whole."""
        return True

    def count_reads(self, report: Report) -> None:
        """Reads of footers were counted when they were planned."""


class JoinedScan(FileScan):
    """A scan of several files as one."""

    __slots__ = ("_footers", "_groups")

    def __init__(
        self,
        files: Sequence[FilePlan],
        footers: Sequence[BatchedFile],
        memory: Sequence[int],
        file: Any,
        request: Request,
    ) -> None:
        super().__init__(files[0].source, file, request, files[0].first_row)
        self.joined: SeveralFiles = SeveralFiles(files, memory)
        self._footers = footers
        self._groups = [(i, group) for i, plan in enumerate(files) for group in plan.groups]
        made = [
            GroupPlan(k, group.ranges, group.fully_matched, group.cost)
            for k, (_, group) in enumerate(self._groups)
        ]
        self.plan = FilePlan(files[0].source, file.store.version, tuple(made), files[0].first_row)

    def pairs_of_spark(self) -> list[dict[bytes, bytes | None]]:
        """The key-value pairs by which Spark tells the calendar of a file, each different set of these files once."""
        return [pairs for _, pairs in pairs_of_spark(self._footers)]

    def plans_of(self, groups: Iterable[GroupPlan]) -> list[FilePlan]:
        """The files of some of its row groups, each with those that it has of them."""
        own = [self._groups[group.row_group] for group in groups]
        return [
            replace(self.joined.files[i], groups=tuple([group for _, group in some]))
            for i, some in groupby(own, key=lambda one: one[0])
        ]


def most_row_groups(schema_group: SchemaGroup) -> int:
    """How many row groups of a schema group are scanned as one, at most."""
    leaves = {leaf.index for leaf, _ in schema_group.bound_request.leaves.read()}
    return max(MOST_CHUNKS // max(len(leaves), 1), 1)


def joined_scans(
    plans: Sequence[FilePlan],
    footers: Sequence[BatchedFile],
    request: Request,
    threads: int,
) -> Iterator[tuple[int, JoinedScan]]:
    """Scans of those of some files that are read as one, each with the number of its first file.

    The files are of one batch and one schema group. They have the same columns of folders.
    """
    schema_group, batch = footers[0].homogeneous.schema_group, footers[0].batch
    leaves = {leaf.index: leaf for leaf, _ in schema_group.bound_request.leaves.read()}
    places = np.array([footer.place for footer in footers], np.int64)
    read = list(leaves.values())
    told = _Chunks.looked_at(footers, read)
    if told is None:
        limit = request.limits.max_metadata_bytes
        row_groups = sum([footer.num_row_groups for footer in footers])
        told = _Chunks.parsed(schema_group, batch, places, row_groups, read, limit, threads)
    if told is None:
        return
    fits = told.fit(plans)
    start = 0
    while start < len(plans):
        stop = start
        while stop < len(plans) and fits[stop]:
            stop += 1
        if stop - start >= FEWEST_FILES:
            some = plans[start:stop]
            name = f"{some[0].source.name} and {stop - start - 1:,} further files"
            store = JoinedStore(name, batch, places[start:stop], threads)
            columns = {index: i for i, index in enumerate(leaves)}
            chosen, of = told.chosen(start, some)
            file = JoinedFiles(
                name,
                store,
                schema_group.writer,
                told.counts[chosen].tolist(),
                columns,
                told.records(chosen),
                *told.placed(chosen, of),
                [(one.source.name, group.row_group) for one in some for group in one.groups],
            )
            memory = told.memory(chosen)
            scan = JoinedScan(some, footers[start:stop], memory, file, request)
            scan.bound_request = schema_group.bound_request.again()
            yield start, scan
        start = stop + 1


class _Chunks:
    """The chunks of some leaves in the row groups of some files."""

    __slots__ = ("_chunks", "_first", "_num", "_one_page", "_size", "_small", "_start", "counts")

    def __init__(
        self, schema_group: SchemaGroup, first: list[int], num: list[int], counts: npt.NDArray[np.int64],
        chunks: npt.NDArray[np.int64], leaves: Sequence[Leaf], ends: npt.NDArray[np.int64],
    ) -> None:  # fmt: skip
        """`first`, `num`: the first row group of each file, and how many it has. `ends`: the bytes of the file of each row group."""
        self._first, self._num, self.counts, self._chunks = first, num, counts, chunks
        types = np.array([leaf.element.type for leaf in leaves], np.int64)
        found = sound_chunks(chunks, types, False, counts[:, None], ends[:, None])
        self._start, self._size = found.start, found.size
        pages = all_declared_pages(chunks)
        self._one_page: list[bool] = (pages == 1).all(axis=1).tolist()
        self._small: list[bool] = (
            found.sound.all(axis=1) & may_join(schema_group, counts, found.size, pages)
        ).tolist()

    @classmethod
    def looked_at(cls, footers: Sequence[BatchedFile], leaves: Sequence[Leaf]) -> _Chunks | None:
        """What the footers of files say that were pruned; None where these leaves were not looked at."""
        schema_group, batch = footers[0].homogeneous.schema_group, footers[0].batch
        columns = [schema_group.column.get(leaf.index, -1) for leaf in leaves]
        if -1 in columns:
            return None
        num, counts, chunks = [], [], []
        for homogeneous, some in groupby(footers, key=attrgetter("homogeneous")):
            table, numbers = homogeneous.table, np.array([footer.number for footer in some])
            groups, _ = table.row_groups_of(numbers)
            num.append(table.n[numbers])
            counts.append(table.rows[groups])
            chunks.append(table.chunks[np.ix_(groups, columns)])
        places = np.array([footer.place for footer in footers])
        n = np.concatenate(num)
        return cls(
            schema_group, (np.cumsum(n) - n).tolist(), n.tolist(), np.concatenate(counts), np.concatenate(chunks), leaves,
            np.repeat(batch.sizes[places], n),
        )  # fmt: skip

    @classmethod
    def parsed(
        cls, schema_group: SchemaGroup, batch: TailBatch, places: npt.NDArray[np.int64], row_groups: int, leaves: Sequence[Leaf],
        limit: int, threads: int,
    ) -> _Chunks | None:  # fmt: skip
        """What the footers of the files at some places of a batch say; None where one cannot be parsed with the others."""
        at = batch.at[places].astype(np.uint64)
        numbers = np.array([leaf.index for leaf in leaves], np.uint64)

        def footers(first: int, stop: int) -> Any:
            return core.footers(
                batch.footers,
                at[first:stop],
                schema_group.like,
                numbers,
                row_groups,
                max_arena=limit,
            )

        parts = in_parts(footers, len(places), threads, SHARED)
        groups, _, rows, chunks = (memoryview(b"".join(some)) for some in zip(*parts, strict=True))
        num = int64s(groups)
        if len(num) < len(places) or (num < 0).any():
            return None
        counts = int64s(rows)
        table = int64s(chunks).reshape(len(counts), len(leaves), len(AT))
        first = np.cumsum(num) - num
        ends = np.repeat(batch.sizes[places], num)
        return cls(schema_group, first.tolist(), num.tolist(), counts, table, leaves, ends)

    def fit(self, plans: Sequence[FilePlan]) -> list[bool]:
        """Which of the files have small row groups only, whose chunks are read whole: of which every row is read, or each chunk is a
        page.
        """
        made = []
        counts = self.counts.tolist()
        for plan, first, num in zip(plans, self._first, self._num, strict=True):
            fits = plan.version.size < STRIDE and not plan.source.deletes
            for group in plan.groups:
                at = first + group.row_group
                fits = fits and (
                    group.row_group < num
                    and self._small[at]
                    and group.pages_pruned
                    and (group.ranges.num_rows == counts[at] or self._one_page[at])
                    and not (group.divided or group.matching or group.ignored)
                )
            made.append(fits)
        return made

    def chosen(
        self, start: int, plans: Sequence[FilePlan]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The row groups of the plans of files from `start` on, and the number of the file of each, from 0 on."""
        found = [
            (self._first[start + i] + group.row_group, i)
            for i, plan in enumerate(plans)
            for group in plan.groups
        ]
        groups, files = np.array(found, np.int64).reshape(-1, 2).T
        return np.ascontiguousarray(groups), np.ascontiguousarray(files)

    def memory(self, groups: npt.NDArray[np.int64]) -> list[int]:
        """The bytes of memory of row groups while they are read: pages, decompressed and decoded. What is fetched is so large at
        least, whatever a footer says.
        """
        sizes = self._chunks[groups, :, AT["total_uncompressed_size"]]
        made: list[int] = (2 * np.maximum(sizes, self._size[groups]).sum(axis=1)).tolist()
        return made

    def placed(
        self, groups: npt.NDArray[np.int64], files: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where the chunks of row groups begin in a JoinedStore, and their bytes."""
        return self._start[groups] + (files * STRIDE)[:, None], self._size[groups]

    def records(self, groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The records of the chunks of row groups."""
        return self._chunks[groups]
