"""Arrow arrays from numpy and back. pyarrow's own conversions would import pandas where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.late_modules import npt


def of_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Numbers as an Arrow array over the same memory."""
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(
        kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))], 0
    )


def distinct_numbers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The different numbers of an array, in order.

    np.unique hashes them before it sorts, which takes up to 60 times as long, and loads numpy.ma (10 ms).
    """
    made = np.sort(values)
    new = np.empty(len(made), np.bool_)
    new[:1] = True
    np.not_equal(made[1:], made[:-1], out=new[1:])
    return made[new]


def booleans(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Arrow booleans without nulls as an array of numpy."""
    if values.offset:
        values = pa.concat_arrays([values.slice(0, 0), values])  # no pointer leads to a single bit
    bits = values.buffers()[1]
    if bits is None or not len(values):
        return np.zeros(0, np.bool_)
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=len(values), bitorder="little").view(
        np.bool_
    )


def first_leaves(schema: pa.Schema) -> dict[str, int]:
    """The number of the first leaf of each column."""
    found, at = {}, 0
    for field in schema:
        found[field.name] = at
        at += _leaves(field.type)
    return found


def _leaves(kind: pa.DataType) -> int:
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    if t.is_struct(kind):
        return sum(_leaves(field.type) for field in kind)
    if t.is_map(kind):
        return _leaves(kind.key_type) + _leaves(kind.item_type)
    is_list = (
        t.is_list(kind), t.is_large_list(kind), t.is_fixed_size_list(kind), t.is_list_view(kind),
        t.is_large_list_view(kind),
    )  # fmt: skip
    return _leaves(kind.value_type) if any(is_list) else 1
