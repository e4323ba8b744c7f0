"""Where a file with indexes is written to: all of it is put together first, then it appears in one step."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from pageseek.errors import FileChangedError
from pageseek.storage import RemoteStore, Store, Version
from pageseek.storage.local import LocalStore, version_at
from pageseek.storage.writing import EXISTS, hidden_name

STEP = 32 << 20  # bytes copied at a time from a distant store
PIECE = 8 << 20  # of them in one request, and at a time from a near one; two such are held


class Target(Protocol):
    """A file that comes to be. `path`: as it may be shown; `size`: the bytes that are there so far."""

    path: str
    size: int

    def copy(self, source: Store, length: int) -> Store:
        """Begin with the first bytes of an open store. What is returned has them too, and nearer where the store is far."""
        ...

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Put bytes behind those that are there; the place where they begin."""
        ...

    def commit(self, check: Callable[[], None]) -> None:
        """All bytes are there: let the file appear. `check` has the last word before."""
        ...

    def close(self) -> None:
        """Leave nothing behind, unless it was committed."""
        ...


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors of the system say which file they are about: of an open one they do not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


class Draft:
    """A new file on this machine, in which another one is put together."""

    def __init__(self, temporary: str, mode: int) -> None:
        """`mode`: who may read it."""
        self._temporary = temporary
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._fd = os.open(temporary, flags, mode)
        self._near: LocalStore | None = None
        self.size = 0

    def copy(self, source: Store, length: int) -> Store:
        """The first bytes of an open store."""
        step = STEP if isinstance(source, RemoteStore) else PIECE
        while self.size < length:
            stop = min(self.size + step, length)
            ranges = [(at, min(PIECE, stop - at)) for at in range(self.size, stop, PIECE)]
            for data in source.read(ranges):
                self.write(data)
        if not isinstance(source, RemoteStore):
            return source
        self._near = LocalStore(self._temporary, source.name)
        return self._near

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Put bytes behind those that are there; the place where they begin."""
        at, view = self.size, memoryview(data).cast("B")
        while view.nbytes:
            with _naming(self._temporary):
                done = os.write(self._fd, view)
            view = view[done:]
            self.size += done
        return at

    def close(self) -> None:
        """Leave nothing behind, unless it was committed."""
        if self._near is not None:
            self._near.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._temporary:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = ""


class LocalTarget(Draft):
    """A file under a temporary name in the folder of its last one; readers of folders pass over names with a dot."""

    def __init__(
        self, path: str, like: str | None, overwrite: bool = False, only: Version | None = None
    ) -> None:
        """`like`: a file whose permissions it takes over. `overwrite`: it replaces what has its name by then; `only` a file
        of this version, if given.
        """
        self._only = only
        self.path = os.path.realpath(path)
        self._overwrite = overwrite
        folder, name = os.path.split(self.path)
        super().__init__(os.path.join(folder, hidden_name(name)), 0o666)
        if like is not None:
            known = os.stat(like)
            with suppress(OSError, AttributeError):
                os.fchmod(self._fd, stat.S_IMODE(known.st_mode))
            with suppress(OSError, AttributeError):
                os.fchown(self._fd, known.st_uid, known.st_gid)

    def commit(self, check: Callable[[], None]) -> None:
        """All bytes are there: to disk, then under the last name. `check` has the last word before."""
        with _naming(self._temporary):
            os.fsync(self._fd)
        os.close(self._fd)
        self._fd = -1
        check()
        self._look()
        if self._overwrite:
            os.replace(self._temporary, self.path)
            self._temporary = ""
        else:
            self._create()
        if hasattr(os, "O_DIRECTORY"):
            folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _look(self) -> None:
        """Whether the name is still that of the file that was read: who reads it has it open, and would not see that."""
        if self._only is None:
            return
        try:
            there = version_at(self.path)
        except FileNotFoundError:
            there = None
        if there is None or (there.size, there.tag) != (self._only.size, self._only.tag):
            what = "deleted" if there is None else "replaced"
            raise FileChangedError(
                f"{self.path}: the file was {what} while its indexes were built; what lies there now is left alone"
            )

    def _create(self) -> None:
        """Under the last name, if nothing has it."""
        try:
            os.link(self._temporary, self.path)  # the temporary name goes at the end
        except FileExistsError:
            raise FileExistsError(f"{self.path}: {EXISTS}") from None
        except (OSError, AttributeError):  # no hard links here
            if os.path.lexists(self.path):
                raise FileExistsError(f"{self.path}: {EXISTS}") from None
            os.rename(self._temporary, self.path)
            self._temporary = ""
