"""Ends of remote files in a folder, where other processes and later ones find them.

An entry is a file in the format of `saved_cache`, with a checksum. It appears whole. One that is damaged counts for nothing, and is
replaced. The entries that were not used for longest are deleted when all together are too large.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from pageseek.base.errors import CorruptFileError
from pageseek.datasets.saved_cache import load, packed
from pageseek.storage import Known

FOLDER, BYTES = "PAGESEEK_FOOTER_CACHE", "PAGESEEK_FOOTER_CACHE_BYTES"  # in the environment
MAX_BYTES = 1 << 30
LEFT = 0.8  # of that, after entries were deleted
USED_SECONDS = 3600  # after which the time of an entry is set again when it is used


def kept_ends() -> KeptEnds | None:
    """The folder that the environment names; None if it names none."""
    folder = os.environ.get(FOLDER)
    return _of(folder, os.environ.get(BYTES)) if folder else None


@lru_cache(maxsize=8)
def _of(folder: str, most: str | None) -> KeptEnds:
    if most is not None and not most.isdecimal():
        raise ValueError(f"{BYTES}={most}: a number of bytes")
    return KeptEnds(Path(folder), MAX_BYTES if most is None else int(most))


class KeptEnds:
    """Ends by the keys of files. Safe for threads and processes.

    Parameters
    ----------
    folder : Path
        It is made if it does not exist, for this user alone.
    max_bytes : int
        Of all entries.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes
        self._bytes: int | None = None  # of all entries, about; None until the first is written
        self._lock = threading.Lock()

    def get(self, key: str) -> Known | None:
        """The end of a file, if it is there."""
        path = self._path(key)
        try:
            known = load(os.fspath(path)).get(key)
            if time.time() - path.stat().st_mtime > USED_SECONDS:
                os.utime(path)
        except (OSError, CorruptFileError):
            return None
        return known

    def put(self, key: str, known: Known) -> None:
        """Write the end of a file, in place of another version. A folder that cannot be written is told by a warning."""
        path = self._path(key)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
            ) as file:
                file.writelines(packed({key: known}))
                size = file.tell()
            os.replace(draft, path)
            self._count(size)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            warnings.warn(
                f"{FOLDER}={self._folder}: footers are not kept there: {error}", stacklevel=2
            )

    def _path(self, key: str) -> Path:
        name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        return self._folder / name[:2] / name[2:]

    def _count(self, size: int) -> None:
        """Count a new entry. Entries of other processes are seen when the folder is listed: at first, and when it seems full."""
        with self._lock:
            if self._bytes is not None:
                self._bytes += size
            if self._bytes is None or self._bytes > self._max_bytes:
                self._bytes = self._shrunk()

    def _shrunk(self) -> int:
        """Delete the oldest entries if all are too large. Returns the bytes that are left."""
        found = sorted(self._entries())
        total = sum(size for _, size, _ in found)
        most = self._max_bytes if total <= self._max_bytes else LEFT * self._max_bytes
        for _, size, path in found:
            if total <= most:
                break
            with suppress(FileNotFoundError):  # another process has deleted it
                os.unlink(path)
            total -= size
        return total

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """The time, the size and the path of each entry. Drafts of processes that were killed are among them."""
        for folder in os.scandir(self._folder):
            for entry in os.scandir(folder) if folder.is_dir() else ():
                with suppress(FileNotFoundError):
                    about = entry.stat()
                    yield about.st_mtime, about.st_size, entry.path
