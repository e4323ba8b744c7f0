"""From what the user gives - path, URL, list, directory, glob, (filesystem, path), bytes - to files."""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.base.records import dataclass
from pageseek.storage.files import Begun, Files, Needed, is_local
from pageseek.storage.hive import Partitions
from pageseek.storage.listing import NO_DATA, is_data, on_disk, on_store
from pageseek.storage.local import LocalStore, version_at
from pageseek.storage.memory import MemoryStore
from pageseek.storage.redact import shown_path
from pageseek.storage.remote import RemoteStore
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.store import Known, Store, Version
from pageseek.storage.table_folders import Seen, Tables

PATIENCE = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Source:
    """One file, not yet open: a local path, a path on a filesystem, or bytes. Picklable.

    `filesystem`: of pyarrow, or what stands for one of obstore or fsspec. `retry_policy`: for remote stores.
    """

    path: str
    filesystem: pafs.FileSystem | Files | None = None
    data: bytes | None = None
    partitions: Partitions = field(
        default=(), compare=False
    )  # columns that are the same in all its rows
    retry_policy: RetryPolicy = field(default=PATIENCE, compare=False)

    def open(self, known: Known | None = None) -> Store:
        """The file. `known`: what there is of it from before, which a remote store can confirm in one request."""
        if self.data is not None:
            return MemoryStore(self.data, self.path)
        if self.filesystem is None:
            return LocalStore(self.path)
        if isinstance(self.filesystem, Files):
            return self.filesystem.open(self.path, self.retry_policy, known)
        from pageseek.storage.pyarrow_files import ArrowStore

        return ArrowStore(self.filesystem, self.path, self.retry_policy, known)

    def begin(self, known: Known | None, needed: Needed) -> Begun | None:
        """Ask for the file, with as many bytes of its end as are `needed`, and do not wait; None where that cannot be."""
        if self.data is not None or not isinstance(self.filesystem, Files):
            return None
        return self.filesystem.begin(self.path, self.retry_policy, known, needed)

    def assumed(self, known: Known) -> RemoteStore | None:
        """The file as it was known, for which nothing is asked, where its first read tells whether it is still that
        one; else None.
        """
        if self.data is not None or not isinstance(self.filesystem, Files):
            return None
        return self.filesystem.assumed(self.path, self.retry_policy, known)

    def version(self) -> Version | None:
        """The version that lies there now, where asking costs less than to open it."""
        if self.data is not None or self.filesystem is not None:
            return None
        return version_at(self.path)

    @property
    def name(self) -> str:
        """How the file is called, without secrets."""
        if isinstance(self.filesystem, Files):
            return self.filesystem.name(self.path)
        return self.path if self.filesystem is None else shown_path(self.path)

    def __repr__(self) -> str:
        said = "".join(f", {part!r}" for part in (self.filesystem, self.partitions) if part)
        return f"Source({self.name!r}{said})"

    @property
    def far(self) -> bool:
        """Whether it takes a while until its first byte comes."""
        if isinstance(self.filesystem, Files):
            return True
        return self.filesystem is not None and not is_local(self.filesystem)

    @property
    def key(self) -> str:
        """Names the file in caches, next to its version."""
        if self.filesystem is None:
            return self.path
        if isinstance(self.filesystem, Files):
            return f"{self.filesystem.key}:{self.path}"
        return f"{self.filesystem.type_name}|{self.path}"

    @property
    def lasting(self) -> bool:
        """Whether the key names this file in every process."""
        return isinstance(self.filesystem, Files) and self.filesystem.lasting

    @property
    def bound(self) -> bool:
        """Whether it may be gone with the object that opens it, and another one may have its key then."""
        return isinstance(self.filesystem, Files) and self.filesystem.bound


class Sources(tuple[Source, ...]):
    """The files of a scan. What is true of all of them is found out once, though there be thousands."""

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Sources:
        """These files."""
        return sources if isinstance(sources, cls) else cls(sources)

    def __reduce__(self) -> Any:
        return Sources, (tuple(self),)

    @cached_property
    def far(self) -> bool:
        """Whether one of them is far."""
        return any(source.far for source in self if source.filesystem is not None)

    @cached_property
    def in_folders(self) -> bool:
        """Whether folders say something of one of them."""
        return any(source.partitions for source in self)

    @cached_property
    def paths(self) -> tuple[str, ...] | None:
        """Their paths, where all are opened by us on this machine's disk."""
        if any(source.filesystem is not None or source.data is not None for source in self):
            return None
        return tuple([source.path for source in self])


def resolve(
    source: Any,
    storage_options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = PATIENCE,
    tables: Tables | None = None,
) -> list[Source]:
    """The files of a source, directories and globs expanded, in the order of their names.

    Below a directory, or below the first `**` of a glob, what lies in or under a name with a leading `_` or `.`
    is no data, unless the name has a `=`; a wildcard at the beginning of a name in a glob matches no `.`. What is
    called as the glob is written comes first. Links are followed. Below a directory, or below the part of a glob that
    has no magic, the names of folders such as `k=1` are partitions of the files in them.

    `tables` is told of folders that are tables of Delta Lake or Iceberg, of which no files are given then; without it these
    are folders like others.
    """
    named = _named(source, storage_options, retry_policy)
    if named is not None:
        filesystem, path = named
        if filesystem is None:
            return _local(path, tables)
        return _on_filesystem(filesystem, path, retry_policy, tables)
    if isinstance(source, Source):
        return [source]
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return [Source("<memory>", data=bytes(source))]
    if isinstance(source, Sequence):
        return [
            one for item in source for one in resolve(item, storage_options, retry_policy, tables)
        ]
    raise TypeError(
        f"source {type(source).__name__}: a path, URL, list, directory, glob, (filesystem, path) or bytes"
    )


