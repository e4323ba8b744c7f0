"""Deletion vectors: bitmaps of the numbers of deleted rows, in files and in logs of tables.

A bitmap is an array of Roaring bitmaps in the portable format of 64 bits (github.com/RoaringBitmap/RoaringFormatSpec): a Roaring
bitmap for each number of 32 high bits, with a container for each number of 16 bits below.
"""

from __future__ import annotations

import struct
import zlib
from contextlib import closing
from functools import partial

import numpy as np

from pageseek._core import rows
from pageseek.base.bounded_cache import BoundedCache
from pageseek.base.errors import CorruptFileError, PageseekError
from pageseek.base.late_modules import npt
from pageseek.base.report import Report
from pageseek.datasets.deletes import DeletionVector
from pageseek.scanning.deletes.delete_files import stamp
from pageseek.storage import Source, Version

Pairs = npt.NDArray[np.int64]  # [first, behind the last] of each run of rows

MAGIC = 1681511377
FRAME = 8  # bytes of the length and the checksum around a bitmap in a file
MOST_BYTES = 1 << 30  # of a vector
KEPT = 1024  # vectors that are kept decoded
_NO_RUNS, _RUNS = 12346, 12347  # first number of a Roaring bitmap
_MOST_CONTAINERS = 1 << 16
_FEWEST_OFFSETS = 4  # containers from which a bitmap with runs has offsets
_MOST_IN_ARRAY = 4096
_BITMAP_BYTES = 8192


class _BrokenError(Exception):
    """What is wrong with a bitmap, and at which byte of it."""


kept: BoundedCache[object, rows.RowRanges] = BoundedCache(KEPT)


def vector_rows(vector: DeletionVector, report: Report) -> rows.RowRanges:
    """The rows that a vector deletes. What one vector says never changes: its file has a name of its own.

    Raises
    ------
    CorruptFileError
        The vector is broken, or deletes another number of rows than the table says.
    """
    name = "in the log of the table" if vector.source is None else f"in {vector.source.name}"
    where = f"deletion vector {name} at byte {vector.offset}"
    remedy = "restore the file, or an older version of the table"
    if not 0 < vector.length <= MOST_BYTES or vector.offset < 0:
        raise CorruptFileError(f"{where}: the table says that it has {vector.length} bytes")
    try:
        data = _framed(vector, report) if vector.data is None else vector.data[: vector.length]
        pairs = bitmap_rows(data)
    except _BrokenError as error:
        raise CorruptFileError(f"{where}: {error}; {remedy}") from None
    found = rows.RowRanges(pairs)
    if found.num_rows != vector.num_rows:
        raise CorruptFileError(
            f"{where}: it deletes {found.num_rows} rows, and {vector.num_rows} by the log; {remedy}"
        )
    return found


def rows_of_vectors(
    _: Source, __: Version, vectors: list[DeletionVector], report: Report
) -> rows.RowRanges:
    """The rows that are deleted by any of the vectors."""
    found = rows.RowRanges.empty()
    for one in vectors:
        found |= kept.get((one, stamp(one.source)), partial(vector_rows, one, report))
    return found


def _framed(vector: DeletionVector, report: Report) -> bytes:
    """The bitmap of a vector in a file, its length and checksum compared."""
    assert vector.source is not None
    with closing(vector.source.open()) as store:
        if store.size < vector.offset + vector.length + FRAME:
            raise _BrokenError(f"the file ends before it, at byte {store.size}")
        try:
            data = bytes(store.read([(vector.offset, vector.length + FRAME)])[0])
        except PageseekError:
            store.check()  # the bytes may be of another version
            raise
    report.requests, report.waves = report.requests + 1, report.waves + 1
    report.bytes["index"] += len(data)
    (length,), (checksum,) = struct.unpack_from(">I", data), struct.unpack(">I", data[-4:])
    if length != vector.length:
        raise _BrokenError(f"it has {length} bytes there, and {vector.length} by the table")
    data = data[4:-4]
    if zlib.crc32(data) != checksum:
        raise _BrokenError("its checksum is another one")
    return data


def bitmap_rows(data: bytes) -> Pairs:
    """The runs of rows of a bitmap with its magic number, in order and apart from each other: shape (n, 2)."""
    if len(data) < 12:
        raise _BrokenError(f"{len(data)} bytes are too few for a bitmap")
    (magic,) = struct.unpack_from("<I", data)
    if magic != MAGIC:
        raise _BrokenError(f"it begins with {magic}, which is no bitmap of the portable format")
    (number,) = struct.unpack_from("<Q", data, 4)
    at, before = 12, -1
    found: list[Pairs] = []
    if number > (len(data) - at) // 8:
        raise _BrokenError(f"{number} bitmaps at byte 4 do not fit in it")
    for _ in range(number):
        _needs(data, at, 4)
        (key,) = struct.unpack_from("<I", data, at)
        if not before < key < 1 << 31:
            raise _BrokenError(f"bitmap {key} at byte {at} follows bitmap {before}")
        before = key
        at = _roaring(data, at + 4, key << 32, found)
    if at != len(data):
        raise _BrokenError(f"it ends at byte {at} of {len(data)}")
    if not found:
        return np.empty((0, 2), np.int64)
    pairs = np.concatenate(found)
    # containers meet where a run goes on
    begins = np.concatenate([[True], pairs[1:, 0] != pairs[:-1, 1]])
    ends = np.concatenate([begins[1:], [True]])
    return np.stack([pairs[begins, 0], pairs[ends, 1]], axis=1)


