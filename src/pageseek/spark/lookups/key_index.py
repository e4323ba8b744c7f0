"""The keys of a lookup as an index that finds the rows of equal keys.

It is built once and asked for many batches of rows, so that what a batch costs depends on its rows, and little on the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pageseek._core import build
from pageseek.format.types import K_BYTES, K_FIXED
from pageseek.spark.lookups.lookup_keys import comparable

Indexes = npt.NDArray[np.int64]
MOST_PAIRS = 1 << 17


class KeyIndex:
    """Finds the keys that equal rows. Equal keys have one code, which is less than the number of keys.

    Parameters
    ----------
    keys : sequence of pyarrow.Array
        The columns of the keys, in wire types, without nulls.
    """

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        self._values: list[_Values] = []
        # the codes of the columns before with the codes of each further column
        self._pairs: list[_Table] = []
        codes = np.zeros(len(keys[0]), np.int64)
        for i, column in enumerate(map(comparable, keys)):
            values = _Values(column)
            self._values.append(values)
            own = values.codes(column)
            if i == 0:
                codes = own
                continue
            codes = codes * len(values) + own
            self._pairs.append(_Table(codes))
            codes = self._pairs[-1].places(codes)
        counts = np.bincount(codes, minlength=1)
        self._order = np.argsort(codes)
        self._counts, self._starts = counts, np.cumsum(counts) - counts

    def codes(self, columns: Sequence[pa.Array]) -> Indexes:
        """The code of the key that equals each row; -1 where there is none."""
        codes = np.zeros(len(columns[0]), np.int64)
        for i, (column, values) in enumerate(
            zip(map(comparable, columns), self._values, strict=True)
        ):
            own = values.codes(column)
            if i == 0:
                codes = own
                continue
            rows = np.flatnonzero((codes >= 0) & (own >= 0))
            both = codes[rows] * len(values) + own[rows]
            codes = np.full(len(own), -1, np.int64)
            codes[rows] = self._pairs[i - 1].places(both)
        return codes

    def pairs(self, codes: Indexes) -> Iterator[tuple[Indexes, Indexes]]:
        """Each row with each key that equals it: the places of the rows, and of the keys.

        They come in pieces of about MOST_PAIRS, or of one row: many rows may have a key that occurs many times.
        """
        rows = np.flatnonzero(codes >= 0)
        counts = self._counts[codes[rows]]
        piece = np.cumsum(counts) // MOST_PAIRS
        ends = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(rows)]
        for start, stop in pairwise(ends):
            mine, times = rows[start:stop], counts[start:stop]
            within = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
            first = np.repeat(self._starts[codes[mine]], times)
            yield np.repeat(mine, times), self._order[first + within]


class _Values:
    """A column of keys that finds the first of the keys that equal a value. An integer is its own hash."""

    def __init__(self, column: pa.Array) -> None:
        self._table = _Table(hashes_of(column))
        is_hash = pa.types.is_int64(column.type)
        self._keys = None if is_hash else column.take(pa.array(self._table.order))

    def __len__(self) -> int:
        return len(self._table.order)

    def codes(self, column: pa.Array) -> Indexes:
        """The place in the table of the key that equals each row; -1 where there is none."""
        if column.null_count:
            rows = np.flatnonzero(np.asarray(column.is_valid()))
            codes = np.full(len(column), -1, np.int64)
            codes[rows] = self.codes(column.drop_null())
            return codes
        codes = self._table.places(hashes_of(column))
        if self._keys is None:
            return codes
        rows = np.flatnonzero(codes >= 0)
        while len(rows):  # again where another key has the hash
            keys = self._keys.take(pa.array(codes[rows]))
            others = pc.not_equal(keys, column.take(pa.array(rows)))
            rows = rows[np.asarray(others)]
            codes[rows] = self._table.next_places(codes[rows])
            rows = rows[codes[rows] >= 0]
        return codes


class _Table:
    """A table that finds 64-bit integers, in buckets by their upper bits once they are mixed.

    `order`: the order that the table gives them. A mixed integer tells which it was, as the factor is odd.
    """

    _FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 / the golden ratio, which spreads sequences
    _STEPS = 8

    def __init__(self, numbers: Indexes) -> None:
        mixed = numbers.view(np.uint64) * self._FACTOR
        self.order = np.argsort(mixed)
        self._mixed = mixed[self.order]
        bits = len(numbers).bit_length() + 1
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((self._mixed >> self._shift).view(np.int64), minlength=1 << bits)
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def places(self, numbers: Indexes) -> Indexes:
        """Where the first of equal ones is in the table, for each number; -1 where there is none."""
        found = np.full(len(numbers), -1, np.int64)
        sought = numbers.view(np.uint64) * self._FACTOR
        bucket = (sought >> self._shift).view(np.int64)
        at, end = self._starts[bucket], self._starts[bucket + 1]
        rows = np.flatnonzero(at < end)
        at, end, sought = at[rows], end[rows], sought[rows]
        for _ in range(self._STEPS):
            same = self._mixed[at] == sought
            found[rows[same]] = at[same]
            at += 1
            rest = np.flatnonzero(~same & (at < end))
            if not len(rest):
                return found
            rows, at, end, sought = rows[rest], at[rest], end[rest], sought[rest]
        places = np.searchsorted(
            self._mixed, sought
        )  # in full buckets, as of a key that occurs often
        places[places == len(self._mixed)] = 0
        found[rows] = np.where(self._mixed[places] == sought, places, -1)
        return found

    def next_places(self, places: Indexes) -> Indexes:
        """The place behind each one if the same number is there, else -1."""
        after = np.minimum(places + 1, len(self._mixed) - 1)
        same = (after > places) & (self._mixed[after] == self._mixed[places])
        return np.where(same, after, -1)


def hashes_of(column: pa.Array) -> Indexes:
    """A hash of each value of a column of a type that `comparable` gives, without nulls."""
    if pa.types.is_int64(column.type):
        values: Indexes = column.to_numpy()
        return values
    if pa.types.is_binary(column.type):
        _, offsets, data = column.buffers()
        ends = memoryview(offsets or bytes(4))[4 * column.offset :]
        found = build.hashes(K_BYTES, 0, (len(column), None, ends, data or b""))
    else:
        width = column.type.bit_width // 8
        data = memoryview(column.buffers()[1] or b"")[width * column.offset :]
        found = build.hashes(K_FIXED, width, (len(column), None, None, data))
    return np.frombuffer(found, np.int64)
