"""Ends of remote files in a file: the version and the end of each remote file. The format is our own, and contains no code.

It consists of MAGIC, the length of a list in JSON (8 bytes), the list (key, version and length of the end of each file), the
ends, and BLAKE2b over all before.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from pageseek.base.errors import CorruptFileError
from pageseek.storage import Known, Version
from pageseek.storage.atomic_files import Draft, refuse_place

MAGIC = b"pageseek ends 2\n"
DIGEST = 16


def save(ends: Mapping[str, Known], path: str) -> None:
    """Write ends by their keys. The file appears whole or not at all."""
    refuse_place(path, overwrite=True)
    with closing(Draft(os.path.abspath(path), 0o600)) as file:
        for part in packed(ends):
            file.write(part)
        file.appear(replace=True)


def packed(ends: Mapping[str, Known]) -> list[bytes | memoryview]:
    """The bytes of a file with these ends, in parts."""
    listed = [
        [key, known.version.size, known.version.tag, known.version.strong, len(known.tail)]
        for key, known in ends.items()
    ]
    head = json.dumps(listed).encode()
    parts = [MAGIC, len(head).to_bytes(8, "little"), head, *(known.tail for known in ends.values())]
    digest = hashlib.blake2b(digest_size=DIGEST)
    for part in parts:
        digest.update(part)
    return [*parts, digest.digest()]


def load(path: str) -> dict[str, Known]:
    """The ends that were written to a file."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _parse(data)
    except (ValueError, TypeError, IndexError) as error:
        raise CorruptFileError(
            f"{path}: not a cache that pageseek has saved, or damaged; delete it"
        ) from error


def _parse(data: bytes) -> dict[str, Known]:
    body, digest = data[:-DIGEST], data[-DIGEST:]
    if not body.startswith(MAGIC) or hashlib.blake2b(body, digest_size=DIGEST).digest() != digest:
        raise ValueError("another file, or damaged")
    at = len(MAGIC) + 8
    length = int.from_bytes(body[len(MAGIC) : at], "little")
    listed: Any = json.loads(body[at : at + length])
    at += length
    ends = {}
    for key, size, tag, strong, n in listed:
        kinds = isinstance(key, str) and isinstance(tag, str) and isinstance(strong, bool)
        if not kinds or not isinstance(size, int) or not isinstance(n, int) or not 0 <= n <= size:
            raise ValueError("an entry")
        if at + n > len(body):
            raise ValueError("cut short")
        ends[key] = Known(Version(size, tag, strong), body[at : at + n])
        at += n
    return ends