def _roaring(data: bytes, at: int, base: int, found: list[Pairs]) -> int:
    """Add the runs of a Roaring bitmap of 32 bits at a byte. Returns the byte behind it. `base`: added to its numbers."""
    _needs(data, at, 4)
    (cookie,) = struct.unpack_from("<I", data, at)
    flags = np.zeros(0, np.uint8)
    start = at
    if cookie & 0xFFFF == _RUNS:
        n = (cookie >> 16) + 1
        size = (n + 7) // 8
        _needs(data, at + 4, size)
        flags = np.unpackbits(np.frombuffer(data, np.uint8, size, at + 4), bitorder="little")
        at += 4 + size
    elif cookie == _NO_RUNS:
        _needs(data, at, 8)
        (n,) = struct.unpack_from("<I", data, at + 4)
        at += 8
    else:
        raise _BrokenError(f"{cookie} at byte {at} begins no Roaring bitmap")
    if n > _MOST_CONTAINERS:
        raise _BrokenError(f"{n} containers at byte {start} are more than there are keys")
    _needs(data, at, 4 * n)
    header = np.frombuffer(data, "<u2", 2 * n, at).reshape(n, 2).astype(np.int64)
    at += 4 * n
    if n > 1 and (np.diff(header[:, 0]) <= 0).any():
        raise _BrokenError(f"the keys at byte {at - 4 * n} are not in order")
    offsets = None
    if not flags.size or n >= _FEWEST_OFFSETS:
        _needs(data, at, 4 * n)
        offsets = np.frombuffer(data, "<u4", n, at).astype(np.int64) + start
        at += 4 * n
    for i, (key, most) in enumerate(header.tolist()):
        if offsets is not None and offsets[i] != at:
            raise _BrokenError(
                f"container {i} begins at byte {at}, and by its offset at {offsets[i]}"
            )
        count = most + 1
        if flags.size and flags[i]:
            pairs, behind = _runs(data, at)
        elif count <= _MOST_IN_ARRAY:
            pairs, behind = _array(data, at, count)
        else:
            pairs, behind = _bits(data, at)
        there = int((pairs[:, 1] - pairs[:, 0]).sum())
        if there != count:
            raise _BrokenError(
                f"the container at byte {at} has {there} numbers, and {count} by its header"
            )
        found.append(pairs + (base + (key << 16)))
        at = behind
    return at


def _runs(data: bytes, at: int) -> tuple[Pairs, int]:
    _needs(data, at, 2)
    (n,) = struct.unpack_from("<H", data, at)
    _needs(data, at + 2, 4 * n)
    found = np.frombuffer(data, "<u2", 2 * n, at + 2).reshape(n, 2).astype(np.int64)
    pairs = np.stack([found[:, 0], found[:, 0] + found[:, 1] + 1], axis=1)
    if (pairs[1:, 0] < pairs[:-1, 1]).any() or (pairs[:, 1] > 1 << 16).any():
        raise _BrokenError(f"the runs at byte {at} are not in order")
    return pairs, at + 2 + 4 * n


def _array(data: bytes, at: int, n: int) -> tuple[Pairs, int]:
    _needs(data, at, 2 * n)
    numbers = np.frombuffer(data, "<u2", n, at).astype(np.int64)
    if (np.diff(numbers) <= 0).any():
        raise _BrokenError(f"the numbers at byte {at} are not in order")
    return _pairs(numbers), at + 2 * n


def _bits(data: bytes, at: int) -> tuple[Pairs, int]:
    _needs(data, at, _BITMAP_BYTES)
    bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, at), bitorder="little")
    return _pairs(np.flatnonzero(bits).astype(np.int64)), at + _BITMAP_BYTES


def _pairs(numbers: npt.NDArray[np.int64]) -> Pairs:
    """The runs of numbers in order."""
    ends = np.flatnonzero(np.diff(numbers) != 1)
    first = numbers[np.concatenate([[0], ends + 1])] if numbers.size else numbers
    last = numbers[np.concatenate([ends, [numbers.size - 1]])] if numbers.size else numbers
    return np.stack([first, last + 1], axis=1)


def _needs(data: bytes, at: int, size: int) -> None:
    if at + size > len(data):
        raise _BrokenError(f"it ends at byte {len(data)}, and goes on to {at + size}")
