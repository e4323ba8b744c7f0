"""Where rewritten files go. What is sure to fail at the end fails when a place is made."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import has_magic
from typing import Any

from pageseek.base.errors import UnsupportedError
from pageseek.index.local_target import LocalTarget, Target
from pageseek.index.store_target import StoreTarget
from pageseek.index.table_target import refuse_inside
from pageseek.storage import Source, Store
from pageseek.storage.atomic_files import fsync_folder, hidden_name, refuse_place
from pageseek.storage.listing import Directory, Glob, Identity, first_magic, identity, on_store
from pageseek.storage.local import MemoryStore
from pageseek.storage.resolve import place

NO_COMMIT = (
    "files of a table are rewritten by a commit of the table: ps.rewrite(TABLE, in_place=True), where TABLE is its folder (Delta "
    "Lake), a DeltaTable, or catalog.load_table(...) (Iceberg); or write to a place outside of it (output=...)"
)


class Destination(ABC):
    """Where files go.

    Attributes
    ----------
    name : str
        As errors call it.
    folder_of_files : bool
        Whether there may be several.
    """

    in_place = False  # of `attach`: it has something to do in any case
    folder_of_files = False
    name: str

    @abstractmethod
    def file(self, number: int) -> Target:
        """The target of one more file."""

    def target(self, source: Store) -> Target:
        """The target of the only file, once more: indexes are added to it as it gets its name."""
        return self.file(0)

    def done(self, size: int) -> None:  # noqa: B027 - of `attach`, and nothing is left to do
        """A file is there."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing behind, unless it was committed."""


class OneFile(Destination):
    """One file, which appears by itself."""

    def __init__(self, to: Source, store: Store, in_place: bool, overwrite: bool) -> None:
        """`store`: the file that it is made from, open; it is closed with the place. `in_place`: that one is replaced."""
        self.name = to.name
        self._to, self._store = to, store
        self._replaces, self._overwrite = in_place, overwrite
        self.file(0).close()  # whether a file can be made there

    def file(self, number: int) -> Target:
        """The target of the file."""
        if self._to.filesystem is not None:
            return StoreTarget(self._to, self._store, self._replaces, self._overwrite)
        path = self._to.path
        if self._replaces:
            return LocalTarget(path, path, True, self._store.version)
        return LocalTarget(path, None, self._overwrite)

    def check(self) -> None:
        """Raise FileChangedError where a file that is replaced is no longer the one that was read."""
        if self._replaces:
            self._store.check()

    def close(self) -> None:
        """Close the file that it is made from."""
        self._store.close()


class Folder(Destination):
    """A new folder of files, or an empty one. All of it appears in one step."""

    folder_of_files = True

    def __init__(self, path: str) -> None:
        self.name = self._path = os.path.realpath(path)
        self._parent = os.path.dirname(self._path)
        self._hidden = os.path.join(self._parent, hidden_name(os.path.basename(self._path)))
        if os.path.lexists(self._path) and (
            not os.path.isdir(self._path) or os.listdir(self._path)
        ):
            raise FileExistsError(
                f"{self._path}: it exists already, and several files go to a new folder or an empty one: choose another"
            )
        os.mkdir(self._hidden)

    def file(self, number: int) -> Target:
        """The target of a file in the folder, which nobody sees yet."""
        return LocalTarget(os.path.join(self._hidden, self.file_name(number)), None)

    @staticmethod
    def file_name(number: int) -> str:
        """The name of a file, by its number: their order is that of the rows."""
        return f"part-{number:05}.parquet"

    def commit(self) -> None:
        """Give the folder its name."""
        fsync_folder(os.path.join(self._hidden, "x"))
        with suppress(FileNotFoundError):
            os.rmdir(self._path)
        os.rename(self._hidden, self._path)
        fsync_folder(self._path)

    def close(self) -> None:
        """Delete what was not committed."""
        shutil.rmtree(self._hidden, ignore_errors=True)


def destination(
    sources: list[Source],
    output: Any,
    in_place: bool,
    overwrite: bool,
    several: str,
    storage_options: Mapping[str, Any] | None,
) -> Destination:
    """The place that a caller names. `sources`: what is read. `several`: the option by which output is a folder of files in any case."""
    if in_place == (output is not None):
        raise ValueError("one of output=PATH and in_place=True is required, and not both")
    if in_place:
        return _of_source(sources, overwrite, several)
    to = place(output, storage_options)
    refuse_inside(to, NO_COMMIT)
    is_folder = bool(several) or _ends_as_folder(to)
    if to.filesystem is not None:
        if is_folder:
            raise UnsupportedError(
                f"{to.name}: several files ({several or 'file_rows'}=) go to a folder of this machine only: write one file, or copy the folder"
            )
    elif is_folder or os.path.isdir(to.path):
        return Folder(to.path)
    for source in sources:
        if _same(to, source):
            raise ValueError(
                f"output={to.name!r} is a file that is read: say in_place=True to replace a file"
            )
    if to.filesystem is None:
        refuse_place(to.path, overwrite)
    only = sources[0].open() if len(sources) == 1 else MemoryStore(b"")
    return _opened(to, only, False, overwrite)


