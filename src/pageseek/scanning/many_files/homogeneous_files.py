"""Many similar files, pruned as if they were one: by the statistics of their footers, and by lists of their values.

Their columns and their writer are the same (schema_group.py). What their footers say stands in one table
(footer_table.py), which outlives a request.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pageseek._core import rows
from pageseek.base.late_modules import npt
from pageseek.base.report import ChunkReport, LeafReport, Report
from pageseek.format.chunks import all_declared_pages
from pageseek.format.embedded import KEY_LOOKUP
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.tails import TailBatch
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.footer_finality import final, more_than_footers
from pageseek.prune.registry import (
    BLOOM_FILTER,
    DATAFUSION_INDEX,
    DICTIONARY,
    DISTINCT,
    FILE_BLOOM,
    LOOKUP,
    LOOKUPS,
    OF_OPENED,
    STATISTICS,
)
from pageseek.prune.row_groups import prune_groups
from pageseek.scanning.many_files.batched_lists import ColumnLists, ask_lists
from pageseek.scanning.many_files.candidate_rows import CandidateRows
from pageseek.scanning.many_files.chunk_filters import ChunkFilters
from pageseek.scanning.many_files.datafusion_lists import DatafusionLists
from pageseek.scanning.many_files.distinct_lists import DistinctLists
from pageseek.scanning.many_files.file_filters import FileFilters
from pageseek.scanning.many_files.file_lookups import FileKeyLookups, FileLookups
from pageseek.scanning.many_files.footer_table import AT, Flags, FooterTable
from pageseek.scanning.many_files.schema_group import SchemaGroup
from pageseek.scanning.one_file.group_joints import CODED_ROWS

LISTS: dict[str, type[ColumnLists]] = {
    FILE_BLOOM: FileFilters, BLOOM_FILTER: ChunkFilters, DISTINCT: DistinctLists, DATAFUSION_INDEX: DatafusionLists,
    KEY_LOOKUP: FileKeyLookups, LOOKUP: FileLookups,
}  # fmt: skip
MECHANISMS = STATISTICS, *LISTS  # that prune many files together, in this order
# columns of `HomogeneousFiles.pruned`: the bytes of a file; for each mechanism whether it ruled out the last of the file, the
# row groups and the rows that it ruled out
PRUNED_COLUMNS = 1 + 3 * len(MECHANISMS)

SMALL_GROUP_ROWS = 1 << 15  # of a row group: with more, its pages cost more than its steps
SMALL_GROUP_BYTES = 1 << 21  # of the chunks that are read of it
WHOLE_CHUNK_BYTES = 1 << 16  # of a chunk: to leave out pages of less costs more than to decode them


def may_join(
    schema_group: SchemaGroup,
    num_rows: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    pages: npt.NDArray[np.int64],
) -> Flags:
    """Which row groups are so small that they are read with those of other files, their chunks whole.

    Parameters
    ----------
    num_rows : int64 array of shape (n,)
    sizes, pages : int64 arrays of shape (n, leaves)
        The bytes of each chunk that is read, and its data pages; -1 where the footer does not tell.
    """
    most = SMALL_GROUP_ROWS
    if schema_group.tests_codes:  # joined row groups have values
        most = min(most, CODED_ROWS)
    small = (num_rows > 0) & (num_rows <= most) & (sizes.sum(axis=1) <= SMALL_GROUP_BYTES)
    return np.asarray(small & ((pages == 1) | (sizes <= WHOLE_CHUNK_BYTES)).all(axis=1))


class HomogeneousFiles:
    """The row groups of several files of one schema group, pruned for a request.

    Attributes
    ----------
    may, must : bytes
        For each row group whether some row may pass, and whether all do.
    steps : list of (str, bytes)
        Each mechanism that was asked, and `may` as it left it.
    alone : bool array
        Files that have to be opened to know more.
    idle : list of (str, bool array)
        Each mechanism, and the row groups of files of which it can prove no more.
    sound, final, small : list of bool
        For each row group whether all chunks are sound, as in FooterFile.placed_chunk; whether no mechanism could add to what the
        footer proves; and whether to ask one costs more than to read the row group with those of other files. Filled by `look`.
    """

    def __init__(
        self,
        schema_group: SchemaGroup,
        table: FooterTable,
        batch: TailBatch,
        use: frozenset[str],
        report: Report,
    ) -> None:
        self.schema_group, self.table, self.counts = schema_group, table, table.counts
        self.alone = table.huge.copy()
        self.final: list[bool] = [False] * len(self.counts)
        self.small = self.final
        self.sound: list[bool] = []
        # row groups of which lists know all values, by the id of a test
        self._exact: dict[int, Flags] = {}
        # row groups to count, each with its rows: undecided, and proven
        self._taken: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        # row groups of files that are opened to ask indexes of rows, or filters; and those of which that pays however small they are
        self._unasked: Flags = np.zeros(len(self.counts), np.bool_)
        self._worth_asking = self._unasked.copy()
        self._candidates: list[tuple[str, CandidateRows]] = []
        self._one_page: list[bool] = []
        self._settled: dict[tuple[bool, bool], Flags] = {}
        self.may = self.must = b"\1" * len(self.counts)
        self.steps: list[tuple[str, bytes]] = []
        self.idle: list[tuple[str, Flags]] = []
        self._prune(STATISTICS, use, None)
        if schema_group.bound_request.bound is None:
            return
        proofs: dict[int, tuple[bytes, bytes]] = {}  # of all lists, by the id of a test
        asked: Flags = np.zeros(len(self.alone), np.bool_)
        for mechanism, form in LISTS.items():
            if mechanism not in use:
                continue
            unusable, answers, idle, unread, told, unpaid = ask_lists(
                form, table, schema_group, self._open_files(), batch, report
            )
            asked |= unusable
            if mechanism in LOOKUPS:
                listed = table.names([mechanism])
                self._leave_to_pruners(listed & ~told, listed & ~unpaid)
            if not form.only_denies:
                asked |= unread
            elif unread.any():
                self._leave_to_pruners(unread, unread)
            if idle.any():
                self.idle.append((mechanism, np.repeat(idle, table.n)))
            for tested, answer in answers:
                test = id(tested)
                may, must = (np.frombuffer(one, np.uint8) for one in (answer.may, answer.must))
                if test in proofs:
                    before = [np.frombuffer(one, np.uint8) for one in proofs[test]]
                    may, must = before[0] & may, before[1] | must
                proofs[test] = may.tobytes(), must.tobytes()
                if answer.exact is not None:
                    self._exact[test] = answer.exact
                if answer.rows is not None and schema_group.requires(tested):
                    self._candidates.append((mechanism, answer.rows))
            if answers:
                self._prune(mechanism, use, proofs)
        others = OF_OPENED - LOOKUPS & use
        if others:
            listed = table.names(others)
            self._leave_to_pruners(listed, listed)
        self.alone |= asked & self._open_files()

    def _leave_to_pruners(self, files: Flags, worth: Flags) -> None:
        """Files have indexes that were not asked here, and those of which that is worth it however small they are."""
        self._unasked |= np.repeat(files, self.table.n)
        self._worth_asking |= np.repeat(worth, self.table.n)

    def _prune(
        self, mechanism: str, use: frozenset[str], proofs: dict[int, tuple[bytes, bytes]] | None
    ) -> None:
        """Prune by the statistics and by what lists prove of tests."""
        bound_request = self.schema_group.bound_request
        if bound_request.bound is not None:
            proof = prune_groups(
                self, bound_request.bound, bound_request.request.options, STATISTICS in use, proofs
            )
            self.may, self.must = proof.may, proof.must
        self.steps.append((mechanism, self.may))

    @property
    def num_row_groups(self) -> int:
        return len(self.counts)

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """The statistics of a leaf, as of one file."""
        return self.table.zones(self.schema_group, leaf)

    def _open_files(self) -> Flags:
        """Files with an undecided row group: some rows may pass, and not all do."""
        may, must = (np.frombuffer(one, np.bool_) for one in (self.may, self.must))
        return self.table.of_files(may & ~must) > 0

    def pruned(self) -> npt.NDArray[np.int64]:
        """PRUNED_COLUMNS for each file; all zero if some of its rows are left."""
        table = self.table
        counts, of_files = table.rows, table.of_files
        left = np.frombuffer(self.may, np.bool_)
        # files with row groups of no rows are left to the planner
        gone = (of_files(left | (counts == 0)) == 0) & (table.n > 0)
        found = np.zeros((len(gone), PRUNED_COLUMNS), np.int64)
        found[:, 0] = table.sizes
        before = np.ones(len(counts), np.bool_)
        for mechanism, may in self.steps:
            after = np.frombuffer(may, np.bool_)
            denied = before & ~after
            groups, at = of_files(denied), 1 + 3 * MECHANISMS.index(mechanism)
            found[:, 1::3] *= groups[:, None] == 0  # the file counts for the last mechanism only
            found[:, at], found[:, at + 1] = groups > 0, groups
            found[:, at + 2] = of_files(counts * denied)
            before = after
        return np.asarray(found * gone[:, None])

    def settled(self, joins: bool, defers: bool) -> Flags:
        """Files of whose undecided row groups no more is asked: no mechanism could add to what their footers prove, or to ask costs
        more than it saves. Parameters: as of `plan_by_footer`.
        """
        found = self._settled.get((joins, defers))
        if found is None:
            of_files = self.table.of_files
            may, must = (np.frombuffer(one, np.bool_) for one in (self.may, self.must))
            undecided = may & ~must
            found = of_files(undecided & ~np.array(self.final, np.bool_)) == 0
            if joins:
                found |= of_files(undecided & ~np.array(self.small, np.bool_)) == 0
            if defers:
                found = np.ones(len(found), np.bool_)
            self._settled[joins, defers] = found
        return found

    def decided(self, joins: bool, defers: bool, account: bool) -> Flags:
        """Files with rows left that `plan_by_footer` would plan without a limit, and of which no index names rows. `account`: the
        report tells of each chunk, which has to be sound then.
        """
        table, may = self.table, np.frombuffer(self.may, np.bool_)
        if self._candidates or not may.any():  # rows that indexes name are taken file by file
            return np.zeros(len(table.n), np.bool_)
        # the report tells whether row groups without rows had statistics; the table of footers does not
        wanting = table.rows == 0
        if account:
            wanting |= may & ~np.array(self.sound)
        left = (table.of_files(wanting) == 0) & (table.of_files(may) > 0)
        return np.asarray(left & self.settled(joins, defers))

    # -- the row groups that are read ---------------------------------------------------------------

    def look(self, report: Report) -> None:
        """Look at the chunks of each row group that may be read: sets `sound` and `final`, and what `cost` and `take` need."""
        schema_group, n = self.schema_group, len(self.counts)
        left = np.flatnonzero(np.frombuffer(self.may, np.bool_))  # as a rule few of very many
        chunks = self.table.chunks[left]
        placed = self.table.placed(schema_group)
        sound, start, size = placed.sound[left], placed.start[left], placed.size[left]

        def of_all(some: npt.NDArray[Any]) -> npt.NDArray[Any]:
            made = np.zeros((n, *some.shape[1:]), some.dtype)
            made[left] = some
            return made

        def known(leaf: Leaf) -> Flags | None:
            zones = self.table.zones(schema_group, leaf)
            return None if zones is None else np.frombuffer(zones.known, np.uint8)[left] != 0

        def exact(test: BoundLeaf) -> Flags | bool:
            found = self._exact.get(id(test))
            return False if found is None else found[left]

        of_read = chunks[:, : len(schema_group.read)]
        pages = all_declared_pages(of_read)
        all_sound = np.asarray(sound.all(axis=1))
        sizes = np.where(sound, size, 0)
        every = sizes.sum(axis=1)
        use = schema_group.bound_request.request.prune
        if not more_than_footers(use):
            self.final = of_all(all_sound).tolist()
        elif schema_group.may_be_final and self.may != self.must:
            last, dear = final(
                schema_group.tests,
                np.where((pages == 1).all(axis=1), 1, -1),
                every,
                lambda leaf, name: chunks[:, schema_group.column[leaf.index], AT[name]],
                lambda leaf: start[:, schema_group.column[leaf.index]],
                known,
                lambda leaf: schema_group.leaf_types[leaf.index][2],
                exact,
            )
            asked = all_sound & ~self._unasked[left]
            if schema_group.joins:
                small = all_sound & ~self._worth_asking[left]
                small &= may_join(schema_group, self.table.rows[left], sizes, pages)
                self.small = of_all(small).tolist()
            last &= asked
            self.final = of_all(last).tolist()
            spared = last & (np.frombuffer(self.must, np.uint8)[left] == 0) & (dear > 0)
            if DICTIONARY in use and spared.any():
                cost, saved = int(dear[spared].sum()), int(every[spared].sum())
                report.too_dear(DICTIONARY, cost, saved, row_groups=int(spared.sum()))
        self.sound = of_all(all_sound).tolist()
        self._one_page = of_all((pages == 1).all(axis=1)).tolist()
        self._sizes, self._pages = of_all(sizes), of_all(pages)
        self._costs = of_all(np.stack([every, (sizes * schema_group.wanted).sum(axis=1)], axis=1))

    def candidates(self, first: int, stop: int) -> list[tuple[str, rows.RowRanges]]:
        """For each mechanism that named rows the ones that may pass, of the row groups from `first` to `stop`, which are those of a file.

        Row groups of several pages a chunk are read whole, as pages are not left out where chunks are so small; larger ones are
        left to the mechanisms that know pages.
        """
        if not self._candidates or not any(self._one_page[first:stop]):
            return []
        made = []
        for mechanism, candidates in self._candidates:
            at, pairs = 0, []
            for place in range(first, stop):
                count = self.counts[place]
                own = candidates.of(place) if self._one_page[place] else None
                pairs.append(np.array([[0, count]]) + at if own is None else own.to_numpy() + at)
                at += count
            made.append((mechanism, rows.RowRanges(np.concatenate(pairs))))
        return made

    def cost(self, place: int, proven: bool) -> int:
        """About the bytes that are read of a row group; only the payload if all its rows are `proven` to pass."""
        return int(self._costs[place, int(proven)])

    def take(
        self,
        key: tuple[str, int],
        place: int,
        num_rows: int,
        proven: bool,
        by: str,
        report: Report,
        fold: bool,
    ) -> None:
        """Count what is read of a row group; with `fold`, later and with others.

        Parameters
        ----------
        key : (str, int)
            The name of its file, and its number there.
        place : int
            Its number among all of these row groups.
        num_rows : int
            The rows that are read of it.
        by : str
            What may rule out the rest of it.
        """
        report.bytes["data"] += self.cost(place, proven)
        if fold:
            self._taken[proven].append((place, num_rows))
            return
        assert report.chunks is not None
        sizes, pages = self._sizes[place].tolist(), self._pages[place].tolist()
        for leaf, read, size, known in zip(
            self.schema_group.read, self._is_read(proven), sizes, pages, strict=True
        ):
            report.chunks[*key, leaf.name] = ChunkReport(
                bytes=size if read else 0,
                rows_decoded=num_rows if read else 0,
                path=leaf.name,
                known=None if known < 0 else known,
                kept=None if read else 0,
                by=by,
            )

    def _is_read(self, proven: bool) -> list[bool]:
        """For each leaf whether it is read: one that is only tested is not if all rows are proven to pass."""
        return self.schema_group.wanted.tolist() if proven else [True] * len(self.schema_group.read)

    def fold(self, report: Report) -> None:
        """Count the row groups that `take` left for later."""
        for proven, taken in enumerate(self._taken):
            if not taken:
                continue
            places = [place for place, _ in taken]
            pages = np.maximum(self._pages[places], 0).sum(axis=0).tolist()
            sizes = self._sizes[places].sum(axis=0).tolist()
            num_rows = sum([n for _, n in taken])
            for leaf, read, size, known in zip(
                self.schema_group.read, self._is_read(bool(proven)), sizes, pages, strict=True
            ):
                sums = report.leaves.setdefault(leaf.name, LeafReport())
                sums.pages_total += known
                if read:
                    sums.bytes += size
                    sums.pages_read += known
                    sums.rows_decoded += num_rows
            taken.clear()
