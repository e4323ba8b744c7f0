"""Open file objects of Python and pyarrow as stores: `open(path, "rb")`, `io.BytesIO`, `fsspec` files, `pa.NativeFile`.

The caller keeps the object: it is never closed here. The whole file is read, from its first byte, wherever the object
stands, and after each read it stands where it stood.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Sequence
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

from pageseek.base.errors import FileChangedError, StoreError
from pageseek.base.late_modules import hashlib
from pageseek.storage.store import SLOW_STORE, Buffer, Version

_TAIL = 1 << 16  # bytes that tell a version from another one of the same size
BANDWIDTH, SLOW_BANDWIDTH = (
    2e9,
    100e6,
)  # bytes a second, of objects that answer at once, and of others


class _Turn:
    """Whose turn it is to seek and read an object."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


_TURNS: WeakValueDictionary[int, _Turn] = WeakValueDictionary()  # by the identity of the object
_FINDING = threading.Lock()


def _turn_of(file: Any) -> _Turn:
    """The turn of an object. Who keeps it also keeps the object, so that no other one gets its identity."""
    with _FINDING:
        found = _TURNS.get(id(file))
        if found is None:
            found = _TURNS[id(file)] = _Turn()
        return found


class FileObject:
    """An object that reads and seeks. Threads and scans may share it: a lock for each object keeps the seek and the read of a
    range together.
    """

    __slots__ = ("_file", "_turn", "name")

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._turn = _turn_of(file)
        self.name = name

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self.name}: an open file object cannot be sent to another process; give its path, or its bytes"
        )

    def __repr__(self) -> str:
        return self.name

    def size(self) -> int:
        """The bytes of the file now."""
        with self._turn.lock:
            found = self._at(lambda file: file.seek(0, io.SEEK_END) or file.tell())
        if not isinstance(found, int):
            raise StoreError(f"{self.name}: seek gave {type(found).__name__}, not a place")
        return found

    def seen(self) -> tuple[int, int, int] | None:
        """The inode, size and time of the file now; None where the object is no file of this machine."""
        file = getattr(self._file, "raw", self._file)
        if not isinstance(file, io.FileIO):
            return None
        try:
            now = os.fstat(file.fileno())
        except (OSError, ValueError):  # closed: a read says so
            return None
        return now.st_ino, now.st_size, now.st_mtime_ns

    def read(self, offset: int, length: int) -> Buffer:
        """Bytes at an offset. OSError: there are fewer."""

        def at(file: Any) -> Buffer:
            file.seek(offset)
            data = file.read(length)
            if data is None or len(data) == length:
                return self._checked(data)
            parts = [self._checked(data)]  # raw files may read less at a time
            while data and (left := length - sum(map(len, parts))) > 0:
                data = self._checked(file.read(left))
                parts.append(data)
            return b"".join(parts)

        with self._turn.lock:
            found: Buffer = self._at(at)
        if len(found) != length:
            raise StoreError(
                f"{self.name}: {length} bytes asked at {offset}, the file object gave {len(found)}"
            )
        return found

    def _checked(self, data: Any) -> Buffer:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise StoreError(f"{self.name}: read gave {type(data).__name__}, not bytes")
        return data

    def _at(self, work: Any) -> Any:
        """The result of some work on the file, which stands behind it where it stood before."""
        file = self._file
        try:
            before = file.tell()
            try:
                return work(file)
            finally:
                file.seek(before)
        except StoreError:
            raise
        except Exception as error:
            remedy = (
                "it is closed: keep it open until the rows have been read"
                if getattr(file, "closed", False) is True
                else f"{type(error).__name__}: {error}"
            )
            raise StoreError(f"{self.name}: the file object cannot be read: {remedy}") from error


class FileObjectStore:
    """A file object, as an open file.

    Each opening finds out its version again: inode, size and time of a file of this machine; of other objects the size and a
    digest of the last bytes, which cannot tell all changes. It also measures how long a read waits.
    """

    def __init__(self, file: FileObject) -> None:
        self._file = file
        self.name = file.name
        self.size = file.size()
        start = perf_counter()
        file.read(0, min(4, self.size))
        between = perf_counter()
        self._seen = file.seen()
        tail = self._tail()
        wait = min(between - start, perf_counter() - between)
        self.latency = wait if wait >= SLOW_STORE else 0.0
        self.bandwidth = SLOW_BANDWIDTH if self.latency else BANDWIDTH
        self._digest = _digest(tail)
        self.version = Version(self.size, f"{self.size}:{self._digest}:{self._seen}", False)

    def _tail(self) -> Buffer:
        length = min(_TAIL, self.size)
        return self._file.read(self.size - length, length)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        for offset, length in ranges:
            if offset < 0 or offset + length > self.size:
                raise OSError(f"{self.name}: {length} bytes asked at {offset} of {self.size}")
        return [self._file.read(offset, length) for offset, length in ranges]

    def check(self) -> None:
        now = self._file.size()
        if now != self.size:
            raise FileChangedError(
                f"{self.name}: the file changed while it was being read (size {self.size} -> {now}); open it again"
            )
        if self._seen is not None:
            changed = self._file.seen() != self._seen
        else:  # an object that answers slowly is not asked once more
            changed = not self.latency and _digest(self._tail()) != self._digest
        if changed:
            raise FileChangedError(
                f"{self.name}: the file changed while it was being read; open it again"
            )

    def close(self) -> None:
        pass


def _digest(data: Buffer) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
