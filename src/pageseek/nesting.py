"""Nested columns: the tree that Arrow makes of a top-level field, and arrays put together from its leaves.

Sources: LogicalTypes.md (Nested Types, with the rules for lists and maps of older writers), and Dremel's
levels as parquet.thrift counts them. Types are those that pyarrow's own reader gives for the file.

A field is built in two passes: the schema elements become parts, as the file has them, and the parts become
nodes, as Arrow has them. What stands between a field and one of its leaves is a ladder of rungs: a decoder
climbs it with a leaf's levels and gives the validity of each node that may be null and the offsets of each
that repeats. `assemble` hangs these into arrays, from the leaves up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from pageseek.errors import CorruptFileError, LimitError, UnsupportedError
from pageseek.schema import (
    ABSENT,
    L_LIST,
    L_MAP,
    Form,
    Leaf,
    Options,
    Schema,
    SchemaElement,
    leaf_form,
)

# Groups around a leaf. Functions here and Arrow's own (comparison, validation, IPC, which by default refuses
# 64 levels of types) recurse once or more for each; a list takes two groups. Schemas of people stay below 30.
MAX_DEPTH = 100
MAX_FILL = 1 << 28  # elements of a fixed-size list with its nulls filled: a file may claim any size

OPTIONAL, REPEATED = 0, 1  # kinds of rungs
_REPETITION_OPTIONAL, _REPETITION_REPEATED = 1, 2
_CONVERTED_MAP, _CONVERTED_MAP_KEY_VALUE, _CONVERTED_LIST = 1, 2, 3

Kind: TypeAlias = Literal["leaf", "struct", "list", "map"]
Rung: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """A field of the Arrow schema, at any depth, and the levels at which it is there.

    Attributes
    ----------
    kind : str
        "leaf", "struct", "list" (of any Arrow layout) or "map".
    field : pyarrow.Field
        Its name, type, nullability and metadata.
    optional : bool
        Whether the file lets it be null: it is where the definition level is at least `def_level`.
    def_level, rep_level : int
        Levels of the node itself, without those of its elements.
    first_leaf, stop_leaf : int
        The leaves below it lie in this range of leaf numbers; equal where there are none.
    children : tuple of Node
        Fields of a struct; the element of a list; key and value of a map.
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
    form: Form | None = None

    @property
    def name(self) -> str:
        return str(self.field.name)

    @property
    def nullable(self) -> bool:
        return bool(self.field.nullable)

    @property
    def repeats(self) -> bool:
        """Whether it holds elements: one where the definition level is `def_level` + 1 or more."""
        return self.kind in ("list", "map")

    def leaves(self) -> Iterator[Leaf]:
        """The leaves below, in file order."""
        if self.leaf is not None:
            yield self.leaf
        for child in self.children:
            yield from child.leaves()


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
        """L_LIST or L_MAP, or 0: an annotation of any other kind leaves a group what it is."""
        if self.is_leaf:
            return 0
        logical = self.element.logical
        if logical not in (ABSENT, 0):  # the newer of the two has the say
            return logical if logical in (L_LIST, L_MAP) else 0
        if self.element.converted_type == _CONVERTED_LIST:
            return L_LIST
        # MAP_KEY_VALUE belongs inside a map; some writers put it in the place of MAP
        maps = (_CONVERTED_MAP, _CONVERTED_MAP_KEY_VALUE)
        return L_MAP if self.element.converted_type in maps else 0


