"""The distinct values of a column, of the whole file and of each row group: the body of an index of kind "distinct".

The form is that of docs/format.md.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import convert
from pageseek._core.lists import Lists
from pageseek.base.errors import CoreError
from pageseek.base.late_modules import npt
from pageseek.base.records import dataclass
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.types import K_FIXED, LeafType, to_arrow

KIND, VERSION = "distinct", 1
FIXED_LAYOUT, STRINGS = 0, 1  # layouts of the values
COMPLETE, NULLS, NANS = 1, 2, 4  # flags of a row group
_HEAD = struct.Struct("<IIBBHI")  # row groups, values, layout, whether per row group, 0, width


@dataclass(frozen=True, slots=True)
class Distinct:
    """The list of one file.

    Attributes
    ----------
    n : int
        The number of values.
    width : int
        Bytes of each value; 0 if they differ in length.
    values : bytes-like
        Their PLAIN bytes, one value behind the other.
    ends : uint32 array of shape (n + 1,) or None
        Where in `values` each value begins, if they differ in length.
    flags : uint8 array of shape (row groups,)
    has : uint8 array of shape (row groups, (n + 7) // 8) or None
        Bits: the values that a row group has. None if that is not kept: each row group may have any of them.
    """

    n: int
    width: int
    values: bytes | memoryview
    ends: npt.NDArray[np.uint32] | None
    flags: npt.NDArray[np.uint8]
    has: npt.NDArray[np.uint8] | None

    def to_bytes(self) -> bytes:
        """The body, as docs/format.md has it."""
        layout = FIXED_LAYOUT if self.ends is None else STRINGS
        parts: list[Any] = [
            _HEAD.pack(len(self.flags), self.n, layout, self.has is not None, 0, self.width),
            self.flags.tobytes(),
        ]
        if self.has is not None:
            parts.append(self.has.tobytes())
        if self.ends is not None:
            parts.append(self.ends.astype("<u4").tobytes())
        return b"".join((*parts, self.values))

    @classmethod
    def of(cls, data: memoryview, row_groups: int) -> Distinct:
        """The body of the index of a file with this number of row groups. InvalidIndexError: it contradicts itself."""
        try:
            Lists(data, struct.pack("3q", 0, data.nbytes, row_groups)).check(0)
        except CoreError as error:
            raise InvalidIndexError(error.message) from error
        _, n, layout, per_group, _, width = _HEAD.unpack_from(data)
        row = (n + 7) // 8 if per_group else 0
        at = _HEAD.size + row_groups
        flags = np.frombuffer(data[_HEAD.size : at], np.uint8)
        has = ends = None
        if per_group:
            has = np.frombuffer(data[at : at + row_groups * row], np.uint8).reshape(row_groups, row)
        at += row_groups * row
        if layout == STRINGS:
            ends = np.frombuffer(data[at : at + 4 * (n + 1)], "<u4")
            at += ends.nbytes
        return cls(n, width, data[at:], ends, flags, has)

    def array(self, leaf_type: LeafType) -> pa.Array:
        """The values in the storage type of a leaf type. InvalidIndexError: the column cannot have one of them."""
        if self.ends is None:
            offsets = np.arange(self.n, dtype=np.int64) * self.width
            lengths = np.full(self.n, self.width, np.int64)
        else:
            offsets = self.ends[:-1].astype(np.int64)
            lengths = self.ends[1:].astype(np.int64) - offsets
        places = np.concatenate([offsets, lengths, offsets, lengths]).tobytes()
        values, ends, _, _, known = convert.convert_bounds(
            leaf_type.core, memoryview(self.values), places, self.n
        )
        if not np.frombuffer(known, np.uint8).all():
            raise InvalidIndexError("not all of its values are such as the column has")
        if leaf_type.kind == K_FIXED:  # none is null, so that offsets are not needed
            ends = None
        return to_arrow(leaf_type, self.n, 0, None, ends, values)
