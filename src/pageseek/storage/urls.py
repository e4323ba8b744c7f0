"""The library that opens a URL.

obstore comes first, for its schemes: it ties every range to the version of the file, and opens in one request. Where it is
not installed, and for other schemes such as hdfs, pyarrow's own filesystems come first, then fsspec's.
"""

from __future__ import annotations

import glob
import importlib.util
from collections.abc import Mapping
from typing import Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.late_modules import fs as pafs
from pageseek.base.late_modules import is_instance
from pageseek.storage import fsspec_files, obstore_files
from pageseek.storage.files import Files
from pageseek.storage.local import inside
from pageseek.storage.retry import RetryPolicy

# those that pyarrow.fs may open
SCHEMES = frozenset({"abfs", "abfss", "file", "gcs", "gs", "hdfs", "mock", "s3", "s3a", "viewfs"})


def installed(name: str) -> bool:
    """Whether a library is installed; it is not imported."""
    return importlib.util.find_spec(name) is not None


def from_url(
    url: str, scheme: str, options: Mapping[str, Any], retry_policy: RetryPolicy
) -> tuple[Files, str]:
    """What opens the files of a URL, and the path there. `retry_policy`: for libraries that connect to that end."""
    if "://" not in url:  # a URL with one slash too few may hold a password
        raise FileNotFoundError(f"{scheme}:/...: no such file, and no URL, which has '//' there")
    if scheme in obstore_files.SCHEMES and installed("obstore"):
        return obstore_files.of_url(url, options)
    if scheme in SCHEMES:
        from pageseek.storage import pyarrow_files as arrow

        if (found := arrow.of_url(url, scheme, options, retry_policy)) is not None:
            return found
    why = ""
    if installed("fsspec"):
        try:
            return fsspec_files.of_url(url, options, retry_policy)
        except UnsupportedError as error:
            why = f" ({error})"
    extra = (
        "pip install 'pageseek[obstore]'"
        if scheme in obstore_files.SCHEMES
        else "pip install fsspec"
    )
    # without the URL, which may hold a password
    raise UnsupportedError(
        f"{scheme}://: nothing that is installed opens the scheme {scheme!r}{why}: {extra}, or give (filesystem, path) "
        "with a filesystem of pyarrow or fsspec, or download the file"
    )


def of_pair(given: object, path: str) -> tuple[Files | None, str] | None:
    """What opens the files of a pair (filesystem, path) of obstore or fsspec (None: this machine), and the path there; None
    where it is no filesystem.
    """
    if obstore_files.is_store(given):
        if type(given).__name__ == "LocalStore":
            store: Any = given
            return None, inside(store.prefix or "/", path)
        return obstore_files.of_store(given), path
    if not fsspec_files.is_filesystem(given):
        return None
    filesystem: Any = given
    inner, local = filesystem, path
    while inner.protocol == "dir":  # a folder of another one
        pattern = glob.has_magic(local)
        inner, local = inner.fs, inside(inner.path, local) if pattern else inner._join(local)
    if is_instance(getattr(inner, "fs", None), pafs, "FileSystem"):  # pyarrow's, wrapped
        from pageseek.storage.pyarrow_files import of_filesystem

        return of_filesystem(inner.fs, str(inner._strip_protocol(local)))
    if "file" in inner.protocol:
        found = str(inner._strip_protocol(local))
        return None, f"{found.rstrip('/')}/" if path.endswith("/") else found
    return fsspec_files.FsspecFiles(filesystem), path
