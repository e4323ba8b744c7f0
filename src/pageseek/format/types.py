"""Values of leaves: physical and logical types, and how each is decoded into an Arrow array.

Sources: parquet.thrift (SchemaElement, LogicalType), LogicalTypes.md. Types are those that pyarrow's
own reader gives for the file.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from dataclasses import field
from operator import itemgetter
from typing import Any, Self, TypeAlias

import pyarrow as pa

from pageseek.base.errors import CORRUPT, LIMIT, CoreError
from pageseek.base.records import NamedTuple, dataclass

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
PHYSICAL_NAMES = (
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
)  # fmt: skip


def physical_name(number: int) -> str:
    """The name of a physical type (parquet.thrift, Type); of a number that is none, a text that says so."""
    return PHYSICAL_NAMES[number] if 0 <= number < len(PHYSICAL_NAMES) else f"type {number}"


ABSENT = -(1 << 63)  # the core's number for an optional field that is not there


def shown_record(record: Any) -> str:
    """The repr of a record of the footer, with None for ABSENT."""
    fields = (
        f"{name}={None if value == ABSENT else value!r}"
        for name, value in zip(record._fields, record, strict=True)
    )
    return f"{type(record).__name__}({', '.join(fields)})"


MAX_FIXED = 1 << 27  # bytes of a fixed-length value, as in the core

# ps_kind of pageseek.h
(K_BOOL, K_I8, K_I16, K_I32, K_I64, K_U8, K_U16, K_U32, K_U64, K_F16, K_F32, K_F64) = range(12)
K_D128, K_D256, K_BYTES, K_LARGE_BYTES, K_FIXED, K_VIEWS = range(12, 18)
FLOAT_KINDS = frozenset((K_F16, K_F32, K_F64))
_NULL = pa.null().id
BYTES_KINDS = frozenset((K_BYTES, K_LARGE_BYTES))
_UNITS = {1: "ms", 2: "us", 3: "ns"}
_INT96_UNITS = {"ms": 1, "us": 2, "ns": 3}

# LogicalType union members
(L_STRING, L_MAP, L_LIST, L_ENUM, L_DECIMAL, L_DATE, L_TIME, L_TIMESTAMP) = range(1, 9)
(L_INTEGER, L_UNKNOWN, L_JSON, L_BSON, L_UUID, L_FLOAT16, L_VARIANT, L_GEOMETRY, L_GEOGRAPHY) = (
    range(10, 19)
)


class SchemaElement(NamedTuple):
    """A SchemaElement of parquet.thrift; a field that is not there is ABSENT."""

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

    def __repr__(self) -> str:
        return shown_record(self)


class _Options(NamedTuple):
    int96_unit: str
    string_type: str
    dictionary_columns: tuple[str, ...]
    out_of_range: str
    wide_unsigned: bool
    instants: bool
    binary_text: bool
    int96_utc: bool
    any_text: bool
    as_bytes: tuple[tuple[str, ...], ...]
    as_told: tuple[tuple[str, ...], ...]
    timestamps: tuple[tuple[tuple[str, ...], pa.DataType], ...]


class Options(_Options):
    """The types in which columns come out. A tuple, because it is part of many keys and has to hash quickly.

    `wide_unsigned`: unsigned integers of 8 and 16 bits are signed ones of twice the bits, so that stored values outside of
    the declared range come out as they are. `instants`: times without a zone are instants, as if they were in UTC.
    `binary_text`: bytes of which the file does not say what they are are text, which is not checked. `int96_utc`: INT96
    timestamps are instants. `any_text`: text is not checked, and comes out as it is also if it is not UTF-8.
    `as_bytes`: the beginnings of paths, in lower case, of leaves whose text is binary. `as_told`: the paths of leaves whose
    text is binary, and whose bytes are text if the file does not say what they are, because a table says so. `timestamps`: the
    paths of leaves whose numbers are local times, or instants, because a table says so, each with the type in the table, in the
    order of the paths.
    """

    __slots__ = ()

    def __new__(
        cls,
        int96_unit: str = "ns",
        string_type: str = "string",
        dictionary_columns: tuple[str, ...] = (),
        out_of_range: str = "error",
        wide_unsigned: bool = False,
        instants: bool = False,
        binary_text: bool = False,
        int96_utc: bool = False,
        any_text: bool = False,
        as_bytes: tuple[tuple[str, ...], ...] = (),
        as_told: tuple[tuple[str, ...], ...] = (),
        timestamps: tuple[tuple[tuple[str, ...], pa.DataType], ...] = (),
    ) -> Self:
        self = super().__new__(
            cls,
            int96_unit,
            string_type,
            dictionary_columns,
            out_of_range,
            wide_unsigned,
            instants,
            binary_text,
            int96_utc,
            any_text,
            as_bytes,
            as_told,
            timestamps,
        )
        if self.int96_unit not in _INT96_UNITS:
            raise ValueError(f"int96_unit={self.int96_unit!r}: one of 'ns', 'us', 'ms'")
        if self.string_type not in ("string", "large", "view"):
            raise ValueError(f"string_type={self.string_type!r}: one of 'string', 'large', 'view'")
        if self.out_of_range not in ("error", "keep"):
            raise ValueError(f"out_of_range={self.out_of_range!r}: 'error' or 'keep'")
        return self

    def makes_bytes(self, path: tuple[str, ...]) -> bool:
        """Whether the text of a leaf is binary."""
        if not self.as_bytes:
            return False
        lower = tuple([name.lower() for name in path])
        return any(lower[: len(one)] == one for one in self.as_bytes)

    def is_told(self, path: tuple[str, ...]) -> bool:
        """Whether a table says that a leaf is text where it has bytes, or likewise."""
        return bool(self.as_told) and path in self.as_told

    def timestamp_of(self, path: tuple[str, ...]) -> pa.DataType | None:
        """The type that a table has for a leaf of timestamps, where it is another than that of the file."""
        at = bisect_left(self.timestamps, path, key=itemgetter(0))
        found = self.timestamps[at : at + 1]
        return found[0][1] if found and found[0][0] == path else None


# how the core decodes a leaf: the arguments of `LeafDecoder`
CoreForm: TypeAlias = tuple[int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class LeafType:
    """How a leaf is decoded.

    Attributes
    ----------
    core : tuple of int
        Physical type, type_length, kind, width, INT96 unit, check UTF-8, range (ps_leaf_spec of pageseek.h).
    storage : pyarrow.DataType
        The type of the buffers that the core fills.
    type : pyarrow.DataType
        The type that is handed out.
    kind, width : int
        Those of `core`.
    is_null : bool
        Every value is null.
    """

    core: CoreForm
    storage: pa.DataType
    type: pa.DataType

    kind: int = field(init=False, compare=False, repr=False)
    width: int = field(init=False, compare=False, repr=False)
    is_null: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.core[2])
        object.__setattr__(self, "width", self.core[3])
        object.__setattr__(self, "is_null", self.type.id == _NULL)

    def as_views(self) -> LeafType:
        """Byte strings that come out as views, and are not compared before: decoded as what they come out as."""
        made = self.type
        storage = made.storage_type if isinstance(made, pa.BaseExtensionType) else made
        if self.kind not in BYTES_KINDS or storage not in _VIEW_TYPES:
            return self
        return LeafType((*self.core[:2], K_VIEWS, *self.core[3:]), storage, made)

    def finish(self, array: pa.Array) -> pa.Array:
        """An array of `storage` as one of `type`. CoreError: its values do not fit."""
        if self.type == self.storage:
            return array
        try:
            return as_type(array, self.type)
        except pa.ArrowException as error:
            raise CoreError(CORRUPT, None, f"not of {self.type}: {error}") from error


def as_type(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """An array as one of another type, which may be a dictionary or an extension type."""
    if array.type == wanted:
        return array
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, as_type(array, wanted.storage_type))
    if pa.types.is_dictionary(wanted):
        return _encoded(array, wanted)
    return array.cast(wanted)


def _encoded(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values, or codes of 32 bits and their dictionary, as a dictionary array of another type."""
    made = array
    if not pa.types.is_dictionary(array.type):
        made = as_type(array, wanted.value_type).dictionary_encode()
    try:
        codes = made.indices.cast(wanted.index_type)
    except pa.ArrowInvalid as error:
        raise CoreError(
            LIMIT,
            None,
            f"{len(made.dictionary)} distinct values are too many for codes of {wanted.index_type}; "
            "name the column in dictionary_columns=[...] for codes of 32 bits",
        ) from error
    return pa.DictionaryArray.from_arrays(codes, made.dictionary, ordered=wanted.ordered)


