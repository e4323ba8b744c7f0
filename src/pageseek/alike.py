"""Many files of one kind, judged as if they were one: by the statistics of their footers, and lists of their values.

As a rule the files of a dataset have the same columns, and one writer. What a file is looked at for is then the same for
all of them, and is made once (`Kind`); what their footers say of that stands in one table (`Records`), which outlives a
request; what a request makes of it is an `Alike`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import metadata as core
from pageseek._core import rows
from pageseek._core.bloom import xxh64
from pageseek.bounds import Bounds
from pageseek.chunks import sound_chunks
from pageseek.distinct import KIND as DISTINCT_KIND
from pageseek.distinct import VERSION
from pageseek.embedded import (
    FIGURES,
    KEY,
    DoubtError,
    Likely,
    Pointer,
    figures,
    opened,
)
from pageseek.ends import Batch
from pageseek.errors import CoreError, PageseekError, placed
from pageseek.metadata import ParquetFile
from pageseek.page_index import int64s
from pageseek.predicate.bound import Bound, leaves_of, tests_of
from pageseek.prune import (
    DISTINCT,
    PUBLISHED,
    STATISTICS,
    Figures,
    ValueLists,
    final,
    may_be_final,
    prune_groups,
)
from pageseek.published import KEY as PUBLISHED_KEY
from pageseek.report import ChunkReport, LeafReport, Report
from pageseek.request import Scope
from pageseek.schema import Leaf
from pageseek.statistics import zone_figures
from pageseek.storage.local import read_part
from pageseek.types import ABSENT, Form, Options

WIDE = 16  # columns of a file beyond which they are not looked at without need
SCHEMAS = 64  # stored by files of one kind
RECORDS = 1 << 14  # column chunks at a time
SHARE = 4  # one of so many files that have lists is enough to look at the lists of all
LISTS = 8 << 20  # bytes of lists that do not lie in the ends of the files
MOST_ROWS = 1 << 40  # of a row group
SCHEMA = b"ARROW:schema"
KEYS = SCHEMA, KEY, PUBLISHED_KEY
AT: dict[str, int] = {name: i for i, name in enumerate(core.CHUNK_FIELDS)}
# of a file of which nothing is left: 1, its bytes, row groups and rows; whether a list of values had a part in that, the
# row groups and rows that it ruled out
GONE = "files", "bytes", "groups", "rows", "listed_files", "listed_groups", "listed_rows"
Flags: TypeAlias = npt.NDArray[np.bool_]


class Kind:
    """Files of which one was opened: they have its columns, its writer, and the same is asked of them."""

    def __init__(self, file: ParquetFile, scope: Scope, account: bool) -> None:
        self.like = file.likeness
        self.stored = file.columns_key[2]
        # what others have stored, and whether that says the same
        self._stored: dict[bytes | None, bool] = {}
        self.scope, self.tree = scope, file.schema_tree
        self.orders, self.writer = file.orders, file.writer
        bound, options = scope.bound, scope.request.options
        self.tests = [] if bound is None else tests_of(bound)
        tested = [test.leaf for test in self.tests if not test.leaf.group]
        self.forms: dict[int, tuple[Form, bool, bool]] = {
            leaf.index: (file.form(leaf, options), *file.believed(leaf)) for leaf in tested
        }
        # the leaves that are read, and those of which the statistics are asked, the first of which they are
        self.read: list[Leaf] = []
        if not any(test.leaf.group for test in ([] if bound is None else leaves_of(bound))):
            self.read = scope.touched(file)(0) if account or bound is not None else []
        if not account and len(self.read) > WIDE:
            self.read = []
        self.may_be_final = bool(self.read) and may_be_final(self.tests, scope.request.prune)
        asked = {leaf.index: leaf for leaf in self.read}
        asked |= {leaf.index: leaf for leaf in tested}
        self.column = {index: i for i, index in enumerate(asked)}
        self.leaves = np.array(list(asked), np.uint64)
        self.wanted = np.array([leaf.index in scope.payload for leaf in self.read], bool)

    @staticmethod
    def may_be_made(file: ParquetFile, scope: Scope, account: bool) -> bool:
        """Whether the footers of such files say all that there is to know."""
        if (
            file.is_encrypted
            or file.understates_chunks
            or len(file.orders) * 8 != len(file.likeness[2])
        ):
            return False
        bound = scope.bound
        # which leaf of a group is read hangs on its chunks
        return bound is None or not account or not any(t.leaf.group for t in leaves_of(bound))

    def stores(self, raw: bytes | None) -> bool:
        """Whether a file with this Arrow schema is one of them; as a rule schemas differ in no more than remarks."""
        found = self._stored.get(raw)
        if found is None:
            if len(self._stored) >= SCHEMAS:
                self._stored.clear()
            found = self._stored[raw] = raw == self.stored or self.tree.stores(raw)
        return found


class _Listed(NamedTuple):
    """The lists of one column that some of the files have. `groups`: the row groups that these speak of; `doubtful`: of
    each file, whether it has one, or may have, that is not among them.
    """

    values: ValueLists | None
    groups: npt.NDArray[np.int64]
    doubtful: Flags


class Records:
    """What the footers of files of one kind say of the leaves that are asked for.

    Attributes
    ----------
    members : list of int
        The places of the files in their batch.
    sizes : int64 array
        Of the files.
    first, n : int64 array
        The first row group of each file among all of these, and how many it has.
    pairs : int64 array of shape (files, KEYS, 2)
        Where in the footers the values of key-value pairs lie, and their lengths, or ABSENT.
    counts : list of int
        The rows of each row group.
    table : int64 array of shape (row groups, leaves, fields of a chunk)
    schemas, schema_of : list of bytes or None, int64 array
        The Arrow schemas that their writers put there, and which each file has.
    """

    def __init__(
        self,
        data: bytes,
        members: Sequence[int],
        groups: Sequence[int],
        pairs: memoryview,
        counts: memoryview,
        chunks: memoryview,
        leaves: int,
        sizes: Sequence[int],
    ) -> None:
        own = [i for i, n in enumerate(groups) if n >= 0]
        self.members = [members[i] for i in own]
        self.sizes = np.array([sizes[i] for i in own], np.int64)
        self.n = np.array([groups[i] for i in own], np.int64)
        self.first = np.cumsum(self.n) - self.n
        self.pairs = int64s(pairs).reshape(-1, len(KEYS), 2)[own]
        self.counts: list[int] = counts.cast("q").tolist()
        self.table = int64s(chunks).reshape(len(self.counts), leaves, len(AT))
        self.data = memoryview(data)
        self.schemas, self.schema_of = self._stored()
        self._zones: dict[Any, rows.Zones | None] = {}
        self._listed: dict[Any, _Listed] = {}
        self._lists = 0  # bytes of these

    def _stored(self) -> tuple[list[bytes | None], npt.NDArray[np.int64]]:
        places: list[list[int]] = self.pairs[:, KEYS.index(SCHEMA)].tolist()
        found: dict[bytes | None, int] = {}
        of = [
            found.setdefault(None if at == ABSENT else bytes(self.data[at : at + n]), len(found))
            for at, n in places
        ]
        return list(found), np.array(of, np.int64)

    @property
    def nbytes(self) -> int:
        """About the memory that it takes, beside the footers, which the batch has."""
        table = 2 * self.table.nbytes + self.pairs.nbytes + 200 * len(self.members)
        return int(table + 4 * self._lists)

    @classmethod
    def of(cls, kind: Kind, batch: Batch, places: Sequence[int], limit: int) -> list[Records]:
        """Those of the files at some places of a batch that are like a kind."""
        names, feet = kind.like[0], batch.feet
        places = [i for i in places if feet.startswith(names, batch.at[i][0])]
        at = np.array([batch.at[i] for i in places], np.uint64).reshape(-1, 2)
        most = max(RECORDS // max(len(kind.leaves), 1), 1)
        made, done = [], 0
        while done < len(places):
            groups, pairs, counts, chunks = core.footers(
                feet, at[done:], kind.like, kind.leaves, most, KEYS, max_arena=limit
            )
            of_each = groups.cast("q").tolist()
            members = places[done : done + len(of_each)]
            sizes = [batch.seen[i][1] for i in members]
            made.append(cls(feet, members, of_each, pairs, counts, chunks, len(kind.leaves), sizes))
            done += len(of_each)
        return made

    def has(self, key: bytes) -> Flags:
        """Which files have a key-value pair."""
        return np.asarray(self.pairs[:, KEYS.index(key), 0] != ABSENT)

    def of_files(self, flags: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The sum over the row groups of each file."""
        sums = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
        return np.asarray(sums[self.first + self.n] - sums[self.first])

    def zones(self, kind: Kind, leaf: Leaf) -> rows.Zones | None:
        """The statistics of a leaf as zones to probe, one a row group; None without any."""
        key = leaf.index, kind.forms[leaf.index]
        if key not in self._zones:
            self._zones[key] = self._make_zones(kind, leaf)
        return self._zones[key]

    def _make_zones(self, kind: Kind, leaf: Leaf) -> rows.Zones | None:
        n = len(self.counts)
        form, bounds, counts = kind.forms[leaf.index]
        if not bounds or form.is_null:
            return None
        table = self.table[:, kind.column[leaf.index]].tobytes()
        found = zone_figures(table, self.data, leaf, form, kind.orders, kind.writer, counts)
        if found is None:
            return None
        places, nulls, nans = found
        of_rows = struct.pack(f"{n}q", *self.counts)
        with placed(f"column {leaf.name!r}: statistics"):
            return Bounds(form, self.data, places, n, None, nulls, nans, of_rows, 0).zones

    def is_listed(self, leaf: Leaf, form: Form) -> bool:
        """Whether the lists of a column were looked at before."""
        return (leaf.index, form) in self._listed

    def listed(self, kind: Kind, leaf: Leaf, form: Form, batch: Batch, report: Report) -> _Listed:
        """The lists of values of a column, of all files that have one."""
        key = leaf.index, form
        if key not in self._listed:
            self._listed[key] = self._read_lists(kind, leaf, form, batch, report)
        return self._listed[key]

    def _read_lists(
        self, kind: Kind, leaf: Leaf, form: Form, batch: Batch, report: Report
    ) -> _Listed:
        of_chunks = figures(self.counts, self.table[:, kind.column[leaf.index]])
        doubtful = np.zeros(len(self.members), np.bool_)
        found: list[int] = []
        bodies: list[memoryview] = []
        held, likely = 0, Likely(leaf, DISTINCT_KIND, VERSION)
        pairs = self.pairs[:, KEYS.index(KEY)].tolist()
        first, n = self.first.tolist(), self.n.tolist()
        for i in np.flatnonzero(self.has(KEY)).tolist():
            place = self.members[i]
            try:
                value = self.data[pairs[i][0] : sum(pairs[i])]
                pointer = likely.find(value, batch.footer_start(place))
                if pointer is None:
                    continue
                data = batch.part(place, pointer.offset, pointer.length)
                if data is None:
                    held += pointer.length
                    if held > LISTS:
                        raise DoubtError("too many")
                    data = _read(batch, place, pointer, report)
                own = of_chunks[FIGURES * first[i] : FIGURES * (first[i] + n[i])]
                bodies.append(opened(pointer, data, xxh64(own)))
                found.append(i)
            except (DoubtError, OSError):  # who opens the file will say what is wrong
                doubtful[i] = True
        if not found:
            return _Listed(None, np.zeros(0, np.int64), doubtful)
        sizes = [body.nbytes for body in bodies]
        self._lists += sum(sizes)
        starts = list(accumulate(sizes, initial=0))[:-1]
        places = np.array([starts, sizes, self.n[found]], np.int64).T.copy()
        groups = np.concatenate([np.arange(f, f + n) for f, n in self._spans(found)])
        try:
            values = ValueLists(b"".join(bodies), places, form)
        except (CoreError, PageseekError, pa.ArrowException):
            doubtful[found] = True
            return _Listed(None, np.zeros(0, np.int64), doubtful)
        doubtful[found] = ~values.sound
        return _Listed(values, groups, doubtful)

    def _spans(self, files: Sequence[int]) -> list[tuple[int, int]]:
        return list(zip(self.first[files].tolist(), self.n[files].tolist(), strict=True))


