"""Builds a `key_lookup` index: the hashes of several columns, which are read one after the other, joined row by row."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
import numpy.typing as npt

from pageseek.base.records import NamedTuple
from pageseek.format.lookup_form import U64
from pageseek.format.value_hashes import hashes_of_key
from pageseek.index.lookup_builder import LookupBuilder, known_hashes
from pageseek.index.spilled import SpillingBuilder
from pageseek.prune.kind import IndexedColumn, NotBuiltError, PageValues


class RowHashes(NamedTuple):
    """For each row of a row group the hash of a value, and whether it has one: null and NaN have none."""

    hashes: U64
    known: npt.NDArray[np.bool_]


class KeyBuilder:
    """Builds one index. `members`: builders of the columns, each of which takes the pages of one."""

    def __init__(self, columns: Sequence[IndexedColumn]) -> None:
        self._lookup = LookupBuilder(columns[0])
        self._num_groups = columns[0].num_row_groups - columns[0].group_rows.count(0)
        self._waiting: dict[int, dict[int, RowHashes]] = {}  # by row group and column
        self._done = 0
        self.members = [KeyMember(self, i, column) for i, column in enumerate(columns)]

    @property
    def nbytes(self) -> int:
        """The bytes that are held in memory."""
        waiting = [one.hashes.nbytes for some in self._waiting.values() for one in some.values()]
        return self._lookup.nbytes + sum(waiting)

    def spill(self) -> None:
        """Let go of the entries that are held in memory: they wait in a file."""
        self._lookup.spill()

    def take(self, position: int, row_group: int, part: RowHashes) -> None:
        """Take a column of a row group. NotBuiltError: a key has very many rows."""
        waiting = self._waiting.setdefault(row_group, {})
        waiting[position] = part
        if len(waiting) < len(self.members):
            return
        del self._waiting[row_group]
        parts = [waiting[i] for i in range(len(self.members))]
        rows = np.flatnonzero(np.logical_and.reduce([one.known for one in parts]))
        hashes = hashes_of_key(np.stack([one.hashes[rows] for one in parts], axis=1))
        self._lookup.add(row_group, self._lookup.entries(hashes, rows))
        self._done += 1

    def finish(self) -> bytearray:
        """The body of the index. NotBuiltError: there are too many rows, or a column has no hashes."""
        if self._done < self._num_groups:
            raise NotBuiltError("one of its columns cannot be indexed")
        return self._lookup.finish()


class KeyMember(SpillingBuilder):
    """The builder of one column of a key."""

    def __init__(self, owner: KeyBuilder, position: int, column: IndexedColumn) -> None:
        self.owner, self._position = owner, position
        self._group_rows = column.group_rows

    @property
    def nbytes(self) -> int:
        """The bytes of the whole index in memory, which the first column counts."""
        return 0 if self._position else self.owner.nbytes

    def spill(self) -> None:
        """Let go of the entries of the index that are held in memory."""
        if not self._position:
            self.owner.spill()

    def collect(self) -> Generator[None, PageValues | None, RowHashes]:
        """The hashes of a row group."""
        hashes, known = [np.empty(0, np.uint64)], [np.empty(0, np.bool_)]
        while (page := (yield)) is not None:
            found, there = known_hashes(page.values)
            made = np.zeros(len(there), np.uint64)
            made[there] = found
            hashes.append(made)
            known.append(there)
        return RowHashes(np.concatenate(hashes), np.concatenate(known))

    def add(self, row_group: int, part: RowHashes) -> None:
        """Hand the hashes of a row group to the index. NotBuiltError: a key has very many rows."""
        self.owner.take(self._position, row_group, part)

    def finish(self) -> bytearray:
        """The body of the whole index. NotBuiltError: there is none."""
        return self.owner.finish()
