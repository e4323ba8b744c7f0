"""Conditions on the leaves of a file: tests that a kernel answers from one leaf, and residuals.

The values of a residual are decoded, and Arrow or numpy evaluates it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import PredicateError
from pageseek.format.types import BYTES_KINDS, FLOAT_KINDS
from pageseek.predicate import expression as ex
from pageseek.predicate.bound import (
    INPUT,
    PATTERN,
    Bound,
    BoundAnd,
    BoundConst,
    BoundLeaf,
    BoundPattern,
    BoundResidual,
)
from pageseek.predicate.in_literals import NO_LITERALS, pack_literals
from pageseek.predicate.literal import exact, fit
from pageseek.predicate.operators import KERNELS
from pageseek.predicate.schema_names import Found

# -- tests of one leaf ----------------------------------------------------------------------------


def _compare_test(e: ex.Compare, found: Found, nan: int, negate: bool) -> Bound:
    """A leaf compared with one value."""
    leaf, leaf_type = found
    value = exact(e.value, leaf_type, e.column)
    if value is None:
        return BoundConst(False)  # NULL for every row, and so is its negation
    op, fitted = fit(e.op, value, leaf_type, nan)
    literals = pack_literals([fitted], leaf_type)
    return BoundLeaf(leaf, leaf_type, KERNELS[op], literals, negate, nan, e)


def _list_test(e: ex.IsIn, found: Found, nan: int, negate: bool) -> Bound:
    """A leaf compared with the values of IN."""
    from pageseek.predicate.in_arrays import fit_list  # late: for IN alone

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


def _nan_test(e: ex.IsNan, found: Found, nan: int, negate: bool) -> Bound:
    """IS NAN, which is FALSE for every value that is no float."""
    leaf, leaf_type = found
    op = rows.OP_IS_NAN if leaf_type.kind in FLOAT_KINDS else rows.OP_NEVER
    return BoundLeaf(leaf, leaf_type, op, NO_LITERALS, negate, nan, e)


def _prefix_test(e: ex.StartsWith, found: Found, nan: int, negate: bool) -> Bound:
    """The beginning of texts or binary values."""
    leaf, leaf_type = found
    if leaf_type.kind not in BYTES_KINDS:
        raise PredicateError(f"{e!r}: column of type {leaf_type.type} has no prefix")
    literals = pack_literals([exact(e.prefix, leaf_type, e.column)], leaf_type)
    return BoundLeaf(leaf, leaf_type, rows.OP_PREFIX, literals, negate, nan, e)


# -- residuals ------------------------------------------------------------------------------------


def input_leaf(found: Found, source: ex.Expression) -> BoundLeaf:
    """A leaf whose values a residual needs."""
    return BoundLeaf(*found, INPUT, NO_LITERALS, False, rows.NAN_IEEE, source)


def undecided(e: ex.Expression, negate: bool) -> BoundResidual:
    """A condition on a column whose type may differ between files: nothing is decided for them all."""
    return BoundResidual((), lambda _: pa.nulls(0, pa.bool_()), negate, e)


def _like_test(e: ex.Like, found: Found, nan: int, negate: bool) -> Bound:
    """LIKE: a test of the kernels if the pattern is an exact text or a prefix, else a residual."""
    from pageseek.predicate import like  # late, as below: for these conditions alone
    from pageseek.predicate.column_pairs import family

    leaf, leaf_type = found
    kind = family(leaf_type)
    if kind not in ("text", "binary") or isinstance(leaf_type.type, pa.UuidType):
        raise PredicateError(
            f"{e!r}: column of type {leaf_type.type} is no text; compare it with ="
        )
    is_text = kind == "text"
    if isinstance(e.pattern, str) != is_text:
        how = "give str for text and bytes for binary columns"
        if e.column.place is not None:
            how = "write 'text' for columns of text and X'00ff' for binary ones"
        raise PredicateError(f"{e!r}: {how}")
    pattern = like.compile_pattern(e.pattern, e.escape)
    if pattern.exact:
        plain = b"".join(part for part in pattern.parts if isinstance(part, bytes))
        op, fitted = fit("=", plain, leaf_type, nan)
        if op == "never" and not negate:
            return BoundConst(False)
        literals = pack_literals([fitted], leaf_type)
        return BoundLeaf(leaf, leaf_type, KERNELS[op], literals, negate, nan, e)
    has_prefix = leaf_type.kind in BYTES_KINDS  # values of a fixed width have no kernel for it
    if has_prefix and pattern.only_prefix:
        literals = pack_literals([pattern.prefix], leaf_type)
        return BoundLeaf(leaf, leaf_type, rows.OP_PREFIX, literals, negate, nan, e)
    residual = BoundResidual(
        (input_leaf(found, e),),
        like.matcher(pattern, is_text),
        negate,
        e,
        test=BoundPattern(leaf, leaf_type, PATTERN, NO_LITERALS, negate, nan, e),
    )
    if negate or not pattern.prefix or not has_prefix:
        return residual
    prefix = pattern.prefix.decode("utf-8", "surrogatepass") if is_text else pattern.prefix
    literals = pack_literals([pattern.prefix], leaf_type)
    source = ex.StartsWith(e.column, prefix)
    return BoundAnd(
        (BoundLeaf(leaf, leaf_type, rows.OP_PREFIX, literals, False, nan, source), residual)
    )


def _ilike_test(e: ex.ILike, found: Found, nan: int, negate: bool) -> Bound:
    """LIKE without regard to case: a residual, beside a test of what precedes the first letter of the pattern."""
    from pageseek.predicate import like
    from pageseek.predicate.column_pairs import family

    leaf, leaf_type = found
    if family(leaf_type) != "text":
        raise PredicateError(f"{e!r}: column of type {leaf_type.type} is no text; case is of text")
    pattern = like.compile_pattern(e.pattern, e.escape)
    match = like.matcher(pattern.lowered(), True)

    def evaluate(values: list[pa.ChunkedArray]) -> Any:
        try:
            return match([like.lower(values[0])])
        except pa.ArrowInvalid as error:
            raise PredicateError(f"{e!r}: a value is no text in UTF-8 ({error})") from error

    residual = BoundResidual((input_leaf(found, e),), evaluate, negate, e)
    prefix = pattern.caseless_prefix
    if negate or not prefix or leaf_type.kind not in BYTES_KINDS:
        return residual
    source = ex.StartsWith(e.column, prefix.decode())
    literals = pack_literals([prefix], leaf_type)
    return BoundAnd(
        (BoundLeaf(leaf, leaf_type, rows.OP_PREFIX, literals, False, nan, source), residual)
    )


def columns_test(e: ex.CompareColumns, one: Found, other: Found, nan: int, negate: bool) -> Bound:
    """Two columns of the same row compared."""
    from pageseek.predicate.column_pairs import comparable, comparison, uncomparable

    a, b = one[1], other[1]
    if a.is_null or b.is_null:
        return BoundConst(False)
    if not comparable(a, b):
        raise uncomparable(e, a, b)
    evaluate = comparison(a, e.op, b, nan == rows.NAN_SPARK)
    return BoundResidual((input_leaf(one, e), input_leaf(other, e)), evaluate, negate, e)


# conditions on the values of one leaf, and what binds them
OF_ONE_LEAF: dict[type[ex.Expression], Callable[[Any, Found, int, bool], Bound]] = {
    ex.Compare: _compare_test,
    ex.IsIn: _list_test,
    ex.IsNan: _nan_test,
    ex.StartsWith: _prefix_test,
    ex.Like: _like_test,
    ex.ILike: _ilike_test,
}
