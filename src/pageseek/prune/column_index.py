"""The page index: what it takes to fetch it, and fetching it, for the row groups and leaves that need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.range_requests import Asking, Wanted
from pageseek.prune.sampling import PRICED


def missing_bytes(
    file: FileMetadata, row_groups: Sequence[int], tested: Sequence[Leaf], options: Options
) -> float:
    """About the bytes of the column indexes and offset indexes of tested leaves that are not in memory."""
    step = max(len(row_groups) // PRICED, 1)
    size = 0
    for group in row_groups[::step]:
        for leaf in tested:
            if (group, leaf.index, options) not in file.column_indexes:
                for which in ("column", "offset"):
                    at = file.index_range(which, group, leaf)
                    size += file.to_fetch(*at) if at else 0
    return float(size * step)


def load_indexes(
    file: FileMetadata,
    row_groups: Sequence[int],
    required_leaves: Callable[[int], Sequence[Leaf]],
    tested: Sequence[Leaf],
    options: Options,
    report: Report,
    needless: Callable[[int, Leaf], bool] = lambda *_: False,
) -> Asking[None]:
    """Read in one wave the indexes that are not in memory: the offset index of every required leaf, and the column index of
    the tested leaves; neither where it is `needless`. `required_leaves`: by row group.
    """
    wanted: Wanted = []
    groups: list[tuple[int, list[Leaf], list[int], list[Leaf], list[int]]] = []

    def places(which: str, group: int, leaves: list[Leaf]) -> list[int]:
        """For each index its number in `wanted`, or -1 where the file has none."""
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
                pages.append(leaf)  # noqa: PERF401 (of few, a comprehension would cost more)
        for leaf in tested:
            if (group, leaf.index, options) not in with_bounds:
                values.append(leaf)  # noqa: PERF401 (as above)
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
