"""The files of a source: a path, URL, list, directory, glob, (filesystem, path) or bytes."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from pageseek.base.late_modules import fs as pafs
from pageseek.base.late_modules import is_instance
from pageseek.base.records import dataclass
from pageseek.base.suggest import ENTRIES
from pageseek.storage.files import Begun, Files, Needed
from pageseek.storage.hive import Partitions
from pageseek.storage.listing import (
    SUFFIXES,
    NoDataError,
    is_data,
    no_match,
    on_disk,
    on_store,
)
from pageseek.storage.local import LocalStore, MemoryStore
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.store import Known, Store
from pageseek.storage.table_folders import ListedTables, Tables, of_metadata

if TYPE_CHECKING:
    from pageseek.storage.file_objects import FileObject

DEFAULT_RETRY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Source:
    """One file, not yet open: a local path, a path on a filesystem, or bytes. Picklable, unless it is an open file object.

    `filesystem`: opens files that are not on this machine's disk. `retry_policy`: for remote stores.
    """

    path: str
    filesystem: Files | None = None
    data: bytes | FileObject | None = None
    partitions: Partitions = field(default=(), compare=False)  # columns with one value in all rows
    retry_policy: RetryPolicy = field(default=DEFAULT_RETRY, compare=False)
    # what its table says of deleted rows
    deletes: tuple[Any, ...] = field(default=(), compare=False)
    table: str = field(default="", compare=False)  # the one that has the file, as errors name it

    def open(self, known: Known | None = None) -> Store:
        """The file. `known`: what there is of it from before, which a remote store can confirm in one request."""
        if self.data is not None:
            if isinstance(self.data, bytes):
                return MemoryStore(self.data, self.path)
            from pageseek.storage.file_objects import FileObjectStore  # late: few need it

            return FileObjectStore(self.data)
        try:
            if self.filesystem is None:
                return LocalStore(self.path)
            return self.filesystem.open(self.path, self.retry_policy, known)
        except FileNotFoundError as error:
            if not self.table:
                raise
            raise self.missing() from error

    def missing(self) -> FileNotFoundError:
        """The error where a file of a table is not there."""
        return FileNotFoundError(
            f"{self.name}: no such file, though {self.table} has it: if the table was moved, open it where it lies now; if files of "
            "older versions were deleted (VACUUM, expire_snapshots), read a newer version"
        )

    def begin(self, known: Known | None, needed: Needed) -> Begun | None:
        """Begin to open the file with as many bytes of its end as are `needed`; None where that cannot be."""
        if self.filesystem is None:
            return None
        return self.filesystem.begin(self.path, self.retry_policy, known, needed)

    def assumed(self, known: Known) -> Store | None:
        """The file in the version that is known, without a request: its first read says whether it still has that one.
        None where reads are not tied to a version.
        """
        if self.filesystem is None:
            return None
        return self.filesystem.assumed(self.path, self.retry_policy, known)

    @property
    def name(self) -> str:
        """How the file is called, without secrets."""
        return self.path if self.filesystem is None else self.filesystem.name(self.path)

    def __repr__(self) -> str:
        said = "".join(f", {part!r}" for part in (self.filesystem, self.partitions) if part)
        return f"Source({self.name!r}{said})"

    @property
    def far(self) -> bool:
        """Whether reads of the file wait for a store."""
        return self.filesystem is not None

    @property
    def key(self) -> str:
        """A text that names the file in caches, next to its version."""
        return self.path if self.filesystem is None else f"{self.filesystem.key}:{self.path}"

    @property
    def lasting(self) -> bool:
        """Whether the key names this file in every process."""
        return self.filesystem is not None and self.filesystem.lasting

    @property
    def bound(self) -> bool:
        """Whether the file may be gone with the object that opens it; another file may have its key then."""
        return self.filesystem is not None and self.filesystem.bound


class Sources(tuple[Source, ...]):
    """The files of a scan. What is true of all of them is found out once.

    Attributes
    ----------
    bounds : FileBounds or None
        What their table says of the values in them; it is not pickled.
    """

    bounds: Any = None

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What lookups find out of files with the same columns, for the next lookups; it is not pickled."""
        return {}

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Sources:
        """The files of a sequence, which is returned if it is of this class."""
        return sources if isinstance(sources, cls) else cls(sources)

    def __reduce__(self) -> Any:
        return Sources, (tuple(self),)

    @cached_property
    def far(self) -> bool:
        """Whether reads of one of them wait for a store."""
        return any(map(attrgetter("filesystem"), self))

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Names that several of them have, since the queries of URLs are not shown: a name tells none of these."""
        first: dict[str, Source] = {}
        shared = set()
        for source in self:
            before = first.setdefault(source.name, source)
            if before is not source and before.key != source.key:
                shared.add(source.name)
        return frozenset(shared)

    @cached_property
    def in_folders(self) -> bool:
        """Whether one of them has values in the names of its folders."""
        return any(map(attrgetter("partitions"), self))

    @cached_property
    def paths(self) -> tuple[str, ...] | None:
        """Their paths, where all lie on this machine's disk."""
        if any(source.filesystem is not None or source.data is not None for source in self):
            return None
        return tuple([source.path for source in self])


