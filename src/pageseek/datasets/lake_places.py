"""Where the files of a table lie: sources from the URLs in its log, and the options of its object."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from pageseek.base.errors import UnsupportedError
from pageseek.storage.files import Files
from pageseek.storage.hive import Partitions
from pageseek.storage.obstore_options import HTTP
from pageseek.storage.resolve import Source
from pageseek.storage.retry import RetryPolicy

# options of writers, which say nothing of access
_OF_WRITERS = (
    "backoff", "concurrency", "conditional_put", "copy_if_not_exists", "delta_", "dynamo", "locking",
    "max_retries", "retry", "unsafe_rename",
)  # fmt: skip
# names of pyiceberg -> names of obstore; where two mean one, the first counts
_OF_ICEBERG = {
    "s3.endpoint": "endpoint",
    "s3.access-key-id": "access_key_id",
    "client.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "client.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
    "client.session-token": "session_token",
    "s3.region": "region",
    "client.region": "region",
    "s3.anonymous": "skip_signature",
    "s3.force-virtual-addressing": "virtual_hosted_style_request",
    "adls.account-name": "account_name",
    "adls.account-key": "account_key",
    "adls.sas-token": "sas_token",
    "adls.tenant-id": "tenant_id",
    "adls.client-id": "client_id",
    "adls.client-secret": "client_secret",
}
_BY_SCHEME = {"s3": "s3.", "gs": "gcs.", "abfs": "adls.", "wasb": "adls."}


def delta_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of a Delta table, by names of the library that it shares with obstore, without those of writers."""
    found = {}
    for name, value in (given or {}).items():
        if not any(word in name.lower() for word in _OF_WRITERS):
            found[name.lower().removeprefix("aws_")] = value
    return found


def iceberg_options(given: Mapping[str, Any], scheme: str) -> dict[str, Any]:
    """The properties of an Iceberg table's files of a scheme, by obstore's names."""
    prefix = next((p for start, p in _BY_SCHEME.items() if scheme.startswith(start)), "")
    if given.get("s3.signer") and prefix == "s3.":
        raise UnsupportedError(
            "requests that the catalog signs (s3.signer) are not supported: give storage_options"
        )
    found: dict[str, Any] = {}
    for name, ours in _OF_ICEBERG.items():
        ours_too = name.startswith((prefix, "client.") if prefix == "s3." else prefix or "\0")
        if ours_too and given.get(name) is not None:
            found.setdefault(ours, str(given[name]))
    return found


class Places:
    """The files of one table.

    Parameters
    ----------
    table : str
        Its name in errors.
    options : callable
        The options of a store, by the scheme of its URLs.
    files, base : optional
        What opens the files whose URLs begin so, and others of its buckets.
    """

    def __init__(
        self,
        table: str,
        options: Callable[[str], Mapping[str, Any]],
        retry_policy: RetryPolicy,
        files: Files | None = None,
        base: str = "",
    ) -> None:
        self._table, self._options, self._retry_policy = table, options, retry_policy
        self._files, self._base = files, base
        self._known: dict[str, tuple[Files, str]] = {}  # by scheme and host

    def source(self, url: str, partitions: Partitions, encoded: bool = True) -> Source:
        """The file of a URL, or of a local path, which may be percent-encoded."""
        table = self._table
        if "?" in url and (scheme := url.partition("://")[0]) in HTTP:
            # a query, such as a signature, belongs to this file alone
            files, path = self._opened(scheme, url)
            return Source(path, files, None, partitions, self._retry_policy, (), table)
        if self._base and url.startswith(self._base):
            path = url[len(self._base) :]
            return Source(path, self._files, None, partitions, self._retry_policy, (), table)
        scheme, colon, rest = url.partition(":")
        if not colon or "/" in scheme or len(scheme) == 1:
            return Source(os.path.abspath(url), partitions=partitions, table=table)
        if scheme == "file":
            path = urlsplit(url).path if encoded else "/" + rest.lstrip("/")
            return Source(
                os.path.abspath(unquote(path) if encoded else path),
                partitions=partitions,
                table=table,
            )
        host, _, path = rest.lstrip("/").partition("/")
        path = unquote(path) if encoded else path
        mine = None if self._files is None else self._files.place_of(scheme, host, path)
        if mine is not None:
            return Source(mine, self._files, None, partitions, self._retry_policy, (), table)
        root = f"{scheme}://{host}"
        if root not in self._known:
            self._known[root] = self._open(scheme, root)
        files, before = self._known[root]
        return Source(before + path, files, None, partitions, self._retry_policy, (), table)

    def _open(self, scheme: str, root: str) -> tuple[Files, str]:
        """What opens the files of a bucket, and the beginning of their paths."""
        known = {"s3n": "s3a", "wasb": "abfs", "wasbs": "abfss"}.get(scheme, scheme)
        files, path = self._opened(known, known + root[len(scheme) :] + "/-")
        return files, path.removesuffix("-")

    def _opened(self, scheme: str, url: str) -> tuple[Files, str]:
        from pageseek.storage.urls import from_url

        try:
            return from_url(url, scheme, self._options(scheme), self._retry_policy)
        except (UnsupportedError, ValueError) as error:
            raise UnsupportedError(
                f"{self._table}: its files lie at {scheme}://: {error}; or give the files by (filesystem, path)"
            ) from None


def iceberg_places(
    table: str, io: Any, options: Mapping[str, Any] | None, retry_policy: RetryPolicy
) -> Places:
    """The files of an Iceberg table, which pyiceberg opens by `io`. `options`: of their store; None: those of `io`."""
    own = dict(getattr(io, "properties", None) or {})
    made = partial(iceberg_options, own) if options is None else lambda _: options
    return Places(table, made, retry_policy)
