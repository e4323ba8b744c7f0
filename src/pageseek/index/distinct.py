"""The different values of a column, gathered chunk by chunk and put together for the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.distinct import COMPLETE, NANS, NULLS, Distinct
from pageseek.errors import UnsupportedError
from pageseek.index.pages import Chunk, Page
from pageseek.schema import Leaf
from pageseek.types import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    INT96,
    L_FLOAT16,
    MAX_FIXED,
    PHYSICAL_NAMES,
    logical_of,
)

MOST = 1 << 16  # values that are listed
LARGEST = 4 << 20  # bytes of them
BATCH, HELD = 1 << 16, 4 << 20  # values, and bytes, of pages that are looked at together
_TYPES = {
    BOOLEAN: pa.bool_(), INT32: pa.int32(), INT64: pa.int64(), FLOAT: pa.float32(), DOUBLE: pa.float64(),
    BYTE_ARRAY: pa.binary(),
}  # fmt: skip


def check(leaf: Leaf) -> None:
    """Raise UnsupportedError where the values of a leaf are not listed."""
    check_width(leaf)
    if leaf.max_rep:
        raise UnsupportedError(
            f"column {leaf.name!r}: it lies in a list, whose values are not listed; leave it out of distinct=[...]"
        )
    if leaf.element.type == INT96:
        raise UnsupportedError(
            f"column {leaf.name!r}: values of {PHYSICAL_NAMES[INT96]} are not listed; leave it out of distinct=[...]"
        )


def check_width(leaf: Leaf) -> None:
    """Raise UnsupportedError where values have a width that no reader takes."""
    if leaf.element.type == FIXED and not 0 < leaf.element.type_length <= MAX_FIXED:
        raise UnsupportedError(
            f"column {leaf.name!r}: values of {leaf.element.type_length} bytes; leave the column out"
        )


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


def nothing(leaf: Leaf) -> GroupValues:
    """Those of a row group without rows."""
    return GroupValues(pa.nulls(0, type_of(leaf)), nulls=False, nans=False)


class DistinctBuilder:
    """Takes in the pages of one chunk."""

    def __init__(self, chunk: Chunk, most: int = MOST, largest: int = LARGEST) -> None:
        self._type = type_of(chunk.leaf)
        self._most, self._largest = most, largest
        self._half = (
            chunk.leaf.element.type == FIXED and logical_of(chunk.leaf.element)[0] == L_FLOAT16
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
        self._values = None if large else found

    def done(self) -> GroupValues:
        self._look()
        return GroupValues(self._values, self._nulls, self._nans)


def _half_nans(values: pa.Array) -> pa.Array:
    bits = np.frombuffer(values.buffers()[1], "<u2", len(values), 2 * values.offset)
    return pa.array((bits & 0x7FFF) > 0x7C00)


def union(leaf: Leaf, groups: Sequence[GroupValues]) -> pa.Array | None:
    """All values of the file; None where those of some row group are too many to be known, or all of them are."""
    known = [group.values for group in groups]
    if any(values is None for values in known):
        return None
    every = pa.chunked_array(known, type_of(leaf)).unique()
    return None if len(every) > MOST or every.nbytes > LARGEST else every


def together(
    leaf: Leaf, groups: Sequence[GroupValues], most: int = MOST, largest: int = LARGEST
) -> Distinct | None:
    """The index of the file; None where no row group has few enough values for one."""
    kind = type_of(leaf)
    known = [group.values for group in groups if group.values is not None]
    if not known:
        return None
    every = pa.chunked_array(known, kind).unique()
    if len(every) > most or every.nbytes > largest:
        return None
    order = pc.sort_indices(every) if not pa.types.is_boolean(kind) else None
    every = every if order is None else every.take(order)
    flags = np.zeros(len(groups), np.uint8)
    row = (len(every) + 7) // 8
    has: np.ndarray | None = None
    if len(groups) > 1 and row * len(groups) <= largest:
        has = np.zeros((len(groups), row), np.uint8)
    for i, group in enumerate(groups):
        flags[i] = COMPLETE * (group.values is not None) | NULLS * group.nulls | NANS * group.nans
        if has is not None and group.values is not None:
            member = pc.is_in(every, value_set=group.values).to_numpy(zero_copy_only=False)
            has[i] = np.packbits(member, bitorder="little")
    if pa.types.is_binary(kind):
        ends = np.frombuffer(every.buffers()[1], np.int32, len(every) + 1, 4 * every.offset)
        data = bytes(memoryview(every.buffers()[2])[ends[0] : ends[-1]]) if len(every) else b""
        return Distinct(len(every), 0, data, (ends - ends[0]).astype(np.uint32), flags, has)
    width, data = _plain(every, kind)
    return Distinct(len(every), width, data, None, flags, has)


def _plain(values: pa.Array, kind: pa.DataType) -> tuple[int, bytes]:
    """The width and the PLAIN bytes of values of a fixed width; a boolean is a byte."""
    if pa.types.is_boolean(kind):
        return 1, bytes(values.to_numpy(zero_copy_only=False).astype(np.uint8))
    width = kind.byte_width
    start = values.offset * width
    data = memoryview(values.buffers()[1])[start : start + len(values) * width]
    return width, bytes(data)
