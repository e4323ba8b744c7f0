"""Where a file with indexes is written to: beside the place that it takes at the end, in one step."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress

from pageseek.storage import Store

STEP = 8 << 20  # bytes copied at a time; two such are held


class LocalTarget:
    """A file under a temporary name in the folder of its last one; readers of folders pass over names with a dot."""

    def __init__(self, path: str, like: str | None) -> None:
        """`like`: a file whose permissions it takes over."""
        self.path = os.path.realpath(path)
        folder, name = os.path.split(self.path)
        self._temporary = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.tmp")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._fd = os.open(self._temporary, flags, 0o666)
        self.size = 0
        if like is not None:
            known = os.stat(like)
            with suppress(OSError, AttributeError):
                os.fchmod(self._fd, stat.S_IMODE(known.st_mode))
            with suppress(OSError, AttributeError):
                os.fchown(self._fd, known.st_uid, known.st_gid)

    def copy(self, source: Store, length: int) -> None:
        """The first bytes of an open store."""
        while self.size < length:
            size = min(STEP, length - self.size)
            (data,) = source.read([(self.size, size)])
            self.write(data)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Put bytes behind those that are there; the place where they begin."""
        at, view = self.size, memoryview(data).cast("B")
        while view.nbytes:
            done = os.write(self._fd, view)
            view = view[done:]
            self.size += done
        return at

    def commit(self, check: Callable[[], None]) -> None:
        """All bytes are there: to disk, then under the last name. `check` has the last word before."""
        os.fsync(self._fd)
        os.close(self._fd)
        self._fd = -1
        check()
        os.replace(self._temporary, self.path)
        self._temporary = ""
        if hasattr(os, "O_DIRECTORY"):
            folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Leave nothing behind, unless it was committed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._temporary:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = ""
