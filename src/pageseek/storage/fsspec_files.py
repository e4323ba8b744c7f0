"""Files of any fsspec filesystem. The filesystem keeps its own credentials; the version is what its `info` says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any
from urllib.parse import urlsplit

from pageseek.errors import UnsupportedError
from pageseek.records import dataclass
from pageseek.storage.base import Known, Version
from pageseek.storage.endpoint import IN_FLIGHT, Endpoint, endpoint
from pageseek.storage.files import Files
from pageseek.storage.redact import cleaned, secrets_of, shown
from pageseek.storage.remote import Answer, RemoteStore
from pageseek.storage.requests import issue
from pageseek.storage.retry import Fault, Patience, of_status, says_denied, says_missing, status_in

# of the names by which filesystems call them, the first that is there
TAGS = (
    "ETag", "etag", "e_tag", "md5Hash", "checksum", "generation", "ContentMD5", "Content-MD5",
    "Digest",
)  # fmt: skip
TIMES = (
    "mtime", "LastModified", "Last-Modified", "last_modified", "modified", "updated", "created",
)  # fmt: skip


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
        return f"fsspec:{self.protocol}:{hash(self.filesystem):x}"

    @property
    def endpoint(self) -> Endpoint:
        # one that is not asynchronous may have a single connection, which two threads would garble
        alone = not getattr(self.filesystem, "async_impl", False)
        return endpoint(self.key, 1 if alone else IN_FLIGHT)

    def name(self, path: str) -> str:
        """A file there, as it may be shown."""
        return shown(path) if "://" in path else f"{self.protocol}://{path}"

    def open(self, path: str, patience: Patience, known: Known | None = None) -> FsspecStore:
        return FsspecStore(self, path, patience, known)

    def find(self, prefix: str, patience: Patience) -> list[str]:
        """The paths of all files below a folder."""
        asked = _Listing(self, prefix, patience)
        (found,) = issue(asked._endpoint, [asked._asked(asked.all, "what is in it")])
        return found

    def looks_like_file(self, path: str) -> bool:
        """Over HTTP everything is: there, to list a folder is to read a page of links."""
        return self.protocol in ("http", "https")


def of_url(url: str, options: Mapping[str, Any]) -> tuple[FsspecFiles, str]:
    """The filesystem of a URL, and the path there; UnsupportedError where fsspec has none, or not its parts."""
    from fsspec.core import url_to_fs

    scheme = urlsplit(url).scheme
    try:
        filesystem, path = url_to_fs(url, **options)
    except (ImportError, ValueError, TypeError) as error:
        said = cleaned(str(error), secrets_of(dict(options)) | {url})
        raise UnsupportedError(
            f"{scheme}://: fsspec cannot open the scheme {scheme!r}: {said}"
        ) from None
    return FsspecFiles(filesystem), path


def is_filesystem(given: object) -> bool:
    """Whether somebody gave a filesystem of fsspec; without importing it."""
    return any(kind.__module__ == "fsspec.spec" for kind in type(given).__mro__)


class _Asked(RemoteStore):
    def __init__(self, files: FsspecFiles, path: str, patience: Patience) -> None:
        super().__init__(files.name(path), path, files.endpoint, patience)
        self._filesystem, self._path = files.filesystem, path
        self._secrets = secrets_of(getattr(files.filesystem, "storage_options", {}))

    def _fault(self, error: Exception) -> Fault:
        return fault_of(error, self._secrets)


class _Listing(_Asked):
    """A folder that is asked for what it holds."""

    def all(self) -> list[str]:
        """Every path below."""
        return sorted(self._filesystem.find(self._path))


class FsspecStore(_Asked):
    """A file on a filesystem of fsspec."""

    def __init__(
        self, files: FsspecFiles, path: str, patience: Patience, known: Known | None = None
    ) -> None:
        super().__init__(files, path, patience)
        self.requests = 1
        (found,) = issue(self._endpoint, [self._asked(self._look, "its version")])
        self._opened(found, known)

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        begun = time.monotonic()
        data = self._filesystem.cat_file(self._path, start=offset, end=offset + length)
        return Answer(data, first=time.monotonic() - begun if length <= 1 << 16 else None)

    def _look(self) -> Version:
        # what it has listed may be old
        self._filesystem.invalidate_cache(self._filesystem._parent(self._path))
        info = self._filesystem.info(self._path)
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


def fault_of(error: Exception, secrets: set[str]) -> Fault:
    """What an error of whatever library stands behind a filesystem means."""
    text = str(error)
    if isinstance(error, FileNotFoundError):
        return Fault("missing", "the filesystem does not find it")
    if isinstance(error, PermissionError):
        return Fault("denied", "the filesystem is not let in")
    if isinstance(error, RuntimeError) and "fork" in text:
        return Fault(
            "final",
            "its threads do not live on in a forked process: start workers by spawn or forkserver",
        )
    status = _status(error)
    if status is not None:
        return of_status(status, f"the store answered {status}", _retry_after(error))
    said = cleaned(text, secrets) or type(error).__name__
    module = type(error).__module__.partition(".")[0]
    if isinstance(error, (TimeoutError, ConnectionError)) or module in (
        "aiohttp",
        "asyncio",
        "requests",
        "urllib3",
    ):
        return Fault("again", said)
    if isinstance(error, OSError):
        if says_missing(text):
            return Fault("missing", "the filesystem does not find it")
        if says_denied(text):
            return Fault("denied", "the filesystem is not let in")
        return Fault("again" if error.errno is not None else "odd", said)
    return Fault("odd" if module in ("botocore", "google", "azure") else "final", said)
