"""Lookup indexes (docs/format.md, kinds `lookup` and `key_lookup`) of many similar files, of which one value reads a block each."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import ClassVar

import numpy as np

from pageseek._core import hash_blocks, lists
from pageseek._core.bloom import xxh64
from pageseek.base.late_modules import json, npt
from pageseek.base.records import NamedTuple
from pageseek.format import lookup_form as form
from pageseek.format.embedded import KEY, KEY_LOOKUP, MAGIC, PAYLOAD_HEAD_BYTES, EntryForm
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.needed_hashes import has_built_form, needed_hashes, needed_hashes_of_key
from pageseek.scanning.many_files.batched_lists import (
    ColumnLists,
    ListAnswer,
    ListReader,
    Question,
    doubtful_entries,
)
from pageseek.scanning.many_files.candidate_rows import CandidateCollector
from pageseek.scanning.many_files.footer_table import AT, KEYS, Flags, FooterTable
from pageseek.scanning.many_files.schema_group import SchemaGroup

MOST_VALUES = 4096  # of an IN: by mistake nearly every file has one of more
MOST_ROWS = 1 << 24  # of a file, whose directory is then 128 kB; files with more are few
READ = 16 << 20  # bytes that are read at a time
SMALL_BLOCKS = 128 << 10  # bytes of the blocks of a file that are read whatever the column has
DOUBT = 8  # larger ones are if the column has so many times their bytes
GAP = 32 << 10  # bytes between two blocks that are read with them: to open a file again costs more
SAMPLE = 16  # files that are asked first, if there are many
LEFT_OUT = 8  # the others are asked if one in so many of the sample is left out: to open one costs more than to ask as many
MOST_KEYS = 16  # of several columns, by which a filter is looked up
MOST_LISTED = 256  # of these that the files list
MOST_PAIRS = (
    1 << 20
)  # blocks that are looked up in all files together, each of some 100 bytes of memory
# the columns of an index, as `attach` writes its entry
_KEY_KIND = re.compile(rb'"kind"\s*:\s*"%s"' % KEY_LOOKUP.encode())
_KEY_ENTRY = re.compile(
    rb'"kind":"key_lookup","version":\d+,"offset":\d+,"length":\d+,"leaf":(\[(?:"(?:[^"\\]|\\.)*",?)+\])'
)
Int64s = npt.NDArray[np.int64]


class _Pairs(NamedTuple):
    """Blocks of files in which hashes are looked up, file by file. `start`, `size`, `entries`, `checksum`: of each block.
    `first_hash`, `num_hashes`: which of the hashes belong to it.
    """

    file: Int64s
    start: Int64s
    size: Int64s
    entries: Int64s
    checksum: Int64s
    first_hash: Int64s
    num_hashes: Int64s

    def of(self, some: Flags | slice) -> _Pairs:
        """Some of the blocks."""
        return _Pairs(*[one[some] for one in self])

    @property
    def begins_run(self) -> Flags:
        """Whether a block is the first of a run: those of a file that lie close together are one read."""
        gaps = self.start - np.append(0, (self.start + self.size)[:-1])
        return np.asarray((np.diff(self.file, prepend=-1) != 0) | (gaps > GAP))

    @property
    def bytes_read(self) -> Int64s:
        """The bytes of each block, with those between it and the one before in its run."""
        gaps = self.start - np.append(0, (self.start + self.size)[:-1])
        return self.size + np.where(self.begins_run, 0, gaps)


class _Found:
    """What indexes tell of some values.

    Attributes
    ----------
    may : bool array
        For each row group whether a row may have one.
    rows : CandidateCollector
        The rows that may.
    told, unpaid : bool array
        As in ListAnswer.
    """

    def __init__(self, lookups: FileLookups) -> None:
        n = len(lookups.groups)
        self.may = np.ones(lookups.groups.sum(), np.bool_)
        self.rows = CandidateCollector(lookups.rows_before, lookups.groups)
        self.told: Flags = np.zeros(n, np.bool_)
        self.unpaid: Flags = np.zeros(n, np.bool_)

    def add(self, lookups: FileLookups, of: Int64s, counts: Int64s, rows: Int64s) -> int:
        """Take the rows of files. `of`: the file of each block; `counts`: its rows, -1 if the block is wrong. Returns how many files have
        none.
        """
        n, before = len(lookups.groups), lookups.rows_before
        known, have = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        known[of] = True
        known[of[counts < 0]] = False
        have[of[counts > 0]] = True
        self.told |= known
        self.may &= ~np.repeat(known, lookups.groups)
        file = np.repeat(of, np.maximum(counts, 0))
        passing = before[lookups.firsts[file]] + rows
        self.may[np.searchsorted(before, passing, "right") - 1] = True
        self.rows.add(known, file, passing)
        return int((known & ~have).sum())


class FileLookups(ColumnLists):
    """The indexes of one column, or of one key, of which directories are kept, and blocks are read for each value."""

    on_demand = True
    kind: ClassVar[str] = form.KIND

    def __init__(self, reader: ListReader) -> None:
        table = reader.table
        n = len(table.members)
        self._tree, self.groups = reader.schema_group.tree, table.n
        self.firsts = table.first
        self.rows_before = np.concatenate([[0], np.cumsum(table.rows)])  # of each row group
        self._num_rows: Int64s = table.of_files(table.rows)
        self.unusable = np.zeros(n, np.bool_)
        self._beyond = table.huge | (self._num_rows == 0) | (self._num_rows > MOST_ROWS)
        # whose directories were not read yet
        self._left = table.names([self.kind]) & ~self._beyond
        self._bodies = np.zeros(n, np.int64)  # where in a file the body begins; 0 if it has none
        self._at = np.zeros(n, np.int64)  # where in `_blocks` its blocks begin
        self._row_bits = np.zeros(n, np.int64)
        # of each block: where in the body it begins, its bytes, its entries and its checksum
        self._blocks = np.zeros((0, 4), np.int64)
        self._lock = threading.Lock()

    @classmethod
    def present(cls, table: FooterTable, schema_group: SchemaGroup, test: BoundLeaf) -> Flags:
        """The files that have indexes."""
        return table.names([cls.kind])

    @staticmethod
    def takes(test: BoundLeaf) -> bool:
        """Whether rows need one of some values."""
        if test.leaf.group or test.leaf.max_rep or test.leaf_type.is_null:
            return False
        hashes = needed_hashes(test)
        return hashes is not None and 0 < len(hashes) <= MOST_VALUES

    @classmethod
    def complete(
        cls, table: FooterTable, schema_group: SchemaGroup, questions: Sequence[Question]
    ) -> tuple[bool, bool]:
        """As ColumnLists has it. Rows are told of tests that every row has to pass. Of more values than are asked together
        nearly every file has one, if only by mistake.
        """
        asked = [test for question in questions for test in question if schema_group.requires(test)]
        left = [
            len(hashes)
            for test, hashes in _hashed(schema_group, schema_group.tests)
            if not any(test is one for one in asked)
        ]
        return not left, all(n > MOST_VALUES for n in left)

    def ask(
        self, question: Question, needed: Flags, reader: Callable[[], ListReader]
    ) -> ListAnswer | None:
        """The row groups of the files that are `needed` in which no row has one of the values, and the rows of the others that may."""
        hashes = _hashes(question)
        if hashes is None or not all(has_built_form(self._tree, test) for test in question):
            return None
        reading = reader()
        with self._lock:
            missing = np.flatnonzero(needed & self._left)
            if len(missing):
                self._load(missing, reading)
        files = np.flatnonzero(needed & (self._bodies > 0) & ~self.unusable)
        if np.minimum(form.nums_of_blocks(self._num_rows[files]), len(hashes)).sum() > MOST_PAIRS:
            return None
        pairs = self._pairs(files, hashes)
        found = _Found(self)
        pays = self._pays(pairs, reading)
        # those without an index as `attach` writes it may have another one, of which only the open file says why it is of no use
        found.unpaid |= needed & ~self._beyond & ((self._bodies == 0) | ~pays) & ~self.unusable
        pairs = pairs.of(pays[pairs.file])
        files = pairs.file[np.diff(pairs.file, prepend=-1) != 0]
        sample = np.zeros(len(self.groups), np.bool_)
        sample[files[:: max(len(files) // SAMPLE, 1)]] = True
        of_sample = sample[pairs.file]
        gone = self._ask(pairs.of(of_sample), hashes, reading, found)
        # of a value that most files have, the others would be asked for nothing
        if gone * LEFT_OUT >= sample.sum():
            self._ask(pairs.of(~of_sample), hashes, reading, found)
        else:
            found.unpaid[files] = True
        found.unpaid &= ~self.unusable
        may = found.may.tobytes()
        rows = found.rows.collected()
        return ListAnswer(may, bytes(len(may)), None, rows, found.told, found.unpaid | found.told)

    def _pairs(self, files: Int64s, hashes: form.U64) -> _Pairs:
        """The blocks of files to which hashes belong."""
        num_blocks = form.nums_of_blocks(self._num_rows[files])
        order = np.argsort(num_blocks, kind="stable")
        counts, begins = np.unique(num_blocks[order], return_index=True)
        made = [np.zeros((0, 4), np.int64)]
        ends = np.append(begins, len(order))[1:]
        for count, begin, end in zip(counts.tolist(), begins.tolist(), ends.tolist(), strict=True):
            some = order[begin:end]
            of_each = form.block_of(hashes, count)  # in order, as the hashes are
            first = np.flatnonzero(np.diff(of_each, prepend=-1))
            asked = np.stack([of_each[first], first, np.diff(first, append=len(hashes))], axis=1)
            of_file = np.repeat(files[some], len(first))
            made.append(np.column_stack([of_file, np.tile(asked, (len(some), 1))]))
        file, block, first, count = np.concatenate(made).T
        start, size, entries, checksum = self._blocks[self._at[file] + block].T
        return _Pairs(file, start, size, entries, checksum, first, count)

    def _pays(self, pairs: _Pairs, reader: ListReader) -> Flags:
        """Of which files the blocks are small, or small beside the columns."""
        table, at = reader.table, AT["total_compressed_size"]
        columns = [reader.schema_group.column[leaf.index] for leaf in reader.leaves]
        whole = table.of_files(table.chunks[:, columns, at].sum(axis=1))
        size = np.bincount(pairs.file, pairs.bytes_read, len(whole))
        return np.asarray((size <= SMALL_BLOCKS) | (size * DOUBT < whole))

    def _ask(self, pairs: _Pairs, hashes: form.U64, reader: ListReader, found: _Found) -> int:
        """Find the rows of the values. Returns how many files have none."""
        firsts = np.flatnonzero(np.diff(pairs.file, prepend=-1))
        ends = np.cumsum(pairs.bytes_read)
        whole = int(ends[-1]) if len(ends) else 0
        parts = np.searchsorted(ends[firsts], np.arange(READ, whole, READ))
        marks = np.unique(np.append(firsts, len(ends))[np.append(parts, [0, len(firsts)])]).tolist()
        gone = 0
        for begin, end in pairwise(marks):
            gone += self._ask_some(pairs.of(slice(begin, end)), hashes, reader, found)
        return gone

    def _ask_some(self, pairs: _Pairs, hashes: form.U64, reader: ListReader, found: _Found) -> int:
        """As `_ask`, of files whose blocks are in memory together."""
        of = pairs.file
        stops, far = pairs.start + pairs.size, pairs.begins_run
        firsts, run = np.flatnonzero(far), np.cumsum(far) - 1
        lasts = np.append(firsts[1:], len(of)) - 1
        sizes = stops[lasts] - pairs.start[firsts]
        behind = reader.table.sizes[of[firsts]] - (self._bodies[of[firsts]] + stops[lasts])
        data, spans = reader.read_ends(of[firsts], sizes, behind)
        at = spans[run, 0] + pairs.start - pairs.start[firsts][run]
        size = np.where(
            spans[run, 1] == sizes[run], pairs.size, 0
        )  # of a file that was replaced nothing
        asked = np.column_stack(
            [at * (size > 0), size, pairs.entries, pairs.checksum, self._row_bits[of], self._num_rows[of], pairs.first_hash, pairs.num_hashes]
        )  # fmt: skip
        counts, rows = (
            np.frombuffer(one, np.int64) for one in hash_blocks.find_in_each(data, asked, hashes)
        )
        self.unusable[of[counts < 0]] = True  # they are opened, and say what is wrong
        return found.add(self, of, counts, rows)

    def _load(self, files: Int64s, reader: ListReader) -> None:
        """Read the directories of some files."""
        table, batch = reader.table, reader.batch
        self._left[files] = False
        entry_form = EntryForm(reader.leaves, self.kind, form.VERSION)
        ends = batch.spans(table.members[files])
        pairs = table.pairs[files, KEYS.index(KEY)]
        asked = np.concatenate([pairs, ends, reader.places_of_figures[files]], axis=1)
        entries = entry_form.find(table.data, batch.tails, reader.figures, asked, reader.threads)
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


class FileKeyLookups(FileLookups):
    """The indexes of several columns as one key."""

    kind = KEY_LOOKUP

    @classmethod
    def questions(cls, table: FooterTable, schema_group: SchemaGroup) -> list[Question]:
        """For each key of the files a test of each of its columns that every row has to pass; keys of the most columns first."""
        tests: dict[str, BoundLeaf] = {}
        for test in schema_group.required:
            if cls.takes(test):
                tests.setdefault(test.leaf.name, test)
        made: list[Question] = []
        for names in _keys(table).names if len(tests) > 1 else ():
            question = tuple([tests[name] for name in names if name in tests])
            if len(question) == len(names) and _hashes(question) is not None:
                made.append(question)
        return sorted(made, key=len, reverse=True)[:MOST_KEYS]

    @classmethod
    def complete(
        cls, table: FooterTable, schema_group: SchemaGroup, questions: Sequence[Question]
    ) -> tuple[bool, bool]:
        """As ColumnLists has it. No key is asked of which a column is not tested."""
        tested = [test.leaf.name for test, _ in _hashed(schema_group, schema_group.required)]
        names = {*tested}
        if len(names) < 2:
            return True, True
        keys = _keys(table)
        usable = sum(names.issuperset(key) for key in keys.names)
        whole = usable == len(questions) and len(names) == len(tested)
        return keys.all_known and whole, keys.all_known


def _hashed(
    schema_group: SchemaGroup, tests: Sequence[BoundLeaf]
) -> Iterator[tuple[BoundLeaf, form.U64]]:
    """The tests of which a pruner looks up values, with the hashes of these."""
    for test in tests:
        if not (test.leaf.group or test.leaf.max_rep or test.leaf_type.is_null):
            hashes = needed_hashes(test)
            if hashes is not None and has_built_form(schema_group.tree, test):
                yield test, hashes


def _hashes(question: Question) -> form.U64 | None:
    """The hashes of the values, or of the keys, of which a row needs one, in order; None if there are too many."""
    of_each = [needed_hashes(test) for test in question]
    num_keys = math.prod([0 if one is None else len(one) for one in of_each])
    if not 0 < num_keys <= MOST_VALUES:
        return None
    return of_each[0] if len(question) == 1 else needed_hashes_of_key(question)


class _Keys(NamedTuple):
    """The names of the columns of the keys of some files, and whether these are all keys of these files."""

    names: list[tuple[str, ...]]
    all_known: bool


def _keys(table: FooterTable) -> _Keys:
    """The keys that directories of the files list in the form in which `attach` writes them."""
    known: _Keys | None = table.lists.get(_keys)
    if known is None:
        listed = table.directories(np.flatnonzero(table.names([KEY_LOOKUP])))[0]
        found = _KEY_ENTRY.findall(listed)
        each, made = sorted({*found}), []
        for text in each[:MOST_LISTED]:
            with suppress(ValueError):  # of names that are no text
                names = tuple(json.loads(text))
                if len({*names}) == len(names) > 1:
                    made.append(names)
        all_known = len(_KEY_KIND.findall(listed)) == len(found) and len(made) == len(each)
        known = table.lists[_keys] = _Keys(made, all_known)
    return known
