"""The page index: fetched for the row groups and leaves that need it, and what it proves of a test."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from pageseek._core import rows
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.protocol import Proof
from pageseek.prune.row_groups import bit_of, fully_matched

RequiredLeaves = Callable[[int], Sequence[Leaf]]  # by row group


def load_indexes(
    file: FileMetadata,
    row_groups: Sequence[int],
    required_leaves: RequiredLeaves,
    tested: Sequence[Leaf],
    options: Options,
    report: Report,
    needless: Callable[[int, Leaf], bool] = lambda *_: False,
) -> Generator[Wanted, list[memoryview], None]:
    """Read in one wave what is not at hand: the offset index of every required leaf, and the column index of the tested
    leaves; neither where it is `needless`.
    """
    wanted: Wanted = []
    groups: list[tuple[int, list[Leaf], list[int], list[Leaf], list[int]]] = []

    def places(which: str, group: int, leaves: list[Leaf]) -> list[int]:
        """For each index its place among the answers, or -1 where the file has none."""
        found = []
        for leaf in leaves:
            at = file.index_range(which, group, leaf, report)
            found.append(len(wanted) if at else -1)
            if at:
                wanted.append(at)
        return found

    with_offsets, with_bounds = file.offset_indexes, file.column_indexes
    for group in row_groups:
        required = required_leaves(group)
        for leaf in (*required, *tested) if file.has_ignored_indexes else ():
            file.note_ignored_indexes(group, leaf, report)
        pages, values = [], []
        for leaf in required:
            if (group, leaf.index) not in with_offsets:
                pages.append(leaf)  # noqa: PERF401 (a comprehension would be one more call)
        for leaf in tested:
            if (group, leaf.index, options) not in with_bounds:
                values.append(leaf)  # noqa: PERF401
        if pages or values:
            file.load_chunks(group, pages)
            different = {leaf.index: leaf for leaf in (*pages, *values)}
            skipped = {i for i, leaf in different.items() if needless(group, leaf)}
            pages = [leaf for leaf in pages if leaf.index not in skipped]
            values = [leaf for leaf in values if leaf.index not in skipped]
            of_pages = places("offset", group, pages)
            groups.append((group, pages, of_pages, values, places("column", group, values)))
    answers: Sequence[memoryview | None] = [*((yield wanted) if wanted else ()), None]
    for group, pages, of_pages, values, of_values in groups:
        file.load_offset_indexes(group, pages, [answers[at] for at in of_pages], report)
        for leaf, at in zip(values, of_values, strict=True):
            file.load_column_index(group, leaf, options, answers[at], report)


def missing_bytes(
    file: FileMetadata, tested: Sequence[Leaf], options: Options, row_group: int
) -> int:
    """The bytes of the column indexes and offset indexes of these leaves that are not at hand."""
    size = 0
    for leaf in tested:
        if (row_group, leaf.index, options) not in file.column_indexes:
            for which in ("column", "offset"):
                at = file.index_range(which, row_group, leaf)
                size += file.to_fetch(*at) if at else 0
    return size


def page_proof(
    file: FileMetadata,
    row_group: int,
    test: BoundLeaf,
    options: Options,
    wants_matches: bool,
    headers: bool = False,
) -> Proof | None:
    """What a column index that is at hand proves of a test, or in its place the statistics in the `headers` of pages.

    `wants_matches`: also the rows that all pass.
    """
    if test.leaf.group:
        return None
    offsets = file.offset_indexes.get((row_group, test.leaf.index))
    if headers:
        index = file.header_index(row_group, test.leaf, options)
    else:
        index = file.column_indexes.get((row_group, test.leaf.index, options))
    if index is None or offsets is None:
        return None
    verdict, bit = index.zones.probe(test.op, test.against(0), test.nan), bit_of(test)
    must = rows.RowRanges.empty()
    if wants_matches:
        file.chunk(
            row_group, test.leaf
        )  # one that cannot be read is refused, whatever its index says
        must = offsets.rows_of(fully_matched(verdict, bit), 1)
    return Proof(offsets.rows_of(verdict, bit), must)
