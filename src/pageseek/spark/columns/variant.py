"""Variants that Spark has shredded into columns, put together again.

A Variant is two pieces of bytes: the names of all fields in it, and a value that refers to them. Shredded, a part of the value
is in columns: `typed_value` has what is of the column's type, `value` the rest as bytes. The format is that of Parquet
(VariantEncoding.md, VariantShredding.md).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import UnsupportedError

_NULL = b"\x00"
_TRUE, _FALSE = bytes([1 << 2]), bytes([2 << 2])
_INTEGERS = ((3, "b"), (4, "h"), (5, "i"), (6, "q"))
_DECIMALS = ((8, 9, 4), (9, 18, 8), (10, 38, 16))  # type, digits, bytes
_OBJECT, _ARRAY = 2, 3
Values = list[bytes | None]


class Names:
    """The names of the fields of one Variant."""

    def __init__(self, metadata: bytes) -> None:
        size = (metadata[0] >> 6) + 1
        count = int.from_bytes(metadata[1 : 1 + size], "little")
        ends = _numbers(metadata, 1 + size, size, count + 1)
        start = 1 + size * (count + 2)
        self.names = [metadata[start + a : start + b] for a, b in pairwise(ends)]
        self.ids = {name: i for i, name in enumerate(self.names)}


def whole_values(array: pa.StructArray) -> pa.Array:
    """The values of shredded Variants, as bytes.

    Raises
    ------
    UnsupportedError
        A column has a type that Spark does not shred into.
    """
    known: dict[bytes, Names] = {}
    names = []
    for metadata in array.field("metadata").to_pylist():
        if metadata is not None and metadata not in known:
            known[metadata] = Names(metadata)
        names.append(known.get(metadata))
    made = _values(array, names)
    return pa.array([_NULL if value is None else value for value in made], pa.binary())


def _values(array: pa.StructArray, names: Sequence[Names | None]) -> Values:
    """The values of a pair of `value` and `typed_value`; None: there is none."""
    fields = [field.name for field in array.type]
    rest: Values = [None] * len(array)
    if "value" in fields:
        rest = array.field("value").to_pylist()
    if "typed_value" not in fields:
        return rest
    typed = _typed(array.field("typed_value"), rest, names)
    return [rest[i] if value is None else value for i, value in enumerate(typed)]


def _typed(array: pa.Array, rest: Values, names: Sequence[Names | None]) -> Values:
    t = pa.types
    there = np.asarray(array.is_valid())
    if t.is_struct(array.type):
        keys = [field.name.encode() for field in array.type]
        columns = [_values(array.field(i), names) for i in range(len(keys))]
        made: Values = []
        for i, has in enumerate(there):
            own = names[i]
            if not has or own is None:
                made.append(None)
                continue
            fields = [(key, one) for key, c in zip(keys, columns, strict=True) if (one := c[i])]
            left = rest[i]
            fields += [] if left is None else _fields(left, own)
            made.append(_object(fields, own))
        return made
    if t.is_list(array.type) or t.is_large_list(array.type):
        ends = np.asarray(array.offsets)
        first, last = int(ends[0]), int(ends[-1])
        sizes = np.diff(ends)
        inner = [own for own, size in zip(names, sizes, strict=True) for _ in range(int(size))]
        elements = _values(array.values.slice(first, last - first), inner)
        return [
            _array([one or _NULL for one in elements[a - first : b - first]]) if has else None
            for has, (a, b) in zip(there, pairwise(ends), strict=True)
        ]
    encode, plain = _encoder(array)
    return [None if value is None else encode(value) for value in plain.to_pylist()]


def _encoder(array: pa.Array) -> tuple[Callable[[Any], bytes], pa.Array]:
    """How the values of a type are written, and the values as that takes them."""
    t, kind = pa.types, array.type
    if t.is_boolean(kind):
        return (lambda value: _TRUE if value else _FALSE), array
    if t.is_integer(kind):
        return _integer, array
    if t.is_float64(kind):
        return (lambda value: bytes([7 << 2]) + struct.pack("<d", value)), array
    if t.is_float32(kind):
        return (lambda value: bytes([14 << 2]) + struct.pack("<f", value)), array
    if t.is_decimal(kind):
        scale = kind.scale
        return (lambda value: _decimal(int(value.scaleb(scale)), scale)), array
    if t.is_date32(kind):
        return (lambda value: bytes([11 << 2]) + struct.pack("<i", value)), array.view(pa.int32())
    if t.is_timestamp(kind) and kind.unit == "us":
        code = 12 if kind.tz is not None else 13
        return (lambda value: bytes([code << 2]) + struct.pack("<q", value)), array.view(pa.int64())
    if t.is_string(kind) or t.is_large_string(kind):
        return _text, array
    if t.is_binary(kind) or t.is_large_binary(kind):
        return (lambda value: bytes([15 << 2]) + struct.pack("<i", len(value)) + value), array
    raise UnsupportedError(
        f"a Variant is shredded into a column of {kind}, which is not put together here; read it with spark.read.parquet"
    )


def _integer(value: int) -> bytes:
    for code, name in _INTEGERS:
        if -(1 << (8 * struct.calcsize(name) - 1)) <= value < 1 << (8 * struct.calcsize(name) - 1):
            return bytes([code << 2]) + struct.pack("<" + name, value)
    raise OverflowError(value)


def _decimal(value: int, scale: int) -> bytes:
    digits = max(len(str(abs(value))), scale)
    for code, most, size in _DECIMALS:
        if digits <= most:
            return bytes([code << 2, scale]) + value.to_bytes(size, "little", signed=True)
    raise OverflowError(value)


def _text(value: str) -> bytes:
    made = value.encode()
    if len(made) < 64:
        return bytes([1 | len(made) << 2]) + made
    return bytes([16 << 2]) + struct.pack("<i", len(made)) + made


def _object(fields: list[tuple[bytes, bytes]], names: Names) -> bytes:
    fields.sort(key=lambda field: field[0])
    ids = [names.ids[name] for name, _ in fields]
    offsets = _offsets([value for _, value in fields])
    width, id_width = _width(offsets[-1]), _width(max(ids, default=0))
    large = len(fields) > 255
    header = (width - 1) | (id_width - 1) << 2 | large << 4
    return b"".join(
        [
            bytes([_OBJECT | header << 2]),
            len(fields).to_bytes(4 if large else 1, "little"),
            _bytes(ids, id_width),
            _bytes(offsets, width),
            *(value for _, value in fields),
        ]
    )


def _array(values: list[bytes]) -> bytes:
    offsets = _offsets(values)
    width, large = _width(offsets[-1]), len(values) > 255
    header = (width - 1) | large << 2
    count = len(values).to_bytes(4 if large else 1, "little")
    return b"".join([bytes([_ARRAY | header << 2]), count, _bytes(offsets, width), *values])


def _fields(value: bytes, names: Names) -> list[tuple[bytes, bytes]]:
    """The fields of an object; none if the value is no object."""
    if value[0] & 3 != _OBJECT:
        return []
    header = value[0] >> 2
    width, id_width, count_width = (header & 3) + 1, (header >> 2 & 3) + 1, 4 if header >> 4 else 1
    count = int.from_bytes(value[1 : 1 + count_width], "little")
    ids = _numbers(value, 1 + count_width, id_width, count)
    at = 1 + count_width + id_width * count
    offsets = _numbers(value, at, width, count + 1)
    start = at + width * (count + 1)
    following = dict(pairwise(sorted(offsets)))  # in any order
    return [
        (names.names[i], value[start + a : start + following[a]])
        for i, a in zip(ids, offsets, strict=False)
    ]


def _numbers(data: bytes, at: int, width: int, count: int) -> list[int]:
    return [
        int.from_bytes(data[at + i * width : at + (i + 1) * width], "little") for i in range(count)
    ]


def _bytes(numbers: Iterable[int], width: int) -> bytes:
    return b"".join([number.to_bytes(width, "little") for number in numbers])


def _offsets(values: Sequence[bytes]) -> list[int]:
    made = [0]
    for value in values:
        made.append(made[-1] + len(value))
    return made


def _width(number: int) -> int:
    return max((number.bit_length() + 7) // 8, 1)
