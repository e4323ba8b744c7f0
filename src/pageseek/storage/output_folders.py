"""Folders that many files are written to: listed, put, renamed and deleted by names below the folder."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from pageseek.storage.atomic_files import fsync_folder
from pageseek.storage.files import Files, Place
from pageseek.storage.listing import is_hidden
from pageseek.storage.resolve import Source, place
from pageseek.storage.writing import Writer, writer

AT_ONCE = 16  # requests under way
MOST_FAILURES = 16  # deletions that fail before a store is taken to be out of reach
LONGEST_KEY = 1024  # bytes of a key in S3 and GCS; Azure takes as many characters
# what systems say of names that no file can have; not all take the same
_NO_NAME = frozenset((errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ))


class OutputFolder:
    """A folder of this machine. Its paths have `/` between names. Picklable."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = path

    @property
    def far(self) -> bool:
        """Whether it lies in a store."""
        return False

    def source(self, name: str) -> Source:
        """A file in it."""
        return Source(os.path.join(self.path, *name.split("/")))

    def refused(self, name: str) -> str | None:
        """Why no file in the folder can have a name; None if one can."""
        inner = (os.path.join(self.path, one) for one in name.split("/"))
        for path in (*inner, self.source(name).path):
            try:
                os.lstat(path)
            except ValueError:  # NUL, or a sign that the system's encoding lacks
                return "names of files have no such character"
            except OSError as error:
                if error.errno in _NO_NAME:
                    size = len(os.fsencode(os.path.relpath(path, self.path)))
                    return f"{os.strerror(error.errno).lower()} ({size} bytes)"
        return None

    def names(self, below: str = "") -> list[str]:
        """All files below the folder, or below one inside, hidden ones too; links to folders are followed where readers do so."""
        found = []
        for folder, _, files in self._walk(os.path.join(self.path, below), frozenset()):
            inner = self._inner(folder)
            found += [name if inner == "." else f"{inner}/{name}" for name in files]
        return sorted(found)

    def linked(self) -> list[str]:
        """The links to folders below the folder that readers follow."""
        links = (one for _, links, _ in self._walk(self.path, frozenset()) for one in links)
        return sorted(self._inner(link) for link in links)

    def _inner(self, path: str) -> str:
        return os.path.relpath(path, self.path).replace(os.sep, "/")

    def _walk(
        self, top: str, above: frozenset[tuple[int, int]]
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Folders, the links to folders in each that are followed, and the files. `above`: folders on the way, to which no link goes."""
        for folder, inner, files in os.walk(top):
            links = []
            for path in (os.path.join(folder, name) for name in inner if not is_hidden(name)):
                if not os.path.islink(path):
                    continue
                way, at = {*above, _identity(top)}, top
                for name in os.path.relpath(folder, top).split(os.sep):
                    at = os.path.join(at, name)
                    way.add(_identity(at))
                if _identity(path) not in way:
                    links.append(path)
                    yield from self._walk(path, frozenset(way))
            yield folder, links, files

    def make_for(self, names: Iterable[str]) -> None:
        """Make the folders of files that are to come, where that is needed."""
        for name in names:
            os.makedirs(os.path.dirname(self.source(name).path), exist_ok=True)

    def put(self, name: str, body: bytes) -> None:
        """Write a small file; it is on disk when this returns."""
        path = self.source(name).path
        temporary = f"{path}.tmp"
        self.make_for([name])
        with open(temporary, "wb") as out:
            out.write(body)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
        fsync_folder(path)

    def get(self, name: str) -> bytes:
        """The bytes of a small file."""
        with open(self.source(name).path, "rb") as file:
            return file.read()

    def move(self, names: Mapping[str, str], moved: Callable[[], None] = lambda: None) -> None:
        """Rename files of the folder. Missing folders are made. `moved` is called after each file."""
        paths = {self.source(one).path: self.source(to).path for one, to in names.items()}
        folders = {os.path.dirname(path) for path in paths.values()}
        self.make_for(names.values())
        for one, to in paths.items():
            os.rename(one, to)
            moved()
        for folder in self._up(folders):
            fsync_folder(os.path.join(folder, "x"))

    def _up(self, folders: Iterable[str]) -> set[str]:
        """Folders, and those above them that may be new."""
        found: set[str] = set()
        for folder in folders:
            while folder not in found and folder.startswith(self.path):
                found.add(folder)
                folder = os.path.dirname(folder)
        return found

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, those that are there, and folders that are empty then. The error of one is raised when all were tried."""
        folders, failed = set(), None
        for name in names:
            path = self.source(name).path
            try:
                os.unlink(path)
            except (FileNotFoundError, NotADirectoryError):
                pass
            except (OSError, ValueError) as error:
                if self.refused(name) is None:
                    failed = failed or error
            folders.add(os.path.dirname(path))
        for folder in folders:
            while folder != self.path and folder.startswith(self.path):
                try:
                    os.rmdir(folder)
                except (OSError, ValueError):
                    if os.path.lexists(folder):  # not empty
                        break
                folder = os.path.dirname(folder)
        if failed is not None:
            raise failed

    def drop(self, name: str) -> None:
        """Delete a folder inside and all that is in it, as far as that is possible now."""
        shutil.rmtree(os.path.join(self.path, name), ignore_errors=True)


def _identity(folder: str) -> tuple[int, int]:
    found = os.stat(folder)
    return found.st_dev, found.st_ino


class StoreFolder(OutputFolder):
    """A folder of a store: the files whose names begin so. To rename one is a copy on most object stores."""

    def __init__(self, source: Source, files: Files) -> None:
        super().__init__(source.path.rstrip("/"))
        self.name = source.name
        self._files: Any = files
        self._retry_policy = source.retry_policy

    @property
    def far(self) -> bool:
        return True

    def source(self, name: str) -> Source:
        path = f"{self.path}/{name}" if self.path else name
        return Source(path, self._files, retry_policy=self._retry_policy)

    def refused(self, name: str) -> str | None:
        if "\0" in name:  # listings in XML have no such character
            return "names of files have no such character"
        size = len(self.source(name).path.strip("/").encode())
        if size <= LONGEST_KEY:
            return None
        return f"a name of {size} bytes in the store, and stores take {LONGEST_KEY}"

    def names(self, below: str = "") -> list[str]:
        top = f"{self.path}/{below}".rstrip("/")
        try:
            found = self._files.find(top, self._retry_policy)
        except FileNotFoundError:
            return []
        root = f"{self.path.strip('/')}/".lstrip("/")
        bare = [path.lstrip("/") for path in found]
        return sorted(
            path[len(root) :] for path in bare if path.startswith(root) and path[-1] != "/"
        )

    def linked(self) -> list[str]:
        return []

    def make_for(self, names: Iterable[str]) -> None:
        for folder in {self.source(name).path.rpartition("/")[0] for name in names} - {""}:
            make = partial(self._files.make_folder, folder)
            Place(self._files, folder, self._retry_policy).ask(make, "to be made")

    def put(self, name: str, body: bytes) -> None:
        self.make_for([name])
        writer(self.source(name)).put(memoryview(body), overwrite=True)

    def get(self, name: str) -> bytes:
        store = self.source(name).open()
        try:
            (data,) = store.read([(0, store.size)])
            return bytes(data)
        finally:
            store.close()

    def move(self, names: Mapping[str, str], moved: Callable[[], None] = lambda: None) -> None:
        self.make_for(names.values())
        for _ in self._each([partial(self._move, one, to) for one, to in names.items()]):
            moved()

    def _move(self, one: str, to: str) -> None:
        there, path = self.source(to), self.source(one).path

        def attempt() -> None:
            try:
                self._files.move(path, there.path)
            except FileNotFoundError:  # an earlier attempt without an answer may have done it
                if not writer(there).exists():
                    raise

        Place(self._files, there.path, self._retry_policy).ask(attempt, "to be given its name")

    def delete(self, names: Iterable[str]) -> None:
        failed: list[Exception] = []

        def gone(name: str) -> None:
            if len(failed) >= MOST_FAILURES:
                return
            place = writer(self.source(name))
            try:
                place.delete()
            except FileNotFoundError:
                pass
            except Exception as error:  # noqa: BLE001 - the other files go on, whatever it is
                # some stores refuse to delete what can have no such name
                if self.refused(name) is None and _may_be_there(place):
                    failed.append(error)

        for _ in self._each([partial(gone, name) for name in names]):
            pass
        if failed:
            raise failed[0]

    def drop(self, name: str) -> None:
        with suppress(Exception):
            self.delete(self.names(name))

    def _each(self, calls: list[Callable[[], None]]) -> Iterator[None]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(lambda call: call(), calls)


def _may_be_there(place: Writer) -> bool:
    try:
        return place.exists()
    except Exception:  # noqa: BLE001 - only an answer tells
        return True


def output_folder(path: Any, storage_options: Mapping[str, Any] | None = None) -> OutputFolder:
    """The folder of a path, a URL, or (filesystem, path). No request is sent."""
    source = place(path, storage_options)
    if source.filesystem is None:
        return OutputFolder(os.path.abspath(source.path))
    return StoreFolder(source, source.filesystem)
