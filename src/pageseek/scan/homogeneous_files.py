"""Many files of one kind, pruned as if they were one: by the statistics of their footers, and lists of their values.

As a rule the files of a dataset have the same columns, and one writer. What a file is looked at for is then the same for
all of them, and is made once (`Kind`); what their footers say of that stands in one table (`Records`), which outlives a
request; what a request makes of it is an `Alike`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pageseek._core import rows
from pageseek.base.errors import PageseekError
from pageseek.base.report import ChunkReport, LeafReport, Report
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.tails import TailBatch
from pageseek.predicate.bound import Bound, BoundLeaf
from pageseek.prune import (
    DATAFUSION_INDEX,
    DICTIONARY,
    DISTINCT,
    STATISTICS,
    Figures,
    final,
    prune_groups,
)
from pageseek.prune.datafusion_list import KEY as PUBLISHED_KEY
from pageseek.prune.datafusion_list import asked_of, denies, may_deny
from pageseek.scan.batched_lists import is_read, published_lists
from pageseek.scan.distinct_lists import SHARE, ask_lists
from pageseek.scan.footer_table import AT, Flags, FooterTable
from pageseek.scan.schema_group import SchemaGroup

MECHANISMS = STATISTICS, DISTINCT, DATAFUSION_INDEX  # that prune many files together, in this order
# of a file of which nothing is left: its bytes; of each mechanism, whether it was the last to rule out some of it, the row
# groups and rows that it ruled out
GONE = 1 + 3 * len(MECHANISMS)


class HomogeneousFiles:
    """The row groups of several files of one kind, and what a request makes of them.

    Attributes
    ----------
    may, must : bytes
        Of each row group: whether some row may pass, and whether all do.
    steps : list of (str, bytes)
        Each mechanism that was asked, and `may` as it left it.
    alone : bool array
        Files that have to be opened to know more.
    """

    def __init__(
        self,
        schema_group: SchemaGroup,
        records: FooterTable,
        batch: TailBatch,
        use: frozenset[str],
        report: Report,
    ) -> None:
        self.schema_group, self.records, self.counts = schema_group, records, records.counts
        self.alone = records.huge.copy()
        self.final: list[bool] = [False] * len(self.counts)
        self.sound: list[bool] = []  # nothing is known before `look`
        self._exact: dict[
            int, Flags
        ] = {}  # by the id of a test: row groups whose values were asked
        self._taken: tuple[list[int], list[int]] = [], []  # to be counted: in doubt, and proven
        bound = schema_group.bound_request.bound
        if bound is None:
            self.may = self.must = b"\1" * len(self.counts)
            self.steps = [(STATISTICS, self.may)]
            return
        options = schema_group.bound_request.request.options
        proof = prune_groups(self, bound, options, STATISTICS in use)
        self.may, self.must = proof.may, proof.must
        self.steps = [(STATISTICS, proof.may)]
        self._told: dict[int, tuple[bytes, bytes]] = {}  # by the id of a test: what lists say of it
        asked: Flags = np.zeros(len(self.alone), np.bool_)
        if DISTINCT in use:
            asked |= self._ask_lists(bound, options, use, batch, report)
        if DATAFUSION_INDEX in use:
            asked |= self._ask_published(bound, options, use, batch, report)
        self.alone |= asked & self._open_files()

    @property
    def num_row_groups(self) -> int:
        return len(self.counts)

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """As that of a file."""
        return self.records.zones(self.schema_group, leaf)

    def _open_files(self) -> Flags:
        """Files of which some row group may pass in part."""
        may, must = (np.frombuffer(one, np.bool_) for one in (self.may, self.must))
        return self.records.of_files(may & ~must) > 0

    def _take_in(
        self,
        mechanism: str,
        told: dict[int, tuple[bytes, bytes]],
        bound: Bound,
        options: Options,
        use: frozenset[str],
    ) -> None:
        """What a mechanism says of tests, by their ids: whether some row of each row group may pass, and whether all do."""
        for test, (may, must) in told.items():
            if test in self._told:
                before = [np.frombuffer(one, np.uint8) for one in self._told[test]]
                may = bytes(before[0] & np.frombuffer(may, np.uint8))
                must = bytes(before[1] | np.frombuffer(must, np.uint8))
            self._told[test] = may, must
        if told:
            proof = prune_groups(self, bound, options, STATISTICS in use, self._told)
            self.may, self.must = proof.may, proof.must
            self.steps.append((mechanism, proof.may))

    def _ask_published(
        self,
        bound: Bound,
        options: Options,
        use: frozenset[str],
        batch: TailBatch,
        report: Report,
    ) -> Flags:
        """Put the tests to the lists in the published form. Returns the files that have to be opened to know what theirs
        say.
        """
        records, schema_group = self.records, self.schema_group
        have = records.has(PUBLISHED_KEY)
        none: Flags = np.zeros(len(have), np.bool_)
        tests = [test for test in schema_group.tests if may_deny(test)]
        error = self._open_files() & have
        if not tests or not error.any():
            return none
        named = schema_group.bound_request.request.distinct_index
        known = all(is_read(records, test.leaf, named) for test in tests)
        if not known and SHARE * error.sum() < have.sum():
            return error
        unusable, told = none, {}
        for test in tests:
            try:
                found = published_lists(records, schema_group, test.leaf, named, batch, report)
            except PageseekError:  # the column that the caller names is not there
                return error
            unusable = unusable | found.unusable
            asked = asked_of(test)
            denied = np.array(
                [one is not None and denies(test, asked, one) for one in found.lists], np.bool_
            )
            if denied.any():
                told[id(test)] = bytes(~np.repeat(denied, records.n)), bytes(len(self.counts))
        self._take_in(DATAFUSION_INDEX, told, bound, options, use)
        return unusable

    def _ask_lists(
        self,
        bound: Bound,
        options: Options,
        use: frozenset[str],
        batch: TailBatch,
        report: Report,
    ) -> Flags:
        """Prune by the lists of values that pageseek has put into the files, where that is worth it."""
        records, schema_group = self.records, self.schema_group
        tests = [
            test
            for test in schema_group.tests
            if not (test.leaf.group or test.leaf.max_rep or test.leaf_type.is_null)
        ]
        unusable, told = ask_lists(records, schema_group, tests, self._open_files(), batch, report)
        for key, answer in told.items():
            self._exact[key] = answer.exact
        proofs = {key: (answer.may, answer.must) for key, answer in told.items()}
        self._take_in(DISTINCT, proofs, bound, options, use)
        return unusable

    def gone(self) -> npt.NDArray[np.int64]:
        """Of each file the columns of GONE, zero of one of which something is left."""
        records = self.records
        counts, of_files = records.rows, records.of_files
        left = np.frombuffer(self.may, np.bool_)
        # one without rows, and without statistics, would be told apart
        gone = (of_files(left | (counts == 0)) == 0) & (records.n > 0)
        found = np.zeros((len(gone), GONE), np.int64)
        found[:, 0] = records.sizes
        before = np.ones(len(counts), np.bool_)
        for mechanism, may in self.steps:
            after = np.frombuffer(may, np.bool_)
            denied = before & ~after
            groups, at = of_files(denied), 1 + 3 * MECHANISMS.index(mechanism)
            found[:, 1::3] *= groups[:, None] == 0  # the last of them has the file
            found[:, at], found[:, at + 1] = groups > 0, groups
            found[:, at + 2] = of_files(counts * denied)
            before = after
        return np.asarray(found * gone[:, None])

    # -- what is known of those that are read -----------------------------------------------------

    def look(self, report: Report) -> None:
        """Look at the chunks that may be read.

        Of each row group of which some row may pass is then known whether all chunks are `sound`, as
        FooterFile.placed_chunk has it, whether the footer has the last word (`final`), and its `cost`.
        """
        schema_group, n = self.schema_group, len(self.counts)
        left = np.flatnonzero(np.frombuffer(self.may, np.bool_))  # as a rule few of very many
        table = self.records.table[left]
        placed = self.records.placed(schema_group)
        sound, start, size = placed[0][left], placed[1][left], placed[2][left]

        def of(name: str) -> Figures:
            return table[:, : len(schema_group.read), AT[name]]

        def of_all(some: npt.NDArray[Any]) -> npt.NDArray[Any]:
            made = np.zeros((n, *some.shape[1:]), some.dtype)
            made[left] = some
            return made

        def known(leaf: Leaf) -> Flags | None:
            said = self.group_zones(leaf, schema_group.bound_request.request.options)
            return None if said is None else np.frombuffer(said.known, np.uint8)[left] != 0

        def exact(test: BoundLeaf) -> Flags | bool:
            found = self._exact.get(id(test))
            return False if found is None else found[left]

        sounds = np.asarray(sound.all(axis=1))
        sizes = np.where(sound, size, 0)
        every = sizes.sum(axis=1)
        pages = of("dictionary_data_pages") + of("other_data_pages")
        pages = np.where(of("encoding_stats") == 1, pages, -1)
        if schema_group.may_be_final and self.may != self.must:
            footers_word, dear = final(
                schema_group.tests,
                np.where((pages == 1).all(axis=1), 1, -1),
                every,
                lambda leaf, name: table[:, schema_group.column[leaf.index], AT[name]],
                lambda leaf: start[:, schema_group.column[leaf.index]],
                known,
                lambda leaf: schema_group.leaf_types[leaf.index][2],
                exact,
            )
            last = sounds & footers_word
            self.final = of_all(last).tolist()
            open_ones = np.frombuffer(self.must, np.uint8)[left] == 0
            spared = last & open_ones & (dear > 0)
            if DICTIONARY in schema_group.bound_request.request.prune and spared.any():
                cost, saved = int(dear[spared].sum()), int(every[spared].sum())
                report.too_dear(DICTIONARY, cost, saved, row_groups=int(spared.sum()))
        self.sound = of_all(sounds).tolist()
        self._sizes, self._pages = of_all(sizes), of_all(pages)
        self._costs = of_all(np.stack([every, (sizes * schema_group.wanted).sum(axis=1)], axis=1))

    def cost(self, place: int, proven: bool) -> int:
        """About the bytes that are read of a row group; of one that is `proven` no more than what is wanted of it."""
        return int(self._costs[place, int(proven)])

    def take(
        self, key: tuple[str, int], place: int, proven: bool, by: str, report: Report, fold: bool
    ) -> None:
        """Count what is read of a row group, at a `place` among all of these. `key`: the name of its file, and its number
        there; `by`: what may rule out the rest of it.
        """
        report.bytes["data"] += self.cost(place, proven)
        if fold:
            self._taken[proven].append(place)
            return
        assert report.chunks is not None
        sizes, pages = self._sizes[place].tolist(), self._pages[place].tolist()
        for leaf, read, size, known in zip(
            self.schema_group.read, self._is_read(proven), sizes, pages, strict=True
        ):
            report.chunks[*key, leaf.name] = ChunkReport(
                bytes=size if read else 0,
                rows_decoded=self.counts[place] if read else 0,
                path=leaf.name,
                known=None if known < 0 else known,
                kept=None if read else 0,
                by=by,
            )

    def _is_read(self, proven: bool) -> list[bool]:
        """Of each leaf: one that is only tested is not read where all rows are known to pass."""
        return self.schema_group.wanted.tolist() if proven else [True] * len(self.schema_group.read)

    def fold(self, report: Report) -> None:
        """Count the row groups that were taken, all at once."""
        for proven, taken in enumerate(self._taken):
            if not taken:
                continue
            pages = np.maximum(self._pages[taken], 0).sum(axis=0).tolist()
            sizes = self._sizes[taken].sum(axis=0).tolist()
            in_them = sum([self.counts[place] for place in taken])
            for leaf, read, size, known in zip(
                self.schema_group.read, self._is_read(bool(proven)), sizes, pages, strict=True
            ):
                sums = report.leaves.setdefault(leaf.name, LeafReport())
                sums.pages_total += known
                if read:
                    sums.bytes += size
                    sums.pages_read += known
                    sums.rows_decoded += in_them
            taken.clear()
