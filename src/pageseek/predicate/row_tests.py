"""Conditions on one leaf that the core tests as it decodes: rows that do not pass are never written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pageseek._core import decode as core
from pageseek._core import rows
from pageseek.format.types import K_BOOL, K_VIEWS, LeafType
from pageseek.predicate.bound import Bound, BoundLeaf, conjuncts
from pageseek.predicate.masks import Bitmap, joined


def row_tests(
    condition: Bound, leaf_type: LeafType, num_rows: int, keeps: bool
) -> rows.RowTests | None:
    """The tests of a condition on one flat leaf, for so many rows. None: the core tests no such values while it decodes, or the
    condition is more than tests that all have to be TRUE.

    `keeps`: whether the values that pass are wanted.
    """
    if leaf_type.is_null or leaf_type.kind in (K_BOOL, K_VIEWS):
        return None
    tests = []
    for test in conjuncts(condition):
        if type(test) is not BoundLeaf or test.op < 0:
            return None
        tests.append((test.op, test.negate, test.against(num_rows), test.nan))
    return rows.RowTests(leaf_type.kind, leaf_type.width, tests, keeps)


def rows_that_pass(decoders: Sequence[core.LeafDecoder]) -> tuple[Bitmap, int] | None:
    """The rows that passed the tests of decoders, one decoder's behind those of the other, and their number."""
    masks = []
    for decoder in decoders:
        found = decoder.passing
        if found is None:
            return None
        n, passed, mask = found
        masks.append((np.frombuffer(mask, np.uint8), passed, n))
    return joined(masks)
