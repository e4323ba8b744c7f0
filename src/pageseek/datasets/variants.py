"""Variants of Delta Lake tables, which are read as the two strings of bytes that files have: `metadata` and `value` (Delta protocol,
Variant Data Type).

A file may have parts of the values in further columns, as `typed_value` (Variant Shredding). Nothing here puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pageseek.format.nesting import Node

_PARTS = {"metadata", "value"}
_SHREDDED = "typed_value"


def has_variants(kind: Any) -> bool:
    """Whether a type of the log's schema is a variant, or has one in it."""
    if not isinstance(kind, Mapping):
        return bool(kind == "variant")
    inside = [kind[name] for name in ("elementType", "keyType", "valueType") if name in kind]
    inside += [field["type"] for field in kind.get("fields", ())]
    return kind["type"] == "variant" or any(map(has_variants, inside))


def with_nullable_parts(kind: pa.DataType, told: Any) -> pa.DataType:
    """A type of a table, whose variants may be null, and then have no parts. `told`: as the log spells it."""
    if told == "variant":
        return pa.struct([field.with_nullable(True) for field in kind])
    if not isinstance(told, Mapping):
        return kind
    if told["type"] == "struct":
        pairs = zip(kind, told["fields"], strict=True)
        return pa.struct([_of_field(field, one["type"]) for field, one in pairs])
    if told["type"] == "map":
        key = _of_field(kind.key_field, told["keyType"])
        return pa.map_(key, _of_field(kind.item_field, told["valueType"]))
    return pa.list_(_of_field(kind.value_field, told["elementType"]))


def _of_field(field: pa.Field, told: Any) -> pa.Field:
    return field.with_type(with_nullable_parts(field.type, told))


def is_shredded(node: Node, told: pa.DataType, path: Sequence[str]) -> bool:
    """Whether a field of a file has a variant in it whose values are shredded, as far as a path leads into it. `node`: by the names
    of the table; `told`: its type there.
    """
    if node.kind == "struct" and pa.types.is_struct(told):
        names = {child.name for child in node.children}
        if _SHREDDED in names and {field.name for field in told} == _PARTS:
            return True
        below = [(child, told.get_field_index(child.name)) for child in node.children]
        return any(
            is_shredded(child, told.field(at).type, path[1:])
            for child, at in below
            if at >= 0 and (not path or path[0] == child.name)
        )
    t, kinds = pa.types, list[pa.DataType]()
    if node.kind == "map" and t.is_map(told):
        kinds = [told.key_type, told.item_type]
    elif node.kind == "list" and (t.is_list(told) or t.is_large_list(told)):
        kinds = [told.value_type]
    return any(
        is_shredded(child, kind, path[1:] if path and path[0] == child.name else path)
        for child, kind in zip(node.children, kinds, strict=False)
    )
