"""Hashes of the values of a column: XXH64 of the bytes that Arrow has for them (docs/format.md)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pageseek._core.bloom import hashes, pieces
from pageseek.base.late_modules import npt
from pageseek.format.types import BYTE_ARRAY, K_LARGE_BYTES

DIGITS = 38  # of a decimal of 16 bytes
# the form (ps_leaf_spec) of BYTE_ARRAY with offsets of 8 bytes
BYTES_FORM = (BYTE_ARRAY, 0, K_LARGE_BYTES, 0, 0, 0, 0)


def can_hash(kind: pa.DataType) -> bool:
    """Whether values of a type have hashes: equal values have equal ones."""
    t = pa.types
    return not (t.is_nested(kind) or t.is_boolean(kind) or t.is_null(kind) or t.is_interval(kind))


def hashed_form(kind: pa.DataType) -> tuple[str, int | str]:
    """What the bytes of values of a type are. Values of two types with one form that are equal have equal hashes."""
    t = pa.types
    if t.is_dictionary(kind):
        return hashed_form(kind.value_type)
    if _is_text(kind):
        return "bytes", 0
    if t.is_decimal(kind):
        return "decimal", 16 if kind.precision <= DIGITS else 32
    if t.is_timestamp(kind):
        return "timestamp", str(kind.unit)
    what = (
        "float" if t.is_floating(kind) else "bytes" if t.is_fixed_size_binary(kind) else "integer"
    )
    return what, int(kind.byte_width)


def hashes_of(values: pa.Array) -> npt.NDArray[np.uint64]:
    """The hash of each value, of an array without nulls and NaN. Zeros of both signs have one hash."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return hashes_of(values.dictionary_decode())
    t = pa.types
    if t.is_decimal(kind) and kind.byte_width != (width := int(hashed_form(kind)[1])):
        wide = pa.decimal128 if width == 16 else pa.decimal256
        return hashes_of(values.cast(wide(kind.precision, kind.scale)))
    if _is_text(kind):
        made = values.cast(pa.large_binary())
        n, offset = len(made), made.offset
        if n == 0:
            return np.zeros(0, np.uint64)
        _, ends, data = made.buffers()
        places = np.frombuffer(ends, np.int64)[offset : offset + n + 1]
        body = memoryview(data or b"")[places[0] : places[-1]]
        found = hashes(BYTES_FORM, (n, body, (places - places[0]).tobytes()))
        return np.frombuffer(found, np.uint64)
    width = kind.byte_width
    raw = values.buffers()[1]
    start = values.offset * width
    body = memoryview(raw or b"")[start : start + len(values) * width]
    if t.is_floating(kind):
        body = memoryview((np.frombuffer(body, f"<f{width}") + 0.0).tobytes())  # -0.0 is 0.0
    return np.frombuffer(pieces(body, width, 0), np.uint64)


def hashes_of_key(several: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The hash of each key, by the hashes of its values: an array of shape (keys, columns)."""
    body = np.ascontiguousarray(several, "<u8").tobytes()
    return np.frombuffer(pieces(body, 8 * several.shape[1], 0), np.uint64)


def _is_text(kind: pa.DataType) -> bool:
    """Whether values are byte strings of any length."""
    t = pa.types
    short = t.is_string(kind) or t.is_binary(kind)
    large = t.is_large_string(kind) or t.is_large_binary(kind)
    return bool(short or large or t.is_string_view(kind) or t.is_binary_view(kind))
