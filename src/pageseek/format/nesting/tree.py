"""The tree of a nested field: schema elements as Arrow fields.

A field is built in two passes: schema elements become parts, as the file has them, and parts become nodes, as Arrow has
them. Source: LogicalTypes.md (Nested Types, with the rules for lists and maps of older writers). Types are those that
pyarrow's own reader gives for the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek.base.errors import CorruptFileError, LimitError, UnsupportedError
from pageseek.base.records import dataclass
from pageseek.format.schema import Leaf, Schema
from pageseek.format.stored_types import stored_metadata, stored_type
from pageseek.format.types import (
    ABSENT,
    L_LIST,
    L_MAP,
    L_VARIANT,
    LeafType,
    Options,
    SchemaElement,
    leaf_type_of,
)

# Groups around a leaf. Functions here and Arrow's own (comparison, validation, IPC, which by default refuses 64 levels of
# types) recurse once or more for each group. A list takes two groups. Real schemas stay below 30.
MAX_DEPTH = 100

_REPETITION_OPTIONAL, _REPETITION_REPEATED = 1, 2
_CONVERTED_MAP, _CONVERTED_MAP_KEY_VALUE, _CONVERTED_LIST = 1, 2, 3

Kind: TypeAlias = Literal["leaf", "struct", "list", "map"]


@dataclass(frozen=True, slots=True)
class Node:
    """A field of the Arrow schema, at any depth, and the levels at which it is present.

    Attributes
    ----------
    kind : str
        "leaf", "struct", "list" (of any Arrow layout) or "map".
    field : pyarrow.Field
        Its name, type, nullability and metadata.
    optional : bool
        Whether it may be null by the file: it is present if the definition level is at least `def_level`.
    def_level, rep_level : int
        The levels of the node itself, without those of its elements.
    first_leaf, stop_leaf : int
        The range of the numbers of the leaves below it; equal if there are none.
    children : tuple of Node
        Fields of a struct; the element of a list; key and value of a map.
    variant : bool
        Whether the file calls a struct a VARIANT.
    """

    kind: Kind
    field: pa.Field
    optional: bool
    def_level: int
    rep_level: int
    first_leaf: int
    stop_leaf: int
    children: tuple[Node, ...] = ()
    leaf: Leaf | None = None
    leaf_type: LeafType | None = None
    variant: bool = False

    @property
    def name(self) -> str:
        return str(self.field.name)

    @property
    def nullable(self) -> bool:
        return bool(self.field.nullable)

    @property
    def repeats(self) -> bool:
        """Whether it has elements: one is present if the definition level is `def_level` + 1 or more."""
        return self.kind in ("list", "map")

    def leaf_nodes(self) -> Iterator[Node]:
        """The nodes of the leaves below, in file order."""
        if self.leaf is not None:
            yield self
        for child in self.children:
            yield from child.leaf_nodes()

    def leaves(self) -> Iterator[Leaf]:
        """The leaves below, in file order."""
        return (node.leaf for node in self.leaf_nodes() if node.leaf is not None)


# ---- the elements of the file ---------------------------------------------------------------------


@dataclass(slots=True)
class _Part:
    """A schema element and those below it."""

    element: SchemaElement
    path: tuple[str, ...]
    first_leaf: int
    stop_leaf: int
    is_leaf: bool
    children: list[_Part] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def optional(self) -> bool:
        return self.element.repetition == _REPETITION_OPTIONAL

    @property
    def repeated(self) -> bool:
        return self.element.repetition == _REPETITION_REPEATED

    @property
    def annotation(self) -> int:
        """L_LIST or L_MAP, or 0: any other annotation does not change what a group is."""
        if self.is_leaf:
            return 0
        logical = self.element.logical
        if logical not in (ABSENT, 0):  # the LogicalType comes before the ConvertedType
            return logical if logical in (L_LIST, L_MAP) else 0
        if self.element.converted_type == _CONVERTED_LIST:
            return L_LIST
        # MAP_KEY_VALUE belongs inside a map; some writers put it in the place of MAP
        maps = (_CONVERTED_MAP, _CONVERTED_MAP_KEY_VALUE)
        return L_MAP if self.element.converted_type in maps else 0


def _parts(schema: Schema, index: int) -> _Part:
    """The elements of a top-level field, as a tree. Counts of children may be wrong."""
    top = schema.field(index)
    where = f"{schema._source}: column {top.name!r}"
    name_offset = SchemaElement._fields.index("name_offset")  # it differs between any two elements
    (found,) = np.nonzero(schema._table[1:, name_offset] == top.element.name_offset)
    position, leaves = int(found[0]) + 1, top.first_leaf
    open_groups: list[_Part] = []
    while True:
        if position == len(schema._table):
            raise CorruptFileError(f"{where}: the schema ends before its groups are full")
        element = schema._element(position)
        position += 1
        name = schema._name(element)
        above = open_groups[-1].path if open_groups else ()
        count = element.num_children
        is_leaf = element.type != ABSENT and count <= 0
        part = _Part(element, (*above, name), leaves, leaves + is_leaf, is_leaf)
        leaves += is_leaf
        if open_groups:
            open_groups[-1].children.append(part)
        else:
            root = part
        if count > 0:
            if len(open_groups) == MAX_DEPTH:
                raise LimitError(f"{where}: groups lie deeper than the limit of {MAX_DEPTH}")
            open_groups.append(part)
        while open_groups and len(open_groups[-1].children) == open_groups[-1].element.num_children:
            open_groups.pop().stop_leaf = leaves
        if not open_groups:
            return root


# ---- from parts to nodes --------------------------------------------------------------------------


def build(schema: Schema, index: int, options: Options, stored: pa.Field | None) -> Node:
    """The tree of a top-level field.

    Parameters
    ----------
    schema : Schema
    index : int
        Position of the field among the top-level ones.
    options : Options
        The types in which leaves come out.
    stored : pyarrow.Field or None
        The field in the Arrow schema that the writer left, if there is one.

    Raises
    ------
    CorruptFileError
        A group is annotated as LIST or MAP and is neither by any rule.
    LimitError
        Groups lie deeper than MAX_DEPTH.
    """
    return _Builder(schema, options).node(_parts(schema, index), 0, 0, stored)


_FIXED_SIZE = pa.list_(pa.null(), 1).id
_MAKE_LIST = {
    make(pa.null()).id: make for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
}  # by the ids of types


def like_list(like: pa.DataType | None, item: pa.Field) -> pa.DataType:
    """A list of `item`, in the layout of `like` if that is a list."""
    if like is None:
        return pa.list_(item)
    if like.id == _FIXED_SIZE and like.list_size >= 0:  # IPC lets any number through
        return pa.list_(item, like.list_size)
    return _MAKE_LIST.get(like.id, pa.list_)(item)


def _readable(stored: pa.Field | None) -> pa.DataType | None:
    """The stored type of a leaf, unless the name of its time zone is no text."""
    if stored is None:
        return None
    try:
        _ = getattr(stored.type, "tz", None)  # decoded on access
    except ValueError:
        return None
    return stored_type(stored)


class _Builder:
    """Makes nodes of parts. `d` and `r` are the definition and repetition level above a part.

    `stored` is the writer's Arrow field for the same place. It is followed as long as its types have the shape of the
    file's; names and nullability are always the file's own.
    """

    def __init__(self, schema: Schema, options: Options) -> None:
        self._schema = schema
        self._options = options

    def node(self, part: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """The node of a part whose own repetition counts."""
        if not part.repeated:
            if part.is_leaf:
                return self._leaf(part, d, r, stored)
            if part.annotation == L_LIST:
                return self._list(part, d, r, stored)
            if part.annotation == L_MAP:
                return self._map(part, d, r, stored)
            return self._struct(part, d, r, stored)
        if part.annotation:
            raise self._refuse(part, "a LIST or MAP must not be repeated")
        # outside of a LIST or MAP: "a required list of required elements"
        below = self._stored_item(stored)
        if part.is_leaf:
            item = self._leaf(part, d + 1, r + 1, below, own_id=False)
        else:
            item = self._struct(part, d + 1, r + 1, below)
        return self._listed(part, item, d, r, stored)

    # -- kinds of nodes --------------------------------------------------------------------------

    def _leaf(
        self, part: _Part, d: int, r: int, stored: pa.Field | None, own_id: bool = True
    ) -> Node:
        leaf = self._schema.leaf(part.first_leaf)
        self._schema._check_physical(leaf)
        options, path = self._options, leaf.path
        says = options.makes_bytes(path), options.is_told(path), options.timestamp_of(path)
        leaf_type = leaf_type_of(leaf.element, options, _readable(stored), False, *says)
        # pyarrow refuses a field of type null that is not nullable
        made = self._field(part, leaf_type.type, part.optional or leaf_type.is_null, stored, own_id)
        levels = (part.optional, d + part.optional, r)
        return Node("leaf", made, *levels, part.first_leaf, part.stop_leaf, (), leaf, leaf_type)

    def _struct(self, part: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """A group, which may be an element: its own repetition adds a level only if it is OPTIONAL."""
        d += part.optional
        below: Sequence[pa.Field | None] = [None] * len(part.children)
        if (
            stored is not None
            and pa.types.is_struct(stored.type)
            and stored.type.num_fields == len(below)
        ):
            below = list(stored.type)
        children = tuple(
            self.node(child, d, r, known) for child, known in zip(part.children, below, strict=True)
        )
        kind = pa.struct([child.field for child in children])
        made = self._field(part, kind, part.optional, stored)
        levels = (part.optional, d, r)
        variant = part.element.logical == L_VARIANT
        return Node(
            "struct", made, *levels, part.first_leaf, part.stop_leaf, children, variant=variant
        )

    def _listed(self, part: _Part, item: Node, d: int, r: int, stored: pa.Field | None) -> Node:
        kind = like_list(None if stored is None else stored.type, item.field)
        made = self._field(part, kind, part.optional, stored)
        return Node("list", made, part.optional, d, r, part.first_leaf, part.stop_leaf, (item,))

    # -- annotated groups ------------------------------------------------------------------------

    def _list(self, part: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """A LIST; if it is repeated itself, it is the element of a two-level list around it."""
        d += part.optional
        inner = self._only_repeated(part, "LIST")
        item = self._element(part, inner, d + 1, r + 1, self._stored_item(stored))
        return self._listed(part, item, d, r, stored)

    def _element(self, outer: _Part, inner: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """The element of a LIST: its repeated part, or the only field of that."""
        if inner.is_leaf:
            return self._leaf(inner, d, r, stored)
        if not inner.children:
            raise self._refuse(inner, "the repeated group of a LIST has no fields")
        if len(inner.children) == 1:
            if inner.annotation == L_LIST:
                return self._list(inner, d, r, stored)
            if inner.annotation == L_MAP:
                return self._map(inner, d, r, stored)
            (only,) = inner.children
            if not only.repeated and inner.name not in ("array", outer.name + "_tuple"):
                if outer.repeated:
                    raise self._refuse(outer, "a LIST of three levels must not be repeated")
                return self.node(only, d, r, stored)
        return self._struct(inner, d, r, stored)

    def _map(self, part: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        entries = self._only_repeated(part, "MAP")
        if entries.is_leaf or not 1 <= len(entries.children) <= 2:
            raise self._refuse(entries, "the entries of a MAP have a key and at most a value")
        if entries.children[0].repeated:
            raise self._refuse(entries.children[0], "the key of a MAP is repeated")
        if len(entries.children) == 1:  # keys alone: Arrow has no sets
            return self._list(part, d, r, stored)
        d += part.optional
        known: tuple[pa.Field | None, pa.Field | None] = None, None
        ordered = False
        if stored is not None and pa.types.is_map(stored.type):
            known = stored.type.key_field, stored.type.item_field
            ordered = stored.type.keys_sorted
        key, value = (
            self.node(child, d + 1, r + 1, below)
            for child, below in zip(entries.children, known, strict=True)
        )
        if key.nullable:  # Hive wrote such keys; a null key is an error when it is read
            if pa.types.is_null(key.field.type):
                raise UnsupportedError(f"{self._where(part)}: the keys of this MAP have no type")
            key = replace(key, field=key.field.with_nullable(False))
        kind = pa.map_(key.field, value.field, keys_sorted=ordered)
        made = self._field(part, kind, part.optional, stored)
        children = key, value
        return Node("map", made, part.optional, d, r, part.first_leaf, part.stop_leaf, children)

    # -- helpers ---------------------------------------------------------------------------------

    def _only_repeated(self, part: _Part, kind: str) -> _Part:
        if len(part.children) != 1 or not part.children[0].repeated:
            raise self._refuse(part, f"a {kind} must have one field, which is repeated")
        return part.children[0]

    def _stored_item(self, stored: pa.Field | None) -> pa.Field | None:
        is_list = stored is not None and stored.type.id in (_FIXED_SIZE, *_MAKE_LIST)
        return stored.type.field(0) if stored is not None and is_list else None

    def _field(
        self,
        part: _Part,
        kind: pa.DataType,
        nullable: bool,
        stored: pa.Field | None,
        own_id: bool = True,
    ) -> pa.Field:
        metadata: dict[bytes, bytes] = {}
        if stored is not None:
            metadata = stored_metadata(stored)
        if own_id and part.element.field_id >= 0:
            metadata[b"PARQUET:field_id"] = str(part.element.field_id).encode()
        return pa.field(part.name, kind, nullable=nullable, metadata=metadata or None)

    def _where(self, part: _Part) -> str:
        return f"{self._schema._source}: column {'.'.join(part.path)!r}"

    def _refuse(self, part: _Part, why: str) -> CorruptFileError:
        return CorruptFileError(f"{self._where(part)}: {why}")
