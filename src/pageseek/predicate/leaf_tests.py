"""Conditions on one leaf as tests that the kernels answer from its values alone."""

from __future__ import annotations

from pageseek._core import rows
from pageseek.base.errors import PredicateError
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS
from pageseek.predicate import expression as ex
from pageseek.predicate.bound import Bound, BoundConst, BoundLeaf
from pageseek.predicate.given_values import fit, fit_list
from pageseek.predicate.in_literals import NO_LITERALS, pack_literals
from pageseek.predicate.literal import exact
from pageseek.predicate.operators import KERNELS
from pageseek.predicate.schema_names import Found


def compare_test(e: ex.Compare, found: Found, nan: int, negate: bool) -> Bound:
    """A leaf compared with one value."""
    leaf, leaf_type = found
    value = exact(e.value, leaf_type, e.column)
    if value is None:
        return BoundConst(False)  # NULL for every row, and so is its negation
    op, fitted = fit(e.op, value, leaf_type, nan)
    literals = pack_literals([fitted], leaf_type)
    return BoundLeaf(leaf, leaf_type, KERNELS[op], literals, negate, nan, e)


def list_test(e: ex.IsIn, found: Found, nan: int, negate: bool) -> Bound:
    """IN."""
    leaf, leaf_type = found
    if not len(e.values):
        return BoundConst(negate)  # no list holds anything, not even null
    fitted = fit_list(e, leaf_type)
    if negate and fitted.has_null:
        return BoundConst(False)  # NOT IN (..., NULL) is never TRUE
    if not fitted.literals[0]:
        return BoundLeaf(leaf, leaf_type, rows.OP_NEVER, NO_LITERALS, negate, nan, e)
    return BoundLeaf(leaf, leaf_type, rows.OP_IN, fitted.literals, negate, nan, e)


def null_test(e: ex.IsNull, found: Found, nan: int, negate: bool) -> Bound:
    """IS NULL, of a leaf or a group of leaves."""
    leaf, leaf_type = found
    if leaf.group and leaf.nesting_level < 0:
        return BoundConst(negate)  # nothing on the way to this group can be null
    return BoundLeaf(leaf, leaf_type, rows.OP_IS_NULL, NO_LITERALS, negate, nan, e)


def nan_test(e: ex.IsNan, found: Found, nan: int, negate: bool) -> Bound:
    """IS NAN, which no value is but those of floats."""
    leaf, leaf_type = found
    op = rows.OP_IS_NAN if leaf_type.kind in FLOAT_KINDS else rows.OP_NEVER
    return BoundLeaf(leaf, leaf_type, op, NO_LITERALS, negate, nan, e)


def prefix_test(e: ex.StartsWith, found: Found, nan: int, negate: bool) -> Bound:
    """The beginning of texts or binary values."""
    leaf, leaf_type = found
    if leaf_type.kind not in BYTES_KINDS:
        raise PredicateError(f"{e!r}: column of type {leaf_type.type} has no prefix")
    literals = pack_literals([exact(e.prefix, leaf_type, e.column)], leaf_type)
    return BoundLeaf(leaf, leaf_type, rows.OP_PREFIX, literals, negate, nan, e)


__all__ = ["compare_test", "list_test", "nan_test", "null_test", "prefix_test"]