def resolve(
    source: Any,
    storage_options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = DEFAULT_RETRY,
    tables: Tables | None = None,
) -> list[Source]:
    """The files of a source, directories and globs expanded, in the order of their names.

    Below a directory, or below the first `**` of a glob, what lies in or under a name with a leading `_` or `.`
    is no data, unless the name has a `=`. A wildcard at the beginning of a name in a glob matches no `.`. A file whose
    name is the glob itself comes first. Links are followed. Below a directory, or below the part of a glob that
    has no magic, the names of folders such as `k=1` are partitions of the files in them.

    `tables` receives the folders that are tables of Delta Lake or Iceberg, and files of metadata of Iceberg; no files of these
    are returned then. Without it they are folders and files like others.
    """
    named = _named(source, storage_options, retry_policy)
    if named is not None:
        filesystem, path = named
        table = None if tables is None else of_metadata(path, filesystem)
        if tables is not None and table is not None:
            tables.found.append(table)
            return []
        if filesystem is None:
            return _local(path, tables)
        return _on_files(filesystem, path, retry_policy, tables)
    if isinstance(source, Source):
        return [source]
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return [Source("<memory>", data=bytes(source))]
    if isinstance(source, Sequence):
        return [
            one for item in source for one in resolve(item, storage_options, retry_policy, tables)
        ]
    from pageseek.storage.given import FileOf, translated  # late: few need it

    found = source if isinstance(source, FileOf) else translated(source)
    if not isinstance(found, FileOf):
        return resolve(found, storage_options, retry_policy, tables)
    if found.data is not None:
        return [Source(found.name, data=found.data, partitions=found.partitions or ())]
    (one,) = resolve(found.place, storage_options, retry_policy)
    return [one if found.partitions is None else replace(one, partitions=found.partitions)]


def place(
    target: Any,
    storage_options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = DEFAULT_RETRY,
) -> Source:
    """Where one file is to be written: a path, a URL or (filesystem, path). No request is sent."""
    named = _named(target, storage_options, retry_policy)
    if named is None:
        raise TypeError(f"output {type(target).__name__}: a path, URL or (filesystem, path)")
    filesystem, path = named
    return Source(path, filesystem, retry_policy=retry_policy)


def _named(
    source: Any, storage_options: Mapping[str, Any] | None, retry_policy: RetryPolicy
) -> tuple[Files | None, str] | None:
    """What opens the file of a path, a URL or a pair (None: this machine), and the path there; None for other things."""
    if isinstance(source, os.PathLike):
        made = os.fspath(source)
        if not isinstance(made, str):
            made = os.fsdecode(made)
        return None, _at_home(made)
    if isinstance(source, str):
        scheme = urlsplit(source).scheme if ":" in source else ""
        if scheme == "file":
            return None, unquote(urlsplit(source).path)
        # a local name may have a colon; URLs in one another are such of fsspec, such as simplecache::s3://...
        chained = source.startswith("::", len(scheme)) and "://" in source
        if (
            len(scheme) > 1
            and (chained or source.startswith("/", len(scheme) + 1))
            and not os.path.exists(source)
        ):
            from pageseek.storage.urls import from_url

            return from_url(source, scheme, storage_options or {}, retry_policy)
        return None, _at_home(source)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        files, path = source
        if isinstance(files, Files):
            return files, path
        if is_instance(files, pafs, "FileSystem"):
            from pageseek.storage.pyarrow_files import of_filesystem

            return of_filesystem(files, path)
        if not isinstance(files, (str, os.PathLike)):
            from pageseek.storage.urls import of_pair

            return of_pair(files, path)
    return None


def _at_home(path: str) -> str:
    """The path with `~` as the folder of its user, unless something here is called so."""
    if not path.startswith("~") or os.path.lexists(path.replace(os.sep, "/").partition("/")[0]):
        return path
    return os.path.expanduser(path)


def _local(path: str, tables: Tables | None) -> list[Source]:
    seen = None if tables is None else ListedTables()
    found = on_disk(path, seen)
    if tables is not None and seen is not None:
        tables.take(seen)
        if seen.sinks:
            from pageseek.storage.sink_logs import logged_files  # late: few need it

            found = logged_files(seen, tables, lambda: on_disk(path), DEFAULT_RETRY)
            return [Source(one, partitions=said) for one, said in found]
        if found:
            tables.near.append(found[0][0])
    return [Source(one, partitions=said) for one, said in found]


def _on_files(
    files: Files, path: str, retry_policy: RetryPolicy, tables: Tables | None
) -> list[Source]:
    magic = glob.has_magic(path)
    is_file = files.is_file(path, is_data(path) and not magic, retry_policy)
    if is_file:
        return [Source(path, files, retry_policy=retry_policy)]
    seen = None if tables is None else ListedTables(files)
    listed = partial(on_store, files.folder(path), partial(files.find, retry_policy=retry_policy))
    found = listed(seen)
    if tables is not None and seen is not None:
        tables.take(seen)
        if seen.root is not None:
            return []
        if seen.sinks:
            from pageseek.storage.sink_logs import logged_files  # late: few need it

            found = logged_files(seen, tables, listed, retry_policy)
    if found is None and is_file is None and path and not path.endswith("/") and not magic:
        return [Source(path, files, retry_policy=retry_policy)]
    if not found:
        if magic:
            raise FileNotFoundError(no_match(files.name(path)))
        from pageseek.storage.nothing_found import of_files  # late: for this error only

        there = of_files(_listed(files, path, retry_policy), SUFFIXES)
        raise NoDataError.of(files.name(path), there)
    return [Source(one, files, partitions=said, retry_policy=retry_policy) for one, said in found]


def _listed(files: Files, path: str, retry_policy: RetryPolicy) -> list[str]:
    """The paths of the first files below a folder of a store that has no data, for an error."""
    root = files.folder(path).rstrip("/")
    try:
        return [
            one.removeprefix(root).lstrip("/")
            for one in islice(files.find(root, retry_policy), ENTRIES)
        ]
    except OSError:
        return []
