"""The footers of many similar files in one table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pageseek._core import lists, rows
from pageseek._core import metadata as core
from pageseek.base.errors import placed
from pageseek.base.in_parts import in_parts
from pageseek.base.late_modules import npt
from pageseek.datasets.legacy_calendar import DATETIME, OF_INT96, TIME_ZONE, VERSION
from pageseek.format.bounds import Bounds
from pageseek.format.chunks import Sound, sound_chunks
from pageseek.format.embedded import DATAFUSION_KEY, KEY
from pageseek.format.page_index import int64s
from pageseek.format.schema import Leaf, lazy
from pageseek.format.statistics import zone_statistics
from pageseek.format.types import ABSENT
from pageseek.io.tails import TailBatch
from pageseek.scanning.many_files.schema_group import SchemaGroup

RECORDS = 1 << 14  # column chunks that are parsed at a time
SHARED = 256  # footers that are worth a thread
MOST_ROWS = 1 << 40  # rows of a row group beyond which it is left out of sums
SCHEMA = b"ARROW:schema"
OF_SPARK = VERSION, DATETIME, OF_INT96, TIME_ZONE
KEYS = SCHEMA, KEY, DATAFUSION_KEY, *OF_SPARK
AT: dict[str, int] = {name: i for i, name in enumerate(core.CHUNK_FIELDS)}
Flags: TypeAlias = npt.NDArray[np.bool_]
_NO_SPARK: tuple[bytes | None, ...] = (None,) * len(OF_SPARK)


# the kind of an entry in a directory of indexes (docs/format.md); the next entry may follow at its last quote, if it is damaged
_KIND = re.compile(rb'"kind"\s*:\s*"([^"]*)(?=")')
_KIND_AS_WRITTEN, _NAME = np.frombuffer(b'"kind":"', np.uint8), len(b'"kind"')
LONGEST_KIND = 64  # bytes


class FooterTable:
    """The footers of several files of a schema group: their row groups, and the chunks of its leaves.

    Attributes
    ----------
    members : int64 array
        The places of the files in their batch.
    sizes : int64 array
        Of the files.
    first, n : int64 array
        The first row group of each file among all of these, and how many it has.
    pairs : int64 array of shape (files, KEYS, 2)
        Where in the footers the values of key-value pairs lie, and their lengths, or ABSENT.
    counts, rows : list of int, int64 array
        The rows of each row group.
    huge : bool array
        Files with a row group that claims more than MOST_ROWS.
    chunks : int64 array of shape (row groups, leaves, fields of a chunk)
        The records of the column chunks.
    schemas, schema_of : list of bytes or None, int64 array
        The Arrow schemas that writers left, and the position there of the one of each file.
    lists : dict
        The lists of values that were read (batched_lists.py).
    """

    def __init__(
        self,
        data: bytes,
        members: npt.NDArray[np.int64],
        groups: npt.NDArray[np.int64],
        pairs: memoryview,
        counts: memoryview,
        chunks: memoryview,
        leaves: int,
        sizes: npt.NDArray[np.int64],
    ) -> None:
        own = groups >= 0
        self.members = members[own]
        self.sizes, self.n = sizes[own], groups[own]
        self.first = np.cumsum(self.n) - self.n
        self._one_each = bool((self.n == 1).all())
        self.pairs = int64s(pairs).reshape(-1, len(KEYS), 2)[own]
        self.counts: list[int] = counts.cast("q").tolist()
        self.rows = int64s(counts)
        self.huge: Flags = self.of_files(self.rows > MOST_ROWS) > 0
        self.chunks = int64s(chunks).reshape(len(self.counts), leaves, len(AT))
        self.data = memoryview(data)
        self.schemas, self.schema_of = self._stored(data)
        by_spark = self.has(VERSION)
        self._written_by_spark: list[bool] = by_spark.tolist() if by_spark.any() else []
        self.lists: dict[Any, Any] = {}
        self._list_bytes = 0
        self._bounds: dict[Any, Bounds | None] = {}
        self._placed: dict[int, Sound] = {}  # by the number of leaves that are read

    def _stored(self, data: bytes) -> tuple[list[bytes | None], npt.NDArray[np.int64]]:
        found: dict[bytes | None, int] = {}
        of = []
        places = self.pairs[:, KEYS.index(SCHEMA)]
        if len(places) and places[0, 0] != ABSENT and (places[:, 1] == places[0, 1]).all():
            one, every = (
                lists.cut(data, np.ascontiguousarray(some)) for some in (places[:1], places)
            )
            if every == one * len(places):
                return [one], np.zeros(len(places), np.int64)
        usual, length = (
            b"",
            -1,
        )  # as a rule all files have one schema, which is compared in its place
        for at, n in self.pairs[:, KEYS.index(SCHEMA)].tolist():
            if n == length and data.startswith(usual, at):
                of.append(0)
                continue
            stored = None if at == ABSENT else data[at : at + n]
            if not found and stored is not None:
                usual, length = stored, n
            of.append(found.setdefault(stored, len(found)))
        return list(found), np.array(of, np.int64)

    def hold(self, nbytes: int) -> None:
        """Count bytes of lists that are kept."""
        self._list_bytes += nbytes

    @property
    def nbytes(self) -> int:
        """About the bytes of memory that it takes, beside the footers, which the batch holds."""
        table = 2 * self.chunks.nbytes + self.pairs.nbytes + 200 * len(self.members)
        return int(table + 4 * self._list_bytes)

    @classmethod
    def of(
        cls,
        schema_group: SchemaGroup,
        batch: TailBatch,
        places: npt.NDArray[np.int64],
        limit: int,
        threads: int = 1,
    ) -> list[FooterTable]:
        """The files at some places of a batch that are of the schema group, in tables of about RECORDS column chunks."""
        at = batch.at[places].astype(np.uint64)
        leaves = len(schema_group.leaves)
        most = max(RECORDS // max(leaves, 1), 1)

        def footers(first: int, stop: int) -> Any:
            return core.footers(
                batch.footers,
                at[first:stop],
                schema_group.like,
                schema_group.leaves,
                most,
                KEYS,
                max_arena=limit,
            )

        def made(first: int, parts: Sequence[Any]) -> FooterTable:
            groups, pairs, counts, chunks = (
                memoryview(b"".join(some)) for some in zip(*parts, strict=True)
            )
            of_each = int64s(groups)
            members = places[first : first + len(of_each)]
            sizes = batch.sizes[members]
            return cls(batch.footers, members, of_each, pairs, counts, chunks, leaves, sizes)

        n = len(places)
        parts = in_parts(footers, n, threads, SHARED)
        looked_at, groups = (sum([part[i].nbytes // 8 for part in parts]) for i in (0, 2))
        if looked_at < n or groups > most:
            parts = parts[:1]
        found, done = [], 0
        while done < n:
            found.append(made(done, parts))
            done += sum([part[0].nbytes // 8 for part in parts])
            parts = [footers(done, n)] if done < n else []
        return found

    def has(self, key: bytes) -> Flags:
        """Which files have a key-value pair."""
        return np.asarray(self.pairs[:, KEYS.index(key), 0] != ABSENT)

    def names(self, kinds: Iterable[str]) -> Flags:
        """Which files list an index of some kinds, by the text of their directories."""
        found = np.zeros(len(self.members), np.bool_)
        for kind in kinds:
            files = self._kinds.get(kind.encode())
            if files is not None:
                found[files] = True
        return found

    @lazy
    def _kinds(self) -> dict[bytes, npt.NDArray[np.int64]]:
        """The files that list an index of each kind."""
        have = np.flatnonzero(self.has(KEY))
        text, stops = self.directories(have)
        found = {}
        for kind, (first, last) in kinds_in(text).items():
            of = np.searchsorted(stops, first, "right")
            # with its last quote it lies in several directories, so that it is in none
            inside = last < stops[of]
            if inside.any():
                found[kind] = have[of[inside]]
        return found

    def directories(self, files: npt.NDArray[np.int64]) -> tuple[bytes, npt.NDArray[np.int64]]:
        """The directories of indexes of some files that have one, one behind the other, and where each ends."""
        places = self.pairs[files, KEYS.index(KEY)]
        return lists.cut(self.data, np.ascontiguousarray(places)), np.cumsum(places[:, 1])

    def value(self, k: int, key: bytes) -> memoryview | None:
        """The value of a key-value pair of a file; None without one."""
        at, size = self.pairs[k, KEYS.index(key)].tolist()
        return None if at == ABSENT else self.data[at : at + size]

    def of_spark(self, place: int) -> tuple[bytes | None, ...]:
        """The values of OF_SPARK in the footer of a file of the batch."""
        if not len(self._written_by_spark):
            return _NO_SPARK
        k = int(np.searchsorted(self.members, place))
        if not self._written_by_spark[k]:
            return _NO_SPARK
        values = [self.value(k, key) for key in OF_SPARK]
        return tuple([None if value is None else bytes(value) for value in values])

    def of_files(self, flags: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The sum over the row groups of each file."""
        if self._one_each:
            return flags.astype(np.int64)
        sums = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
        return np.asarray(sums[self.first + self.n] - sums[self.first])

    def row_groups_of(
        self, files: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The row groups of some files, in the order of the files; and the position in `files` of the file of each."""
        n = self.n[files]
        owners = np.repeat(np.arange(len(files)), n)
        skipped = self.first[files] - (np.cumsum(n) - n)
        return skipped[owners] + np.arange(len(owners)), owners

    def zones(self, schema_group: SchemaGroup, leaf: Leaf) -> rows.Zones | None:
        """The statistics of a leaf as zones to probe, one a row group; None without any."""
        found = self.bounds(schema_group, leaf)
        return None if found is None else found.zones

    def bounds(self, schema_group: SchemaGroup, leaf: Leaf) -> Bounds | None:
        """The statistics of a leaf as values."""
        key = leaf.index, schema_group.leaf_types[leaf.index]
        if key not in self._bounds:
            self._bounds[key] = self._make_bounds(schema_group, leaf)
        return self._bounds[key]

    def _make_bounds(self, schema_group: SchemaGroup, leaf: Leaf) -> Bounds | None:
        n = len(self.counts)
        leaf_type, bounds, counts = schema_group.leaf_types[leaf.index]
        if not bounds or leaf_type.is_null:
            return None
        table = self.chunks[:, schema_group.column[leaf.index]].tobytes()
        found = zone_statistics(
            table, self.data, leaf, leaf_type, schema_group.orders, schema_group.writer, counts
        )
        if found is None:
            return None
        places, nulls, nans = found
        counts_of_rows = self.rows.tobytes()
        with placed(f"column {leaf.name!r}: statistics"):
            return Bounds(leaf_type, self.data, places, n, None, nulls, nans, counts_of_rows, 0)

    def placed(self, schema_group: SchemaGroup) -> Sound:
        """For each row group and leaf that is read whether the chunk is sound, where it begins, and its bytes."""
        n = len(schema_group.read)
        if n not in self._placed:
            ends = np.repeat(self.sizes, self.n)[:, None]
            counts = self.rows[:, None]
            types = np.array([leaf.element.type for leaf in schema_group.read], np.int64)
            repeated = np.array([leaf.max_rep > 0 for leaf in schema_group.read], bool)
            self._placed[n] = sound_chunks(self.chunks[:, :n], types, repeated, counts, ends)
        return self._placed[n]


def kinds_in(text: bytes) -> dict[bytes, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Where the kinds of entries stand in directories: where the name begins, and where the kind ends."""
    data = np.frombuffer(text, np.uint8)
    at = np.flatnonzero(data[1:] == _KIND_AS_WRITTEN[1])
    at = at[at <= len(data) - len(_KIND_AS_WRITTEN)]
    same = data[at[:, None] + np.arange(len(_KIND_AS_WRITTEN))] == _KIND_AS_WRITTEN
    named, written = same[:, :_NAME].all(axis=1), same.all(axis=1)
    if (named != written).any():  # by others, or a column is called so
        return _matched_kinds(text)
    first = at[written]
    begin, quotes = first + len(_KIND_AS_WRITTEN), np.flatnonzero(data == ord('"'))
    number = np.searchsorted(quotes, begin)
    ends = number < len(quotes)
    first, begin, last = first[ends], begin[ends], quotes[number[ends]]
    if (first[1:] < last[:-1]).any():  # one within another
        return _matched_kinds(text)
    lengths, found = last - begin, {}
    for length in range(1, LONGEST_KIND + 1):
        own = np.flatnonzero(lengths == length)
        if len(own):
            letters = data[begin[own, None] + np.arange(length)]
            if not letters.all():  # numpy leaves out null bytes at the end of a word
                return _matched_kinds(text)
            words = letters.view(f"S{length}")[:, 0]
            for word in np.unique(words):
                mine = own[words == word]
                found[bytes(word)] = first[mine], last[mine]
    return found


def _matched_kinds(
    text: bytes,
) -> dict[bytes, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """As `kinds_in`, by a pattern."""
    spans: dict[bytes, list[tuple[int, int]]] = {}
    for one in _KIND.finditer(text):
        spans.setdefault(one[1], []).append(one.span())
    pairs = {kind: np.array(of_kind, np.int64) for kind, of_kind in spans.items()}
    return {kind: (of_kind[:, 0], of_kind[:, 1]) for kind, of_kind in pairs.items()}
