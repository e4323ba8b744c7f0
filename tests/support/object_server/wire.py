"""Requests as they come over a connection: heads, and bodies in their framings."""

from __future__ import annotations

from io import BufferedIOBase
from urllib.parse import parse_qsl, unquote

_longest_line = 65536
_most_headers = 200


class BadRequest(Exception):
    """The bytes are no HTTP request; the connection is closed."""


def read_head(stream: BufferedIOBase) -> tuple[str, str, str, dict[str, str]] | None:
    """Method, target, version and headers of the next request; None where no more comes."""
    line = stream.readline(_longest_line)
    while line in (b"\r\n", b"\n"):
        line = stream.readline(_longest_line)
    if not line:
        return None
    parts = line.decode("latin-1").split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(f"a request line {line[:80]!r}")
    headers: dict[str, str] = {}
    while (line := stream.readline(_longest_line)) not in (b"\r\n", b"\n"):
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or len(headers) >= _most_headers:
            raise BadRequest(f"a header {line[:80]!r}")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return parts[0], parts[1], parts[2], headers


def split_target(target: str) -> tuple[str, dict[str, str], str]:
    """The decoded path without its first slash, the query as a mapping, and as it was sent."""
    if target.startswith("http"):  # a proxy's form
        target = "/" + target.split("/", 3)[3] if target.count("/") > 2 else "/"
    path, _, query = target.partition("?")
    pairs = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
    return unquote(path).removeprefix("/"), pairs, query


def read_body(stream: BufferedIOBase, headers: dict[str, str]) -> bytes:
    """The body of a request, with HTTP's chunks and those of S3's signed streams taken off."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _read_chunks(stream)
    else:
        try:
            length = int(headers.get("content-length") or 0)
        except ValueError as error:
            raise BadRequest("Content-Length") from error
        body = _exactly(stream, length)
    signed = headers.get("x-amz-content-sha256", "").startswith("STREAMING-")
    if signed or "aws-chunked" in headers.get("content-encoding", ""):
        body = decode_aws_chunks(body)
    return body


def _exactly(stream: BufferedIOBase, length: int) -> bytes:
    body = stream.read(length) if length else b""
    if len(body) != length:
        raise BadRequest(f"{len(body)} of {length} bytes of a body")
    return body


def _chunk_size(line: bytes) -> int:
    try:
        return int(line.split(b";")[0].strip(), 16)
    except ValueError as error:
        raise BadRequest(f"the size of a chunk {line[:80]!r}") from error


def _read_chunks(stream: BufferedIOBase) -> bytes:
    parts = []
    while size := _chunk_size(stream.readline(_longest_line)):
        parts.append(_exactly(stream, size))
        stream.readline(_longest_line)
    while stream.readline(_longest_line) not in (b"\r\n", b"\n", b""):  # trailers
        pass
    return b"".join(parts)


def decode_aws_chunks(body: bytes) -> bytes:
    """The payload of an aws-chunked body; signatures and trailing checksums are not checked."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at)
        if end < 0:
            raise BadRequest("an aws-chunked body without its last chunk")
        size = _chunk_size(body[at:end])
        if size == 0:
            return b"".join(parts)
        at = end + 2
        if at + size > len(body):
            raise BadRequest(f"a chunk of {size} bytes in the {len(body) - at} left")
        parts.append(body[at : at + size])
        at += size + 2
