"""A small Parquet writer for tests: pages cut at will, and every structure open to falsification.

Thrift structs are dicts {field id: value}; ints carry their wire type as I8, I16, I32, I64. A `Column` has
hooks that receive these dicts before they are written: change, add or remove what a test wants to be wrong.
Sources: parquet.thrift, Encodings.md.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from support import encodings as encoders
from support.encodings import Delta, varint, zigzag

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 2, 3, 4, 8
ENCODINGS = {
    "plain": PLAIN,
    "dictionary": RLE_DICTIONARY,
    "old-dictionary": PLAIN_DICTIONARY,
    "rle": RLE,
    "delta": encoders.DELTA_BINARY_PACKED,
    "delta-lengths": encoders.DELTA_LENGTH_BYTE_ARRAY,
    "delta-strings": encoders.DELTA_BYTE_ARRAY,
    "split": encoders.BYTE_STREAM_SPLIT,
}
UNORDERED, ASCENDING, DESCENDING = range(3)
CODECS = {"uncompressed": 0, "snappy": 1, "gzip": 2, "lzo": 3, "brotli": 4, "zstd": 6, "lz4_raw": 7}
INTEGER_FORMATS = {INT32: ("<I", 32), INT64: ("<Q", 64)}

Struct = dict[int, Any]
Value = Any


class I8(int):
    """An i8 of Thrift."""


class I16(int):
    """An i16 of Thrift."""


class I32(int):
    """An i32 of Thrift."""


class I64(int):
    """An i64 of Thrift."""


class Raw(bytes):
    """Bytes that already are the encoding of a struct."""


# ---- Thrift compact protocol ---------------------------------------------------------------------


_WIRE = {I8: 3, I16: 4, I32: 5, I64: 6, bytes: 8, list: 9, dict: 12, Raw: 12}


def _wire(value: Any) -> int:
    return 2 if isinstance(value, bool) else _WIRE[type(value)]


def _encode(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\1" if value else b"\2"
    if isinstance(value, I8):
        return struct.pack("b", value)
    if isinstance(value, int):
        return zigzag(value)
    if isinstance(value, Raw):
        return value
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if isinstance(value, list):
        kind = _wire(value[0]) if value else 12
        size = (
            bytes([len(value) << 4 | kind])
            if len(value) < 15
            else bytes([0xF0 | kind]) + varint(len(value))
        )
        return size + b"".join(map(_encode, value))
    return thrift(value)


def thrift(fields: Struct) -> bytes:
    """A struct in the compact protocol."""
    out, last = bytearray(), 0
    for number, value in sorted(fields.items()):
        if value is None:
            continue
        kind = (1 if value else 2) if isinstance(value, bool) else _wire(value)
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + zigzag(number)
        if not isinstance(value, bool):
            out += _encode(value)
        last = number
    return bytes(out) + b"\0"


# ---- values --------------------------------------------------------------------------------------


def plain_value(physical: int, value: Value) -> bytes:
    """One PLAIN value, without the length of a BYTE_ARRAY: the form of bounds."""
    if physical == BOOLEAN:
        return b"\1" if value else b"\0"
    if physical in INTEGER_FORMATS:
        code, bits = INTEGER_FORMATS[physical]
        return struct.pack(code, value & ((1 << bits) - 1))
    if physical in (FLOAT, DOUBLE):
        return struct.pack("<f" if physical == FLOAT else "<d", value)
    return bytes(value)


def plain(physical: int, values: Sequence[Value]) -> bytes:
    """PLAIN encoding."""
    if physical == BOOLEAN:
        bits = sum(bool(v) << i for i, v in enumerate(values))
        return bits.to_bytes((len(values) + 7) // 8, "little")
    parts = [plain_value(physical, v) for v in values]
    if physical == BYTE_ARRAY:
        parts = [struct.pack("<I", len(part)) + part for part in parts]
    return b"".join(parts)


def hybrid(values: Sequence[int], width: int, packed: bool = False) -> bytes:
    """The RLE / bit-packed hybrid: one run for each stretch of equals, or (`packed`) one packed run."""
    if not values:
        return b""
    if packed:
        groups = (len(values) + 7) // 8
        bits = sum(v << i * width for i, v in enumerate(values))
        return varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")
    out, start = b"", 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[start]:
            out += varint(i - start << 1) + values[start].to_bytes((width + 7) // 8, "little")
            start = i
    return out


def compress(codec: str, data: bytes) -> bytes:
    return data if codec == "uncompressed" else pa.Codec(codec).compress(data, asbytes=True)


# ---- a column ------------------------------------------------------------------------------------


def _default_key(column: Column) -> Callable[[Value], Any]:
    if column.physical in (BYTE_ARRAY, FIXED) and column.decimal:
        return lambda v: int.from_bytes(v, "big", signed=True)
    if column.physical in INTEGER_FORMATS and column.unsigned:
        bits = INTEGER_FORMATS[column.physical][1]
        return lambda v: v & ((1 << bits) - 1)
    if column.physical == FIXED and column.logical and 15 in column.logical:
        return lambda v: struct.unpack("<e", v)[0]
    return lambda v: v


@dataclass
class Column:
    """One column of one row group.

    `values`: physical values in row order, None for null. `pages`: rows of each page (all in one by default).
    `encodings`: one for each page, of ENCODINGS ("rle" is for booleans); `delta`: how delta streams are cut.
    `version`: of the data pages. Hooks: `edit_header(page, header)`, `edit_body(page, body) -> body` (before compression),
    `edit_bytes(page, bytes) -> bytes` (after; page -1 is the dictionary), `edit_chunk(ColumnMetaData)`,
    `edit_column(ColumnChunk)`, `edit_column_index`, `edit_offset_index`, `edit_element(SchemaElement)`.
    """

    name: str
    physical: int
    values: Sequence[Value]
    pages: Sequence[int] | None = None
    optional: bool | None = None
    type_length: int | None = None
    converted: int | None = None
    logical: Struct | None = None
    scale: int | None = None
    precision: int | None = None
    encodings: str | Sequence[str] = "plain"
    version: int = 1
    codec: str = "uncompressed"
    crc: bool = False
    packed: bool = False
    delta: Delta = encoders.USUAL
    dictionary: Sequence[Value] | None = None
    code_width: int | None = None
    column_index: bool = True
    offset_index: bool = True
    statistics: bool = True
    null_count: bool = True
    nan_count: bool = False
    encoding_stats: bool = True
    order: int | None = None
    between: bytes = b""
    edit_header: Callable[[int, Struct], Any] | None = None
    edit_body: Callable[[int, bytes], bytes] | None = None
    edit_bytes: Callable[[int, bytes], bytes] | None = None
    edit_chunk: Callable[[Struct], Any] | None = None
    edit_column: Callable[[Struct], Any] | None = None
    edit_column_index: Callable[[Struct], Any] | None = None
    edit_offset_index: Callable[[Struct], Any] | None = None
    edit_element: Callable[[Struct], Any] | None = None
    made: Made = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.optional is None:
            self.optional = None in self.values
        if self.pages is None:
            self.pages = [len(self.values)]
        if isinstance(self.encodings, str):
            self.encodings = [self.encodings] * len(self.pages)
        assert sum(self.pages) == len(self.values)

    @property
    def decimal(self) -> bool:
        return self.converted == 5 or bool(self.logical and 5 in self.logical)

    @property
    def unsigned(self) -> bool:
        return self.converted in (11, 12, 13, 14) or bool(
            self.logical and 10 in self.logical and not self.logical[10][2]
        )

    def bounds(self, values: Iterable[Value]) -> tuple[bytes, bytes] | None:
        """Least and greatest value as bytes; zeros widened, NaN left out, as the format asks."""
        key = _default_key(self)
        present = [v for v in values if v is not None and key(v) == key(v)]
        if not present or self.physical == INT96:
            return None
        low, high = min(present, key=key), max(present, key=key)
        if self.physical in (FLOAT, DOUBLE):
            low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        return plain_value(self.physical, low), plain_value(self.physical, high)

    def element(self) -> Struct:
        made: Struct = {
            1: I32(self.physical),
            2: None if self.type_length is None else I32(self.type_length),
            3: I32(int(bool(self.optional))),
            4: self.name.encode(),
            6: None if self.converted is None else I32(self.converted),
            7: None if self.scale is None else I32(self.scale),
            8: None if self.precision is None else I32(self.precision),
            10: self.logical,
        }
        if self.edit_element:
            self.edit_element(made)
        return made


@dataclass
class Made:
    """Where the pages of a column came to lie: (offset, size, first row) of each; the dictionary's (offset, size)."""

    pages: list[tuple[int, int, int]]
    dictionary: tuple[int, int] | None


