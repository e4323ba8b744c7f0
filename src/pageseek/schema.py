"""The columns of a file: Parquet's schema tree, its leaves, and the Arrow types they become.

Sources: parquet.thrift (SchemaElement, LogicalType), LogicalTypes.md. Types are those that pyarrow's
own reader gives for the file.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.errors import CorruptFileError, LimitError, PredicateError, UnsupportedError

_T = TypeVar("_T")


class lazy(Generic[_T]):  # noqa: N801
    """functools.cached_property without the lock of Python 3.11, which a fork may leave closed for good."""

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[_T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...
    def __get__(self, instance: object, owner: type) -> lazy[_T] | _T:
        if instance is None:
            return self
        made = instance.__dict__[self._name] = self._make(instance)
        return made


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


_ELEMENT = struct.Struct(f"<{len(SchemaElement._fields)}q")


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
        return bool(self.type.id == _NULL)

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


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column: its place among the leaves, its path, and its greatest levels."""

    index: int
    path: tuple[str, ...]
    element: SchemaElement
    max_def: int
    max_rep: int
    top: int  # position of the top-level field that holds it

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def flat(self) -> bool:
        return len(self.path) == 1 and self.max_rep == 0


@dataclass(frozen=True, slots=True)
class Field:
    """A top-level field and its leaves, a half-open range of leaf numbers."""

    name: str
    element: SchemaElement
    first_leaf: int
    stop_leaf: int


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


def leaf_form(leaf: Leaf, options: Options, stored: pa.DataType | None = None) -> Form:
    """How to decode a leaf, and as what. `stored` is its type in the file's Arrow schema, if it has one."""
    element = leaf.element
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


