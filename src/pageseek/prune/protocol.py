"""The protocol between the driver and a mechanism that prunes: one of this package, or a kind of embedded index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.late_modules import npt
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.fetch import Kept
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf, BoundPattern
from pageseek.predicate.expression import Expression
from pageseek.predicate.masks import compared

__all__ = ["Catalog", "Price", "Proof", "PruneContext", "Pruner", "passing"]

DOUBT = (
    8  # a pruner has to be able to save so many times the bytes that it reads: it may prove nothing
)


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof of one test in one row group. `may`: the rows that may pass it. `must`: the rows that are known to pass.

    A row passes where the comparison is TRUE; with a negated test, where it is FALSE. `exact`: all values of the row group
    are known, so a mechanism that speaks of the row group as a whole can add nothing. `counted`: the rows are only as many as
    those that pass, which is allowed where `PruneContext.counts_only`; no other proof can be joined with such a one.
    """

    may: rows.RowRanges
    must: rows.RowRanges
    exact: bool = False
    counted: bool = False


@dataclass(slots=True)
class PruneContext:
    """What a pruner works on: one row group, and its rows that are still in question.

    kept : Kept or None
        Takes bytes that the scan need not read again.
    distinct_index : str or None
        The column that the caller names for a list in DataFusion's form.
    required : sequence of BoundLeaf
        Tests that every row of the result passes. Of one of them a proof may leave out rows that fail another.
    kind : str
        The kind of embedded index whose indexes `index` gives.
    counts_only : bool
        The filter is the one test, and only the number of rows is wanted: a proof of a whole row group may name as many others.
    """

    file: FileMetadata
    row_group: int
    ranges: rows.RowRanges
    options: Options
    report: Report
    kept: Kept | None = None
    distinct_index: str | None = None
    required: Sequence[BoundLeaf] = ()
    kind: str = ""
    counts_only: bool = False

    def to_fetch(self, offset: int, length: int) -> int:
        """The bytes of a range that a request would have to fetch: 0 if they came with the end of the file."""
        return self.file.to_fetch(offset, length)

    def index(self, test: BoundLeaf) -> Any:
        """The index of a test's column, as `load` of the embedded kind returned it; None where the file has no usable one."""
        return self.file.indexes.get((self.kind, test.leaf.index, test.leaf_type))

    def ignore(self, test: BoundLeaf, why: object) -> None:
        """Note why the embedded index of a test's column is not used, in this scan and in later ones."""
        text = f"{self.file.name}: {test.leaf.name!r}: index of kind {self.kind!r} ignored: {why}"
        self.file.ignore_index(None, test.leaf, text, self.report)


@dataclass(frozen=True, slots=True)
class Price:
    """What it costs to put a test to a mechanism.

    `fetched`: about the bytes that a request would have to fetch (`PruneContext.to_fetch`), 0 if all are in memory.
    `decoded`: the bytes that are decoded as pages are, in memory or not. `at_stake`: the bytes of the column that it may
    save. `pays`: whether the mechanism itself finds the price worth these bytes. The driver then weighs the price, and
    the wait for what is fetched, against all that is read of the row group.
    """

    fetched: int
    decoded: int = 0
    pays: bool = True
    at_stake: int = 0

    @property
    def size(self) -> int:
        """The bytes that stand for the price."""
        return max(self.fetched, self.decoded)


class Pruner(Protocol):
    """One mechanism. It does no IO: it yields the ranges that it needs.

    A test is `test.op` on the column `test.leaf` (its `name`, `path`, `index`); `passing` says which values pass it. Several
    threads may use one pruner at a time.

    name : str
        As `explain` and `prune=[...]` know it.
    cheap : bool
        Every row group is put to it, even if it proved nothing of others.
    whole : bool
        It reads the same bytes for every row group of a file, once.
    coarse : bool
        Its proofs are of all rows of a row group, or of none.
    patterns : bool
        It is asked about LIKE, too: tests whose `op` is none of the comparisons, which `passing` evaluates.
    """

    name: str
    cheap: bool
    whole: bool
    coarse: bool
    patterns: bool

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer has what the mechanism needs of this column. It is asked once for a file."""
        ...

    def price(self, context: PruneContext, test: BoundLeaf) -> int | Price | None:
        """About the bytes that it would have to fetch for this test, as a number or a `Price`; None where it can prove
        nothing. Bytes in memory cost nothing (`context.to_fetch(offset, length)`).
        """
        ...

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Asking[list[Proof | None]]:
        """Yield the ranges that are wanted, receive their bytes in that order, return a proof for each test.

        None stands for a test of which nothing is proved. An index that cannot be trusted is a note in the report, no error.
        A range that could not be read whole comes as an empty memoryview.
        """
        ...


class Catalog(Protocol):
    """Knowledge of files that lies outside of them. It is asked before they are opened."""

    name: str  # as `explain` and `prune=[...]` know it

    def select(self, files: Sequence[str], condition: Expression) -> Mapping[str, Any]:
        """The rows of files that may pass a condition: RowRanges, or numbers of rows from 0, counted in each file.

        Parameters
        ----------
        files : sequence of str
            The names of the files of a scan, in order.
        condition : Expression
            Its filter.

        Returns
        -------
        mapping
            The rows by the name of the file. A file with no rows is not read; a file that is missing here is read as if there
            were no catalog.
        """
        ...


def passing(test: BoundLeaf, values: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values pass a test, as they would in a column, with the test's meaning of NaN. A null passes only IS NULL.

    `values`: of any type that casts to the column's.
    """
    if test.leaf_type.is_null:  # a column without values has no kernel
        return np.full(len(values), test.op == rows.OP_IS_NULL and not test.negate)
    array = values.cast(test.leaf_type.storage)
    if isinstance(test, BoundPattern):
        return test.mask(array)
    if array.offset:
        array = pa.concat_arrays([array.slice(0, 0), array])  # a bitmap has to begin with a byte
    mask, _, n = compared(test, test.leaf_type, array)
    return np.unpackbits(mask, count=n, bitorder="little").view(np.bool_)
