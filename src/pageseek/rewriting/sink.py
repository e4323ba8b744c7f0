"""What a Parquet writer of pyarrow writes to: a file that is put together out of sight."""

from __future__ import annotations

from typing import Any

from pageseek.index.local_target import Target


class Sink:
    """A file object for `pyarrow.PythonFile`, which writes to a target. `drops`: what comes from now on is not wanted."""

    BUFFER = 4 << 20  # bytes that are written together
    closed = False
    drops = False
    mode = "wb"

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, data: Any) -> int:
        """Put bytes behind those that are there."""
        if not self.drops:
            self._target.write(data)
        return memoryview(data).nbytes

    def tell(self) -> int:
        """The bytes that are there."""
        return self._target.size

    def readable(self) -> bool:
        """No."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """No."""
        return False

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """The target stays open: it is read next."""
        self.closed = True
