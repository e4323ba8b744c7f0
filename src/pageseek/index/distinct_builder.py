"""The different values of a column, gathered chunk by chunk and put together for the file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.arrays import booleans
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    L_FLOAT16,
    logical_of,
)
from pageseek.format.value_list import COMPLETE, NANS, NULLS, Distinct
from pageseek.index.page_reader import Page
from pageseek.prune.kind import IndexedColumn

MOST = 1 << 16  # values that are listed
LARGEST = 4 << 20  # bytes of them
BATCH, HELD = 1 << 16, 4 << 20  # values, and bytes, of pages that are looked at together
_Bits = npt.NDArray[np.uint8]
_TYPES = {
    BOOLEAN: pa.bool_(), INT32: pa.int32(), INT64: pa.int64(), FLOAT: pa.float32(), DOUBLE: pa.float64(),
    BYTE_ARRAY: pa.binary(),
}  # fmt: skip


def type_of(leaf: Leaf) -> pa.DataType:
    """The Arrow type whose buffers have the bytes of the file."""
    if leaf.element.type == FIXED:
        return pa.binary(leaf.element.type_length)
    return _TYPES[leaf.element.type]


class GroupValues(NamedTuple):
    """Those of one row group; `values` is None where there are too many."""

    values: pa.Array | None
    nulls: bool
    nans: bool


class DistinctBuilder:
    """Takes in the pages of one chunk."""

    def __init__(
        self,
        column: IndexedColumn,
        most: int = MOST,
        largest: int = LARGEST,
        over: Callable[[pa.Array], None] | None = None,
    ) -> None:
        """Of more values than `most`, or `largest` bytes, none is known, or `over` is given them, and others are gathered from there on."""
        self._type = type_of(column.leaf)
        self._most, self._largest, self._over = most, largest, over
        self._half = (
            column.leaf.element.type == FIXED and logical_of(column.leaf.element)[0] == L_FLOAT16
        )
        self._values: pa.Array | None = pa.nulls(0, self._type)
        self._waiting: list[pa.Array] = []  # of pages that were not looked at yet
        self._rows = self._bytes = 0  # of these
        self._nulls = self._nans = False

    def take(self, page: Page) -> None:
        values = page.values
        assert values is not None
        self._nulls |= page.nulls > 0
        if self._values is None or not values.n:
            return
        buffers = [values.validity, values.offsets, values.data]
        if values.offsets is None:
            del buffers[1]
        array = pa.Array.from_buffers(
            self._type,
            values.n,
            [None if part is None else pa.py_buffer(part) for part in buffers],
        )
        # a look takes memory for as many values as there are: a large page is cut
        pieces = max(-(-values.n // BATCH), -(-values.nbytes // HELD))
        step = -(-values.n // pieces)
        for at in range(0, values.n, step):
            self._add(array.slice(at, step) if pieces > 1 else array, values.nbytes // pieces)
            if self._values is None:
                return
        if pieces > 1:
            self._look()  # what waits would hold all of the page

    def _add(self, array: pa.Array, size: int) -> None:
        assert self._values is not None
        self._waiting.append(array)
        self._rows += len(array)
        self._bytes += size
        # each look goes over all that is known: so there is one for as much again, not one for each small page
        known = self._values
        if self._rows >= max(BATCH, len(known)) or self._bytes >= max(HELD, known.nbytes):
            self._look()

    def _look(self) -> None:
        """Join the values of the pages that wait to those that are known."""
        if not self._waiting:
            return
        found = pa.chunked_array(self._waiting, self._type).unique().drop_null()
        self._waiting.clear()
        self._rows = self._bytes = 0
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
    """Those of a file, put together from those of its row groups, each of which is let go of once it was taken in: what is held
    is never much more than the index of the file has.
    """

    def __init__(
        self, leaf: Leaf, row_groups: int, most: int = MOST, largest: int = LARGEST
    ) -> None:
        self._kind = type_of(leaf)
        self._most, self._largest = most, largest
        self._flags = np.full(row_groups, COMPLETE, np.uint8)  # as a row group without rows has it
        self._every: pa.Array | None = pa.nulls(0, self._kind)  # None where they are too many
        # of each row group bits, which of the values it has, in their order here; None where there is no room for them
        self._has: _Bits | None = np.zeros((row_groups, 0), np.uint8) if row_groups > 1 else None
        self._waiting: list[pa.Array] = []  # of row groups, to be joined with the others
        self._rows = self._bytes = 0  # of these

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        held = sum(0 if one is None else one.nbytes for one in (self._every, self._has))
        return held + self._bytes

    @property
    def complete(self) -> int:
        """Of how many row groups all values are known."""
        return int(np.count_nonzero(self._flags & COMPLETE))

    def give_up(self) -> None:
        """They are too many: nothing is held any more."""
        self._every = self._has = None
        self._waiting, self._rows, self._bytes = [], 0, 0

    def take(self, row_group: int, found: GroupValues) -> None:
        """Those of a row group; they come in the order of the file."""
        known = found.values is not None
        self._flags[row_group] = COMPLETE * known | NULLS * found.nulls | NANS * found.nans
        if self._every is None or found.values is None or not len(found.values):
            return
        if self._has is not None:
            self._mark(row_group, found.values)
            return
        # each join goes over all that is known: so there is one for as much again, not one for each small row group
        self._waiting.append(found.values)
        self._rows += len(found.values)
        self._bytes += found.values.nbytes
        if self._rows >= max(BATCH, len(self._every)) or self._bytes >= max(
            HELD, self._every.nbytes
        ):
            self._join()

    def _join(self) -> None:
        """Join the values that wait to those that are known."""
        if self._waiting:
            joined = pa.chunked_array([self._every, *self._waiting], self._kind).unique()
            self._waiting, self._rows, self._bytes = [], 0, 0
            self._know(joined)

    def _know(self, every: pa.Array) -> None:
        self._every = every
        if len(every) > self._most or every.nbytes > self._largest:
            self.give_up()

    def _mark(self, row_group: int, values: pa.Array) -> None:
        """Join the values of a row group to those that are known, and keep which they are."""
        # tables are made of the values of the row group, never of all that are known, which may be many more
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
        """All values; None where those of some row group, or all together, are too many."""
        self._join()
        return self._every if self.complete == len(self._flags) else None

    def index(self) -> Distinct | None:
        """The index of the file; None where no row group has few enough values for one, or all together are too many."""
        self._join()
        every, kind = self._every, self._kind
        if every is None or not self.complete:
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
        if pa.types.is_binary(kind):
            ends = np.frombuffer(every.buffers()[1], np.int32, n + 1, 4 * every.offset)
            data = bytes(memoryview(every.buffers()[2])[ends[0] : ends[-1]]) if n else b""
            return Distinct(n, 0, data, (ends - ends[0]).astype(np.uint32), self._flags, has)
        width, data = _plain(every, kind)
        return Distinct(n, width, data, None, self._flags, has)


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
    """The width and the PLAIN bytes of values of a fixed width; a boolean is a byte."""
    if pa.types.is_boolean(kind):
        return 1, bytes(values.to_numpy(zero_copy_only=False).astype(np.uint8))
    width = kind.byte_width
    start = values.offset * width
    data = memoryview(values.buffers()[1])[start : start + len(values) * width]
    return width, bytes(data)


def values_of(found: Distinct, leaf: Leaf) -> pa.Array:
    """As the file has them."""
    kind = type_of(leaf)
    if found.ends is not None:
        buffers = [None, pa.py_buffer(found.ends.astype(np.int32)), pa.py_buffer(found.values)]
        return pa.Array.from_buffers(kind, found.n, buffers)
    if pa.types.is_boolean(kind):
        return pa.array(np.frombuffer(found.values, np.uint8).astype(bool))
    return pa.Array.from_buffers(kind, found.n, [None, pa.py_buffer(found.values)])
