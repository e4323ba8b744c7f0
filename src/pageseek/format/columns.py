"""Columns by their names: those of the output of a scan, and the leaves that its filter tests.

A name is that of a top-level field, or else a dotted path into one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

import pyarrow as pa

from pageseek.base.errors import NoColumnError, PageseekError, PredicateError, UnsupportedError
from pageseek.base.records import NamedTuple, dataclass
from pageseek.base.suggest import Offer
from pageseek.format.codecs import decompressor
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.nesting import REPEATED, NestingLevel, Node, nesting_levels_of, project, select
from pageseek.format.schema import Leaf
from pageseek.format.types import BOOLEAN, K_BOOL, LeafType, Options

MAX_PRESENCE_LEAVES = 16  # leaves of a group whose sizes are compared; it may have thousands


class Part(NamedTuple):
    """A leaf of a column, and how it is decoded; a flat leaf has no `nesting_levels`."""

    leaf: Leaf
    leaf_type: LeafType
    nesting_levels: tuple[NestingLevel, ...] = ()


@dataclass(slots=True, unsafe_hash=True)  # as Leaf
class Column:
    """An output column: a flat leaf, or the tree of a nested field over several. It is never changed."""

    name: str
    parts: tuple[Part, ...]
    node: Node | None = None

    @property
    def leaf(self) -> Leaf:
        """The first of its leaves."""
        return self.parts[0].leaf


# the presence of a group, by the levels of a leaf below it: a boolean that is null if the group is
PRESENCE = LeafType((BOOLEAN, 0, K_BOOL, 0, 0, 0, 0), pa.bool_(), pa.bool_())


def output(
    file: FileMetadata, names: tuple[str, ...] | None, options: Options
) -> tuple[tuple[Column, ...], pa.Schema]:
    """The columns of these names (None: all), and their Arrow schema; kept for the next scan."""
    key = names, options
    found = file.outputs.get(key)
    if found is None:
        columns, schema = _shared_output(file, names, options)
        metadata = file.schema_metadata
        found = columns, schema.with_metadata(metadata) if metadata else schema
        if len(file.outputs) >= 16:
            file.outputs.clear()
        file.outputs[key] = found
    return found


def _shared_output(
    file: FileMetadata, names: tuple[str, ...] | None, options: Options
) -> tuple[tuple[Column, ...], pa.Schema]:
    """What of the output is the same in files with the same columns: all but the metadata of the schema."""
    outputs = file.schema_tree.outputs
    key = names, options
    found = outputs.get(key)
    if found is None:
        columns, fields = [], []
        for index, paths in _wanted(file, names, options):
            column, field = _column(file, index, paths, options)
            columns.append(column)
            fields.append(field)
        found = tuple(columns), pa.schema(fields)
        if len(outputs) >= 16:
            outputs.clear()
        outputs[key] = found
    return found


def _wanted(
    file: FileMetadata, names: tuple[str, ...] | None, options: Options
) -> list[tuple[int, list[str]]]:
    """For each column its top-level field, and the paths into it; without paths all of it. In the order of first mention."""
    tree = file.schema_tree
    if names is None:
        return [(i, []) for i in range(tree.num_fields)]
    made: list[tuple[int, list[str]]] = []
    into: dict[int, list[str]] = {}  # fields that are named by paths
    for name in names:
        index = tree.path_index(name) if "." in name else None
        if index is None:
            made.append((tree.field_index(name), []))
            continue
        if not select(file.node(index, options), name):
            raise NoColumnError(
                f"{file.name}: no column {name!r}: {tree.field(index).name!r} has nothing at that path",
                tree.offer(name),
            )
        if index not in into:
            into[index] = []
            made.append((index, into[index]))
        into[index].append(name)
    return made


def _column(
    file: FileMetadata, index: int, paths: Sequence[str], options: Options
) -> tuple[Column, pa.Field]:
    tree = file.schema_tree
    leaf = tree.flat_leaf(index)
    if leaf is not None:
        leaf_type, field = tree.flat_column(leaf, options)
        return Column(leaf.path[0], (Part(leaf, leaf_type),)), field
    node: Node | None = file.node(index, options)
    assert node is not None
    if paths:
        node = project(node, paths)
        assert node is not None
    if node.first_leaf == node.stop_leaf:
        raise UnsupportedError(
            f"{file.name}: column {node.name!r} has no leaves, so nothing tells its nulls; "
            "name the columns to read without it: scan(..., columns=[...])"
        )
    parts = tuple(_part(node, at) for at in node.leaf_nodes())
    return Column(node.name, parts, node), node.field


def _part(root: Node, at: Node) -> Part:
    assert at.leaf is not None and at.leaf_type is not None
    nesting_levels = nesting_levels_of(root, at.leaf.index)
    return Part(at.leaf, at.leaf_type, nesting_levels[:-1] if at.optional else nesting_levels)


def _below(file: FileMetadata, root: Node, path: str | tuple[str, ...]) -> Node:
    """The node at a path below a field, through structs. A path is names, or dotted; names may have dots of their own."""
    if path == ():
        return root
    found: list[tuple[str, Node]] = []
    ways: list[tuple[str, Node, str | tuple[str, ...]]] = [(root.name, root, path)]
    far = ways[0]  # the way with the shortest rest
    while ways:
        shown, node, rest = ways.pop()
        if len(rest) < len(far[2]):
            far = shown, node, rest
        for child in node.children if node.kind == "struct" else ():
            below = f"{shown}.{child.name}"
            if child.name == rest or (child.name,) == rest:
                found.append((below, child))
            elif isinstance(rest, tuple):
                if child.name == rest[0]:
                    ways.append((below, child, rest[1:]))
            elif rest.startswith(f"{child.name}."):
                ways.append((below, child, rest[len(child.name) + 1 :]))
    if len(found) == 1:
        return found[0][1]
    if found:
        raise PredicateError(
            f"{file.name}: {found[0][0]!r} are {len(found)} fields; name the one that is meant part by part: "
            'col("a", "b.c")'
        )
    shown, node, rest = far
    if node.kind not in ("struct", "leaf"):
        whole = ".".join([shown, *([rest] if isinstance(rest, str) else rest)])
        raise UnsupportedError(
            f"{file.name}: {shown!r} is a {node.kind}; write col({whole!r}).any() for a condition on "
            "some of its elements"
        )
    said = f"{file.name}: {shown!r} has no field {rest if isinstance(rest, str) else rest[0]!r}"
    if node.kind != "struct":
        raise PredicateError(said)
    wanted = rest if isinstance(rest, str) else rest[0]
    raise NoColumnError(said, Offer(wanted, lambda: [child.name for child in node.children]))


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a filter, resolved in a file."""

    file: FileMetadata
    options: Options

    def __call__(self, path: tuple[str, ...]) -> tuple[Leaf, LeafType]:
        """The leaf that is tested for a path."""
        return tested(self.file, path, self.options)

    def element(self, path: tuple[str, ...]) -> tuple[Leaf, LeafType]:
        """The only leaf at a path through structs and lists; for a list, that of its elements."""
        file, tree, name = self.file, self.file.schema_tree, ".".join(path)
        index = tree.path_index(path[0]) if len(path) == 1 else None
        if index is None:
            index = tree.field_index(path[0])
        root = file.node(index, self.options)
        wanted = select(root, name)
        found = [_part(root, node) for node in root.leaf_nodes() if node.first_leaf in wanted]
        if not found:
            raise NoColumnError(f"{file.name}: {root.name!r} has nothing at the path {name!r}")
        if len(found) == 1:
            return found[0].leaf, found[0].leaf_type
        shown = ", ".join([part.leaf.name for part in found[:8]])
        raise PredicateError(
            f"{file.name}: the elements of {name!r} have {len(found)} leaves; name one: {shown}"
        )

    def whole(
        self, paths: list[tuple[str, ...]] | None
    ) -> tuple[tuple[Column, ...], list[tuple[Leaf, LeafType]], pa.Schema]:
        """The columns of these paths (None: all), as far as they are needed; their leaves; their Arrow schema."""
        names: tuple[str, ...] | None = None
        if paths is not None:
            names = tuple(dict.fromkeys(self._column(path) for path in paths))
        columns, schema = output(self.file, names, self.options)
        leaves = [(part.leaf, part.leaf_type) for column in columns for part in column.parts]
        return columns, leaves, schema

    def _column(self, path: tuple[str, ...]) -> str:
        """The dotted name of a path, if it names the same; else the name of the top-level field."""
        name, tree = ".".join(path), self.file.schema_tree
        index = tree.path_index(name) if len(path) > 1 else None
        plain = not any("." in part for part in path)
        return name if plain and index is not None else path[0]


