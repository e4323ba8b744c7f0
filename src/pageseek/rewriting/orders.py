"""The orders in which rows may be written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.rewriting import curve
from pageseek.rewriting.sort_keys import SortKeys, sortable

LEVEL_BITS = 15  # of the place of a value among those of its column
PLACE_BITS = 62  # of the place of a row on a curve


class Order(ABC):
    """An order of rows by some of their columns.

    Attributes
    ----------
    columns : tuple of str
        The columns that decide.
    keys_of : SortKeys
        How the keys of rows compare.
    """

    columns: tuple[str, ...]
    sort_keys: SortKeys

    @abstractmethod
    def keys(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows, which have the columns at least."""

    def named(self, sample: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of a sample as they compare, in one batch with the names "0", "1" and so on."""
        made = [sortable(sample.column(name), name) for name in self.columns]
        return pa.RecordBatch.from_arrays(made, [str(i) for i in range(len(made))])


class ByColumns(Order):
    """Sorted by the first column, rows that tie by the second, and so on."""

    def __init__(self, columns: Sequence[tuple[str, bool]]) -> None:
        """`columns`: names, and whether descending."""
        self.columns = tuple(name for name, _ in columns)
        self.sort_keys = SortKeys([down for _, down in columns])

    def keys(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows: the columns themselves."""
        return self.named(rows)


class OnCurve(Order):
    """Along Hilbert's curve through the places of values among those of their columns.

    A value counts by the share of rows in front of it, as a sample of the rows tells: each half of a column has half of its rows, however
    skewed the values are. Nulls come last.
    """

    def __init__(self, columns: Sequence[str], sample: pa.RecordBatch) -> None:
        """`sample`: rows of the file, with the columns at least."""
        self.columns = tuple(columns)
        self.sort_keys = SortKeys([False])
        self._each = SortKeys([False])
        self._bits = min(LEVEL_BITS, PLACE_BITS // len(self.columns))
        self._levels = []
        for values in self.named(sample).columns:
            one = pa.RecordBatch.from_arrays([values], ["0"])
            found, counts = self._each.distinct(one.take(self._each.sorted(one)))
            self._levels.append((found, self._places(counts)))

    def _places(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """For each number of values of the sample that are not above a value: its coordinate."""
        middle = np.cumsum(counts) - counts / 2
        scale = (1 << self._bits) / max(float(counts.sum()), 1.0)
        most = (1 << self._bits) - 1
        made: npt.NDArray[np.uint32]
        made = np.minimum(np.append(0.0, middle * scale), most).astype(np.uint32)
        return made

    def keys(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows: one column of places on the curve."""
        points = []
        for values, (known, coordinates) in zip(
            self.named(rows).columns, self._levels, strict=True
        ):
            order, ends = self._each.cut(pa.RecordBatch.from_arrays([values], ["0"]), known)
            sizes = np.diff(np.append(0, ends))
            # part 2 i lies before value i of the sample, part 2 i + 1 at it
            parts = np.repeat((np.arange(sizes.size) + 1) // 2, sizes)
            point = np.empty(rows.num_rows, np.uint32)
            point[order.to_numpy()] = coordinates[parts]
            points.append(point)
        places = curve.places(points, self._bits)
        return pa.RecordBatch.from_arrays([pa.array(places.view(np.int64))], ["0"])
