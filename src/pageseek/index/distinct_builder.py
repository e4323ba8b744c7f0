"""The distinct values of a column, gathered chunk by chunk and joined for the file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.arrays import booleans
from pageseek.base.records import NamedTuple
from pageseek.format.schema import Leaf
from pageseek.format.value_list import COMPLETE, NANS, NULLS, Distinct
from pageseek.index.bloom_builder import is_half
from pageseek.index.page_reader import Page, physical_of
from pageseek.prune.kind import IndexedColumn

MAX_VALUES = 1 << 16  # values of a list
MAX_LIST_BYTES = 4 << 20  # bytes of the values of a list
BATCH, HELD = (
    1 << 16,
    4 << 20,
)  # values, and their bytes, that are made distinct at a time, at least
_Bits = npt.NDArray[np.uint8]


def type_of(leaf: Leaf) -> pa.DataType:
    """The Arrow type whose buffers have the bytes of the file."""
    found = physical_of(leaf)
    assert found is not None
    return found.arrow


def stored(page: Page, kind: pa.DataType) -> pa.Array:
    """The values of a page with the bytes of the file. `kind`: as of `type_of`."""
    values = page.values
    assert values is not None
    buffers = [values.validity, values.offsets, values.data]
    if values.offsets is None:
        del buffers[1]
    held = [None if part is None else pa.py_buffer(part) for part in buffers]
    return pa.Array.from_buffers(kind, values.n, held)


class GroupValues(NamedTuple):
    """The distinct values of one row group; `values` is None where there are too many."""

    values: pa.Array | None
    nulls: bool
    nans: bool


class _Waiting:
    """Arrays that wait to be joined to known values. A join goes over all known values, so it waits for as many new ones."""

    def __init__(self) -> None:
        self._arrays: list[pa.Array] = []
        self._rows = self.nbytes = 0

    def add(self, array: pa.Array, nbytes: int, known: pa.Array) -> bool:
        """Whether so many wait now that they should be joined."""
        self._arrays.append(array)
        self._rows += len(array)
        self.nbytes += nbytes
        return self._rows >= max(BATCH, len(known)) or self.nbytes >= max(HELD, known.nbytes)

    def take(self) -> list[pa.Array]:
        """The arrays, which do not wait any more."""
        arrays, self._arrays, self._rows, self.nbytes = self._arrays, [], 0, 0
        return arrays


class DistinctBuilder:
    """Gathers the values of one chunk from its pages."""

    def __init__(
        self,
        column: IndexedColumn,
        most: int = MAX_VALUES,
        largest: int = MAX_LIST_BYTES,
        over: Callable[[pa.Array], None] | None = None,
    ) -> None:
        """Values beyond `most`, or `largest` bytes, are too many: none is kept then. If `over` is given, it takes those gathered so far
        instead, and gathering starts again.
        """
        self._type = type_of(column.leaf)
        self._most, self._largest, self._over = most, largest, over
        self._half = is_half(column.leaf)
        self._values: pa.Array | None = pa.nulls(0, self._type)
        self._waiting = _Waiting()  # values of pages, not yet made distinct
        self._nulls = self._nans = False

    def take(self, page: Page) -> None:
        values = page.values
        assert values is not None
        self._nulls |= page.nulls > 0
        if self._values is None or not values.n:
            return
        array = stored(page, self._type)
        # a look takes memory for each of its values: a large page is cut
        pieces = max(-(-values.n // BATCH), -(-values.nbytes // HELD))
        step = -(-values.n // pieces)
        for at in range(0, values.n, step):
            piece = array.slice(at, step) if pieces > 1 else array
            if self._waiting.add(piece, values.nbytes // pieces, self._values):
                self._look()
            if self._values is None:
                return
        if pieces > 1:
            self._look()  # slices would keep the whole page

    def _look(self) -> None:
        """Join the values of waiting pages to the known ones."""
        waiting = self._waiting.take()
        if not waiting:
            return
        found = pa.chunked_array(waiting, self._type).unique().drop_null()
        del waiting
        if pa.types.is_floating(self._type) or self._half:
            nan = pc.is_nan(found) if not self._half else _half_nans(found)
            if pc.any(nan).as_py():
                self._nans = True
                found = found.filter(pc.invert(nan))
        found = pa.concat_arrays([self._values, found]).unique()
        large = len(found) > self._most or found.nbytes > self._largest
        if large and self._over is not None:
            self._over(found)
            found, large = found.slice(0, 0), False
        self._values = None if large else found

    def done(self) -> GroupValues:
        self._look()
        return GroupValues(self._values, self._nulls, self._nans)


def gather(column: IndexedColumn, **limits: Any) -> Generator[None, Any, GroupValues]:
    """A generator that is sent the pages of a chunk, then None, and returns its values. `limits`: as of DistinctBuilder."""
    builder = DistinctBuilder(column, **limits)
    while (page := (yield)) is not None:
        builder.take(page.raw)
        del page  # before the next one is read
    return builder.done()


def _half_nans(values: pa.Array) -> pa.Array:
    bits = np.frombuffer(values.buffers()[1], "<u2", len(values), 2 * values.offset)
    return pa.array((bits & 0x7FFF) > 0x7C00)


class FileValues:
    """The distinct values of a file, joined from those of its row groups. It never holds much more than the index of the file
    takes.
    """

    def __init__(
        self, leaf: Leaf, row_groups: int, most: int = MAX_VALUES, largest: int = MAX_LIST_BYTES
    ) -> None:
        self._kind = type_of(leaf)
        self._most, self._largest = most, largest
        self._flags = np.full(row_groups, COMPLETE, np.uint8)  # right for a row group without rows
        self._every: pa.Array | None = pa.nulls(0, self._kind)  # None where they are too many
        # a row of bits for each row group: which of the known values it has; None where that takes too much memory
        self._has: _Bits | None = np.zeros((row_groups, 0), np.uint8) if row_groups > 1 else None
        self._waiting = _Waiting()  # values of row groups, not yet joined

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        held = sum(0 if one is None else one.nbytes for one in (self._every, self._has))
        return held + self._waiting.nbytes

    @property
    def complete(self) -> int:
        """How many row groups have all their values known."""
        return int(np.count_nonzero(self._flags & COMPLETE))

    def give_up(self) -> None:
        """Drop all values: they are too many."""
        self._every = self._has = None
        self._waiting.take()

    def take(self, row_group: int, found: GroupValues) -> None:
        """Join the values of a row group. Row groups come in the order of the file."""
        known = found.values is not None
        self._flags[row_group] = COMPLETE * known | NULLS * found.nulls | NANS * found.nans
        if self._every is None or found.values is None or not len(found.values):
            return
        if self._has is not None:
            self._mark(row_group, found.values)
            return
        if self._waiting.add(found.values, found.values.nbytes, self._every):
            self._join()

    def _join(self) -> None:
        """Join the waiting values to the known ones."""
        waiting = self._waiting.take()
        if waiting:
            self._know(pa.chunked_array([self._every, *waiting], self._kind).unique())

    def _know(self, every: pa.Array) -> None:
        self._every = every
        if len(every) > self._most or every.nbytes > self._largest:
            self.give_up()

    def _mark(self, row_group: int, values: pa.Array) -> None:
        """Join the values of a row group to the known ones, and keep which of them it has."""
        # hash tables are made of the values of the row group, never of all known ones, which may be many more
        known = self._every
        assert known is not None
        there = pc.is_in(known, value_set=values)
        if there.true_count:
            mine = known.filter(there)
            values = values.filter(pc.invert(pc.is_in(values, value_set=mine)))
        if len(values):
            self._know(pa.concat_arrays([known, values]))
        if self._every is None or self._has is None:
            return
        size, room = (len(self._every) + 7) // 8, self._largest // len(self._flags)
        if size > room:
            self._has = None
            return
        if size > self._has.shape[1]:
            more = min(2 * size, room) - self._has.shape[1]
            self._has = np.pad(self._has, ((0, 0), (0, more)))
        bits = np.concatenate([booleans(there), np.ones(len(values), np.bool_)])
        self._has[row_group, :size] = np.packbits(bits, bitorder="little")

    def values(self) -> pa.Array | None:
        """All values; None where those of a row group, or of the file, are too many."""
        self._join()
        return self._every if self.complete == len(self._flags) else None

    def index(self) -> Distinct | None:
        """The index of the file; None where every row group, or the file, has too many values."""
        self._join()
        every, kind = self._every, self._kind
        if every is None or (len(self._flags) and not self.complete):
            return None
        order = None
        if not pa.types.is_boolean(kind):
            order = pc.sort_indices(every)
            every, order = every.take(order), order.to_numpy()
        n, has = len(every), None
        if self._has is not None:
            has = self._has[:, : (n + 7) // 8].copy()
            if order is not None:
                for row in has:
                    member = np.unpackbits(row, count=n, bitorder="little")
                    row[:] = np.packbits(member[order], bitorder="little")
        return listed(every, self._flags, has)


class ListBuilder:
    """Builds the list of a column (`prune.kind.Builder`): a kind says what its payload makes of the values."""

    def __init__(self, column: IndexedColumn, payload: Callable[[FileValues], bytes]) -> None:
        self._column, self._payload = column, payload
        self._values = FileValues(column.leaf, column.num_row_groups)

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return self._values.nbytes

    @property
    def chunks(self) -> int:
        """How many row groups have all their values in the list."""
        return self._values.complete

    def collect(self) -> Generator[None, Any, GroupValues]:
        """The values of one row group."""
        return gather(self._column)

    def add(self, row_group: int, part: GroupValues) -> None:
        """Join them to those of the row groups before."""
        self._values.take(row_group, part)

    def finish(self) -> bytes:
        """The payload."""
        return self._payload(self._values)


def _plain(values: pa.Array, kind: pa.DataType) -> tuple[int, bytes]:
    """The width of values of a fixed width, and their PLAIN bytes; a boolean is one byte."""
    if pa.types.is_boolean(kind):
        return 1, bytes(values.to_numpy(zero_copy_only=False).astype(np.uint8))
    width = kind.byte_width
    start = values.offset * width
    data = memoryview(values.buffers()[1])[start : start + len(values) * width]
    return width, bytes(data)


def listed(every: pa.Array, flags: _Bits, has: _Bits | None) -> Distinct:
    """The list of values that have the bytes of the file. `flags`, `has`: as of Distinct."""
    n, kind = len(every), every.type
    if pa.types.is_binary(kind):
        ends = np.frombuffer(every.buffers()[1], np.int32, n + 1, 4 * every.offset)
        data = bytes(memoryview(every.buffers()[2])[ends[0] : ends[-1]]) if n else b""
        return Distinct(n, 0, data, (ends - ends[0]).astype(np.uint32), flags, has)
    width, data = _plain(every, kind)
    return Distinct(n, width, data, None, flags, has)


def values_of(found: Distinct, leaf: Leaf) -> pa.Array:
    """The values of an index with the bytes of the file."""
    kind = type_of(leaf)
    if found.ends is not None:
        buffers = [None, pa.py_buffer(found.ends.astype(np.int32)), pa.py_buffer(found.values)]
        return pa.Array.from_buffers(kind, found.n, buffers)
    if pa.types.is_boolean(kind):
        return pa.array(np.frombuffer(found.values, np.uint8).astype(bool))
    return pa.Array.from_buffers(kind, found.n, [None, pa.py_buffer(found.values)])
