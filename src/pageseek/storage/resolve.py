"""From what the user gives - path, URL, list, directory, glob, (filesystem, path), bytes - to files."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.storage.arrow import ArrowStore
from pageseek.storage.base import Store, Version
from pageseek.storage.local import LocalStore, version_at
from pageseek.storage.memory import MemoryStore


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
    def key(self) -> str:
        """Names the file in caches, next to its version."""
        if self.filesystem is None:
            return self.path
        return f"{self.filesystem.type_name}:{self.path}"


def resolve(source: Any) -> list[Source]:
    """The files of a source, directories and globs expanded, in the order of their names."""
    if isinstance(source, Source):
        return [source]
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return [Source("<memory>", data=bytes(source))]
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], pafs.FileSystem):
        return _on_filesystem(source[0], source[1])
    if isinstance(source, Sequence) and not isinstance(source, str):
        return [found for item in source for found in resolve(item)]
    if isinstance(source, os.PathLike):
        return _local(os.fspath(source))
    if isinstance(source, str):
        scheme = urlsplit(source).scheme if ":" in source else ""
        if scheme == "file":
            return _local(unquote(urlsplit(source).path))
        if len(scheme) > 1:
            filesystem, path = pafs.FileSystem.from_uri(source)
            return _on_filesystem(filesystem, path)
        return _local(source)
    raise TypeError(
        f"source {type(source).__name__}: a path, URL, list, directory, glob, (filesystem, path) or bytes"
    )


def _is_data(name: str) -> bool:
    return name.endswith((".parquet", ".parq", ".pq")) and not name.startswith(("_", "."))


def _local(path: str) -> list[Source]:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0
    if stat.S_ISREG(mode):
        return [Source(os.path.abspath(path))]
    if stat.S_ISDIR(mode):
        found = sorted(str(p) for p in Path(path).rglob("*") if _is_data(p.name) and p.is_file())
        if not found:
            raise FileNotFoundError(f"{path}: no .parquet file in this directory")
        return [Source(os.path.abspath(p)) for p in found]
    if not mode and glob.has_magic(path):
        found = sorted(p for p in glob.glob(path, recursive=True) if os.path.isfile(p))
        if not found:
            raise FileNotFoundError(f"{path}: no file matches")
        return [Source(os.path.abspath(p)) for p in found]
    if not mode:
        raise FileNotFoundError(f"{path}: no such file")
    return [Source(os.path.abspath(path))]


def _on_filesystem(filesystem: pafs.FileSystem, path: str) -> list[Source]:
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.Directory:
        infos = filesystem.get_file_info(pafs.FileSelector(path, recursive=True))
        found = sorted(
            i.path for i in infos if i.type == pafs.FileType.File and _is_data(i.base_name)
        )
        if not found:
            raise FileNotFoundError(f"{path}: no .parquet file in this directory")
        return [Source(p, filesystem) for p in found]
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(f"{path}: no such file")
    return [Source(path, filesystem)]