_INTEGERS: dict[tuple[int, bool], tuple[int, pa.DataType]] = {  # by bits, and whether signed
    (8, True): (K_I8, pa.int8()),
    (16, True): (K_I16, pa.int16()),
    (32, True): (K_I32, pa.int32()),
    (64, True): (K_I64, pa.int64()),
    (8, False): (K_U8, pa.uint8()),
    (16, False): (K_U16, pa.uint16()),
    (32, False): (K_U32, pa.uint32()),
    (64, False): (K_U64, pa.uint64()),
}

# ConvertedType -> the LogicalType that means the same, and its parameters (LogicalTypes.md, compatibility sections)
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
    """(LogicalType member, its first two parameters) of a leaf; 0 without one that is known."""
    if element.logical not in (ABSENT, 0):
        return element.logical, element.logical_a, element.logical_b
    if element.converted_type == 5:
        return L_DECIMAL, max(element.scale, 0), element.precision
    return _CONVERTED.get(element.converted_type, (0, 0, 0))


_LOGICAL_NAMES = {
    L_STRING: "STRING", L_ENUM: "ENUM", L_DATE: "DATE", L_UNKNOWN: "UNKNOWN", L_JSON: "JSON",
    L_BSON: "BSON", L_UUID: "UUID", L_FLOAT16: "FLOAT16",
}  # fmt: skip


