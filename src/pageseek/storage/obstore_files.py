"""Files of S3, Google Cloud Storage, Azure and HTTP servers, opened by obstore.

Every range is tied to the version of its file by the ETag. The first request brings the end of the file, its size and its
version at once.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from pageseek.base.errors import StoreError, UnsupportedError
from pageseek.storage.endpoint import Endpoint, endpoint
from pageseek.storage.files import Begun, Files, Needed
from pageseek.storage.obstore_options import HTTP, VARIABLES, accounts_in, endpoints_in, make_store
from pageseek.storage.redact import cleaned, digest, secrets_of, shown, telling
from pageseek.storage.remote import STREAMED, Answer, RemoteStore, room_for
from pageseek.storage.requests import Wave, begin, given_up
from pageseek.storage.retry import (
    NO_RANGES,
    Fault,
    OddAnswerError,
    RetryPolicy,
    code_in,
    of_status,
    status_in,
)
from pageseek.storage.store import Buffer, Known, Version

SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "azure": "azure", "adl": "adl"} | {
    name: name for name in ("abfs", "abfss", *HTTP)
}  # fmt: skip
STORES = 64  # of obstore, kept, with their connections
ADVICE = ', or for a public bucket storage_options={"skip_signature": True}'

# who is asked for credentials where none were given, and is not there or refuses
_credentials = re.compile(
    r"performing \w+ https?://(169\.254\.|metadata\.google\.internal|sts\.|login\.microsoftonline)"
    r"|^Generic \w+ error: (no|missing)\b.*credential",
    re.IGNORECASE,
)
_asked_range = re.compile(r"Requested (\d+)\.\.(\d+), got (\d+)\.\.(\d+)")
_first_use: int | None = None  # the process that obstore was first used in
_stores: OrderedDict[tuple[object, ...], Any] = OrderedDict()
_lock = threading.Lock()


def _guard() -> None:
    """Refuse to use obstore where it would hang: its threads do not live on in a forked process."""
    global _first_use
    if _first_use is None:
        _first_use = os.getpid()
    elif _first_use != os.getpid():
        raise UnsupportedError(
            "obstore was used before this process was forked, and would hang in it: start workers by "
            'multiprocessing.get_context("spawn") or "forkserver", or fork before the first read from a remote store'
        )


def _frozen(value: object) -> object:
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), _frozen(one)) for name, one in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    return value if isinstance(value, (str, bytes, int, float, bool, type(None))) else id(value)


@dataclass(frozen=True, slots=True, eq=False)
class ObstoreFiles(Files):
    """One bucket, container or server. Picklable; the options, which may be secrets, are never shown.

    `url`: without a path, unless a query follows it, as in a signed URL. `given`: a store of obstore that the user
    has made.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    given: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<ObstoreFiles {self.base}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObstoreFiles):
            return NotImplemented
        same = self.given is other.given or bool(self.given == other.given)
        return same and self.url == other.url and self.options == other.options

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def base(self) -> str:
        """The URL as it may be shown."""
        return shown(self.url)

    @property
    def _config(self) -> Mapping[str, Any]:
        return self.given.config if hasattr(self.given, "config") else self.options

    @property
    def _place(self) -> str:
        """The bucket or server."""
        place = next(iter(endpoints_in(self._config)), "")
        prefix = getattr(self.given, "prefix", None) or ""
        return f"{self.base}{'@' + shown(place) if place else ''}{'/' + prefix if prefix else ''}"

    @property
    def key(self) -> str:
        """Tells buckets and servers apart, and what queries ask of these."""
        told = telling(self.url)
        more = [told] if told else []
        if self.url.startswith(VARIABLES["azure_"]):
            more += accounts_in(self._config)
        return f"{self._place}#{digest(*more)}" if more else self._place

    @property
    def lasting(self) -> bool:
        return self.url.partition("://")[0] in SCHEMES

    @property
    def bound(self) -> bool:
        return not self.lasting

    def endpoint(self, path: str) -> Endpoint:
        parts = urlsplit(self._place)
        where = self._place if parts.scheme not in HTTP else f"{parts.scheme}://{parts.netloc}"
        return endpoint(where)

    def name(self, path: str) -> str:
        if urlsplit(self.url).query:
            return self.base
        prefix = getattr(self.given, "prefix", None)
        return "/".join(part for part in (self.base.rstrip("/"), prefix, path) if part)

    def fault(self, error: Exception) -> Fault:
        parts = urlsplit(self.url)
        secrets = {part for part in (parts.password, parts.query) if part}
        return fault_of(error, secrets | secrets_of(dict(self.options)))

    def open(
        self, path: str, retry_policy: RetryPolicy, known: Known | None = None
    ) -> ObstoreStore:
        return Opening(ObstoreStore(self, path, retry_policy), known, None)()

    def begin(
        self, path: str, retry_policy: RetryPolicy, known: Known | None, needed: Needed
    ) -> Begun | None:
        return Opening(ObstoreStore(self, path, retry_policy), known, needed)

    def assumed(self, path: str, retry_policy: RetryPolicy, known: Known) -> ObstoreStore | None:
        if not known.version.strong:
            return None
        store = ObstoreStore(self, path, retry_policy)
        store.opened(known.version, known, None)
        return store

    def store(self, retry_policy: RetryPolicy, tries_again: bool = False) -> Any:
        """The store of obstore, one for all files and scans with the same options, so that connections are kept.
        `tries_again`: it does that itself, for what is many requests.
        """
        _guard()
        if self.given is not None:
            return self.given
        what = (self.url, _frozen(self.options), retry_policy, tries_again)
        with _lock:
            found = _stores.pop(what, None)
        if found is None:
            retries = retry_policy.retries if tries_again else 0
            found = make_store(self.url, self.options, retry_policy, retries)
        with _lock:
            _stores[what] = found
            if len(_stores) > STORES:
                _stores.popitem(last=False)
        return found

    def list_below(self, folder: str, retry_policy: RetryPolicy) -> list[str]:
        import obstore

        if self.url.startswith(HTTP) or "HTTP" in type(self.given).__name__:
            raise UnsupportedError(
                f"{self.name(folder)}: HTTP servers do not tell what is in a folder: give the files as a list"
            )
        found: list[str] = []
        for page in obstore.list(self.store(retry_policy), folder or None):
            if given_up():
                raise StoreError(f"{self.name(folder)}: given up, nobody waits for it any more")
            found += [one["path"] for one in page]
        return found

    def list_in(self, folder: str, retry_policy: RetryPolicy) -> Iterable[str]:
        import obstore

        pages = obstore.list(self.store(retry_policy), folder)
        return (one["path"] for page in pages for one in page)

    def looks_like_file(self, path: str) -> bool:
        """Whether it lies on an HTTP server, which has no folders."""
        return self.url.startswith(HTTP)


