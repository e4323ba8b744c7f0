"""The rows of a file that its lookup indexes name for the conditions of a lookup."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pageseek._core import rows
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options
from pageseek.io.fetch import Fetcher
from pageseek.io.range_requests import answered
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.protocol import PruneContext, Pruner
from pageseek.prune.registry import REGISTRY

MOST_NAMED = 32  # rows: pages of more are divided among threads by the way of every scan


def named_rows(
    file: FileMetadata, pruners: Sequence[Pruner], tests: Sequence[BoundLeaf], options: Options
) -> list[tuple[int, rows.RowRanges]] | None:
    """The row groups that have such rows, and these rows. Every row of the answer passes all tests, so that one index tells.
    `pruners`: those of lookup indexes.

    None: no index of the file tells, or it names many rows. What is wrong with an index is told by the way of every scan.
    """
    report = Report()
    fetcher = Fetcher(file.store, report, file.tail)
    context = PruneContext(file, 0, rows.RowRanges.empty(), options, report, required=tests)
    for kind in [REGISTRY.find(pruner.name) for pruner in pruners]:
        for test in tests:
            try:
                found = answered(
                    kind.rows_of_file(context, test), lambda wanted: fetcher.read(wanted, "index")
                )
            except (CoreError, PageseekError):
                return None
            if found is not None and len(found) <= MOST_NAMED:
                return _by_row_group(file, found.tolist())
    return None


def _by_row_group(file: FileMetadata, found: Sequence[int]) -> list[tuple[int, rows.RowRanges]]:
    """Rows of a file, in order, by row group, counted from the first of each."""
    made = []
    for number, some in groupby(found, file.row_group_of):
        first = file.first_row(number)
        made.append((number, rows.RowRanges.from_rows([row - first for row in some])))
    return made
