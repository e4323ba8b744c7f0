"""Lists of kind `distinct` (docs/format.md) of many similar files, found without parsing JSON and kept as one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pageseek._core import lists
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.late_modules import npt
from pageseek.format.embedded import (
    KEY,
    PAYLOAD_HEAD_BYTES,
    EntryForm,
    InvalidIndexError,
    Pointer,
    opened,
)
from pageseek.format.value_list import KIND, VERSION
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.value_lists import ValueLists
from pageseek.scanning.many_files.batched_lists import ColumnLists, ListAnswer, ListReader
from pageseek.scanning.many_files.footer_table import KEYS, Flags, FooterTable
from pageseek.scanning.many_files.schema_group import SchemaGroup

Int64s = npt.NDArray[np.int64]


class DistinctLists(ColumnLists):
    """The lists that can be used, put to tests together."""

    footer_key = KEY

    def __init__(self, reader: ListReader) -> None:
        table = reader.table
        self._values: ValueLists | None = None
        self._num_groups = len(table.counts)
        self.unusable = np.zeros(len(table.members), np.bool_)
        found, data, sizes = self._bodies(reader)
        if not len(found):
            return
        table.hold(len(data))
        first, n = table.first[found], table.n[found]
        places = np.stack([np.cumsum(sizes) - sizes, sizes, n], axis=1)
        stops = np.cumsum(n)
        # the row groups that the lists are of: all of the first file, all of the second, and so on
        self._groups = np.arange(stops[-1]) + np.repeat(first - (stops - n), n)
        try:
            self._values = ValueLists(data, places, reader.leaf_type)
        except (CoreError, PageseekError, pa.ArrowException):
            self.unusable[found] = True
            return
        self.unusable[found] = ~self._values.sound

    @classmethod
    def present(cls, table: FooterTable, schema_group: SchemaGroup, test: BoundLeaf) -> Flags:
        """The files that have lists: other indexes are no reason to open a file."""
        return table.names([KIND])

    @staticmethod
    def takes(test: BoundLeaf) -> bool:
        """Whether the column of a test may have a list."""
        return not (test.leaf.group or test.leaf.max_rep or test.leaf_type.is_null)

    def evaluate(self, test: BoundLeaf) -> ListAnswer | None:
        """The proof of a test; row groups without a list may pass."""
        if self._values is None:
            return None
        answer, n = self._values.evaluate(test), self._num_groups
        may, must, exact = np.ones(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.bool_)
        may[self._groups] = np.frombuffer(answer.may, np.uint8)
        must[self._groups] = np.frombuffer(answer.must, np.uint8)
        exact[self._groups] = np.frombuffer(self._values.exact, np.bool_)
        return ListAnswer(may.tobytes(), must.tobytes(), exact)

    def _bodies(self, reader: ListReader) -> tuple[Int64s, bytes, Int64s]:
        """The files that have a list of the column, the bytes of these lists one behind the other, and their sizes."""
        table, batch = reader.table, reader.batch
        have = np.flatnonzero(table.has(KEY))
        entry_form = EntryForm([reader.leaf], KIND, VERSION)
        pairs = table.pairs[have, KEYS.index(KEY)]
        places = batch.spans(table.members[have])
        spans = np.stack([table.first[have], table.n[have]], axis=1)
        files = np.concatenate([pairs, places, spans], axis=1)
        entries = entry_form.find(table.data, batch.tails, reader.figures, files, reader.threads)
        state = entries[:, 0]
        self.unusable[have[state == lists.DOUBTFUL]] = True
        # where a body begins among the last bytes of all files
        starts = places[:, 0] + places[:, 1] - places[:, 2] + entries[:, 1]
        at_hand = state == lists.SOUND
        bodies = np.stack([starts, entries[:, 2]], axis=1)[at_hand] + (
            PAYLOAD_HEAD_BYTES,
            -PAYLOAD_HEAD_BYTES,
        )
        found, sizes, data = have[at_hand], bodies[:, 1], lists.cut(batch.tails, bodies)
        others: list[int] = []
        more: list[memoryview] = []
        for i in np.flatnonzero((state == lists.FAR) | (state == lists.UNREAD)).tolist():
            k = have.item(i)
            try:
                if state[i] == lists.FAR:
                    pointer: Pointer | None = entry_form.pointer(entries[i].tolist())
                else:
                    pointer = entry_form.parsed(table.value(k, KEY), int(places[i, 3]))
                if pointer is None:
                    continue
                body = reader.read(k, pointer.offset, pointer.length)
                more.append(opened(pointer, body, xxh64(reader.figures_of(k))))
                others.append(k)
            except (InvalidIndexError, OSError):
                self.unusable[k] = True
        if others:
            found = np.append(found, others)
            sizes = np.append(sizes, [body.nbytes for body in more])
            data = b"".join([data, *more])
        return found, data, sizes
