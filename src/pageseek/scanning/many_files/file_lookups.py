"""Lookup indexes (docs/format.md, kind `lookup`) of many similar files, of which one value reads a block each."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from pageseek._core import hash_blocks, lists
from pageseek._core.bloom import xxh64
from pageseek.base.late_modules import npt
from pageseek.format import lookup_form as form
from pageseek.format.embedded import KEY, MAGIC, PAYLOAD_HEAD_BYTES, EntryForm, InvalidIndexError
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.needed_hashes import has_built_form, needed_hashes
from pageseek.scanning.many_files.batched_lists import ColumnLists, ListAnswer, ListReader
from pageseek.scanning.many_files.footer_table import KEYS, Flags, FooterTable, entries_of
from pageseek.scanning.many_files.schema_group import SchemaGroup

MOST_VALUES = 8  # of an IN: each is a read of each file
MOST_ROWS = 1 << 24  # of a file, whose directory is then 128 kB; files with more are few
READ = 16 << 20  # bytes that are read at a time
_ENTRIES = entries_of([form.KIND])
Int64s = npt.NDArray[np.int64]


class FileLookups(ColumnLists):
    """The indexes of one column, of which directories are kept, and blocks are read for each value anew."""

    on_demand = True

    def __init__(self, reader: ListReader) -> None:
        table = reader.table
        n = len(table.members)
        self._tree, self._groups = reader.schema_group.tree, table.n
        self._firsts = table.first
        self._rows_before = np.concatenate([[0], np.cumsum(table.rows)])  # of each row group
        self._num_rows: Int64s = table.of_files(table.rows)
        self.unusable = np.zeros(n, np.bool_)
        self._left = table.names(_ENTRIES) & ~table.huge  # whose directories were not read yet
        self._left &= (self._num_rows > 0) & (self._num_rows <= MOST_ROWS)
        self._bodies = np.zeros(n, np.int64)  # where in a file the body begins; 0 if it has none
        self._at = np.zeros(n, np.int64)  # where in `_blocks` its blocks begin
        self._row_bits = np.zeros(n, np.int64)
        # of each block: where in the body it begins, its bytes, its entries and its checksum
        self._blocks = np.zeros((0, 4), np.int64)
        self._lock = threading.Lock()

    @classmethod
    def present(cls, table: FooterTable, schema_group: SchemaGroup, test: BoundLeaf) -> Flags:
        """The files that have indexes."""
        return table.names(_ENTRIES)

    @staticmethod
    def takes(test: BoundLeaf) -> bool:
        """Whether rows need one of very few values."""
        if test.leaf.group or test.leaf.max_rep or test.leaf_type.is_null:
            return False
        hashes = needed_hashes(test)
        return hashes is not None and len(hashes) <= MOST_VALUES

    def ask(
        self, test: BoundLeaf, needed: Flags, reader: Callable[[], ListReader]
    ) -> ListAnswer | None:
        """The row groups of the files that are `needed` in which no row has one of the values."""
        hashes = needed_hashes(test)
        if hashes is None or not has_built_form(self._tree, test):
            return None
        reading: ListReader | None = None
        with self._lock:
            missing = np.flatnonzero(needed & self._left)
            if len(missing):
                reading = reader()
                self._load(missing, reading)
        files = np.flatnonzero(needed & (self._bodies > 0) & ~self.unusable)
        if not len(files):
            return None
        reading = reading or reader()
        may = np.repeat(np.ones(len(self._groups), np.bool_), self._groups)
        asked = np.zeros(len(self._groups), np.bool_)
        asked[files] = True
        may &= ~np.repeat(asked, self._groups)
        for number in hashes.tolist():
            blocks = form.block_of(
                np.full(len(files), number, np.uint64),
                form.nums_of_blocks(self._num_rows[files]).astype(np.uint64),
            )
            places = self._blocks[self._at[files] + blocks]
            step = max(READ // int(places[:, 1].max()), 1)
            for i in range(0, len(files), step):
                found = self._look_up(number, files[i : i + step], places[i : i + step], reading)
                may[found] = True
        wrong = self.unusable & asked  # they are opened, and say what is wrong
        may |= np.repeat(wrong, self._groups)
        return ListAnswer(may.tobytes(), bytes(len(may)), None)

    def _look_up(self, number: int, files: Int64s, places: Int64s, reader: ListReader) -> Int64s:
        """The row groups that may have a value with a hash. `places`: of the block of each file."""
        starts, sizes, entries, checksums = places.T
        stops = self._bodies[files] + starts + sizes
        behind = reader.table.sizes[files] - stops
        data, spans = reader.read_ends(files, sizes, behind)
        read = spans[:, 1] == sizes
        rows_of = self._row_bits[files], self._num_rows[files]
        asked = np.column_stack([spans[:, 0], spans[:, 1], entries, checksums, *rows_of])
        counts, rows = (
            np.frombuffer(one, np.int64) for one in hash_blocks.find_in_each(data, asked, number)
        )
        self.unusable[files[~read | (counts < 0)]] = True
        counts = np.maximum(counts, 0)
        before = self._rows_before[self._firsts[files]]
        at = np.repeat(before, counts) + rows
        return np.searchsorted(self._rows_before, at, "right") - 1

    def _load(self, files: Int64s, reader: ListReader) -> None:
        """Read the directories of some files."""
        table, batch = reader.table, reader.batch
        self._left[files] = False
        entry_form = EntryForm(reader.leaf, form.KIND, form.VERSION)
        ends = batch.spans(table.members[files])
        groups = np.stack([table.first[files], table.n[files]], axis=1)
        pairs = table.pairs[files, KEYS.index(KEY)]
        asked = np.concatenate([pairs, ends, groups], axis=1)
        entries = entry_form.find(table.data, batch.tails, reader.figures, asked)
        state = entries[:, 0]
        self.unusable[files[state == lists.DOUBTFUL]] = True
        for i in np.flatnonzero(state == lists.UNREAD).tolist():  # not as `attach` writes it
            try:
                known = entry_form.parsed(table.value(files.item(i), KEY), int(ends[i, 3]))
            except InvalidIndexError:
                known = None
            else:
                if known is None:
                    continue
            self.unusable[files[i]] = True
        there = (state == lists.SOUND) | (state == lists.FAR)
        files, offsets, lengths = files[there], entries[there, 1], entries[there, 2]
        counts = form.nums_of_blocks(self._num_rows[files])
        for count in np.unique(counts).tolist():
            some = counts == count
            self._load_alike(files[some], offsets[some], lengths[some], count, reader)

    def _load_alike(
        self, files: Int64s, offsets: Int64s, lengths: Int64s, blocks: int, reader: ListReader
    ) -> None:
        """Read directories of the same number of blocks. `offsets`, `lengths`: the indexes, with their heads."""
        table, num_rows = reader.table, self._num_rows[files]
        size = PAYLOAD_HEAD_BYTES + form.bytes_of_directory(blocks)
        fits = lengths >= size
        self.unusable[files[~fits]] = True
        files, offsets, lengths, num_rows = (
            one[fits] for one in (files, offsets, lengths, num_rows)
        )
        if not len(files):
            return
        behind = table.sizes[files] - offsets - size
        data, spans = reader.read_ends(files, np.full(len(files), size), behind)
        given = np.frombuffer(data, np.uint8).reshape(-1, size)
        found = form.Directories(
            given[:, PAYLOAD_HEAD_BYTES:], num_rows, lengths - PAYLOAD_HEAD_BYTES
        )
        heads = b"".join(
            [MAGIC + bytes(4) + xxh64(reader.figures_of(k)).to_bytes(8, "little") for k in files.tolist()]
        )  # fmt: skip
        wanted = np.frombuffer(heads, np.uint8).reshape(-1, PAYLOAD_HEAD_BYTES)
        sound = (spans[:, 1] == size) & found.sound
        sound &= (given[:, :PAYLOAD_HEAD_BYTES] == wanted).all(axis=1)
        self.unusable[files[~sound]] = True
        files = files[sound]
        parts = [one[sound] for one in (found.starts, found.sizes, found.entries, found.checksums)]
        made = np.stack(parts, axis=2).reshape(-1, 4)
        self._at[files] = len(self._blocks) + np.arange(len(files)) * blocks
        self._blocks = np.concatenate([self._blocks, made])
        self._row_bits[files] = found.row_bits[sound]
        self._bodies[files] = offsets[sound] + PAYLOAD_HEAD_BYTES
        table.hold(made.nbytes // 4)
