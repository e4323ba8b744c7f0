"""The hashes of the values of which a row needs one to pass a test, for indexes of hashes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from pageseek.base.arrays import distinct_numbers
from pageseek.base.late_modules import compute as pc
from pageseek.base.late_modules import npt
from pageseek.format.schema import Schema
from pageseek.format.value_hashes import can_hash, hashed_form, hashes_of, hashes_of_key
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.kind import required_values

MOST_VALUES = 65_536  # of an IN that is looked up


class _Same:
    """A test that equals itself only."""

    __slots__ = ("test",)

    def __init__(self, test: BoundLeaf) -> None:
        self.test = test

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.test is self.test

    def __hash__(self) -> int:
        return id(self.test)


@lru_cache(maxsize=8)  # all row groups ask for them
def _hashes_of_one(test: _Same) -> npt.NDArray[np.uint64] | None:
    values = required_values(test.test)
    if values is None or not can_hash(values.type) or len(values) > MOST_VALUES:
        return None
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return None
    return distinct_numbers(hashes_of(values))


def needed_hashes(test: BoundLeaf) -> npt.NDArray[np.uint64] | None:
    """The hashes of the values of `=` or IN, in order; None of a test that needs none, or may need NaN."""
    return _hashes_of_one(_Same(test))


@lru_cache(maxsize=8)
def _hashes_of_key(tests: tuple[_Same, ...]) -> npt.NDArray[np.uint64] | None:
    of_each = [_hashes_of_one(test) for test in tests]
    found = [one for one in of_each if one is not None]
    if len(found) < len(tests) or math.prod(map(len, found)) > MOST_VALUES:
        return None
    several = np.stack(np.meshgrid(*found, indexing="ij"), axis=-1).reshape(-1, len(tests))
    return distinct_numbers(hashes_of_key(several))


def needed_hashes_of_key(tests: Sequence[BoundLeaf]) -> npt.NDArray[np.uint64] | None:
    """The hashes of the keys of which a row needs one to pass tests of several columns, in order; None if there are too many, or a
    test needs none.
    """
    return _hashes_of_key(tuple(map(_Same, tests)))


def has_built_form(schema: Schema, test: BoundLeaf) -> bool:
    """Whether values of a test have the form in which `attach` hashed those of a file with this schema."""
    built, read = schema.parquet_leaf_type(test.leaf).storage, test.leaf_type.storage
    return can_hash(built) and can_hash(read) and hashed_form(built) == hashed_form(read)
