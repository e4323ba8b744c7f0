"""Which library opens a URL, and which files lie behind it.

obstore comes first, for what it knows: it ties every range to the version of the file, and opens in one request. Where
it is not installed pyarrow's own filesystems serve, then fsspec's; of schemes that obstore does not know (hdfs) pyarrow's
come first.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import posixpath
import re
from collections.abc import Mapping
from typing import Any

import pyarrow.fs as pafs

from pageseek.errors import UnsupportedError
from pageseek.storage import fsspec_files, obstore_files
from pageseek.storage.files import Files
from pageseek.storage.retry import Patience

# those that pyarrow.fs can know
SCHEMES = frozenset({"abfs", "abfss", "file", "gcs", "gs", "hdfs", "mock", "s3", "s3a", "viewfs"})
MAGIC = re.compile(r"[*?[]")


def installed(name: str) -> bool:
    """Whether a library is there; it is not imported."""
    return importlib.util.find_spec(name) is not None


def from_url(
    url: str, scheme: str, options: Mapping[str, Any], patience: Patience
) -> tuple[Files | pafs.FileSystem, str]:
    """What opens the files of a URL, and the path there. `patience`: with what is connected to for that."""
    if "://" not in url:
        if not url.startswith(f"{scheme}:/"):
            raise FileNotFoundError(f"{url}: no such file")
        # a URL with one slash too few may hold a password
        raise FileNotFoundError(f"{scheme}:/...: no such file, and no URL, which has '//' there")
    if scheme in obstore_files.SCHEMES and installed("obstore"):
        return obstore_files.of_url(url, options)
    if scheme in SCHEMES:
        from pageseek.storage import arrow

        if (found := arrow.of_url(url, scheme, options, patience)) is not None:
            return found
    why = ""
    if installed("fsspec"):
        try:
            return fsspec_files.of_url(url, options, patience)
        except UnsupportedError as error:
            why = f" ({error})"
    extra = (
        "pip install 'pageseek[obstore]'"
        if scheme in obstore_files.SCHEMES
        else "pip install fsspec"
    )
    # not the URL: it may hold a password
    raise UnsupportedError(
        f"{scheme}://: nothing that is installed opens the scheme {scheme!r}{why}: {extra}, or give (filesystem, path) "
        "with a filesystem of pyarrow or fsspec, or download the file"
    )


def of_pair(given: object, path: str) -> tuple[Files, str] | str | None:
    """What the first of a pair (filesystem, path) stands for, of obstore or fsspec; a local path where it is this
    machine's disk, None where it is no filesystem.
    """
    if obstore_files.is_store(given):
        return obstore_files.of_store(given), path
    if not fsspec_files.is_filesystem(given):
        return None
    filesystem: Any = given
    if "file" in filesystem.protocol:
        return str(filesystem._strip_protocol(path))
    return fsspec_files.FsspecFiles(filesystem), path


def listing(
    files: Files, path: str, patience: Patience, suffixes: tuple[str, ...]
) -> tuple[str, list[str]] | None:
    """The folder that a path or a glob begins at, and the data files there that it means; None where it is one file."""
    if files.looks_like_file(path):
        return None
    if MAGIC.search(path):
        names = path.split("/")
        root = "/".join(names[: next(i for i, name in enumerate(names) if MAGIC.search(name))])
        wanted = _pattern(names)
        found = files.find(root, patience)
        return root, [one for one in found if wanted.fullmatch(one)]
    if path.endswith(suffixes):
        return None
    found = [
        one for one in files.find(path.rstrip("/"), patience)
        if one.endswith(suffixes) and _inside(one, path)
    ]  # fmt: skip
    if not found:
        if not path or path.endswith("/"):
            raise FileNotFoundError(f"{files.name(path)}: no .parquet file in this folder")
        return None
    return path.rstrip("/"), found


def _inside(one: str, folder: str) -> bool:
    return posixpath.commonpath(
        ["/" + one.lstrip("/"), "/" + folder.strip("/")]
    ) == "/" + folder.strip("/")


def _pattern(names: list[str]) -> re.Pattern[str]:
    """What the parts of a glob match; `**` is any number of folders."""
    parts = []
    for i, name in enumerate(names):
        last = i == len(names) - 1
        if name == "**":
            parts.append(".*" if last else "(?:[^/]+/)*")
        else:
            inner = fnmatch.translate(name)
            inner = inner.removeprefix("(?s:").rpartition(")")[0].replace(".*", "[^/]*")
            parts.append(inner + ("" if last else "/"))
    return re.compile("".join(parts), re.DOTALL)