def of_url(url: str, options: Mapping[str, Any]) -> tuple[ObstoreFiles, str]:
    """The bucket or server that a URL names, and the path there."""
    parts, options = urlsplit(url), dict(options)
    scheme = SCHEMES[parts.scheme]
    if scheme in HTTP:
        # a query, of a signature say, belongs to this path; and paths of obstore cannot spell all others
        if parts.query or not _spelled(parts.path):
            return ObstoreFiles(url.partition("#")[0], options), ""
        return ObstoreFiles(f"{scheme}://{parts.netloc}", options), unquote(parts.path).lstrip("/")
    path = url.partition("://")[2].partition("/")[
        2
    ]  # a key may hold any character, "?" and "#" too
    return ObstoreFiles(f"{scheme}://{parts.netloc}", options), path


def _spelled(path: str) -> bool:
    """Whether the path of a URL is the same when it is decoded, and encoded again by obstore."""
    decoded = unquote(path).removeprefix("/")
    names = decoded.split("/")
    same = len(names) == path.count("/") and "\ufffd" not in decoded
    return same and not {"", ".", ".."}.intersection(names)


def of_store(store: Any) -> ObstoreFiles:
    """The same of a store that the user has made."""
    kind = type(store).__name__
    config = getattr(store, "config", None) or {}
    where = config.get("bucket") or config.get("container_name") or ""
    if hasattr(store, "url"):
        return ObstoreFiles(store.url.rstrip("/"), given=store)
    scheme = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}.get(kind)
    if scheme is None:  # of this process or this machine
        return ObstoreFiles(f"{kind.removesuffix('Store').lower()}://{id(store):x}", given=store)
    return ObstoreFiles(f"{scheme}://{where}", given=store)


