"""Pages against the column index; over columns, unions and intersections of the rows that remain."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from pageseek._core import rows
from pageseek.metadata import ParquetFile
from pageseek.predicate.bind import (
    INPUT,
    Bound,
    BoundAnd,
    BoundAny,
    BoundConst,
    BoundLeaf,
    BoundNot,
    BoundResidual,
    leaves_of,
)
from pageseek.report import Report
from pageseek.schema import Leaf
from pageseek.types import Options

Wanted = list[tuple[int, int]]
Touched = Callable[[int], Sequence[Leaf]]  # by row group


@dataclass(frozen=True, slots=True)
class PageProof:
    """The rows of one row group that may pass."""

    row_group: int
    ranges: rows.RowRanges


def prune_pages(
    file: ParquetFile,
    bound: Bound,
    row_groups: Sequence[int],
    touched: Touched,
    options: Options,
    report: Report,
) -> Generator[Wanted, list[memoryview], list[PageProof]]:
    """Prune the given row groups; `touched` gives the leaves that will be read of one."""
    tested = {t.leaf.index: t.leaf for t in leaves_of(bound) if not t.leaf.group and t.op != INPUT}
    yield from load_indexes(file, row_groups, touched, list(tested.values()), options, report)
    return [PageProof(group, _rows_that_may(file, bound, group, options)) for group in row_groups]


def load_indexes(
    file: ParquetFile,
    row_groups: Sequence[int],
    touched: Touched,
    tested: Sequence[Leaf],
    options: Options,
    report: Report,
) -> Generator[Wanted, list[memoryview], None]:
    """In one wave of requests, what is not at hand: the offset index of every leaf that is touched, the column
    index of those that are tested.
    """
    wanted: Wanted = []
    groups: list[tuple[int, list[Leaf], list[int], list[Leaf], list[int]]] = []

    def places(which: str, group: int, leaves: list[Leaf]) -> list[int]:
        """Of each index its place among the answers, or -1 where the file has none."""
        found = []
        for leaf in leaves:
            at = file.index_range(which, group, leaf)
            found.append(len(wanted) if at else -1)
            if at:
                wanted.append(at)
        return found

    for group in row_groups:
        pages = file.without_offset_index(group, touched(group))
        values = [leaf for leaf in tested if not file.cached_column_index(group, leaf, options)[0]]
        if pages or values:
            file.load_chunks(group, pages)
            of_pages = places("offset", group, pages)
            groups.append((group, pages, of_pages, values, places("column", group, values)))
    answers: Sequence[memoryview | None] = [*((yield wanted) if wanted else ()), None]
    for group, pages, of_pages, values, of_values in groups:
        file.load_offset_indexes(group, pages, [answers[at] for at in of_pages], report)
        for leaf, at in zip(values, of_values, strict=True):
            file.load_column_index(group, leaf, options, answers[at], report)


def _rows_that_may(file: ParquetFile, bound: Bound, group: int, options: Options) -> rows.RowRanges:
    num_rows = file.group_rows[group]
    if isinstance(bound, BoundConst):
        return rows.RowRanges.all(num_rows) if bound.value else rows.RowRanges.empty()
    if isinstance(bound, BoundLeaf):
        index = file.cached_column_index(group, bound.leaf, options)[1]
        offsets = file.cached_offset_index(group, bound.leaf)[1]
        if index is None or offsets is None or bound.leaf.group:
            return rows.RowRanges.all(num_rows)
        verdict = index.zones.probe(bound.op, bound.literals, bound.nan)
        bit = rows.MAY_FALSE if bound.negate else rows.MAY_TRUE
        return offsets.rows_of(verdict, bit)
    if isinstance(bound, (BoundResidual, BoundNot)) or (
        isinstance(bound, BoundAny) and bound.every
    ):
        return rows.RowRanges.all(num_rows)
    if isinstance(bound, BoundAny):  # where there is an offset index, pages begin with rows
        return _rows_that_may(file, bound.test, group, options)
    is_and = isinstance(bound, BoundAnd)
    found = _rows_that_may(file, bound.args[0], group, options)
    for arg in bound.args[1:]:
        if is_and and not found:
            break
        other = _rows_that_may(file, arg, group, options)
        found = found & other if is_and else found | other
    return found
