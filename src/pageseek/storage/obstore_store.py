"""One object that obstore opens: every range is tied to the version by its ETag, and the first request brings the end of
the file, its size and its version at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pageseek.base.errors import StoreError
from pageseek.storage.endpoint import Endpoint
from pageseek.storage.files import Files, Needed
from pageseek.storage.listing import missing
from pageseek.storage.redact import cleaned, secrets_of
from pageseek.storage.remote import STREAMED, Answer, RemoteStore, room_for
from pageseek.storage.requests import Wave, begin, given_up, issue
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

ADVICE = ', or for a public bucket storage_options={"skip_signature": True}'
# who is asked for credentials where none were given, and is not there or refuses
_credentials = re.compile(
    r"performing \w+ https?://(169\.254\.|metadata\.google\.internal|sts\.|login\.microsoftonline)"
    r"|^Generic \w+ error: (no|missing)\b.*credential",
    re.IGNORECASE,
)
_asked_range = re.compile(r"Requested (\d+)\.\.(\d+), got (\d+)\.\.(\d+)")


class Bucket(Files):
    """One bucket, container or server, as a store of it needs it: `obstore_files` has the only kind."""

    __slots__ = ()
    if TYPE_CHECKING:
        url: str
        options: Mapping[str, Any]

    @property
    def endpoint(self) -> Endpoint:
        """What is known of the far end."""
        raise NotImplementedError

    def store(self, retry_policy: RetryPolicy, tries_again: bool = False) -> Any:
        """The object of obstore that makes the requests."""
        raise NotImplementedError


class ObstoreStore(RemoteStore):
    """An object, of one version. Where the store gives no ETag that may be asked for, the version is weak."""

    def __init__(self, files: Bucket, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files.name(path), path, files.endpoint, retry_policy)
        self._files, self._path = files, path
        self._secrets = secrets_of(dict(files.options)) | {
            part for part in (urlsplit(files.url).password, urlsplit(files.url).query) if part
        }
        self._match: str | None = None
        files.store(retry_policy)  # options that it does not take are no fault of a request

    # ---- opening

    def begin(self, known: Known | None, needed: Needed | None) -> Wave[tuple[Version, Any]]:
        """Ask for version and last bytes, where it is said for as many as are `needed`; both are for `opened`."""
        attempt = partial(self._first, known)
        if needed is not None:
            attempt = partial(self._end, known, needed)
        # of files that are opened ahead the reads of others may be wanted sooner
        return begin(self._endpoint, [self._asked(attempt, "its end")], hurry=needed is None)

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
        store = self._files.store(self._patience)
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

        return version_of(obstore.head(self._files.store(self._patience), self._path))

    def _confirm(self) -> None:
        """By a range, which a URL that is signed allows: as a rule it is not sent."""
        from obstore import exceptions

        try:
            answer, _ = self._ask((0, 1), if_none_match=self._match)
        except exceptions.NotModifiedError:
            return
        now = version_of(answer.meta)
        if now != self.version:
            raise self._changed(now)

    def attributes(self) -> dict[str, str]:
        """Content-Type and the like, and what users have said of the object."""
        (answer,) = issue(self._endpoint, [self._asked(self._described, "its attributes")])
        return {str(name): str(value) for name, value in answer.attributes.items()}

    def revision(self) -> dict[str, str]:
        """By what a store tells that an object is still of this version when it is to be replaced (obstore.UpdateVersion).

        Raises FileChangedError where it is of another one now.
        """
        (answer,) = issue(self._endpoint, [self._asked(self._described, "its version")])
        now = version_of(answer.meta)
        if now != self.version:
            raise self._changed(now)
        found = {"e_tag": answer.meta["e_tag"], "version": answer.meta["version"]}
        return {name: value for name, value in found.items() if value is not None}

    def _described(self) -> Any:
        answer, _ = self._ask((0, 1), if_match=self._match)
        return answer

    def missing(self, error: FileNotFoundError) -> FileNotFoundError:
        """The error, where nothing lies there, with what else the name may be."""
        return missing(error, self._files, self._path)

    def _fault(self, error: Exception) -> Fault:
        return fault_of(error, self._secrets)


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


class Listing(RemoteStore):
    """A folder that is asked for what it holds."""

    def __init__(self, files: Bucket, prefix: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files.name(prefix), prefix, files.endpoint, retry_policy)
        self._files, self._prefix = files, prefix
        self._secrets = secrets_of(dict(files.options))

    def all(self) -> list[str]:
        """Every path below."""
        import obstore

        store = self._files.store(self._patience)
        pages = obstore.list(store, self._prefix or None)
        found: list[str] = []
        for page in pages:
            if given_up():
                raise StoreError(f"{self.name}: given up, nobody waits for it any more")
            found += [one["path"] for one in page]
        return found

    def _fault(self, error: Exception) -> Fault:
        return fault_of(error, self._secrets)


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
