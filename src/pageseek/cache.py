"""Files kept open between scans, with what was parsed of them."""

from __future__ import annotations

import threading
from collections import OrderedDict

from pageseek.metadata import ParquetFile
from pageseek.report import Report
from pageseek.storage import Source


class FileCache:
    """Open files by source and version, the least recently used dropped first. Safe for threads."""

    def __init__(self, capacity: int = 256) -> None:
        self._files: OrderedDict[str, ParquetFile] = OrderedDict()
        self._lock = threading.Lock()
        self.capacity = capacity

    def open(self, source: Source, report: Report) -> ParquetFile:
        """The file, with what was already parsed of it if its version is the same.

        A version without a date does not tell that: such a file is read anew each time.
        """
        if source.data is not None:
            return ParquetFile(source, source.open(), report)
        key = source.key
        version = source.version()
        if version is not None:
            with self._lock:
                known = self._files.get(key)
                if known is not None and known.store.version == version:
                    self._files.move_to_end(key)
                    return known
        store = source.open()
        if not store.version.dated:
            return ParquetFile(source, store, report)
        with self._lock:
            known = self._files.get(key)
            if (
                known is not None
                and known.store.version == store.version
                and known.source.filesystem == source.filesystem
            ):
                self._files.move_to_end(key)
                store.close()
                return known
        file = ParquetFile(source, store, report)
        with self._lock:
            self._files[key] = file
            while len(self._files) > self.capacity:
                self._files.popitem(last=False)
        return file

    def clear(self) -> None:
        """Forget every file."""
        with self._lock:
            self._files.clear()


cache = FileCache()
