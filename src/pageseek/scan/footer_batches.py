"""What a plan needs of many small local files, from their footers alone and many at a time.

As a rule the files of a dataset have the same columns, and one writer. The row groups of such files are pruned as if
they were those of a single one, by the same statistics and the same code (homogeneous_files.py). What differs in any way, is damaged,
or is not resolved by the footer is left to the planner, which opens files one by one; nothing here is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from time import perf_counter

import numpy as np
import numpy.typing as npt

from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.tails import TailBatch
from pageseek.scan.batch_tails import BatchTails
from pageseek.scan.batched_file import BatchedFile, PrunedFiles
from pageseek.scan.bound_request import BoundRequest
from pageseek.scan.footer_table import FooterTable
from pageseek.scan.homogeneous_files import GONE, MECHANISMS, HomogeneousFiles
from pageseek.scan.request import Request
from pageseek.scan.schema_group import SchemaGroup
from pageseek.storage import Known, Source, Sources

FEW = 8  # files that are as quickly opened one by one
FIRST_LIMITED = 8  # files at a time, where all may be spared but the first
MOST = 1024  # files at a time
GROWTH = 16  # times as many
KINDS = 16  # of files in the same folders, and as many of such folders
NONE = np.zeros(0, np.int64)
PATIENCE = 64  # files that are opened one by one after several that were all unlike those before


class FooterBatches:
    """Of the files of a scan, in their order, those whose footers could be read together.

    Parameters
    ----------
    asked : callable
        Whether a file is looked at, at all.
    folders : callable
        What the folders of a file say, as far as what is asked of it hangs on that.
    """

    def __init__(
        self,
        sources: Sources,
        request: Request,
        report: Report,
        asked: Callable[[Source], bool],
        folders: Callable[[Source], Hashable],
    ) -> None:
        self._sources, self._request, self._report = sources, request, report
        self._asked, self._folders = asked, folders
        self._account = report.chunks is not None
        self._plain = not sources.in_folders
        self._schema_groups: dict[Hashable, list[SchemaGroup]] = {}
        self._batch: TailBatch | None = None
        self._begin = self._stop = 0  # positions of the files that were looked at
        self._positions = NONE  # of the files of the batch
        self._homogeneous: list[HomogeneousFiles] = []
        # of each of those that were looked at: its place in the batch; which homogeneous files it is among, the first of its
        # row groups there, and how many it has
        self._places, self._found = NONE, np.zeros((0, 3), np.int64)
        # what was wholly ruled out, and the next that is not, as long as that is known
        self._gone = _nothing(0)
        self._next_left: npt.NDArray[np.int64] | None = None
        self._size = MOST if request.limit is None else FIRST_LIMITED
        self._tails = BatchTails(request)
        self._pause, self._paused = 1, False
        self._idle = self._vain = (
            0  # files that are not learned from, now and after the next that is like no other
        )
        self._seen = self._matched = 0  # files of these

    def of(self, at: int) -> BatchedFile | None:
        """What is known of the file at a position; None where it has to be opened."""
        self._look(at)
        if not self._begin <= at < self._stop or self._batch is None:
            return None
        owner, first, n = self._found[at - self._begin].tolist()
        if owner < 0:
            return None
        return BatchedFile(
            self._homogeneous[owner], first, n, self._batch, self._places.item(at - self._begin)
        )

    def gone(self, at: int) -> PrunedFiles | None:
        """The files from a position on of which nothing is left, if that is one of them."""
        self._look(at)
        if not self._begin <= at < self._stop or not self._gone[at - self._begin, 1:].any():
            return None
        if self._next_left is None:
            left = np.flatnonzero(~self._gone[:, 1:].any(axis=1))
            self._next_left = np.append(left, self._stop - self._begin)
        start = at - self._begin
        stop = int(self._next_left[np.searchsorted(self._next_left, start)])
        size, *sums = self._gone[start:stop].sum(axis=0).tolist()
        by = {name: tuple(sums[3 * i : 3 * i + 3]) for i, name in enumerate(MECHANISMS)}
        groups, counts = sum(sums[1::3]), sum(sums[2::3])
        return PrunedFiles(stop - start, size, groups, counts, by)

    def _look(self, at: int) -> None:
        # of the first nothing is known: where a limit may spare the others they are not looked at yet
        if at >= self._stop and (
            self._schema_groups or (not self._stop and self._request.limit is None)
        ):
            self._next(at)

    def end(self, at: int) -> Known | None:
        """The last bytes of a file that has to be opened, if they were read."""
        if not self._begin <= at < self._stop or self._batch is None:
            return None
        place = self._places.item(at - self._begin)
        return self._batch.end(place).known if place >= 0 else None

    def learn(
        self, file: FileMetadata, bound_request: BoundRequest, source: Source, at: int | None
    ) -> None:
        """A file had to be opened, at this position: others may be of its kind."""
        if self._paused and at is not None and at + 1 < self._stop:
            return
        if self._idle:
            self._idle -= 1
            return
        if not SchemaGroup.may_be_made(file, bound_request, self._account):
            return
        like = file.schema_key
        folders = self._folders(source)
        known = self._schema_groups.get(folders, [])
        stored = file.columns_key[2]
        if any(schema_group.like == like and schema_group.stores(stored) for schema_group in known):
            return
        if len(self._schema_groups) >= KINDS:  # files of one folder come one after the other
            self._schema_groups.clear()
        try:
            schema_group = SchemaGroup(file, bound_request, self._account)
        except PageseekError:  # of a column whose values cannot be: who needs them will say so
            return
        self._schema_groups[folders] = [schema_group, *known[: KINDS - 1]]
        left = self._positions_of((self._places >= 0) & (self._found[:, 0] < 0))
        if not self._plain:
            left = left[[self._folders(self._sources[i]) == folders for i in left.tolist()]]
        if len(left):
            before = self._matched
            began = perf_counter()
            self._prune(schema_group, left)
            self._report.spent("prune", began)
            if self._matched > before + 1:  # more than the file itself
                self._vain = 0
            else:  # where all are unlike, each would be held against all others
                self._idle, self._vain = self._vain, min(2 * self._vain or 1, PATIENCE)

    def _positions_of(self, flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.flatnonzero(flags) + self._begin

    def close(self) -> None:
        """No more files: what is left to count is counted, and what need not be kept let go of."""
        for homogeneous in self._homogeneous:
            homogeneous.fold(self._report)
        self._homogeneous = []
        if self._batch is not None:
            self._batch.forget_tails()

    def _next(self, at: int) -> None:
        """Read the ends of the next files, more at a time as long as they are similar."""
        self.close()
        if self._seen and 2 * self._matched >= self._seen:
            self._size, self._pause = min(GROWTH * self._size, MOST), 1
        elif self._seen:
            self._size = max(self._size // 4, 1)
        self._paused = self._seen > 0 and not self._matched
        self._begin, self._gone, self._next_left = at, _nothing(0), None
        self._positions = self._places = NONE
        self._found = np.zeros((0, 3), np.int64)
        if self._paused:
            self._begin = self._stop = at + self._pause
            self._pause = min(2 * self._pause, PATIENCE)
            self._seen = 0
            return
        began = perf_counter()
        self._batch, self._positions = self._fetch(at)
        self._report.spent("open", began)
        batch, n = self._batch, self._stop - at
        self._gone, self._found = _nothing(n), np.full((n, 3), -1, np.int64)
        self._places = np.full(n, -1, np.int64)
        had = self._positions[batch.places]
        self._places[had - at] = batch.places
        self._seen, self._matched = len(had), 0
        began = perf_counter()
        for folders, members in self._by_folders(had):
            for schema_group in self._schema_groups.get(folders, ()):
                if len(members):
                    members = self._prune(schema_group, members)
        self._report.spent("prune", began)

    def _by_folders(
        self, positions: npt.NDArray[np.int64]
    ) -> Iterator[tuple[Hashable, npt.NDArray[np.int64]]]:
        """Files, those apart of whose folders other things are said."""
        if self._plain:
            yield self._folders(self._sources[self._begin]), positions
            return
        homogeneous: dict[Hashable, list[int]] = {}
        for i in positions.tolist():
            homogeneous.setdefault(self._folders(self._sources[i]), []).append(i)
        for folders, members in homogeneous.items():
            yield folders, np.array(members, np.int64)

    def _fetch(self, at: int) -> tuple[TailBatch, npt.NDArray[np.int64]]:
        """The ends of the next files, and the position of each."""
        sources, stop = self._sources, min(at + self._size, len(self._sources))
        asked = np.arange(at, stop)
        if sources.paths is None:
            at_hand = [
                source.filesystem is None and source.data is None for source in sources[at:stop]
            ]
            asked = asked[at_hand]
        if self._plain:  # folders say nothing of any
            asked = asked if self._asked(sources[at]) else NONE
        else:
            asked = asked[[self._asked(sources[i]) for i in asked.tolist()]]
        if len(asked) == stop - at and sources.paths is not None:
            paths = sources.paths[at:stop]
        else:
            paths = tuple([sources[i].path for i in asked.tolist()])
        batch = self._tails.read(paths, self._report)
        asked = asked[: batch.looked_at]
        if batch.looked_at < len(paths):
            self._stop = int(asked[-1]) + 1
        else:
            self._stop = stop
        return batch, asked

    def _prune(
        self, schema_group: SchemaGroup, members: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Of the files at some positions keep those of a kind; the others are returned."""
        assert self._batch is not None
        places = self._places[members - self._begin]
        for records in self._tails.tables(self._batch, schema_group, places):
            self._keep(schema_group, records)
        self._tails.measure(self._batch)
        unlike: npt.NDArray[np.bool_] = self._found[members - self._begin, 0] < 0
        return members[unlike]

    def _keep(self, schema_group: SchemaGroup, records: FooterTable) -> None:
        """Judge the row groups of files of one kind."""
        assert self._batch is not None
        try:
            homogeneous = HomogeneousFiles(
                schema_group, records, self._batch, self._request.prune, self._report
            )
            if (self._account or schema_group.may_be_final) and 1 in homogeneous.may:
                homogeneous.look(self._report)
        except PageseekError:  # who opens the file will say so, and of which it is
            return
        same = [
            stored == schema_group.stored or schema_group.stores(stored)
            for stored in records.schemas
        ]
        own = ~homogeneous.alone & np.array(same, np.bool_)[records.schema_of]
        at = self._positions[records.members] - self._begin
        mine = at[own]
        self._found[mine, 0] = len(self._homogeneous)
        self._found[mine, 1], self._found[mine, 2] = records.first[own], records.n[own]
        self._homogeneous.append(homogeneous)
        self._matched += len(mine)
        if not schema_group.constant:
            self._gone[at] = homogeneous.gone() * own[:, None]
            self._next_left = None


def _nothing(files: int) -> npt.NDArray[np.int64]:
    return np.zeros((files, GONE), np.int64)
