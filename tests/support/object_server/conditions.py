"""Ranges and preconditions, by RFC 9110, sections 13 and 14."""

from __future__ import annotations

import re
from collections.abc import Mapping

from support.object_server.messages import parse_date
from support.object_server.objects import Info

_one_range = re.compile(r"bytes=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*", re.ASCII | re.IGNORECASE)


class Unsatisfiable(Exception):
    """The range has no byte of the object: 416."""


def parse_range(text: str | None, size: int) -> tuple[int, int] | None:
    """The half-open range of bytes that a header ``Range`` asks of ``size`` bytes.

    None means the whole, as an answer of 200. So are several ranges in one request and what is no
    range at all answered, which the RFC allows, and S3 does.
    """
    match = _one_range.fullmatch(text) if text else None
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        start, stop = max(0, size - int(suffix)), size
    else:
        start, stop = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= stop:
        raise Unsatisfiable
    return start, stop


def _listed(etag: str, header: str, weak: bool) -> bool:
    tags = [tag.strip() for tag in header.split(",")]
    if weak:
        tags = [tag.removeprefix("W/") for tag in tags]
    # Some clients leave the quotes out.
    return etag in tags or etag.strip('"') in tags


def judge(headers: Mapping[str, str], info: Info | None, reading: bool) -> int | None:
    """The status that the preconditions call for instead of an answer: 304, 412 or none.

    ``info`` is the object as it stands, None where there is none. Times are compared in whole
    seconds, as the header Last-Modified says them.
    """
    modified = int(info.modified) if info else 0
    if (match := headers.get("if-match")) is not None:
        if info is None or (match.strip() != "*" and not _listed(info.etag, match, False)):
            return 412
    elif (text := headers.get("if-unmodified-since")) is not None:
        since = parse_date(text)
        if info is not None and since is not None and modified > since:
            return 412
    if (match := headers.get("if-none-match")) is not None:
        if info is not None and (match.strip() == "*" or _listed(info.etag, match, True)):
            return 304 if reading else 412
    elif reading and (text := headers.get("if-modified-since")) is not None:
        since = parse_date(text)
        if info is not None and since is not None and modified <= since:
            return 304
    return None


def range_applies(headers: Mapping[str, str], info: Info) -> bool:
    """Whether ``If-Range``, if sent, still names this version."""
    condition = headers.get("if-range")
    if condition is None:
        return True
    if condition.startswith(('"', "W/")):
        return condition == info.etag
    return parse_date(condition) == int(info.modified)
