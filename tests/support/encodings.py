"""Encoders of values by Encodings.md, with options for everything that the format allows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT = 5, 6, 7, 9


def varint(value: int) -> bytes:
    """ULEB128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Zigzag, then ULEB128."""
    return varint(-2 * value - 1 if value < 0 else 2 * value)


class Delta(NamedTuple):
    """How a delta stream is cut and padded.

    `minis` miniblocks of `per_mini` values make a block. `bits`: arithmetic wraps around at so many.
    `extra`: bits of a delta beyond those that it needs. `pad`: a 1 for each padding bit, and `unneeded` the
    width bytes of miniblocks that have no values. `cut`: the padding of the last miniblock is left out.
    """

    minis: int = 4
    per_mini: int = 32
    bits: int = 64
    extra: int = 0
    pad: bool = False
    unneeded: int = 0
    cut: bool = False


USUAL = Delta()  # as most writers have it


def _batches(values: Sequence[int], size: int) -> list[Sequence[int]]:
    return [values[i : i + size] for i in range(0, len(values), size)]


def delta(values: Sequence[int], how: Delta = USUAL) -> bytes:
    """DELTA_BINARY_PACKED."""
    wrap, half = 1 << how.bits, 1 << how.bits - 1
    signed = [(v + half) % wrap - half for v in values]
    out = varint(how.minis * how.per_mini) + varint(how.minis) + varint(len(values))
    out += zigzag(signed[0] if signed else 0)
    deltas = [(b - a + half) % wrap - half for a, b in itertools.pairwise(signed)]
    for block in _batches(deltas, how.minis * how.per_mini):
        least = min(block)
        parts = _batches([d - least for d in block], how.per_mini)
        widths = [min(max(part).bit_length() + how.extra, how.bits) for part in parts]
        out += zigzag(least)
        out += bytes(widths) + bytes([how.unneeded]) * (how.minis - len(parts))
        for part, width in zip(parts, widths, strict=True):
            missing = how.per_mini - len(part)
            ones = (1 << width) - 1 if how.pad else 0
            packed = sum(d << i * width for i, d in enumerate([*part, *[ones] * missing]))
            size = how.per_mini * width // 8
            body = packed.to_bytes(size, "little")
            out += body[: (len(part) * width + 7) // 8] if how.cut and missing else body
    return out


def delta_lengths(values: Sequence[bytes], how: Delta = USUAL) -> bytes:
    """DELTA_LENGTH_BYTE_ARRAY. The lengths' own padding cannot be cut: data follows."""
    return delta([len(v) for v in values], how._replace(bits=32, cut=False)) + b"".join(values)


def delta_strings(values: Sequence[bytes], how: Delta = USUAL, share: int | None = None) -> bytes:
    """DELTA_BYTE_ARRAY. `share`: at most so many bytes are taken from the value before."""
    shared = [0]
    for a, b in itertools.pairwise(values):
        unlike = (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
        common = next(unlike, min(len(a), len(b)))
        shared.append(common if share is None else min(common, share))
    rest = [v[n:] for v, n in zip(values, shared, strict=False)]
    return delta(shared[: len(values)], how._replace(bits=32, cut=False)) + delta_lengths(rest, how)


def stream_split(plain: bytes, width: int) -> bytes:
    """BYTE_STREAM_SPLIT of PLAIN values of `width` bytes."""
    return b"".join(plain[k::width] for k in range(width))


def encode(encoding: int, physical: int, values: Sequence[Any], plain: bytes, how: Delta) -> bytes:
    """`values`, which are `plain` in PLAIN, in any of the four."""
    if encoding == BYTE_STREAM_SPLIT:
        return stream_split(plain, len(plain) // len(values)) if values else b""
    if encoding == DELTA_BINARY_PACKED:
        return delta(values, how._replace(bits=32 if physical == 1 else 64))
    if encoding == DELTA_LENGTH_BYTE_ARRAY:
        return delta_lengths(values, how)
    return delta_strings(values, how, None if how.minis == 4 else 2)
