"""Tables that list their files with sizes: a file of one is replaced by a commit to the table.

What all tables share is here; `delta_target` and `iceberg_target` have the rest.
"""

from __future__ import annotations

import os
import posixpath
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress

from pageseek.base.errors import PageseekError, StoreError, UnsupportedError
from pageseek.index.local_target import LocalTarget, Target
from pageseek.index.store_target import StoreTarget
from pageseek.storage import Source, Store
from pageseek.storage.files import Place
from pageseek.storage.obstore_files import ObstoreFiles
from pageseek.storage.redact import cleaned
from pageseek.storage.table_folders import (
    DELTA,
    ENDS,
    ICEBERG,
    LOG,
    METADATA,
    SINK,
    SINK_LOG,
    above_here,
    kind_here,
)
from pageseek.storage.writing import writer

# by kind of table or sink, the folder beside its files, and how the names of files in it may end
TABLES: tuple[tuple[str, str, str | tuple[str, ...]], ...] = (
    (DELTA, LOG, ""),
    (ICEBERG, METADATA, ENDS),
    (SINK, SINK_LOG, ""),
)
TRIES = 10  # commits, each after one that others have overtaken


class OvertakenError(Exception):
    """Another commit came first, and ours was not made."""


class TableEnd(ABC):
    """Where the new file of a table goes: into the folder of the old one. One commit then exchanges them."""

    in_place = True  # readers of the table find the new file where the old one was
    table: str  # as errors call it
    to: Source
    errors: tuple[type[Exception], ...]  # of the table's package

    def __init__(self, table: str, told: Iterable[str]) -> None:
        """`told`: options of the table that may be secrets."""
        self.table = table
        self._secrets = set(told)

    def beside(self, old: str, place: Source) -> str:
        """The name of the new file beside `old`, both as the table spells them. `place`: where the old one lies."""
        end = f"-{secrets.token_hex(6)}.parquet"
        to = place.path.removesuffix(".parquet") + end
        self.to = Source(to, place.filesystem, retry_policy=place.retry_policy)
        return old.removesuffix(".parquet") + end

    def stored_name(self, column: str) -> str:
        """What the file calls a column of the table."""
        return column

    def target(self, source: Store) -> Target:
        """The target of the new file."""
        if self.to.filesystem is not None:
            return StoreTarget(self.to, source, False, False)
        return LocalTarget(self.to.path, None)

    def done(self, size: int) -> None:
        """Commit the new file of `size` bytes, which is there.

        Raises
        ------
        FileChangedError
            The table has the old file no more. The new one is deleted.
        StoreError
            The commit failed. The new file is deleted, unless the table may have it.
        """
        try:
            self._commit(size)
        except PageseekError:
            self._take_back()
            raise
        except self.errors as error:
            said = self.said(error)
            self._take_back()
            raise StoreError(f"{self.table}: the commit failed: {said}") from None
        except BaseException:
            self._take_back()
            raise

    def said(self, error: Exception) -> str:
        """The text of another library's error, without secrets."""
        return cleaned(str(error), self._secrets) or type(error).__name__

    def _commit(self, size: int) -> None:
        why = ""
        for _ in range(TRIES):
            self.look()
            try:
                self.exchange(size)
            except OvertakenError as error:
                why = str(error)
                continue
            return
        raise StoreError(f"{self.table}: {TRIES} commits were overtaken or failed: {why}")

    def _take_back(self) -> None:
        """Delete the new file, unless the table may have it."""
        with suppress(Exception):
            if self.has_it():
                return
            if self.to.filesystem is None:
                os.unlink(self.to.path)
            else:
                writer(self.to).delete()

    @abstractmethod
    def look(self) -> None:
        """Bring the table to its newest version. FileChangedError: that has the old file no more."""

    @abstractmethod
    def exchange(self, size: int) -> None:
        """Make the commit, if the table is still of the version that `look` has seen. OvertakenError: it is not."""

    @abstractmethod
    def has_it(self) -> bool:
        """Whether the table may have the new file."""


def same_file(one: Source, other: Source) -> bool:
    """Whether two places are the same file."""
    keys = [os.path.realpath(p.path) if p.filesystem is None else p.key for p in (one, other)]
    return keys[0] == keys[1]


INTO_TABLE = (
    "commit it through the table (Delta Lake: table=DeltaTable(...); Iceberg: table=catalog.load_table(...)), "
    "or attach to a copy elsewhere (output=...)"
)


class InSinkError(UnsupportedError):
    """A path lies in a file sink of Spark."""


def refuse_inside(place: Source, remedy: str = INTO_TABLE) -> None:
    """Raise UnsupportedError where a path lies inside a Delta Lake or Iceberg table, or a sink: their logs have the size of each file."""
    far = place.filesystem
    if far is not None and far.looks_like_file(""):  # a plain web server tells of no folders
        return
    for kind, folder in _tables_here(place.path) if far is None else _tables_there(place):
        if kind == SINK:
            raise InSinkError(
                f"{place.name}: a stream of Spark writes to {folder}, and Spark reads only the files that its log ({SINK_LOG}) has, in the "
                "sizes that it says: copy the rows to another folder first (pageseek.spark.write), or give another place"
            )
        raise UnsupportedError(
            f"{place.name}: it lies in a {kind} table ({folder}), which records the size of each of its files, and would not "
            f"read one that has grown; {remedy}"
        )


def _tables_here(path: str) -> Iterator[tuple[str, str]]:
    """The kind and the folder of each table that a local path lies in."""
    for folder in above_here(path):
        kind = kind_here(folder)
        if kind is not None:
            yield kind, folder


def _tables_there(place: Source) -> Iterator[tuple[str, str]]:
    """As `_tables_here`, on a store; all folders are looked up at once."""
    folders = _above(place.path, rooted=isinstance(place.filesystem, ObstoreFiles))
    asked = [
        (kind, f"{folder.rstrip('/')}/{name}" if folder else name, ending)
        for folder in folders
        for kind, name, ending in TABLES
    ]
    assert place.filesystem is not None
    at = Place(place.filesystem, place.path, place.retry_policy)
    found = at.have([(folder, ending) for _, folder, ending in asked])
    for (kind, folder, _), there in zip(asked, found, strict=True):
        if there:
            yield kind, folder


def _above(path: str, rooted: bool) -> list[str]:
    """The folders that a path on a store lies in, the nearest first. `rooted`: paths begin in a bucket, not with its name."""
    scheme, colon, rest = path.rpartition("://")
    folders = []
    while (above := posixpath.dirname(rest)) != rest:
        if above or rooted:
            folders.append(scheme + colon + above)
        rest = above
    return folders
