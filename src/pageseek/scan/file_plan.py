"""Of one file: which row groups and rows are left to read, and the file itself while it is open."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import field
from typing import NamedTuple

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.version_checks import VersionCheck
from pageseek.prune import STATISTICS, GroupProof, prune_groups
from pageseek.scan.bound_request import BoundRequest
from pageseek.storage import Source, Version


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rows of one row group. `proven`: every one of them passes the filter, by the footer; `sure`: those that do by
    the word of an index. `cost`: about the bytes to read. What was not `judged` only the footer has looked at.
    `without`: leaves whose page index was known to be wrong, and had no word in it.
    """

    row_group: int
    ranges: rows.RowRanges
    proven: bool
    cost: int
    sure: rows.RowRanges = field(default_factory=rows.RowRanges.empty)
    judged: bool = True
    without: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The row groups to read of one version of one file. `first_row`: the rows of the files before it."""

    source: Source
    version: Version
    groups: tuple[GroupPlan, ...]
    first_row: int = 0


class Early(NamedTuple):
    """The rows of a row group that pass, its columns, and what was counted for that."""

    found: rows.RowRanges
    arrays: list[list[pa.Array]]
    report: Report


class Opened(NamedTuple):
    """A file, what is asked of it, and what its footer proves of that, as far as this is at hand. `version_check`: where its
    version is still to be confirmed. `early`: row groups that are being read already.
    """

    file: FileMetadata
    bound_request: BoundRequest
    footer: GroupProof | None = None
    version_check: VersionCheck | None = None
    early: dict[int, Future[Early]] = {}  # noqa: RUF012 - empty, and replaced where there are some

    def proof(self) -> GroupProof:
        """What the footer proves of each row group."""
        if self.footer is not None:
            return self.footer
        bound, request = self.bound_request.bound, self.bound_request.request
        if bound is None:
            return GroupProof(b"", b"")
        return prune_groups(self.file, bound, request.options, STATISTICS in request.prune)
