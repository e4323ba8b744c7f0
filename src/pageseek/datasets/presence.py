"""What is read of a nested field of a file that lacks the fields which are asked for inside: as little as tells where its structs are null."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pageseek.base.records import NamedTuple
from pageseek.datasets.spelling import dataset_path
from pageseek.format.nesting import Node

Path = tuple[str, ...]


class Presence(NamedTuple):
    """What tells the nulls of a struct of a file.

    Attributes
    ----------
    struct : tuple of str
        The path of the struct; or of a list or map, through which the path of the absent field leads.
    read : tuple of str
        The path of what is read: a leaf inside of the struct; or the list or map whole.
    """

    struct: Path
    read: Path


def presence(root: Node, absent: Sequence[str]) -> Presence:
    """For a path that a field lacks: what tells the nulls of the innermost struct on it. `absent`: the path below the field."""
    node, struct = root, [root.name]
    for name in absent:
        child = next((one for one in node.children if one.name == name), None)
        if node.kind != "struct" or child is None or child.kind == "leaf":
            break
        node = child
        struct.append(node.name)
    read = list(struct)
    while node.kind == "struct" and node.children:
        node = node.children[0]
        read.append(node.name)
    return Presence(tuple(struct), tuple(read))


def needed(found: Iterable[Presence], there: Iterable[Path]) -> list[Presence]:
    """Those whose structs have no nulls yet by what else is read. `there`: the paths of fields that are read anyway."""
    kept: list[Presence] = []
    paths = list(there)
    for one in sorted(set(found), key=lambda one: -len(one.struct)):
        if not any(path[: len(one.struct)] == one.struct for path in paths):
            kept.append(one)
            paths.append(one.read)
    return kept


def in_dataset(one: Presence, node: Node, respelled: Node) -> Presence:
    """The same by the names of the dataset. `node`: the field as the file has it, with what is read; `respelled`: as the dataset."""
    read = (respelled.name, *dataset_path(node, respelled, one.read[1:]))
    return Presence(read[: len(one.struct)], read)


def without(kind: pa.DataType, one: Presence) -> pa.DataType:
    """The type of a field without what is read for a presence alone."""
    return _without(kind, one.struct[1:], one.read[len(one.struct) :][:1])


def _without(kind: pa.DataType, struct: Path, read: Path) -> pa.DataType:
    if not pa.types.is_struct(kind):
        return _emptied(kind)
    fields = []
    for field in kind:
        if struct and field.name == struct[0]:
            fields.append(field.with_type(_without(field.type, struct[1:], read)))
        elif struct or field.name not in read:
            fields.append(field)
    return pa.struct(fields)


def _emptied(kind: pa.DataType) -> pa.DataType:
    """A type without the fields of its structs."""
    t = pa.types
    if t.is_struct(kind):
        return pa.struct([])
    if t.is_list(kind) or t.is_large_list(kind):
        item = kind.value_field.with_type(_emptied(kind.value_type))
        return pa.list_(item) if t.is_list(kind) else pa.large_list(item)
    return kind