def is_store(given: object) -> bool:
    """Whether somebody gave a store of obstore; without importing it."""
    return any(kind.__module__.startswith("obstore") for kind in type(given).__mro__)


# ---- one file


class ObstoreStore(RemoteStore):
    """An object, of one version. Where the store gives no ETag that may be asked for, the version is weak."""

    _files: ObstoreFiles

    def __init__(self, files: ObstoreFiles, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files, path, retry_policy)
        self._match: str | None = None
        files.store(retry_policy)  # options that it does not take are no fault of a request

    # ---- opening

    def begin(self, known: Known | None, needed: Needed | None) -> Wave[tuple[Version, Any]]:
        """Ask for version and last bytes, where it is said for as many as are `needed`; both are for `opened`."""
        attempt = partial(self._first, known)
        if needed is not None:
            attempt = partial(self._end, known, needed)
        # of files that are opened ahead the reads of others may be wanted sooner
        return begin(self._endpoint, [self._task(attempt, "its end")], hurry=needed is None)

    def opened(self, version: Version, known: Known | None, tail: Any) -> None:
        """It is of this version, to which reads are tied from here on."""
        self._match = etag_of(version)
        self._opened(version, known, tail)

    def _end(self, known: Known | None, needed: Needed) -> tuple[Version, Any]:
        version, tail = self._first(known)
        if known is not None and version == known.version:
            return version, tail
        self.version, self._match, size = version, etag_of(version), version.size
        if tail is None:
            n = min(self.tail_bytes, size)
            tail = self._checked(size - n, n) if n else b""
            self.requests += 1
        more = needed(tail, size) - len(tail)
        if more > 0:
            self.requests += 1
            whole = room_for(more + len(tail))
            self._checked(size - whole.nbytes, more, whole[:more])
            whole[more:] = memoryview(tail).cast("B")
            tail = whole
        return version, tail

    def _first(self, known: Known | None) -> tuple[Version, Any]:
        """Version and last bytes, in one request where the store can; no bytes where the version is the known one."""
        from obstore import exceptions

        wanted = self.tail_bytes
        unless = etag_of(known.version) if known is not None else None
        begun = time.monotonic()
        self.requests = 1  # what was asked before is counted as tried again
        try:
            try:
                answer, first = self._ask({"suffix": wanted}, if_none_match=unless)
            except exceptions.NotModifiedError:
                assert known is not None
                return known.version, None
            data = self._body(answer)
            version, (start, stop) = version_of(answer.meta), answer.range
            if stop == version.size and stop - start == len(data) == min(wanted, version.size):
                self._endpoint.measured(len(data), time.monotonic() - begun, first)
                return version, data
        except (exceptions.BaseError, NotImplementedError) as error:
            # no suffix there (Azure has none), or nothing of which it could be one
            if self._fault(error).kind != "odd" and status_in(str(error)) != 416:
                raise
        self.requests += 1
        return self._look(), None

    def _ask(self, wanted: object, **conditions: str | None) -> tuple[Any, float]:
        import obstore

        options = {name: value for name, value in conditions.items() if value is not None}
        begun = time.monotonic()
        store = self._files.store(self._retry_policy)
        answer = obstore.get(store, self._path, options={"range": wanted, **options})
        return answer, time.monotonic() - begun

    # ---- reading

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        answer, first = self._ask((offset, offset + length), if_match=self._match)
        start, version = answer.range[0], version_of(answer.meta)
        return Answer(self._body(answer, into), start, version, first)

    def _body(self, answer: Any, into: memoryview | None = None) -> Buffer:
        """The bytes of an answer; of a long one as they come, so that it ends when nobody wants it any more."""
        start, stop = answer.range
        if into is None:
            if stop - start <= STREAMED:
                return answer.bytes()  # type: ignore[no-any-return]
            into = room_for(stop - start)
        at = 0
        for part in answer.stream(STREAMED):
            if given_up():
                raise StoreError(f"{self.name}: given up, nobody waits for it any more")
            n = len(part)
            if at + n > into.nbytes:
                raise OddAnswerError(f"more than {into.nbytes} bytes came")
            into[at : at + n] = memoryview(part)
            at += n
        return into if at == into.nbytes else into[:at]

    def _look(self) -> Version:
        import obstore

        return version_of(obstore.head(self._files.store(self._retry_policy), self._path))

    def _confirm(self) -> None:
        """By a range, which a URL that is signed allows: as a rule it is not sent."""
        from obstore import exceptions

        try:
            answer, _ = self._ask((0, 1), if_none_match=self._match)
        except exceptions.NotModifiedError:
            return
        self._compare(version_of(answer.meta))

    def attributes(self) -> dict[str, str]:
        """Content-Type and the like, and what users have said of the object."""
        answer = self.ask(self._described, "its attributes")
        return {str(name): str(value) for name, value in answer.attributes.items()}

    def revision(self) -> dict[str, str]:
        """By what a store tells that an object is still of this version when it is to be replaced (obstore.UpdateVersion).

        Raises FileChangedError where it is of another one now.
        """
        answer = self.ask(self._described, "its version")
        self._compare(version_of(answer.meta))
        found = {"e_tag": answer.meta["e_tag"], "version": answer.meta["version"]}
        return {name: value for name, value in found.items() if value is not None}

    def _described(self) -> Any:
        answer, _ = self._ask((0, 1), if_match=self._match)
        return answer


