"""Where the pages of a file are, by other means than pageseek's: a plain reader of Thrift's compact protocol.

Sources: parquet.thrift (FileMetaData, RowGroup, ColumnChunk, OffsetIndex), Thrift's compact protocol.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


class Reader:
    """Structs as dicts {field id: value}, one value after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def take(self, n: int) -> bytes:
        self.at += n
        return self.data[self.at - n : self.at]

    def value(self, kind: int) -> Any:
        if kind in (1, 2):  # inside a list a boolean is a byte
            return self.take(1) == b"\1"
        if kind == 3:
            return struct.unpack("b", self.take(1))[0]
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 7:
            return struct.unpack("<d", self.take(8))[0]
        if kind == 8:
            return self.take(self.varint())
        if kind in (9, 10):
            head = self.take(1)[0]
            n = head >> 4 if head < 0xF0 else self.varint()
            return [self.value(head & 15) for _ in range(n)]
        if kind == 12:
            return self.struct()
        raise ValueError(f"type {kind} at byte {self.at}")

    def struct(self) -> dict[int, Any]:
        made: dict[int, Any] = {}
        number = 0
        while (head := self.take(1)[0]) != 0:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            made[number] = kind == 1 if kind in (1, 2) else self.value(kind)
        return made


@dataclass
class Pages:
    """The data pages of one column over all row groups, in file order. `first_row` counts from the file's first."""

    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    first_row: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offset)

    def of_rows(self, rows: Any) -> list[int]:
        """The pages that hold these rows of the file."""
        found = np.searchsorted(self.first_row, np.asarray(rows, np.int64), "right") - 1
        return [int(page) for page in np.unique(found)]

    def required_leaves(self, ranges: list[tuple[int, int]]) -> list[int]:
        """The pages of which any byte lies in one of the (offset, length) ranges."""
        hit = np.zeros(len(self), np.bool_)
        for at, n in ranges:
            hit |= (self.offset < at + n) & (at < self.offset + self.size)
        return [int(page) for page in np.flatnonzero(hit)]


def read_pages(path: Path) -> tuple[dict[str, Pages], list[tuple[int, int]]]:
    """The pages of each flat column, and the (offset, length) of every offset and column index."""
    with path.open("rb") as file:
        file.seek(-8, 2)
        end = file.tell()
        length = int.from_bytes(file.read(4), "little")
        file.seek(end - length)
        footer = Reader(file.read(length)).struct()
        parts: dict[str, list[tuple[int, int, int]]] = {}
        indexes: list[tuple[int, int]] = []
        row = 0
        for group in footer[4]:
            for chunk in group[1]:
                file.seek(chunk[4])
                locations = Reader(file.read(chunk[5])).struct()[1]
                name = b".".join(chunk[3][3]).decode()
                found = parts.setdefault(name, [])
                found += [(at[1], at[2], row + at.get(3, 0)) for at in locations]
                indexes += [(chunk[4], chunk[5]), (chunk[6], chunk[7])]
            row += group[3]
    made = {
        name: Pages(*(np.array(column, np.int64) for column in zip(*found, strict=True)))
        for name, found in parts.items()
    }
    return made, indexes
