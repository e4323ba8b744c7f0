"""A new file with indexes: all of it is put together first, then it appears in one step."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable

from pageseek.base.errors import FileChangedError
from pageseek.storage import RemoteStore, Store, Version
from pageseek.storage.atomic_files import Draft, take_rights
from pageseek.storage.hadoop_sums import Sums
from pageseek.storage.local import LocalStore, version_at

COPY_BYTES = 32 << 20  # bytes copied at a time from a remote store
REQUEST_BYTES = (
    8 << 20
)  # bytes of one request, and copied at a time from a local store; two are held


class Target(ABC):
    """A file that comes to be: put together in a draft on this machine, then made to appear by `commit`.

    Attributes
    ----------
    path : str
        The name of the file, as it may be shown.
    """

    path: str

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._near: LocalStore | None = None

    @property
    def size(self) -> int:
        """The bytes that are there so far."""
        return self._draft.size

    @property
    def way(self) -> str:
        """A path by which the bytes that are there can be read in this process, until the file is committed or closed."""
        return self._draft.way

    def copy(self, source: Store, length: int) -> Store:
        """Begin with the first bytes of an open store. Returns a store that has them too: a local one where this one is remote."""
        step = COPY_BYTES if isinstance(source, RemoteStore) else REQUEST_BYTES
        while self.size < length:
            stop = min(self.size + step, length)
            ranges = [
                (at, min(REQUEST_BYTES, stop - at)) for at in range(self.size, stop, REQUEST_BYTES)
            ]
            for data in source.read(ranges):
                self.write(data)
        if not isinstance(source, RemoteStore):
            return source
        self._near = self._draft.reader(source.name)
        return self._near

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Put bytes behind those that are there. Returns the place where they begin."""
        return self._draft.write(data)

    @abstractmethod
    def commit(self, check: Callable[[], None]) -> None:
        """All bytes are there: let the file appear. `check` is called right before, and raises where it must not."""

    def close(self) -> None:
        """Leave nothing behind, unless it was committed."""
        if self._near is not None:
            self._near.close()
        self._draft.close()


class LocalTarget(Target):
    """A file in the folder of its last name, which it has when it is complete."""

    def __init__(
        self, path: str, like: str | None, overwrite: bool = False, only: Version | None = None
    ) -> None:
        """`like`: a file whose permissions and attributes the new one takes over; None: those of the file that it replaces. `overwrite`: the new one replaces what has its name
        by then; if `only` is given, only a file of that version.
        """
        self._only = only
        self.path = os.path.realpath(path)
        self._sums = Sums(self.path, os.path.abspath(path))
        self._overwrite = overwrite
        super().__init__(Draft(self.path))
        try:
            if like is not None:
                take_rights(self._draft.fd, like)
            elif overwrite:
                self._draft.take_rights_of_old()
        except BaseException:
            self.close()
            raise

    def commit(self, check: Callable[[], None]) -> None:
        """Write all bytes to disk, then give the file its last name."""
        sums, before = self._sums, None

        def look() -> None:
            nonlocal before
            check()
            self._look()
            before = _identity(self.path)
            if (before is None or self._overwrite) and sums.delete():
                self._look()  # that took a while

        sums.prepare(self._draft.fd, self.size)
        try:
            self._draft.appear(self._overwrite, look)
        except BaseException:
            sums.put_back(lambda: before is not None and _identity(self.path) == before)
            raise
        sums.renew(lambda: _identity(self.path) == self._draft.identity)

    def _look(self) -> None:
        """Refuse where another file has the name of the one that was read. The open descriptor would not show that."""
        if self._only is None:
            return
        try:
            there = version_at(self.path)
        except FileNotFoundError:
            there = None
        if there is None or (there.size, there.tag) != (self._only.size, self._only.tag):
            what = "deleted" if there is None else "replaced"
            raise FileChangedError(
                f"{self.path}: the file was {what} while the new one was made; what lies there now is left alone"
            )


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of what has this name; None where nothing has."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
