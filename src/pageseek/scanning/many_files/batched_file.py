"""Files whose footers were read together: one of them, and several that are wholly ruled out."""

from __future__ import annotations

from pageseek.base.records import NamedTuple
from pageseek.io.tails import TailBatch
from pageseek.scanning.many_files.homogeneous_files import HomogeneousFiles
from pageseek.storage import Known, Version
from pageseek.storage.local import version_of


class BatchedFile:
    """One file among homogeneous ones, whose row groups begin at `first` there."""

    __slots__ = (
        "batch",
        "counts",
        "first",
        "homogeneous",
        "may",
        "must",
        "num_rows",
        "place",
        "steps",
    )

    def __init__(
        self, homogeneous: HomogeneousFiles, first: int, n: int, batch: TailBatch, place: int
    ) -> None:
        stop = first + n
        self.homogeneous, self.first, self.batch, self.place = homogeneous, first, batch, place
        self.counts = homogeneous.counts[first:stop]
        self.num_rows = sum(self.counts)
        self.may, self.must = homogeneous.may[first:stop], homogeneous.must[first:stop]
        self.steps = [(mechanism, may[first:stop]) for mechanism, may in homogeneous.steps]

    @property
    def version(self) -> Version:
        """The version whose footer was read."""
        return version_of(self.batch.seen(self.place))

    @property
    def idle(self) -> frozenset[str]:
        """Mechanisms that would prove no more of the file if it was opened."""
        some = slice(self.first, self.first + len(self.counts))
        return frozenset([name for name, flags in self.homogeneous.idle if flags[some].all()])

    @property
    def known(self) -> Known:
        """That version with the last bytes, from which the file is opened."""
        return self.batch.end(self.place).known


class PrunedFiles(NamedTuple):
    """Files that follow each other and are wholly ruled out. `by`: for each mechanism the files, row groups and rows that it
    ruled out.
    """

    files: int
    bytes: int
    row_groups: int
    rows: int
    by: dict[str, tuple[int, ...]]
