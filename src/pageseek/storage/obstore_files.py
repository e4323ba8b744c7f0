"""Files of S3, Google Cloud Storage, Azure and HTTP servers, opened by obstore.

Every range is tied to the version of its file by the ETag. The first request brings the end of the file, its size and its
version at once.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from pageseek.base import log
from pageseek.base.errors import FileChangedError, PageseekError, StoreError, UnsupportedError
from pageseek.storage.endpoint import Endpoint, endpoint
from pageseek.storage.files import Begun, Files, Needed
from pageseek.storage.folder_markers import without_markers
from pageseek.storage.obstore_faults import fault_of
from pageseek.storage.obstore_options import HTTP, VARIABLES, accounts_in, endpoints_in, make_store
from pageseek.storage.redact import digest, secrets_of, shown, telling
from pageseek.storage.remote import STREAMED, Answer, RemoteStore, room_for
from pageseek.storage.requests import Wave, begin, given_up
from pageseek.storage.retry import (
    Attempts,
    Fault,
    OddAnswerError,
    Retries,
    RetryPolicy,
    status_in,
)
from pageseek.storage.store import Buffer, Known, Version

SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "azure": "azure", "adl": "adl"} | {
    name: name for name in ("abfs", "abfss", *HTTP)
}  # fmt: skip
REFUSED = (403, 501)  # what servers answer to a kind of request that they do not take
NAMES = 1000  # of one answer of a store that lists
COPY_SECONDS = 600.0  # that a store may take to copy an object
STORES = 64  # of obstore, kept, with their connections

_first_use: int | None = None  # the process that obstore was first used in
_stores: OrderedDict[tuple[object, ...], Any] = OrderedDict()
_lock = threading.Lock()
_gates: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()  # by event loop
T = TypeVar("T")


def _guard() -> None:
    """Refuse to use obstore in a forked process, where it would hang without its threads."""
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
        """The bucket or server, without secrets."""
        place = next(iter(endpoints_in(self._config)), "")
        prefix = getattr(self.given, "prefix", None) or ""
        return f"{self.base}{'@' + shown(place) if place else ''}{'/' + prefix if prefix else ''}"

    @property
    def key(self) -> str:
        """A text that tells buckets and servers apart, and the queries of their URLs."""
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

    def may_have(self, url: str, path: str) -> bool:
        """Whether a URL may mean a path here. In buckets that the user has opened, any host may be theirs."""
        if not self.lasting:
            return True
        parts, prefix = urlsplit(url), str(getattr(self.given, "prefix", None) or "").strip("/")
        whole = "/".join(filter(None, (prefix, path.strip("/"))))
        mine = self.given is not None or urlsplit(self.url).netloc == parts.netloc
        return mine and parts.path.strip("/") == whole

    def place_of(self, scheme: str, bucket: str, path: str) -> str | None:
        """Of a bucket that the user has opened."""
        mine, _, name = self.url.partition("://")
        same = SCHEMES.get(mine, "") == SCHEMES.get(scheme) and name == bucket.partition("@")[0]
        if self.given is None or not same:
            return None
        prefix = str(getattr(self.given, "prefix", None) or "").strip("/")
        start = f"{prefix}/" if prefix else ""
        return path[len(start) :] if path.startswith(start) else None

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
        store._opened(known.version, known)
        return store

    def store(self, retry_policy: RetryPolicy, tries_again: bool = False) -> Any:
        """The store of obstore: one for all files and scans with equal options, which keeps its connections.

        `tries_again`: obstore repeats failed requests itself, for operations that are many requests.
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
        listed = ((one["path"], one["size"]) for one in self._below(folder, retry_policy))

        def is_file(path: str) -> bool:
            import obstore

            try:
                obstore.head(self.store(retry_policy), path)
            except FileNotFoundError:
                return False
            return True

        return without_markers(listed, is_file)

    def times_below(self, folder: str, retry_policy: RetryPolicy) -> dict[str, float]:
        return {
            one["path"]: one["last_modified"].timestamp()
            for one in self._below(folder, retry_policy)
        }

    def _below(self, folder: str, retry_policy: RetryPolicy) -> Iterator[Any]:
        """What a listing tells of all files below a folder."""
        import obstore

        if self.is_http:
            raise UnsupportedError(
                f"{self.name(folder)}: HTTP servers do not tell what is in a folder: give the files as a list"
            )
        for page in obstore.list(self.store(retry_policy), folder or None):
            if given_up():
                raise StoreError(f"{self.name(folder)}: given up, nobody waits for it any more")
            yield from page

    @property
    def is_http(self) -> bool:
        """Whether it is a web server, which knows no buckets."""
        return self.url.startswith(HTTP) or "HTTP" in type(self.given).__name__

    @property
    def lists_versions(self) -> bool:
        return not self.is_http

    def find_versions(
        self, folder: str, paths: Sequence[str], most: int, retry_policy: RetryPolicy
    ) -> tuple[dict[str, Version], int]:
        import obstore

        found: dict[str, Version] = {}
        missing, pages, seen = set(paths), 0, 0
        listed = obstore.list(
            self.store(retry_policy),
            folder or None,
            offset=paths[0][:-1] or None,  # names behind it come
            chunk_size=NAMES,
        )
        for page in listed:
            if given_up():
                raise StoreError(f"{self.name(folder)}: given up, nobody waits for it any more")
            pages += 1
            seen += len(page)
            for one in page:
                if one["path"] in missing:
                    missing.remove(one["path"])
                    found[one["path"]] = version_of(one)
            if not missing or seen >= most:
                break
        return found, max(pages, 1)

    def list_in(self, folder: str, retry_policy: RetryPolicy) -> Iterable[str]:
        import obstore

        pages = obstore.list(self.store(retry_policy), folder)
        return (one["path"] for page in pages for one in page)

    def looks_like_file(self, path: str) -> bool:
        """Whether it lies on an HTTP server, which has no folders."""
        return self.url.startswith(HTTP)

    def move(self, path: str, to: str) -> None:
        """Give an object another name: the store copies it."""
        import obstore

        obstore.rename(self.store(RetryPolicy(0, COPY_SECONDS)), path, to)


