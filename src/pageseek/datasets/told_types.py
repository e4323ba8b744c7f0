"""A column that a table calls text, in files whose writer did not say that its bytes are text, and the other way round; also
fields of structs, and elements of lists and maps. UUIDs, too, of which a file says no more than that they are 16 bytes; and
timestamps, of which a file says that they are local times where the table has instants, or the other way round.

Both have the same bytes in a file and the same order. Text is checked as it is read. Timestamps are likewise the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from pageseek.format.nesting import Node
from pageseek.format.types import BYTES_TYPES, TEXT_TYPES, Options

# the path of a leaf in its file, its type there, and that in the table
Told: TypeAlias = tuple[tuple[str, ...], pa.DataType, pa.DataType]


def as_the_table_says(options: Options, leaves: Iterable[Told]) -> Options | None:
    """Options with which text comes out as bytes, and so on, where the table says so; None where they need not change."""
    told_so, timestamps = [], []
    for path, own, told in leaves:
        if pa.types.is_timestamp(own) and pa.types.is_timestamp(told) and own != told:
            timestamps.append((path, told))
            continue
        kind = own.value_type if pa.types.is_dictionary(own) else own
        is_uuid = isinstance(told, pa.UuidType) and kind == told.storage_type
        if (
            is_uuid
            or (kind in TEXT_TYPES and told in BYTES_TYPES)
            or (kind in BYTES_TYPES and told in TEXT_TYPES)
        ):
            told_so.append(path)
    if not told_so and not timestamps:
        return None
    timestamps.sort(key=lambda one: one[0])
    return options._replace(as_told=tuple(sorted(told_so)), timestamps=tuple(timestamps))


def leaves_of(node: Node, told: pa.DataType) -> Iterator[Told]:
    """The leaves of a field whose parts are called as in the table, which has a type for it."""
    t = pa.types
    if node.leaf is not None:
        yield node.leaf.path, node.field.type, told
    elif node.kind == "struct" and t.is_struct(told):
        for child in node.children:
            at = told.get_field_index(child.name)
            if at >= 0:
                yield from leaves_of(child, told.field(at).type)
    elif node.kind == "map" and t.is_map(told):
        for child, kind in zip(node.children, (told.key_type, told.item_type), strict=True):
            yield from leaves_of(child, kind)
    elif node.kind == "list" and (t.is_list(told) or t.is_large_list(told)):
        yield from leaves_of(node.children[0], told.value_type)
