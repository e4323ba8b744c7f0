"""From what the user gives - path, URL, list, directory, glob, (filesystem, path), bytes - to files."""

from __future__ import annotations

import glob
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.records import dataclass
from pageseek.storage.base import Known, Store, Version
from pageseek.storage.files import Begun, Files, Needed, is_local
from pageseek.storage.hive import Partitions, partitions_of
from pageseek.storage.local import LocalStore, version_at
from pageseek.storage.memory import MemoryStore
from pageseek.storage.redact import shown_path
from pageseek.storage.remote import RemoteStore
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
    partitions: Partitions = field(
        default=(), compare=False
    )  # columns that are the same in all its rows
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

    def begin(self, known: Known | None, needed: Needed) -> Begun | None:
        """Ask for the file, with as many bytes of its end as are `needed`, and do not wait; None where that cannot be."""
        if self.data is not None or not isinstance(self.filesystem, Files):
            return None
        return self.filesystem.begin(self.path, self.patience, known, needed)

    def believed(self, known: Known) -> RemoteStore | None:
        """The file as it was known, for which nothing is asked, where its first read tells whether it is still that
        one; else None.
        """
        if self.data is not None or not isinstance(self.filesystem, Files):
            return None
        return self.filesystem.believed(self.path, self.patience, known)

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


def any_far(sources: Iterable[Source]) -> bool:
    """Whether one of them is far. Of thousands of files at hand this is asked in no time."""
    return any(source.far for source in sources if source.filesystem is not None)


def resolve(
    source: Any,
    storage_options: Mapping[str, Any] | None = None,
    patience: Patience = PATIENCE,
) -> list[Source]:
    """The files of a source, directories and globs expanded, in the order of their names.

    Below a directory, or below the first `**` of a glob, what lies in or under a name with a leading `_` or `.`
    is no data, unless the name has a `=`. Below a directory, or below the part of a glob that has no magic, the
    names of folders such as `k=1` are partitions of the files in them.
    """
    named = _named(source, storage_options, patience)
    if named is not None:
        filesystem, path = named
        return _local(path) if filesystem is None else _on_filesystem(filesystem, path, patience)
    if isinstance(source, Source):
        return [source]
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return [Source("<memory>", data=bytes(source))]
    if isinstance(source, Sequence):
        return [one for item in source for one in resolve(item, storage_options, patience)]
    raise TypeError(
        f"source {type(source).__name__}: a path, URL, list, directory, glob, (filesystem, path) or bytes"
    )


def place(
    target: Any, storage_options: Mapping[str, Any] | None = None, patience: Patience = PATIENCE
) -> Source:
    """Where one file is to be written: a path, a URL or (filesystem, path). Nothing need be there, and nothing is asked."""
    named = _named(target, storage_options, patience)
    if named is None:
        raise TypeError(f"output {type(target).__name__}: a path, URL or (filesystem, path)")
    filesystem, path = named
    if filesystem is None:
        return Source(path)
    return Source(path, filesystem, patience=patience)


def _named(
    source: Any, storage_options: Mapping[str, Any] | None, patience: Patience
) -> tuple[pafs.FileSystem | Files | None, str] | None:
    """What opens the files of a path, a URL or a pair, None for this machine, and the path there; None of other things."""
    if isinstance(source, str):
        scheme = urlsplit(source).scheme if ":" in source else ""
        if scheme == "file":
            return None, unquote(urlsplit(source).path)
        if len(scheme) > 1 and not os.path.exists(source):  # a local name may have a colon
            from pageseek.storage.urls import from_url

            return from_url(source, scheme, storage_options or {}, patience)
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


def _hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


def _visible(found: Iterable[tuple[str, str]]) -> list[tuple[str, Partitions]]:
    """The paths that are not hidden, sorted, and what their folders say. `found`: (path, the same below the root,
    with `/`).
    """
    kept: list[tuple[str, Partitions]] = []
    said: dict[str, Partitions] = {}
    for path, below in sorted(found):
        folder, _, name = below.rpartition("/")
        if _hidden(name) or any(map(_hidden, folder.split("/") if folder else ())):
            continue
        if folder not in said:
            said[folder] = partitions_of(folder.split("/")) if "=" in folder else ()
        kept.append((path, said[folder]))
    return kept


def _walk(root: str) -> Iterator[tuple[str, str]]:
    """The .parquet files below a directory; hidden folders are not entered, links to folders neither."""
    folders = [(root, "")]
    while folders:
        folder, below = folders.pop()
        with os.scandir(
            folder
        ) as found:  # a folder left out would be rows left out: errors go to the caller
            for entry in found:
                name = entry.name
                if name.endswith(SUFFIXES) and _is_file(entry):
                    yield entry.path, below + name
                elif entry.is_dir(follow_symlinks=False) and not _hidden(name):
                    folders.append((entry.path, f"{below}{name}/"))


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link in a circle, say
        return False


def _match(pattern: str) -> list[tuple[str, Partitions]]:
    found = [p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p)]
    names = pattern.replace(os.sep, "/").split("/")
    return _shown(found, names, next(i for i, name in enumerate(names) if glob.has_magic(name)))


def _shown(found: Iterable[str], names: list[str], root: int) -> list[tuple[str, Partitions]]:
    """What matches a glob and is not hidden, and what its folders say. `names` of the glob, of which the first with
    magic is at `root`.
    """
    # what the pattern names itself is not hidden
    shown = names.index("**") if "**" in names else len(names)
    kept: list[tuple[str, Partitions]] = []
    for path in sorted(found):
        parts = path.replace(os.sep, "/").split("/")
        if not any(map(_hidden, parts[shown:])):
            kept.append((path, partitions_of(parts[root:-1])))
    return kept


def _sources(found: Iterable[tuple[str, Partitions]]) -> list[Source]:
    here = os.getcwd()  # asked for once: os.path.abspath would ask for each path
    return [
        Source(os.path.normpath(os.path.join(here, path)), partitions=said) for path, said in found
    ]


def _local(path: str) -> list[Source]:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0
    if stat.S_ISREG(mode):
        return [Source(os.path.abspath(path))]
    if stat.S_ISDIR(mode):
        found = _visible(_walk(os.path.abspath(path)))
        if not found:
            raise FileNotFoundError(f"{path}: no .parquet file in this directory")
        return [Source(one, partitions=said) for one, said in found]
    if not mode and glob.has_magic(path):
        found = _match(path)
        if not found:
            raise FileNotFoundError(f"{path}: no file matches")
        return _sources(found)
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
    from pageseek.storage import arrow

    info = arrow.info(filesystem, path, patience)
    if info.type == pafs.FileType.Directory:
        infos = arrow.infos(filesystem, path, patience)
        found = _visible(
            (i.path, _below(path, i.path))
            for i in infos
            if i.type == pafs.FileType.File and i.base_name.endswith(SUFFIXES)
        )
        if not found:
            raise FileNotFoundError(f"{path}: no .parquet file in this directory")
        return [Source(p, filesystem, partitions=said, patience=patience) for p, said in found]
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
    magic = [i for i, name in enumerate(names) if glob.has_magic(name)]
    if magic:
        kept = _shown(found, names, magic[0])
    else:
        kept = _visible((one, _below(root, one)) for one in found)
    if not kept:
        raise FileNotFoundError(f"{files.name(path)}: no file matches")
    return [Source(one, files, partitions=said, patience=patience) for one, said in kept]
