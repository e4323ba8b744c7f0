"""The footers of small files that were planned before, or in another process: read together again where the plan is executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.scanning.many_files import homogeneous_files
from pageseek.scanning.many_files.batched_file import BatchedFile
from pageseek.scanning.many_files.footer_batches import FooterBatches
from pageseek.scanning.requests.binding import BoundRequests
from pageseek.scanning.requests.plan import FilePlan
from pageseek.scanning.requests.request import Request
from pageseek.storage import Known, Sources

FEWEST_FILES = 8  # files that are as quickly opened one by one


class PlannedFooters:
    """The footers of those files of a plan that may be scanned with others, in the order of the plan.

    A file that is like none before is opened; those like it are not (`learn`).

    Attributes
    ----------
    report : Report
        Counts what is read of footers.
    """

    def __init__(self, plans: Sequence[FilePlan], small: list[int], request: Request) -> None:
        """`small`: the files that may be scanned with others."""
        self._plans = plans
        self._places = np.full(len(plans), -1, np.int64)
        self._places[small] = np.arange(len(small))
        self.report = Report(analyzed=True, chunks=None)
        # the plan has asked all mechanisms, or they cost more than reading such files
        unpruned = replace(request, prune=frozenset())
        self._requests = BoundRequests(unpruned)
        self._batches = FooterBatches(
            Sources([plans[i].source for i in small]), unpruned, self.report, lambda some: some, self._requests.said
        )  # fmt: skip

    @classmethod
    def of(cls, plans: Sequence[FilePlan], request: Request) -> Self | None:
        """None where few files may be scanned with others."""
        if len(plans) < FEWEST_FILES:
            return None
        small = [i for i, plan in enumerate(plans) if _may_be_small(plan)]
        return cls(plans, small, request) if len(small) >= FEWEST_FILES else None

    def of_file(self, at: int) -> BatchedFile | None:
        """The footer of a file, of the version that was planned; None if the file has to be opened."""
        place = self._places.item(at)
        found = None if place < 0 else self._batches.of(place)
        if found is None or found.version != self._plans[at].version:
            return None
        return found

    def end(self, at: int) -> Known | None:
        """The last bytes of a file that has to be opened, as far as they were read."""
        place = self._places.item(at)
        return None if place < 0 else self._batches.end(place)

    def learn(self, file: FileMetadata, at: int) -> None:
        """Take a file that had to be opened as the pattern of others."""
        place = self._places.item(at)
        if place >= 0:
            source = self._plans[at].source
            self._batches.learn(file, self._requests.of(file, source), source, place)

    def close(self) -> None:
        """Let go of what was read."""
        self._batches.close()


def _may_be_small(plan: FilePlan) -> bool:
    """Whether a file may be scanned with others, as far as its plan tells: a small local one, whose rows are all read."""
    source = plan.source
    return (
        source.filesystem is None
        and source.data is None
        and not source.deletes
        and all(
            group.ranges.num_rows <= homogeneous_files.SMALL_GROUP_ROWS
            and group.cost <= homogeneous_files.SMALL_GROUP_BYTES
            and not (group.divided or group.matching or group.ignored)
            for group in plan.groups
        )
    )
