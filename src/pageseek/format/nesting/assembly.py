"""Arrow arrays of nested fields, assembled from their decoded leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import CorruptFileError, LimitError, UnsupportedError
from pageseek.base.records import dataclass
from pageseek.format.nesting.tree import Node
from pageseek.format.schema import Leaf

MAX_PIECES = 1 << 12  # pieces of an array that are joined at a time
MAX_FILL = 1 << 28  # elements added for null fixed-size lists: a file may claim any size


@dataclass(frozen=True, slots=True)
class Decoded:
    """One decoded leaf.

    Attributes
    ----------
    rows : int
        Rows of the top-level field.
    array : pyarrow.Array
        Values in the storage type of the leaf, one for each slot of the innermost segment: null if the definition level
        is below the leaf's greatest.
    nesting_levels : list
        An entry for each nesting level but the leaf's own OPTIONAL one. OPTIONAL: (slots, null count, validity
        bitmap or None if nothing is null). REPEATED: (slots, offsets), slots + 1 of int32, the first 0.

    A segment is the levels between two repeated nesting levels; they have the same slots. A null struct keeps its slot in
    all levels below it; a null or empty list has no slot there.
    """

    rows: int
    array: pa.Array
    nesting_levels: Sequence[tuple[Any, ...]]


def assemble(node: Node, decoded: Mapping[int, Decoded], where: str = "") -> pa.Array:
    """The array of a top-level field, of exactly its type.

    Parameters
    ----------
    node : Node
        The field, or the part of it that `project` kept.
    decoded : mapping
        The decoded leaves below the node, by leaf number.
    where : str
        The source of the leaves, for messages.

    Raises
    ------
    CorruptFileError
        Leaves disagree about the lists and structs that they share, a map has a null key, or a fixed-size list has another
        size.
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
        """The array of a node whose first nesting level is `at`.

        `present` is the validity of the nearest node above that may be null and lies in the same segment.
        """
        first = _first(node)
        lead = self._decoded[first.index]
        if node.leaf is not None:
            return self._finished(node, lead.array, slots)
        nulls, validity = 0, None
        if node.optional:
            count, nulls, bitmap = lead.nesting_levels[at]
            self._check(first, count, slots)
            validity = None if bitmap is None or not nulls else pa.py_buffer(bitmap)
            present = validity  # a null above is null here, too
            at += 1
        kind = node.field.type
        if node.kind == "struct":
            self._agree(node, at)
            children = [self.array(child, at, slots, present) for child in node.children]
            return pa.Array.from_buffers(kind, slots, [validity], nulls, children=children)
        count, buffer = lead.nesting_levels[at]
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
        leaf, leaf_type = node.leaf, node.leaf_type
        assert leaf is not None and leaf_type is not None
        self._check(leaf, len(array), slots)
        if leaf_type.is_null:
            return pa.nulls(slots)
        made = leaf_type.finish(array)
        return made if made.type == leaf_type.type else made.cast(leaf_type.type)

    def _check(self, leaf: Leaf, count: int, slots: int) -> None:
        if count != slots:
            raise CorruptFileError(
                f"{self._where}column {leaf.name!r} has {count} slots where {slots} are due"
            )

    def _agree(self, node: Node, stop: int) -> None:
        """Check that the children of a node agree on the `stop` nesting levels down to it.

        The first leaf of every child is compared with that of the first child. Further leaves of a child are compared with
        its first when the child is assembled.
        """
        leaf = _first(node)
        lead = self._decoded[leaf.index]
        for child in node.children:
            other = _first(child)
            if other.index == leaf.index:
                continue
            said = self._decoded[other.index]
            if lead.rows == said.rows and all(
                _same_level(a, b)
                for a, b in zip(lead.nesting_levels[:stop], said.nesting_levels[:stop], strict=True)
            ):
                continue
            raise CorruptFileError(
                f"{self._where}columns {leaf.name!r} and {other.name!r} disagree about the lists "
                f"or nulls of {node.name!r}, which holds both"
            )

    def _filled(
        self, leaf: Leaf, size: int, items: pa.Array, offsets: Any, present: pa.Buffer | None
    ) -> pa.Array:
        """The elements of fixed-size lists: Arrow keeps `size` elements for a null list, Parquet none."""
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
        added = int(absent.sum()) * size * _filler(items.type)
        if added > MAX_FILL:
            raise LimitError(
                f"{self._where}column {leaf.name!r}: {added} elements, which lists of {size} need where they are "
                f"null, are above the limit of {MAX_FILL}; read fewer rows at a time"
            )
        try:
            return _with_nulls(items, offsets, absent, size)
        except (MemoryError, pa.ArrowMemoryError) as error:
            raise LimitError(f"{self._where}column {leaf.name!r}: {error}") from error


def _with_nulls(items: pa.Array, offsets: Any, absent: Any, size: int) -> pa.Array:
    """The elements of lists of `size`, with `size` nulls for each absent list."""
    # runs of absent lists, or of present ones
    starts = np.concatenate([[0], np.flatnonzero(np.diff(absent)) + 1, [len(absent)]])
    if len(starts) > MAX_PIECES and not _has_views(items.type):  # pyarrow cannot `take` views
        places = offsets[:-1, np.newaxis] + np.arange(size, dtype=np.int64)
        return items.take(pa.array(places.ravel(), mask=np.repeat(absent, size)))
    pieces, joined = [], []
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if absent[start]:
            pieces.append(pa.nulls((stop - start) * size, items.type))
        else:
            first = int(offsets[start])
            pieces.append(items.slice(first, int(offsets[stop]) - first))
        if len(pieces) == MAX_PIECES:
            joined.append(pa.concat_arrays(pieces))
            pieces = []
    return pa.concat_arrays([*joined, *pieces])


def _has_views(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_views(kind.storage_type)
    if kind in (pa.string_view(), pa.binary_view()):
        return True
    return any(_has_views(kind.field(i).type) for i in range(kind.num_fields))


def _filler(kind: pa.DataType) -> int:
    """The slots that one null of a type takes up in its arrays."""
    if isinstance(kind, pa.BaseExtensionType):
        return _filler(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        return max(int(kind.list_size) * _filler(kind.value_type), 1)
    if pa.types.is_struct(kind):
        return sum(_filler(kind.field(i).type) for i in range(kind.num_fields)) or 1
    if pa.types.is_fixed_size_binary(kind):
        return max(-(-int(kind.byte_width) // 8), 1)  # as many as numbers of its width
    return 1


def _same_level(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if a[0] != b[0] or len(a) != len(b):
        return False
    if len(a) == 2:
        size = 4 * (a[0] + 1)
        return bool(_bytes(a[1], size).equals(_bytes(b[1], size)))
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