def _parts(schema: Schema, index: int) -> _Part:
    """The elements of a top-level field, as a tree. The counts of children are the file's word only."""
    top = schema.field(index)
    where = f"{schema._source}: column {top.name!r}"
    name_offset = SchemaElement._fields.index("name_offset")  # no two elements have one in common
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
        How leaves come out.
    stored : pyarrow.Field or None
        The field in the Arrow schema that the writer left, if there is one.

    Raises
    ------
    CorruptFileError
        If a group says LIST or MAP and is neither by any rule; the message names it.
    LimitError
        If groups lie deeper than MAX_DEPTH.
    """
    return _Builder(schema, options).node(_parts(schema, index), 0, 0, stored)


def _like_list(like: pa.DataType | None, item: pa.Field) -> pa.DataType:
    """A list of `item`, in the layout of `like` where that is one of a list."""
    t = pa.types
    if like is not None:
        if t.is_large_list(like):
            return pa.large_list(item)
        if t.is_fixed_size_list(like):
            return pa.list_(item, like.list_size)
        if t.is_list_view(like):
            return pa.list_view(item)
        if t.is_large_list_view(like):
            return pa.large_list_view(item)
    return pa.list_(item)


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(
        t.is_list(kind)
        or t.is_large_list(kind)
        or t.is_fixed_size_list(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
    )


class _Builder:
    """Parts to nodes. Levels are handed down: those that hold before the part adds its own.

    `stored` is the writer's Arrow field for the same place; it is followed only as long as its types have
    the shape of the file's, and says nothing about names or nullability, which are the file's own.
    """

    def __init__(self, schema: Schema, options: Options) -> None:
        self._schema = schema
        self._options = options

    def node(self, part: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """Any part in a place where its own repetition counts."""
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
        # Neither in a LIST nor in a MAP: "a required list of required elements"
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
        form = leaf_form(leaf, self._options, None if stored is None else stored.type)
        # pyarrow makes no field of type null that is not nullable, though its C++ does
        made = self._field(part, form.type, part.optional or form.is_null, stored, own_id)
        levels = (part.optional, d + part.optional, r)
        return Node("leaf", made, *levels, part.first_leaf, part.stop_leaf, (), leaf, form)

    def _struct(self, part: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """A group, or one that is an element: its own repetition adds a level only if it is OPTIONAL."""
        d += part.optional
        below: Sequence[pa.Field | None] = [None] * len(part.children)
        if stored is not None and pa.types.is_struct(stored.type):
            if stored.type.num_fields == len(part.children):
                below = list(stored.type)
        children = tuple(
            self.node(child, d, r, known) for child, known in zip(part.children, below, strict=True)
        )
        kind = pa.struct([child.field for child in children])
        made = self._field(part, kind, part.optional, stored)
        return Node("struct", made, part.optional, d, r, part.first_leaf, part.stop_leaf, children)

    def _listed(self, part: _Part, item: Node, d: int, r: int, stored: pa.Field | None) -> Node:
        kind = _like_list(None if stored is None else stored.type, item.field)
        made = self._field(part, kind, part.optional, stored)
        return Node("list", made, part.optional, d, r, part.first_leaf, part.stop_leaf, (item,))

    # -- annotated groups ------------------------------------------------------------------------

    def _list(self, part: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """A LIST; where it is repeated itself, it is the element of a two-level list around it."""
        d += part.optional
        inner = self._only_repeated(part, "LIST")
        item = self._element(part, inner, d + 1, r + 1, self._stored_item(stored))
        return self._listed(part, item, d, r, stored)

    def _element(self, outer: _Part, inner: _Part, d: int, r: int, stored: pa.Field | None) -> Node:
        """What the repeated part of a LIST stands for: an element, or the scaffolding around one."""
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
        if key.nullable:  # Hive wrote such keys; a null among them is an error when one comes
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
        return stored.type.field(0) if stored is not None and _is_list(stored.type) else None

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
            kept = stored.metadata or {}
            metadata = {k: v for k, v in kept.items() if not k.startswith(b"PSEEK:extension:")}
        if own_id and part.element.field_id >= 0:
            metadata[b"PARQUET:field_id"] = str(part.element.field_id).encode()
        return pa.field(part.name, kind, nullable=nullable, metadata=metadata or None)

    def _where(self, part: _Part) -> str:
        return f"{self._schema._source}: column {'.'.join(part.path)!r}"

    def _refuse(self, part: _Part, why: str) -> CorruptFileError:
        return CorruptFileError(f"{self._where(part)}: {why}")


# ---- ladders --------------------------------------------------------------------------------------


def rungs(root: Node, leaf: int) -> tuple[Rung, ...]:
    """The ladder from a top-level field down to one of its leaves.

    A rung is (kind, definition level, repetition level). OPTIONAL: a node that may be null, and is there
    where the definition level is at least this. REPEATED: one more element is there where the definition
    level is at least this; it is a further one of the same list where the repetition level is this one.
    """
    made: list[Rung] = []
    node = root
    while True:
        if node.optional:
            made.append((OPTIONAL, node.def_level, node.rep_level))
        if node.repeats:
            made.append((REPEATED, node.def_level + 1, node.rep_level + 1))
        if node.kind == "leaf" and node.first_leaf == leaf:
            return tuple(made)
        at = bisect_right(node.children, leaf, key=lambda child: child.stop_leaf)
        if at == len(node.children):
            raise KeyError(leaf)
        node = node.children[at]


# ---- projection -----------------------------------------------------------------------------------


def select(root: Node, path: str) -> frozenset[int]:
    """Numbers of the leaves below a dotted path, which starts with the name of the field; empty if none.

    The path is one of the Parquet schema, with every repeated group ("l.list.element.x"). Where there is
    no such one, it is read as Arrow's, in which the element of a list may be left out ("l.element.x", "l.x").
    """
    found = frozenset(leaf.index for leaf in root.leaves() if _begins(leaf, path))
    if found:
        return found
    reached: set[tuple[int, int]] = set()  # by node and rest: names that recur have many ways
    picked: set[int] = set()

    def walk(node: Node, rest: str) -> None:
        """`rest` is empty, or begins with the dot after the node's name."""
        if (id(node), len(rest)) in reached:
            return
        reached.add((id(node), len(rest)))
        if not rest:
            picked.update(leaf.index for leaf in node.leaves())
            return
        for child in node.children:
            if f"{rest}.".startswith(f".{child.name}."):
                walk(child, rest[len(child.name) + 1 :])
        if node.kind == "list":
            walk(node.children[0], rest)

    if f"{path}.".startswith(f"{root.name}."):
        walk(root, path[len(root.name) :])
    return frozenset(picked)