def logical_name(element: SchemaElement) -> str:
    """The logical type with its parameters, as docs/format.md writes it; "NONE" without one."""
    logical, a, b = logical_of(element)
    if logical == L_DECIMAL:
        return f"DECIMAL({b},{a})"
    if logical == L_INTEGER:
        return f"INTEGER({a},{'signed' if b else 'unsigned'})"
    if logical in (L_TIME, L_TIMESTAMP):
        name = "TIME" if logical == L_TIME else "TIMESTAMP"
        return f"{name}({_UNITS.get(b, b)},{'utc' if a else 'local'})"
    if not logical:
        return "NONE" if element.logical == ABSENT and element.converted_type == ABSENT else "OTHER"
    return _LOGICAL_NAMES.get(logical, f"OTHER({logical})")


def _most_digits(element: SchemaElement) -> int:
    """Decimal digits that every value of the physical type can have (LogicalTypes.md, DECIMAL)."""
    if element.type == BYTE_ARRAY or element.logical in (ABSENT, 0):  # old writers may claim more
        return 76
    size = {INT32: 4, INT64: 8}.get(element.type, element.type_length)
    return min(len(str(2 ** (8 * min(size, 64) - 1) - 1)) - 1, 76)


def _decimal(element: SchemaElement, scale: int, precision: int) -> tuple[int, pa.DataType] | None:
    if not (0 < precision <= _most_digits(element) and 0 <= scale <= precision):
        return None
    if precision <= 38:
        return K_D128, pa.decimal128(precision, scale)
    return K_D256, pa.decimal256(precision, scale)


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
    """(kind, storage type, type, is checked text) without regard to a stored Arrow schema."""
    logical, a, b = logical_of(element)
    physical = element.type
    wide = (physical, element.type_length) == (FIXED, 12)
    found: tuple[int, pa.DataType] | None = None
    if logical == L_DECIMAL and physical in (INT32, INT64, BYTE_ARRAY, FIXED):
        found = _decimal(element, a, b)
    elif logical == L_INTEGER and physical in (INT32, INT64):
        if options.wide_unsigned and not b and a in (8, 16):
            a, b = 2 * a, 1
        if (a == 64) == (physical == INT64):
            found = _INTEGERS.get((a, bool(b)))
    elif logical == L_DATE and physical == INT32:
        found = K_I32, pa.date32()
    elif logical == L_TIME and physical == (INT32 if b == 1 else INT64) and b in _UNITS:
        found = (K_I32, pa.time32("ms")) if b == 1 else (K_I64, pa.time64(_UNITS[b]))
    elif logical == L_TIMESTAMP and b in _UNITS and (physical == INT64 or wide):
        found = K_I64, pa.timestamp(_UNITS[b], "UTC" if a or options.instants else None)
    elif physical == INT96:
        found = K_I64, pa.timestamp(options.int96_unit, "UTC" if options.int96_utc else None)
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
        return K_BYTES, pa.string(), pa.json_(pa.string()), not options.any_text
    storage = pa.string() if _is_text(element, options) else pa.binary()
    return K_BYTES, storage, storage, logical == L_STRING and not options.any_text


def _is_text(element: SchemaElement, options: Options) -> bool:
    """Whether the values of a BYTE_ARRAY leaf are strings."""
    logical = logical_of(element)[0]
    return logical == L_STRING or (logical == 0 and options.binary_text)


