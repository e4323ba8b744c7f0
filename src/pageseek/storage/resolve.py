"""From what the user gives - path, URL, list, directory, glob, (filesystem, path), bytes - to files."""

from __future__ import annotations

import glob
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.errors import UnsupportedError
from pageseek.storage.arrow import ArrowStore
from pageseek.storage.base import Store, Version
from pageseek.storage.local import LocalStore, version_at
from pageseek.storage.memory import MemoryStore

SUFFIXES = (".parquet", ".parq", ".pq")

# those that pyarrow.fs can know
SCHEMES = frozenset({"abfs", "abfss", "file", "gcs", "gs", "hdfs", "mock", "s3", "viewfs"})


@dataclass(frozen=True, slots=True)
class Source:
    """One file, not yet open: a local path, a path on a pyarrow filesystem, or bytes. Picklable."""

    path: str
    filesystem: pafs.FileSystem | None = None
    data: bytes | None = None

    def open(self) -> Store:
        if self.data is not None:
            return MemoryStore(self.data, self.path)
        if self.filesystem is not None:
            return ArrowStore(self.filesystem, self.path)
        return LocalStore(self.path)

    def version(self) -> Version | None:
        """The version that lies there now, where asking costs less than to open it."""
        if self.data is not None or self.filesystem is not None:
            return None
        return version_at(self.path)

    @property
    def far(self) -> bool:
        """Whether it takes a while until its first byte comes."""
        return self.filesystem is not None and not isinstance(self.filesystem, pafs.LocalFileSystem)

    @property
    def key(self) -> str:
        """Names the file in caches, next to its version."""
        if self.filesystem is None:
            return self.path
        return f"{self.filesystem.type_name}:{self.path}"


def resolve(source: Any) -> list[Source]:
    """The files of a source, directories and globs expanded, in the order of their names.

    Below a directory, or below the first `**` of a glob, what lies in or under a name with a leading `_` or `.`
    is no data, unless the name has a `=`; a folder of a partition (`k=1`) is an UnsupportedError.
    """
    if isinstance(source, str):
        scheme = urlsplit(source).scheme if ":" in source else ""
        if scheme == "file":
            return _local(unquote(urlsplit(source).path))
        if len(scheme) > 1 and not os.path.exists(source):  # a local name may have a colon
            return _on_filesystem(*_from_url(source, scheme))
        return _local(source)
    if isinstance(source, Source):
        return [source]
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return [Source("<memory>", data=bytes(source))]
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], pafs.FileSystem):
        return _on_filesystem(source[0], source[1])
    if isinstance(source, Sequence):
        return [found for item in source for found in resolve(item)]
    if isinstance(source, os.PathLike):
        return _local(os.fspath(source))
    raise TypeError(
        f"source {type(source).__name__}: a path, URL, list, directory, glob, (filesystem, path) or bytes"
    )


def _from_url(url: str, scheme: str) -> tuple[pafs.FileSystem, str]:
    try:
        filesystem, path = pafs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if "://" not in url:
            raise FileNotFoundError(f"{url}: no such file") from error
        if scheme in SCHEMES and isinstance(error, pa.ArrowInvalid):
            raise  # the filesystem is there, and what it says of the URL is right
        # not the URL: it may hold a password
        raise UnsupportedError(
            f"{scheme}://: this pyarrow has no filesystem for the scheme {scheme!r}: download the file, or give "
            f"(filesystem, path), for example (PyFileSystem(FSSpecHandler(fsspec.filesystem({scheme!r}))), path) "
            "with both classes from pyarrow.fs"
        ) from error
    return filesystem, path


def _hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


def _visible(root: str, found: Iterable[tuple[str, str]]) -> list[str]:
    """The paths that are not hidden, sorted. `found`: (path, the same below the root, with `/`)."""
    kept: list[str] = []
    for path, below in sorted(found):
        names = below.split("/")
        if any(_hidden(name) for name in names):
            continue
        for depth, name in enumerate(names[:-1], 1):
            if name.find("=") > 0:
                raise UnsupportedError(
                    f"{posixpath.join(root, *names[:depth])}: the folder is a partition, and columns that are "
                    f"in the names of folders ({name.partition('=')[0]!r}) are not supported: "
                    "to read the files without them, give the files as a list"
                )
        kept.append(path)
    return kept


def _walk(root: str) -> Iterator[tuple[str, str]]:
    """The .parquet files below a directory; hidden folders are not entered, links to folders neither."""

    def refuse(error: OSError) -> None:
        raise error  # a folder left out would be rows left out

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if not _hidden(name)]
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(SUFFIXES) and os.path.isfile(path):
                yield path, os.path.relpath(path, root).replace(os.sep, "/")


def _match(pattern: str) -> list[str]:
    found = [p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p)]
    names = pattern.replace(os.sep, "/").split("/")
    if "**" not in names:
        return sorted(found)  # the pattern names every folder itself
    root = len(names[: names.index("**")])
    parts = [p.replace(os.sep, "/").split("/") for p in found]
    pairs = [(p, "/".join(part[root:])) for p, part in zip(found, parts, strict=True)]
    return _visible("/".join(names[:root]) or ("/" if root else ""), pairs)


def _local(path: str) -> list[Source]:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0
    if stat.S_ISREG(mode):
        return [Source(os.path.abspath(path))]
    if stat.S_ISDIR(mode):
        found = _visible(path, _walk(path))
        if not found:
            raise FileNotFoundError(f"{path}: no .parquet file in this directory")
        return [Source(os.path.abspath(p)) for p in found]
    if not mode and glob.has_magic(path):
        found = _match(path)
        if not found:
            raise FileNotFoundError(f"{path}: no file matches")
        return [Source(os.path.abspath(p)) for p in found]
    if not mode:
        raise FileNotFoundError(f"{path}: no such file")
    return [Source(os.path.abspath(path))]


def _below(root: str, path: str) -> str:
    """A path on a filesystem as seen from a folder; filesystems add and drop leading slashes."""
    return posixpath.relpath("/" + path.lstrip("/"), "/" + root.lstrip("/"))


def _on_filesystem(filesystem: pafs.FileSystem, path: str) -> list[Source]:
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.Directory:
        infos = filesystem.get_file_info(pafs.FileSelector(path, recursive=True))
        found = _visible(
            path,
            [
                (i.path, _below(path, i.path))
                for i in infos
                if i.type == pafs.FileType.File and i.base_name.endswith(SUFFIXES)
            ],
        )
        if not found:
            raise FileNotFoundError(f"{path}: no .parquet file in this directory")
        return [Source(p, filesystem) for p in found]
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(f"{path}: no such file")
    return [Source(path, filesystem)]