class Schema:
    """The schema tree of a file, read on demand.

    Parameters
    ----------
    elements : bytes
        Records of SchemaElement in the order of the footer: depth first, the root first.
    num_leaves : int
        How many of them are leaves; if all but the root are, there are no groups.
    footer : bytes-like
        The footer, which holds the names.
    key_value : callable
        Looks up a key of the file's key-value metadata.

    A file of thousands of flat columns is common, and most scans name a few: those are found without
    making an object of every column.
    """

    def __init__(
        self,
        elements: bytes,
        num_leaves: int,
        footer: memoryview,
        key_value: Callable[[bytes], bytes | None],
        source: str,
    ) -> None:
        self._elements = elements
        self._footer = footer
        self._key_value = key_value
        self._source = source
        self._forms: dict[tuple[int, Options], Form] = {}
        self._found: dict[tuple[str, ...], Leaf] = {}
        self._flat: dict[int, Leaf] = {}  # of a schema without groups, those asked for
        self._n = len(elements) // _ELEMENT.size - 1  # without the root
        self._all_flat = num_leaves == self._n

    @lazy
    def _table(self) -> npt.NDArray[np.int64]:
        return np.frombuffer(self._elements, np.int64).reshape(-1, len(SchemaElement._fields))

    def _name(self, element: SchemaElement) -> str:
        start = element.name_offset
        return str(self._footer[start : start + element.name_length], "utf-8", "replace")

    def _flat_positions(self, name: str) -> list[int]:
        """Fields of this name, where every field is a leaf."""
        if len(self._flat) == self._n:
            return [i for i, leaf in self._flat.items() if leaf.path[0] == name]
        wanted = name.encode()
        at = SchemaElement._fields.index("name_offset")
        candidates = np.flatnonzero(self._table[1:, at + 1] == len(wanted))
        footer, size = self._footer, len(wanted)
        offsets = self._table[1:, at][candidates].tolist()
        return [
            i
            for i, start in zip(candidates.tolist(), offsets, strict=True)
            if footer[start : start + size] == wanted
        ]

    @property
    def num_fields(self) -> int:
        """Top-level fields."""
        return self._n if self._all_flat else len(self.fields)

    def field(self, index: int) -> Field:
        """A top-level field."""
        if not self._all_flat:
            return self.fields[index]
        leaf = self.leaf(index)
        return Field(leaf.path[0], leaf.element, index, index + 1)

    def leaf(self, index: int) -> Leaf:
        """A primitive column."""
        if not self._all_flat:
            return self.leaves[index]
        leaf = self._flat.get(index)
        if leaf is None:
            at = (index + 1) * _ELEMENT.size
            element = SchemaElement._make(_ELEMENT.unpack_from(self._elements, at))
            repetition = element.repetition
            levels = 1 if repetition == 1 or repetition == 2 else 0
            leaf = self._flat[index] = Leaf(
                index, (self._name(element),), element, levels, int(repetition == 2), index
            )
        return leaf

    @lazy
    def _tree(self) -> tuple[list[Field], list[Leaf]]:
        fields: list[Field] = []
        leaves: list[Leaf] = []
        # (children left, path, definition level, repetition level) of the open groups
        open_groups: list[list[object]] = []
        for element in map(SchemaElement._make, self._table[1:].tolist()):
            while open_groups and open_groups[-1][0] == 0:
                open_groups.pop()
            name = self._name(element)
            if open_groups:
                group = open_groups[-1]
                group[0] -= 1  # type: ignore[operator]
                path, level, repeated = (*group[1], name), group[2], group[3]  # type: ignore[misc]
            else:
                path, level, repeated = (name,), 0, 0
                fields.append(Field(name, element, len(leaves), -1))
            level += element.repetition in (1, 2)  # type: ignore[operator]
            repeated += element.repetition == 2  # type: ignore[operator]
            if element.type == ABSENT or element.num_children > 0:
                if element.num_children > 0:
                    open_groups.append([element.num_children, path, level, repeated])
            else:
                leaves.append(Leaf(len(leaves), path, element, level, repeated, len(fields) - 1))
        stops = [*(f.first_leaf for f in fields[1:]), len(leaves)][: len(fields)]
        return [
            Field(f.name, f.element, f.first_leaf, stop)
            for f, stop in zip(fields, stops, strict=True)
        ], leaves

    @property
    def fields(self) -> list[Field]:
        """Top-level fields in file order."""
        return self._tree[0]

    @property
    def leaves(self) -> list[Leaf]:
        """Primitive columns in file order; the number of a column chunk in its row group."""
        return self._tree[1]

    @lazy
    def _by_name(self) -> dict[str, list[int]]:
        names: dict[str, list[int]] = {}
        for i, field in enumerate(self.fields):
            names.setdefault(field.name, []).append(i)
        return names

    def _positions(self, name: str) -> list[int]:
        return self._flat_positions(name) if self._all_flat else self._by_name.get(name, [])

    def field_index(self, name: str) -> int:
        """The position of the top-level field of exactly this name."""
        found = self._positions(name)
        if len(found) == 1:
            return found[0]
        if not found:
            raise PredicateError(
                f"{self._source}: no column {name!r}; there are {self._some_names()}"
            )
        raise PredicateError(f"{self._source}: {len(found)} columns have the name {name!r}")

    def _some_names(self) -> str:
        names = [repr(self.field(i).name) for i in range(min(12, self.num_fields))]
        return ", ".join(names) + (", ..." if self.num_fields > 12 else "")

    def find(self, parts: tuple[str, ...]) -> Leaf:
        """The leaf at a path; a single part is an exact top-level name first, else a dotted path."""
        leaf = self._found.get(parts)
        if leaf is None:
            leaf = self._found[parts] = self._find(parts)
        return leaf

    def _find(self, parts: tuple[str, ...]) -> Leaf:
        if len(parts) == 1:
            if "." not in parts[0] or self._positions(parts[0]):
                field = self.field(self.field_index(parts[0]))
                if field.stop_leaf - field.first_leaf == 1:
                    leaf = self.leaf(field.first_leaf)
                    if len(leaf.path) == 1:
                        return leaf
                raise UnsupportedError(
                    f"{self._source}: column {parts[0]!r} is nested; name one of its leaves"
                )
            parts = tuple(parts[0].split("."))
        found = [leaf for leaf in self.leaves if leaf.path == parts]
        if len(found) == 1:
            return found[0]
        if not found:
            raise PredicateError(
                f"{self._source}: no column at path {'.'.join(parts)!r}; there are {self._some_names()}"
            )
        raise PredicateError(
            f"{self._source}: {len(found)} columns have the path {'.'.join(parts)!r}"
        )

    @lazy
    def _stored(self) -> list[tuple[str, pa.Field]]:
        """The fields of the Arrow schema that the writer left; none where it left none for each of ours, or one
        that cannot be read.

        A file may name any extension type that this process has registered, and reading the schema would
        run its code: the key that names them is blinded first, so that their storage types come out.
        """
        raw = self._key_value(b"ARROW:schema")
        if raw is None:
            return []
        try:
            blinded = base64.b64decode(raw).replace(b"ARROW:extension:", b"PSEEK:extension:")
            made = [(f.name, f) for f in pa.ipc.read_schema(pa.py_buffer(blinded))]
            for _, field in made:  # pyarrow decodes text when it is asked for, and this may be none
                getattr(field.type, "tz", None)
        except (pa.ArrowException, binascii.Error, OSError, ValueError, TypeError):
            return []
        return made if len(made) == self.num_fields else []

    def _stored_field(self, index: int, name: str) -> pa.Field | None:
        """What the writer's schema says of a top-level field, where it speaks of the same one."""
        stored = self._stored
        return stored[index][1] if stored and stored[index][0] == name else None

    def _check_physical(self, leaf: Leaf) -> None:
        """Refuse a physical type or a length that values cannot have."""
        physical, length = leaf.element.type, leaf.element.type_length
        if BOOLEAN <= physical < FIXED:
            return
        where = f"{self._source}: column {leaf.name!r}"
        if physical != FIXED:
            raise CorruptFileError(f"{where}: there is no physical type {physical}")
        if length < (logical_of(leaf.element)[0] == L_DECIMAL):
            given = "no type_length" if length == ABSENT else f"type_length {length}"
            raise CorruptFileError(f"{where}: FIXED_LEN_BYTE_ARRAY with {given}")
        if length > MAX_FIXED:
            raise LimitError(f"{where}: type_length {length} is above the limit of {MAX_FIXED}")

    def parquet_form(self, leaf: Leaf) -> Form:
        """How the leaf's values are typed by the Parquet schema alone."""
        self._check_physical(leaf)
        return leaf_form(leaf, Options())

    def form(self, leaf: Leaf, options: Options) -> Form:
        """How the leaf is decoded; UnsupportedError for what cannot be decoded yet."""
        key = leaf.index, options
        form = self._forms.get(key)
        if form is None:
            if not leaf.flat:
                raise UnsupportedError(
                    f"{self._source}: column {leaf.name!r} is nested, which is not supported yet"
                )
            self._check_physical(leaf)
            stored = self._stored_field(leaf.top, leaf.path[0])
            original = None if stored is None else stored.type
            form = self._forms[key] = leaf_form(leaf, options, original)
        return form

    def first_leaf(self, index: int) -> int:
        """The first leaf of a top-level field."""
        return index if self._all_flat else self.fields[index].first_leaf

    def arrow_field(self, index: int, options: Options) -> pa.Field:
        """The top-level field as Arrow has it, with its field id in the metadata, as pyarrow keeps it."""
        if self._all_flat:
            leaf = self.leaf(index)
            name, element, nested = leaf.path[0], leaf.element, leaf.max_rep != 0
        else:
            field = self.fields[index]
            name, element = field.name, field.element
            nested = field.stop_leaf == field.first_leaf
            if not nested:
                leaf = self.leaves[field.first_leaf]
                nested = not leaf.flat
        if nested:
            raise UnsupportedError(
                f"{self._source}: column {name!r} is nested, which is not supported yet; "
                "name the columns to read without it: scan(..., columns=[...])"
            )
        form = self.form(leaf, options)
        metadata = None
        stored = self._stored_field(index, name)
        if stored is not None and stored.metadata:
            kept = stored.metadata.items()
            metadata = {k: v for k, v in kept if not k.startswith(b"PSEEK:extension:")}
        if element.field_id != ABSENT:
            metadata = (metadata or {}) | {b"PARQUET:field_id": str(element.field_id).encode()}
        nullable = element.repetition != 0 or form.is_null
        return pa.field(name, form.type, nullable=nullable, metadata=metadata or None)


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