def _with_stored(
    kind: int, storage: pa.DataType, natural: pa.DataType, stored: pa.DataType
) -> tuple[int, pa.DataType, pa.DataType]:
    """(kind, storage type, type) with regard to the type that the writer had in memory, as pyarrow honours it."""
    t = pa.types
    if natural == stored:
        return kind, storage, natural
    if isinstance(stored, pa.BaseExtensionType):
        below = stored.storage_type
        if isinstance(natural, pa.BaseExtensionType):
            if type(natural) is not type(stored):
                return kind, storage, natural
            natural = natural.storage_type  # JSON in strings of another layout
        kind, storage, made = _with_stored(kind, storage, natural, below)
        return kind, storage, stored if made == below else made
    if t.is_timestamp(natural) and t.is_timestamp(stored) and natural.tz is not None and stored.tz:
        made = pa.timestamp(natural.unit, stored.tz)
        return kind, made, made
    if natural == pa.int64() and t.is_duration(stored):
        return kind, stored, stored
    if natural in _DICTIONARY_VALUES:
        if stored == _LARGE[natural]:
            return K_LARGE_BYTES, stored, stored
        if stored == _VIEW[natural]:
            return kind, storage, stored
        if t.is_dictionary(stored):
            return kind, storage, pa.dictionary(stored.index_type, natural, stored.ordered)
    same_digits = (
        t.is_decimal128(natural)
        and t.is_decimal(stored)
        and (natural.precision, natural.scale) == (stored.precision, stored.scale)
    )
    if same_digits:
        return (K_D256, stored, stored) if t.is_decimal256(stored) else (kind, natural, stored)
    return kind, storage, natural


_TIMES = {
    pa.time32("ms"): 86_400_000,
    pa.time64("us"): 86_400_000_000,
    pa.time64("ns"): 86_400_000_000_000,
}
_DIGITS = {INT32: 10, INT64: 19}  # of the greatest value of the physical type


def _range(element: SchemaElement, kind: int, storage: pa.DataType) -> int:
    """The limit of the values of an Arrow type: the digits of a decimal, the end of a day; 0: none."""
    if kind in (K_D128, K_D256):
        digits = int(storage.precision)
        return digits if digits < _DIGITS.get(element.type, 77) else 0
    return _TIMES.get(storage, 0) if kind in (K_I32, K_I64) else 0


VIEW_DATA = 1 << 30  # bytes after which the core begins a further data buffer of views
_VIEW_TYPES = frozenset((pa.string_view(), pa.binary_view()))
_DICTIONARY_VALUES = frozenset((pa.string(), pa.binary()))
_LARGE = {
    pa.string(): pa.large_string(),
    pa.binary(): pa.large_binary(),
    pa.json_(pa.string()): pa.json_(pa.large_string()),
}
_VIEW = {
    pa.string(): pa.string_view(),
    pa.binary(): pa.binary_view(),
    pa.large_string(): pa.string_view(),
    pa.large_binary(): pa.binary_view(),
    pa.json_(pa.string()): pa.json_(pa.string_view()),
    pa.json_(pa.large_string()): pa.json_(pa.string_view()),
}


def takes_dictionary(element: SchemaElement) -> bool:
    """Whether the values of a leaf may come out as a dictionary."""
    return _natural(element, Options())[2] in _DICTIONARY_VALUES


def leaf_type_of(
    element: SchemaElement,
    options: Options,
    stored: pa.DataType | None = None,
    dictionary: bool = False,
    as_bytes: bool = False,
    as_told: bool = False,
    timestamp: pa.DataType | None = None,
) -> LeafType:
    """How to decode a leaf of this element, and as what.

    `stored`: its type in the file's Arrow schema, if it has one. `dictionary`: it comes out as one, if it can. `as_bytes`: text
    is binary. `as_told`: likewise, and bytes of which nothing is said are text, or a UUID if they
    have its length; values are as wide as they were, as in zones. `timestamp`: a type of timestamps of which these have the
    zone, and INT96 the unit, too.
    """
    if timestamp is not None:
        element, options = _as_timestamp(element, options, timestamp)
        stored = None
    if (as_bytes or as_told) and element.type == BYTE_ARRAY and _is_text(element, options):
        element = element._replace(converted_type=ABSENT, logical=0)
        stored = _other(stored) if as_told else None
        options = options._replace(binary_text=False, as_bytes=(), as_told=())
    elif as_told and element.type == BYTE_ARRAY and logical_of(element)[0] == 0:
        element = element._replace(converted_type=ABSENT, logical=L_STRING)
        stored = _other(stored)
        options = options._replace(as_bytes=(), as_told=())
    elif as_told and element.type_length == _UUID_BYTES and _is_plain_fixed(element):
        element, stored = element._replace(converted_type=ABSENT, logical=L_UUID), None
    # the type does not depend on name, repetition and number of children
    typed = element[:2] + _NO_PLACE + element[6:9] + element[10:]
    natural, leaf_type = _natural_leaf_type(typed, options)
    if dictionary and natural in _DICTIONARY_VALUES:
        stored = pa.dictionary(pa.int32(), natural)
    if stored is None or stored == natural:
        return leaf_type
    kind, storage, _, text = _natural(element, options)
    return _leaf_type(element, options, *_with_stored(kind, storage, natural, stored), text)


