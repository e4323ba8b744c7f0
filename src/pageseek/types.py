"""Values of leaves: physical and logical types, and how each is decoded into an Arrow array.

Sources: parquet.thrift (SchemaElement, LogicalType), LogicalTypes.md. Types are those that pyarrow's
own reader gives for the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
PHYSICAL_NAMES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
ABSENT = -(1 << 63)
MAX_FIXED = 1 << 27  # bytes of a fixed-length value, as in the core

# ps_kind of pageseek.h
(K_BOOL, K_I8, K_I16, K_I32, K_I64, K_U8, K_U16, K_U32, K_U64, K_F16, K_F32, K_F64) = range(12)
K_D128, K_D256, K_BYTES, K_LARGE_BYTES, K_FIXED = range(12, 17)
FLOAT_KINDS = frozenset((K_F16, K_F32, K_F64))
BYTES_KINDS = frozenset((K_BYTES, K_LARGE_BYTES))
_UNITS = {1: "ms", 2: "us", 3: "ns"}
_INT96_UNITS = {"ms": 1, "us": 2, "ns": 3}

# LogicalType union members
(L_STRING, L_MAP, L_LIST, L_ENUM, L_DECIMAL, L_DATE, L_TIME, L_TIMESTAMP) = range(1, 9)
(L_INTEGER, L_UNKNOWN, L_JSON, L_BSON, L_UUID, L_FLOAT16, L_VARIANT, L_GEOMETRY, L_GEOGRAPHY) = (
    range(10, 19)
)


class SchemaElement(NamedTuple):
    """A SchemaElement of parquet.thrift; what is not there is ABSENT."""

    type: int
    type_length: int
    repetition: int
    name_offset: int
    name_length: int
    num_children: int
    converted_type: int
    scale: int
    precision: int
    field_id: int
    logical: int
    logical_a: int
    logical_b: int
    logical_c: int


@dataclass(frozen=True, slots=True)
class Options:
    """How columns come out."""

    int96_unit: str = "ns"
    string_type: str = "string"

    def __post_init__(self) -> None:
        if self.int96_unit not in _INT96_UNITS:
            raise ValueError(f"int96_unit={self.int96_unit!r}: one of 'ns', 'us', 'ms'")
        if self.string_type not in ("string", "large"):
            raise ValueError(f"string_type={self.string_type!r}: one of 'string', 'large'")


@dataclass(frozen=True, slots=True)
class Form:
    """How a leaf is decoded: the kernel's form, the Arrow type of its buffers, and the type handed out."""

    core: tuple[
        int, int, int, int, int, int
    ]  # physical, type_length, kind, width, INT96 unit, check UTF-8
    storage: pa.DataType
    type: pa.DataType

    @property
    def is_null(self) -> bool:
        """Every value is null."""
        return bool(pa.types.is_null(self.type))

    @property
    def kind(self) -> int:
        return self.core[2]

    @property
    def width(self) -> int:
        return self.core[3]

    def finish(self, array: pa.Array) -> pa.Array:
        """An array of `storage` as one of `type`."""
        if self.type == self.storage:
            return array
        if isinstance(self.type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(self.type, array)
        if pa.types.is_dictionary(self.type):
            return array.dictionary_encode()
        return array.cast(self.type)


def _signed_kind(bits: int) -> tuple[int, pa.DataType] | None:
    return {
        8: (K_I8, pa.int8()),
        16: (K_I16, pa.int16()),
        32: (K_I32, pa.int32()),
        64: (K_I64, pa.int64()),
    }.get(bits)


def _unsigned_kind(bits: int) -> tuple[int, pa.DataType] | None:
    return {
        8: (K_U8, pa.uint8()),
        16: (K_U16, pa.uint16()),
        32: (K_U32, pa.uint32()),
        64: (K_U64, pa.uint64()),
    }.get(bits)


# ConvertedType -> the same as a LogicalType and its parameters (LogicalTypes.md, compatibility sections)
_CONVERTED: dict[int, tuple[int, int, int]] = {
    0: (L_STRING, 0, 0),
    4: (L_ENUM, 0, 0),
    6: (L_DATE, 0, 0),
    7: (L_TIME, 1, 1),
    8: (L_TIME, 1, 2),
    9: (L_TIMESTAMP, 1, 1),
    10: (L_TIMESTAMP, 1, 2),
    11: (L_INTEGER, 8, 0),
    12: (L_INTEGER, 16, 0),
    13: (L_INTEGER, 32, 0),
    14: (L_INTEGER, 64, 0),
    15: (L_INTEGER, 8, 1),
    16: (L_INTEGER, 16, 1),
    17: (L_INTEGER, 32, 1),
    18: (L_INTEGER, 64, 1),
    19: (L_JSON, 0, 0),
    20: (L_BSON, 0, 0),
    24: (L_UNKNOWN, 0, 0),  # never in the format; old parquet-cpp wrote it for columns of nulls
}


def logical_of(element: SchemaElement) -> tuple[int, int, int]:
    """(LogicalType member, its first two parameters) of a leaf; 0 where it has none, or one we do not know."""
    if element.logical not in (ABSENT, 0):
        return element.logical, element.logical_a, element.logical_b
    if element.converted_type == 5:
        return L_DECIMAL, max(element.scale, 0), element.precision
    return _CONVERTED.get(element.converted_type, (0, 0, 0))


def _decimal(scale: int, precision: int) -> tuple[int, pa.DataType] | None:
    if not (0 < precision <= 76 and 0 <= scale <= precision):
        return None
    return (
        (K_D128, pa.decimal128(precision, scale))
        if precision <= 38
        else (K_D256, pa.decimal256(precision, scale))
    )


_PLAIN = {
    BOOLEAN: (K_BOOL, pa.bool_()),
    INT32: (K_I32, pa.int32()),
    INT64: (K_I64, pa.int64()),
    FLOAT: (K_F32, pa.float32()),
    DOUBLE: (K_F64, pa.float64()),
}


def _natural(
    element: SchemaElement, options: Options
) -> tuple[int, pa.DataType, pa.DataType, bool]:
    """(kind, storage type, type, is text) without regard to a stored Arrow schema."""
    logical, a, b = logical_of(element)
    physical = element.type
    found: tuple[int, pa.DataType] | None = None
    if logical == L_DECIMAL and physical in (INT32, INT64, BYTE_ARRAY, FIXED):
        found = _decimal(a, b)
    elif logical == L_INTEGER and physical in (INT32, INT64):
        found = _signed_kind(a) if b else _unsigned_kind(a)
        if found and (a == 64) != (physical == INT64):
            found = None
    elif logical == L_DATE and physical == INT32:
        found = K_I32, pa.date32()
    elif logical == L_TIME and physical == (INT32 if b == 1 else INT64) and b in _UNITS:
        found = (K_I32, pa.time32("ms")) if b == 1 else (K_I64, pa.time64(_UNITS[b]))
    elif logical == L_TIMESTAMP and physical == INT64 and b in _UNITS:
        found = K_I64, pa.timestamp(_UNITS[b], "UTC" if a else None)
    elif physical == INT96:
        found = K_I64, pa.timestamp(options.int96_unit)
    elif physical == FIXED and logical == L_FLOAT16 and element.type_length == 2:
        found = K_F16, pa.float16()
    if found is None:
        found = _PLAIN.get(physical)
    if found is not None:
        return *found, found[1], False
    if physical == FIXED:
        storage = pa.binary(element.type_length)
        if logical == L_UUID and element.type_length == 16:
            return K_FIXED, storage, pa.uuid(), False
        return K_FIXED, storage, storage, False
    if logical == L_JSON:
        return K_BYTES, pa.string(), pa.json_(pa.string()), True
    storage = pa.string() if logical == L_STRING else pa.binary()
    return K_BYTES, storage, storage, logical == L_STRING


def _with_stored(
    kind: int, storage: pa.DataType, natural: pa.DataType, stored: pa.DataType
) -> tuple[int, pa.DataType, pa.DataType]:
    """What the type that the writer had in memory changes, as pyarrow honours it."""
    t = pa.types
    if natural == stored:
        return kind, storage, natural
    if t.is_timestamp(natural) and t.is_timestamp(stored) and natural.tz is not None and stored.tz:
        made = pa.timestamp(natural.unit, stored.tz)
        return kind, made, made
    if natural == pa.int64() and t.is_duration(stored):
        return kind, stored, stored
    if (natural == pa.string() and t.is_large_string(stored)) or (
        natural == pa.binary() and t.is_large_binary(stored)
    ):
        return K_LARGE_BYTES, stored, stored
    if (natural == pa.string() and stored == pa.string_view()) or (
        natural == pa.binary() and stored == pa.binary_view()
    ):
        return kind, storage, stored
    if t.is_dictionary(stored) and natural in (pa.string(), pa.binary()):
        return kind, storage, pa.dictionary(pa.int32(), natural, stored.ordered)
    if t.is_decimal256(stored) and t.is_decimal128(natural):
        made = pa.decimal256(natural.precision, natural.scale)
        return K_D256, made, made
    return kind, storage, natural


_LARGE = {
    pa.string(): pa.large_string(),
    pa.binary(): pa.large_binary(),
    pa.json_(pa.string()): pa.json_(pa.large_string()),
}


def leaf_form(element: SchemaElement, options: Options, stored: pa.DataType | None = None) -> Form:
    """How to decode a leaf of this element, and as what. `stored` is its type in the file's Arrow schema, if it has one."""
    kind, storage, made, text = _natural(element, options)
    if stored is not None:
        kind, storage, made = _with_stored(kind, storage, made, stored)
    if options.string_type == "large" and made in _LARGE:  # views and dictionaries stay as they are
        kind, storage, made = K_LARGE_BYTES, _LARGE[storage], _LARGE[made]
    if logical_of(element)[0] == L_UNKNOWN:
        made = pa.null()
    length = element.type_length if element.type == FIXED else 0
    unit = _INT96_UNITS[options.int96_unit] if element.type == INT96 else 0
    return Form(
        (element.type, length, kind, length if kind == K_FIXED else 0, unit, int(text)),
        storage,
        made,
    )


def to_arrow(
    form: Form, n: int, null_count: int, validity: Any, offsets: Any, values: Any
) -> pa.Array:
    """An Arrow array of the form's storage type over buffers of the core."""
    if form.is_null:
        return pa.nulls(n)
    buffers = [pa.py_buffer(validity) if validity is not None else None]
    if offsets is not None:
        buffers.append(pa.py_buffer(offsets))
    buffers.append(pa.py_buffer(values))
    return pa.Array.from_buffers(form.storage, n, buffers, null_count)
