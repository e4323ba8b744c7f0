"""Hashes of the values of a column: XXH64 of the bytes that Arrow has for them (docs/format.md)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core.bloom import hashes, pieces
from pageseek.format.types import K_LARGE_BYTES

_TEXT = (
    6,
    0,
    K_LARGE_BYTES,
    0,
    0,
    0,
    0,
)  # the form (ps_leaf_spec) of BYTE_ARRAY with offsets of 8 bytes


def can_hash(kind: pa.DataType) -> bool:
    """Whether values of a type have hashes: equal values have equal ones."""
    t = pa.types
    return not (t.is_nested(kind) or t.is_boolean(kind) or t.is_null(kind) or t.is_interval(kind))


def hashes_of(values: pa.Array) -> npt.NDArray[np.uint64]:
    """The hash of each value, of an array without nulls and NaN. Zeros of both signs have one hash."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return hashes_of(values.dictionary_decode())
    t = pa.types
    if t.is_string(kind) or t.is_binary(kind) or t.is_large_string(kind) or t.is_large_binary(kind) or _is_view(kind):  # fmt: skip
        made = values.cast(pa.large_binary())
        n, offset = len(made), made.offset
        if n == 0:
            return np.zeros(0, np.uint64)
        _, ends, data = made.buffers()
        places = np.frombuffer(ends, np.int64)[offset : offset + n + 1]
        body = memoryview(data or b"")[places[0] : places[-1]]
        found = hashes(_TEXT, (n, body, (places - places[0]).tobytes()))
        return np.frombuffer(found, np.uint64)
    width = kind.byte_width
    raw = values.buffers()[1]
    start = values.offset * width
    body = memoryview(raw or b"")[start : start + len(values) * width]
    if t.is_floating(kind):
        body = memoryview((np.frombuffer(body, f"<f{width}") + 0.0).tobytes())  # -0.0 is 0.0
    return np.frombuffer(pieces(body, width, 0), np.uint64)


def _is_view(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_string_view(kind) or t.is_binary_view(kind))
