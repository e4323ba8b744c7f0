"""Files that appear below a folder, for streams: which ones an offset has seen, and which are new.

An offset holds eight bytes for each file that was taken. Files on a disk are grouped by the time of their last change, in
groups as long as `maxFileAge`. An offset says since when files count: files that changed earlier are passed over, and groups
that ended earlier are forgotten. That is about two groups long, and never moves back, so that `maxFileAge` may differ after
a restart. Stores list no times, so that there an offset holds all files that still are there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pageseek.base.errors import FileChangedError, UnsupportedError
from pageseek.storage import Source
from pageseek.storage.resolve import DEFAULT_RETRY, resolve
from pageseek.storage.table_folders import Tables

OPTIONS = ("maxfilespertrigger", "maxfileage")
Offset = dict[str, str]
_AGE = re.compile(r"(\d+)\s*(ms|s|m|min|h|d|w|week|day|hour|minute|second)s?", re.IGNORECASE)
_SECONDS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SINCE, _UNTIMED = "since", "untimed"  # keys of an offset; the others are the ends of groups
_ALWAYS = -(1 << 62)
_WIDTH = 8  # bytes that stand for a name


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a folder. `changed`: when it did last, in nanoseconds since 1970; None: nothing tells it."""

    changed: int | None
    source: Source

    @property
    def order(self) -> tuple[int, str]:
        """The place of the file among others: the oldest first."""
        return self.changed or 0, self.source.name

    def counts(self, since: int) -> bool:
        """Whether it is not too old."""
        return self.changed is None or self.changed >= since

    @property
    def is_there(self) -> bool:
        """Whether the file is still on this machine's disk. Of a file in a store only reading it tells."""
        return self.source.filesystem is not None or os.path.exists(self.source.path)


