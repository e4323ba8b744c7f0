"""Columns with one value in all rows of a file: the value of its folder, or null because the file lacks the column.

A condition on such a column is decided once for the file, by the kernel that would evaluate the rows.
"""

from __future__ import annotations

import operator

import pyarrow as pa

from pageseek.format.schema import Leaf
from pageseek.format.types import (
    ABSENT,
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    K_BOOL,
    K_BYTES,
    K_D128,
    K_D256,
    K_FIXED,
    K_I32,
    K_I64,
    K_LARGE_BYTES,
    LeafType,
    SchemaElement,
)
from pageseek.predicate.bound import (
    Bound,
    BoundConst,
    BoundLeaf,
    BoundResidual,
    Unjoined,
    fold,
)
from pageseek.predicate.in_literals import DTYPES
from pageseek.predicate.masks import compared

_NO_ELEMENT = SchemaElement._make([ABSENT] * len(SchemaElement._fields))


class ConstantColumn(Leaf):
    """A column with one value in all rows of a file. `values` holds it; None is a null of any type.

    `struct`: the struct around it and how that is compared; in the rows where it is null, so is the column. None: there is none.
    """

    __slots__ = ("struct", "values")

    def __init__(
        self,
        path: tuple[str, ...],
        values: pa.Array | None,
        struct: tuple[Leaf, LeafType] | None = None,
    ) -> None:
        super().__init__(-1, path, _NO_ELEMENT, 1, 0, -1)
        self.values, self.struct = values, struct

    @property
    def scalar(self) -> pa.Scalar:
        """The value."""
        assert self.values is not None
        return self.values[0]


# the physical types of numbers, in the order of their kinds
_PHYSICAL = (INT32, INT32, INT32, INT64, INT32, INT32, INT32, INT64, FIXED, FLOAT, DOUBLE)
_KINDS: dict[pa.DataType, tuple[int, int]] = {
    pa.bool_(): (BOOLEAN, K_BOOL),
    pa.date32(): (INT32, K_I32),
    pa.string(): (BYTE_ARRAY, K_BYTES),
    pa.binary(): (BYTE_ARRAY, K_BYTES),
    pa.large_string(): (BYTE_ARRAY, K_LARGE_BYTES),
    pa.large_binary(): (BYTE_ARRAY, K_LARGE_BYTES),
} | {
    pa.from_numpy_dtype(dtype): (physical, kind)
    for (kind, dtype), physical in zip(DTYPES.items(), _PHYSICAL, strict=True)
}


def constant_leaf_type(kind: pa.DataType) -> LeafType | None:
    """How values of an Arrow type are compared; None if no kernel compares them."""
    t, storage, width = pa.types, kind, 0
    while t.is_dictionary(storage) or isinstance(storage, pa.BaseExtensionType):
        storage = storage.value_type if t.is_dictionary(storage) else storage.storage_type
    if storage in (pa.string_view(), pa.binary_view()):
        storage = pa.string() if storage == pa.string_view() else pa.binary()
    found = _KINDS.get(storage)
    if t.is_time32(storage):
        found = INT32, K_I32
    elif t.is_timestamp(storage) or t.is_time64(storage) or t.is_duration(storage):
        found = INT64, K_I64
    elif t.is_decimal128(storage) or t.is_decimal256(storage):
        found = FIXED, K_D128 if t.is_decimal128(storage) else K_D256
    elif t.is_fixed_size_binary(storage):
        found, width = (FIXED, K_FIXED), storage.byte_width
    if found is None:
        return None
    physical, made = found
    return LeafType((physical, width, made, width, 0, int(t.is_string(storage)), 0), storage, kind)


NULL_LEAF_TYPE = LeafType((INT32, 0, K_I32, 0, 0, 0, 0), pa.int32(), pa.null())


def decide(bound: Bound, values: pa.Array) -> bool:
    """Whether a bound condition on one column is TRUE for its only value."""

    def of_part(part: Unjoined) -> bool:
        if isinstance(part, BoundConst):
            return part.value
        if isinstance(part, BoundResidual):
            return part.mask([pa.chunked_array([values])])[1] > 0
        assert isinstance(part, BoundLeaf)
        return compared(part, part.leaf_type, values)[1] > 0

    return fold(
        bound, of_part, lambda is_and, parts: (all if is_and else any)(parts), operator.not_
    )