def place(
    target: Any,
    storage_options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = PATIENCE,
) -> Source:
    """Where one file is to be written: a path, a URL or (filesystem, path). Nothing need be there, and nothing is asked."""
    named = _named(target, storage_options, retry_policy)
    if named is None:
        raise TypeError(f"output {type(target).__name__}: a path, URL or (filesystem, path)")
    filesystem, path = named
    if filesystem is None:
        return Source(path)
    return Source(path, filesystem, retry_policy=retry_policy)


def _named(
    source: Any, storage_options: Mapping[str, Any] | None, retry_policy: RetryPolicy
) -> tuple[pafs.FileSystem | Files | None, str] | None:
    """What opens the files of a path, a URL or a pair, None for this machine, and the path there; None of other things."""
    if isinstance(source, str):
        scheme = urlsplit(source).scheme if ":" in source else ""
        if scheme == "file":
            return None, unquote(urlsplit(source).path)
        # a local name may have a colon
        if (
            len(scheme) > 1
            and source.startswith("/", len(scheme) + 1)
            and not os.path.exists(source)
        ):
            from pageseek.storage.urls import from_url

            return from_url(source, scheme, storage_options or {}, retry_policy)
        return None, source
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        files, path = source
        if isinstance(files, (pafs.FileSystem, Files)):
            return files, path
        if not isinstance(files, (str, os.PathLike)):
            from pageseek.storage.urls import of_pair

            found = of_pair(files, path)
            return (None, found) if isinstance(found, str) else found
    if isinstance(source, os.PathLike):
        return None, os.fspath(source)
    return None


def _local(path: str, tables: Tables | None) -> list[Source]:
    if tables is None:
        return [Source(one, partitions=said) for one, said in on_disk(path)]
    seen = Seen()
    found = [Source(one, partitions=said) for one, said in on_disk(path, seen)]
    tables.take(seen)
    tables.near += [one.path for one in found[:1]]
    return found


def _on_filesystem(
    filesystem: pafs.FileSystem | Files, path: str, retry_policy: RetryPolicy, tables: Tables | None
) -> list[Source]:
    if isinstance(filesystem, Files):
        return _on_files(filesystem, path, retry_policy, tables)
    if is_local(filesystem):
        return _on_local_filesystem(filesystem, path, tables)
    from pageseek.storage import pyarrow_files as arrow

    info = arrow.info(filesystem, path, retry_policy)
    missing = info.type == pafs.FileType.NotFound
    if missing and not glob.has_magic(path):
        raise FileNotFoundError(f"{shown_path(path)}: no such file")
    if not missing and info.type != pafs.FileType.Directory:
        return [Source(path, filesystem, retry_policy=retry_policy)]

    def find(root: str) -> Iterator[str]:
        infos = arrow.infos(filesystem, root, retry_policy)
        return (one.path for one in infos if one.type == pafs.FileType.File)

    plain = path if "://" in path or not path else posixpath.normpath(path)
    seen = None if tables is None else Seen()
    found = on_store(plain, find, seen)
    if tables is not None and seen is not None:
        tables.take(seen, shown_path, filesystem)
        if seen.root is not None:
            return []
    if not found:
        raise FileNotFoundError(_nothing(path, shown_path(path)))
    return [
        Source(one, filesystem, partitions=said, retry_policy=retry_policy) for one, said in found
    ]


def _on_local_filesystem(
    filesystem: pafs.FileSystem, path: str, tables: Tables | None
) -> list[Source]:
    """Listed as this machine's disk is, which knows circles of links."""
    base, inner = "", filesystem
    while isinstance(inner, pafs.SubTreeFileSystem):
        base, inner = os.path.join(inner.base_path, base.lstrip("/")), inner.base_fs
    top = os.path.abspath(base) if base else ""
    here = os.path.join(top, path.lstrip("/")) if top else path
    made = []
    seen = None if tables is None else Seen()
    found = on_disk(here, seen)
    for one, said in found:
        inside = (os.path.relpath(one, top) if top else one).replace(os.sep, "/")
        made.append(Source(inside, filesystem, partitions=said))
    if tables is not None and seen is not None:
        tables.take(seen)
        tables.near += [one for one, _ in found[:1]]
    return made


def _on_files(
    files: Files, path: str, retry_policy: RetryPolicy, tables: Tables | None
) -> list[Source]:
    magic = glob.has_magic(path)
    if files.looks_like_file(path) or (is_data(path) and not magic):  # nothing is asked
        return [Source(path, files, retry_policy=retry_policy)]
    seen = None if tables is None else Seen()
    found = on_store(path, lambda root: files.find(root, retry_policy), seen)
    if tables is not None and seen is not None:
        tables.take(seen, files.name, files)
        if seen.root is not None:
            return []
    if found is None and path and not path.endswith("/") and not magic:
        return [Source(path, files, retry_policy=retry_policy)]
    if not found:
        raise FileNotFoundError(_nothing(path, files.name(path)))
    return [Source(one, files, partitions=said, retry_policy=retry_policy) for one, said in found]


def _nothing(path: str, name: str) -> str:
    return f"{name}: {'no file matches' if glob.has_magic(path) else NO_DATA}"
