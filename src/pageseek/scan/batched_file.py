"""Files whose footers were read together: what is known of one, and what was ruled out of several."""

from __future__ import annotations

from typing import NamedTuple

from pageseek.io.tails import TailBatch
from pageseek.scan.homogeneous_files import HomogeneousFiles
from pageseek.storage import Known, Version
from pageseek.storage.local import version_of


class BatchedFile:
    """One file: the rows of its row groups, and where these are among the homogeneous files."""

    __slots__ = (
        "_batch",
        "_place",
        "counts",
        "first",
        "homogeneous",
        "may",
        "must",
        "num_rows",
        "steps",
    )

    def __init__(
        self, homogeneous: HomogeneousFiles, first: int, n: int, batch: TailBatch, place: int
    ) -> None:
        stop = first + n
        self.homogeneous, self.first, self._batch, self._place = homogeneous, first, batch, place
        self.counts = homogeneous.counts[first:stop]
        self.num_rows = sum(self.counts)
        self.may, self.must = homogeneous.may[first:stop], homogeneous.must[first:stop]
        self.steps = [(mechanism, may[first:stop]) for mechanism, may in homogeneous.steps]

    @property
    def version(self) -> Version:
        """That of which the footer was read."""
        return version_of(self._batch.seen(self._place))

    @property
    def known(self) -> Known:
        """That version with the last bytes, from which the file is opened."""
        return self._batch.end(self._place).known


class PrunedFiles(NamedTuple):
    """Files that follow each other of which nothing is left. `by`: of each mechanism that ruled out some, how many files,
    row groups and rows.
    """

    files: int
    bytes: int
    row_groups: int
    rows: int
    by: dict[str, tuple[int, ...]]
