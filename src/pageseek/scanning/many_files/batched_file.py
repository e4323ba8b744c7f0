"""Files whose footers were read together: one of them, several that these plan, and several that are wholly ruled out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

import numpy as np

from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.io.tails import TailBatch
from pageseek.scanning.many_files.footer_table import OF_SPARK
from pageseek.scanning.many_files.homogeneous_files import HomogeneousFiles
from pageseek.storage import Known, Version
from pageseek.storage.local import version_of


class BatchedFile:
    """One file among homogeneous ones: its number there, and its place in the batch."""

    __slots__ = ("batch", "homogeneous", "number", "place")

    def __init__(
        self, homogeneous: HomogeneousFiles, number: int, batch: TailBatch, place: int
    ) -> None:
        self.homogeneous, self.number, self.batch, self.place = homogeneous, number, batch, place

    @property
    def num_row_groups(self) -> int:
        return self.homogeneous.table.n.item(self.number)

    @property
    def row_groups(self) -> slice:
        """Its row groups among those of the homogeneous files."""
        first = self.homogeneous.table.first.item(self.number)
        return slice(first, first + self.num_row_groups)

    @property
    def counts(self) -> list[int]:
        """The rows of each row group."""
        return self.homogeneous.counts[self.row_groups]

    @property
    def version(self) -> Version:
        """The version whose footer was read."""
        return version_of(self.batch.seen(self.place))

    @property
    def idle(self) -> frozenset[str]:
        """Mechanisms that would prove no more of the file if it was opened."""
        some = self.row_groups
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
        own, homogeneous = self.row_groups, self.homogeneous
        may, must = homogeneous.may[own], homogeneous.must[own]
        undecided = [some and not every for some, every in zip(may, must, strict=True)]
        return compress(flags[own], undecided)


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


class DecidedFiles(NamedTuple):
    """Files that follow each other, have rows left, and whose footers tell all that a plan needs (HomogeneousFiles.decided).

    `numbers`, `places`: of each file its number among the homogeneous ones, and its place in the batch.
    """

    homogeneous: HomogeneousFiles
    numbers: npt.NDArray[np.int64]
    batch: TailBatch
    places: npt.NDArray[np.int64]

    def head(self, n: int) -> DecidedFiles:
        """The first of them."""
        return self._replace(numbers=self.numbers[:n], places=self.places[:n])

    def each(self) -> list[BatchedFile]:
        """The files one by one."""
        homogeneous, batch = self.homogeneous, self.batch
        return [
            BatchedFile(homogeneous, number, batch, place)
            for number, place in zip(self.numbers.tolist(), self.places.tolist(), strict=True)
        ]


class PrunedFiles(NamedTuple):
    """Files that follow each other and are wholly ruled out. `by`: for each mechanism the files, row groups and rows that it
    ruled out.
    """

    files: int
    bytes: int
    row_groups: int
    rows: int
    by: dict[str, tuple[int, ...]]
