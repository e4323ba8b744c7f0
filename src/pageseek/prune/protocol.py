"""The protocol between the driver and a mechanism that prunes: one of this package, or a kind of embedded index."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.format.file_attached import WHOLE
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.fetch import Kept
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.predicate.expression import Expression
from pageseek.predicate.masks import compared

__all__ = ["Catalog", "Price", "Proof", "PruneContext", "Pruner", "passing"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proved of one test in one row group: the rows that `may` pass it, and those that all do, the `must`.

    A row passes where the comparison is TRUE; with a negated test, where it is FALSE. `exact`: all values of the row group
    are known, so that a mechanism that speaks of the row group as a whole can add nothing.
    """

    may: rows.RowRanges
    must: rows.RowRanges
    exact: bool = False


@dataclass(slots=True)
class PruneContext:
    """Where a pruner works: one row group, and the rows of it that are still in question.

    kept : Kept or None
        Takes bytes that the scan need not read again.
    distinct_index : str or None
        The column that the caller names for a list in DataFusion's form.
    kind : str
        The kind of embedded index whose indexes `index` gives.
    """

    file: FileMetadata
    row_group: int
    ranges: rows.RowRanges
    options: Options
    report: Report
    kept: Kept | None = None
    distinct_index: str | None = None
    kind: str = ""

    def to_fetch(self, offset: int, length: int) -> int:
        """The bytes of a range that a request would have to bring; what came with the end of the file is not among them."""
        return self.file.to_fetch(offset, length)

    def index(self, test: BoundLeaf) -> Any:
        """What `load` of an embedded kind made of the index of a test's column; None where the file has no usable one."""
        return self.file.indexes.get((self.kind, test.leaf.index, test.leaf_type))

    def ignore(self, test: BoundLeaf, why: object) -> None:
        """Note why the embedded index of a test's column is not used, in this scan and in later ones."""
        text = f"{self.file.name}: {test.leaf.name!r}: index of kind {self.kind!r} ignored: {why}"
        self.file.ignore_index(WHOLE, test.leaf, text, self.report)


@dataclass(frozen=True, slots=True)
class Price:
    """What it takes to put a test to a mechanism.

    `fetched`: about the bytes that a request would have to bring for it (`PruneContext.to_fetch`), 0 where all are in
    memory. `decoded`: the bytes that are decoded as pages are, wherever they lie. `pays`: whether the mechanism itself
    finds that worthwhile beside the bytes `at_stake`, those of the column that it may spare; the driver then weighs the
    price, and the wait for what is fetched, against all that is read of the row group.
    """

    fetched: int
    decoded: int = 0
    pays: bool = True
    at_stake: int = 0

    @property
    def size(self) -> int:
        """The bytes that it counts for."""
        return max(self.fetched, self.decoded)


class Pruner(Protocol):
    """One mechanism. It does no IO: it asks for what it needs to read.

    A test is `test.op` on the column `test.leaf` (its `name`, `path`, `index`); `passing` puts values to it. Several
    threads may ask one pruner at a time.

    name : str
        As `explain` and `prune=[...]` know it.
    cheap : bool
        It is put to every row group, whatever it proved of others.
    whole : bool
        What it reads of a file is the same for every row group, and is read once.
    coarse : bool
        It says something of all rows of a row group, or nothing.
    """

    name: str
    cheap: bool
    whole: bool
    coarse: bool

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer has anything of this column that the mechanism needs. It is asked once for a file."""
        ...

    def price(self, context: PruneContext, test: BoundLeaf) -> int | Price | None:
        """About the bytes that it would have to fetch for this test, as a number or a `Price`; None where it can prove
        nothing. Bytes in memory cost nothing: `context.to_fetch(offset, length)` tells.
        """
        ...

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Yield the ranges that are wanted, receive their bytes in that order, return a proof for each test.

        A test of which nothing is proved gets None. What cannot be trusted is a note in the report, no error. A range
        of which not all bytes could be had comes as an empty memoryview.
        """
        ...


class Catalog(Protocol):
    """What is known of files from outside of them: it is asked before they are opened."""

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
            By their names the files of which something is known. Of a file without rows nothing is read; a file that is not
            there is read as if there were no catalog.
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
