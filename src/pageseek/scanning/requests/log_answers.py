"""The files that the statistics of a table's log rule out, before any file is opened."""

from __future__ import annotations

import numpy as np

from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import npt
from pageseek.base.report import Report
from pageseek.predicate.bind import bind
from pageseek.prune.registry import LOG
from pageseek.prune.row_groups import prune_groups
from pageseek.scanning.requests.request import Request
from pageseek.storage import Sources


class LogAnswers:
    """Which files of a scan its table's log leaves, by their positions.

    Parameters
    ----------
    may : bytes
        For each file, whether rows of it may pass the filter.

    Attributes
    ----------
    positions : int64 array
        The files that are not ruled out.
    num_left : int
        Their number.
    """

    def __init__(self, may: bytes) -> None:
        self._may = np.frombuffer(may, np.bool_)
        self.positions: npt.NDArray[np.int64] = self._may.nonzero()[0]
        self.num_left = len(self.positions)

    @classmethod
    def of(cls, sources: Sources, request: Request, report: Report | None) -> LogAnswers | None:
        """What the log says of a filter; None where it rules out no file. A report is told what of the log is not used."""
        bounds = sources.bounds
        if bounds is None or request.filter is None or LOG not in request.prune:
            return None
        try:
            bound = bind(request.filter, bounds, request.nan)
        except PredicateError:  # raised again, with the name of a file, where one is opened
            return None
        may = prune_groups(bounds, bound, request.options).may
        if report is not None:
            from pageseek.datasets.dataset_schema import tested_paths  # late: for tables

            for note in bounds.notes(tested_paths(request.filter) or ()):
                report.note(note)
        return cls(may) if 0 in may else None

    def rules_out(self, at: int) -> bool:
        """Whether the log rules out the file at a position."""
        return not self._may[at]

    def next_left(self, at: int) -> int:
        """The position of the first file from `at` on that is not ruled out; behind the last without one."""
        i = np.searchsorted(self.positions, at)
        return int(self.positions[i]) if i < self.num_left else len(self._may)

    def left(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of some positions whose files are not ruled out."""
        return positions[self._may[positions]]
