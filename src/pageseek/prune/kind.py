"""What a kind of index is: one object that builds an index of a column, prunes with it, and verifies it.

A kind is registered once (`registry.register`). All of its methods but `name` are optional: one without `build`
only prunes, one without `prune` is only embedded in files.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.format.embedded import InvalidIndexError
from pageseek.format.schema import Leaf
from pageseek.format.types import FLOAT_KINDS, K_FIXED, LeafType, to_arrow
from pageseek.predicate.bound import BoundLeaf

__all__ = [
    "Builder",
    "IndexedColumn",
    "InvalidIndexError",
    "Kind",
    "NotBuiltError",
    "PageValues",
    "required_values",
]


class NotBuiltError(Exception):
    """A column gets no index: raised by a builder. `attach` passes on the message, which says why."""


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """The column of an index. `group_rows`: the rows of each row group of the file."""

    leaf: Leaf
    leaf_type: LeafType
    group_rows: Sequence[int]

    @property
    def name(self) -> str:
        """The path of the column, with dots."""
        return self.leaf.name

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values that `Builder.collect` is sent."""
        return self.leaf_type.storage

    @property
    def num_row_groups(self) -> int:
        """How many row groups the file has."""
        return len(self.group_rows)


class PageValues(Protocol):
    """The values of one data page. Rows count from the first of the row group."""

    first_row: int
    num_rows: int
    nulls: int

    @property
    def values(self) -> pa.Array:
        """One value for each row, of the type of the column; null where the row has none."""
        ...


class Builder(Protocol):
    """Builds the index of one column of one file.

    It may have two more attributes. `nbytes`: the bytes that it holds; if all builders together hold too much, some are
    dropped. `chunks`: the number of row groups that the index covers, for the result of `attach`.
    """

    def collect(self) -> Generator[None, PageValues | None, Any]:
        """Read one row group: a generator that is sent its pages in order, then None, and returns its result.

        Several threads read row groups at a time, so it must not change the builder.
        """
        ...

    def add(self, row_group: int, part: Any) -> None:
        """Add the result of `collect` for a row group. Row groups come in the order of the file, in one thread. NotBuiltError: the
        column gets no index.
        """
        ...

    def finish(self) -> bytes | bytearray:
        """The payload; called after the last row group. NotBuiltError: the column gets no index."""
        ...


class Kind(Protocol):
    """A kind of index. Only the name is required.

    The attributes and methods that are used:

    name : str
        Unique, and a plain word. It stands in files, `explain`, `prune=[...]` and `attach(indexes={name: [column, ...]})`.
    version : int
        The version of the payload's form, 1 if it is missing. A payload of another version is ignored.
    build(column) -> Builder
        Called by `attach` for each column. Without it nothing is embedded.
    load(column, payload) -> object
        Parses the payload (a memoryview). The result is kept with the file for later scans. After any exception the payload is
        ignored, with a note. Without this method the payload itself is kept, as bytes.
    answers(test) -> bool
        Whether the index may rule out rows for a test; the payload is not read for other tests. True if it is missing.
    prune(context, tests)
        What the index proves of each test: a list of `Proof` or None, or a generator that yields the (offset, length)
        ranges that it wants, receives their bytes, and returns that list. `context.index(test)` is the result of `load`
        for the column of a test.
    verify(column, payload, row_group) -> generator
        It is sent the pages of a row group in order, then None, and returns the faults of the payload, a list of sentences.
        Without this method `verify` builds the index again and compares the bytes.
    reason : str
        The sentence of `explain` for the rows that it ruled out: why no row in them matches.
    patterns : bool
        Whether it is asked about LIKE, as in `Pruner`; False if it is missing.
    price(context, test), cheap, whole, coarse
        For a kind without `build`, as in `Pruner`.
    """

    name: str


def required_values(test: BoundLeaf) -> pa.Array | None:
    """The values of `=` or IN, one of which a row must have to pass the test; None for any other test.

    A floating-point zero is among them with both signs.
    """
    equal = rows.OP_NE if test.negate else rows.OP_EQ
    listed = test.op == rows.OP_IN and not test.negate
    leaf_type = test.leaf_type
    if not (test.op == equal or listed) or test.leaf.group or leaf_type.is_null:
        return None
    n, data, offsets = test.literals
    if leaf_type.kind == K_FIXED and offsets is not None:
        return None  # a literal has another width
    made = to_arrow(leaf_type, n, 0, None, offsets, data)
    if leaf_type.kind in FLOAT_KINDS:
        numbers = made.to_numpy(zero_copy_only=False)
        if (numbers == 0).any():
            made = pa.concat_arrays([made, pa.array(np.array([0.0, -0.0], numbers.dtype))])
    return made
