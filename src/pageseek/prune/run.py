"""One file that mechanisms prune: what is known of it before, and what they make of a row group."""

from __future__ import annotations

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options
from pageseek.io.fetch import Kept
from pageseek.predicate.bound import Bound
from pageseek.prune.column_index import RequiredLeaves
from pageseek.prune.protocol import PruneContext
from pageseek.prune.row_groups import GroupProof


@dataclass(frozen=True, slots=True)
class RemainingRows:
    """The rows of one row group that may pass the filter, and those of them that all do. `by`: the mechanism that
    last ruled out some, "" if none did.
    """

    ranges: rows.RowRanges
    fully_matched: rows.RowRanges
    by: str


@dataclass(frozen=True, slots=True)
class MechanismRun:
    """One file to prune.

    Parameters
    ----------
    footer
        What the statistics of the footer have proved.
    required_leaves
        The leaves that are read of a row group.
    use
        The names of the mechanisms that may prune.
    wants_matches
        Whether it is of use to know which rows pass without being looked at.
    kept, distinct_index
        As of `PruneContext`.
    """

    file: FileMetadata
    bound: Bound
    footer: GroupProof
    required_leaves: RequiredLeaves
    use: frozenset[str]
    options: Options
    report: Report
    wants_matches: bool
    kept: Kept | None = None
    distinct_index: str | None = None


def share_of_rows(context: PruneContext) -> float:
    """The share of the rows of a row group that is in question."""
    return float(context.ranges.num_rows / max(context.file.group_rows[context.row_group], 1))
