"""What a plan needs of many small local files, from their footers alone and many at a time.

As a rule the files of a dataset have the same columns, and one writer. The row groups of such files are judged as if
they were those of a single one, by the same statistics and the same code. What differs in any way, is damaged, or is
not settled by the footer is left to who opens files one by one; nothing here is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from pageseek._core import metadata as core
from pageseek._core import rows
from pageseek.bounds import Bounds
from pageseek.embedded import KEYS
from pageseek.errors import PageseekError, placed
from pageseek.metadata import ParquetFile
from pageseek.predicate.bound import leaves_of, tests_of
from pageseek.prune import STATISTICS, Figures, final, may_be_final, prune_groups
from pageseek.report import ChunkReport, LeafReport, Report
from pageseek.request import Request, Scope
from pageseek.schema import Leaf
from pageseek.statistics import zone_figures
from pageseek.storage import Known, Source, Version
from pageseek.storage.local import read_end
from pageseek.types import ABSENT, Form, Options

FEW = 8  # files that are as quickly opened one by one
FIRST, FIRST_LIMITED, MOST = 64, 8, 512  # files at a time; at first, then twice as many
HELD = 8 << 20  # bytes of their ends together
TAIL, LONGEST = 4 << 10, 256 << 10  # bytes read of an end, until longer footers are seen
RECORDS = 1 << 14  # column chunks at a time
KINDS = 16  # of files in the same folders, and as many of such folders
WIDE = 16  # columns of a file beyond which they are not looked at without need
SCHEMAS = 64  # stored by files of one kind
PATIENCE = 64  # files that are opened one by one after several that were all unlike those before

_AT: dict[str, int] = {name: i for i, name in enumerate(core.CHUNK_FIELDS)}


class _End(NamedTuple):
    """The last bytes of a file, and where in them the footer begins, and its length."""

    version: Version
    tail: bytes
    start: int
    length: int

    @property
    def known(self) -> Known:
        """The same for who opens the file."""
        return Known(self.version, self.tail)


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


class Alike:
    """The row groups of several files of one kind."""

    def __init__(
        self,
        kind: Kind,
        data: bytes,
        counts: Sequence[int],
        chunks: memoryview,
        use: frozenset[str],
    ) -> None:
        self.kind, self.counts = kind, counts
        self._data = memoryview(data)
        shape = len(counts), len(kind.leaves), len(_AT)
        self._table = np.frombuffer(chunks, np.int64).reshape(shape)
        self._zones: dict[int, rows.Zones | None] = {}
        self.final = [False] * len(counts)
        self._taken: tuple[list[int], list[int]] = [], []  # to be counted: in doubt, and proven
        bound = kind.scope.bound
        if bound is None:
            self.may = self.must = b"\1" * len(counts)
        else:
            proof = prune_groups(self, bound, kind.scope.request.options, STATISTICS in use)
            self.may, self.must = proof.may, proof.must

    def release(self) -> None:
        """No more is asked of the statistics."""
        self._data = memoryview(b"")
        self._zones.clear()

    @property
    def num_row_groups(self) -> int:
        return len(self.counts)

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """As that of a file: the statistics of a leaf as zones to probe, one a row group; None without any."""
        if leaf.index not in self._zones:
            self._zones[leaf.index] = self._make_zones(leaf)
        return self._zones[leaf.index]

    def _make_zones(self, leaf: Leaf) -> rows.Zones | None:
        kind, n = self.kind, len(self.counts)
        form, bounds, counts = kind.forms[leaf.index]
        if not bounds or form.is_null:
            return None
        table = self._table[:, kind.column[leaf.index]].tobytes()
        found = zone_figures(table, self._data, leaf, form, kind.orders, kind.writer, counts)
        if found is None:
            return None
        places, nulls, nans = found
        of_rows = struct.pack(f"{n}q", *self.counts)
        with placed(f"column {leaf.name!r}: statistics"):
            return Bounds(form, self._data, places, n, None, nulls, nans, of_rows, 0).zones

    # -- what is known of those that are read -----------------------------------------------------

    def look(self, sizes: Sequence[int], groups: Sequence[int]) -> None:
        """Look at the chunks that may be read: `sizes` of the files, and how many row groups each has.

        Of each row group is then known whether all chunks are `sound`, as FooterFile.placed_chunk has it, whether the
        footer has the last word (`final`), and the bytes that are read where it is proven, and where not (`costs`).
        """
        kind = self.kind

        def of(name: str) -> Figures:
            return self._table[:, : len(kind.read), _AT[name]]

        ends = np.repeat(np.array(sizes, np.int64), groups)[:, None]
        counts = np.array(self.counts, np.int64)[:, None]
        types = np.array([leaf.element.type for leaf in kind.read], np.int64)
        repeated = np.array([leaf.max_rep > 0 for leaf in kind.read], bool)
        start, other = of("data_page_offset"), of("dictionary_page_offset")
        start = np.where((other > 0) & (other < start), other, start)
        path, size = of("file_path_length"), of("total_compressed_size")
        sound = (
            (of("crypto") == ABSENT)
            & (of("has_metadata") != 0)
            & ((path == ABSENT) | (path == 0))
            & (of("type") == types)
            & (repeated | (of("num_values") == counts))
            & (start >= 4) & (start <= ends) & (size >= 0) & (size <= ends - start)
        )  # fmt: skip
        sounds = sound.all(axis=1)
        self.sound = sounds.tolist()
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
                    lambda leaf, name: self._table[:, kind.column[leaf.index], _AT[name]],
                    lambda leaf: start[:, kind.column[leaf.index]],
                    lambda leaf: self.group_zones(leaf, options),
                    lambda leaf: kind.forms[leaf.index][2],
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


class Brief:
    """One file: its version, the rows of its row groups, and where these are among those alike."""

    __slots__ = ("alike", "counts", "end", "first", "may", "must", "num_rows")

    def __init__(self, alike: Alike, first: int, n: int, end: _End) -> None:
        stop = first + n
        self.alike, self.first, self.end = alike, first, end
        self.counts = alike.counts[first:stop]
        self.num_rows = sum(self.counts)
        self.may, self.must = alike.may[first:stop], alike.must[first:stop]


class Briefs:
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
        sources: Sequence[Source],
        request: Request,
        report: Report,
        asked: Callable[[Source], bool],
        folders: Callable[[Source], Hashable],
    ) -> None:
        self._sources, self._request, self._report = sources, request, report
        self._asked, self._folders = asked, folders
        self._account = report.chunks is not None
        self._kinds: dict[Hashable, list[Kind]] = {}
        self._ends: dict[int, _End] = {}  # by position, of files that are like none so far
        self._found: dict[int, Brief] = {}
        self._alike: list[Alike] = []
        self._stop = 0  # position behind the files that were looked at
        self._size = FIRST if request.limit is None else FIRST_LIMITED
        self._tail, self._pause, self._paused = TAIL, 1, False
        self._seen = self._matched = 0  # files of these

    def of(self, at: int) -> Brief | None:
        """What is known of the file at a position; None where it has to be opened."""
        if at >= self._stop and self._kinds:
            self._next(at)
        return self._found.pop(at, None)

    def end(self, at: int) -> Known | None:
        """The last bytes of a file that has to be opened, if they were read."""
        end = self._ends.pop(at, None)
        return None if end is None else end.known

    def learn(self, file: ParquetFile, scope: Scope, source: Source, at: int | None) -> None:
        """A file had to be opened, at this position: others may be of its kind."""
        if self._paused and at is not None and at + 1 < self._stop:
            return
        if not Kind.may_be_made(file, scope, self._account):
            return
        like = file.likeness
        folders = self._folders(source)
        known = self._kinds.get(folders, [])
        stored = file.columns_key[2]
        if any(kind.like == like and kind.stores(stored) for kind in known):
            return
        if len(self._kinds) >= KINDS:  # files of one folder come one after the other
            self._kinds.clear()
        try:
            kind = Kind(file, scope, self._account)
        except PageseekError:  # of a column whose values cannot be: who needs them will say so
            return
        self._kinds[folders] = [kind, *known[: KINDS - 1]]
        alike = [at for at in self._ends if self._folders(self._sources[at]) == folders]
        with self._report.timed("prune"):
            self._judge(kind, alike)

    def close(self) -> None:
        """No more files: what is left to count is counted."""
        for alike in self._alike:
            alike.fold(self._report)
        self._alike.clear()

    def _next(self, at: int) -> None:
        """Read the ends of the next files, more at a time as long as they are alike."""
        self.close()
        if self._seen and 2 * self._matched >= self._seen:
            self._size, self._pause = min(2 * self._size, MOST), 1
        elif self._seen:
            self._size = max(self._size // 4, 1)
        self._paused = self._seen > 0 and not self._matched
        if self._paused:
            self._stop, self._pause = at + self._pause, min(2 * self._pause, PATIENCE)
            self._seen = 0
            return
        self._ends.clear()
        self._found.clear()
        self._stop = min(at + self._size, len(self._sources))
        with self._report.timed("open"):
            held = 0
            for i in range(at, self._stop):
                end = self._read(self._sources[i])
                if end is not None:
                    self._ends[i] = end
                    held += len(end.tail)
                    if held > HELD:
                        self._stop = i + 1
                        break
        self._seen, self._matched = len(self._ends), 0
        with self._report.timed("prune"):
            alike: dict[Hashable, list[int]] = {}
            for i in self._ends:
                alike.setdefault(self._folders(self._sources[i]), []).append(i)
            for folders, members in alike.items():
                for kind in self._kinds.get(folders, ()):
                    members = self._judge(kind, members)

    def _read(self, source: Source, again: bool = False) -> _End | None:
        """The end of a file with its footer; None where that is not to be had in the usual way."""
        if source.filesystem is not None or source.data is not None or not self._asked(source):
            return None
        report = self._report
        try:
            version, tail = read_end(source.path, self._tail)
            size = len(tail)
            report.requests += 1
            report.waves += 1
            report.bytes["metadata"] += size
            if size < 12 or tail[-4:] != b"PAR1" or not version.dated:
                return None
            length = int.from_bytes(tail[-8:-4], "little")
            if length > min(LONGEST, self._request.limits.max_metadata_bytes, version.size - 12):
                return None
            if length + 8 > size:
                if again:
                    return None
                self._tail = length + length // 8 + 64  # the next ones may be a little longer
                return self._read(source, again=True)
            if any(key in tail for key in KEYS):  # lists of values may know more than the footer
                return None
            if 4 * length < self._tail and not again:  # that was an exception
                self._tail = max(self._tail // 2, TAIL)
        except (OSError, ValueError):  # who opens it will say what is wrong
            return None
        return _End(version, tail, size - 8 - length, length)

    def _judge(self, kind: Kind, members: Sequence[int]) -> list[int]:
        """Of the files at some positions keep those of a kind; the others are returned."""
        names, ends = kind.like[0], self._ends
        mine = [at for at in members if ends[at].tail.startswith(names, ends[at].start)]
        tails = [ends[at].tail for at in mine]
        bases = accumulate(map(len, tails), initial=0)
        footers = [(base + ends[at].start, ends[at].length) for base, at in zip(bases, mine)]  # noqa: B905
        places, data = np.array(footers, np.uint64), b"".join(tails)
        most = max(RECORDS // max(len(kind.leaves), 1), 1)
        limit, done = self._request.limits.max_metadata_bytes, 0
        while done < len(mine):
            groups, stored, counts, chunks = core.footers(
                data, places[done:], kind.like, kind.leaves, most, max_arena=limit
            )
            found = groups.cast("q").tolist()
            self._keep(kind, data, mine[done : done + len(found)], found, stored, counts, chunks)
            done += len(found)
        return [at for at in members if at in ends]

    def _keep(
        self,
        kind: Kind,
        data: bytes,
        members: Sequence[int],
        groups: Sequence[int],
        stored: memoryview,
        counts: memoryview,
        chunks: memoryview,
    ) -> None:
        """Judge the row groups of files of one kind; `groups`: how many each has, negative where it is of another."""
        try:
            alike = Alike(kind, data, counts.cast("q").tolist(), chunks, self._request.prune)
            if self._account or kind.may_be_final:
                own = [(at, n) for at, n in zip(members, groups, strict=True) if n >= 0]
                sizes = [self._ends[at].version.size for at, _ in own]
                alike.look(sizes, [n for _, n in own])
        except PageseekError:  # who opens the file will say so, and of which it is
            return
        alike.release()
        self._alike.append(alike)
        first, places = 0, stored.cast("q")
        for at, n, start, length in zip(
            members, groups, places[::2].tolist(), places[1::2].tolist(), strict=True
        ):
            if n < 0:
                continue
            raw = None if start == ABSENT else data[start : start + length]
            if raw == kind.stored or kind.stores(raw):
                self._found[at] = Brief(alike, first, n, self._ends.pop(at))
                self._matched += 1
            first += n