def of_url(url: str, options: Mapping[str, Any]) -> tuple[ObstoreFiles, str]:
    """The bucket or server that a URL names, and the path there."""
    parts, options = urlsplit(url), dict(options)
    scheme = SCHEMES[parts.scheme]
    if scheme in HTTP:
        # a query, such as a signature, belongs to this path; and obstore cannot spell every path
        if parts.query or not _spelled(parts.path):
            return ObstoreFiles(url.partition("#")[0], options), ""
        return ObstoreFiles(f"{scheme}://{parts.netloc}", options), unquote(parts.path).lstrip("/")
    # a key may hold any character, "?" and "#" too
    path = url.partition("://")[2].partition("/")[2]
    return ObstoreFiles(f"{scheme}://{parts.netloc}", options), path


def _spelled(path: str) -> bool:
    """Whether the path of a URL is the same when it is decoded, and encoded again by obstore."""
    decoded = unquote(path).removeprefix("/")
    names = decoded.split("/")
    same = len(names) == path.count("/") and "\ufffd" not in decoded
    return same and not {"", ".", ".."}.intersection(names)


def of_store(store: Any) -> ObstoreFiles:
    """The bucket or server of a store that the user has made."""
    kind = type(store).__name__
    config = getattr(store, "config", None) or {}
    where = config.get("bucket") or config.get("container_name") or ""
    if hasattr(store, "url"):
        return ObstoreFiles(store.url.rstrip("/"), given=store)
    scheme = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}.get(kind)
    if scheme is None:  # a store of this process or this machine
        return ObstoreFiles(f"{kind.removesuffix('Store').lower()}://{id(store):x}", given=store)
    return ObstoreFiles(f"{scheme}://{where}", given=store)


