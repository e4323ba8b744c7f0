"""A file on any pyarrow filesystem."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from pageseek.base.errors import UnsupportedError
from pageseek.storage.deadlines import within
from pageseek.storage.endpoint import Endpoint, endpoint
from pageseek.storage.files import is_local
from pageseek.storage.redact import cleaned, secrets_in, secrets_of, shown, shown_path
from pageseek.storage.remote import Answer, RemoteStore
from pageseek.storage.requests import issue
from pageseek.storage.retry import (
    Fault,
    Retries,
    RetryPolicy,
    of_status,
    says_busy,
    says_denied,
    says_missing,
    status_in,
    with_retries,
)
from pageseek.storage.store import Buffer, Known, Version

# attributes of an object that a filesystem of pyarrow tells, and takes
WRITABLE = ("Content-Type", "Cache-Control", "Content-Language")
# filesystems that take options, which from_uri does not
CLASSES = {
    "s3": "S3FileSystem",
    "s3a": "S3FileSystem",
    "gs": "GcsFileSystem",
    "gcs": "GcsFileSystem",
}
CONNECT = 5.0  # seconds at most until a connection stands
ADVICE = ", by the names of the pyarrow filesystem"
HDFS = (
    "pyarrow needs Hadoop's libhdfs and a Java machine for this: set JAVA_HOME, HADOOP_HOME (or ARROW_LIBHDFS_DIR) and "
    'CLASSPATH="$(hadoop classpath --glob)", or read webhdfs://, which fsspec opens'
)


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
        retry_policy: RetryPolicy | None = None,
        known: Known | None = None,
    ) -> None:
        super().__init__(
            shown_path(path), path, endpoint_of(filesystem, path), retry_policy or RetryPolicy()
        )
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
        if self._local:
            return self._got(offset, length)
        try:
            return within(partial(self._got, offset, length), self._patience.reading(length))
        except TimeoutError:
            # what hangs may hold the file, or be about to open it: the next attempt has its own
            self._opening, self._file = threading.Lock(), None
            raise

    def _got(self, offset: int, length: int) -> Answer:
        with self._opening:
            if (file := self._file) is None:
                file = self._file = self._filesystem.open_input_file(self._path)
        begun = time.monotonic()
        data = file.read_at(length, offset)
        first = time.monotonic() - begun if length <= 1 << 16 else None  # without what opening took
        return Answer(data, first=first)

    def _look(self) -> Version:
        look = partial(self._filesystem.get_file_info, self._path)
        info = look() if self._local else within(look, self._patience.timeout)
        if info.type == pafs.FileType.NotFound:
            raise FileNotFoundError(f"{self.name}: no such file")
        if self._local and info.type != pafs.FileType.File:  # pyarrow would wait for a pipe
            raise OSError(f"{self.name}: not a regular file")
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


class _Place(RemoteStore):
    """A path that is asked for what is there."""

    def __init__(self, filesystem: pafs.FileSystem, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(shown_path(path), path, endpoint_of(filesystem, path), retry_policy)
        self._filesystem = filesystem

    def ask(self, what: Any, seconds: float, said: str) -> Any:
        attempt = partial(within, partial(self._filesystem.get_file_info, what), seconds)
        (found,) = issue(self._endpoint, [self._asked(attempt, said)])
        return found

    def _fault(self, error: Exception) -> Fault:
        return fault_of(error)


def info(filesystem: pafs.FileSystem, path: str, retry_policy: RetryPolicy) -> pafs.FileInfo:
    """What is at a path: a file, a folder or nothing. Errors are those of any request to a store."""
    if is_local(filesystem):
        return filesystem.get_file_info(path)
    place = _Place(filesystem, path, retry_policy)
    return place.ask(path, retry_policy.timeout, "what it is")


def infos(filesystem: pafs.FileSystem, path: str, retry_policy: RetryPolicy) -> list[pafs.FileInfo]:
    """All that is below a folder, nothing where there is none. Errors are those of any request to a store."""
    wanted = pafs.FileSelector(path, allow_not_found=True, recursive=True)
    if is_local(filesystem):
        found = filesystem.get_file_info(wanted)
    else:
        found = _Place(filesystem, path, retry_policy).ask(
            wanted, retry_policy.listing, "what is in it"
        )
    return list(found)


def of_url(
    url: str, scheme: str, options: Mapping[str, Any], retry_policy: RetryPolicy
) -> tuple[pafs.FileSystem, str] | None:
    """A filesystem of pyarrow, and the path there; None where it was built without. Some ask for a region, or connect:
    where that fails it is tried again, and said as of any request.
    """
    plain = "s3" + url[3:] if scheme == "s3a" else url
    secrets = secrets_of(dict(options)) | secrets_in(url) | {url, plain}

    def make() -> tuple[pafs.FileSystem, str] | Exception | None:
        try:
            return _made(plain, scheme, options, retry_policy)
        except pa.ArrowNotImplementedError:
            return None
        except (pa.ArrowInvalid, TypeError) as error:  # what it says of the URL is right
            return error

    def fault(error: Exception) -> Fault:
        if "libjvm" in str(error) or "libhdfs" in str(error):
            raise UnsupportedError(f"{shown(url)}: {HDFS}") from None
        found = fault_of(error)
        return Fault(found.kind, cleaned(found.why, secrets), found.after, found.advice)

    # S3FileSystem waits, as it is made, until no request of others is under way
    attempt = partial(within, make, retry_policy.total)
    stop = threading.Event()
    found = with_retries(attempt, fault, shown(url), "to connect", retry_policy, Retries(), stop)
    if isinstance(found, Exception):
        said = cleaned(str(found).replace(url, f"{scheme}://"), secrets)
        raise ValueError(f"{scheme}://{urlsplit(url).hostname or ''}: {said}") from None
    return found


def _made(
    url: str, scheme: str, options: Mapping[str, Any], retry_policy: RetryPolicy
) -> tuple[pafs.FileSystem, str] | None:
    kind = getattr(pafs, CLASSES.get(scheme, ""), None)
    limits = {} if kind is None else _limits(scheme, retry_policy)
    if options:
        return None if kind is None else (kind(**{**limits, **options}), url.partition("://")[2])
    filesystem, path = pafs.FileSystem.from_uri(url)
    parts = urlsplit(url)
    if kind is not None and not parts.query and "@" not in parts.netloc:  # it says nothing else
        filesystem = kind(**limits, **_region(filesystem))
    return filesystem, path


def _region(filesystem: pafs.FileSystem) -> dict[str, str]:
    """What from_uri has found out of a bucket."""
    region = getattr(filesystem, "region", "")
    return {"region": region} if region else {}


def _limits(scheme: str, retry_policy: RetryPolicy) -> dict[str, Any]:
    """The options by which a filesystem gives up a silent store, and leaves it to us to try again."""
    if scheme in ("gs", "gcs"):  # it has one limit, of all its tries together
        return {"retry_time_limit": timedelta(seconds=retry_policy.timeout)}
    if scheme not in ("s3", "s3a"):
        return {}
    return {
        "request_timeout": retry_policy.timeout,
        "connect_timeout": min(retry_policy.timeout, CONNECT),
        "retry_strategy": pafs.AwsStandardS3RetryStrategy(max_attempts=1),
    }


_CREDENTIALS = ("defaultazurecredential", "authenticationexception", "oauth2 access token")
_AWAY = ("resolve host", "host not found", "connect to", "connection refused")


def fault_of(error: Exception) -> Fault:
    """What an error of a filesystem of pyarrow means."""
    text, said = str(error), cleaned(str(error))
    low = text.lower()
    if isinstance(error, TimeoutError):
        return Fault("again", said or "the store fell silent")
    if any(word in low for word in _AWAY):
        return Fault("again", f"no connection ({said})")
    if isinstance(error, FileNotFoundError) or says_missing(text):
        return Fault("missing", "the filesystem does not find it")
    if isinstance(error, PermissionError) or says_denied(text):
        return Fault("denied", "the filesystem is not let in", advice=ADVICE)
    if any(word in low for word in _CREDENTIALS):
        return Fault("denied", f"no credentials were found ({said})", advice=ADVICE)
    status = status_in(text)
    if status is not None:
        return of_status(status, f"the store answered {status}", advice=ADVICE)
    if says_busy(text):
        return Fault("busy", said)
    if isinstance(error, (OSError, pa.ArrowException)):
        passing = ("curl", "timeout", "timed out", "network", "slow_down", "connection")
        again = any(word in low for word in passing)
        return Fault("again" if again else "odd", said)
    return Fault("final", said)
