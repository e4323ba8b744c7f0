"""Names of fields that a file has otherwise than its dataset, at any depth: in another case, or by ids (field_ids.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.format.nesting import Node

_LISTS: tuple[tuple[type[pa.DataType], Callable[[pa.Field, pa.DataType], pa.DataType]], ...] = (
    (pa.ListType, lambda field, _: pa.list_(field)),
    (pa.LargeListType, lambda field, _: pa.large_list(field)),
    (pa.FixedSizeListType, lambda field, kind: pa.list_(field, kind.list_size)),
    (pa.ListViewType, lambda field, _: pa.list_view(field)),
    (pa.LargeListViewType, lambda field, _: pa.large_list_view(field)),
)


def respelled(own: Sequence[str], spelling: Sequence[str]) -> list[str]:
    """The names of a file as the dataset spells them; its own where two of them would be one."""
    other = set(own).difference(spelling)
    if not other:
        return list(own)
    wanted = {name.lower(): name for name in spelling if name not in own}
    names = [wanted.get(name.lower(), name) if name in other else name for name in own]
    counts = Counter(names)
    return [name if counts[name] == 1 else mine for name, mine in zip(names, own, strict=True)]


def undecided(own: Sequence[str], spelling: Sequence[str]) -> dict[str, list[str]]:
    """Names of the dataset -> those of a file that differ from it in case alone, where there are several and none is the same."""
    other = set(own).difference(spelling)
    if len(other) < 2:
        return {}
    fits: dict[str, list[str]] = {}
    for name in own:
        fits.setdefault(name.lower(), []).append(name)
    found = {name: fits.get(name.lower(), []) for name in spelling if name not in own}
    return {name: several for name, several in found.items() if len(several) > 1}


def unified(kinds: Sequence[pa.DataType], fold: bool = True) -> pa.DataType:
    """A type with the fields of all, at any depth. Fields that differ in case alone are one, spelled as the first.

    Where fields of the first type differ in case alone, all of that depth keep their names; also without `fold`.
    """
    t = pa.types
    first = next((kind for kind in kinds if not t.is_null(kind)), kinds[0])
    if t.is_struct(first):
        names = [field.name for field in first]
        folds = fold and len({name.lower() for name in names}) == len(names)
        same: dict[str, list[pa.Field]] = {}
        for field in (field for kind in kinds if t.is_struct(kind) for field in kind):
            same.setdefault(field.name.lower() if folds else field.name, []).append(field)
        return pa.struct(
            [fs[0].with_type(unified([f.type for f in fs], fold)) for fs in same.values()]
        )
    if t.is_map(first):
        maps = [kind for kind in kinds if t.is_map(kind)]
        key, item = [k.key_type for k in maps], [k.item_type for k in maps]
        return pa.map_(unified(key, fold), unified(item, fold))
    lists = [kind for kind in kinds if any(isinstance(kind, one) for one, _ in _LISTS)]
    if lists and lists[0] is first:
        return pa.list_(unified([kind.value_type for kind in lists], fold))
    return first


def ambiguous(where: str, several: Sequence[str]) -> UnsupportedError:
    """The error of a name of the dataset that may be one of several names of a file."""
    return UnsupportedError(
        f"{where} may be {' or '.join(map(repr, several))}, which differ in case alone: let case matter, and name one as the "
        "file does"
    )


class FieldNames(Protocol):
    """How the dataset calls the fields inside a field of a file."""

    def names(self, node: Node) -> list[str]:
        """The names of the fields of a struct."""
        ...

    def children(self, node: Node) -> Sequence[FieldNames | None]:
        """The same of each node below one; None where the dataset has nothing there."""
        ...

    def undecided(self, node: Node) -> dict[str, list[str]]:
        """Names that may be one of several fields of a struct, as the file has them."""
        ...

    def missing(self, name: str) -> str:
        """The name to look for where no field of a struct is called so."""
        ...


class ByCase:
    """Names that differ in case alone. `kind`: the type of the field in the dataset."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def names(self, node: Node) -> list[str]:
        """See FieldNames."""
        own, kind = [child.name for child in node.children], self._kind
        if not pa.types.is_struct(kind):
            return own
        spelling = [field.name for field in kind]
        folded = {name.lower() for name in spelling}
        return own if len(folded) < len(spelling) else respelled(own, spelling)

    def children(self, node: Node) -> Sequence[ByCase | None]:
        """See FieldNames."""
        kind = self._kind
        if node.kind == "struct" and pa.types.is_struct(kind):
            places = map(kind.get_field_index, self.names(node))
            return [ByCase(kind.field(at).type) if at >= 0 else None for at in places]
        if node.kind == "map" and pa.types.is_map(kind):
            return [ByCase(kind.key_type), ByCase(kind.item_type)]
        if node.kind == "list" and any(isinstance(kind, one) for one, _ in _LISTS):
            return [ByCase(kind.value_type)]
        return [None] * len(node.children)

    def undecided(self, node: Node) -> dict[str, list[str]]:
        """See FieldNames."""
        if node.kind != "struct" or not pa.types.is_struct(self._kind):
            return {}
        spelling = [field.name for field in self._kind]
        if len({name.lower() for name in spelling}) < len(spelling):
            return {}
        return undecided([child.name for child in node.children], spelling)

    def missing(self, name: str) -> str:
        """See FieldNames."""
        return name


