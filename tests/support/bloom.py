"""Bloom filters in plain Python, by BloomFilter.md and xxhash_spec.md: the slow version of the core's."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from support.writer import I32, I64, Column, Struct, thrift, write

_M = (1 << 64) - 1
_P = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SALT = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)


def _rotate(v: int, by: int) -> int:
    return (v << by | v >> (64 - by)) & _M


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P[1]) & _M, 31) * _P[0] & _M


def xxh64(data: bytes) -> int:
    at, h = 0, _P[4]
    if len(data) >= 32:
        lanes = [(_P[0] + _P[1]) & _M, _P[1], 0, -_P[0] & _M]
        while at + 32 <= len(data):
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        h = sum(_rotate(v, by) for v, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _M
        for lane in lanes:
            h = ((h ^ _round(0, lane)) * _P[0] + _P[3]) & _M
    h = (h + len(data)) & _M
    while at + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, at)
        h = (_rotate(h ^ _round(0, word), 27) * _P[0] + _P[3]) & _M
        at += 8
    if at + 4 <= len(data):
        (word,) = struct.unpack_from("<I", data, at)
        h = (_rotate(h ^ word * _P[0] & _M, 23) * _P[1] + _P[2]) & _M
        at += 4
    for byte in data[at:]:
        h = _rotate(h ^ byte * _P[4] & _M, 11) * _P[0] & _M
    h = (h ^ h >> 33) * _P[1] & _M
    h = (h ^ h >> 29) * _P[2] & _M
    return h ^ h >> 32


def bitset(plain: Iterable[bytes], num_bytes: int = 1024) -> bytes:
    """A filter's bits with these values, as bytes of PLAIN encoding, inserted."""
    words = [0] * (num_bytes // 4)
    for value in plain:
        h = xxh64(value)
        block = (h >> 32) * (num_bytes // 32) >> 32
        for i, salt in enumerate(_SALT):
            words[8 * block + i] |= 1 << (((h & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27)
    return struct.pack(f"<{len(words)}I", *words)


def header(num_bytes: int, algorithm: int = 1, hash_: int = 1, compression: int = 1) -> bytes:
    members = {i + 2: {m: {}} for i, m in enumerate((algorithm, hash_, compression))}
    return thrift({1: I32(num_bytes), **members})


def bloomed(
    column: Column,
    made: bytes,
    length: int | None = -1,
    offset: int | None = None,
    others: tuple[Column, ...] = (),
    **knobs: Any,
) -> bytes:
    """A file whose first column has `made`, header and bits, for its filter. `length`: as the footer tells it, -1 the
    true one, None none; `offset`: another place than the true one.
    """
    place = 1 << 40

    def edit(meta: Struct) -> None:
        meta[14] = I64(place if offset is None else offset)
        meta[15] = None if length is None else I32(len(made) if length == -1 else length)
        if also is not None:
            also(meta)

    also, column.edit_chunk = column.edit_chunk, edit
    marker = b"<filter>"
    first = write([column, *others], padding=marker + made, **knobs)
    place = first.index(marker) + len(marker)
    return write([column, *others], padding=marker + made, **knobs)
