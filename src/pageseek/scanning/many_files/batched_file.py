"""Files whose footers were read together: one of them, and several that are wholly ruled out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

from pageseek.base.records import NamedTuple
from pageseek.io.tails import TailBatch
from pageseek.scanning.many_files.footer_table import OF_SPARK
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

    @property
    def is_small(self) -> bool:
        """Whether its undecided row groups cost less to be read with those of other files than to ask for more."""
        return all(self._of_undecided(self.homogeneous.small))

    @property
    def is_final(self) -> bool:
        """Whether no mechanism could add to what its footer proves."""
        return all(self._of_undecided(self.homogeneous.final))

    def _of_undecided(self, flags: Sequence[bool]) -> Iterator[bool]:
        own = flags[self.first : self.first + len(self.counts)]
        undecided = [some and not every for some, every in zip(self.may, self.must, strict=True)]
        return compress(own, undecided)


def pairs_of_spark(files: Sequence[BatchedFile]) -> list[tuple[str, dict[bytes, bytes | None]]]:
    """The key-value pairs by which Spark tells the calendar of files, each different set once, with a file that has it."""
    found: dict[Any, tuple[str, dict[bytes, bytes | None]]] = {}
    for file in files:
        told = file.homogeneous.table.of_spark(file.place)
        if told not in found:
            pairs = zip(OF_SPARK, told, strict=True)
            there: dict[bytes, bytes | None] = {
                key: value for key, value in pairs if value is not None
            }
            found[told] = file.batch.paths[file.place], there
    return list(found.values())


class PrunedFiles(NamedTuple):
    """Files that follow each other and are wholly ruled out. `by`: for each mechanism the files, row groups and rows that it
    ruled out.
    """

    files: int
    bytes: int
    row_groups: int
    rows: int
    by: dict[str, tuple[int, ...]]