def _begins(leaf: Leaf, path: str) -> bool:
    """Whether the path is that of the leaf or of a group around it; names may hold dots themselves."""
    return leaf.name.startswith(path) and len(path) + 1 in accumulate(
        len(part) + 1 for part in leaf.path
    )


def project(root: Node, wanted: Sequence[str]) -> Node | None:
    """The field with the leaves below the wanted paths only, in the order of the file.

    None if one of the paths is of nothing in this field; `select` tells which. Groups without leaves are left out,
    as nothing in the file says which of their rows are null. A map whose keys or values are not wanted is
    a list of structs, as pyarrow has it.
    """
    picked: set[int] = set()
    for path in wanted:
        found = select(root, path)
        if not found:
            return None
        picked |= found
    return _keep(root, picked)


def _keep(node: Node, picked: set[int]) -> Node | None:
    if node.leaf is not None:
        return node if node.leaf.index in picked else None
    kept = [child for child in (_keep(c, picked) for c in node.children) if child is not None]
    if not kept:
        return None
    if len(kept) == len(node.children) and all(
        a is b for a, b in zip(kept, node.children, strict=True)
    ):
        return node
    old, made_kind = node.field.type, node.kind
    first, stop = kept[0].first_leaf, kept[-1].stop_leaf
    if node.kind == "struct":
        kind = pa.struct([child.field for child in kept])
    elif node.kind == "list":
        kind = _like_list(old, kept[0].field)
    elif len(kept) == 2:
        same_key = kept[0] is node.children[0]
        kind = pa.map_(kept[0].field, kept[1].field, keys_sorted=same_key and bool(old.keys_sorted))
    else:
        entry = pa.field(node.name, pa.struct([kept[0].field]), nullable=False)
        levels = node.def_level + 1, node.rep_level + 1
        kept = [Node("struct", entry, False, *levels, first, stop, tuple(kept))]
        kind, made_kind = pa.list_(entry), "list"
    return replace(
        node,
        kind=made_kind,
        field=node.field.with_type(kind),
        first_leaf=first,
        stop_leaf=stop,
        children=tuple(kept),
    )


