"""The distinct values of a column, for the whole file and for each row group (docs/format.md, kind `distinct`).

`prune.value_lists` evaluates tests by them, since a scan of many similar files evaluates the lists of all files at once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pageseek._core import rows
from pageseek.base.errors import CoreError
from pageseek.base.report import format_size
from pageseek.format.value_list import COMPLETE, NANS, NULLS, VERSION, Distinct
from pageseek.format.value_list import KIND as NAME
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.kind import IndexedColumn, InvalidIndexError, NotBuiltError
from pageseek.prune.protocol import Proof, PruneContext
from pageseek.prune.value_lists import ValueLists

if TYPE_CHECKING:
    from pageseek.index.distinct_builder import FileValues, GroupValues, ListBuilder

# values, and bytes, that `verify` gathers beyond those of the list
BEYOND, BEYOND_BYTES = 1 << 16, 16 << 20


class DistinctKind:
    """Rules out row groups, and proves that all rows match, by the distinct values of a column."""

    name, version = NAME, VERSION
    title = "list of distinct values"
    cheap = coarse = patterns = near_footer = True

    def build(self, column: IndexedColumn) -> ListBuilder:
        """The values of all row groups, put together."""
        from pageseek.index.distinct_builder import ListBuilder

        return ListBuilder(column, partial(_payload, column))

    def load(self, column: IndexedColumn, payload: memoryview) -> ValueLists:
        """The values as the scan reads them."""
        return ValueLists.of_file(payload, column.num_row_groups, column.leaf_type)

    def prune(self, context: PruneContext, tests: Sequence[BoundLeaf]) -> list[Proof | None]:
        """Evaluate the tests on the values. The first row group evaluates for all."""
        return [_proof(context, test) for test in tests]

    def verify(
        self, column: IndexedColumn, found: Distinct, row_group: int
    ) -> Generator[None, Any, list[str]]:
        """What the list of a row group lacks, or has beyond the data."""
        from pageseek.index.distinct_builder import gather

        most = largest = 0  # values are not compared with a list that does not claim to be complete
        if found.flags[row_group] & COMPLETE:
            most, largest = found.n + BEYOND, 2 * len(found.values) + BEYOND_BYTES
        real = yield from gather(column, most=most, largest=largest)
        return _differences(found, column, row_group, real)

    def parse(self, column: IndexedColumn, payload: memoryview) -> Distinct:
        """The values with the bytes of the file, for `verify`. InvalidIndexError: they make no sense."""
        found = Distinct.of(payload, column.num_row_groups)
        found.array(column.leaf_type)
        return found


def _proof(context: PruneContext, test: BoundLeaf) -> Proof | None:
    found: ValueLists | None = context.index(test)
    if found is None:
        return None
    answer, group = found.answer(test, context.report), context.row_group
    every = rows.RowRanges.all(context.file.group_rows[group])
    none = rows.RowRanges.empty()
    may, must = every if answer.may[group] else none, every if answer.must[group] else none
    return Proof(may, must, bool(found.exact[group]))


def _payload(column: IndexedColumn, values: FileValues) -> bytes:
    """The payload, as docs/format.md has it."""
    from pageseek.index.distinct_builder import MAX_LIST_BYTES, MAX_VALUES

    made = values.index()
    if made is None:
        raise NotBuiltError(f"more than {MAX_VALUES:,}, or {format_size(MAX_LIST_BYTES)}")
    try:
        made.array(column.leaf_type)
    except (InvalidIndexError, CoreError):
        raise NotBuiltError("some are none of its type") from None
    return made.to_bytes()


def _differences(
    found: Distinct, column: IndexedColumn, row_group: int, real: GroupValues
) -> list[str]:
    import pyarrow as pa

    from pageseek.base.late_modules import compute as pc
    from pageseek.index.distinct_builder import values_of

    wrong = []
    flags = int(found.flags[row_group])
    if bool(flags & NULLS) != real.nulls:
        wrong.append("it has nulls" if real.nulls else "it has no nulls")
    if not flags & COMPLETE:
        return wrong
    if real.values is not None and bool(flags & NANS) != real.nans:
        wrong.append("it has NaN" if real.nans else "it has no NaN")
    values = values_of(found, column.leaf)
    if found.has is not None:
        bits = np.unpackbits(found.has[row_group], count=found.n, bitorder="little")
        values = values.filter(pa.array(bits.astype(bool)))
    if real.values is None:
        return [*wrong, f"it has many more values than the {len(values)} listed"]
    n, missing = len(real.values), 0
    if n:
        missing = n - pc.sum(pc.is_in(real.values, value_set=values)).as_py()
    if missing:
        wrong.append(f"{missing} of its {n} values are not listed")
    if found.has is not None and len(values) - (n - missing):
        wrong.append("values are listed that it has not")
    return wrong


KIND = DistinctKind()