class Growing:
    """The files of a source that grows."""

    def __init__(
        self,
        source: Any,
        storage_options: Mapping[str, Any] | None = None,
        *,
        most: str | None = None,
        age: str = "7d",
        table: bool | None = None,
    ) -> None:
        """`most`: the greatest number of files of a batch. `age`: how late a file may appear, before its last change.
        `table`: False reads tables and sinks as folders like others.
        """
        self._source, self._storage_options = source, storage_options
        self.most = None if most is None else _count(most)
        self._age = _nanoseconds(age)
        self._table = table
        self._known: dict[bytes, Listed] = {}

    @classmethod
    def of(
        cls,
        source: Any,
        storage_options: Mapping[str, Any] | None,
        options: Mapping[str, str],
        table: bool | None = None,
    ) -> Growing:
        """With the OPTIONS of a stream. UnsupportedError: one has a value that it cannot have."""
        most, age = (options.get(name) for name in OPTIONS)
        return cls(
            source, storage_options, most=most, age="7d" if age is None else age, table=table
        )

    def listed(self) -> dict[bytes, Listed]:
        """The files that are there now, by what stands for their names.

        Raises
        ------
        UnsupportedError
            The source is a table of Delta Lake or Iceberg, whose files may have deleted rows.
        """
        tables = None if self._table is False else Tables(passes_over=True)
        found = []
        for part in self._source if isinstance(self._source, list) else [self._source]:
            with suppress(FileNotFoundError):  # none yet, or none any more
                found += resolve(part, self._storage_options, DEFAULT_RETRY, tables)
        for one in tables.found if tables is not None else ():
            raise UnsupportedError(
                f"{one.name}: this is a table of {one.kind}, whose log says which files and rows count, and a stream reads all "
                "files: use Spark's own stream of such tables; the option table=false reads all files"
            )
        made: dict[bytes, Listed] = {}
        for source in found:
            changed = None
            if source.filesystem is None:
                try:
                    changed = os.stat(source.path).st_mtime_ns
                except FileNotFoundError:  # removed since it was listed
                    continue
            mark = hashlib.blake2b(source.name.encode(), digest_size=_WIDTH).digest()
            if mark in made and made[mark].source.key != source.key:
                raise UnsupportedError(
                    f"{source.name}: several files are called so, since the queries of URLs are not shown, and a stream tells files by "
                    "their names: give one stream for each"
                )
            made[mark] = Listed(changed, source)
        self._known = made
        return made

    def latest(
        self, start: Offset, most: int | None, listed: dict[bytes, Listed] | None = None
    ) -> Offset:
        """The offset after the next batch, of at most so many files, the oldest first; `start` itself if nothing is new."""
        listed = self.listed() if listed is None else listed
        taken = _Taken.of(start)
        seen = taken.seen
        fresh = [
            (one.order, mark)
            for mark, one in listed.items()
            if one.counts(taken.since) and mark not in seen
        ]
        if not fresh:
            return start
        # not later: the offset has to name all files of the batch
        taken.forget(taken.since)
        taken.untimed &= listed.keys()  # of a store: files that are gone are forgotten
        for _, mark in sorted(fresh)[:most]:
            changed = listed[mark].changed
            if changed is None:
                taken.untimed.add(mark)
                continue
            end = (changed // self._age + 1) * self._age
            taken.groups.setdefault(end, set()).add(mark)
            taken.since = max(taken.since, end - 2 * self._age)
        return taken.offset()

    @staticmethod
    def joined(start: Offset, end: Offset) -> Offset:
        """The offset after a batch, which does not go back behind that before it, where the end was asked for without a start."""
        before, taken = _Taken.of(start), _Taken.of(end)
        taken.since = max(before.since, taken.since)
        for group, marks in before.groups.items():
            taken.groups.setdefault(group, set()).update(marks)
        taken.forget(before.since)
        return taken.offset()

    def between(self, start: Offset, end: Offset) -> list[Source]:
        """The files of a batch, in their order.

        Raises
        ------
        FileChangedError
            One of them is gone.
        """
        before, after = _Taken.of(start), _Taken.of(end)
        # where Spark asks for the latest offset without a start, that has old files again
        after.forget(before.since)
        wanted = after.seen - before.seen
        if not wanted <= self._known.keys():
            self.listed()
        old = {
            mark
            for mark in wanted & self._known.keys()
            if not self._known[mark].counts(before.since)
        }
        wanted -= old
        there = {mark for mark in wanted & self._known.keys() if self._known[mark].is_there}
        gone = len(wanted - there)
        if gone:
            raise FileChangedError(
                f"{self._source}: {gone:,} of {len(wanted):,} files of this batch of the stream are gone: put them back, or "
                "begin with a new checkpoint"
            )
        return [
            self._known[mark].source
            for mark in sorted(wanted, key=lambda mark: self._known[mark].order)
        ]


@dataclass
class _Taken:
    """What an offset says: since when files count, and which were taken, by the ends of their groups."""

    since: int
    groups: dict[int, set[bytes]]
    untimed: set[bytes]

    @classmethod
    def of(cls, offset: Offset) -> _Taken:
        marks = {key: _unpacked(text) for key, text in offset.items() if key != _SINCE}
        untimed = marks.pop(_UNTIMED, set())
        if marks and _SINCE not in offset:
            raise UnsupportedError(
                "the checkpoint of this stream is of an earlier version of pageseek, which kept no time in it: begin with a new one"
            )
        since = int(offset.get(_SINCE, _ALWAYS))
        return cls(since, {int(end): inside for end, inside in marks.items()}, untimed)

    @property
    def seen(self) -> set[bytes]:
        """All that were taken and are not forgotten."""
        return self.untimed.union(*self.groups.values())

    def forget(self, since: int) -> None:
        """Drop the groups that ended before a time."""
        self.groups = {end: marks for end, marks in self.groups.items() if end > since}

    def offset(self) -> Offset:
        """The offset that says this."""
        made = {str(end): _packed(marks) for end, marks in sorted(self.groups.items())}
        if made:
            made[_SINCE] = str(self.since)
        if self.untimed:
            made[_UNTIMED] = _packed(self.untimed)
        return made


def _unpacked(text: str) -> set[bytes]:
    packed = base64.b64decode(text)
    return {packed[i : i + _WIDTH] for i in range(0, len(packed), _WIDTH)}


def _packed(marks: set[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(marks))).decode()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UnsupportedError(
            f"option 'maxFilesPerTrigger' cannot be {text!r}: a whole number, at least 1"
        )
    return int(text)


def _nanoseconds(text: str) -> int:
    found = _AGE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise UnsupportedError(
            f"option 'maxFileAge' cannot be {text!r}: a number with ms, s, m, h, d or w"
        )
    unit = found[2].lower()
    return int(int(found[1]) * _SECONDS[unit if unit in _SECONDS else unit[0]] * 1e9)
