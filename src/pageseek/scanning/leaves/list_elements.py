"""Lists by the nesting levels of decoded leaves: those with an element that passes, and some rows of them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek.base.arrays import of_numpy
from pageseek.base.late_modules import npt
from pageseek.format.nesting import Decoded

Bitmap: TypeAlias = "npt.NDArray[np.uint8]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"


def _flags(bits: Any, n: int) -> Flags:
    found = np.frombuffer(bits, np.uint8, (n + 7) // 8)
    return np.unpackbits(found, count=n, bitorder="little").astype(bool)


def passing(decoded: Decoded, mask: Bitmap, slots: int, every: bool) -> tuple[Bitmap, int]:
    """The rows whose list has an element that passes; with `every`, whose list is not null and has only such elements.

    `mask`: the slots of the leaf that pass. A null list within a list may have slots of any value.
    """
    found = _flags(mask, slots)
    inside = (
        False  # whether the level lies above the innermost list, so that its nulls hide elements
    )
    for nesting_level in reversed(decoded.nesting_levels):
        if len(nesting_level) == 2:
            n, buffer = nesting_level
            offsets = np.frombuffer(buffer, np.int32, n + 1)
            wrong = ~found if every else found
            before = np.concatenate([[0], np.cumsum(wrong, dtype=np.int64)])
            some = before[offsets[1:]] > before[offsets[:-1]]
            found = ~some if every else some
            inside = True
        elif inside and nesting_level[1]:
            found &= _flags(nesting_level[2], nesting_level[0])
    return np.packbits(found, bitorder="little"), int(np.count_nonzero(found))


def taken(decoded: Decoded, mask: Bitmap) -> Decoded:
    """The rows of a leaf, with its nesting levels, that a bitmap selects."""
    places: npt.NDArray[np.int64] = np.flatnonzero(_flags(mask, decoded.rows))
    rows = len(places)
    nesting_levels: list[tuple[Any, ...]] = []
    for nesting_level in decoded.nesting_levels:
        if len(nesting_level) == 2:
            n, buffer = nesting_level
            offsets = np.frombuffer(buffer, np.int32, n + 1).astype(np.int64)
            starts, sizes = offsets[places], (offsets[1:] - offsets[:-1])[places]
            ends = np.concatenate([[0], np.cumsum(sizes)])
            nesting_levels.append((len(places), pa.py_buffer(ends.astype(np.int32).tobytes())))
            places = np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])
            continue
        n, nulls, bits = nesting_level
        if nulls:
            kept = _flags(bits, n)[places]
            nulls = len(places) - int(np.count_nonzero(kept))
            bits = pa.py_buffer(np.packbits(kept, bitorder="little").tobytes())
        nesting_levels.append((len(places), nulls, bits if nulls else None))
    return Decoded(rows, decoded.array.take(of_numpy(places)), nesting_levels)
