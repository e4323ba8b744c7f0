"""The body of a `lookup` index: the rows of each value of a column, by blocks of a hash table (docs/format.md).

A block has the entries of one range of hashes, about ENTRIES of them. An entry is a slot within the block, eight bits of the hash
beside it, and a row. A value is looked up by one block.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from pageseek._core import hash_blocks
from pageseek._core.bloom import pieces, xxh64
from pageseek.base.arrays import distinct_numbers
from pageseek.base.late_modules import npt
from pageseek.format.embedded import InvalidIndexError

KIND, VERSION = "lookup", 1
SLOTS = hash_blocks.SLOTS  # of a block, a power of two
ENTRIES = SLOTS  # of a block, if its column has no nulls and hashes spread evenly
MAX_ENTRIES = (
    1 << 19
)  # of a block: a value with very many rows makes it large, and a lookup reads all of it
# entries, rows, blocks, bits of a row, checksums of the directory and of this
HEAD = struct.Struct("<QQIIQQ")
_HEAD = np.dtype(
    [
        ("entries", "<u8"), ("rows", "<u8"), ("blocks", "<u4"), ("row_bits", "<u4"), ("of_listed", "<u8"), ("of_head", "<u8"),
    ]
)  # fmt: skip
BLOCK = np.dtype([("end", "<u8"), ("entries", "<u4"), ("checksum", "<u4")])
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def num_blocks(num_rows: int) -> int:
    """The blocks of a file with so many rows."""
    return max(-(-num_rows // ENTRIES), 1)


def nums_of_blocks(num_rows: I64) -> I64:
    """The blocks of each of several files."""
    return np.maximum(-(-num_rows // ENTRIES), 1)


def bytes_of_directory(blocks: Any) -> Any:
    """The bytes before the first of so many blocks; of an array of numbers, of each."""
    return HEAD.size + BLOCK.itemsize * blocks


def directory_bytes(num_rows: int) -> int:
    """The bytes before the first block of a file with so many rows."""
    return int(bytes_of_directory(num_blocks(num_rows)))


def block_of(hashes: U64, blocks: int | U64) -> I64:
    """The block of each hash: its upper half, scaled."""
    return ((hashes >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)).astype(np.int64)


def slot_and_mark(hashes: U64) -> tuple[I64, npt.NDArray[np.uint8]]:
    """The slot of each hash within its block, and the eight bits that stand for the hash there."""
    slots = (hashes >> np.uint64(8)).astype(np.int64) & (SLOTS - 1)
    return slots, hashes.astype(np.uint8)


def packed(rows: I64, bits: int) -> npt.NDArray[np.uint8]:
    """Numbers of so many bits each, least significant first."""
    wide = rows.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : -(-bits // 8)]
    of_each = np.unpackbits(np.ascontiguousarray(wide), axis=1, bitorder="little")[:, :bits]
    return np.packbits(of_each.ravel(), bitorder="little")


def block_bytes(hashes: U64, rows: I64, row_bits: int) -> bytes:
    """The bytes of a block, of entries in any order."""
    slots, marks = slot_and_mark(hashes)
    order = np.lexsort((rows, marks, slots))
    slots, marks, rows = slots[order], marks[order], rows[order]
    n = len(slots)
    bits = np.zeros(n + SLOTS, np.uint8)
    bits[slots + np.arange(n)] = 1  # for each slot as many ones as it has entries, and a zero
    ends = np.packbits(bits, bitorder="little")
    return ends.tobytes() + marks.tobytes() + packed(rows, row_bits).tobytes()


def block_size(n: Any, row_bits: Any) -> Any:
    """The bytes of a block of n entries, or of several."""
    return (n + SLOTS + 7) // 8 + n + (n * row_bits + 7) // 8


class Directories:
    """The directories of several indexes with the same number of blocks, checked together.

    Attributes
    ----------
    starts, sizes, entries, checksums : int64 arrays of shape (n, blocks)
        Of each block: where in the body it begins, its bytes, its entries, and the low half of its XXH64.
    row_bits : int64 array of shape (n,)
    faults : list of (bool array of shape (n,), callable)
        Which directories are wrong, and what is wrong with the one of a number.
    """

    def __init__(self, data: npt.NDArray[np.uint8], num_rows: I64, lengths: I64) -> None:
        """`data`: the bytes before the first block, of shape (n, bytes). `lengths`: of the whole bodies."""
        n, size = data.shape
        head = np.ascontiguousarray(data[:, : HEAD.size])
        listed = np.ascontiguousarray(data[:, HEAD.size :])
        told = head.view(_HEAD)[:, 0]
        table = listed.view(BLOCK)
        entries, rows, blocks, of_listed, of_head = (
            told[name] for name in ("entries", "rows", "blocks", "of_listed", "of_head")
        )
        ends, self.entries = table["end"].astype(np.int64), table["entries"].astype(np.int64)
        self.checksums, self.row_bits = (
            table["checksum"].astype(np.int64),
            told["row_bits"].astype(np.int64),
        )
        before = np.concatenate([np.zeros((n, 1), np.int64), ends[:, :-1]], axis=1)
        self.starts, self.sizes = before + size, ends - before
        wanted = block_size(self.entries, self.row_bits[:, None])
        most = self.entries.max(axis=1)
        heads = np.ascontiguousarray(head[:, :-8])
        differs = (_checksums(heads) != of_head) | (_checksums(listed) != of_listed)
        bits = np.array([row_bits_of(one) for one in num_rows.tolist()])
        self.faults: list[tuple[npt.NDArray[np.bool_], Callable[[int], str]]] = [
            (differs, lambda i: "the checksum of its directory differs"),
            (
                (rows != num_rows) | (blocks != table.shape[1]),
                lambda i: f"it is of {rows[i]} rows, the file has {num_rows[i]}",
            ),
            (
                self.row_bits != bits,
                lambda i: f"{self.row_bits[i]} bits for a row of {num_rows[i]}",
            ),
            (
                (self.sizes != wanted).any(axis=1)
                | (ends[:, -1] + size != lengths)
                | (self.entries.sum(axis=1) != entries),
                lambda i: "its blocks do not lie one behind the other",
            ),
            (
                (entries > num_rows) | (most > MAX_ENTRIES),
                lambda i: (
                    f"{entries[i]:,} entries, {most[i]:,} in one block, of {num_rows[i]:,} rows"
                ),
            ),
        ]

    @property
    def sound(self) -> npt.NDArray[np.bool_]:
        """Which are right."""
        wrong: npt.NDArray[np.bool_] = np.any([wrong for wrong, _ in self.faults], axis=0)
        return ~wrong


def _checksums(data: npt.NDArray[np.uint8]) -> U64:
    """XXH64 of each row."""
    n, size = data.shape
    return np.frombuffer(pieces(data, size, 0), np.uint64) if n else np.zeros(0, np.uint64)


class LookupDirectory:
    """Where the blocks of an index lie.

    Attributes
    ----------
    num_rows : int
        The rows of the file.
    """

    def __init__(self, data: memoryview, num_rows: int, length: int) -> None:
        """`data`: the bytes before the first block. `length`: of the whole body."""
        size = directory_bytes(num_rows)
        if data.nbytes < size or length < size:
            raise InvalidIndexError("its directory is cut short")
        given = np.frombuffer(data[:size], np.uint8).reshape(1, size)
        found = Directories(given, np.array([num_rows]), np.array([length]))
        for wrong, why in found.faults:
            if wrong[0]:
                raise InvalidIndexError(why(0))
        self.num_rows, self._row_bits = num_rows, int(found.row_bits[0])
        self._starts, self._sizes = found.starts[0], found.sizes[0]
        self._entries, self._checksums = found.entries[0], found.checksums[0]

    @property
    def num_blocks(self) -> int:
        """How many blocks there are."""
        return len(self._starts)

    @property
    def nbytes(self) -> int:
        """About the bytes of memory."""
        return 48 * self.num_blocks

    def place(self, block: int) -> tuple[int, int]:
        """(offset in the body, length) of a block."""
        return int(self._starts[block]), int(self._sizes[block])

    def rows(
        self, blocks: list[int], parts: list[memoryview], hashes: U64, counts: list[int]
    ) -> I64:
        """The rows that may have a value with one of some hashes, in order. `parts`: the bytes of each block. `counts`: how many of
        the hashes lie in each. CoreError: a block is wrong, or names a row that the file has not.
        """
        entries, checksums = self._entries[blocks].tolist(), self._checksums[blocks].tolist()
        asked = list(zip(parts, entries, checksums, counts, strict=True))
        found = hash_blocks.find(asked, hashes, self._row_bits, self.num_rows)
        return distinct_numbers(np.frombuffer(found, np.int64))


def row_bits_of(num_rows: int) -> int:
    """The bits of a row's number."""
    return max(num_rows - 1, 1).bit_length()


def directory_of(blocks: list[tuple[int, int, int]], num_entries: int, num_rows: int) -> bytes:
    """The bytes before the first block. `blocks`: of each the bytes, entries, and checksum."""
    table = np.zeros(len(blocks), BLOCK)
    sizes, table["entries"], table["checksum"] = np.array(blocks, np.int64).T
    table["end"] = np.cumsum(sizes)
    listed = table.tobytes()
    fields = num_entries, num_rows, len(blocks), row_bits_of(num_rows), xxh64(listed)
    head = HEAD.pack(*fields, 0)[:-8]
    return head + xxh64(head).to_bytes(8, "little") + listed
