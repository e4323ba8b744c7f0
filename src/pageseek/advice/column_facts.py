"""What a sample tells of a column: how many different values, how they lie, and where the values of a filter stand."""

from __future__ import annotations

import datetime as dt
import decimal
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.advice.questions import EQUAL, Condition
from pageseek.base.late_modules import compute as pc

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class ColumnFacts:
    """Facts of one column of a sample.

    Attributes
    ----------
    ranks : int64 array
        For each row the place of its value among the different ones, in their order; -1 for null.
    seen : int
        Different values in the sample.
    distinct : float
        About those in all rows, by how many were seen in one run only (Haas and Stokes, 1998: the estimator Duj1, on runs).
    type : pyarrow.DataType
    value_bytes : float
        Bytes of a different value, on average.
    run : float
        Rows that lie side by side with equal values, on average.
    """

    def __init__(self, values: pa.Array, ends: I64, num_rows: int) -> None:
        """`values`: of the sampled rows. `ends`: of each block of them the row after its last. `num_rows`: of the whole."""
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        coded = values.dictionary_encode()
        order = pc.sort_indices(coded.dictionary)
        self.type: pa.DataType = values.type
        self.value_bytes = coded.dictionary.nbytes / max(len(order), 1)
        self._values = coded.dictionary.take(order)
        place = np.empty(len(order) + 1, np.int64)
        place[order.to_numpy()] = np.arange(len(order))
        place[-1] = -1
        codes = coded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)
        self.ranks: I64 = place[codes]
        self._ends = ends
        self.seen = len(order)
        n = len(self.ranks)
        fresh = np.ones(n, np.bool_)  # rows at which a run begins
        if n:
            fresh[1:] = self.ranks[1:] != self.ranks[:-1]
            fresh[ends[:-1][ends[:-1] < n]] = True
        runs = int(np.count_nonzero(fresh))
        self.run = n / max(runs, 1)
        counts = np.bincount(self.ranks[fresh & (self.ranks >= 0)], minlength=max(self.seen, 1))
        once, share = int(np.count_nonzero(counts == 1)), n / max(num_rows, 1)
        self.distinct = self.seen / max(1 - (1 - share) * once / max(runs, 1), 1e-9)
        self.distinct = min(max(self.distinct, self.seen), max(num_rows, 1))
        self._runs_of, self._num_rows = counts, num_rows

    def place(self, value: Any) -> tuple[int, int] | None:
        """The ranks from the first that is not less than a value to the first that is greater; None if it cannot be compared."""
        try:
            wanted = _scalar(value, self._values.type).as_py()
            key = lambda i: self._values[i].as_py()  # noqa: E731
            numbers = range(self.seen)
            return bisect_left(numbers, wanted, key=key), bisect_right(numbers, wanted, key=key)
        except (TypeError, ValueError, pa.ArrowException, OverflowError):
            return None

    def span(self, condition: Condition) -> list[tuple[int, int]] | None:
        """The half-open intervals of ranks that pass, a value that is absent as an empty one; None if that is not known."""
        if condition.kind == EQUAL:
            found = [self.place(value) for value in condition.values]
            return (
                None
                if any(one is None for one in found)
                else [one for one in found if one is not None]
            )
        low = (0, 0) if condition.low is None else self.place(condition.low)
        high = (self.seen, self.seen) if condition.high is None else self.place(condition.high)
        return None if low is None or high is None else [(low[0], high[1])]

    def overlapping(self, spans: list[tuple[int, int]], piece: int) -> Mask:
        """The rows in pieces of so many whose bounds do not rule out that some row passes: what a page index would leave."""
        n = len(self.ranks)
        if not n:
            return np.zeros(0, np.bool_)
        starts = [0]
        for stop in self._ends.tolist():
            starts += range(starts[-1] + piece, stop, piece) if stop - starts[-1] > piece else []
            if stop < n:
                starts.append(stop)
        at = np.unique(np.array(starts, np.int64))
        low = np.minimum.reduceat(np.where(self.ranks < 0, self.seen, self.ranks), at)
        high = np.maximum.reduceat(self.ranks, at)
        meets = np.zeros(len(at), np.bool_)
        for first, last in spans if len(spans) <= 1000 else _joined(spans):
            if last > first:
                meets |= (low < last) & (high >= first)
            else:  # an absent value lies between two others
                meets |= (low < first) & (high >= first)
        return np.repeat(meets, np.diff(np.append(at, n)))

    def width(self, piece: int) -> float:
        """The share of the other pieces' values that lie within the bounds of a piece: 1 for values in no order, near 0 for sorted."""
        n = len(self.ranks)
        if n <= piece:
            return 0.0
        at = np.arange(0, n, piece)
        low = np.minimum.reduceat(np.where(self.ranks < 0, self.seen, self.ranks), at)
        high = np.maximum.reduceat(self.ranks, at)
        below = np.append(
            np.cumsum(np.bincount(self.ranks[self.ranks >= 0], minlength=self.seen)), 0
        )
        inside = below[np.maximum(high, 0)] - np.where(low > 0, below[np.maximum(low - 1, -1)], 0)
        own = np.diff(np.append(at, n))
        return float(np.mean(np.clip((inside - own) / max(n - piece, 1), 0, 1)))

    def share_below(self, rank: int) -> float:
        """The share of the rows whose values have a smaller rank."""
        n = len(self.ranks)
        return float(np.count_nonzero((self.ranks < rank) & (self.ranks >= 0))) / n if n else 0.5

    def rows_of(self, first: int, last: int) -> float:
        """About the rows, in the whole, of a value with these ranks (`place`). One that was seen in few runs is taken to be like
        the others: the number of its runs is estimated with theirs as what is expected beforehand.
        """
        seen = int(self._runs_of[first:last].sum())
        runs, sampled = self._num_rows / self.run, len(self.ranks) / self.run
        share = sampled / max(runs, 1)
        if seen >= 8:
            return seen / share * self.run
        usual = max(runs / max(self.distinct, 1), 1e-9)
        return (seen + 1) / (share + 1 / usual) * self.run

    def rows_between(self, low: Any, high: Any, passed: int) -> float:
        """About the rows, in the whole, between two values, if so few of the sample pass."""
        n = len(self.ranks)
        usual = (passed + 0.5) * self._num_rows / max(n, 1)
        first, last = self.place(low), self.place(high)
        if self.width(max(n // 16, 1)) > 0.3 or first is None or last is None or passed:
            return usual
        # sorted, and between two blocks: their values tell how many rows lie between
        before, after = first[0] - 1, last[1]
        if before < 0 or after >= self.seen:
            return usual
        ends = [_number(self._values[i].as_py()) for i in (before, after)]
        wanted = [_number(_scalar(value, self._values.type).as_py()) for value in (low, high)]
        if None in ends or None in wanted or ends[1] == ends[0]:
            return usual
        gap = self._num_rows / max(len(self._ends), 1)
        return max(gap * (wanted[1] - wanted[0]) / (ends[1] - ends[0]), 1.0)  # type: ignore[operator]


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Many intervals as one: their values lie in most pieces that the first and the last enclose."""
    return [(min(first for first, _ in spans), max(max(last, first + 1) for first, last in spans))]


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    made = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    return made if made.type == kind else made.cast(kind)


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, int, float, decimal.Decimal)):
        return float(value)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC).timestamp()
    return float(value.toordinal()) if isinstance(value, dt.date) else None


def column_at(table: pa.Table, path: str) -> pa.Array | None:
    """The values at a dotted path of a table; None where it leads into a list or to no value that can be sorted."""
    names = table.schema.names
    name, *rest = [path] if path in names else path.split(".")
    if name not in names:
        return None
    column = table[name].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    for part in rest:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(part) < 0:
            return None
        column = pc.struct_field(column, part)
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    return None if pa.types.is_nested(column.type) or pa.types.is_null(column.type) else column
