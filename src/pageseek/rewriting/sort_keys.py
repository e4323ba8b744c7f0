"""Rows compared by key columns: sorted, cut at bounds, checked.

The order is that of pyarrow's `sort_indices`: values, then NaN, then nulls, in either direction. It is total but for rows that tie, and
these keep the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import UnsupportedError

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
VALUE, NAN, NULL = 0, 1, 2  # what comes first


def sortable_type(kind: pa.DataType, name: str) -> pa.DataType:
    """The type by which values of a column are compared.

    Raises
    ------
    UnsupportedError
        Values of this type have no order.
    """
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return sortable_type(kind.storage_type, name)
    if t.is_dictionary(kind):
        return sortable_type(kind.value_type, name)
    if t.is_null(kind):
        return pa.int8()
    if t.is_temporal(kind) and not t.is_interval(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if t.is_float16(kind):
        return pa.float32()
    if t.is_string_view(kind) or t.is_binary_view(kind):
        return pa.large_binary()
    if t.is_decimal(kind):
        wide = pa.decimal256 if kind.bit_width == 256 else pa.decimal128
        return wide(kind.precision, kind.scale)
    plain = (
        t.is_integer(kind), t.is_floating(kind), t.is_boolean(kind), t.is_fixed_size_binary(kind),
        t.is_string(kind), t.is_large_string(kind), t.is_binary(kind), t.is_large_binary(kind),
    )  # fmt: skip
    if any(plain):
        return kind
    raise UnsupportedError(
        f"column {name!r} is {kind}, which has no order to sort or cluster by: name a column of numbers, times, text, binary or booleans"
    )


def sortable(values: pa.Array, name: str) -> pa.Array:
    """Values in the type by which they are compared."""
    kind = sortable_type(values.type, name)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values if values.type == kind else values.cast(kind)


class SortKeys:
    """How rows of keys compare. The columns of keys are called "0", "1" and so on.

    Parameters
    ----------
    descending : sequence of bool
        For each column, whether its greatest value comes first. NaN and nulls come last anyway.
    """

    def __init__(self, descending: Sequence[bool]) -> None:
        self._descending = tuple(descending)
        self._sort_keys = [
            (str(i), "descending" if down else "ascending")
            for i, down in enumerate(self._descending)
        ]

    def sorted(self, keys: pa.RecordBatch) -> pa.Array:
        """The rows in order, as indices; those that tie in the order that they have. pyarrow puts NaN and nulls last by default."""
        if keys.num_columns == 1:  # quicker than as a batch
            way = self._sort_keys[0][1]
            return pc.array_sort_indices(keys.column(0), order=way)
        return pc.sort_indices(keys, sort_keys=self._sort_keys)

    def cut(self, keys: pa.RecordBatch, bounds: pa.RecordBatch) -> tuple[pa.Array, Int64s]:
        """The rows in order, and the parts that bounds cut them into.

        Parameters
        ----------
        keys : RecordBatch of n rows
        bounds : RecordBatch of m rows
            Different rows of keys, in order.

        Returns
        -------
        indices : integer array of shape (n,)
        ends : int64 array of shape (2 m + 1,)
            Part 2 i has the rows before bound i (the last part those behind all bounds), part 2 i + 1 the rows that tie with it. Part p ends
            before place `ends[p]` of the indices.
        """
        m, n = bounds.num_rows, keys.num_rows
        both = pa.concat_batches(
            [bounds, keys, bounds]
        )  # one copy before rows that tie, one behind
        order = self.sorted(both).to_numpy()
        is_bound = (order < m) | (order >= m + n)
        places = np.flatnonzero(is_bound)
        ends = np.append(places - np.arange(2 * m), n).astype(np.int64)
        return pa.array(order[~is_bound] - np.uint64(m)), ends

    def compared(self, one: pa.RecordBatch, other: pa.RecordBatch) -> tuple[Mask, Mask]:
        """Row by row of two batches of the same length: whether `one` comes behind `other`, and whether they tie."""
        behind = np.zeros(one.num_rows, bool)
        tie = np.ones(one.num_rows, bool)
        for i, down in enumerate(self._descending):
            a, b = one.column(i), other.column(i)
            of_a, of_b = _classes(a), _classes(b)
            greater = pc.less(a, b) if down else pc.greater(a, b)
            values = (of_a == VALUE) & (of_b == VALUE)
            more = np.where(values, _mask(greater), of_a > of_b)
            same = np.where(values, _mask(pc.equal(a, b)), of_a == of_b)
            behind |= tie & more
            tie &= same
        return behind, tie

    def disorder(self, keys: pa.RecordBatch) -> int | None:
        """The first row that ought to come before the row in front of it; None where all are in order."""
        if keys.num_rows < 2:
            return None
        behind, _ = self.compared(keys[:-1], keys[1:])
        found = np.flatnonzero(behind)
        return int(found[0]) + 1 if found.size else None

    def distinct(self, keys: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s]:
        """The different rows of keys in order, and how often each is there. `keys`: in order."""
        n = keys.num_rows
        if n == 0:
            return keys, np.zeros(0, np.int64)
        _, tie = self.compared(keys[:-1], keys[1:])
        first = np.flatnonzero(np.append(True, ~tie))
        return keys.take(pa.array(first)), np.diff(np.append(first, n))


def _mask(found: pa.BooleanArray) -> Mask:
    made: Mask = found.fill_null(False).to_numpy(zero_copy_only=False)
    return made


def _classes(values: pa.Array) -> npt.NDArray[np.int8]:
    made = np.where(_mask(values.is_null()), NULL, VALUE).astype(np.int8)
    if pa.types.is_floating(values.type):
        made[_mask(pc.is_nan(values))] = NAN
    return made
