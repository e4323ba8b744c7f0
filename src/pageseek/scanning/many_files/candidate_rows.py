"""The rows of many files that may pass a test, as indexes of rows name them."""

from __future__ import annotations

import numpy as np

from pageseek._core import rows
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.scanning.many_files.footer_table import Flags

Int64s = npt.NDArray[np.int64]
MOST_ROWS = 1 << 18  # that are kept of the files of a table for a test, 8 bytes each
SHARE = 8  # rows are kept of files of which one row in so many may pass, or fewer


class CandidateRows(NamedTuple):
    """Rows of files that may pass a test. They are counted over all row groups of a table.

    Attributes
    ----------
    known : bool array
        Row groups of which no other rows pass. Of the others nothing is told.
    found : int64 array
        The rows, in order.
    before : int64 array
        The rows before each row group, and their sum.
    """

    known: Flags
    found: Int64s
    before: Int64s

    def of(self, row_group: int) -> rows.RowRanges | None:
        """The rows of a row group, counted from its first; None if nothing is told."""
        if not self.known[row_group]:
            return None
        begin, end = self.before[row_group : row_group + 2].tolist()
        low, high = np.searchsorted(self.found, (begin, end)).tolist()
        return rows.RowRanges.from_rows(self.found[low:high] - begin)


class CandidateCollector:
    """Collects the rows that indexes name, file by file, up to MOST_ROWS of them. Row groups of further files are read whole."""

    def __init__(self, before: Int64s, groups: Int64s) -> None:
        """`before`: the rows before each row group, and their sum. `groups`: the row groups of each file."""
        self._before, self._groups = before, groups
        self._num_rows = np.diff(before[np.append(0, np.cumsum(groups))])
        self._known: Flags = np.zeros(len(groups), np.bool_)
        self._parts: list[Int64s] = []
        self._left = MOST_ROWS

    def add(self, known: Flags, file: Int64s, found: Int64s) -> None:
        """Take the rows of files. `known`: whose indexes named all of their rows. `file`: of each row."""
        counts = np.bincount(file, minlength=len(known))
        few = known & (counts * SHARE <= self._num_rows)
        few &= np.cumsum(counts * few) <= self._left
        some = found[few[file]]
        self._left -= len(some)
        self._known |= few
        self._parts.append(some)

    def collected(self) -> CandidateRows:
        """What was collected."""
        found = np.unique(np.concatenate([np.zeros(0, np.int64), *self._parts]))
        return CandidateRows(np.repeat(self._known, self._groups), found, self._before)
