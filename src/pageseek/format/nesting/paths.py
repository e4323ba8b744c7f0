"""Paths through the tree of a nested field: the nesting levels of each leaf, and the leaves below a path.

Sources: Dremel's levels, as parquet.thrift counts them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeAlias

import pyarrow as pa

from pageseek.format.nesting.tree import Node, like_list
from pageseek.format.schema import Leaf

OPTIONAL, REPEATED = 0, 1  # kinds of nesting levels
NestingLevel: TypeAlias = tuple[int, int, int]


def nesting_levels_of(root: Node, leaf: int) -> tuple[NestingLevel, ...]:
    """The nesting levels from a top-level field down to one of its leaves.

    A nesting level is (kind, definition level, repetition level). OPTIONAL: a node that may be null; it is present if the
    definition level is at least this. REPEATED: an element is present if the definition level is at least this; it
    belongs to the list before if the repetition level is this one.
    """
    made: list[NestingLevel] = []
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


def select(root: Node, path: str) -> frozenset[int]:
    """The numbers of the leaves below a dotted path, which starts with the name of the field.

    The path is one of the Parquet schema, with every repeated group ("l.list.element.x"). If that has no such path, it is
    one of Arrow, in which the element of a list may be left out ("l.element.x", "l.x").
    """
    found = frozenset(leaf.index for leaf in root.leaves() if _begins(leaf, path))
    if found:
        return found
    reached: set[tuple[int, int]] = set()  # by node and rest: names that recur make many paths
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
    """Whether a path is that of the leaf or of a group around it; names may have dots of their own."""
    return leaf.name.startswith(path) and len(path) + 1 in accumulate(
        len(part) + 1 for part in leaf.path
    )


def project(root: Node, wanted: Sequence[str]) -> Node | None:
    """The field with only the leaves below the wanted paths, in the order of the file.

    None if one of the paths leads to nothing; `select` tells which. Groups without leaves are left out, as the file does not
    tell which of their rows are null. A map without its keys or values is a list of structs, as pyarrow has it.
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
        kind = like_list(old, kept[0].field)
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
