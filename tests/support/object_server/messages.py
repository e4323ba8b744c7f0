"""What goes in and out of the server: requests, answers, and the contents of bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from typing import Protocol
from xml.sax.saxutils import escape


class Content(Protocol):
    """The bytes of one version of an object; open until closed, whatever happens to its name."""

    size: int

    def read(self, start: int, length: int) -> bytes | memoryview: ...

    def close(self) -> None: ...


class Bytes:
    """Content that lies in memory."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.size = len(data)

    def read(self, start: int, length: int) -> memoryview:
        return self._data[start : start + length]

    def close(self) -> None:
        pass


class Inverted:
    """Other content of the same size: what an answer of another version carries."""

    _table = bytes(255 - value for value in range(256))

    def __init__(self, content: Content) -> None:
        self._content = content
        self.size = content.size

    def read(self, start: int, length: int) -> bytes:
        return bytes(self._content.read(start, length)).translate(self._table)

    def close(self) -> None:
        self._content.close()


@dataclass(slots=True)
class Request:
    """One request, read whole. Names of headers are in lower case.

    ``path`` is decoded and has no leading slash: ``bucket/key``. ``number`` counts from 1, over all
    connections, since the log was last reset.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: dict[str, str]
    body: bytes = b""
    number: int = 0
    connection: int = 0

    @property
    def range(self) -> str | None:
        """The header ``Range``, as sent."""
        return self.headers.get("range")


@dataclass(slots=True)
class Answer:
    """A status, headers, and bytes ``start`` to ``stop`` of some content."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    content: Content = field(default_factory=lambda: Bytes(b""))
    start: int = 0
    stop: int = 0

    @classmethod
    def of_bytes(cls, status: int, body: bytes, kind: str = "application/xml") -> Answer:
        """An answer whose body was just made."""
        headers = {"Content-Type": kind} if body else {}
        return cls(status, headers, Bytes(body), 0, len(body))

    @classmethod
    def error(cls, status: int, code: str, message: str = "", **headers: str) -> Answer:
        """An error as S3 words it; underscores in the names of headers become hyphens."""
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<Error><Code>{code}</Code><Message>{escape(message or code)}</Message></Error>"
        )
        answer = cls.of_bytes(status, text.encode())
        answer.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return answer

    def head(self, closing: bool) -> bytes:
        """The status line and the headers, as bytes.

        304 and 204 have no body, so they must not announce the length of one.
        """
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {self.status} {phrase}", f"Date: {http_date(None)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.status not in (204, 304):
            lines.append(f"Content-Length: {self.stop - self.start}")
        lines.append("Connection: close" if closing else "Connection: keep-alive")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def http_date(seconds: float | None) -> str:
    """A time since the epoch (None: now) as HTTP writes it, whole seconds."""
    return formatdate(seconds, usegmt=True)


def parse_date(text: str) -> float | None:
    """The inverse of `http_date`; None where the text is no date, which HTTP says to ignore."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
