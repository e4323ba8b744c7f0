"""One column of several files: the type that holds all its values exactly, and arrays of that type.

Integers become wider ones, or doubles and decimals with room for all their digits. Floats and decimals become wider ones,
dates timestamps without a zone. Times, timestamps and durations get the finer unit; a value beyond its range is an error when
it is read. Strings, binary and dictionaries get one layout. Structs are joined field by field, by name. 64-bit integers do
not become doubles, nor text numbers: values would change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.arrays import of_numpy
from pageseek.base.late_modules import compute as pc
from pageseek.datasets.table_fields import TableField
from pageseek.format.types import BYTES_TYPES, TEXT_TYPES

_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}  # bits of an integer -> its digits; int64 has 19


def joined_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The narrowest type that holds the values of both types exactly; None where there is none."""
    if a == b:
        return a
    t = pa.types
    if t.is_null(a) or t.is_null(b):
        return b if t.is_null(a) else a
    if t.is_dictionary(a) or t.is_dictionary(b):
        return joined_type(*(k.value_type if t.is_dictionary(k) else k for k in (a, b)))
    if isinstance(a, pa.BaseExtensionType) or isinstance(b, pa.BaseExtensionType):
        if not (isinstance(a, pa.JsonType) and isinstance(b, pa.JsonType)):
            return None
        storage = joined_type(a.storage_type, b.storage_type)
        return None if storage is None else pa.json_(storage)
    for join in (_joined_number, _joined_time, _joined_bytes, _joined_nested):
        found = join(a, b)
        if found is not None:
            return found
    return None