def _nans(column: Column, values: Sequence[Value]) -> int:
    key = _default_key(column)
    return sum(v is not None and key(v) != key(v) for v in values)


def _page(
    column: Column, number: int, values: Sequence[Value], codes: dict[Value, int] | None
) -> bytes:
    """Header and body of data page `number`."""
    encoding = column.encodings[number]
    code = ENCODINGS[encoding]
    present = [v for v in values if v is not None]
    if encoding in ("dictionary", "old-dictionary"):
        assert codes is not None
        width = column.code_width
        width = (len(codes) - 1).bit_length() if width is None else width
        body = bytes([width]) + hybrid([codes[_hashable(v)] for v in present], width, column.packed)
    elif encoding == "rle":
        runs = hybrid([int(v) for v in present], 1, column.packed)
        body = struct.pack("<I", len(runs)) + runs
    else:
        body = plain(column.physical, present)
        if encoding != "plain":
            body = encoders.encode(code, column.physical, present, body, column.delta)
    levels = (
        hybrid([int(v is not None) for v in values], 1, column.packed) if column.optional else b""
    )
    if column.edit_body:
        body = column.edit_body(number, body)
    if column.version == 1:
        raw = (struct.pack("<I", len(levels)) + levels if column.optional else b"") + body
        stored, size = compress(column.codec, raw), len(raw)
        header: Struct = {
            1: I32(0),
            5: {1: I32(len(values)), 2: I32(code), 3: I32(RLE), 4: I32(RLE)},
        }
    else:
        stored, size = (
            levels + (compress(column.codec, body) if body else b""),
            len(levels) + len(body),
        )
        header = {
            1: I32(3),
            8: {
                1: I32(len(values)),
                2: I32(len(values) - len(present)),
                3: I32(len(values)),
                4: I32(code),
                5: I32(len(levels)),
                6: I32(0),
                7: column.codec != "uncompressed",
            },
        }
    return _finish_page(column, number, header, size, stored)


