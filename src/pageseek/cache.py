"""Files kept open between scans, with what was parsed of them."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TypeGuard

from pageseek.metadata import ParquetFile
from pageseek.report import Report
from pageseek.storage import Source, Version


def _is(known: ParquetFile | None, source: Source, version: Version) -> TypeGuard[ParquetFile]:
    # two file systems of one type may each have a file of this name, size and time
    return known is not None and known.store.version == version and known.source == source


class FileCache:
    """Open files by source and version, the least recently used dropped first. Safe for threads."""

    def __init__(self, capacity: int = 256) -> None:
        self._files: OrderedDict[str, ParquetFile] = OrderedDict()
        self._lock = threading.Lock()
        self.capacity = capacity

    def open(self, source: Source, report: Report) -> ParquetFile:
        """The file, with what was already parsed of it if its version is the same."""
        if source.data is not None:
            return ParquetFile(source, source.open(), report)
        key = source.key
        version = source.version()
        if version is not None:
            with self._lock:
                known = self._files.get(key)
                if _is(known, source, version):
                    self._files.move_to_end(key)
                    return known
        store = source.open()
        with self._lock:
            known = self._files.get(source.key)
            if _is(known, source, store.version):
                self._files.move_to_end(source.key)
                store.close()
                return known
        file = ParquetFile(source, store, report)
        with self._lock:
            self._files[source.key] = file
            while len(self._files) > self.capacity:
                self._files.popitem(last=False)
        return file

    def unlock(self) -> None:
        """In a forked process: the lock may have been held by a thread that is not there."""
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget every file."""
        with self._lock:
            self._files.clear()


cache = FileCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cache.unlock)