def _read(batch: Batch, place: int, pointer: Pointer, report: Report) -> memoryview:
    """An index that does not lie in the end of its file."""
    data = read_part(batch.paths[place], batch.seen[place], pointer.offset, pointer.length)
    report.requests += 1
    report.waves += 1
    report.bytes["index"] += len(data)
    return memoryview(data)


class Alike:
    """The row groups of several files of one kind, and what a request makes of them.

    Attributes
    ----------
    may, must : bytes
        Of each row group: whether some row may pass, and whether all do.
    said : bytes
        `may`, as far as the statistics of the footer say it.
    alone : bool array
        Files that have to be opened to know more.
    """

    def __init__(
        self, kind: Kind, records: Records, batch: Batch, use: frozenset[str], report: Report
    ) -> None:
        self.kind, self.records, self.counts = kind, records, records.counts
        # one that claims so many rows is left out of sums
        self.alone = records.of_files(np.array(records.counts, np.int64) > MOST_ROWS) > 0
        self.final: list[bool] = [False] * len(self.counts)
        self._exact: dict[
            int, Flags
        ] = {}  # by the id of a test: row groups whose values were asked
        self._taken: tuple[list[int], list[int]] = [], []  # to be counted: in doubt, and proven
        bound = kind.scope.bound
        if bound is None:
            self.may = self.must = self.said = b"\1" * len(self.counts)
            return
        options = kind.scope.request.options
        proof = prune_groups(self, bound, options, STATISTICS in use)
        self.may, self.must = proof.may, proof.must
        self.said = proof.may
        if DISTINCT in use:
            self._ask_lists(bound, options, use, batch, report)
        if PUBLISHED in use:
            self.alone |= records.has(PUBLISHED_KEY) & self._open_files()

    @property
    def num_row_groups(self) -> int:
        return len(self.counts)

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """As that of a file."""
        return self.records.zones(self.kind, leaf)

    def _open_files(self) -> Flags:
        """Files of which some row group may pass in part."""
        may, must = (np.frombuffer(one, np.bool_) for one in (self.may, self.must))
        return self.records.of_files(may & ~must) > 0

    def _ask_lists(
        self,
        bound: Bound,
        options: Options,
        use: frozenset[str],
        batch: Batch,
        report: Report,
    ) -> None:
        """Put the tests to the lists of values that the files have, where that is worth it."""
        records, kind = self.records, self.kind
        have = records.has(KEY)
        if not have.any():
            return
        doubt = self._open_files() & have
        tests = [
            test
            for test in kind.tests
            if not (test.leaf.group or test.leaf.max_rep or test.form.is_null)
        ]
        known = all(records.is_listed(test.leaf, test.form) for test in tests)
        # of a few they are read as these are opened
        if not doubt.any() or (not known and SHARE * doubt.sum() < have.sum()):
            self.alone |= doubt
            return
        told: dict[int, tuple[bytes, bytes]] = {}
        for test in tests:
            listed = records.listed(kind, test.leaf, test.form, batch, report)
            self.alone |= listed.doubtful
            if listed.values is not None:
                answer = listed.values.judge(test)
                may, must = (
                    np.ones(len(self.counts), np.uint8),
                    np.zeros(len(self.counts), np.uint8),
                )
                may[listed.groups] = np.frombuffer(answer.may, np.uint8)
                must[listed.groups] = np.frombuffer(answer.must, np.uint8)
                told[id(test)] = may.tobytes(), must.tobytes()
                exact = self._exact[id(test)] = np.zeros(len(self.counts), np.bool_)
                exact[listed.groups] = np.frombuffer(listed.values.exact, np.bool_)
        if told:
            proof = prune_groups(self, bound, options, STATISTICS in use, told)
            self.may, self.must = proof.may, proof.must
        self.alone &= self._open_files()

    def gone(self) -> npt.NDArray[np.int64]:
        """Of each file the columns of GONE, zero of one of which something is left."""
        records = self.records
        may, said = (np.frombuffer(one, np.bool_) for one in (self.may, self.said))
        counts = np.array(self.counts, np.int64)
        listed = said & ~may
        of_files = records.of_files
        # one without rows, and without statistics, would be told apart
        gone = (of_files(may | (counts == 0)) == 0) & (records.n > 0)
        by_list = of_files(listed)
        found = [
            gone,
            records.sizes,
            records.n,
            of_files(counts),
            by_list > 0,
            by_list,
            of_files(counts * listed),
        ]
        return np.asarray(np.stack(found, axis=1).astype(np.int64) * gone[:, None])

    # -- what is known of those that are read -----------------------------------------------------

    def look(self) -> None:
        """Look at the chunks that may be read.

        Of each row group is then known whether all chunks are `sound`, as FooterFile.placed_chunk has it, whether the
        footer has the last word (`final`), and the bytes that are read where it is proven, and where not (`costs`).
        """
        kind = self.kind

        def of(name: str) -> Figures:
            return self.records.table[:, : len(kind.read), AT[name]]

        ends = np.repeat(self.records.sizes, self.records.n)[:, None]
        counts = np.array(self.counts, np.int64)[:, None]
        types = np.array([leaf.element.type for leaf in kind.read], np.int64)
        repeated = np.array([leaf.max_rep > 0 for leaf in kind.read], bool)
        table = self.records.table[:, : len(kind.read)]
        sound, start, size = sound_chunks(table, types, repeated, counts, ends)
        sounds = np.asarray(sound.all(axis=1))
        self.sound: list[bool] = sounds.tolist()
        self._sizes = np.where(sound, size, 0)
        every = self._sizes.sum(axis=1)
        self.costs = (every.tolist(), (self._sizes * kind.wanted).sum(axis=1).tolist())
        pages = of("dictionary_data_pages") + of("other_data_pages")
        self._pages = np.where(of("encoding_stats") == 1, pages, -1)
        if kind.may_be_final and self.may != self.must:
            options = kind.scope.request.options
            self.final = (
                sounds
                & final(
                    kind.tests,
                    np.where((self._pages == 1).all(axis=1), 1, -1),
                    every,
                    lambda leaf, name: self.records.table[:, kind.column[leaf.index], AT[name]],
                    lambda leaf: start[:, kind.column[leaf.index]],
                    lambda leaf: self.group_zones(leaf, options),
                    lambda leaf: kind.forms[leaf.index][2],
                    lambda test: self._exact.get(id(test), False),
                )
            ).tolist()

    def take(
        self, key: tuple[str, int], place: int, proven: bool, by: str, report: Report, fold: bool
    ) -> None:
        """Count what is read of a row group, at a `place` among all of these. `key`: the name of its file, and its number
        there; `by`: what may rule out the rest of it.
        """
        report.bytes["data"] += self.costs[proven][place]
        if fold:
            self._taken[proven].append(place)
            return
        assert report.chunks is not None
        sizes, pages = self._sizes[place].tolist(), self._pages[place].tolist()
        for leaf, read, size, known in zip(
            self.kind.read, self._is_read(proven), sizes, pages, strict=True
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
        return self.kind.wanted.tolist() if proven else [True] * len(self.kind.read)

    def fold(self, report: Report) -> None:
        """Count the row groups that were taken, all at once."""
        for proven, taken in enumerate(self._taken):
            if not taken:
                continue
            pages = np.maximum(self._pages[taken], 0).sum(axis=0).tolist()
            sizes = self._sizes[taken].sum(axis=0).tolist()
            in_them = sum([self.counts[place] for place in taken])
            for leaf, read, size, known in zip(
                self.kind.read, self._is_read(bool(proven)), sizes, pages, strict=True
            ):
                sums = report.leaves.setdefault(leaf.name, LeafReport())
                sums.pages_total += known
                if read:
                    sums.bytes += size
                    sums.pages_read += known
                    sums.rows_decoded += in_them
            taken.clear()
