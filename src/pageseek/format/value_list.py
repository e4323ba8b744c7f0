"""The different values of a column, of the whole file and of each row group: the body of an index of kind "distinct".

The form is that of docs/format.md.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import convert
from pageseek.base.records import dataclass
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.types import K_FIXED, LeafType, to_arrow

KIND, VERSION = "distinct", 1
FIXED_LAYOUT, STRINGS = 0, 1  # how values lie
COMPLETE, NULLS, NANS = 1, 2, 4  # what is known of a row group
_HEAD = struct.Struct("<IIBBHI")  # row groups, values, layout, whether per row group, 0, width
_Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Distinct:
    """`values`: PLAIN bytes each, one behind the other; `ends` has one more than there are, where they differ in length.

    `flags`: of each row group. `has`: bits, of each row group a row, which values it has; None where that is not kept:
    then each may have any of them.
    """

    n: int
    width: int
    values: bytes | memoryview
    ends: npt.NDArray[np.uint32] | None
    flags: _Bits
    has: _Bits | None

    def to_bytes(self) -> bytes:
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
        """What a body says of a file with so many row groups. InvalidIndexError where it contradicts itself."""
        if data.nbytes < _HEAD.size:
            raise InvalidIndexError("it is too short")
        groups, n, layout, per_group, zero, width = _HEAD.unpack_from(data)
        if groups != row_groups or per_group > 1 or zero or layout not in (FIXED_LAYOUT, STRINGS):
            raise InvalidIndexError("its head makes no sense")
        at = _HEAD.size + groups
        row = (n + 7) // 8
        size = groups * row if per_group else 0
        ends_size = 4 * (n + 1) if layout == STRINGS else 0
        if at + size + ends_size > data.nbytes:
            raise InvalidIndexError("it is too short")
        flags = np.frombuffer(data[_HEAD.size : at], np.uint8)
        has = None
        if per_group:
            has = np.frombuffer(data[at : at + size], np.uint8).reshape(groups, row)
        at += size
        ends = None
        if layout == STRINGS:
            ends = np.frombuffer(data[at : at + ends_size], "<u4")
            at += ends_size
        values = data[at:]
        if ends is None:
            fits = values.nbytes == n * width and (width > 0 or n == 0)
        else:
            fits = not width and ends[0] == 0 and ends[-1] == values.nbytes
            fits = bool(fits and (np.diff(ends.astype(np.int64)) >= 0).all())
        if not fits or (flags > COMPLETE | NULLS | NANS).any():
            raise InvalidIndexError("its values do not fill it")
        if has is not None and n % 8 and (has[:, -1] >> n % 8).any():
            raise InvalidIndexError("it speaks of values that it has not")
        return cls(n, width, values, ends, flags, has)

    def array(self, leaf_type: LeafType) -> pa.Array:
        """The values as a leaf of this form is decoded, to `storage`. InvalidIndexError where one of them is no such value."""
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
        if leaf_type.kind == K_FIXED:  # all are there, one behind the other
            ends = None
        return to_arrow(leaf_type, self.n, 0, None, ends, values)
