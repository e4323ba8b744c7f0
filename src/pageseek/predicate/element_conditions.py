"""Conditions on elements of lists whose fields a file lacks, and that have a default there: evaluated on the columns of the dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.base.arrays import booleans, of_numpy
from pageseek.base.late_modules import compute as pc
from pageseek.format.types import LeafType
from pageseek.predicate import expression as ex
from pageseek.predicate.bound import Bound, BoundConst, BoundLeaf, BoundResidual, Unjoined, fold
from pageseek.predicate.leaf_conditions import input_leaf
from pageseek.predicate.masks import compared
from pageseek.predicate.schema_names import WholeColumn

Flags = npt.NDArray[np.bool_]
Test = Callable[[pa.Array], Flags]


def any_default(
    e: ex.AnyElement, found: WholeColumn, bind: Callable[[LeafType], Bound], negate: bool
) -> Bound:
    """`any()` of a field with a default. `bind` makes the test of an element; with `negate`, no element may fail it."""
    if not found.leaves:  # the file lacks the list
        return BoundConst(False)
    test, kind = bind(found.leaf_type), found.leaf_type

    def passes(values: pa.Array) -> Flags:
        values = values if values.type == kind.storage else values.cast(kind.storage)
        n = len(values)

        def of_part(part: Unjoined) -> Flags:
            if isinstance(part, BoundConst):
                return np.full(n, part.value)
            if isinstance(part, BoundResidual):
                bits = part.mask([pa.chunked_array([values])])[0]
            else:
                assert isinstance(part, BoundLeaf)
                bits = compared(part, kind, values)[0]
            return np.unpackbits(bits, count=n, bitorder="little").view(np.bool_)

        def join(is_and: bool, parts: Any) -> Flags:
            made: Flags = (np.logical_and if is_and else np.logical_or).reduce(list(parts))
            return made

        return fold(test, of_part, join, np.logical_not)

    def evaluate(values: list[pa.ChunkedArray]) -> pa.ChunkedArray:
        column = found.fill(values, len(values[0]))
        masks = [_some(chunk, found.inside, passes, negate) for chunk in column.chunks]
        return pa.chunked_array([of_numpy(mask.view(np.uint8)).cast(pa.bool_()) for mask in masks], pa.bool_())  # fmt: skip

    inputs = tuple(input_leaf(leaf, e) for leaf in found.leaves)
    return BoundResidual(inputs, evaluate, False, e, found.columns)


def _some(array: pa.Array, path: tuple[str, ...], passes: Test, every: bool) -> Flags:
    """For which values some element at a path passes; with `every`, all elements do. A list that is null never passes."""
    t, kind = pa.types, array.type
    if t.is_struct(kind):
        return _some(pc.struct_field(array, path[0]), path[1:], passes, every)
    is_map = t.is_map(kind)
    if not is_map and not (t.is_list(kind) or t.is_large_list(kind)):
        return passes(array)
    if is_map:
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        bits = array.is_valid()
        array = pa.ListArray.from_arrays(array.offsets, entries, mask=pc.invert(bits))
    elif path and path[0] == "element":
        path = path[1:]
    found = _some(pc.list_flatten(array), path, passes, every)
    parents = np.asarray(pc.list_parent_indices(array))
    hits = np.bincount(parents[~found if every else found], minlength=len(array)) > 0
    made: Flags = (~hits if every else hits) & booleans(array.is_valid())
    return made
