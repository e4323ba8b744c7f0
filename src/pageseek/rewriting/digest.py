"""A digest of rows that does not depend on their order: what was read is compared with what was written."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core.bloom import hashes, pieces
from pageseek.format.value_hashes import BYTES_FORM

UInt64s = npt.NDArray[np.uint64]
NULL = np.uint64(0x9E3779B97F4A7C15)
STEP = np.uint64(0xD1B54A32D192ED03)  # between the places of a list, and the columns of a row


class Digest:
    """Sums of the hashes of rows and of values.

    Attributes
    ----------
    rows : int
    nulls : list of int
        Of each column.
    sums : list of int
        Of each column, the sum of the hashes of its values, modulo 2**64.
    total : int
        The sum of the hashes of rows: values that change places between rows change it.
    """

    def __init__(self, schema: pa.Schema, in_order: bool = False) -> None:
        """`in_order`: rows that change places change `total`, too."""
        self._names = schema.names
        self._in_order = in_order
        self.rows = self.total = 0
        self.nulls = [0] * len(schema)
        self.sums = [0] * len(schema)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        whole = np.zeros(batch.num_rows, np.uint64)
        if self._in_order:
            whole += np.arange(self.rows, self.rows + batch.num_rows, dtype=np.uint64)
        for i, values in enumerate(batch.columns):
            found = hashes_of(values)
            self.nulls[i] += values.null_count
            self.sums[i] = (self.sums[i] + int(found.sum(dtype=np.uint64))) % 2**64
            whole = mixed(whole + found + STEP)
        self.total = (self.total + int(whole.sum(dtype=np.uint64))) % 2**64
        self.rows += batch.num_rows

    def add_all(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """The same batches, counted as they pass."""
        for batch in batches:
            self.add(batch)
            yield batch

    def difference(self, other: Digest) -> str | None:
        """What another digest has that this one has not, in a few words; None where they are equal."""
        if self.rows != other.rows:
            return f"{other.rows:,} rows in place of {self.rows:,}"
        for i, name in enumerate(self._names):
            if self.nulls[i] != other.nulls[i]:
                return f"column {name!r} has {other.nulls[i]:,} nulls in place of {self.nulls[i]:,}"
            if self.sums[i] != other.sums[i]:
                return f"column {name!r} has other values"
        return None if self.total == other.total else "the values of rows have changed places"


def mixed(values: UInt64s) -> UInt64s:
    """Each value with its bits mixed (splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def hashes_of(values: pa.Array) -> UInt64s:
    """A hash of each value, which may be null or nested. Values of the same bytes have the same hash."""
    if isinstance(values, pa.ExtensionArray):
        return hashes_of(values.storage)
    n = len(values)
    if n == 0 or values.null_count == n:
        return np.full(n, NULL)
    found = _of_any(values)
    if values.null_count:
        found = np.where(values.is_null().to_numpy(zero_copy_only=False), NULL, found)
    return found


def _of_any(values: pa.Array) -> UInt64s:
    """What lies at null places is hashed too, whatever it is."""
    t, kind = pa.types, values.type
    if t.is_dictionary(kind):
        codes = values.indices.fill_null(0).to_numpy(zero_copy_only=False)
        made: UInt64s = hashes_of(values.dictionary)[codes]
        return made
    if t.is_struct(kind):
        made = np.zeros(len(values), np.uint64)
        for i in range(kind.num_fields):
            made = mixed(made + hashes_of(values.field(i)) + STEP)
        return made
    if t.is_fixed_size_list(kind):
        size = kind.list_size
        first = values.offset * size
        inner = values.values[first : first + len(values) * size]
        ends = np.arange(len(values) + 1, dtype=np.int64) * size
        return _of_lists(hashes_of(inner), ends)
    if t.is_map(kind):
        ends = values.offsets.to_numpy().astype(np.int64)
        start, stop = ends[0], ends[-1]
        keys, items = values.keys[start:stop], values.items[start:stop]
        return _of_lists(mixed(hashes_of(keys) + STEP) + hashes_of(items), ends - start)
    if t.is_list_view(kind) or t.is_large_list_view(kind):
        return _of_any(values.cast(pa.large_list(kind.value_field)))
    if t.is_list(kind) or t.is_large_list(kind):
        ends = values.offsets.to_numpy().astype(np.int64)
        inner = values.values[ends[0] : ends[-1]]
        return _of_lists(hashes_of(inner), ends - ends[0])
    return _of_leaves(values)


def _of_lists(inner: UInt64s, ends: npt.NDArray[np.int64]) -> UInt64s:
    """The hashes of lists, from those of their elements. Elements that change places change it."""
    lengths = np.diff(ends)
    at = np.arange(inner.size, dtype=np.int64) - np.repeat(ends[:-1], lengths)
    placed = mixed(inner + at.astype(np.uint64) * STEP)
    sums = np.append(np.uint64(0), np.cumsum(placed, dtype=np.uint64))
    return mixed(sums[ends[1:]] - sums[ends[:-1]] + lengths.astype(np.uint64) * STEP)


def _of_leaves(values: pa.Array) -> UInt64s:
    t, kind = pa.types, values.type
    text = (
        t.is_string(kind), t.is_binary(kind), t.is_large_string(kind), t.is_large_binary(kind),
        t.is_string_view(kind), t.is_binary_view(kind),
    )  # fmt: skip
    if any(text):
        wide = values.cast(pa.large_binary())
        _, ends, data = wide.buffers()
        places = np.frombuffer(ends, np.int64)[wide.offset : wide.offset + len(wide) + 1]
        body = memoryview(data or b"")[places[0] : places[-1]]
        found = hashes(BYTES_FORM, (len(wide), body, (places - places[0]).tobytes()))
        return np.frombuffer(found, np.uint64)
    if t.is_boolean(kind):
        values = values.cast(pa.uint8())
    width = values.type.byte_width
    raw = values.buffers()[1]
    start = values.offset * width
    body = memoryview(raw or b"")[start : start + len(values) * width]
    return np.frombuffer(pieces(body, width, 0), np.uint64)
