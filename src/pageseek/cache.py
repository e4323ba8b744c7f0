"""Files kept open between scans, with what was parsed of them."""

from __future__ import annotations

import errno
import importlib
import os
import threading
from collections import OrderedDict
from types import ModuleType
from typing import TypeGuard

from pageseek.limits import DEFAULT
from pageseek.metadata import ParquetFile
from pageseek.report import Report
from pageseek.storage import Source, Store, Version

resource: ModuleType | None
try:
    resource = importlib.import_module("resource")
except ImportError:  # Windows has no such limit
    resource = None

SHARE = 4  # the cache holds at most one in so many of the descriptors that the process may have


def _is(
    known: ParquetFile | None, source: Source, version: Version, limit: int
) -> TypeGuard[ParquetFile]:
    # two file systems of one type may each have a file of this name, size and time
    return (
        known is not None
        and known.store.version == version
        and known.source == source
        and known.max_metadata_bytes == limit
    )


class FileCache:
    """Open files by source and version, the least recently used dropped first. Safe for threads.

    At most `capacity` of them, and a quarter of the descriptors that the process may have.
    """

    def __init__(self, capacity: int = 256) -> None:
        self._files: OrderedDict[str, ParquetFile] = OrderedDict()
        self._lock = threading.Lock()
        self.capacity = capacity

    def open(
        self, source: Source, report: Report, limit: int = DEFAULT.max_metadata_bytes
    ) -> ParquetFile:
        """The file, with what was already parsed of it if its version is the same.

        A version without a date does not tell that: such a file is read anew each time. `limit`: bytes that
        its footer, and an index of it, may have.
        """
        if source.data is not None:
            return ParquetFile(source, source.open(), report, limit)
        key = source.key
        with self._lock:
            held = key in self._files
        version = source.version() if held else None  # else it is asked for once, by who opens it
        if version is not None:
            with self._lock:
                known = self._files.get(key)
                if _is(known, source, version, limit):
                    self._files.move_to_end(key)
                    return known
        store = self._open(source)
        if not store.version.dated:
            return ParquetFile(source, store, report, limit)
        with self._lock:
            known = self._files.get(key)
            if _is(known, source, store.version, limit):
                self._files.move_to_end(key)
                store.close()
                return known
        file = ParquetFile(source, store, report, limit)
        with self._lock:
            self._files[key] = file
            if len(self._files) > 1:
                self._drop(len(self._files) - self._most())
        return file

    def unlock(self) -> None:
        """In a forked process: the lock may have been held by a thread that is not there."""
        self._lock = threading.Lock()

    def _open(self, source: Source) -> Store:
        try:
            return source.open()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            with self._lock:
                dropped = self._drop((len(self._files) + 1) // 2)
            if not dropped:
                raise
        return source.open()

    def _most(self) -> int:
        if resource is None:
            return self.capacity
        limit: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit == resource.RLIM_INFINITY:
            return self.capacity
        return max(1, min(self.capacity, limit // SHARE))

    def _drop(self, n: int) -> int:
        """Forget the n least recently used files: they close when no scan holds them any more."""
        n = max(n, 0)
        for _ in range(n):
            self._files.popitem(last=False)
        return n

    def clear(self) -> None:
        """Forget every file."""
        with self._lock:
            self._files.clear()


cache = FileCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cache.unlock)