class Opening:
    """A file that was asked for."""

    def __init__(self, store: ObstoreStore, known: Known | None, needed: Needed | None) -> None:
        self._store, self._known = store, known
        self._wave = store.begin(known, needed)

    def __call__(self) -> ObstoreStore:
        try:
            ((version, tail),) = self._wave.wait()
        except FileNotFoundError as error:
            raise self._store.missing(error) from None
        self._store.opened(version, self._known, tail)
        return self._store

    def give_up(self) -> None:
        self._wave.give_up()


def version_of(meta: Any) -> Version:
    size, etag, when = meta["size"], meta["e_tag"], meta["last_modified"]
    if etag is not None:
        return Version(size, etag, not etag.startswith("W/"))
    dated = isinstance(when, datetime) and when.timestamp() > 0
    return Version(size, f"{size}:{when.timestamp() if dated else ''}", False, dated)


def etag_of(version: Version) -> str | None:
    """The ETag that a version was proven by, if it was."""
    return version.tag if version.strong else None


def fault_of(error: Exception, secrets: set[str]) -> Fault:
    """What an error of obstore means. Its text holds URLs, and what the server said: little of it is passed on."""
    from obstore import exceptions as o

    text = str(error)
    status = status_in(text)
    if isinstance(error, FileNotFoundError):
        return Fault("missing", f"the store answered 404{code_in(text)}")
    if isinstance(error, (o.PermissionDeniedError, o.UnauthenticatedError)):
        # without a status it was not asked: a provider of credentials has failed
        said = "not let in" if status is None else f"the store answered {status}{code_in(text)}"
        return Fault("denied", said, advice=ADVICE)
    if isinstance(error, o.PreconditionError):
        return Fault("changed", "the store has another version")
    if _credentials.search(text) and status != 503:
        return Fault("denied", "no credentials were found", advice=ADVICE)
    if isinstance(error, (o.NotSupportedError, NotImplementedError)) or "NotPartial" in text:
        said = "the server does not answer with the range that was asked for"
        return Fault("odd", said, advice=NO_RANGES)
    if found := _asked_range.search(text):
        _, _, start, stop = map(int, found.groups())
        return Fault("odd", f"{stop - start} bytes from {start} on came", advice=NO_RANGES)
    if status is not None:
        return of_status(status, f"the store answered {status}{code_in(text)}", advice=ADVICE)
    if isinstance(error, o.GenericError):
        if "TimedOut" in text or "kind: Timeout" in text:
            return Fault("again", "the store fell silent")
        if "dns error" in text or "ConnectError" in text or "kind: Connect" in text:
            return Fault("again", "no connection")
        if "kind: Builder" in text:
            return Fault(
                "final",
                "obstore does not take the URL; over http:// it wants allow_http in client_options",
            )
        if "HTTP error" in text:
            return Fault("again", "the connection broke")
    kind = "odd" if isinstance(error, o.GenericError) else "final"
    return Fault(kind, cleaned(text, secrets))  # type: ignore[arg-type]
