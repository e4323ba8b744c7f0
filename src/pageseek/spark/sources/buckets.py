"""Buckets of S3 as the session's Hadoop settings say to reach them: `fs.s3a.*`, and `fs.s3a.bucket.NAME.*` for one bucket."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pageseek.spark.session.hadoop import Hadoop
from pageseek.storage import RetryPolicy
from pageseek.storage.urls import from_url, installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = "fs.s3a."
_SCHEMES = ("s3", "s3a")
_CENTRAL = "s3.amazonaws.com"
_AMAZON = re.compile(r"s3[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_HOST_NAME = re.compile(r"[a-z0-9][a-z0-9-]*[a-z0-9]")
# names of obstore -> those of pyarrow's S3FileSystem, for options that both have
_OF_PYARROW = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "region": "region",
    "skip_signature": "anonymous",
}


def reached(
    spark: SparkSession, source: Any, given: Mapping[str, Any] | None
) -> tuple[Any, Mapping[str, Any] | None]:
    """A source, and the storage options by which it is reached: those that are given, or what the session says of its buckets.

    The URLs of buckets that have different options come back as pairs with what opens them.
    """
    if given is not None:
        return source, given
    buckets = {urlsplit(url).netloc for url in _urls(source)}
    if not buckets:
        return source, None
    settings = Hadoop(spark)
    found = {bucket: _options(settings, bucket) for bucket in buckets}
    first, *others = found.values()
    if all(one == first for one in others):
        return source, first or None
    return _opened(source, found), None


def _urls(source: Any) -> Iterator[str]:
    """The URLs of S3 in a source."""
    if isinstance(source, str):
        if urlsplit(source).scheme in _SCHEMES:
            yield source
    elif isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray, memoryview)):
        for one in source:
            yield from _urls(one)


def _opened(source: Any, options: Mapping[str, Mapping[str, Any]]) -> Any:
    """The source with each of its URLs of S3 as a pair of what opens it and the path there."""
    if isinstance(source, str):
        parts = urlsplit(source)
        if parts.scheme not in _SCHEMES:
            return source
        return from_url(source, parts.scheme, options[parts.netloc], RetryPolicy())
    if isinstance(source, Sequence):
        return [_opened(one, options) for one in source]
    return source


def _options(settings: Hadoop, bucket: str) -> dict[str, Any]:
    """The options of the library that opens a bucket; empty where the session says nothing of it."""

    def get(name: str) -> str:
        return settings.get(f"{SETTINGS}bucket.{bucket}.{name}") or settings.get(SETTINGS + name)

    made = _credentials(settings, bucket, get("aws.credentials.provider"))
    address, region = get("endpoint"), get("endpoint.region")
    secure = get("connection.ssl.enabled").lower() != "false"
    scheme, _, host = address.rpartition("://")
    host, scheme = host.rstrip("/"), scheme or ("https" if secure else "http")
    amazon = _AMAZON.fullmatch(host)
    if region or amazon:
        made["region"] = region or (amazon[1] if amazon else "")
    by_path = get("path.style.access").lower() == "true" or not _is_host(bucket, host)
    if installed("obstore"):
        if host not in ("", _CENTRAL):
            made["endpoint"] = f"{scheme}://{host if by_path else f'{bucket}.{host}'}"
            made["virtual_hosted_style_request"] = not by_path
        return made
    made = {_OF_PYARROW[name]: value for name, value in made.items()}
    if host not in ("", _CENTRAL):
        made |= {"endpoint_override": host, "scheme": scheme}
        made["force_virtual_addressing"] = not by_path
    return made


def _credentials(settings: Hadoop, bucket: str, providers: str) -> dict[str, Any]:
    """The credentials of the first provider in Hadoop's list that has some; none where the environment has to have them."""

    def get(name: str) -> str:
        own = settings.secret(f"{SETTINGS}bucket.{bucket}.{name}")
        return own or settings.secret(SETTINGS + name)

    listed = [name.rpartition(".")[2] for name in re.split(r"[\s,]+", providers) if name]
    keys: dict[str, Any] = {}
    if key := get("access.key"):
        keys = {"access_key_id": key, "secret_access_key": get("secret.key")}
    token = get("session.token")
    for name in listed or ("TemporaryAWSCredentialsProvider", "SimpleAWSCredentialsProvider"):
        if name == "AnonymousAWSCredentialsProvider":
            return {"skip_signature": True}
        if name == "TemporaryAWSCredentialsProvider":
            if keys and token:
                return {**keys, "session_token": token}
        elif name == "SimpleAWSCredentialsProvider":
            if keys:
                return keys
        else:
            break
    return {}


def _is_host(bucket: str, host: str) -> bool:
    """Whether a bucket may stand before the name of a server: Amazon's clients write it into the path otherwise."""
    try:
        ipaddress.ip_address(host.rpartition(":")[0] or host)
    except ValueError:
        return _HOST_NAME.fullmatch(bucket) is not None
    return False
