"""Bitmaps over the rows of decoded columns: the rows that pass a test, and the columns cut down to them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek._core.gather import gather
from pageseek.base.late_modules import npt
from pageseek.format.nesting import Decoded
from pageseek.format.schema import Leaf
from pageseek.format.types import K_BOOL, K_FIXED, K_VIEWS, LeafType, to_arrow
from pageseek.predicate.bound import BoundLeaf

SHORT_VIEW = 12  # bytes of the longest string that lies in its view
Bitmap: TypeAlias = "npt.NDArray[np.uint8]"  # least significant bit first, tail bits zero


def compared(test: BoundLeaf, leaf_type: LeafType, array: pa.Array) -> tuple[Bitmap, int, int]:
    """The bitmap of the values that pass a test, their number, and the length of the array. The array has offset 0."""
    buffers = array.buffers()
    mask, count = rows.compare(
        leaf_type.kind,
        leaf_type.width,
        len(array),
        buffers[0] if array.null_count else None,
        buffers[-1],
        buffers[1] if len(buffers) == 3 else None,
        test.op,
        test.negate,
        test.against(len(array)) if test.op == rows.OP_IN else test.literals,
        test.nan,
    )
    return np.frombuffer(mask, np.uint8), count, len(array)


def joined(masks: list[tuple[Bitmap, int, int]]) -> tuple[Bitmap, int]:
    """The masks of consecutive arrays as one."""
    if len(masks) == 1:
        return masks[0][0], masks[0][1]
    if not any(size % 8 for _, _, size in masks[:-1]):
        return np.concatenate([mask for mask, _, _ in masks]), sum([one for _, one, _ in masks])
    bits = np.concatenate([np.unpackbits(m, count=size, bitorder="little") for m, _, size in masks])
    return np.packbits(bits, bitorder="little"), sum(count for _, count, _ in masks)


def constant(value: bool, n: int) -> tuple[Bitmap, int]:
    mask = first_bits(n, n) if value else np.zeros((n + 7) // 8, np.uint8)
    return mask, n if value else 0


def picked(
    leaf_type: LeafType, arrays: list[pa.Array], mask: Bitmap, n: int, count: int
) -> list[pa.Array]:
    """The `count` rows of a bitmap, as arrays with offset 0, which the kernels need."""
    if leaf_type.is_null:
        return [pa.nulls(count)]
    out, at = [], 0
    for array in arrays:
        rows_in, ones = len(array), count
        if rows_in < n:  # one of several arrays, some of which may be empty
            places = np.unpackbits(mask, count=at + rows_in, bitorder="little")
            ones = int(np.count_nonzero(places[at:]))
        buffers = array.buffers()
        if leaf_type.kind == K_VIEWS:
            out.append(_picked_views(array, mask, ones, at))
            at += rows_in
            continue
        made = gather(
            leaf_type.kind,
            leaf_type.width,
            rows_in,
            buffers[0] if array.null_count else None,
            buffers[-1],
            buffers[1] if len(buffers) == 3 else None,
            mask,
            ones,
            start=at,
        )
        out.append(to_arrow(leaf_type, *made))
        at += rows_in
    return out


def _picked_views(array: pa.Array, mask: Bitmap, count: int, start: int) -> pa.Array:
    """The rows of a bitmap of an array of views. Long strings are copied if they are less than half of those in memory."""
    validity, views, *data = array.buffers()
    known = validity if array.null_count else None
    made = gather(K_FIXED, 16, len(array), known, views, None, mask, count, start=start)
    _, nulls, validity, _, views = made
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(views), *data]
    picked = pa.Array.from_buffers(array.type, count, buffers, nulls)
    lengths = np.frombuffer(views, np.int32, 4 * count)[::4]
    used = int(lengths[lengths > SHORT_VIEW].sum(dtype=np.int64))
    if 2 * used >= max((buffer.size for buffer in data), default=0):
        return picked
    wide = pa.large_string() if array.type == pa.string_view() else pa.large_binary()
    return picked.cast(wide).cast(array.type)


def repeats(decoded: Decoded) -> bool:
    return any(len(nesting_level) == 2 for nesting_level in decoded.nesting_levels)


def picked_nesting(decoded: Decoded, mask: Bitmap, count: int) -> Decoded:
    """The `count` rows of a bitmap. No level is repeated: each has one slot for each row."""
    nesting_levels: list[tuple[Any, ...]] = []
    for slots, nulls, bits in decoded.nesting_levels:
        if nulls:
            made = gather(K_BOOL, 0, slots, None, bits, None, mask, count, start=0)
            bits = pa.py_buffer(made[-1])
            nulls = count - count_bits(bits, count)
        nesting_levels.append((count, nulls, bits if nulls else None))
    return Decoded(count, decoded.array, nesting_levels)


def head_of_nesting(decoded: Decoded, n: int) -> Decoded:
    return picked_nesting(decoded, first_bits(n, decoded.rows), n) if n < decoded.rows else decoded


def presence(decoded: Decoded, leaf: Leaf) -> pa.Array:
    """An array for a leaf that stands for a group: TRUE, or null where the group is null."""
    n, nulls, bits = decoded.nesting_levels[leaf.nesting_level]
    ones = pa.py_buffer(b"\xff" * ((n + 7) // 8))
    return pa.Array.from_buffers(pa.bool_(), n, [bits if nulls else None, ones], nulls)


def count_bits(bits: Bitmap | pa.Buffer, n: int) -> int:
    """How many of n bits are set."""
    made: int = pa.Array.from_buffers(pa.bool_(), n, [None, pa.py_buffer(bits)]).true_count
    return made


def first_bits(n: int, total: int) -> Bitmap:
    mask = np.zeros((total + 7) // 8, np.uint8)
    mask[: n // 8] = 0xFF
    if n % 8:
        mask[n // 8] = (1 << n % 8) - 1
    return mask


def head_of(leaf_type: LeafType, arrays: list[pa.Array], n: int) -> list[pa.Array]:
    """The first n rows, in memory of their own: a few rows do not keep many alive."""
    rows_in = sum(map(len, arrays))
    if n >= rows_in:
        return arrays
    mask = first_bits(n, rows_in)
    return [array for array in picked(leaf_type, arrays, mask, rows_in, n) if len(array)]
