"""Open file objects of Python and pyarrow as stores: `open(path, "rb")`, `io.BytesIO`, `fsspec` files, `pa.NativeFile`.

The caller keeps the object: it is never closed here. The whole file is read, from its first byte, wherever the object
stands, and after each read it stands where it stood.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Sequence
from typing import Any

from pageseek.base.errors import FileChangedError, StoreError
from pageseek.storage.store import Buffer, Version

_TAIL = 1 << 16  # bytes that tell a version from another one of the same size


class FileObject:
    """An object that reads and seeks. Threads may share it: a lock keeps the seek and the read of each range together."""

    __slots__ = ("_file", "_lock", "name")

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.name = name

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self.name}: an open file object cannot be sent to another process; give its path, or its bytes"
        )

    def __repr__(self) -> str:
        return self.name

    def size(self) -> int:
        """The bytes of the file now."""
        with self._lock:
            return int(self._at(lambda file: file.seek(0, io.SEEK_END) or file.tell()))

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

        with self._lock:
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
    """A file object, as an open file. Each opening finds out its version anew: its size, and a digest of its last bytes."""

    latency = 0.0
    bandwidth = 2e9

    def __init__(self, file: FileObject) -> None:
        self._file = file
        self.name = file.name
        self.size = file.size()
        length = min(_TAIL, self.size)
        tail = file.read(self.size - length, length)
        digest = hashlib.blake2b(tail, digest_size=16).hexdigest()
        self.version = Version(self.size, f"{self.size}:{digest}", True)

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

    def close(self) -> None:
        pass