def _finish_page(column: Column, number: int, header: Struct, size: int, stored: bytes) -> bytes:
    if column.edit_bytes:
        stored = column.edit_bytes(number, stored)
    header |= {2: I32(size), 3: I32(len(stored))}
    if column.crc:
        crc = zlib.crc32(stored)
        header[4] = I32(crc - (1 << 32) if crc >> 31 else crc)
    if column.edit_header:
        column.edit_header(number, header)
    return thrift(header) + stored


def _hashable(value: Value) -> Value:
    return repr(value) if isinstance(value, float) else value


def _statistics(column: Column) -> Struct:
    bounds = column.bounds(column.values)
    made: Struct = {}
    if bounds:
        made |= {5: bounds[1], 6: bounds[0]}
    if column.null_count:
        made[3] = I64(sum(v is None for v in column.values))
    if column.nan_count:
        made[9] = I64(_nans(column, column.values))
    return made


def _boundary_order(
    column: Column, bounds: list[tuple[bytes, bytes] | None], pages: list[list[Value]]
) -> int:
    key = _default_key(column)
    ends = []
    for values in pages:
        present = [key(v) for v in values if v is not None and key(v) == key(v)]
        if present:
            ends.append((min(present), max(present)))
    if all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(ends)):
        return ASCENDING
    if all(a[0] >= b[0] and a[1] >= b[1] for a, b in itertools.pairwise(ends)):
        return DESCENDING
    return UNORDERED


def _column_index(column: Column, pages: list[list[Value]]) -> Struct | None:
    bounds = [column.bounds(values) for values in pages]
    nulls = [all(v is None for v in values) for values in pages]
    if any(b is None and not null for b, null in zip(bounds, nulls, strict=True)):
        return None  # a page without bounds that is not all null: the format has no way to say it
    made: Struct = {
        1: nulls,
        2: [b[0] if b else b"" for b in bounds],
        3: [b[1] if b else b"" for b in bounds],
        4: I32(_boundary_order(column, bounds, pages) if column.order is None else column.order),
    }
    if column.null_count:
        made[5] = [I64(sum(v is None for v in values)) for values in pages]
    if column.nan_count:
        made[8] = [I64(_nans(column, values)) for values in pages]
    return made