def undecided_fields(node: Node, spelled: FieldNames) -> Iterator[tuple[str, list[str]]]:
    """As `undecided`, of the fields of structs at any depth of a field of a file."""
    yield from spelled.undecided(node).items()
    for child, below in zip(node.children, spelled.children(node), strict=True):
        if below is not None:
            yield from undecided_fields(child, below)


def respelled_node(node: Node, spelled: FieldNames) -> Node:
    """A field of a file with the fields of its structs called as in the dataset; `node` itself if they are.

    The dataset may have other fields. Where one may be several of the file, these keep their names.
    """
    below = spelled.children(node)
    children = tuple(
        [respelled_node(c, b) if b else c for c, b in zip(node.children, below, strict=True)]
    )
    if node.kind == "struct":
        children = tuple(
            [
                c if c.name == name else replace(c, field=c.field.with_name(name))
                for c, name in zip(children, spelled.names(node), strict=True)
            ]
        )
    if all(new is old for new, old in zip(children, node.children, strict=True)):
        return node
    made = _type(node.field.type, [child.field for child in children])
    return replace(node, children=children, field=node.field.with_type(made))


def dataset_path(node: Node, respelled: Node, path: Sequence[str]) -> tuple[str, ...]:
    """A path below a field of a file as the dataset has it. `respelled`: the field with the names of the dataset."""
    made: list[str] = []
    for name in path:
        places = [at for at, child in enumerate(node.children) if child.name == name]
        if not places:
            return (*made, *path[len(made) :])
        node, respelled = node.children[places[0]], respelled.children[places[0]]
        made.append(respelled.name)
    return tuple(made)


def own_path(node: Node, spelled: FieldNames, path: Sequence[str], where: str) -> tuple[str, ...]:
    """A path below a field, as the dataset has it, as the file has it. `where`: what errors call the column."""
    if not path or not node.children:
        return tuple(path)
    below = spelled.children(node)
    if node.kind != "struct":  # a path goes through elements with or without naming them
        for child, one in zip(node.children, below, strict=True):
            if one is not None and child.name == path[0]:
                return (path[0], *own_path(child, one, path[1:], where))
        last = below[-1]
        return tuple(path) if last is None else own_path(node.children[-1], last, path, where)
    if several := spelled.undecided(node).get(path[0]):
        raise ambiguous(f"{where}, field {path[0]!r}", several)
    for child, one, name in zip(node.children, below, spelled.names(node), strict=True):
        if name == path[0]:
            rest = path[1:] if one is None else own_path(child, one, path[1:], where)
            return (child.name, *rest)
    return (spelled.missing(path[0]), *path[1:])


def has_structs(kind: pa.DataType) -> bool:
    """Whether there are structs in a type."""
    if pa.types.is_struct(kind):
        return True
    if pa.types.is_map(kind):  # its entries are one, too
        return has_structs(kind.key_type) or has_structs(kind.item_type)
    return any(has_structs(kind.field(i).type) for i in range(kind.num_fields))


def _type(kind: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """A nested type with other fields."""
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        return pa.map_(*fields, keys_sorted=kind.keys_sorted)
    return next(make(fields[0], kind) for one, make in _LISTS if isinstance(kind, one))