def _joined_number(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    t = pa.types
    if t.is_decimal(a) or t.is_decimal(b):
        return _joined_decimal(a, b)
    if t.is_floating(a) and t.is_floating(b):
        return a if a.bit_width > b.bit_width else b
    if t.is_floating(a) or t.is_floating(b):
        whole = b if t.is_floating(a) else a
        return pa.float64() if t.is_integer(whole) and whole.bit_width < 64 else None
    if not (t.is_integer(a) and t.is_integer(b)):
        return None
    signed = [t.is_signed_integer(kind) for kind in (a, b)]
    if signed[0] == signed[1]:
        return a if a.bit_width > b.bit_width else b
    plain, signless = (a, b) if signed[0] else (b, a)
    bits = max(plain.bit_width, 2 * signless.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)


def _joined_decimal(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    t, scale, whole = pa.types, 0, 0
    for kind in (a, b):
        if t.is_decimal(kind):
            scale, whole = max(scale, kind.scale), max(whole, kind.precision - kind.scale)
        elif t.is_integer(kind):
            whole = max(whole, 19 if kind == pa.int64() else _DIGITS[kind.bit_width])
        else:
            return None
    digits = whole + scale
    if digits > 76:
        return None
    wide = digits > 38 or t.is_decimal256(a) or t.is_decimal256(b)
    return pa.decimal256(digits, scale) if wide else pa.decimal128(digits, scale)


def _finer(a: pa.DataType, b: pa.DataType) -> str:
    return _UNITS[max(_UNITS.index(a.unit), _UNITS.index(b.unit))]


def _joined_time(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    t = pa.types
    if t.is_timestamp(a) and t.is_timestamp(b):
        if (a.tz is None) != (b.tz is None):
            return None
        return pa.timestamp(_finer(a, b), a.tz if a.tz == b.tz else "UTC")
    if t.is_date32(a) and t.is_timestamp(b) and b.tz is None:
        return b
    if t.is_date32(b) and t.is_timestamp(a) and a.tz is None:
        return a
    if t.is_time(a) and t.is_time(b):
        return a if _UNITS.index(a.unit) > _UNITS.index(b.unit) else b
    if t.is_duration(a) and t.is_duration(b):
        return pa.duration(_finer(a, b))
    return None


def _joined_bytes(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    a, b = (pa.binary() if pa.types.is_fixed_size_binary(kind) else kind for kind in (a, b))
    for layouts in (TEXT_TYPES, BYTES_TYPES):
        if a in layouts and b in layouts:
            plain, large, _ = layouts
            return large if large in (a, b) else plain
    return None


def _joined_nested(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    t = pa.types
    if t.is_struct(a) and t.is_struct(b):
        made = joined_fields(list(a), list(b))
        return pa.struct(made) if isinstance(made, list) else None
    if t.is_map(a) and t.is_map(b):
        key = joined_field(a.key_field, b.key_field.with_name(a.key_field.name))
        item = joined_field(a.item_field, b.item_field.with_name(a.item_field.name))
        if key is None or item is None or a.keys_sorted != b.keys_sorted:
            return None
        return pa.map_(key.with_nullable(False), item, a.keys_sorted)
    if not (_is_list(a) and _is_list(b)):
        return None
    item = joined_field(a.value_field, b.value_field.with_name(a.value_field.name))
    if item is None:
        return None
    if t.is_fixed_size_list(a) and t.is_fixed_size_list(b) and a.list_size == b.list_size:
        return pa.list_(item, a.list_size)
    return pa.large_list(item) if t.is_large_list(a) or t.is_large_list(b) else pa.list_(item)


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def joined_field(a: pa.Field, b: pa.Field) -> pa.Field | None:
    """The field for the values of both, with the first's name. It is nullable if either is."""
    kind = joined_type(a.type, b.type)
    if kind is None:
        return None
    nullable = a.nullable or b.nullable
    if kind == a.type and nullable == a.nullable:
        return a
    return a.with_type(kind).with_nullable(nullable)


def keyed(fields: list[pa.Field]) -> dict[tuple[str, int], pa.Field]:
    """Fields by (name, number among the fields of that name)."""
    made: dict[tuple[str, int], pa.Field] = {}
    counts: dict[str, int] = {}
    for field in fields:
        n = counts.get(field.name, 0)
        made[field.name, n] = field
        counts[field.name] = n + 1
    return made


def joined_fields(
    ours: list[pa.Field], theirs: list[pa.Field]
) -> list[pa.Field] | tuple[pa.Field, pa.Field]:
    """The union of fields by name, in the order of their first places; or the two fields that have no common type.

    A field that only one side has becomes nullable.
    """
    made, others = keyed(ours), keyed(theirs)
    for key, field in made.items():
        other = others.pop(key, None)
        if other is None:
            made[key] = field if field.nullable else field.with_nullable(True)
            continue
        joined = joined_field(field, other)
        if joined is None:
            return field, other
        made[key] = joined
    for key, field in others.items():
        made[key] = field.with_nullable(True)
    return list(made.values())


def holds(wide: pa.DataType, kind: pa.DataType, finer: bool = False) -> bool:
    """Whether a given type holds the values of another exactly. Its structs may lack fields of the other. `finer`: timestamps may
    be of a finer unit; `widened` refuses those values that are not exact.
    """
    t = pa.types
    if wide == kind or t.is_null(kind):
        return True
    if t.is_struct(wide) and t.is_struct(kind):
        there = {field.name: field for field in kind}
        return all(holds(f.type, there[f.name].type, finer) for f in wide if f.name in there)
    if t.is_map(wide) and t.is_map(kind):
        pairs = (wide.key_type, kind.key_type), (wide.item_type, kind.item_type)
        return all(holds(*pair, finer) for pair in pairs)
    if _is_list(wide) and _is_list(kind) and not t.is_fixed_size_list(wide):
        return holds(wide.value_type, kind.value_type, finer)
    if t.is_dictionary(kind):
        return holds(wide, kind.value_type)
    if t.is_timestamp(wide) and t.is_timestamp(kind) and (wide.tz is None) == (kind.tz is None):
        return finer or _UNITS.index(wide.unit) >= _UNITS.index(kind.unit)
    if any(wide in layouts and kind in layouts for layouts in (TEXT_TYPES, BYTES_TYPES)):
        return True
    if isinstance(wide, pa.UuidType) and kind == wide.storage_type:  # the file does not say so
        return True
    joined = joined_type(wide, kind)
    if joined is not None and t.is_decimal(joined) and t.is_decimal(wide):
        return (joined.precision, joined.scale) == (wide.precision, wide.scale)
    return bool(joined == wide)


def paths_of_bytes(
    fields: Iterable[pa.Field], before: tuple[str, ...] = ()
) -> list[tuple[str, ...]]:
    """The paths of columns, and of fields of structs, of which all strings are binary, in lower case: see Options.as_bytes."""
    made = []
    for field in fields:
        path, kinds = (*before, field.name.lower()), set(_leaves(field.type))
        if kinds.isdisjoint(BYTES_TYPES):
            continue
        if kinds.isdisjoint(TEXT_TYPES):
            made.append(path)
        elif pa.types.is_struct(field.type):
            made += paths_of_bytes(field.type, path)
    return made


def _leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types of the leaves of a type."""
    if not pa.types.is_nested(kind):
        yield kind
    for at in range(kind.num_fields):
        yield from _leaves(kind.field(at).type)


def widened(array: pa.Array, kind: pa.DataType, inside: Sequence[TableField] = ()) -> pa.Array:
    """An array of a type that holds its values. Fields of structs are matched by name; missing ones are null, or have the
    default that the fields `inside` tell.
    """
    if array.type == kind:
        return array
    t, given = pa.types, array.type
    if t.is_null(given):
        return pa.nulls(len(array), kind)
    if isinstance(given, pa.BaseExtensionType):
        return widened(array.storage, kind, inside)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, widened(array, kind.storage_type))
    if t.is_dictionary(given):
        return widened(array.dictionary_decode(), kind)
    if t.is_struct(kind):
        return _widened_struct(array, kind, inside)
    if t.is_map(kind) or _is_list(kind):
        return _widened_list(array, kind, inside)
    if t.is_fixed_size_binary(given):
        array = array.cast(pa.binary())
    if t.is_timestamp(kind) and t.is_timestamp(given):  # a zone is a label on instants
        array = array.cast(pa.timestamp(kind.unit, given.tz))
        return array if array.type == kind else array.view(kind)
    return array if array.type == kind else array.cast(kind)


def _widened_struct(array: pa.Array, kind: pa.DataType, inside: Sequence[TableField]) -> pa.Array:
    n, told = len(array), {field.name: field for field in inside}
    there = dict(zip([field.name for field in array.type], array.flatten(), strict=True))
    missing = array.is_null() if array.null_count else None
    if not kind.num_fields:
        bits: Any = None
        if missing is not None:
            bits = pc.invert(missing).buffers()[1]
        return pa.StructArray.from_buffers(kind, n, [bits])
    children = []
    for field in kind:
        below = told.get(field.name)
        if field.name in there:
            child = widened(there[field.name], field.type, () if below is None else below.children)
        elif below is not None and below.default is not None:
            child = widened(pa.repeat(below.default, n), field.type)
        else:
            child = pa.nulls(n, field.type)
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=missing)


def _widened_list(array: pa.Array, kind: pa.DataType, inside: Sequence[TableField]) -> pa.Array:
    """Convert the elements, and make a new array from its first row on, if it is a slice."""
    t, given = pa.types, array.type
    below = [field.children for field in inside] or [
        (),
        (),
    ]  # of the elements, or of keys and values
    missing = array.is_null() if array.null_count else None
    if t.is_fixed_size_list(kind):
        size, start = kind.list_size, array.offset
        values = widened(
            array.values.slice(start * size, len(array) * size), kind.value_type, below[0]
        )
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=missing)
    if t.is_map(kind):
        ends = np.asarray(array.offsets)
        first, size = int(ends[0]), int(ends[-1] - ends[0])
        keys = widened(array.keys.slice(first, size), kind.key_type, below[0])
        items = widened(array.items.slice(first, size), kind.item_type, below[1])
        offsets = of_numpy((ends - first).astype(np.int32))
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=missing)
    if t.is_fixed_size_list(given):
        lengths = np.where(np.asarray(array.is_valid()), given.list_size, 0)
    else:
        lengths = np.asarray(pc.list_value_length(array).fill_null(0))
    wide = t.is_large_list(kind)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if wide else np.int32)
    values = widened(array.flatten(), kind.value_type, below[0])
    make = pa.LargeListArray if wide else pa.ListArray
    return make.from_arrays(of_numpy(ends), values, type=kind, mask=missing)
