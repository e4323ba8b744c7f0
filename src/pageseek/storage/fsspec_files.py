"""Files of any fsspec filesystem. It keeps its own credentials; the version of a file comes from its `info`."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import dataclass
from pageseek.storage import retry
from pageseek.storage.endpoint import IN_FLIGHT, Endpoint, endpoint
from pageseek.storage.files import Files
from pageseek.storage.redact import cleaned, secrets_in, secrets_of, shown
from pageseek.storage.remote import Answer, RemoteStore
from pageseek.storage.requests import within
from pageseek.storage.retry import CONNECT, Fault, Retries, RetryPolicy
from pageseek.storage.store import Known, Version

# names by which filesystems call them; the first that is there counts
TAGS = (
    "ETag", "etag", "e_tag", "md5Hash", "checksum", "generation", "ContentMD5", "Content-MD5",
    "Digest",
)  # fmt: skip
TIMES = (
    "mtime", "LastModified", "Last-Modified", "last_modified", "modified", "updated", "created",
)  # fmt: skip
WITH_FOLDERS = ("sftp", "ssh", "smb", "ftp")  # where a file needs its folder
ADVICE = ", by the names of the fsspec filesystem"
PASSING = ("aiohttp", "asyncio", "requests", "urllib3")  # libraries whose errors are of the network


@dataclass(frozen=True, slots=True, eq=False)
class FsspecFiles(Files):
    """A filesystem of fsspec."""

    filesystem: Any = field(repr=False)

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
        """A text that tells filesystems apart in caches of this process."""
        told = id(self.filesystem) if self.bound else hash(self.filesystem)
        return f"fsspec:{self.protocol}:{told:x}"

    @property
    def bound(self) -> bool:
        """Whether fsspec does not keep the instances of the class. Of those that it keeps, equal ones have the same files."""
        return not getattr(self.filesystem, "cachable", False)

    @property
    def _secrets(self) -> set[str]:
        return secrets_of(getattr(self.filesystem, "storage_options", {}))

    def endpoint(self, path: str) -> Endpoint:
        # one that is not asynchronous may have a single connection, which two threads would garble
        several = getattr(self.filesystem, "async_impl", False)
        return endpoint(self.key, IN_FLIGHT if several else 1)

    def name(self, path: str) -> str:
        return (
            shown(path) if "://" in path else f"{self.protocol}://{path}"
        )  # of HTTP it is the URL

    def fault(self, error: Exception) -> Fault:
        return fault_of(error, self._secrets)

    def open(self, path: str, retry_policy: RetryPolicy, known: Known | None = None) -> FsspecStore:
        return FsspecStore(self, path, retry_policy, known)

    def looks_like_file(self, path: str) -> bool:
        """Whether it lies on an HTTP server: to list a folder there is to read a page of links."""
        return self.protocol in ("http", "https")

    def list_below(self, folder: str, retry_policy: RetryPolicy) -> list[str]:
        return sorted(self.call(retry_policy.listing, "find", folder))

    def times_below(self, folder: str, retry_policy: RetryPolicy) -> dict[str, float]:
        found = self.call(retry_policy.listing, "find", folder, detail=True)
        times = {path: _seconds(info) for path, info in found.items()}
        return {path: time for path, time in times.items() if time is not None}

    def list_in(self, folder: str, retry_policy: RetryPolicy) -> Iterable[str]:
        try:
            return list(self.call(retry_policy.listing, "ls", folder, detail=False))
        except NotADirectoryError:
            return ()
        except FileNotFoundError as error:
            self._refuse_unknown(error)
            return ()

    def call(self, seconds: float, method: str, *given: Any, **how: Any) -> Any:
        """What a method of the filesystem returns; TimeoutError after `seconds`.

        A coroutine ends with that, and its request with it. Another call goes on, and where the filesystem takes one at a
        time the next one waits for it.
        """
        call = getattr(self.filesystem, method)
        coroutine = getattr(self.filesystem, f"_{method}", None)
        if coroutine is not None and getattr(call, "__wrapped__", None) == coroutine:
            from fsspec.asyn import sync

            return sync(self.filesystem.loop, coroutine, *given, timeout=seconds, **how)
        end = self.endpoint("")
        return within(
            partial(call, *given, **how), seconds, end.alone if end.in_flight == 1 else None
        )

    def info(self, path: str, retry_policy: RetryPolicy) -> dict[str, Any]:
        """What the filesystem says of a file now."""
        filesystem = self.filesystem
        filesystem.invalidate_cache(filesystem._parent(path))  # its listing may be old
        found: dict[str, Any] = self.call(retry_policy.timeout, "info", path)
        return found

    def _refuse_unknown(self, error: FileNotFoundError) -> None:
        """Raise an error of a missing file, if its cause is another fault of the request."""
        if self.fault(error).kind != "missing":
            raise error

    # ---- writing; a file appears before all of it is written

    whole = False

    def size(self, path: str, retry_policy: RetryPolicy) -> int | None:
        """The bytes of a file; None where there is none."""
        try:
            return int(self.info(path, retry_policy).get("size") or 0)
        except FileNotFoundError as error:
            self._refuse_unknown(error)
            return None

    def stream(self, path: str, attributes: Mapping[str, str]) -> Any:
        """A file that is written to. Attributes are not kept."""
        return self.filesystem.open(path, "wb")

    def make_folder(self, path: str) -> None:
        if self.protocol in WITH_FOLDERS:
            self.filesystem.makedirs(path, exist_ok=True)

    def move(self, path: str, to: str) -> None:
        """Give a file another name."""
        self.filesystem.mv(path, to)

    def delete(self, path: str) -> None:
        """Delete a file."""
        self.filesystem.rm_file(path)


def of_url(
    url: str, options: Mapping[str, Any], retry_policy: RetryPolicy | None = None
) -> tuple[FsspecFiles, str]:
    """The filesystem of a URL, and the path there; UnsupportedError where fsspec has none, or lacks a library for it.

    Some filesystems connect when they are made. A failure of that is tried again like a request.
    """
    from fsspec import get_filesystem_class
    from fsspec.core import url_to_fs

    scheme, retry_policy = urlsplit(url).scheme, retry_policy or RetryPolicy()
    secrets = secrets_of(dict(options)) | secrets_in(url) | {url}

    def refused(error: Exception) -> UnsupportedError:
        said = cleaned(str(error), secrets)
        return UnsupportedError(f"{scheme}://: fsspec cannot open the scheme {scheme!r}: {said}")

    try:
        get_filesystem_class(scheme)  # an import, whose time is not that of a connection
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

    filesystem, path = retry.with_retries(
        make, fault, shown(url), "to connect", retry_policy, Retries(), threading.Event()
    )
    return FsspecFiles(filesystem), path


def _limits(scheme: str, options: Mapping[str, Any], retry_policy: RetryPolicy) -> dict[str, Any]:
    """The options that let a filesystem give up a silent server by itself, unless the caller gave some."""
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
    """Whether an object is a filesystem of fsspec, which is not imported for that."""
    return any(kind.__module__ == "fsspec.spec" for kind in type(given).__mro__)


class FsspecStore(RemoteStore):
    """A file on a filesystem of fsspec."""

    _files: FsspecFiles

    def __init__(
        self, files: FsspecFiles, path: str, retry_policy: RetryPolicy, known: Known | None = None
    ) -> None:
        super().__init__(files, path, retry_policy)
        try:
            self._open(known)
        except FileNotFoundError as error:
            raise self.missing(error) from None

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        longest = self._retry_policy.reading(length)
        end = offset + length
        return Answer(self._files.call(longest, "cat_file", self._path, start=offset, end=end))

    def _look(self) -> Version:
        info = self._files.info(self._path, self._retry_policy)
        size = info.get("size")
        if size is None:
            raise UnsupportedError(
                f"{self.name}: the filesystem does not tell the size of the file: download it"
            )
        if info.get("type") == "directory":
            raise FileNotFoundError(f"{self.name}: a folder")
        tag = next((str(info[name]) for name in TAGS if info.get(name)), "")
        when = next((str(info[name]) for name in TIMES if info.get(name)), "")
        # no range can be tied to it: it is compared before and after reads
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
    return retry.status_in(str(error))


def _behind(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, the outermost first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def fault_of(error: Exception, secrets: set[str]) -> Fault:
    """What an error of a filesystem, or of the library behind it, means."""
    if not isinstance(error, FileNotFoundError):
        return _fault(error, secrets)
    # fsspec raises it for other faults too: these are its causes
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
        return retry.of_status(status, said, _retry_after(error), ADVICE)
    said = cleaned(text, secrets) or type(error).__name__
    if isinstance(error, TimeoutError):
        return Fault("again", cleaned(text, secrets) or "the store fell silent")
    if library == "ftplib" and text[:3].isdigit():
        return _of_ftp(int(text[:3]), said)
    if isinstance(error, ValueError):  # no URL, or a wrong certificate
        return Fault("final", said)
    kind = type(error).__name__
    if isinstance(error, ConnectionRefusedError) or kind.startswith("ClientConnector"):
        return Fault("again", f"no connection ({said})")
    if isinstance(error, ConnectionError) or library in PASSING:
        return Fault("again", said)
    if isinstance(error, OSError):
        if retry.says("missing", text):
            return Fault("missing", "the filesystem does not find it")
        if retry.says("denied", text):
            return Fault("denied", "the filesystem is not let in", advice=ADVICE)
        if retry.says("busy", text):
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


def _seconds(info: Mapping[str, Any]) -> float | None:
    """When a file was last written, in seconds since 1970, as far as its filesystem says that."""
    for name in TIMES:
        said = info.get(name)
        if isinstance(said, str):
            try:
                said = dt.datetime.fromisoformat(said)
            except ValueError:
                continue
        if isinstance(said, dt.datetime):
            return (said if said.tzinfo else said.replace(tzinfo=dt.UTC)).timestamp()
        if isinstance(said, int | float):
            return float(said)
    return None
