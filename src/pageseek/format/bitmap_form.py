"""The body of a `bitmap` index: for each value of a column, and for null, the rows of each row group (docs/format.md).

A set of rows is a bitmap, a list of rows, or a list of runs, whichever is smallest.
"""

from __future__ import annotations

import struct

import numpy as np

from pageseek._core import rows
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CoreError
from pageseek.base.late_modules import npt
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.value_list import Distinct

KIND, VERSION = "bitmap", 1
HEAD = struct.Struct(
    "<IIIQQ"
)  # row groups, values, bytes of the list of values, checksum of the directory, of this
SET = np.dtype([("bytes", "<u4"), ("rows", "<u4"), ("form", "<u4"), ("checksum", "<u4")])
BITS, ROWS, RUNS = 0, 1, 2
CHUNK = 1 << 16  # rows of a list are numbered within so many
MAX_VALUES = 4_096
MAX_DIRECTORY_BYTES = 64 << 20
I64 = npt.NDArray[np.int64]


def set_bytes(found: I64, num_rows: int) -> tuple[int, bytes]:
    """The form, and the bytes, of rows in ascending order."""
    breaks = np.flatnonzero(np.diff(found) != 1) + 1
    runs = len(breaks) + 1 if len(found) else 0
    chunks = -(-num_rows // CHUNK)
    sizes = {BITS: -(-num_rows // 8), ROWS: 4 * chunks + 2 * len(found), RUNS: 8 * runs}
    form = min(sizes, key=lambda one: (sizes[one], one))
    if form == BITS:
        bits = np.zeros(num_rows, np.uint8)
        bits[found] = 1
        return form, np.packbits(bits, bitorder="little").tobytes()
    if form == ROWS:
        counts = np.bincount(found // CHUNK, minlength=chunks).astype("<u4")
        return form, counts.tobytes() + (found % CHUNK).astype("<u2").tobytes()
    if not runs:
        return form, b""
    starts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [len(found)]]) - 1
    return RUNS, np.stack([found[starts], found[ends] + 1], axis=1).astype("<u4").tobytes()


def set_of(form: int, data: memoryview, n: int, num_rows: int) -> rows.RowRanges:
    """A set of n rows of a row group. InvalidIndexError: it is none."""
    chunks = -(-num_rows // CHUNK)
    try:
        if form == BITS and data.nbytes == -(-num_rows // 8):
            found = rows.RowRanges.from_bitmap(bytes(data), 0, num_rows)
        elif form == ROWS and data.nbytes == 4 * chunks + 2 * n:
            counts = np.frombuffer(data[: 4 * chunks], "<u4").astype(np.int64)
            if counts.sum() != n:
                raise InvalidIndexError(f"{counts.sum()} rows in a set of {n}")
            high = np.repeat(np.arange(chunks) * CHUNK, counts)
            found = rows.RowRanges.from_rows(high + np.frombuffer(data[4 * chunks :], "<u2"))
        elif form == RUNS and data.nbytes % 8 == 0:
            pairs = np.frombuffer(data, "<u4").astype(np.int64).reshape(-1, 2)
            found = rows.RowRanges(np.ascontiguousarray(pairs))
        else:
            raise InvalidIndexError(f"a set of {n} rows in {data.nbytes} bytes of form {form}")
    except CoreError as error:
        raise InvalidIndexError(error.message) from error
    if found.num_rows != n or (n and found.bounds[1] > num_rows):
        raise InvalidIndexError(f"a set of {found.num_rows} rows where {n} of {num_rows} are due")
    return found


class BitmapDirectory:
    """The values of an index, and where their sets of rows lie. Behind the values comes null.

    Attributes
    ----------
    values : Distinct
    counts : int64 array of shape (row groups, values + 1)
        The rows of each set.
    nbytes : int
        Of the body before the first set.
    """

    def __init__(self, data: memoryview, group_rows: list[int], length: int) -> None:
        """`data`: the bytes before the first set, or more. `length`: of the whole body."""
        if data.nbytes < HEAD.size:
            raise InvalidIndexError("its directory is cut short")
        groups, n, listed, of_directory, of_head = HEAD.unpack(data[: HEAD.size])
        if xxh64(data[: HEAD.size - 8]) != of_head:
            raise InvalidIndexError("the checksum of its head differs")
        self.nbytes = directory_bytes(groups, n, listed)
        if n > MAX_VALUES:
            raise InvalidIndexError(f"{n:,} values, where {MAX_VALUES:,} are the most")
        if groups != len(group_rows) or self.nbytes > length:
            raise InvalidIndexError(f"it is of {groups} row groups, the file has {len(group_rows)}")
        if data.nbytes < self.nbytes:
            raise InvalidIndexError("its directory is cut short")
        directory = data[HEAD.size : self.nbytes]
        if xxh64(directory) != of_directory:
            raise InvalidIndexError("the checksum of its directory differs")
        self.values = Distinct.of(directory[:listed], groups)
        table = np.frombuffer(directory[listed:], SET).reshape(groups, n + 1)
        sizes = table["bytes"].astype(np.int64)
        ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
        self.counts = table["rows"].astype(np.int64)
        if self.values.n != n or (self.counts.sum(axis=1) != group_rows).any():
            raise InvalidIndexError("its sets do not have each row once")
        if self.nbytes + int(ends.max(initial=0)) != length:
            raise InvalidIndexError("its sets do not lie one behind the other")
        self._starts, self._sizes = self.nbytes + ends - sizes, sizes
        self._forms, self._checksums = table["form"], table["checksum"]

    def place(self, group: int, number: int) -> tuple[int, int]:
        """(offset in the body, length) of a set."""
        return int(self._starts[group, number]), int(self._sizes[group, number])

    def rows(self, group: int, number: int, data: memoryview, num_rows: int) -> rows.RowRanges:
        """A set, whose bytes are checked."""
        if xxh64(data) & 0xFFFFFFFF != int(self._checksums[group, number]):
            raise InvalidIndexError(f"the checksum of a set of row group {group} differs")
        form, n = int(self._forms[group, number]), int(self.counts[group, number])
        return set_of(form, data, n, num_rows)


def directory_bytes(groups: int, n: int, listed: int) -> int:
    """The bytes of the body before the first set."""
    return HEAD.size + listed + SET.itemsize * groups * (n + 1)


def head_length(data: memoryview) -> int:
    """The bytes of the body before the first set, by its first ones. InvalidIndexError: they are none."""
    if data.nbytes < HEAD.size:
        raise InvalidIndexError("its head is cut short")
    groups, n, listed, _, of_head = HEAD.unpack(data[: HEAD.size])
    if xxh64(data[: HEAD.size - 8]) != of_head:
        raise InvalidIndexError("the checksum of its head differs")
    return directory_bytes(groups, n, listed)


def body(values: Distinct, sets: list[list[tuple[int, int, bytes]]]) -> bytes:
    """The body. `sets`: by row group and value, null last: rows, form, and bytes."""
    listed = values.to_bytes()
    table = np.zeros((len(sets), values.n + 1), SET)
    for group, several in enumerate(sets):
        for number, (n, form, data) in enumerate(several):
            table[group, number] = len(data), n, form, xxh64(data) & 0xFFFFFFFF
    directory = listed + table.tobytes()
    head = HEAD.pack(len(sets), values.n, len(listed), xxh64(directory), 0)[:-8]
    parts = [data for several in sets for _, _, data in several]
    return b"".join([head, xxh64(head).to_bytes(8, "little"), directory, *parts])
