"""Rows that passed a filter, selected from the decoded columns of the filter."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pageseek.format.types import LeafType, Options
from pageseek.predicate import masks
from support.opened import open_metadata
from support.writer import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED, INT32, INT64, STRING, Column, write

VALUES = {
    "int64": (INT64, [i * i for i in range(40)]),
    "int32": (INT32, [-i for i in range(40)]),
    "double": (DOUBLE, [i / 3 for i in range(40)]),
    "bool": (BOOLEAN, [i % 3 == 1 for i in range(40)]),
    "string": (BYTE_ARRAY, [b"x" * (i % 5) + b"%d" % i for i in range(40)]),
    "fixed": (FIXED, [b"%03d" % i for i in range(40)]),
}


def constant_leaf_type(name: str) -> LeafType:
    physical, values = VALUES[name]
    knobs = {"logical": STRING} if name == "string" else {}
    if name == "fixed":
        knobs = {"type_length": 3}
    tree = open_metadata(write([Column("x", physical, values, **knobs)])).schema_tree
    return tree.leaf_type(tree.leaf(0), Options())


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_of_a_bitmap_whatever_arrays_hold_them(name: str, nulls: bool) -> None:
    form, dice = constant_leaf_type(name), random.Random(name)
    rows = [None if nulls and i % 4 == 2 else v for i, v in enumerate(VALUES[name][1])]
    if name == "string":
        rows = [v if v is None else v.decode() for v in rows]
    for _ in range(200):
        cuts = sorted(dice.sample(range(1, len(rows)), dice.randrange(4)))
        arrays = [
            pa.array(rows[a:b], form.storage)
            for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        ]
        keep = [dice.random() < dice.choice([0.05, 0.5, 1.0]) for _ in rows]
        mask = np.packbits(keep, bitorder="little")
        found = masks.picked(form, arrays, mask, len(rows), sum(keep))
        assert [len(a) for a in found] == [
            sum(keep[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        ]
        for array in found:
            array.validate(full=True)
            assert array.offset == 0
        assert [v for a in found for v in a.to_pylist()] == [
            v for v, kept in zip(rows, keep, strict=True) if kept
        ]