def tested(file: FileMetadata, path: tuple[str, ...], options: Options) -> tuple[Leaf, LeafType]:
    """The leaf at a path of a filter, through structs. Of a group, a leaf that tells whether it is null."""
    tree = file.schema_tree
    index = tree.path_index(path[0]) if len(path) == 1 and "." in path[0] else None
    dotted = index is not None
    if index is None:
        index = tree.field_index(path[0])
        leaf = tree.flat_leaf(index) if len(path) == 1 else None
        if leaf is not None:
            return leaf, tree.leaf_type(leaf, options)
    root = file.node(index, options)
    node = _below(file, root, path[0][len(root.name) + 1 :] if dotted else path[1:])
    if node.leaf is not None:
        assert node.leaf_type is not None
        return node.leaf, node.leaf_type
    if node.first_leaf == node.stop_leaf:
        raise UnsupportedError(
            f"{file.name}: {'.'.join(path)!r} has no leaves, so nothing tells its nulls"
        )
    first = next(node.leaves())
    nesting_level = -1  # the last that may be null, down to the group itself
    for i, (kind, level, _) in enumerate(nesting_levels_of(root, first.index)):
        if level > node.def_level or kind == REPEATED:
            break
        nesting_level = i
    siblings = node.stop_leaf - node.first_leaf
    return replace(first, nesting_level=nesting_level, group=True, siblings=siblings), PRESENCE