# ---- assembly -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a decoder gives for one leaf.

    Attributes
    ----------
    rows : int
        Rows of the top-level field.
    array : pyarrow.Array
        Values in the storage type of the leaf's form, a slot for each slot of the innermost segment, null
        where the definition level is below the leaf's greatest.
    ladder : list
        An entry for each rung but the leaf's own OPTIONAL one. OPTIONAL: (slots, null count, validity
        bitmap or None if nothing is null). REPEATED: (slots, offsets), slots + 1 of int32, the first 0.

    A segment is what lies between two repeated rungs; all of its rungs have the same slots. A null struct
    keeps its slot in everything below it, a null or empty list has none there.
    """

    rows: int
    array: pa.Array
    ladder: Sequence[tuple[Any, ...]]


def assemble(node: Node, decoded: Mapping[int, Decoded], where: str = "") -> pa.Array:
    """The array of a top-level field, of exactly its type.

    Parameters
    ----------
    node : Node
        The field; or what `project` left of it.
    decoded : mapping
        What was decoded, by leaf number, of every leaf below the node.
    where : str
        Where the leaves came from, for messages.

    Raises
    ------
    CorruptFileError
        If leaves disagree about the lists and structs that they share, if a map has a key that is null,
        or a fixed-size list another size.
    """
    return _Assembler(decoded, f"{where}: " if where else "").array(
        node, 0, decoded[_first(node).index].rows, None
    )


def _first(node: Node) -> Leaf:
    if node.first_leaf == node.stop_leaf:
        raise UnsupportedError(f"column {node.name!r} has no leaves, so its nulls are not known")
    while node.leaf is None:
        node = next(c for c in node.children if c.first_leaf < c.stop_leaf)
    return node.leaf


class _Assembler:
    def __init__(self, decoded: Mapping[int, Decoded], where: str) -> None:
        self._decoded = decoded
        self._where = where

    def array(self, node: Node, at: int, slots: int, present: pa.Buffer | None) -> pa.Array:
        """The array of a node whose first rung is `at`.

        `present` is the validity of the nearest node above that may be null and lies in the same segment.
        """
        first = _first(node)
        lead = self._decoded[first.index]
        if node.leaf is not None:
            return self._finished(node, lead.array, slots)
        nulls, validity = 0, None
        if node.optional:
            count, nulls, bitmap = lead.ladder[at]
            self._check(first, count, slots)
            validity = None if bitmap is None or not nulls else pa.py_buffer(bitmap)
            present = present if validity is None else validity
            at += 1
        kind = node.field.type
        if node.kind == "struct":
            self._agree(node, at)
            children = [self.array(child, at, slots, present) for child in node.children]
            return pa.Array.from_buffers(kind, slots, [validity], nulls, children=children)
        count, buffer = lead.ladder[at]
        self._check(first, count, slots)
        offsets = np.frombuffer(buffer, np.int32, slots + 1)
        self._agree(node, at + 1)
        inside = [self.array(child, at + 1, int(offsets[slots]), None) for child in node.children]
        if node.kind == "map":
            key, value = inside
            if key.null_count:
                raise CorruptFileError(
                    f"{self._where}column {_first(node.children[0]).name!r}: the key of a map is null"
                )
            entries = pa.struct([kind.key_field, kind.item_field])
            items = pa.Array.from_buffers(entries, len(key), [None], 0, children=[key, value])
        else:
            (items,) = inside
        if pa.types.is_fixed_size_list(kind):
            items = self._filled(first, kind.list_size, items, offsets, present)
            return pa.Array.from_buffers(kind, slots, [validity], nulls, children=[items])
        wide = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
        buffers = [validity, pa.py_buffer(offsets.astype(np.int64) if wide else buffer)]
        if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            buffers.append(pa.py_buffer(np.diff(offsets).astype(np.int64 if wide else np.int32)))
        return pa.Array.from_buffers(kind, slots, buffers, nulls, children=[items])

    def _finished(self, node: Node, array: pa.Array, slots: int) -> pa.Array:
        leaf, form = node.leaf, node.form
        assert leaf is not None and form is not None
        self._check(leaf, len(array), slots)
        if form.is_null:
            return pa.nulls(slots)
        made = form.finish(array)
        return made if made.type == form.type else made.cast(form.type)

    def _check(self, leaf: Leaf, count: int, slots: int) -> None:
        if count != slots:
            raise CorruptFileError(
                f"{self._where}column {leaf.name!r} has {count} slots where {slots} are due"
            )

    def _agree(self, node: Node, stop: int) -> None:
        """Check that the children of a node say the same of it and of all above it.

        Every child is compared by its first leaf with that of the first child; further leaves of a child
        are compared with its first when it is assembled.
        """
        leaf = _first(node)
        lead = self._decoded[leaf.index]
        for child in node.children:
            other = _first(child)
            if other is leaf:
                continue
            said = self._decoded[other.index]
            if lead.rows == said.rows and all(
                _same_rung(a, b)
                for a, b in zip(lead.ladder[:stop], said.ladder[:stop], strict=True)
            ):
                continue
            raise CorruptFileError(
                f"{self._where}columns {leaf.name!r} and {other.name!r} disagree about the lists "
                f"or nulls of {node.name!r}, which holds both"
            )

    def _filled(
        self, leaf: Leaf, size: int, items: pa.Array, offsets: Any, present: pa.Buffer | None
    ) -> pa.Array:
        """Elements of a fixed-size list: Arrow keeps a list's worth of them where it is null, Parquet none."""
        sizes = np.diff(offsets)
        wrong = sizes != size
        if not wrong.any():
            return items
        if present is None:
            absent = np.zeros(len(sizes), bool)
        else:
            bits = np.frombuffer(present, np.uint8, (len(sizes) + 7) // 8)
            absent = np.unpackbits(bits, count=len(sizes), bitorder="little") == 0
        wrong &= ~absent
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise CorruptFileError(
                f"{self._where}column {leaf.name!r}: list {row} has {sizes[row]} elements, "
                f"its type says {size}"
            )
        if len(sizes) * size > MAX_FILL:
            raise LimitError(
                f"{self._where}column {leaf.name!r}: {len(sizes)} lists of {size} elements, some of them null, "
                f"are above the limit of {MAX_FILL} elements; read fewer rows at a time"
            )
        places = offsets[:-1, np.newaxis] + np.arange(size, dtype=np.int64)
        mask = np.repeat(absent, size)
        return items.take(pa.array(places.ravel(), mask=mask))


def _same_rung(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if a[0] != b[0] or len(a) != len(b):
        return False
    if len(a) == 2:
        size = 4 * (a[0] + 1)
        return _bytes(a[1], size).equals(_bytes(b[1], size))
    if a[1] != b[1] or not a[1]:
        return bool(a[1] == b[1])
    whole, rest = divmod(a[0], 8)
    if not _bytes(a[2], whole).equals(_bytes(b[2], whole)):
        return False
    if not rest:
        return True
    last = _bytes(a[2], whole + 1)[whole] ^ _bytes(b[2], whole + 1)[whole]
    return bool(last & ((1 << rest) - 1) == 0)


def _bytes(buffer: Any, size: int) -> pa.Buffer:
    return pa.py_buffer(buffer).slice(0, size)