def is_store(given: object) -> bool:
    """Whether an object is a store of obstore, which is not imported for that."""
    modules = [kind.__module__ for kind in type(given).__mro__]
    return any(name.startswith("obstore") for name in modules) and "fsspec.spec" not in modules


# ---- one file


class ObstoreStore(RemoteStore):
    """An object, of one version. The version is weak where the store gives no strong ETag."""

    _files: ObstoreFiles
    asynchronous = True

    def __init__(self, files: ObstoreFiles, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files, path, retry_policy)
        files.store(retry_policy)  # here obstore refuses options that it does not take

    # ---- opening

    def begin(self, known: Known | None, needed: Needed | None) -> Wave[tuple[Version, Any]]:
        """Begin to ask for the version and the last bytes: as many as are `needed`, or those of one request (None)."""
        attempt = partial(self._first, known)
        if needed is not None:
            attempt = partial(self._end, known, needed)
        # files are opened ahead with `needed`: reads of open files overtake that
        return begin(self._endpoint, [self._task(attempt, "its end")], hurry=needed is None)

    def _end(self, known: Known | None, needed: Needed) -> tuple[Version, Any]:
        version, tail = self._first(known)
        if known is not None and version == known.version:
            return version, tail
        self.version, size = version, version.size
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
        """The version and the last bytes, in one request where the store can; no bytes where it is the known version."""
        from obstore import exceptions

        wanted = self.tail_bytes
        unless = etag_of(known.version) if known is not None else None
        begun = time.monotonic()
        self.requests = 1  # those of earlier attempts are counted as retries
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
            # the store has no suffix ranges (Azure), or the file has no bytes
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
        match = self.version.tag if self.version.strong else None
        answer, first = self._ask((offset, offset + length), if_match=match)
        start, version = answer.range[0], version_of(answer.meta)
        return Answer(self._body(answer, into), start, version, first)

    def _body(self, answer: Any, into: memoryview | None = None) -> Buffer:
        """The bytes of an answer. Those of a long one are taken as they come, so that it ends when it is given up."""
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
        """Ask for the head; where a web server refuses that, as it does for a URL that is signed for GET, for a byte."""
        import obstore
        from obstore import exceptions

        try:
            return version_of(obstore.head(self._files.store(self._retry_policy), self._path))
        except (
            exceptions.BaseError,
            FileNotFoundError,
        ) as error:  # obstore takes 405 for the latter
            refused = isinstance(error, FileNotFoundError) or status_in(str(error)) in REFUSED
            if not (self._files.is_http and refused):
                raise
            try:
                answer, _ = self._ask((0, 1))
            except (exceptions.BaseError, FileNotFoundError):
                raise error from None  # the file has no byte, or may not be read either
            return version_of(answer.meta)

    # ---- coroutines

    async def read_async(self, ranges: Sequence[tuple[int, int]], retries: Retries) -> list[Buffer]:
        from pageseek.base.coroutines import together  # late: asyncio takes long to import

        return await together([self._read_async(*place, retries) for place in ranges])

    async def _read_async(self, offset: int, length: int, retries: Retries) -> Buffer:
        if not length:
            return b""
        attempt = partial(self._checked_async, offset, length)
        try:
            return await self._tried(attempt, f"{length} bytes at {offset}", retries)
        except FileNotFoundError as error:
            raise FileChangedError(
                f"{self.name}: the file was there when it was opened, and is not any more"
            ) from error

    async def _checked_async(self, offset: int, length: int) -> Buffer:
        begun = time.monotonic()
        match = self.version.tag if self.version.strong else None
        answer, first = await self._ask_async((offset, offset + length), if_match=match)
        data = await answer.bytes_async()
        made = Answer(data, answer.range[0], version_of(answer.meta), first)
        return self._accepted(made, time.monotonic() - begun, offset, length)

    async def confirm_async(self, retries: Retries) -> None:
        began = log.begun()
        await self._tried(self._look_again, "its version", retries)
        log.requested(self.name, "version", (), 1, began)

    async def _look_again(self) -> None:
        from obstore import exceptions

        try:
            answer, _ = await self._ask_async((0, 1), if_none_match=etag_of(self.version))
        except exceptions.NotModifiedError:
            return
        self._compare(version_of(answer.meta))

    async def _ask_async(self, wanted: object, **conditions: str | None) -> tuple[Any, float]:
        import obstore

        options = {name: value for name, value in conditions.items() if value is not None}
        begun = time.monotonic()
        store = self._files.store(self._retry_policy)
        answer = await obstore.get_async(store, self._path, options={"range": wanted, **options})
        return answer, time.monotonic() - begun

    async def _tried(
        self, attempt: Callable[[], Coroutine[Any, Any, T]], what: str, retries: Retries
    ) -> T:
        """The result of an attempt, which waits for a place among the requests in flight, and is repeated as `with_retries` does."""
        import asyncio

        attempts = Attempts(self._fault, self.name, what, self._retry_policy)
        while True:
            try:
                async with _gate(self._endpoint):
                    return await attempt()
            except PageseekError:
                raise
            except Exception as error:  # noqa: BLE001 - obstore raises anything
                failure = error
            wait = attempts.wait_after(failure)
            del failure  # its traceback refers to this frame
            await asyncio.sleep(wait)
            retries.add(wait)

    # ---- the version

    def _confirm(self) -> None:
        """Ask by a range, which a signed URL allows. Its byte is sent only where the version is another one."""
        from obstore import exceptions

        try:
            answer, _ = self._ask((0, 1), if_none_match=etag_of(self.version))
        except exceptions.NotModifiedError:
            return
        self._compare(version_of(answer.meta))

    def attributes(self) -> dict[str, str]:
        """Content-Type and the like, and the metadata of users."""
        answer = self.ask(self._described, "its attributes")
        return {str(name): str(value) for name, value in answer.attributes.items()}

    def revision(self) -> dict[str, str]:
        """The condition by which a store replaces this version of an object and no other (obstore.UpdateVersion).

        Raises FileChangedError where the object is another version now.
        """
        answer = self.ask(self._described, "its version")
        self._compare(version_of(answer.meta))
        found = {"e_tag": answer.meta["e_tag"], "version": answer.meta["version"]}
        return {name: value for name, value in found.items() if value is not None}

    def _described(self) -> Any:
        answer, _ = self._ask((0, 1), if_match=etag_of(self.version))
        return answer


