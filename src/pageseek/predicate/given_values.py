"""The values of a condition, fitted to the type of the leaf that they are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS, K_BOOL, K_FIXED, LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.in_arrays import FEW, Many, by_type, many
from pageseek.predicate.in_literals import merged, pack_literals
from pageseek.predicate.literal import exact, fit_fixed, fit_float, fit_integer


def fit(op: str, value: Any, leaf_type: LeafType, nan: int) -> tuple[str, Any]:
    """`x op value` as a comparison that values of the leaf type can answer, or "always" or "never"."""
    if leaf_type.kind in BYTES_KINDS or leaf_type.kind == K_BOOL:
        return op, value
    if leaf_type.kind == K_FIXED:
        return fit_fixed(op, value, leaf_type.width)
    if leaf_type.kind in FLOAT_KINDS:
        return fit_float(op, value, leaf_type)
    return fit_integer(op, value, leaf_type, nan == rows.NAN_SPARK)


def fit_list(e: ex.IsIn, leaf_type: LeafType) -> Many:
    """The values of IN. Long lists are packed once for all files whose columns have the same leaf type."""
    if len(e.values) < FEW:
        return _one_by_one(e.values, leaf_type, e.column)
    if leaf_type not in e.packed:
        e.packed[leaf_type] = _by_arrays(e.values, leaf_type, e.column)
    packed: Many = e.packed[leaf_type]
    return packed


def _by_arrays(values: tuple[Any, ...] | pa.Array, leaf_type: LeafType, column: ex.Column) -> Many:
    """By whole arrays, of one type each; values that arrays cannot hold exactly are converted one by one."""
    found = many(values, leaf_type)
    if found is not None:
        return found
    groups = by_type(values) if isinstance(values, tuple) else [values]
    parts = [
        (many(group, leaf_type) if len(groups) > 1 else None)
        or _one_by_one(group, leaf_type, column)
        for group in groups
    ]
    literals = parts[0].literals
    if len(parts) > 1:
        literals = merged([part.literals for part in parts if part.literals[0]], leaf_type)
    return Many(literals, any(part.has_null for part in parts))


def _one_by_one(values: Iterable[Any], leaf_type: LeafType, column: ex.Column) -> Many:
    values = [exact(v, leaf_type, column) for v in values]
    present = [v for v in values if v is not None]
    fitted = (fit("=", v, leaf_type, rows.NAN_IEEE) for v in present)  # a NaN equals no integer
    literals = merged([pack_literals([v for op, v in fitted if op == "="], leaf_type)], leaf_type)
    return Many(literals, len(present) < len(values))


__all__ = ["fit", "fit_list"]
