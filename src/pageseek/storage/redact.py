"""What may be said of a URL, an option, or another library's error: never a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

LONGEST = 300  # characters of another library's error that are passed on
_url = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>,)\]]+")
_open = frozenset({"true", "false", "none"})


def shown(url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def cleaned(text: str, secrets: Iterable[str] = ()) -> str:
    """The first line of a text, with URLs cut to what may be shown and given secrets taken out."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    for secret in sorted(secrets, key=len, reverse=True):
        line = line.replace(secret, "***")
    line = _url.sub(lambda match: shown(match[0]), line)
    return line if len(line) <= LONGEST else line[:LONGEST] + "..."


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
