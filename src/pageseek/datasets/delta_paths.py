"""Paths in the log of a Delta Lake table: one spelling for all that mean one file (Delta protocol, "Add File and Remove File").

A path is a URI, relative to the folder of the table or absolute. `a`, `./a`, `%61`, `/table/a` and `file:///table/a` are one file.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from urllib.parse import unquote

import pyarrow as pa

from pageseek.base.late_modules import compute as pc
from pageseek.storage.resolve import Source

_odd = r"%|:|//|(^|/)\.{0,2}(/|$)"  # what a path may have that is spelt otherwise, too; also the empty path
_is_odd = re.compile(_odd)
_ALIASES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}


def is_absolute(path: str) -> bool:
    """Whether a path in a log is absolute: a URL, or one that begins at the root (RFC 2396)."""
    scheme, colon, rest = path.partition(":")
    return path.startswith("/") or (
        bool(colon) and rest.startswith("/") and scheme.replace("+", "").isalnum()
    )


def any_odd(paths: Iterable[str] | pa.ChunkedArray) -> bool:
    """Whether one of the paths has another spelling that is as good."""
    if isinstance(paths, pa.ChunkedArray):
        return bool(pc.any(pc.match_substring_regex(paths, _odd)).as_py())
    return any(map(_is_odd.search, paths))


class Spelling:
    """One spelling of each path in a table's log.

    Symbolic links to the folder of the table, and above it, are resolved. A link below it stays: `p=1/a` and `p=2/a` are two
    files of the table, even where one of the folders is a link to the other.

    Parameters
    ----------
    root : Source
        The folder of the table.
    """

    def __init__(self, root: Source) -> None:
        self._here = root.filesystem is None
        self._folders: dict[str, str] = {}  # of absolute paths; a table has few
        self._root = _resolved(os.path.abspath(root.path)) if self._here else _url(root.name)

    def of(self, path: str) -> str:
        """The spelling of a path."""
        if not is_absolute(path):
            inside = unquote(path)
            if self._here:
                return os.path.normpath(os.path.join(self._root, inside))
            return f"{self._root}/{posixpath.normpath(inside)}"
        scheme, colon, rest = path.partition(":")
        if colon and scheme.lower() != "file" and "/" not in scheme:
            return _url(unquote(path))
        rest = rest if colon and "/" not in scheme else path
        if rest.startswith("//"):  # behind a host
            rest = "/" + rest[2:].partition("/")[2]
        return self._local(unquote(rest))

    def _local(self, path: str) -> str:
        folder, name = os.path.split(os.path.normpath(path))
        if folder not in self._folders:
            self._folders[folder] = self._through_links(folder)
        return os.path.join(self._folders[folder], name)

    def _through_links(self, folder: str) -> str:
        """An absolute folder, of which what leads to the folder of the table, or towards it, is resolved."""
        made, at = folder, folder.find("/", 1)
        while True:
            start = folder if at < 0 else folder[:at]
            real = _resolved(start)
            if real == self._root or self._root.startswith(real.rstrip("/") + "/"):
                made = real.rstrip("/") + folder[len(start) :]
            if real == self._root or at < 0:
                return made
            at = folder.find("/", at + 1)


def _resolved(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):  # with a zero byte, say
        return folder


def _url(url: str) -> str:
    scheme, colon, rest = url.partition(":")
    return f"{_ALIASES.get(scheme.lower(), scheme)}{colon}{rest}".rstrip("/")
