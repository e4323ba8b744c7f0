"""URLs, options and other libraries' errors without their secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

from pageseek.base.late_modules import hashlib

MAX_ERROR_TEXT = 300  # characters of another library's error that are shown
_url = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>,)\]]+")
CONTAINERS = frozenset({"abfs", "abfss"})  # URLs with a container in the place of a user
# parameters of signed URLs of S3 and Google, and of Azure
SIGNED = "x-amz-", "x-goog-"
SAS = frozenset(
    {
        "se", "sig", "sip", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "srt", "ss", "st", "sv",
    }
)  # fmt: skip
_open = frozenset({"true", "false", "none"})


def shown(url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(url)
    user, _, place = parts.netloc.rpartition("@")
    path = parts.path
    if ":" in place and not place.rpartition(":")[2].isdigit() and "@" in path:
        place, slash, path = path.rpartition("@")[2].partition("/")  # a password with a slash in it
        path = slash + path
    if parts.scheme in CONTAINERS and user:
        place = f"{user.partition(':')[0]}@{place}"
    return f"{parts.scheme}://{place}{path}"


def secrets_in(url: str) -> set[str]:
    """User, password and query of a URL."""
    parts = urlsplit(url)
    user = None if parts.scheme in CONTAINERS else parts.username
    return secrets_of([user, parts.password, parts.query])


def shown_path(path: str) -> str:
    """A path on a filesystem, which may be a URL."""
    return shown(path) if "://" in path else path


def telling(url: str) -> str:
    """A digest of what `shown` leaves out of a URL and may tell files apart; "" where there is nothing.

    It leaves out passwords, and signatures, which change from URL to URL of one file.
    """
    if "?" not in url and "@" not in url:
        return ""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    named = parse_qsl(parts.query, keep_blank_values=True)
    shared = SAS if any(name.lower() == "sig" for name, _ in named) else frozenset()
    kept = [
        (name, value)
        for name, value in named
        if not name.lower().startswith(SIGNED) and name.lower() not in shared
    ]
    if parts.scheme in CONTAINERS:
        user = ""
    return digest(user, repr(kept)) if user or kept else ""


def digest(*parts: str) -> str:
    """A digest of texts, which tells them from others and does not reveal them."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def cleaned(text: str, secrets: Iterable[str] = ()) -> str:
    """The first line of a text, with URLs cut to what may be shown and given secrets taken out."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    for secret in sorted(secrets, key=len, reverse=True):
        line = line.replace(secret, "***")
    line = _url.sub(lambda match: shown(match[0]), line)
    return line if len(line) <= MAX_ERROR_TEXT else line[:MAX_ERROR_TEXT] + "..."


def secrets_of(options: object) -> set[str]:
    """The texts, at any depth of options, that may be secrets."""
    if isinstance(options, dict):
        return {secret for value in options.values() for secret in secrets_of(value)}
    if isinstance(options, (list, tuple)):
        return {secret for value in options for secret in secrets_of(value)}
    if isinstance(options, bytes):
        options = options.decode("latin-1")
    if isinstance(options, str) and len(options) > 3 and options.lower() not in _open:
        return {options}
    return set()
