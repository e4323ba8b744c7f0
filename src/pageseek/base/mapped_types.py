"""Types of Arrow in which those of leaves are replaced, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa


def mapped_field(field: pa.Field, leaf: Callable[[Any], Any]) -> pa.Field:
    """The field with the type that `leaf` gives for each type without fields; the object itself where that changes nothing. Types
    that Parquet has not, such as views of lists, stay as they are.
    """
    kind = _mapped(field.type, leaf)
    return field if kind is field.type else field.with_type(kind)


def _mapped(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    t = pa.types
    if not t.is_nested(kind):
        return leaf(kind)
    old = [kind.field(i) for i in range(kind.num_fields)]
    new = [mapped_field(field, leaf) for field in old]
    if all(one is other for one, other in zip(new, old, strict=True)):
        return kind
    if t.is_struct(kind):
        return pa.struct(new)
    if t.is_map(kind):
        key, value = new[0].type.field(0), new[0].type.field(1)
        return pa.map_(key.type, value, kind.keys_sorted)
    if t.is_fixed_size_list(kind):
        return pa.list_(new[0], kind.list_size)
    if t.is_large_list(kind):
        return pa.large_list(new[0])
    return pa.list_(new[0]) if t.is_list(kind) else kind
