"""Stores of obstore, made from a URL and options in the spelling of obstore or of other libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from pageseek.storage.redact import cleaned, secrets_of, shown
from pageseek.storage.retry import BUSY_FACTOR, CONNECT, FIRST_WAIT, LONGEST_BUSY, RetryPolicy

HTTP = ("http", "https")
# names in other libraries -> names of obstore
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
)  # one answer, whole: `read_timeout` finds long before what stalls


def make_store(url: str, options: Mapping[str, Any], policy: RetryPolicy, retries: int) -> Any:
    """A store of obstore, which tries a request again `retries` times."""
    from obstore import store
    from obstore.exceptions import BaseError

    scheme = urlsplit(url).scheme
    config: dict[str, Any] = {}
    around = _environment(scheme)
    # obstore uses those of the environment only where none are given, and we always give some
    client: dict[str, Any] = {name: value for name, value in around.items() if name in CLIENT}
    client |= dict(options.get("client_options") or {})
    more: dict[str, Any] = {}
    for name, value in options.items():
        if scheme not in HTTP:  # environment variables are written in capitals
            name = ALIASES.get(name.lower(), name.lower())
        if name in CLIENT:
            client[name] = value
        elif name in ("credential_provider", "retry_config"):
            more[name] = value
        elif name != "client_options":
            config[name] = value
    addresses = endpoints_in(config) or endpoints_in(around)
    if scheme == "http" or any(address.startswith("http://") for address in addresses):
        client.setdefault("allow_http", True)
    timeout = timedelta(seconds=policy.timeout)
    client.setdefault("read_timeout", timeout)
    client.setdefault("connect_timeout", min(timeout, timedelta(seconds=CONNECT)))
    client.setdefault("timeout", max(timeout, LONGEST_BODY))
    # where obstore tries again, it waits as long as we do for a busy store
    waits = {
        "init_backoff": timedelta(seconds=FIRST_WAIT),
        "max_backoff": timedelta(seconds=LONGEST_BUSY),
        "base": BUSY_FACTOR,
    }
    until = timedelta(seconds=policy.total)
    again = {"max_retries": retries, "backoff": waits, "retry_timeout": until}
    more.setdefault("retry_config", again if retries else {"max_retries": 0})
    try:
        if scheme in HTTP:
            if config:
                raise ValueError(f"{next(iter(config))!r} is no option of HTTP")
            return store.HTTPStore(url, client_options=client, **more)
        return store.from_url(url, config=config, client_options=client, **more)
    except (BaseError, TypeError, ValueError) as error:
        said = cleaned(str(error), secrets_of(options))
        of = "storage_options: " if options else ""
        raise ValueError(f"{shown(url)}: {of}{said}") from None


def _environment(scheme: str) -> dict[str, str]:
    """The options of stores of a scheme in environment variables, by obstore's names."""
    prefix = next((known for known, schemes in VARIABLES.items() if scheme in schemes), None)
    if prefix is None:
        return {}
    return {
        name.lower().removeprefix(prefix): value
        for name, value in os.environ.items()
        if name.lower().startswith(prefix)
    }


def endpoints_in(config: Mapping[str, Any]) -> list[str]:
    """The addresses of servers that options name, in any spelling."""
    names = {name.lower().removeprefix("aws_"): value for name, value in config.items()}
    return [str(names[name]) for name in ("endpoint", "endpoint_url") if names.get(name)]


def accounts_in(config: Mapping[str, Any]) -> list[str]:
    """The accounts of Azure that options name."""
    names = {name.lower(): str(value) for name, value in config.items()}
    return [value for name, value in sorted(names.items()) if name in ACCOUNTS]
