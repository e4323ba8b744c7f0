"""Files of any fsspec filesystem. The filesystem keeps its own credentials; the version is what its `info` says."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import dataclass
from pageseek.storage.deadlines import within
from pageseek.storage.endpoint import IN_FLIGHT, Endpoint, endpoint
from pageseek.storage.files import Files
from pageseek.storage.listing import missing
from pageseek.storage.redact import cleaned, secrets_in, secrets_of, shown
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
from pageseek.storage.store import Known, Version

# of the names by which filesystems call them, the first that is there
TAGS = (
    "ETag", "etag", "e_tag", "md5Hash", "checksum", "generation", "ContentMD5", "Content-MD5",
    "Digest",
)  # fmt: skip
TIMES = (
    "mtime", "LastModified", "Last-Modified", "last_modified", "modified", "updated", "created",
)  # fmt: skip
CONNECT = 5.0  # seconds at most until a connection of HTTP stands
ADVICE = ", by the names of the fsspec filesystem"
PASSING = ("aiohttp", "asyncio", "requests", "urllib3")  # whose errors are of the network

# held by what is under way where that may be one call at a time
_alone: WeakKeyDictionary[Endpoint, threading.Lock] = WeakKeyDictionary()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class FsspecFiles(Files):
    """A filesystem of fsspec. `url`: how its files are called, if they were given as a URL."""

    filesystem: Any = field(repr=False)
    scheme: str = ""

    def __repr__(self) -> str:
        return f"<FsspecFiles {self.protocol}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FsspecFiles):
            return NotImplemented
        if self.bound or other.bound:
            return self.filesystem is other.filesystem
        return bool(self.filesystem == other.filesystem)

    def __hash__(self) -> int:
        return hash(self.protocol)

    @property
    def protocol(self) -> str:
        protocol = self.filesystem.protocol
        return str(protocol if isinstance(protocol, str) else protocol[0])

    @property
    def key(self) -> str:
        """Tells filesystems apart in caches, in this process."""
        told = id(self.filesystem) if self.bound else hash(self.filesystem)
        return f"fsspec:{self.protocol}:{told:x}"

    @property
    def bound(self) -> bool:
        """Of a class whose instances are kept by fsspec, equal ones stand for the same files."""
        return not getattr(self.filesystem, "cachable", False)

    @property
    def endpoint(self) -> Endpoint:
        # one that is not asynchronous may have a single connection, which two threads would garble
        alone = not getattr(self.filesystem, "async_impl", False)
        return endpoint(self.key, 1 if alone else IN_FLIGHT)

    def ask(self, seconds: float, method: str, *given: Any, **how: Any) -> Any:
        """What a method of the filesystem returns; TimeoutError after so many seconds. A coroutine ends with that, and its
        request with it; another call goes on, and of filesystems that take one at a time the next one waits for it.
        """
        call = getattr(self.filesystem, method)
        coroutine = getattr(self.filesystem, f"_{method}", None)
        if coroutine is not None and getattr(call, "__wrapped__", None) == coroutine:
            from fsspec.asyn import sync

            return sync(self.filesystem.loop, coroutine, *given, timeout=seconds, **how)
        end, alone = self.endpoint, None
        if end.in_flight == 1:
            with _lock:
                alone = _alone.setdefault(end, threading.Lock())
        return within(partial(call, *given, **how), seconds, alone)

    def name(self, path: str) -> str:
        """A file there, as it may be shown."""
        return (
            shown(path) if "://" in path else f"{self.protocol}://{path}"
        )  # over HTTP it is the URL

    def open(self, path: str, retry_policy: RetryPolicy, known: Known | None = None) -> FsspecStore:
        return FsspecStore(self, path, retry_policy, known)

    def find(self, prefix: str, retry_policy: RetryPolicy) -> list[str]:
        """The paths of all files below a folder."""
        asked = _Listing(self, prefix, retry_policy)
        (found,) = issue(asked._endpoint, [asked._asked(asked.all, "what is in it")])
        return found

    def looks_like_file(self, path: str) -> bool:
        """Over HTTP everything is: there, to list a folder is to read a page of links."""
        return self.protocol in ("http", "https")


def of_url(
    url: str, options: Mapping[str, Any], retry_policy: RetryPolicy | None = None
) -> tuple[FsspecFiles, str]:
    """The filesystem of a URL, and the path there; UnsupportedError where fsspec has none, or not its parts. Some connect
    for that: where that fails it is tried again, and said as of any request.
    """
    from fsspec import get_filesystem_class
    from fsspec.core import url_to_fs

    scheme, retry_policy = urlsplit(url).scheme, retry_policy or RetryPolicy()
    secrets = secrets_of(dict(options)) | secrets_in(url) | {url}

    def refused(error: Exception) -> UnsupportedError:
        said = cleaned(str(error), secrets)
        return UnsupportedError(f"{scheme}://: fsspec cannot open the scheme {scheme!r}: {said}")

    try:
        get_filesystem_class(scheme)  # to import a library takes its time, which is no store's
        how = {**options, **_limits(scheme, options, retry_policy)}
    except (ImportError, ValueError) as error:
        raise refused(error) from None

    def make() -> tuple[Any, str]:
        try:
            found: tuple[Any, str] = within(partial(url_to_fs, url, **how), retry_policy.timeout)
        except (ImportError, ValueError, TypeError) as error:
            raise refused(error) from None
        return found

    def fault(error: Exception) -> Fault:
        return fault_of(error, secrets)

    filesystem, path = with_retries(
        make, fault, shown(url), "to connect", retry_policy, Retries(), threading.Event()
    )
    return FsspecFiles(filesystem), path


def _limits(scheme: str, options: Mapping[str, Any], retry_policy: RetryPolicy) -> dict[str, Any]:
    """The options by which a filesystem gives up a silent server by itself, unless some are given."""
    if scheme in ("ftp", "ftps"):
        return {} if "timeout" in options else {"timeout": retry_policy.timeout}
    client = dict(options.get("client_kwargs") or {})
    if scheme not in ("http", "https") or "timeout" in client:
        return {}
    from aiohttp import ClientTimeout

    connect = min(retry_policy.timeout, CONNECT)
    silent = ClientTimeout(total=None, sock_connect=connect, sock_read=retry_policy.timeout)
    return {"client_kwargs": {**client, "timeout": silent}}


def is_filesystem(given: object) -> bool:
    """Whether somebody gave a filesystem of fsspec; without importing it."""
    return any(kind.__module__ == "fsspec.spec" for kind in type(given).__mro__)


class _Asked(RemoteStore):
    def __init__(self, files: FsspecFiles, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files.name(path), path, files.endpoint, retry_policy)
        self._files, self._path = files, path
        self._secrets = secrets_of(getattr(files.filesystem, "storage_options", {}))

    def _fault(self, error: Exception) -> Fault:
        return fault_of(error, self._secrets)


class _Listing(_Asked):
    """A folder that is asked for what it holds."""

    def all(self) -> list[str]:
        """Every path below."""
        return sorted(self._files.ask(self._patience.listing, "find", self._path))


class FsspecStore(_Asked):
    """A file on a filesystem of fsspec."""

    def __init__(
        self, files: FsspecFiles, path: str, retry_policy: RetryPolicy, known: Known | None = None
    ) -> None:
        super().__init__(files, path, retry_policy)
        self.requests = 1
        try:
            (found,) = issue(self._endpoint, [self._asked(self._look, "its version")])
        except FileNotFoundError as error:
            raise missing(error, files, path) from None
        self._opened(found, known)

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        begun = time.monotonic()
        longest = self._patience.reading(length)
        data = self._files.ask(longest, "cat_file", self._path, start=offset, end=offset + length)
        return Answer(data, first=time.monotonic() - begun if length <= 1 << 16 else None)

    def _look(self) -> Version:
        filesystem = self._files.filesystem
        filesystem.invalidate_cache(filesystem._parent(self._path))  # what it has listed may be old
        info = self._files.ask(self._patience.timeout, "info", self._path)
        size = info.get("size")
        if size is None:
            raise UnsupportedError(
                f"{self.name}: the filesystem does not tell the size of the file: download it"
            )
        if info.get("type") == "directory":
            raise FileNotFoundError(f"{self.name}: a folder")
        tag = next((str(info[name]) for name in TAGS if info.get(name)), "")
        when = next((str(info[name]) for name in TIMES if info.get(name)), "")
        # no range can be tied to it: it is compared before and after
        return Version(int(size), f"{size}:{tag or when}", False, bool(tag or when))


def _retry_after(error: Exception) -> float:
    headers = getattr(error, "headers", None)
    if headers is None and isinstance(response := getattr(error, "response", None), dict):
        headers = response.get("ResponseMetadata", {}).get("HTTPHeaders")
    try:
        found = {str(name).lower(): value for name, value in dict(headers or {}).items()}
        return max(float(found.get("retry-after", 0)), 0.0)
    except (TypeError, ValueError):  # a date
        return 0.0


def _status(error: Exception) -> int | None:
    for name in ("status", "status_code", "code"):
        found = getattr(error, name, None)
        if isinstance(found, int) and 400 <= found < 600:
            return found
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return found if isinstance(found, int) else None
    return status_in(str(error))


def _behind(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was raised for, the outermost first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def fault_of(error: Exception, secrets: set[str]) -> Fault:
    """What an error of whatever library stands behind a filesystem means."""
    if not isinstance(error, FileNotFoundError):
        return _fault(error, secrets)
    # fsspec says so of whatever keeps it from asking; why, is behind it
    for one in _behind(error):
        if isinstance(one, FileNotFoundError) or not isinstance(one, Exception):
            continue
        network = isinstance(one, (TimeoutError, ConnectionError)) or _library(one) in PASSING
        if network or isinstance(one, PermissionError) or _status(one) is not None:
            return _fault(one, secrets)
    return Fault("missing", "the filesystem does not find it")


def _library(error: Exception) -> str:
    return type(error).__module__.partition(".")[0]


def _fault(error: Exception, secrets: set[str]) -> Fault:
    text, library = str(error), _library(error)
    if isinstance(error, PermissionError):
        return Fault("denied", "the filesystem is not let in", advice=ADVICE)
    if isinstance(error, RuntimeError) and "fork" in text:
        return Fault(
            "final",
            "its threads do not live on in a forked process: start workers by spawn or forkserver",
        )
    status = _status(error)
    if status is not None:
        said = f"the store answered {status}"
        return of_status(status, said, _retry_after(error), ADVICE)
    said = cleaned(text, secrets) or type(error).__name__
    if isinstance(error, TimeoutError):
        return Fault("again", cleaned(text, secrets) or "the store fell silent")
    if library == "ftplib" and text[:3].isdigit():
        return _of_ftp(int(text[:3]), said)
    if isinstance(error, ValueError):  # a URL that is none, a certificate that is not right
        return Fault("final", said)
    kind = type(error).__name__
    if isinstance(error, ConnectionRefusedError) or kind.startswith("ClientConnector"):
        return Fault("again", f"no connection ({said})")
    if isinstance(error, ConnectionError) or library in PASSING:
        return Fault("again", said)
    if isinstance(error, OSError):
        if says_missing(text):
            return Fault("missing", "the filesystem does not find it")
        if says_denied(text):
            return Fault("denied", "the filesystem is not let in", advice=ADVICE)
        if says_busy(text):
            return Fault("busy", said)
        return Fault("again" if error.errno is not None else "odd", said)
    return Fault("odd" if library in ("botocore", "google", "azure") else "final", said)


def _of_ftp(reply: int, said: str) -> Fault:
    """What a reply of an FTP server means."""
    if reply == 530:
        return Fault("denied", said, advice=ADVICE)
    if reply == 550:
        return Fault("missing", said)
    return Fault("again" if reply < 500 else "final", said)


def _unlock() -> None:
    global _lock, _alone
    _lock, _alone = threading.Lock(), WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
