"""What a mechanism that prunes looks like to the driver: those of this package, and kinds of embedded index."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options
from pageseek.io.fetch import Kept
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.predicate.masks import compared

__all__ = ["Price", "Proof", "PruneContext", "Pruner", "passing"]


@dataclass(frozen=True, slots=True)
class Proof:
    """Of one test in one row group: the rows that `may` pass it, and those that surely do, the `must`.

    To pass is to be TRUE; of a negated test, that the comparison is FALSE. `exact`: it is known which values the row group
    has, so that who judges it as a whole can add nothing.
    """

    may: rows.RowRanges
    must: rows.RowRanges
    exact: bool = False


@dataclass(slots=True)
class PruneContext:
    """Where a pruner works: one row group, and the rows of it that are still in question. What is `kept` the scan
    need not read again.
    """

    file: FileMetadata
    row_group: int
    ranges: rows.RowRanges
    options: Options
    report: Report
    kept: Kept | None = None
    distinct_index: str | None = (
        None  # the column that the caller says a list in the published form is of
    )

    def to_fetch(self, offset: int, length: int) -> int:
        """Bytes of a range that a request would have to bring: none of what came with the end of the file."""
        return self.file.to_fetch(offset, length)


@dataclass(frozen=True, slots=True)
class Price:
    """What it takes to put a test to a mechanism.

    `fetched`: about the bytes that a request would have to bring for it (`Site.to_fetch`), 0 where all are in memory.
    `decoded`: those that are decoded as pages are, wherever they lie. `pays`: whether the mechanism itself finds that worth
    while beside the `stake`, the bytes of the column that it may spare; the driver then weighs it, and the wait for what
    is fetched, against all that is read of the row group.
    """

    fetched: int
    decoded: int = 0
    pays: bool = True
    stake: int = 0

    @property
    def size(self) -> int:
        """The bytes that it counts for."""
        return max(self.fetched, self.decoded)


class Pruner(Protocol):
    """One mechanism. It does no IO: what it needs to read, it asks for.

    A test is `test.op` on the column `test.leaf` (its `name`, `path`, `index`); `passing` puts values to it. Several
    threads may ask one pruner at a time.
    """

    name: str  # as `explain` and `prune=[...]` know it
    cheap: bool  # so that it is put to every row group, whatever it proved of others
    # so that what it reads of a file is the same for every row group, and is read once
    whole: bool
    coarse: bool  # so that it says something of all rows of a row group, or nothing

    def cost(self, context: PruneContext, test: BoundLeaf) -> int | Price | None:
        """About the bytes that it would have to fetch for this test, as a number or a `Price`; None where it can prove
        nothing. Bytes in memory cost nothing: `site.to_fetch(offset, length)` tells.
        """
        ...

    def judge(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Yield the ranges that are wanted, receive their bytes in that order, return a proof for each test.

        A test of which nothing is proved gets None. What cannot be trusted is a note in the report, no error. A range
        of which not all bytes could be had comes as a memoryview of none.
        """
        ...


def passing(test: BoundLeaf, values: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values pass a test, as they would in a column: with its meaning of NaN, a null passes nothing but IS NULL.

    `values`: of any type that casts to the column's.
    """
    if test.leaf_type.is_null:  # of a column without values, which has no kernel
        return np.full(len(values), test.op == rows.OP_IS_NULL and not test.negate)
    array = values.cast(test.leaf_type.storage)
    if array.offset:
        array = pa.concat_arrays([array.slice(0, 0), array])  # bits cannot be pointed into
    mask, _, n = compared(test, test.leaf_type, array)
    return np.unpackbits(mask, count=n, bitorder="little").view(np.bool_)
