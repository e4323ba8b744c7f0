"""Plans for many small local files, from their footers alone and many at a time.

As a rule the files of a dataset have the same columns, and one writer. The row groups of such files are pruned as if
they were those of a single one, by the same statistics and the same code (homogeneous_files.py). A file that differs, is
damaged, or is not resolved by its footer is left to the planner, which opens files one by one; nothing here is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from time import perf_counter

import numpy as np

from pageseek.base import log
from pageseek.base.errors import PageseekError
from pageseek.base.late_modules import npt
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.tails import TailBatch, TailReader
from pageseek.scanning.many_files.batched_file import BatchedFile, DecidedFiles, PrunedFiles
from pageseek.scanning.many_files.footer_table import Flags, FooterTable
from pageseek.scanning.many_files.homogeneous_files import (
    MECHANISMS,
    PRUNED_COLUMNS,
    HomogeneousFiles,
)
from pageseek.scanning.many_files.schema_group import SchemaGroup
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.request import Request
from pageseek.storage import Known, Source, Sources

FIRST_LIMITED = 8  # files of the first batch of a scan with a limit
MAX_FILES = 1024  # of a batch
GROWTH = 16  # how many times larger the next batch is while files are similar
SCHEMA_GROUPS = 16  # kept for files in the same folders, and folders that have some
FEWEST_FILES = 32  # for which the first file is asked whether the others have filters
LONGEST_PAUSE = 64  # the longest pause, in files, after files that were all unlike those before
_NO_FILES, _NO_FLAGS = np.zeros(0, np.int64), np.zeros(0, np.bool_)


class FooterBatches:
    """The files of a scan, in their order, as far as their footers are read together.

    Parameters
    ----------
    asked : callable
        Those of some positions whose files are read at all.
    folders : callable
        The values of a file's folders, as far as its bound request depends on them.
    pattern : callable, optional
        Opens a file, and binds the request to it. Without it, no file is asked for what may be read with the tails.
    """

    def __init__(
        self,
        sources: Sources,
        request: Request,
        report: Report,
        asked: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]],
        folders: Callable[[Source], Hashable],
        pattern: Callable[[Source], tuple[FileMetadata, BoundRequest]] | None = None,
    ) -> None:
        self._sources, self._request, self._report = sources, request, report
        self._asked, self._folders, self._pattern = asked, folders, pattern
        self._account = report.chunks is not None
        self._plain = not sources.in_folders
        self._schema_groups: dict[Hashable, list[SchemaGroup]] = {}
        self._batch: TailBatch | None = None
        self._begin = self._stop = 0  # positions in the scan of the files of the batch
        self._positions = _NO_FILES  # of those that were read
        self._homogeneous: list[HomogeneousFiles] = []
        # for each file from `_begin` on its place in the batch; its homogeneous files, and its number there; what rules it out,
        # and whether something does
        self._places, self._found = _NO_FILES, np.zeros((0, 2), np.int64)
        self._pruned = np.zeros((0, PRUNED_COLUMNS), np.int64)
        self._gone = _NO_FLAGS
        self._decided: tuple[tuple[bool, bool], Flags] | None = None  # and what it was asked for
        self._size = MAX_FILES if request.limit is None else FIRST_LIMITED
        self._threads, self._limit = request.num_threads, request.limits.max_metadata_bytes
        self._tail_reader = TailReader(self._limit, self._threads)
        self._pause, self._paused = 1, False
        self._idle = self._next_idle = (
            0  # files to open before `learn` tries again, now and next time
        )
        self._seen = self._matched = 0  # files of the batch

    def of(self, at: int) -> BatchedFile | None:
        """The file at a position, as its footer tells; None if it has to be opened."""
        self._look(at)
        if not self._begin <= at < self._stop or self._batch is None:
            return None
        owner, number = self._found[at - self._begin].tolist()
        if owner < 0:
            return None
        place = self._places.item(at - self._begin)
        return BatchedFile(self._homogeneous[owner], number, self._batch, place)

    def decided(self, at: int, joins: bool, defers: bool) -> DecidedFiles | None:
        """The files from a position on that their footers plan, as far as they are homogeneous; None if the first is not planned so.
        `joins`, `defers`: as of `plan_by_footer`.
        """
        self._look(at)
        if not self._begin <= at < self._stop or self._batch is None:
            return None
        if self._decided is None or self._decided[0] != (joins, defers):
            decided = np.zeros(len(self._found), np.bool_)
            for i, homogeneous in enumerate(self._homogeneous):
                mine = np.flatnonzero(self._found[:, 0] == i)
                flags = homogeneous.decided(joins, defers, self._account)
                decided[mine] = flags[self._found[mine, 1]]
            self._decided = (joins, defers), decided
        start, (_, decided) = at - self._begin, self._decided
        if not decided.item(start):
            return None
        owner = self._found.item(start, 0)
        n = _run(decided[start:] & (self._found[start:, 0] == owner))
        files = slice(start, start + n)
        numbers, places = self._found[files, 1], self._places[files]
        return DecidedFiles(self._homogeneous[owner], numbers, self._batch, places)

    def gone(self, at: int) -> PrunedFiles | None:
        """The files from a position on up to the next one with rows left; None if that is the first."""
        self._look(at)
        start = at - self._begin
        if not self._begin <= at < self._stop or not self._gone.item(start):
            return None
        n = _run(self._gone[start:])
        size, *sums = self._pruned[start : start + n].sum(axis=0).tolist()
        by = {name: tuple(sums[3 * i : 3 * i + 3]) for i, name in enumerate(MECHANISMS)}
        groups, counts = sum(sums[1::3]), sum(sums[2::3])
        return PrunedFiles(n, size, groups, counts, by)

    def similar(self, at: int) -> int:
        """How many files from a position on need not be opened, since their columns are those of files that were."""
        self._look(at)
        if not self._begin <= at < self._stop:
            return 0
        return _run(self._found[at - self._begin :, 0] >= 0)

    def _look(self, at: int) -> None:
        # before a file was opened the others are read only if no limit may spare them
        if at >= self._stop and (
            self._schema_groups or (not self._stop and self._request.limit is None)
        ):
            self._next(at)

    def end(self, at: int) -> Known | None:
        """The last bytes of a file that has to be opened, as far as they were read."""
        if not self._begin <= at < self._stop or self._batch is None:
            return None
        place = self._places.item(at - self._begin)
        return self._batch.end(place).known if place >= 0 else None

    def learn(
        self, file: FileMetadata, bound_request: BoundRequest, source: Source, at: int
    ) -> None:
        """Take a file that had to be opened, at this position, as the pattern of others."""
        if self._paused and at + 1 < self._stop:
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
        # files of one folder come one after the other
        if len(self._schema_groups) >= SCHEMA_GROUPS:
            self._schema_groups.clear()
        try:
            schema_group = SchemaGroup(file, bound_request, self._account)
        except PageseekError:  # of a column that cannot be decoded; reading it says so
            return
        self._schema_groups[folders] = [schema_group, *known[: SCHEMA_GROUPS - 1]]
        left = np.flatnonzero((self._places >= 0) & (self._found[:, 0] < 0)) + self._begin
        if not self._plain:
            left = left[[self._folders(self._sources[i]) == folders for i in left.tolist()]]
        if len(left):
            before = self._matched
            began = perf_counter()
            self._prune(schema_group, left)
            self._report.spent("prune", began)
            if self._matched > before + 1:  # more than the file itself
                self._next_idle = 0
            else:  # if all are unlike, each would be compared with all others
                self._idle = self._next_idle
                self._next_idle = min(2 * self._next_idle or 1, LONGEST_PAUSE)

    def close(self) -> None:
        """Count what `HomogeneousFiles.take` left for later, and let go of the tails."""
        for homogeneous in self._homogeneous:
            homogeneous.fold(self._report)
        self._homogeneous = []
        if self._batch is not None:
            self._batch.forget_tails()

    def _next(self, at: int) -> None:
        """Read the tails of the next files, more at a time as long as files are similar."""
        self.close()
        if self._seen and 2 * self._matched >= self._seen:
            self._size, self._pause = min(GROWTH * self._size, MAX_FILES), 1
        elif self._seen:
            self._size = max(self._size // 4, 1)
        self._paused = self._seen > 0 and not self._matched
        self._begin = at
        if self._paused:
            self._forget(0)
            self._begin = self._stop = at + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._seen, self._positions = 0, _NO_FILES
            return
        began = perf_counter()
        self._batch, self._positions = self._fetch(at)
        self._report.spent("open", began)
        self._forget(self._stop - at)
        read = self._positions[self._batch.places]
        self._places[read - at] = self._batch.places
        self._seen, self._matched = len(read), 0
        began = perf_counter()
        for folders, members in self._by_folders(read):
            for schema_group in self._schema_groups.get(folders, ()):
                if len(members):
                    members = self._prune(schema_group, members)
        self._report.spent("prune", began)

    def _forget(self, n: int) -> None:
        """Nothing is known of the `n` files from `_begin` on."""
        self._places, self._found = np.full(n, -1, np.int64), np.full((n, 2), -1, np.int64)
        self._pruned, self._gone = np.zeros((n, PRUNED_COLUMNS), np.int64), np.zeros(n, np.bool_)
        self._decided = None

    def _by_folders(
        self, positions: npt.NDArray[np.int64]
    ) -> Iterator[tuple[Hashable, npt.NDArray[np.int64]]]:
        """The files at some positions, by the values of their folders."""
        if self._plain:
            yield self._folders(self._sources[self._begin]), positions
            return
        found: dict[Hashable, list[int]] = {}
        for i in positions.tolist():
            found.setdefault(self._folders(self._sources[i]), []).append(i)
        for folders, members in found.items():
            yield folders, np.array(members, np.int64)

    def _fetch(self, at: int) -> tuple[TailBatch, npt.NDArray[np.int64]]:
        """The tails of the next files, and the position of each."""
        sources, stop = self._sources, min(at + self._size, len(self._sources))
        asked = np.arange(at, stop)
        if sources.paths is None:
            at_hand = [
                source.filesystem is None and source.data is None for source in sources[at:stop]
            ]
            asked = asked[at_hand]
        if self._plain and sources.bounds is None:  # nothing is known of any
            asked = asked if len(self._asked(asked[:1])) else _NO_FILES
        else:
            asked = self._asked(asked)
        if len(asked) == stop - at and sources.paths is not None:
            paths = sources.paths[at:stop]
        else:
            paths = tuple([sources[i].path for i in asked.tolist()])
        batch = self._read_tails(paths, int(asked[0]) if len(asked) else 0)
        asked = asked[: batch.looked_at]
        self._stop = stop if batch.looked_at == len(paths) else int(asked[-1]) + 1
        return batch, asked

    def _expect_filters(
        self, pattern: Callable[[Source], tuple[FileMetadata, BoundRequest]], source: Source
    ) -> None:
        """Read longer tails if the first file has Bloom filters near its end that this request will need: files are then opened
        once.
        """
        from pageseek.scanning.many_files.filters_in_tails import (
            filter_bytes,  # late: for many files
        )

        try:
            file, bound_request = pattern(source)
            wanted = filter_bytes(file, bound_request)
        except (PageseekError, OSError):  # opening it in its turn says so
            return
        if wanted:
            self._tail_reader.read_more(wanted, MAX_FILES)

    def _read_tails(self, paths: tuple[str, ...], first: int) -> TailBatch:
        """The tails of files, from the cache if it has them. `first`: the position of the first."""
        batch = cache.batch(paths, self._limit, self._threads)
        if batch is None:
            if (
                self._pattern is not None
                and not self._stop
                and self._request.filter is not None
                and len(paths) >= FEWEST_FILES
            ):
                self._expect_filters(self._pattern, self._sources[first])
            reader, report = self._tail_reader, self._report
            requests, read = reader.requests, reader.bytes
            began = log.begun()
            batch = reader.read(paths)
            if began:
                count, size = reader.requests - requests, reader.bytes - read
                some = f"{batch.looked_at:,} files from {batch.paths[0]} on"
                log.requested(some, "metadata", (), count, began, size)
            report.requests += reader.requests - requests
            report.waves += reader.requests - requests
            report.bytes["metadata"] += reader.bytes - read
            cache.add_batch(batch)
        return batch

    def _prune(
        self, schema_group: SchemaGroup, members: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Prune the files at some positions that are of a schema group; the others are returned."""
        batch = self._batch
        assert batch is not None
        places = self._places[members - self._begin]
        chosen = None if len(places) == len(batch.places) else places.tobytes()
        key = schema_group.like, schema_group.leaves.tobytes(), chosen
        tables: list[FooterTable] | None = batch.made.get(key)
        if tables is None:
            tables = FooterTable.of(schema_group, batch, places, self._limit, self._threads)
            cache.keep_made(batch, key, tables)
        for table in tables:
            self._keep(schema_group, table, batch)
        cache.measure_batch(batch)  # tables may have grown
        unlike: npt.NDArray[np.bool_] = self._found[members - self._begin, 0] < 0
        return members[unlike]

    def _keep(self, schema_group: SchemaGroup, table: FooterTable, batch: TailBatch) -> None:
        """Prune the row groups of files of one schema group."""
        try:
            homogeneous = HomogeneousFiles(
                schema_group, table, batch, self._request.prune, self._report
            )
            if (self._account or schema_group.may_be_final) and 1 in homogeneous.may:
                homogeneous.look(self._report)
        except PageseekError:  # opening the files one by one says so, and which it is
            return
        same = [schema_group.stores(stored) for stored in table.schemas]
        own = ~homogeneous.alone & np.array(same, np.bool_)[table.schema_of]
        at = self._positions[table.members] - self._begin
        mine = at[own]
        self._found[mine, 0], self._found[mine, 1] = len(self._homogeneous), np.flatnonzero(own)
        self._homogeneous.append(homogeneous)
        self._decided = None
        self._matched += len(mine)
        if not schema_group.constant:
            self._pruned[at] = homogeneous.pruned() * own[:, None]
            self._gone[at] = self._pruned[at, 1:].any(axis=1)


def _run(flags: Flags) -> int:
    """How many of some flags are set before the first that is not."""
    return len(flags) if flags.all() else int(flags.argmin())
