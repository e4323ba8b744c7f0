"""Conditions that no kernel answers from one leaf: their values are decoded, and Arrow or numpy evaluates them."""

from __future__ import annotations

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import PredicateError
from pageseek.format.types import BYTES_KINDS
from pageseek.predicate import expression as ex
from pageseek.predicate import like
from pageseek.predicate.bound import (
    INPUT,
    Bound,
    BoundAnd,
    BoundConst,
    BoundLeaf,
    BoundResidual,
)
from pageseek.predicate.column_pairs import comparable, comparison, family, uncomparable
from pageseek.predicate.in_literals import NO_LITERALS, pack_literals
from pageseek.predicate.literal import fit
from pageseek.predicate.operators import KERNELS
from pageseek.predicate.schema_names import Found


def input_leaf(found: Found, source: ex.Expression) -> BoundLeaf:
    """A leaf whose values a residual needs."""
    return BoundLeaf(*found, INPUT, NO_LITERALS, False, rows.NAN_IEEE, source)


def undecided(e: ex.Expression, negate: bool) -> BoundResidual:
    """A condition on a column in which files may differ: what one of them proves does not hold for the others."""
    return BoundResidual((), lambda _: pa.nulls(0, pa.bool_()), negate, e)


def like_test(e: ex.Like, found: Found, nan: int, negate: bool) -> Bound:
    """LIKE: a comparison or a prefix where the pattern is no more than that, else a match of the values."""
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
    residual = BoundResidual((input_leaf(found, e),), like.matcher(pattern, is_text), negate, e)
    if negate or not pattern.prefix or not has_prefix:
        return residual
    prefix = pattern.prefix.decode("utf-8", "surrogatepass") if is_text else pattern.prefix
    literals = pack_literals([pattern.prefix], leaf_type)
    source = ex.StartsWith(e.column, prefix)
    return BoundAnd(
        (BoundLeaf(leaf, leaf_type, rows.OP_PREFIX, literals, False, nan, source), residual)
    )


def columns_test(e: ex.CompareColumns, one: Found, other: Found, nan: int, negate: bool) -> Bound:
    """Two columns of the same row compared."""
    a, b = one[1], other[1]
    if a.is_null or b.is_null:
        return BoundConst(False)
    if not comparable(a, b):
        raise uncomparable(e, a, b)
    evaluate = comparison(a, e.op, b, nan == rows.NAN_SPARK)
    return BoundResidual((input_leaf(one, e), input_leaf(other, e)), evaluate, negate, e)


__all__ = ["columns_test", "input_leaf", "like_test", "undecided"]