def presence_leaf(file: FileMetadata, row_group: int, leaf: Leaf, payload: Collection[int]) -> Leaf:
    """The leaf to read for a leaf of a filter: itself, or for a group its leaf with the fewest bytes in this row group.

    Any leaf below a group tells whether it is null. `payload`: leaves that are read anyway; they come first among equals.
    """
    if not leaf.group or leaf.siblings == 1:
        return leaf
    costs: list[tuple[int, bool, int]] = []
    below = range(leaf.index, leaf.index + leaf.siblings)
    for index in (
        leaf.index,
        *islice((i for i in below if i in payload), MAX_PRESENCE_LEAVES),
        *below[1:MAX_PRESENCE_LEAVES],
    ):
        try:
            chunk = file.chunk(row_group, file.schema_tree.leaf(index))
            decompressor(chunk.codec)
        except PageseekError:  # raised again if that column is read
            continue
        costs.append((chunk.total_compressed_size, index not in payload, index))
    best = min(costs, default=(0, False, leaf.index))[2]
    if best == leaf.index:
        return leaf
    return replace(file.schema_tree.leaf(best), nesting_level=leaf.nesting_level, group=True)


def levels_of(file: FileMetadata, leaf: Leaf, options: Options) -> Part | None:
    """A leaf as its own presence leaf, of which only the levels are read. None if it repeats, or is never null."""
    if leaf.group or leaf.max_rep or not leaf.max_def:
        return None
    nesting_levels = nesting_levels_of(file.node(leaf.top, options), leaf.index)
    return Part(
        replace(leaf, group=True, nesting_level=len(nesting_levels) - 1), PRESENCE, nesting_levels
    )


def part_of(file: FileMetadata, leaf: Leaf, leaf_type: LeafType, options: Options) -> Part:
    """A leaf of a filter, and how it is decoded."""
    if leaf.flat and not leaf.group:
        return Part(leaf, leaf_type)
    root = file.node(leaf.top, options)
    at = next(node for node in root.leaf_nodes() if node.first_leaf == leaf.index)
    return _part(root, at)._replace(leaf=leaf, leaf_type=leaf_type)
