r"""The checksums that Hadoop's local file system keeps in `.NAME.crc` beside `NAME`.

Programs that read a file through it (Spark, by a local path) compare every chunk with them, and refuse the file where they
differ. A file without checksums is read as it is. So they are deleted before a file gets other bytes, and rewritten after
that: they never lie beside other bytes, and a process that is killed in between leaves none.

The form is that of org.apache.hadoop.fs.ChecksumFileSystem: `crc\0`, the length of a chunk (4 bytes, big-endian), and the
CRC-32 of each chunk (4 bytes, big-endian).
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Callable
from contextlib import closing, suppress

from pageseek.base.records import dataclass
from pageseek.storage.atomic_files import Draft, fsync_folder

MAGIC = b"crc\0"
CHUNK = 512  # bytes that have one checksum, as in Hadoop by default


def place_of(path: str) -> str:
    """The path of the checksums of a file."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.crc")


def sums_of(fd: int, size: int) -> bytes:
    """The checksums of an open file of `size` bytes."""
    head = MAGIC + struct.pack(">I", CHUNK)
    if not size:
        return head
    with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
        sums = [zlib.crc32(data[at : at + CHUNK]) for at in range(0, size, CHUNK)]
    return head + struct.pack(f">{len(sums)}I", *sums)


@dataclass(frozen=True, slots=True)
class _Old:
    data: bytes
    mode: int


def _read(place: str) -> _Old | None:
    """The checksums at a path; None where no file lies there, or it does not begin as Hadoop's do."""
    with suppress(OSError), open(place, "rb") as file:
        if os.path.isfile(place) and file.read(len(MAGIC)) == MAGIC:
            return _Old(MAGIC + file.read(), os.fstat(file.fileno()).st_mode & 0o777)
    return None


class Sums:
    """The checksums beside a file that will get other bytes. `paths`: its name, and known links to it."""

    def __init__(self, *paths: str) -> None:
        self._places = list(dict.fromkeys(map(place_of, paths)))
        self._gone: dict[str, _Old] = {}
        self._new: bytes | None = None

    def prepare(self, fd: int, size: int) -> None:
        """Compute those of the new bytes, an open file of `size` bytes, if there are old ones to replace."""
        if any(_read(place) is not None for place in self._places):
            self._new = sums_of(fd, size)

    def delete(self) -> bool:
        """Delete the old ones; returns whether there were any."""
        for place in self._places:
            if (old := _read(place)) is not None:
                self._gone[place] = old
                os.unlink(place)
                fsync_folder(place)
        return bool(self._gone)

    def put_back(self, holds: Callable[[], bool]) -> None:
        """Write the old ones again: the file stays as it was, as long as `holds` says so."""
        for place, old in self._gone.items():
            _put(place, old.data, old.mode, holds)

    def renew(self, holds: Callable[[], bool]) -> None:
        """Write the new ones: the file has its new bytes, as long as `holds` says so."""
        for place, old in self._gone.items():
            if self._new is not None:
                _put(place, self._new, old.mode, holds)


def _put(place: str, data: bytes, mode: int, holds: Callable[[], bool]) -> None:
    """Write checksums, unless others lie there, or the file is another one by now. Faults are ignored: programs read the
    file without them too.
    """
    with suppress(OSError), closing(Draft(place, mode)) as draft:
        draft.write(data)
        if not holds():
            return
        draft.appear(False)
        if not holds():
            os.unlink(place)
