"""Files of any pyarrow filesystem."""

from __future__ import annotations

import glob
import posixpath
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.base.late_modules import fs as pafs
from pageseek.base.records import dataclass
from pageseek.storage import retry
from pageseek.storage.endpoint import SMALL, Endpoint, endpoint
from pageseek.storage.files import Files, Place
from pageseek.storage.local import inside
from pageseek.storage.redact import cleaned, secrets_in, secrets_of, shown, shown_path
from pageseek.storage.remote import Answer, RemoteStore
from pageseek.storage.requests import within
from pageseek.storage.retry import CONNECT, Fault, Retries, RetryPolicy
from pageseek.storage.store import Known, Version

# attributes of an object that a filesystem of pyarrow reads and writes
WRITABLE = ("Content-Type", "Cache-Control", "Content-Language")
# filesystems whose classes take options, which from_uri does not
CLASSES = {
    "s3": "S3FileSystem",
    "s3a": "S3FileSystem",
    "gs": "GcsFileSystem",
    "gcs": "GcsFileSystem",
}
ADVICE = ", by the names of the pyarrow filesystem"
HDFS = (
    "pyarrow needs Hadoop's libhdfs and a Java machine for this: set JAVA_HOME, HADOOP_HOME (or ARROW_LIBHDFS_DIR) and "
    'CLASSPATH="$(hadoop classpath --glob)", or read webhdfs://, which fsspec opens'
)


@dataclass(frozen=True, slots=True)
class ArrowFiles(Files):
    """A filesystem of pyarrow that is not this machine's disk."""

    filesystem: pafs.FileSystem

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> str:
        return f"pyarrow|{self.filesystem.type_name}"

    def endpoint(self, path: str) -> Endpoint:
        """The bucket of a path, where the filesystem has some."""
        kind = self.filesystem.type_name
        bucket = path.lstrip("/").partition("/")[0] if kind in ("s3", "gcs") else ""
        return endpoint(f"{kind}:{bucket}")

    def place_of(self, scheme: str, bucket: str, path: str) -> str | None:
        schemes = {"s3": ("s3", "s3a", "s3n"), "gcs": ("gs", "gcs")}
        return f"{bucket}/{path}" if scheme in schemes.get(self.filesystem.type_name, ()) else None

    def name(self, path: str) -> str:
        return shown_path(path)

    def fault(self, error: Exception) -> Fault:
        return fault_of(error)

    def open(self, path: str, retry_policy: RetryPolicy, known: Known | None = None) -> ArrowStore:
        return ArrowStore(self, path, retry_policy, known)

    def is_file(self, path: str, named_so: bool, retry_policy: RetryPolicy) -> bool:
        look = partial(self.info, path, retry_policy)
        kind = Place(self, path, retry_policy).ask(look, "what it is").type
        if kind == pafs.FileType.NotFound and not glob.has_magic(path):
            raise FileNotFoundError(f"{self.name(path)}: no such file")
        return kind not in (pafs.FileType.NotFound, pafs.FileType.Directory)

    def folder(self, path: str) -> str:
        return path if "://" in path or not path else posixpath.normpath(path)

    def list_below(self, folder: str, retry_policy: RetryPolicy) -> list[str]:
        return self._files_in(folder, retry_policy, recursive=True)

    def times_below(self, folder: str, retry_policy: RetryPolicy) -> dict[str, float]:
        found = self._infos_in(folder, retry_policy, recursive=True)
        return {one.path: one.mtime_ns / 1e9 for one in found if one.mtime_ns is not None}

    def list_in(self, folder: str, retry_policy: RetryPolicy) -> list[str]:
        try:
            return self._files_in(folder, retry_policy, recursive=False)
        except NotADirectoryError:
            return []

    def info(self, path: str, retry_policy: RetryPolicy) -> pafs.FileInfo:
        """What is at a path: a file, a folder or nothing."""
        return within(partial(self.filesystem.get_file_info, path), retry_policy.timeout)

    def _files_in(self, folder: str, retry_policy: RetryPolicy, recursive: bool) -> list[str]:
        return [one.path for one in self._infos_in(folder, retry_policy, recursive)]

    def _infos_in(
        self, folder: str, retry_policy: RetryPolicy, recursive: bool
    ) -> list[pafs.FileInfo]:
        wanted = pafs.FileSelector(folder, allow_not_found=True, recursive=recursive)
        found = within(partial(self.filesystem.get_file_info, wanted), retry_policy.listing)
        return [one for one in found if one.type == pafs.FileType.File]

    # ---- writing

    @property
    def whole(self) -> bool:
        """Whether a file appears when all of it is written, and not before."""
        return self.filesystem.type_name in ("s3", "gcs")

    def size(self, path: str, retry_policy: RetryPolicy) -> int | None:
        """The bytes of a file; None where there is none."""
        found = self.info(path, retry_policy)
        return None if found.type == pafs.FileType.NotFound else found.size or 0

    def stream(self, path: str, attributes: Mapping[str, str]) -> Any:
        """A file that is written to, with those attributes that pyarrow takes."""
        kept = {name: attributes[name] for name in WRITABLE if name in attributes}
        return self.filesystem.open_output_stream(path, metadata=kept or None)

    def make_folder(self, path: str) -> None:
        if not self.whole:
            self.filesystem.create_dir(path, recursive=True)

    def move(self, path: str, to: str) -> None:
        """Give a file another name."""
        self.filesystem.move(path, to)

    def delete(self, path: str) -> None:
        """Delete a file."""
        self.filesystem.delete_file(path)


