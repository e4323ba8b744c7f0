"""Bloom filters of whole files (docs/format.md, kind `file_bloom`) of many similar files, read together and probed together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pageseek._core import lists
from pageseek.base.late_modules import npt
from pageseek.format import file_bloom_form as form
from pageseek.format.embedded import KEY, PAYLOAD_HEAD_BYTES, EntryForm
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.needed_hashes import has_built_form, needed_hashes
from pageseek.scanning.many_files.batched_lists import (
    ColumnLists,
    ListAnswer,
    ListReader,
    doubtful_entries,
)
from pageseek.scanning.many_files.footer_table import KEYS, Flags, FooterTable
from pageseek.scanning.many_files.schema_group import SchemaGroup

FILTERS = 32 << 20  # bytes of the ends of files in which the filters of one column lie
AT_ONCE = 1 << 22  # probes of one hash in one file that are made together
Int64s = npt.NDArray[np.int64]


class FileFilters(ColumnLists):
    """The filters that can be used, probed together."""

    only_denies = True

    def __init__(self, reader: ListReader) -> None:
        table = reader.table
        self._tree = reader.schema_group.tree
        self._counts_of_groups = table.n
        self.unusable = np.zeros(len(table.members), np.bool_)
        self._parts = list(self._read(reader))

    @classmethod
    def present(cls, table: FooterTable, schema_group: SchemaGroup, test: BoundLeaf) -> Flags:
        """The files that have filters."""
        return table.names([form.KIND])

    @staticmethod
    def takes(test: BoundLeaf) -> bool:
        """Whether rows need one of a few values."""
        if test.leaf.group or test.leaf.max_rep or test.leaf_type.is_null:
            return False
        hashes = needed_hashes(test)
        return hashes is not None and len(hashes) <= form.MOST_VALUES

    @staticmethod
    def leaves_out(test: BoundLeaf) -> bool:
        """Of groups of leaves, and of lists that are too long, no pruner proves more."""
        return bool(test.leaf.max_rep)

    def evaluate(self, test: BoundLeaf) -> ListAnswer | None:
        """The files that have none of the values."""
        hashes = needed_hashes(test)
        if hashes is None or not self._parts or not has_built_form(self._tree, test):
            return None
        may = np.ones(len(self._counts_of_groups), np.bool_)
        step = max(AT_ONCE // max(len(hashes), 1), 1)
        for filters in self._parts:
            for i in range(0, len(filters.files), step):
                some = slice(i, i + step)
                may[filters.files[some]] = filters.may_have(hashes, some)
        if may.all():
            return None
        of_groups = np.repeat(may, self._counts_of_groups)
        return ListAnswer(of_groups.tobytes(), bytes(len(of_groups)), None)

    def _read(self, reader: ListReader) -> Iterator[_Filters]:
        """The filters that were read with the footers, and those that are read now."""
        table, batch = reader.table, reader.batch
        have = np.flatnonzero(table.names([form.KIND]))
        entry_form = EntryForm([reader.leaf], form.KIND, form.VERSION)
        pairs = table.pairs[have, KEYS.index(KEY)]
        groups = np.stack([table.first[have], table.n[have]], axis=1)

        def filters(some: Int64s, tails: memoryview, ends: Int64s) -> tuple[_Filters, Int64s]:
            """Those of files whose entries are sound, and the entries of all."""
            files = np.concatenate([pairs[some], ends, groups[some]], axis=1)
            entries = entry_form.find(table.data, tails, reader.figures, files, reader.threads)
            own = entries[:, 0] == lists.SOUND
            at = ends[:, 0] + ends[:, 1] - ends[:, 2] + entries[:, 1] + PAYLOAD_HEAD_BYTES
            found = _Filters(tails, have[some[own]], at[own], entries[own, 2] - PAYLOAD_HEAD_BYTES)
            self.unusable[have[some[own]][~found.sound]] = True
            return found, entries

        every = np.arange(len(have))
        ends = batch.spans(table.members[have])
        near, entries = filters(every, batch.tails, ends)
        if len(near.files):
            table.hold(near.own_memory() // 4)
            yield near
        state = entries[:, 0]
        self.unusable[have[doubtful_entries(reader, entry_form, have, entries)]] = True
        far = every[state == lists.FAR]
        lengths = ends[far, 2] - entries[far, 1]
        n = int(np.searchsorted(np.cumsum(lengths), FILTERS, "right"))
        self.unusable[have[far[n:]]] = True  # they are read as their files are opened
        if n:
            tails, read = reader.read_ends(have[far[:n]], lengths[:n])
            found, again = filters(far[:n], tails, read)
            self.unusable[have[far[:n][again[:, 0] != lists.SOUND]]] = True
            table.hold(tails.nbytes // 4)
            yield found


class _Filters:
    """Filters that lie in one buffer.

    Attributes
    ----------
    files : int64 array
        The files whose filters can be used, by their numbers in the table.
    sound : bool array
        Which of those that were given can be.
    """

    def __init__(self, data: memoryview, files: Int64s, starts: Int64s, lengths: Int64s) -> None:
        """`starts`, `lengths`: where in the data bodies begin, and their bytes."""
        self._data = np.frombuffer(data, np.uint8)
        heads = np.zeros((len(files), 4), np.uint8)
        there = lengths >= form.HEAD.size
        heads[there] = self._data[starts[there, None] + np.arange(4)]
        blocks = heads.view("<u4")[:, 0].astype(np.int64)
        self.sound = there & (blocks > 0) & (form.body_bytes(blocks) == lengths)
        self.files, self._starts = files[self.sound], starts[self.sound]
        self._blocks = blocks[self.sound].astype(np.uint64)

    def own_memory(self) -> int:
        """Copy the filters out of a buffer that has much else. Returns the bytes that are held."""
        lengths = form.body_bytes(self._blocks.astype(np.int64))
        if 2 * int(lengths.sum()) < self._data.nbytes:
            data = lists.cut(self._data, np.stack([self._starts, lengths], axis=1))
            self._data, self._starts = np.frombuffer(data, np.uint8), np.cumsum(lengths) - lengths
        return self._data.nbytes

    def may_have(self, hashes: form.U64, some: slice) -> npt.NDArray[np.bool_]:
        """Whether some of the files may have one of the values."""
        blocks = form.block_of(hashes, self._blocks[some, None])
        at = self._starts[some, None] + form.block_place(blocks)
        words = form.blocks_at(self._data, at).view("<u4")
        wanted = form.words_of(hashes)
        found: npt.NDArray[np.bool_] = ((words & wanted) == wanted).all(axis=2).any(axis=1)
        return found
