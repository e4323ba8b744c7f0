"""A file on any pyarrow filesystem."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.storage.base import Buffer, Known, Version
from pageseek.storage.endpoint import Endpoint, endpoint
from pageseek.storage.files import is_local
from pageseek.storage.redact import cleaned
from pageseek.storage.remote import Answer, RemoteStore
from pageseek.storage.requests import issue
from pageseek.storage.retry import (
    Fault,
    Patience,
    Retries,
    of_status,
    says_denied,
    says_missing,
    status_in,
)

# attributes of an object that a filesystem of pyarrow tells, and takes
WRITABLE = ("Content-Type", "Cache-Control", "Content-Language")


def endpoint_of(filesystem: pafs.FileSystem, path: str) -> Endpoint:
    """The far end that a path lies at: a bucket, where the filesystem has some."""
    kind = filesystem.type_name
    bucket = path.lstrip("/").partition("/")[0] if kind in ("s3", "gcs") else ""
    return endpoint(f"{kind}:{bucket}")


class ArrowStore(RemoteStore):
    """A file behind pyarrow.fs: size and modification time stand for its version, where the filesystem
    gives no time the size alone.
    """

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        path: str,
        patience: Patience | None = None,
        known: Known | None = None,
    ) -> None:
        super().__init__(path, path, endpoint_of(filesystem, path), patience or Patience())
        self._filesystem = filesystem
        self._path = path
        self._local = is_local(filesystem)
        self._file: pa.NativeFile | None = None
        self._opening = threading.Lock()
        if self._local:
            found = self._look()
        else:
            self.requests = 1
            (found,) = issue(self._endpoint, [self._asked(self._look, "its version")])
        self._opened(found, known)

    @property
    def latency(self) -> float:
        """Seconds until the first byte; on local disk nothing to speak of."""
        return 0.0 if self._local else self._endpoint.latency

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return 2e9 if self._local else self._endpoint.bandwidth

    @property
    def tail_bytes(self) -> int:
        """How many of the last bytes are worth reading at open."""
        return 8 if self._local else super().tail_bytes

    def read(
        self,
        ranges: Sequence[tuple[int, int]],
        go_on: Callable[[], None] | None = None,
        retries: Retries | None = None,
        pieces: Sequence[int] | None = None,
    ) -> list[Buffer]:
        """The bytes at each (offset, length)."""
        if not self._local:
            return super().read(ranges, go_on, retries, pieces)
        return [self._checked(offset, length) for offset, length in ranges]

    def check(self) -> None:
        """Raise FileChangedError when size or time are other ones now."""
        if not self._local:
            super().check()
        elif (now := self._look()) != self.version:
            raise self._changed(now)

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        with self._opening:
            if self._file is None:
                self._file = self._filesystem.open_input_file(self._path)
        begun = time.monotonic()
        data = self._file.read_at(length, offset)
        first = time.monotonic() - begun if length <= 1 << 16 else None  # without what opening took
        return Answer(data, first=first)

    def _look(self) -> Version:
        info = self._filesystem.get_file_info(self._path)
        if info.type == pafs.FileType.NotFound:
            raise FileNotFoundError(f"{self.name}: no such file")
        dated = info.mtime_ns is not None
        return Version(info.size or 0, f"{info.size}:{info.mtime_ns}", False, dated)

    def attributes(self) -> dict[str, str]:
        """What the store says of the object beside its bytes, as far as pyarrow tells that, and could write it."""

        def asked() -> dict[str, str]:
            with self._filesystem.open_input_stream(self._path) as stream:
                found = stream.metadata() or {}
            return {name: found[name].decode() for name in WRITABLE if found.get(name)}

        if self._local:
            return {}
        (found,) = issue(self._endpoint, [self._asked(asked, "its attributes")])
        return found

    def _fault(self, error: Exception) -> Fault:
        return fault_of(error)

    def close(self) -> None:
        """Close the file, if it was read."""
        if self._file is not None:
            self._file.close()


def fault_of(error: Exception) -> Fault:
    """What an error of a filesystem of pyarrow means."""
    text = str(error)
    if isinstance(error, FileNotFoundError) or says_missing(text):
        return Fault("missing", "the filesystem does not find it")
    if isinstance(error, PermissionError) or says_denied(text):
        return Fault("denied", "the filesystem is not let in")
    status = status_in(text)
    if status is not None:
        return of_status(status, f"the store answered {status}")
    said = cleaned(text)
    if isinstance(error, (OSError, pa.ArrowException)):
        passing = ("curl", "timeout", "timed out", "network", "slow_down", "connection")
        again = any(word in text.lower() for word in passing)
        return Fault("again" if again else "odd", said)
    return Fault("final", said)
