"""Conditions on the columns of a dataset, rewritten for one of its files.

A file may lack a column, have it with one value in all rows, or have integers where other files have floats.
"""

from __future__ import annotations

from dataclasses import replace

from pageseek.format.types import LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.column_pairs import comparable, uncomparable
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.predicate.literal import Number
from pageseek.predicate.operators import MIRRORED
from pageseek.predicate.schema_names import DatasetNames


def for_file(
    e: ex.Expression, names: DatasetNames
) -> tuple[ex.Expression, tuple[ConstantColumn, LeafType] | None]:
    """The condition for this file, and the column of the condition if it has one value in all rows."""
    if isinstance(e, ex.CompareColumns):
        e = _with_values(e, names)
    column: ex.Column | None = getattr(e, "column", None)
    if isinstance(e, ex.AnyElement):
        leaf, leaf_type = names.element(e.element.path)
    elif column is None or isinstance(e, ex.CompareColumns):
        return e, None  # also one that is joined of several
    else:
        leaf, leaf_type = names.in_struct(column.path) or names(column.path)
    if not isinstance(leaf, ConstantColumn):
        return _rounded(e, names), None
    if leaf.values is not None:
        return e, (leaf, leaf_type)
    return of_null(e), None


def of_null(e: ex.Expression) -> ex.Constant:
    """What a condition on one column is where the column is null."""
    if isinstance(e, ex.IsNull):
        return ex.Constant(True)
    return ex.Constant(False if isinstance(e, ex.IsIn) and not len(e.values) else None)


def _with_values(e: ex.CompareColumns, names: DatasetNames) -> ex.Expression:
    """Two columns compared; a column with one value is replaced by that value."""
    (one, a), (other, b) = (
        names.in_struct(column.path) or names(column.path) for column in (e.column, e.other)
    )
    constants = [leaf for leaf in (one, other) if isinstance(leaf, ConstantColumn)]
    if not constants:
        return e
    if any(leaf.values is None for leaf in constants):
        return ex.Constant(None)
    if not (a.is_null or b.is_null or comparable(a, b)):
        raise uncomparable(e, a, b)
    if isinstance(other, ConstantColumn):
        return _where_there(ex.Compare(e.column, e.op, other.scalar), other)
    (only,) = constants
    return _where_there(ex.Compare(e.other, MIRRORED[e.op], only.scalar), only)


def _where_there(e: ex.Expression, constant: ConstantColumn) -> ex.Expression:
    """A condition that is NULL where the struct around a column is null."""
    if constant.struct is None:
        return e
    missing = ex.IsNull(ex.Column(constant.path[:-1]))
    return ex.Or((ex.And((e, ex.Not(missing))), ex.And((ex.Constant(None), missing))))


def _rounded(e: ex.Expression, names: DatasetNames) -> ex.Expression:
    """Numbers of SQL become the nearest doubles if the other files have floats in the column."""
    if isinstance(e, ex.Compare):
        if isinstance(e.value, Number) and names.as_float(e.column.path):
            return replace(e, value=float(e.value))
    elif isinstance(e, ex.IsIn) and isinstance(e.values, tuple) and names.as_float(e.column.path):
        rounded = (float(v) if isinstance(v, Number) else v for v in e.values)
        return ex.IsIn(e.column, tuple(rounded))
    return e
