"""Builds a `bitmap` index: the rows of each value, row group by row group."""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.records import NamedTuple
from pageseek.base.report import format_size
from pageseek.format.bitmap_form import (
    I64,
    MAX_DIRECTORY_BYTES,
    MAX_VALUES,
    body,
    directory_bytes,
    set_bytes,
)
from pageseek.index.distinct_builder import MAX_LIST_BYTES, listed, stored, type_of
from pageseek.prune.kind import IndexedColumn, NotBuiltError

NULL = -1  # the number of null among values
TOO_MANY = f"more than {MAX_VALUES:,} values"
Set = tuple[int, int, bytes]  # rows, form, bytes


class GroupRows(NamedTuple):
    """The values of a row group, and for each row the number of its value, or NULL."""

    values: list[Any]
    numbers: I64


class BitmapBuilder:
    """Builds the index of one column."""

    def __init__(self, column: IndexedColumn) -> None:
        self._column, self._type = column, type_of(column.leaf)
        self._numbers: dict[Any, int] = {}  # of values, in the order in which they come
        self._sets: dict[tuple[int, int], Set] = {}  # by row group and number
        self.nbytes = 0

    def collect(self) -> Generator[None, Any, GroupRows]:
        """The rows of a row group."""
        values: dict[Any, int] = {}
        made: list[I64] = [np.empty(0, np.int64)]
        while (page := (yield)) is not None:
            coded = stored(page.raw, self._type).dictionary_encode()
            found = coded.dictionary.to_pylist()
            numbers = [values.setdefault(one, len(values)) for one in found]
            if len(values) > MAX_VALUES:
                raise NotBuiltError(TOO_MANY)
            codes = coded.indices.fill_null(len(found)).to_numpy()
            made.append(np.array([*numbers, NULL], np.int64)[codes])
        return GroupRows(list(values), np.concatenate(made))

    def add(self, row_group: int, part: GroupRows) -> None:
        """Take the rows of a row group. NotBuiltError: there are too many values."""
        num_rows = self._column.group_rows[row_group]
        numbers = [self._numbers.setdefault(one, len(self._numbers)) for one in part.values]
        if len(self._numbers) > MAX_VALUES:
            raise NotBuiltError(TOO_MANY)
        order = np.argsort(part.numbers, kind="stable")
        ends = np.cumsum(np.bincount(part.numbers + 1, minlength=len(numbers) + 1)).tolist()
        for number, (start, stop) in zip([NULL, *numbers], pairwise([0, *ends]), strict=True):
            form, data = set_bytes(order[start:stop], num_rows)
            self._sets[row_group, number] = stop - start, form, data
            self.nbytes += len(data)

    def finish(self) -> bytes:
        """The body of the index. NotBuiltError: its directory is too large."""
        groups, n = self._column.num_row_groups, len(self._numbers)
        every = listed(pa.array(self._numbers, self._type), np.zeros(groups, np.uint8), None)
        if len(every.values) > MAX_LIST_BYTES:
            raise NotBuiltError(f"its values have more than {format_size(MAX_LIST_BYTES)}")
        if directory_bytes(groups, n, len(every.to_bytes())) > MAX_DIRECTORY_BYTES:
            raise NotBuiltError(
                f"its directory would have more than {format_size(MAX_DIRECTORY_BYTES)}"
            )
        none = 0, *set_bytes(np.empty(0, np.int64), 0)
        return body(
            every,
            [
                [self._sets.get((group, i), none) for i in (*range(n), NULL)]
                for group in range(groups)
            ],
        )
