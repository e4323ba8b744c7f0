"""Where the objects lie: in memory, or in a folder whose subfolders are the buckets."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from support.object_server.messages import Bytes, Content

_temporary = ".object-server-"


@dataclass(frozen=True, slots=True)
class Info:
    """One version of an object. ``etag`` includes its quotes."""

    size: int
    etag: str
    modified: float


Check = Callable[[Info | None], None]  # raises where a conditional write must not happen


def _any(_: Info | None) -> None: ...


class Objects(Protocol):
    """Objects by path, ``bucket/key``."""

    def info(self, path: str) -> Info | None: ...

    def open(self, path: str) -> tuple[Info, Content] | None: ...

    def put(self, path: str, data: bytes, check: Check = _any) -> Info: ...

    def delete(self, path: str, check: Check = _any) -> None: ...

    def buckets(self) -> list[str]: ...

    def make_bucket(self, name: str) -> None: ...

    def keys(self, bucket: str) -> Iterator[tuple[str, Info]]: ...


class MemoryObjects:
    """Objects in memory; a counter makes the ETag, so that equal bytes put again are new. `clock` dates them."""

    clock: Callable[[], float] = staticmethod(time.time)

    def __init__(self) -> None:
        self._objects: dict[str, tuple[Info, bytes]] = {}
        self._buckets: set[str] = set()
        self._lock = threading.Lock()
        self._count = itertools.count(1)

    def info(self, path: str) -> Info | None:
        found = self._objects.get(path)
        return found[0] if found else None

    def open(self, path: str) -> tuple[Info, Content] | None:
        found = self._objects.get(path)
        return (found[0], Bytes(found[1])) if found else None

    def put(self, path: str, data: bytes, check: Check = _any) -> Info:
        with self._lock:
            check(self.info(path))
            info = Info(len(data), f'"v{next(self._count)}-{len(data):x}"', self.clock())
            self._objects[path] = (info, data)
            self._buckets.add(path.partition("/")[0])
        return info

    def delete(self, path: str, check: Check = _any) -> None:
        with self._lock:
            check(self.info(path))
            self._objects.pop(path, None)

    def buckets(self) -> list[str]:
        with self._lock:
            return sorted(self._buckets)

    def make_bucket(self, name: str) -> None:
        with self._lock:
            self._buckets.add(name)

    def keys(self, bucket: str) -> Iterator[tuple[str, Info]]:
        with self._lock:
            found = {path: info for path, (info, _) in self._objects.items()}
        start = f"{bucket}/"
        for path in sorted(found, key=str.encode):
            if path.startswith(start):
                yield path[len(start) :], found[path]


class _File:
    """Content of one held descriptor: a file replaced by name stays what it was for its readers."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self.size = size

    def read(self, start: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, start)

    def close(self) -> None:
        os.close(self._descriptor)


class FolderObjects:
    """The files below a folder; what is put goes there, too, under a new inode.

    Inode, time and size make the ETag. A file written in place by someone else has another ETag as
    soon as its time or size says so.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).resolve()
        if not self._folder.is_dir():
            raise NotADirectoryError(f"{self._folder}: no such folder to serve")
        self._lock = threading.Lock()
        self._count = itertools.count(1)

    def _place(self, path: str) -> Path | None:
        parts = path.split("/")
        if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
            return None
        return self._folder.joinpath(*parts)

    @staticmethod
    def _info(status: os.stat_result) -> Info:
        etag = f'"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"'
        return Info(status.st_size, etag, status.st_mtime)

    def info(self, path: str) -> Info | None:
        place = self._place(path)
        try:
            return self._info(place.stat()) if place and place.is_file() else None
        except OSError:
            return None

    def open(self, path: str) -> tuple[Info, Content] | None:
        place = self._place(path)
        if place is None or not place.is_file():
            return None
        try:
            descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            return None
        info = self._info(os.fstat(descriptor))
        return info, _File(descriptor, info.size)

    def put(self, path: str, data: bytes, check: Check = _any) -> Info:
        place = self._place(path)
        if place is None:
            raise ValueError(f"{path!r}: a key in a folder has no empty, '.' or '..' parts")
        with self._lock:
            check(self.info(path))
            place.parent.mkdir(parents=True, exist_ok=True)
            fresh = place.with_name(f"{_temporary}{next(self._count)}")
            fresh.write_bytes(data)
            os.replace(fresh, place)
            return self._info(place.stat())

    def delete(self, path: str, check: Check = _any) -> None:
        place = self._place(path)
        with self._lock:
            check(self.info(path))
            if place is not None:
                place.unlink(missing_ok=True)

    def buckets(self) -> list[str]:
        return sorted(entry.name for entry in self._folder.iterdir() if entry.is_dir())

    def make_bucket(self, name: str) -> None:
        if (place := self._place(name)) is not None:
            place.mkdir(exist_ok=True)

    def keys(self, bucket: str) -> Iterator[tuple[str, Info]]:
        root = self._place(bucket)
        files = [path for path in root.rglob("*") if path.is_file()] if root else []
        found = {path.relative_to(root).as_posix(): path for path in files if root}
        for key in sorted(found, key=str.encode):
            if not found[key].name.startswith(_temporary):
                yield key, self._info(found[key].stat())
