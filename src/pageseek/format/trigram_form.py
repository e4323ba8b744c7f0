"""The body of a `trigram` index: for each three bytes of the texts of a column, the blocks of rows that have them (docs/format.md).

Three bytes stand for a slot, by a hash. Slots lie in parts, of which a search reads those that it needs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from pageseek._core import rows
from pageseek._core.bloom import xxh64
from pageseek.base.arrays import distinct_numbers
from pageseek.base.late_modules import npt
from pageseek.format.bitmap_form import set_bytes, set_of
from pageseek.format.embedded import InvalidIndexError

KIND, VERSION = "trigram", 1
BLOCK_ROWS = 64  # a row group ends with a shorter block
GRAM = 3  # bytes
MAX_SLOT_BITS = 16
PART_BYTES = 8 << 10  # of a part, about
MAX_DIRECTORY_BYTES = 16 << 20
HEAD = struct.Struct(
    "<IIIQQ"
)  # bits of a slot, parts, blocks; checksums of the directory, and of this
PART = np.dtype([("slots", "<u4"), ("bytes", "<u4"), ("checksum", "<u4")])
SLOT = np.dtype([("blocks", "<u4"), ("bytes", "<u4"), ("form", "<u4")])
_FACTOR = np.uint32(0x9E3779B1)
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


def num_blocks(group_rows: Sequence[int]) -> int:
    """The blocks of a file."""
    return sum(-(-n // BLOCK_ROWS) for n in group_rows)


def slots_of(data: U8, bits: int = MAX_SLOT_BITS) -> npt.NDArray[np.uint32]:
    """The slot of the three bytes at each place of a text."""
    grams = data[:-2].astype(np.uint32)
    grams <<= 8
    grams |= data[1:-1]
    grams <<= 8
    grams |= data[2:]
    grams *= _FACTOR
    grams >>= np.uint32(32 - bits)
    return grams


def part_bytes(sets: Sequence[I64], blocks: int) -> bytes:
    """A part. `sets`: the blocks of each of its slots, in order."""
    table = np.zeros(len(sets), SLOT)
    made = []
    for i, found in enumerate(sets):
        form, data = set_bytes(found, blocks)
        table[i] = len(found), len(data), form
        made.append(data)
    return b"".join([table.tobytes(), *made])


def body(bits: int, blocks: int, parts: Iterable[tuple[int, bytes]]) -> bytearray:
    """The body. `parts`: how many slots each has, and its bytes."""
    made, listed = bytearray(), []  # in place: it may be large
    for n, data in parts:
        listed.append((n, len(data), xxh64(data) & 0xFFFFFFFF))
        made += data
    directory = np.array(listed, PART).tobytes()
    head = HEAD.pack(bits, len(listed), blocks, xxh64(directory), 0)[:-8]
    made[:0] = head + xxh64(head).to_bytes(8, "little") + directory
    return made


def head_length(data: memoryview) -> int:
    """The bytes of the body before the first part, by its first ones. InvalidIndexError: they are none."""
    return HEAD.size + PART.itemsize * _head(data)[1]


def _head(data: memoryview) -> tuple[int, int, int, int]:
    if data.nbytes < HEAD.size:
        raise InvalidIndexError("its head is cut short")
    bits, parts, blocks, of_directory, of_head = HEAD.unpack(data[: HEAD.size])
    if xxh64(data[: HEAD.size - 8]) != of_head:
        raise InvalidIndexError("the checksum of its head differs")
    if not 0 < bits <= MAX_SLOT_BITS:
        raise InvalidIndexError(f"slots of {bits} bits")
    return bits, parts, blocks, of_directory


class TrigramDirectory:
    """Where the parts of an index lie.

    Attributes
    ----------
    blocks : int
        The blocks of the file.
    nbytes : int
        Of the body before the first part.
    """

    def __init__(self, data: memoryview, blocks: int, length: int) -> None:
        """`data`: the bytes before the first part, or more. `blocks`: of the file. `length`: of the whole body."""
        self._bits, parts, self.blocks, of_directory = _head(data)
        self.nbytes = HEAD.size + PART.itemsize * parts
        if data.nbytes < self.nbytes:
            raise InvalidIndexError("its directory is cut short")
        if self.blocks != blocks:
            raise InvalidIndexError(f"it is of {self.blocks} blocks of rows, the file has {blocks}")
        directory = data[HEAD.size : self.nbytes]
        if xxh64(directory) != of_directory:
            raise InvalidIndexError("the checksum of its directory differs")
        table = np.frombuffer(directory, PART)
        sizes = table["bytes"].astype(np.int64)
        self._first_slots = np.concatenate([[0], np.cumsum(table["slots"].astype(np.int64))])
        self._starts = np.concatenate([[0], np.cumsum(sizes)]) + self.nbytes
        if self._first_slots[-1] != 1 << self._bits or self._starts[-1] != length:
            raise InvalidIndexError("its parts do not make up the whole of it")
        self._checksums = table["checksum"]

    def slots(self, text: bytes) -> list[int]:
        """The different slots of the bytes of a text."""
        found: list[int] = distinct_numbers(
            slots_of(np.frombuffer(text, np.uint8), self._bits)
        ).tolist()
        return found

    def part_of(self, slot: int) -> int:
        """The part that has a slot."""
        return int(np.searchsorted(self._first_slots, slot, "right")) - 1

    def place(self, part: int) -> tuple[int, int]:
        """(offset in the body, length) of a part."""
        return int(self._starts[part]), int(self._starts[part + 1] - self._starts[part])

    def check(self, part: int, data: memoryview) -> None:
        """Check the bytes of a part. InvalidIndexError: they are others."""
        if xxh64(data) & 0xFFFFFFFF != int(self._checksums[part]):
            raise InvalidIndexError(f"the checksum of part {part} differs")

    def found(self, slot: int, part: int, data: memoryview) -> rows.RowRanges:
        """The blocks of a slot, in a part whose bytes were checked."""
        first, stop = self._first_slots[part : part + 2].tolist()
        end = SLOT.itemsize * (stop - first)
        if data.nbytes < end:
            raise InvalidIndexError(f"part {part} is cut short")
        table = np.frombuffer(data[:end], SLOT)
        at = end + int(table["bytes"][: slot - first].sum(dtype=np.int64))
        n, size, form = table[slot - first].tolist()
        if at + size > data.nbytes:
            raise InvalidIndexError(f"part {part} is cut short")
        return set_of(form, data[at : at + size], n, self.blocks)
