"""Lookup indexes (docs/format.md, kind `lookup`) of many similar files, of which one value reads a block each."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from pageseek._core import hash_blocks, lists
from pageseek._core.bloom import xxh64
from pageseek.base.late_modules import npt
from pageseek.format import lookup_form as form
from pageseek.format.embedded import KEY, MAGIC, PAYLOAD_HEAD_BYTES, EntryForm
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.needed_hashes import has_built_form, needed_hashes
from pageseek.scanning.many_files.batched_lists import (
    ColumnLists,
    ListAnswer,
    ListReader,
    doubtful_entries,
)
from pageseek.scanning.many_files.footer_table import AT, KEYS, Flags, FooterTable, entries_of
from pageseek.scanning.many_files.schema_group import SchemaGroup

MOST_VALUES = 8  # of an IN: each may be a read of each file
MOST_ROWS = 1 << 24  # of a file, whose directory is then 128 kB; files with more are few
READ = 16 << 20  # bytes that are read at a time
SMALL_BLOCK = 64 << 10  # bytes of a block that is read whatever the column has
SAMPLE = 16  # files that are asked first, if there are many
_ENTRIES = entries_of([form.KIND])
Int64s = npt.NDArray[np.int64]


class FileLookups(ColumnLists):
    """The indexes of one column, of which directories are kept, and blocks are read for each value."""

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
        reading = reader()
        with self._lock:
            missing = np.flatnonzero(needed & self._left)
            if len(missing):
                self._load(missing, reading)
        files = np.flatnonzero(needed & (self._bodies > 0) & ~self.unusable)
        if len(files):
            files = files[self._pays(files, hashes, reading)]
        if not len(files):
            return None
        may = np.ones(self._groups.sum(), np.bool_)
        step = max(len(files) // SAMPLE, 1)
        # of a value that most files have, the others would be asked for nothing
        if self._ask(files[::step], hashes, reading, may) * 2 >= len(files[::step]) and step > 1:
            others = np.delete(files, np.arange(0, len(files), step))
            self._ask(others, hashes, reading, may)
        return ListAnswer(may.tobytes(), bytes(len(may)), None)

    def _pays(self, files: Int64s, hashes: form.U64, reader: ListReader) -> Flags:
        """Of which files the blocks are small beside the column."""
        column = reader.schema_group.column[reader.leaf.index]
        sizes = reader.table.chunks[:, column, AT["total_compressed_size"]]
        whole = reader.table.of_files(sizes)[files]
        most = self._blocks[self._at[files, None] + self._places(files, hashes), 1].max(axis=1)
        return np.asarray((most <= SMALL_BLOCK) | (most * 8 < whole))

    def _places(self, files: Int64s, hashes: form.U64) -> Int64s:
        """The block of each hash in each file, shape (files, hashes)."""
        blocks = form.nums_of_blocks(self._num_rows[files]).astype(np.uint64)
        return form.block_of(hashes, blocks[:, None])

    def _ask(self, files: Int64s, hashes: form.U64, reader: ListReader, may: Flags) -> int:
        """Clear `may` for the row groups of files that have none of the values. Returns how many files have none."""
        blocks = self._places(files, hashes)
        sizes = self._blocks[self._at[files, None] + blocks, 1].sum(axis=1)
        parts = np.searchsorted(np.cumsum(sizes), np.arange(READ, sizes.sum(), READ))
        gone = 0
        for some in np.split(np.arange(len(files)), np.unique(parts)):
            if len(some):
                gone += self._ask_some(files[some], blocks[some], hashes, reader, may)
        return gone

    def _ask_some(
        self,
        files: Int64s,
        blocks: Int64s,
        hashes: form.U64,
        reader: ListReader,
        may: Flags,
    ) -> int:
        """As `_ask`, of files whose blocks are in memory together. `blocks`: as `_places`."""
        # values in one block read it once
        pairs, which = np.unique(np.arange(len(files))[:, None] << 32 | blocks, return_inverse=True)
        of_pair = files[pairs >> 32]
        starts, sizes, entries, checksums = self._blocks[self._at[of_pair] + (pairs & 0xFFFFFFFF)].T
        behind = reader.table.sizes[of_pair] - (self._bodies[of_pair] + starts + sizes)
        data, spans = reader.read_ends(of_pair, sizes, behind)
        rows_of = self._row_bits[of_pair], self._num_rows[of_pair]
        asked = np.column_stack([spans[:, 0], spans[:, 1], entries, checksums, *rows_of])
        wrong = np.zeros(len(files), np.bool_)
        found = np.zeros(len(self._groups), np.bool_)  # files that have a value
        passing = []  # their row groups
        for place, number in zip(which.reshape(blocks.shape).T, hashes.tolist(), strict=True):
            counts, rows = (
                np.frombuffer(one, np.int64)
                for one in hash_blocks.find_in_each(data, asked[place], number)
            )
            wrong |= (counts < 0) | (spans[place, 1] != sizes[place])
            counts = np.maximum(counts, 0)
            found[files[counts > 0]] = True
            at = np.repeat(self._rows_before[self._firsts[files]], counts) + rows
            passing.append(np.searchsorted(self._rows_before, at, "right") - 1)
        self.unusable[files[wrong]] = True  # they are opened, and say what is wrong
        known = np.zeros(len(self._groups), np.bool_)
        known[files[~wrong]] = True
        may &= ~np.repeat(known, self._groups)
        may[np.concatenate(passing)] = True
        return int((known & ~found).sum())

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
        self.unusable[files[doubtful_entries(reader, entry_form, files, entries)]] = True
        there = (state == lists.SOUND) | (state == lists.FAR)
        files, offsets, lengths = files[there], entries[there, 1], entries[there, 2]
        blocks = form.nums_of_blocks(self._num_rows[files])
        sizes = PAYLOAD_HEAD_BYTES + form.bytes_of_directory(blocks)
        self.unusable[files[lengths < sizes]] = True
        parts, before = [self._blocks], len(self._blocks)
        owned = []  # files, where their blocks begin, and their bodies
        for count in np.unique(blocks).tolist():
            same = np.flatnonzero((blocks == count) & (lengths >= sizes))
            step = max(READ // (8 * form.bytes_of_directory(count)), 1)
            for i in range(0, len(same), step):
                some = same[i : i + step]
                made, sound = self._read_same(files[some], offsets[some], lengths[some], reader)
                own = files[some][sound]
                owned.append((own, before + np.arange(len(own)) * count, offsets[some][sound]))
                self.unusable[files[some][~sound]] = True
                before += len(made)
                parts.append(made)
        self._blocks = np.concatenate(parts)
        for own, at, offset in owned:  # once the blocks are there: a file with a body has some
            self._at[own], self._bodies[own] = at, offset + PAYLOAD_HEAD_BYTES
        table.hold(sum(part.nbytes for part in parts[1:]) // 4)

    def _read_same(
        self, files: Int64s, offsets: Int64s, lengths: Int64s, reader: ListReader
    ) -> tuple[Int64s, Flags]:
        """The blocks of files with the same number of them, one file after the other, and which directories are sound. `offsets`,
        `lengths`: of the indexes, with their heads.
        """
        table, num_rows = reader.table, self._num_rows[files]
        size = PAYLOAD_HEAD_BYTES + form.directory_bytes(int(num_rows[0]))
        behind = table.sizes[files] - offsets - size
        data, spans = reader.read_ends(files, np.full(len(files), size), behind)
        given = np.frombuffer(data, np.uint8).reshape(-1, size)
        bodies = lengths - PAYLOAD_HEAD_BYTES
        found = form.Directories(given[:, PAYLOAD_HEAD_BYTES:], num_rows, bodies)
        heads = b"".join(
            [MAGIC + bytes(4) + xxh64(reader.figures_of(k)).to_bytes(8, "little") for k in files.tolist()]
        )  # fmt: skip
        wanted = np.frombuffer(heads, np.uint8).reshape(-1, PAYLOAD_HEAD_BYTES)
        sound = (spans[:, 1] == size) & found.sound
        sound &= (given[:, :PAYLOAD_HEAD_BYTES] == wanted).all(axis=1)
        self._row_bits[files] = found.row_bits
        parts = found.starts, found.sizes, found.entries, found.checksums
        return np.stack([one[sound] for one in parts], axis=2).reshape(-1, 4), sound
