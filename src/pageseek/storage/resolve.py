"""From what the user gives - path, URL, list, directory, glob, (filesystem, path), bytes - to files."""

from __future__ import annotations

import glob
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.errors import UnsupportedError
from pageseek.storage.base import Known, Store, Version
from pageseek.storage.files import Files, is_local
from pageseek.storage.local import LocalStore, version_at
from pageseek.storage.memory import MemoryStore
from pageseek.storage.retry import Patience

SUFFIXES = (".parquet", ".parq", ".pq")
PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Source:
    """One file, not yet open: a local path, a path on a filesystem, or bytes. Picklable.

    `filesystem`: of pyarrow, or what stands for one of obstore or fsspec. `patience`: with what distant stores are tried.
    """

    path: str
    filesystem: pafs.FileSystem | Files | None = None
    data: bytes | None = None
    patience: Patience = field(default=PATIENCE, compare=False)

    def open(self, known: Known | None = None) -> Store:
        """The file. `known`: what there is of it from before, which a distant store can confirm in one request."""
        if self.data is not None:
            return MemoryStore(self.data, self.path)
        if self.filesystem is None:
            return LocalStore(self.path)
        if isinstance(self.filesystem, Files):
            return self.filesystem.open(self.path, self.patience, known)
        from pageseek.storage.arrow import ArrowStore

        return ArrowStore(self.filesystem, self.path, self.patience, known)

    def version(self) -> Version | None:
        """The version that lies there now, where asking costs less than to open it."""
        if self.data is not None or self.filesystem is not None:
            return None
        return version_at(self.path)

    @property
    def name(self) -> str:
        """How the file is called, without secrets."""
        return self.filesystem.name(self.path) if isinstance(self.filesystem, Files) else self.path

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
        return f"{self.filesystem.type_name}:{self.path}"


def resolve(
    source: Any,
    storage_options: Mapping[str, Any] | None = None,
    patience: Patience = PATIENCE,
) -> list[Source]:
    """The files of a source, directories and globs expanded, in the order of their names.

    Below a directory, or below the first `**` of a glob, what lies in or under a name with a leading `_` or `.`
    is no data, unless the name has a `=`; a folder of a partition (`k=1`) is an UnsupportedError.
    """
    if isinstance(source, str):
        scheme = urlsplit(source).scheme if ":" in source else ""
        if scheme == "file":
            return _local(unquote(urlsplit(source).path))
        if len(scheme) > 1 and not os.path.exists(source):  # a local name may have a colon
            from pageseek.storage.urls import from_url

            return _on_filesystem(*from_url(source, scheme, storage_options or {}), patience)
        return _local(source)
    if isinstance(source, Source):
        return [source]
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return [Source("<memory>", data=bytes(source))]
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        files, path = source
        if isinstance(files, (pafs.FileSystem, Files)):
            return _on_filesystem(files, path, patience)
        if not isinstance(files, (str, os.PathLike)):
            from pageseek.storage.urls import of_pair

            found = of_pair(files, path)
            if isinstance(found, str):
                return _local(found)
            if found is not None:
                return _on_filesystem(*found, patience)
    if isinstance(source, Sequence):
        return [one for item in source for one in resolve(item, storage_options, patience)]
    if isinstance(source, os.PathLike):
        return _local(os.fspath(source))
    raise TypeError(
        f"source {type(source).__name__}: a path, URL, list, directory, glob, (filesystem, path) or bytes"
    )


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


def _on_filesystem(
    filesystem: pafs.FileSystem | Files, path: str, patience: Patience
) -> list[Source]:
    if isinstance(filesystem, Files):
        return _on_files(filesystem, path, patience)
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
        return [Source(p, filesystem, patience=patience) for p in found]
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(f"{path}: no such file")
    return [Source(path, filesystem, patience=patience)]


def _on_files(files: Files, path: str, patience: Patience) -> list[Source]:
    from pageseek.storage.urls import listing

    listed = listing(files, path, patience, SUFFIXES)
    if listed is None:
        return [Source(path, files, patience=patience)]
    root, found = listed
    names = path.split("/")
    if found and (root == path.rstrip("/") or "**" in names):
        top = root if "**" not in names else "/".join(names[: names.index("**")])
        found = _visible(files.name(top), [(one, _below(top, one)) for one in found])
    if not found:
        raise FileNotFoundError(f"{files.name(path)}: no file matches")
    return [Source(one, files, patience=patience) for one in sorted(found)]