def write(
    *groups: Sequence[Column],
    created_by: bytes | None = b"pageseek-tests version 1.0.0",
    column_orders: Sequence[Struct] | str | None = "type",
    key_values: dict[bytes, bytes | None] | None = None,
    edit_footer: Callable[[Struct], Any] | None = None,
    edit_group: Callable[[int, Struct], Any] | None = None,
    padding: bytes = b"",
) -> bytes:
    """A file of one or more row groups. `padding` stands between the index and the footer."""
    out = bytearray(b"PAR1")
    row_groups: list[Struct] = []
    chunks: list[tuple[Column, Struct, list[list[Value]]]] = []
    for number, columns in enumerate(groups):
        members: list[Struct] = []
        for column in columns:
            chunk, pages = _chunk(out, column)
            members.append(chunk)
            chunks.append((column, chunk, pages))
        rows = len(columns[0].values) if columns else 0
        size = sum(chunk[3][7] for chunk in members if 7 in chunk[3])
        group: Struct = {1: members, 2: I64(size), 3: I64(rows)}
        if edit_group:
            edit_group(number, group)
        row_groups.append(group)
    for column, chunk, pages in chunks:
        index = _column_index(column, pages) if column.column_index else None
        if index is not None:
            if column.edit_column_index:
                column.edit_column_index(index)
            encoded = thrift(index)
            chunk |= {6: I64(len(out)), 7: I32(len(encoded))}
            out += encoded
    for column, chunk, _ in chunks:
        if column.offset_index:
            locations = [
                {1: I64(at), 2: I32(size), 3: I64(row)} for at, size, row in column.made.pages
            ]
            index = {1: locations}
            if column.edit_offset_index:
                column.edit_offset_index(index)
            encoded = thrift(index)
            chunk |= {4: I64(len(out)), 5: I32(len(encoded))}
            out += encoded
        if column.edit_column:
            column.edit_column(chunk)
    out += padding
    first = groups[0] if groups else []
    schema: list[Struct] = [
        {4: b"schema", 5: I32(len(first))},
        *(column.element() for column in first),
    ]
    footer: Struct = {
        1: I32(2),
        2: schema,
        3: I64(sum(len(columns[0].values) for columns in groups if columns)),
        4: row_groups,
        6: created_by,
    }
    if column_orders == "type":
        footer[7] = [{1: {}} for _ in first]
    elif column_orders is not None:
        footer[7] = list(column_orders)
    if key_values:
        footer[5] = [{1: k, 2: v} for k, v in key_values.items()]
    if edit_footer:
        edit_footer(footer)
    encoded = thrift(footer)
    return bytes(out + encoded + struct.pack("<I", len(encoded)) + b"PAR1")


def _chunk(out: bytearray, column: Column) -> tuple[Struct, list[list[Value]]]:
    start, codes = len(out), None
    dictionary_at: tuple[int, int] | None = None
    if any("dictionary" in e for e in column.encodings):
        entries = column.dictionary
        if entries is None:
            seen = {_hashable(v): v for v in column.values if v is not None}
            entries = list(seen.values())
        codes = {_hashable(v): i for i, v in enumerate(entries)}
        raw = plain(column.physical, entries)
        header = {1: I32(2), 7: {1: I32(len(entries)), 2: I32(PLAIN)}}
        page = _finish_page(column, -1, header, len(raw), compress(column.codec, raw))
        dictionary_at = start, len(page)
        out += page
    pages, places, row = [], [], 0
    for number, count in enumerate(column.pages or ()):
        values = list(column.values[row : row + count])
        if number:
            out += column.between
        encoded = _page(column, number, values, codes)
        places.append((len(out), len(encoded), row))
        out += encoded
        pages.append(values)
        row += count
    column.made = Made(places, dictionary_at)
    meta: Struct = {
        1: I32(column.physical),
        2: [I32(e) for e in sorted({RLE, PLAIN} | {ENCODINGS[e] for e in column.encodings})],
        3: [column.name.encode()],
        4: I32(CODECS[column.codec]),
        5: I64(len(column.values)),
        6: I64(len(out) - start),
        7: I64(len(out) - start),
        9: I64(places[0][0] if places else len(out)),
        11: None if dictionary_at is None else I64(dictionary_at[0]),
    }
    if column.statistics:
        meta[12] = _statistics(column)
    if column.encoding_stats:
        kind = I32(0 if column.version == 1 else 3)
        counts = [
            {1: kind, 2: I32(ENCODINGS[e]), 3: I32(list(column.encodings).count(e))}
            for e in set(column.encodings)
        ]
        if dictionary_at is not None:
            counts.append({1: I32(2), 2: I32(PLAIN), 3: I32(1)})
        meta[13] = counts
    if column.edit_chunk:
        column.edit_chunk(meta)
    return {2: I64(0), 3: meta}, pages


# ---- logical types -------------------------------------------------------------------------------

STRING: Struct = {1: {}}
DATE: Struct = {6: {}}
FLOAT16: Struct = {15: {}}


def integer(bits: int, signed: bool) -> Struct:
    return {10: {1: I8(bits), 2: signed}}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """The arguments of a decimal Column."""
    return {
        "converted": 5,
        "scale": scale,
        "precision": precision,
        "logical": {5: {1: I32(scale), 2: I32(precision)}},
    }


def timestamp(unit: str, utc: bool = False) -> Struct:
    return {8: {1: utc, 2: {("ms", "us", "ns").index(unit) + 1: {}}}}
