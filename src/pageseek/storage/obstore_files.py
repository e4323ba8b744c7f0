"""What opens files of S3, Google Cloud Storage, Azure and HTTP servers through obstore: a URL and its options, in whatever
way other libraries spell them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from pageseek.base.errors import UnsupportedError
from pageseek.storage.endpoint import Endpoint, endpoint
from pageseek.storage.files import Begun, Needed
from pageseek.storage.obstore_store import (
    Bucket,
    Listing,
    ObstoreStore,
    Opening,
)
from pageseek.storage.redact import cleaned, digest, secrets_of, shown, telling
from pageseek.storage.requests import issue
from pageseek.storage.retry import (
    BUSY_FACTOR,
    FIRST_WAIT,
    LONGEST_BUSY,
    RetryPolicy,
)
from pageseek.storage.store import Known

HTTP = ("http", "https")
SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "azure": "azure", "adl": "adl"} | {
    name: name for name in ("abfs", "abfss", *HTTP)
}  # fmt: skip
# what other libraries call the same
ALIASES = {
    "anon": "skip_signature",
    "anonymous": "skip_signature",
    "endpoint_url": "endpoint",
    "endpoint_override": "endpoint",
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "requester_pays": "request_payer",
}
CLIENT = frozenset(
    {
        "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type",
        "default_headers", "http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle", "http2_only", "pool_idle_timeout", "pool_max_idle_per_host",
        "proxy_url", "proxy_ca_certificate", "proxy_excludes", "root_certificate",
        "randomize_addresses", "read_timeout", "timeout", "user_agent",
    }
)  # fmt: skip
VARIABLES = {
    "aws_": ("s3", "s3a"),
    "google_": ("gs", "gcs"),
    "azure_": ("abfs", "abfss", "az", "adl", "azure"),
}
ACCOUNTS = frozenset({"account_name", "azure_storage_account_name", "azure_account_name"})
LONGEST_BODY = timedelta(
    minutes=15
)  # one answer, whole: what stalls is found by `timeout` long before
CONNECT = 5.0  # seconds at most until a connection stands
STORES = 64  # of obstore, kept, with their connections

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
class ObstoreFiles(Bucket):
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
        place = next(iter(_endpoints(self._config)), "")
        prefix = getattr(self.given, "prefix", None) or ""
        return f"{self.base}{'@' + shown(place) if place else ''}{'/' + prefix if prefix else ''}"

    @property
    def key(self) -> str:
        """Tells buckets and servers apart, and what queries ask of these."""
        told = telling(self.url)
        more = [told] if told else []
        if self.url.startswith(VARIABLES["azure_"]):
            more += _accounts(self._config)
        return f"{self._place}#{digest(*more)}" if more else self._place

    @property
    def lasting(self) -> bool:
        scheme = self.url.partition("://")[0]
        return scheme in SCHEMES or scheme in HTTP

    @property
    def bound(self) -> bool:
        return not self.lasting

    @property
    def endpoint(self) -> Endpoint:
        parts = urlsplit(self._place)
        where = self._place if parts.scheme not in HTTP else f"{parts.scheme}://{parts.netloc}"
        return endpoint(where)

    def name(self, path: str) -> str:
        """A file there, as it may be shown."""
        if urlsplit(self.url).query:
            return self.base
        prefix = getattr(self.given, "prefix", None)
        return "/".join(part for part in (self.base.rstrip("/"), prefix, path) if part)

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
            found = self._make(retry_policy, retry_policy.retries if tries_again else 0)
        with _lock:
            _stores[what] = found
            if len(_stores) > STORES:
                _stores.popitem(last=False)
        return found

    def _make(self, retry_policy: RetryPolicy, retries: int) -> Any:
        from obstore import store
        from obstore.exceptions import BaseError

        parts = urlsplit(self.url)
        config: dict[str, Any] = {}
        around = _environment(parts.scheme)
        # obstore takes those of the environment only where none are given, and some always are
        client: dict[str, Any] = {name: value for name, value in around.items() if name in CLIENT}
        client |= dict(self.options.get("client_options") or {})
        more: dict[str, Any] = {}
        for name, value in self.options.items():
            if parts.scheme not in HTTP:  # environment variables are written in capitals
                name = ALIASES.get(name.lower(), name.lower())
            if name in CLIENT:
                client[name] = value
            elif name in ("credential_provider", "retry_config"):
                more[name] = value
            elif name != "client_options":
                config[name] = value
        ends = _endpoints(config) or _endpoints(around)
        plain = any(end.startswith("http://") for end in ends)
        if parts.scheme == "http" or plain:
            client.setdefault("allow_http", True)
        client.setdefault("read_timeout", timedelta(seconds=retry_policy.timeout))
        client.setdefault("connect_timeout", timedelta(seconds=min(retry_policy.timeout, CONNECT)))
        client.setdefault("timeout", max(LONGEST_BODY, timedelta(seconds=retry_policy.timeout)))
        # no retries: one place tries again, ours; else the waits are those that a busy store is given
        waits = {
            "init_backoff": timedelta(seconds=FIRST_WAIT),
            "max_backoff": timedelta(seconds=LONGEST_BUSY),
            "base": BUSY_FACTOR,
        }
        until = timedelta(seconds=retry_policy.total)
        again = {"max_retries": retries, "backoff": waits, "retry_timeout": until}
        more.setdefault("retry_config", again if retries else {"max_retries": 0})
        try:
            if parts.scheme in HTTP:
                if config:
                    raise ValueError(f"{next(iter(config))!r} is no option of HTTP")
                return store.HTTPStore(self.url, client_options=client, **more)
            return store.from_url(self.url, config=config, client_options=client, **more)
        except (BaseError, TypeError, ValueError) as error:
            said = cleaned(str(error), secrets_of(self.options))
            raise ValueError(f"{self.base}: storage_options: {said}") from None

    def find(self, prefix: str, retry_policy: RetryPolicy) -> list[str]:
        """The paths of all objects below a folder."""
        if self.url.startswith(HTTP) or (
            self.given is not None and "HTTP" in type(self.given).__name__
        ):
            raise UnsupportedError(
                f"{self.name(prefix)}: HTTP servers do not tell what is in a folder: give the files as a list"
            )
        asked = Listing(self, prefix, retry_policy)
        (found,) = issue(asked._endpoint, [asked._asked(asked.all, "what is in it")])
        return found

    def looks_like_file(self, path: str) -> bool:
        """Over HTTP everything is, since there are no folders."""
        return self.url.startswith(HTTP)


def _environment(scheme: str) -> dict[str, str]:
    """What environment variables say to obstore of the stores of a scheme, by the names of its options."""
    prefix = next((known for known, schemes in VARIABLES.items() if scheme in schemes), None)
    if prefix is None:
        return {}
    return {
        name.lower().removeprefix(prefix): value
        for name, value in os.environ.items()
        if name.lower().startswith(prefix)
    }


def _endpoints(config: Mapping[str, Any]) -> list[str]:
    """The addresses that options name, however they spell that."""
    names = {name.lower().removeprefix("aws_"): value for name, value in config.items()}
    return [str(names[name]) for name in ("endpoint", "endpoint_url") if names.get(name)]


def _accounts(config: Mapping[str, Any]) -> list[str]:
    """The accounts, of Azure, that options name."""
    names = {name.lower(): str(value) for name, value in config.items()}
    return [value for name, value in sorted(names.items()) if name in ACCOUNTS]


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
