"""Builds a `bitmap` index: the rows of each value, row group by row group."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.base.report import format_size
from pageseek.format.bitmap_form import MAX_VALUES, body, set_bytes
from pageseek.format.value_list import Distinct
from pageseek.index.distinct_builder import MAX_LIST_BYTES, type_of
from pageseek.prune.kind import IndexedColumn, NotBuiltError

Sets = list[tuple[int, int, bytes]]


class BitmapBuilder:
    """Builds the index of one column."""

    def __init__(self, column: IndexedColumn) -> None:
        self._column, self._type = column, type_of(column.leaf)
        self._numbers: dict[Any, int] = {}  # of values, in the order in which they come
        self._groups: list[dict[int, tuple[int, int, bytes]]] = []
        self._nulls: Sets = []
        self.nbytes = 0

    def collect(self) -> Generator[None, Any, tuple[list[Any], npt.NDArray[np.int64], int]]:
        """The values of a row group, and for each row the number of its value; -1 is null."""
        values: dict[Any, int] = {}
        made: list[npt.NDArray[np.int64]] = []
        while (page := (yield)) is not None:
            raw = page.raw.values
            buffers = [raw.validity, raw.offsets, raw.data]
            if raw.offsets is None:
                del buffers[1]
            held = [None if part is None else pa.py_buffer(part) for part in buffers]
            array = pa.Array.from_buffers(self._type, raw.n, held).dictionary_encode()
            found = array.dictionary.to_pylist()
            numbers = np.array([values.setdefault(one, len(values)) for one in found], np.int64)
            if len(values) > MAX_VALUES:
                raise NotBuiltError(f"more than {MAX_VALUES:,} values")
            codes = array.indices.fill_null(-1).to_numpy().astype(np.int64)
            made.append(np.append(numbers, -1)[codes])
        every = np.concatenate(made) if made else np.empty(0, np.int64)
        return list(values), every, len(every)

    def add(self, row_group: int, part: tuple[list[Any], npt.NDArray[np.int64], int]) -> None:
        """Take the rows of a row group."""
        values, codes, num_rows = part
        if num_rows != self._column.group_rows[row_group]:
            raise NotBuiltError("a page has other rows than the offset index says")
        while len(self._groups) < row_group:  # row groups without rows
            self._groups.append({})
            self._nulls.append((0, *set_bytes(np.empty(0, np.int64), 0)))
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(-1, len(values) + 1)).tolist()
        sets: dict[int, tuple[int, int, bytes]] = {}
        for i, value in enumerate(values):
            rows = order[bounds[i + 1] : bounds[i + 2]]
            number = self._numbers.setdefault(value, len(self._numbers))
            sets[number] = len(rows), *set_bytes(rows, num_rows)
        nulls = order[bounds[0] : bounds[1]]
        self._nulls.append((len(nulls), *set_bytes(nulls, num_rows)))
        self._groups.append(sets)
        self.nbytes += sum(len(data) for _, _, data in sets.values())

    def finish(self) -> bytes:
        """The body of the index. NotBuiltError: there are too many values."""
        values = list(self._numbers)
        if len(values) > MAX_VALUES:
            raise NotBuiltError(f"more than {MAX_VALUES:,} values")
        groups = len(self._column.group_rows)
        flags = np.zeros(groups, np.uint8)
        if pa.types.is_binary(self._type) or pa.types.is_string(self._type):
            lengths = [len(one) for one in values]
            if sum(lengths) > MAX_LIST_BYTES:
                raise NotBuiltError(f"its values have more than {format_size(MAX_LIST_BYTES)}")
            ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
            listed = Distinct(len(values), 0, b"".join(values), ends, flags, None)
        else:
            array = pa.array(values, self._type)
            if pa.types.is_boolean(self._type):
                array, width = array.cast(pa.uint8()), 1
            else:
                width = self._type.byte_width
            data = bytes(array.buffers()[1] or b"")[: width * len(values)]
            listed = Distinct(len(values), width, data, None, flags, None)
        none = 0, *set_bytes(np.empty(0, np.int64), 0)
        while len(self._groups) < groups:
            self._groups.append({})
            self._nulls.append(none)
        sets = [
            [*(found.get(number, none) for number in range(len(values))), nulls]
            for found, nulls in zip(self._groups, self._nulls, strict=True)
        ]
        return body(listed, sets)