def refuse_own_folder(
    source: Any,
    files: Sequence[Source],
    output: Any,
    several: str,
    storage_options: Mapping[str, Any] | None,
) -> None:
    """Raise ValueError where the new file would be one of the files that the source names: a scan of these would then have all rows
    twice. `files`: that it names now. `several`: as for `destination`.
    """
    to = place(output, storage_options)
    path = _spelled(to)
    if to.filesystem is None and (several or os.path.isdir(path) or _ends_as_folder(to)):
        path = f"{path}/{Folder.file_name(0)}"
    for one in _places(source, storage_options):
        if one.filesystem != to.filesystem:
            continue
        if has_magic(one.path) and any(_same(one, file) for file in files):
            continue  # a file is called so
        paths = [path]
        if one.filesystem is None:
            named = _spelled(one)
            paths += _through_links(named, path)
        else:
            named = one.filesystem.folder(one.path)
        if on_store(named, lambda _, paths=paths: paths):  # type: ignore[misc]
            raise ValueError(
                f"output={to.name!r} lies in the source {one.name!r}, which would then have all rows twice: write to a place outside of it"
            )


def _spelled(place: Source) -> str:
    """The path, as a listing spells it: on this machine, absolute and without links."""
    if place.filesystem is not None:
        return place.path
    return os.path.realpath(place.path).replace(os.sep, "/")


def _through_links(named: str, path: str) -> list[str]:
    """The paths of a new file below a folder or a glob, as a listing would spell them: symbolic links may lead to it."""
    names, parts = named.split("/"), path.split("/")
    at = None if os.path.isdir(named) else first_magic(names)
    wanted = Directory() if at is None else Glob(names[at:])
    n = len(parts) - 1
    while n > 1 and not os.path.isdir("/".join(parts[:n])):  # a folder that is new, too
        n -= 1
    target, below = identity("/".join(parts[:n]) or "/"), "/".join(parts[n:])
    made: list[str] = []
    folders = [("/".join(names[:at]) or "/", wanted.first, frozenset[Identity]())]
    while folders:
        folder, state, passed = folders.pop()
        with suppress(OSError):  # a folder that is not there has no links
            here = identity(folder)
            if here in passed:  # a circle, which a listing does not follow either
                continue
            if here == target:
                made.append(f"{folder.rstrip('/')}/{below}")
            with os.scandir(folder) as found:
                for entry in found:
                    spelled = entry.path.replace(os.sep, "/")
                    if entry.is_symlink() and not os.path.isdir(spelled):
                        real = os.path.realpath(spelled).replace(os.sep, "/")
                        if f"{path}/".startswith(f"{real}/"):
                            made.append(spelled + path[len(real) :])
                    elif entry.is_dir() and (inner := wanted.enters(state, entry.name)):
                        folders.append((spelled, inner, passed | {here}))
    return made


def _places(source: Any, storage_options: Mapping[str, Any] | None) -> list[Source]:
    """The paths, globs and URLs among what a caller names."""
    try:
        return [place(source, storage_options)]
    except TypeError:
        if isinstance(source, list | tuple):
            return [found for one in source for found in _places(one, storage_options)]
    return []  # bytes, an open file


def _ends_as_folder(to: Source) -> bool:
    return to.path.endswith(("/", os.sep))


def _of_source(sources: list[Source], overwrite: bool, several: str) -> Destination:
    if overwrite:
        raise ValueError("overwrite=True goes with output=PATH")
    if several:
        raise ValueError(
            f"{several}= makes several files: it goes with output=FOLDER, or with a table"
        )
    if len(sources) != 1:
        raise ValueError(
            f"in_place=True is of one file, and the source has {len(sources):,}: call it for each of them, or give output=PATH for all of their rows"
        )
    (source,) = sources
    if source.data is not None:
        raise UnsupportedError(
            f"{source.name}: bytes at hand are not changed in_place: give output=PATH"
        )
    refuse_inside(source, NO_COMMIT)
    return _opened(source, source.open(), True, False)


def _opened(to: Source, store: Store, in_place: bool, overwrite: bool) -> Destination:
    try:
        return OneFile(to, store, in_place, overwrite)
    except BaseException:
        store.close()
        raise


def _same(one: Source, other: Source) -> bool:
    if other.data is not None:
        return False
    if one.filesystem is None and other.filesystem is None:
        return os.path.exists(one.path) and os.path.samefile(one.path, other.path)
    return one.key == other.key