class Opening:
    """A file whose opening has begun."""

    def __init__(self, store: ObstoreStore, known: Known | None, needed: Needed | None) -> None:
        self._store, self._known, self._began = store, known, log.begun()
        self._wave = store.begin(known, needed)

    def __call__(self) -> ObstoreStore:
        try:
            ((version, tail),) = self._wave.wait()
        except FileNotFoundError as error:
            raise self._store.missing(error) from None
        self._store._opened(version, self._known, tail)
        self._store._log_opening(self._began)
        return self._store

    def give_up(self) -> None:
        self._wave.give_up()


def _gate(endpoint: Endpoint) -> Any:
    """Lets as many coroutines of an event loop through as an endpoint may have requests in flight."""
    import asyncio

    gates = _gates.setdefault(asyncio.get_running_loop(), {})
    return gates.setdefault(endpoint.key, asyncio.Semaphore(endpoint.in_flight))


def version_of(meta: Any) -> Version:
    size, etag, when = meta["size"], meta["e_tag"], meta["last_modified"]
    if etag is not None:
        return Version(size, etag, not etag.startswith("W/"))
    dated = isinstance(when, datetime) and when.timestamp() > 0
    return Version(size, f"{size}:{when.timestamp() if dated else ''}", False, dated)


def etag_of(version: Version) -> str | None:
    """The strong ETag of a version, if it has one."""
    return version.tag if version.strong else None