class ArrowStore(RemoteStore):
    """A file behind pyarrow.fs. Its version is its size and modification time, or the size alone where the filesystem
    gives no time.
    """

    _files: ArrowFiles

    def __init__(
        self, files: ArrowFiles, path: str, retry_policy: RetryPolicy, known: Known | None = None
    ) -> None:
        super().__init__(files, path, retry_policy)
        self._file: pa.NativeFile | None = None
        self._opening = threading.Lock()
        self._open(known)

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        try:
            return within(partial(self._got, offset, length), self._retry_policy.reading(length))
        except TimeoutError:
            # the call that hangs may hold the file, or be opening it: the next attempt has its own
            self._opening, self._file = threading.Lock(), None
            raise

    def _got(self, offset: int, length: int) -> Answer:
        with self._opening:
            if (file := self._file) is None:
                file = self._file = self._files.filesystem.open_input_file(self._path)
        begun = time.monotonic()
        data = file.read_at(length, offset)
        first = time.monotonic() - begun if length <= SMALL else None  # without what opening took
        return Answer(data, first=first)

    def _look(self) -> Version:
        info = self._files.info(self._path, self._retry_policy)
        if info.type == pafs.FileType.NotFound:
            raise FileNotFoundError(f"{self.name}: no such file")
        dated = info.mtime_ns is not None
        return Version(info.size or 0, f"{info.size}:{info.mtime_ns}", False, dated)

    def attributes(self) -> dict[str, str]:
        """What the store keeps of the object beside its bytes, as far as pyarrow tells that, and could write it."""

        def asked() -> dict[str, str]:
            with self._files.filesystem.open_input_stream(self._path) as stream:
                found = stream.metadata() or {}
            return {name: found[name].decode() for name in WRITABLE if found.get(name)}

        return self.ask(asked, "its attributes")

    def close(self) -> None:
        """Close the file, if it was read."""
        if self._file is not None:
            self._file.close()


def of_filesystem(filesystem: pafs.FileSystem, path: str) -> tuple[ArrowFiles | None, str]:
    """What opens the files of a filesystem that somebody gave, and the path there; None is this machine's disk."""
    inner, below = filesystem, path
    while isinstance(inner, pafs.SubTreeFileSystem):
        inner, below = inner.base_fs, inside(inner.base_path, below)
    return (
        (None, below) if isinstance(inner, pafs.LocalFileSystem) else (ArrowFiles(filesystem), path)
    )


def of_url(
    url: str, scheme: str, options: Mapping[str, Any], retry_policy: RetryPolicy
) -> tuple[ArrowFiles, str] | None:
    """A filesystem of pyarrow, and the path there; None where pyarrow was built without it.

    Some ask for a region, or connect, when they are made. A failure of that is tried again like a request.
    """
    plain = "s3" + url[3:] if scheme == "s3a" else url
    secrets = secrets_of(dict(options)) | secrets_in(url) | {url, plain}

    def make() -> tuple[pafs.FileSystem, str] | Exception | None:
        try:
            return _made(plain, scheme, options, retry_policy)
        except pa.ArrowNotImplementedError:
            return None
        except (pa.ArrowInvalid, TypeError) as error:  # a fault of the URL or the options
            return error

    def fault(error: Exception) -> Fault:
        if "libjvm" in str(error) or "libhdfs" in str(error):
            raise UnsupportedError(f"{shown(url)}: {HDFS}") from None
        found = fault_of(error)
        return Fault(found.kind, cleaned(found.why, secrets), found.after, found.advice)

    # the constructor of S3FileSystem waits until no other request is under way
    attempt = partial(within, make, retry_policy.total)
    stop = threading.Event()
    found = retry.with_retries(
        attempt, fault, shown(url), "to connect", retry_policy, Retries(), stop
    )
    if isinstance(found, Exception):
        said = cleaned(str(found).replace(url, f"{scheme}://"), secrets)
        raise ValueError(f"{scheme}://{urlsplit(url).hostname or ''}: {said}") from None
    return None if found is None else (ArrowFiles(found[0]), found[1])


def _made(
    url: str, scheme: str, options: Mapping[str, Any], retry_policy: RetryPolicy
) -> tuple[pafs.FileSystem, str] | None:
    kind = getattr(pafs, CLASSES.get(scheme, ""), None)
    limits = {} if kind is None else _limits(scheme, retry_policy)
    if options:
        return None if kind is None else (kind(**{**limits, **options}), url.partition("://")[2])
    filesystem, path = pafs.FileSystem.from_uri(url)
    parts = urlsplit(url)
    if (
        kind is not None and not parts.query and "@" not in parts.netloc
    ):  # the URL says nothing else
        region = getattr(filesystem, "region", "")  # which from_uri may have found
        filesystem = kind(**limits, **({"region": region} if region else {}))
    return filesystem, path


def _limits(scheme: str, retry_policy: RetryPolicy) -> dict[str, Any]:
    """The options that let a filesystem give up a silent store, and leave retries to us."""
    if scheme in ("gs", "gcs"):  # one limit for all its tries together
        return {"retry_time_limit": timedelta(seconds=retry_policy.timeout)}
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
    if isinstance(error, FileNotFoundError) or retry.says("missing", text):
        return Fault("missing", "the filesystem does not find it")
    if isinstance(error, PermissionError) or retry.says("denied", text):
        return Fault("denied", "the filesystem is not let in", advice=ADVICE)
    if any(word in low for word in _CREDENTIALS):
        return Fault("denied", f"no credentials were found ({said})", advice=ADVICE)
    status = retry.status_in(text)
    if status is not None:
        return retry.of_status(status, f"the store answered {status}", advice=ADVICE)
    if retry.says("busy", text):
        return Fault("busy", said)
    if isinstance(error, (OSError, pa.ArrowException)):
        passing = ("curl", "timeout", "timed out", "network", "slow_down", "connection")
        again = any(word in low for word in passing)
        return Fault("again" if again else "odd", said)
    return Fault("final", said)