TEXT_TYPES = (pa.string(), pa.large_string(), pa.string_view())
BYTES_TYPES = (pa.binary(), pa.large_binary(), pa.binary_view())
_OTHERS = dict(zip(TEXT_TYPES + BYTES_TYPES, BYTES_TYPES + TEXT_TYPES, strict=True))


def _other(stored: pa.DataType | None) -> pa.DataType | None:
    """Text for bytes, and bytes for text, of the same layout."""
    if stored is not None and pa.types.is_dictionary(stored):
        values = _OTHERS.get(stored.value_type)
        return None if values is None else pa.dictionary(stored.index_type, values, stored.ordered)
    return _OTHERS.get(stored)


_UUID_BYTES = 16


def _as_timestamp(
    element: SchemaElement, options: Options, told: pa.TimestampType
) -> tuple[SchemaElement, Options]:
    """An element of timestamps, and options, with the zone of a type."""
    utc = told.tz is not None
    options = options._replace(timestamps=(), instants=False)
    if element.type == INT96:
        unit = told.unit if told.unit in _INT96_UNITS else options.int96_unit
        return element, options._replace(int96_unit=unit, int96_utc=utc)
    unit_ = logical_of(element)[2]
    moved = element._replace(converted_type=ABSENT, logical=L_TIMESTAMP, logical_a=int(utc))
    return moved._replace(logical_b=unit_), options


def _is_plain_fixed(element: SchemaElement) -> bool:
    """Whether values are so many bytes, and the file does not say of what."""
    return element.type == FIXED and logical_of(element)[0] == 0


_NO_PLACE = (0, 0, 0, 0)  # repetition, name and number of children


@functools.lru_cache(maxsize=256)
def _natural_leaf_type(typed: tuple[int, ...], options: Options) -> tuple[pa.DataType, LeafType]:
    """The type without regard to a stored Arrow schema, and how to decode it. Made once for each type."""
    element = SchemaElement._make((*typed[:9], ABSENT, *typed[9:]))
    kind, storage, made, text = _natural(element, options)
    return made, _leaf_type(element, options, kind, storage, made, text)


def _leaf_type(
    element: SchemaElement,
    options: Options,
    kind: int,
    storage: pa.DataType,
    made: pa.DataType,
    text: bool,
) -> LeafType:
    if options.string_type == "large" and made in _LARGE:  # views and dictionaries stay as they are
        kind, storage, made = K_LARGE_BYTES, _LARGE[storage], _LARGE[made]
    elif options.string_type == "view" and made in _VIEW:
        made = _VIEW[made]
    if logical_of(element)[0] == L_UNKNOWN:
        made = pa.null()
    length = element.type_length if element.type == FIXED else 0
    unit = _INT96_UNITS[options.int96_unit] if element.type == INT96 else 0
    range_ = _range(element, kind, storage) if options.out_of_range == "error" else 0
    return LeafType(
        (element.type, length, kind, length if kind == K_FIXED else 0, unit, int(text), range_),
        storage,
        made,
    )


def passing_form(form: CoreForm) -> CoreForm:
    """How to decode a leaf of this form where entries of its dictionary pass a test or not: as booleans."""
    return (form[0], 0, K_BOOL, 0, 0, 0, 0)


def to_arrow(
    leaf_type: LeafType, n: int, null_count: int, validity: Any, offsets: Any, values: Any
) -> pa.Array:
    """An Arrow array of the storage type over buffers of the core."""
    if leaf_type.is_null:
        return pa.nulls(n)
    buffers = [pa.py_buffer(validity) if validity is not None else None]
    if offsets is not None:
        buffers.append(pa.py_buffer(offsets))
    if leaf_type.kind == K_VIEWS:
        data = pa.py_buffer(values)
        buffers += [data.slice(at) for at in range(0, data.size, VIEW_DATA)]
    else:
        buffers.append(pa.py_buffer(values))
    return pa.Array.from_buffers(leaf_type.storage, n, buffers, null_count)
