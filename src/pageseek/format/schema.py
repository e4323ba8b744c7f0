"""The columns of a file: Parquet's schema tree, its leaves, and the Arrow fields they become.

Source: parquet.thrift (SchemaElement).
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable
from dataclasses import field
from typing import Any, Generic, TypeVar, overload
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from pageseek.base.errors import (
    CorruptFileError,
    LimitError,
    NoColumnError,
    PredicateError,
    UnsupportedError,
)
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple, dataclass
from pageseek.base.suggest import Offer, nearest
from pageseek.format.stored_types import stored_metadata, stored_type
from pageseek.format.types import (
    ABSENT,
    BOOLEAN,
    FIXED,
    L_DECIMAL,
    MAX_FIXED,
    LeafType,
    Options,
    SchemaElement,
    leaf_type_of,
    logical_of,
    takes_dictionary,
)

_T = TypeVar("_T")
_TIMESTAMP = pa.timestamp("us").id


class lazy(Generic[_T]):  # noqa: N801
    """functools.cached_property without the lock of Python 3.11, which a fork may leave closed forever."""

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


# bytes of elements, and of names: comparing those of wider files takes as long as it saves
MOST_SHARED = 1 << 16
_open_schemas: WeakValueDictionary[tuple[bytes, bytes, bytes | None], Schema] = (
    WeakValueDictionary()
)
_ELEMENT = struct.Struct(f"<{len(SchemaElement._fields)}q")


@dataclass(slots=True, unsafe_hash=True)  # frozen, it would take three times as long to make
class Leaf:
    """A primitive column: its number among the leaves, its path, and its greatest levels. It is never changed."""

    index: int
    path: tuple[str, ...]
    element: SchemaElement
    max_def: int
    max_rep: int
    top: int  # position of the top-level field that holds it
    group: bool = False  # a presence leaf: it tells whether a group above it is null
    nesting_level: int = -1  # the level that tells it; -1: the group is never null
    siblings: int = 1  # leaves of that group, of which this is the first
    name: str = field(init=False, compare=False, repr=False)
    # `index` and `nesting_level`: whether its values are meant, or one of its levels
    key: tuple[int, int] = field(init=False, compare=False, repr=False)
    flat: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # a lookup uses them so often that properties would take longer than the work
        self.name = ".".join(self.path)
        self.key = self.index, self.nesting_level
        self.flat = len(self.path) == 1 and self.max_rep == 0


def _read_stored(raw: bytes | None) -> list[tuple[str, pa.Field, pa.DataType]]:
    """The fields of an Arrow schema as writers store it; none if it cannot be read.

    A file may name any extension type that this process has registered, and reading the schema would run the type's code.
    So the key that names types is renamed first: their storage types come out.
    """
    if raw is None:
        return []
    try:
        blinded = binascii.a2b_base64(raw).replace(b"ARROW:extension:", b"PSEEK:extension:")
        made = [(f.name, f, f.type) for f in pa.ipc.read_schema(pa.py_buffer(blinded))]
        for _, _, kept in made:  # pyarrow decodes the time zone on access, and it may be no text
            if kept.id == _TIMESTAMP:
                kept.tz  # noqa: B018
    except (pa.ArrowException, OSError, ValueError, TypeError):
        return []
    return made


class Field(NamedTuple):
    """A top-level field and its leaves, a half-open range of leaf numbers."""

    name: str
    element: SchemaElement
    first_leaf: int
    stop_leaf: int


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
    stored : bytes or None
        The Arrow schema that the writer left, in base64.

    A file of thousands of flat columns is common, and most scans name a few: those are found without
    making an object of every column.
    """

    def __init__(
        self,
        elements: bytes,
        num_leaves: int,
        footer: memoryview,
        stored: bytes | None,
        source: str,
    ) -> None:
        self._elements = elements
        self._footer = footer
        self._stored_bytes = stored
        self._source = source
        self._leaf_types: dict[tuple[int, Options], LeafType] = {}
        self._flat: dict[int, Leaf] = {}  # of a schema without groups, those used so far
        self._found: dict[str, list[int]] = {}  # and the positions of names
        self.outputs: dict[Any, Any] = {}  # of columns.output, without metadata
        self._n = len(elements) // _ELEMENT.size - 1  # without the root
        self._all_flat = num_leaves == self._n

    @classmethod
    def shared(
        cls,
        elements: bytes,
        num_leaves: int,
        footer: memoryview,
        stored: bytes | None,
        source: str,
    ) -> Schema:
        """The schema of a file, which shares fields and leaves with an open file that has the same columns."""
        made = cls(elements, num_leaves, footer, stored, source)
        if max(len(elements), made.names_end) > MOST_SHARED:
            return made
        names = bytes(footer[: made.names_end])
        made._footer = memoryview(names)  # others keep the schema, and the whole may be large
        known = _open_schemas.setdefault((elements, names, stored), made)
        return made if known is made else known.of(source)

    @property
    def elements(self) -> bytes:
        """The records of the footer."""
        return self._elements

    @property
    def names_end(self) -> int:
        """Where the last name ends in the footer."""
        last = self._element(self._n)
        return last.name_offset + last.name_length

    def of(self, source: str) -> Schema:
        """The schema of another file that has the same columns."""
        made = object.__new__(Schema)
        made.__dict__.update(self.__dict__)  # fields and leaves are shared, also those parsed later
        made._source = source
        return made

    @lazy
    def _table(self) -> npt.NDArray[np.int64]:
        return np.frombuffer(self._elements, np.int64).reshape(-1, len(SchemaElement._fields))

    @lazy
    def _names_text(self) -> bytes:
        """The bytes of the footer in which the names stand."""
        return bytes(self._footer[: self.names_end])

    def _element(self, position: int) -> SchemaElement:
        return SchemaElement._make(_ELEMENT.unpack_from(self._elements, position * _ELEMENT.size))

    def _name(self, element: SchemaElement) -> str:
        start = element.name_offset
        return str(self._footer[start : start + element.name_length], "utf-8", "replace")

    def _flat_positions(self, name: str) -> list[int]:
        """Fields of this name, where every field is a leaf."""
        found = self._found.get(name)
        if found is not None:
            return found
        if len(self._flat) == self._n:
            return [i for i, leaf in self._flat.items() if leaf.path[0] == name]
        wanted = name.encode()
        at = SchemaElement._fields.index("name_offset")
        offsets, lengths = self._table[1:, at], self._table[1:, at + 1]
        if not wanted:
            return np.flatnonzero(lengths == 0).tolist()
        found = []
        text, start = self._names_text, -1
        while (start := text.find(wanted, start + 1)) >= 0:
            i = int(np.searchsorted(offsets, start))  # names follow each other
            if i < self._n and offsets[i] == start and lengths[i] == len(wanted):
                found.append(i)
        if found:
            self._found[name] = found  # unknown names are not kept
        return found

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
        # open groups: children left, path, definition level, repetition level
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
        for i, top in enumerate(self.fields):
            names.setdefault(top.name, []).append(i)
        return names

    def _positions(self, name: str) -> list[int]:
        return self._flat_positions(name) if self._all_flat else self._by_name.get(name, [])

    def has_field(self, name: str) -> bool:
        """Whether a top-level field has exactly this name."""
        return bool(self._positions(name))

    def field_index(self, name: str) -> int:
        """The position of the top-level field of exactly this name."""
        found = self._found.get(name) or self._positions(name)
        if len(found) == 1:
            return found[0]
        if not found:
            raise NoColumnError(f"{self._source}: no column {name!r}", self.offer(name))
        raise PredicateError(f"{self._source}: {len(found)} columns have the name {name!r}")

    def offer(self, name: str) -> Offer:
        """The names to offer for a column that does not exist (`names`)."""
        return Offer(name, lambda: self.names(name))

    def names(self, name: str) -> list[str]:
        """The names of columns; for a dotted path those of leaves, too, and for a plain name those of leaves that end in it."""
        found = [self.field(i).name for i in range(self.num_fields)]
        if "." in name:
            found += [leaf.name for leaf in self.leaves]
        elif not nearest(name, found):
            end = f".{name.lower()}"
            found += [leaf.name for leaf in self.leaves if leaf.name.lower().endswith(end)]
        return list(dict.fromkeys(found))

    def flat_leaf(self, index: int) -> Leaf | None:
        """The leaf that a top-level field is; None of a field that repeats, or has fields of its own."""
        leaf = None
        if self._all_flat:
            leaf = self._flat.get(index) or self.leaf(index)
        elif self.fields[index].stop_leaf - self.fields[index].first_leaf == 1:
            leaf = self.leaves[self.fields[index].first_leaf]
        return leaf if leaf is not None and leaf.flat else None

    def path_index(self, name: str) -> int | None:
        """The top-level field into which a dotted path leads; None if a field has exactly this name, or
        nothing begins so.
        """
        if "." not in name or self._positions(name):
            return None
        parts = name.split(".")
        for n in range(len(parts) - 1, 0, -1):  # names may have dots of their own
            found = self._positions(".".join(parts[:n]))
            if len(found) == 1 and self.flat_leaf(found[0]) is None:
                return found[0]
        return None

    def find(self, path: str) -> Leaf:
        """The leaf at a dotted path of the Parquet schema, or the only one of a top-level field."""
        index = self.path_index(path)
        if index is None:
            index = self.field_index(path)
        field = self.field(index)
        found = [self.leaf(i) for i in range(field.first_leaf, field.stop_leaf)]
        if path != field.name:
            found = [leaf for leaf in found if leaf.name == path]
        if len(found) == 1:
            return found[0]
        if not found:
            raise PredicateError(f"{self._source}: no leaf at path {path!r}; {self.offer(path)}")
        names = ", ".join(leaf.name for leaf in found[:8])
        raise PredicateError(f"{self._source}: {path!r} has {len(found)} leaves; name one: {names}")

    @lazy
    def _stored(self) -> list[tuple[str, pa.Field, pa.DataType]]:
        """The fields of the Arrow schema that the writer left; none where it left none for each of ours, or one
        that cannot be read.
        """
        return self._read_stored(self._stored_bytes)

    def _read_stored(self, raw: bytes | None) -> list[tuple[str, pa.Field, pa.DataType]]:
        made = _read_stored(raw)
        return made if len(made) == self.num_fields else []

    def stores(self, raw: bytes | None) -> bool:
        """Whether the Arrow schema of another file, whose columns are the same, says the same of them."""
        mine, theirs = self._stored, self._read_stored(raw)
        return len(mine) == len(theirs) and all(
            one.equals(other, check_metadata=True)
            for (_, one, _), (_, other, _) in zip(mine, theirs, strict=True)
        )

    def stored_field(self, index: int, name: str) -> pa.Field | None:
        """What the writer's schema says of the top-level field of this position and name, where it has it."""
        stored = self._stored
        if not stored:
            return None
        stored_name, found, _ = stored[index]
        return found if stored_name == name else None

    def check(self, options: Options) -> None:
        """Refuse options that name a column which does not exist, or cannot come out as they say."""
        for name in options.dictionary_columns:
            field = self.field(self.field_index(name))
            leaf = self.leaf(field.first_leaf) if field.stop_leaf > field.first_leaf else None
            if leaf is None or not leaf.flat or not takes_dictionary(leaf.element):
                raise UnsupportedError(
                    f"{self._source}: column {name!r} cannot come out as a dictionary: only flat columns "
                    "of strings and binary can"
                )

    def _check_physical(self, leaf: Leaf) -> None:
        """Check the length of a FIXED_LEN_BYTE_ARRAY; refuse a type that does not exist."""
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

    def parquet_leaf_type(self, leaf: Leaf) -> LeafType:
        """How the leaf's values are typed by the Parquet schema alone."""
        self._check_physical(leaf)
        return leaf_type_of(leaf.element, Options())

    def leaf_type(self, leaf: Leaf, options: Options) -> LeafType:
        """How a flat leaf is decoded."""
        leaf_type = self._leaf_types.get((leaf.index, options))
        return (
            self._make_leaf_type(leaf, options, self.stored_field(leaf.top, leaf.path[0]))
            if leaf_type is None
            else leaf_type
        )

    def _make_leaf_type(self, leaf: Leaf, options: Options, stored: pa.Field | None) -> LeafType:
        if not BOOLEAN <= leaf.element.type < FIXED:
            self._check_physical(leaf)
        original = None
        if stored is not None:
            original = stored_type(stored) if stored.metadata else self._stored[leaf.top][2]
        dictionary = leaf.path[0] in options.dictionary_columns
        as_bytes, as_told = options.makes_bytes(leaf.path), options.is_told(leaf.path)
        told = options.timestamp_of(leaf.path)
        made = leaf_type_of(leaf.element, options, original, dictionary, as_bytes, as_told, told)
        self._leaf_types[leaf.index, options] = made
        return made

    def flat_column(self, leaf: Leaf, options: Options) -> tuple[LeafType, pa.Field]:
        """How a flat top-level field is decoded, and the field as Arrow has it, with its field id in the metadata, as pyarrow
        keeps it.
        """
        index, element, name = leaf.top, leaf.element, leaf.path[0]
        stored = self.stored_field(index, name)
        leaf_type = self._make_leaf_type(leaf, options, stored)
        nullable = element.repetition != 0 or leaf_type.is_null
        about = None if stored is None else stored.metadata
        if (
            stored is not None
            and not about
            and element.field_id == ABSENT
            and stored.nullable == nullable
            and self._stored[index][2] == leaf_type.type
        ):
            return leaf_type, stored  # the same, and at hand
        metadata = stored_metadata(stored) if about else {}
        if element.field_id != ABSENT:
            metadata[b"PARQUET:field_id"] = str(element.field_id).encode()
        return leaf_type, pa.field(
            name, leaf_type.type, nullable=nullable, metadata=metadata or None
        )
