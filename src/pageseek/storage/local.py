"""Files of this machine: positioned reads on one held descriptor; many files at once; bytes in memory as a file."""

from __future__ import annotations

import errno
import glob
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import numpy as np

from pageseek._core import files
from pageseek._core.file_bytes import AVAILABLE, FileBytes
from pageseek._core.memory import Block
from pageseek.base.errors import FileChangedError, placed
from pageseek.base.late_modules import hashlib, npt
from pageseek.storage.store import Buffer, Version

LARGE = (
    64 << 10
)  # bytes of a read from which it goes into a buffer of the core, which any thread may free

LATER = 16 << 10  # bytes of pages from which the thread that decodes them reads them

# to open what is no regular file must not wait, nor make it the terminal of the process
READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"):
    READ |= getattr(os, _flag, 0)
_KINDS = {
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}  # fmt: skip
LEASE = 60.0  # seconds after which a system has taken back the lease of a file
PAUSE = 0.01  # seconds between two looks
RACES = 5  # times that a file may have been written a moment ago, until it is read all the same


def _tick() -> float:
    """Seconds by which the times of files may lag behind the clock: what is written in one tick has one time."""
    try:
        return time.clock_getres(5)  # CLOCK_REALTIME_COARSE, by which Linux dates files
    except (AttributeError, OSError):
        return 0.0


TICK = int(1e9 * (0.016 if os.name == "nt" else _tick()))  # nanoseconds
SHARE_ALL = 0x1 | 0x2 | 0x4  # FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_SHARE_DELETE

Seen = tuple[int, int, int]  # what tells a version of a file from another: inode, size, time in ns
Int64s: TypeAlias = "npt.NDArray[np.int64]"
SHARED = 128  # files that are worth a thread
NOTHING = 0, -1, 0, 0  # files.FIELDS of a file that cannot be read
_seeking = threading.Lock()


def _seek_and_read(fd: int, length: int, offset: int) -> bytes:
    with _seeking:  # threads may share the descriptor, and with it the place in the file
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)


def _read_into(fd: int, rooms: Sequence[memoryview], offset: int) -> int:
    (room,) = rooms
    data = _pread(fd, len(room), offset)
    room[: len(data)] = data
    return len(data)


# Windows has neither
_pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _seek_and_read)
_preadv: Callable[[int, Sequence[memoryview], int], int] = getattr(os, "preadv", _read_into)


def seen(now: os.stat_result) -> Seen:
    """What tells this version of a file from another."""
    return now.st_ino, now.st_size, now.st_mtime_ns


def version_of(told: Seen, dated: bool = True) -> Version:
    """The version that `told` tells. `dated`: as of `Version`."""
    # not the device: a network mount has another number on every node, and plans travel
    node, size, time_ns = told
    return Version(size, f"{node}:{size}:{time_ns}", True, dated)


def inside(folder: str, path: str) -> str:
    """A path inside of a folder. Only the path may be a pattern; the folder is named as it is written."""
    if glob.has_magic(path):
        folder = glob.escape(folder)
    return os.path.join(folder, path.lstrip("/"))


def check_regular(mode: int, name: str) -> None:
    """Raise OSError unless `mode` (`st_mode`) is that of a regular file."""
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        remedy = (
            "; to read it whole, give its bytes: open(..., 'rb').read()"
            if stat.S_ISFIFO(mode)
            else ""
        )
        raise OSError(f"{name}: not a regular file but {kind}{remedy}")


def check_place(path: str) -> None:
    """Raise OSError where something lies at a path that is neither a regular file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # opening it will tell what is wrong
        return
    if not stat.S_ISDIR(mode):
        check_regular(mode, path)


def _version(now: os.stat_result, name: str, dated: bool = True) -> Version:
    check_regular(now.st_mode, name)
    return version_of(seen(now), dated)


def version_at(path: str) -> Version:
    """The version of the file of this name."""
    return _version(_status(path), path)


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError:
        raise _gone(path) from None


def _gone(name: str) -> FileNotFoundError:
    """The error for a file that was named before, and is not there."""
    return FileNotFoundError(
        f"{name}: no such file; it was deleted or renamed, or lies on another machine"
    )


def _open(path: str) -> int:
    """A descriptor that reads bytes as they are, closed in child processes.

    It may be that of a pipe, whose other end is not waited for: the caller looks what it is.
    """
    if sys.platform == "win32":
        # os.open there would keep others from renaming and deleting the file for as long as it is cached
        import _winapi
        import msvcrt

        try:
            handle = _winapi.CreateFile(
                path, _winapi.GENERIC_READ, SHARE_ALL, 0, _winapi.OPEN_EXISTING, 0, 0
            )
        except OSError as error:
            error.filename = path
            raise
        try:
            return msvcrt.open_osfhandle(handle, os.O_RDONLY | os.O_BINARY)
        except BaseException:
            _winapi.CloseHandle(handle)
            raise
    until = 0.0
    while True:
        try:
            return os.open(path, READ)
        except OSError as error:
            check_place(path)  # a socket cannot be opened, nor a device that is not there
            now = time.monotonic()
            if error.errno != errno.EAGAIN or now > (until := until or now + LEASE):
                raise
            time.sleep(PAUSE)  # the holder of a lease was told to let go (fcntl(2), F_SETLEASE)


def _stable_status(fd: int) -> tuple[os.stat_result, bool]:
    """The status of a file once a further write would change its time, and whether that is so now.

    A file that was written in this very tick could be overwritten in it, after its footer was read, and keep its time.
    That is rare, and the next tick comes in milliseconds.
    """
    for _ in range(RACES):
        now = os.fstat(fd)
        if not stat.S_ISREG(now.st_mode):
            return now, False
        age = time.time_ns() - now.st_mtime_ns
        if not 0 <= age <= TICK:
            return now, True
        time.sleep((TICK - age) / 1e9 + 1e-4)
    return os.fstat(fd), False


class Names:
    """The names of files that are looked at together, more than once."""

    __slots__ = "core", "paths"

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.core: files.Names | None = None
        if files.AVAILABLE:
            with suppress(ValueError):  # names that no file can have: they are looked at one by one
                self.core = files.Names(paths)


def seen_now(names: Names, threads: int = 1) -> Int64s:
    """`Seen` of each file now; a negative size where there is no regular file."""
    core, n = names.core, len(names.paths)
    if core is not None:
        return _shared(partial(files.seen, core), n, threads)[:, :3]
    found = np.full((n, 3), NOTHING[:3], np.int64)
    for i, path in enumerate(names.paths):
        with suppress(OSError, ValueError, OverflowError):
            now = os.stat(path)
            if stat.S_ISREG(now.st_mode):
                found[i] = seen(now)
    return found


def read_ends(
    names: Names,
    start: int,
    places: Int64s,
    room: npt.NDArray[np.uint8],
    now: int,
    threads: int = 1,
    behind: Int64s | None = None,
) -> Int64s:
    """Read the last bytes of files, each into its place in `room`; nothing stays open.

    Parameters
    ----------
    start : int
        The first of the files. One is read for each of the `places`.
    places : int64 array of shape (n, 2)
        Where in `room` the bytes of each file go, and how many may.
    now : int
        A time that has passed, in nanoseconds.
    behind : int64 array of shape (n,), optional
        How many bytes of each file lie behind those that are read; 0 without it.

    Returns
    -------
    int64 array of shape (n, 4)
        `Seen` of each file, and the bytes that were read. No bytes and a negative size stand for what cannot be read, and
        for a file that was written meanwhile, or a moment ago: what is written next may have the same version.
    """
    core, n = names.core, len(places)
    if core is not None:
        flat = np.ascontiguousarray(places)
        rest = None if behind is None else np.ascontiguousarray(behind)

        def some(begin: int, end: int) -> bytes:
            after = None if rest is None else rest[begin:end]
            return files.read_ends(core, start + begin, start + end, flat[begin:end], room, after)

        found = _shared(some, n, threads).copy()
        left = np.flatnonzero((found[:, 1] >= 0) & (found[:, 2] >= now - TICK)).tolist()
    else:
        found, left = np.full((n, 4), NOTHING, np.int64), list(range(n))
    whole = memoryview(room)
    for i in left:
        at, length = places[i].tolist()
        found[i] = NOTHING
        with suppress(OSError, ValueError, OverflowError):  # opening it will tell what is wrong
            rest_of_it = 0 if behind is None else behind.item(i)
            read = _read_end(names.paths[start + i], whole[at : at + length], rest_of_it)
            found[i] = read or NOTHING
    return found


def _shared(work: Callable[[int, int], bytes], n: int, threads: int) -> Int64s:
    """`files.FIELDS` of n files in a row, which threads divide. `work`: takes the first file of a part, and the first
    behind it.
    """
    from pageseek.base.in_parts import in_parts  # late: for many files

    made = in_parts(work, n, threads, SHARED)
    return np.frombuffer(b"".join(made), np.int64).reshape(-1, len(files.FIELDS))


def _read_end(path: str, room: memoryview, behind: int) -> tuple[int, int, int, int] | None:
    """Read the last bytes of one file but for those `behind`; None where it is written meanwhile, or is no regular file."""
    fd = _open(path)
    try:
        told, stable = _stable_status(fd)
        if not stable or not stat.S_ISREG(told.st_mode):
            return None
        stop = max(told.st_size - behind, 0)
        at = max(stop - len(room), 0)
        read = _preadv(fd, [room[: stop - at]], at)
        if seen(os.fstat(fd)) != seen(told):  # the bytes may be of two versions
            return None
        return *seen(told), read
    finally:
        os.close(fd)


def read_part(path: str, version: Seen, offset: int, length: int) -> bytes:
    """Bytes of a file. OSError: it is not of this version, or has fewer bytes."""
    fd = _open(path)
    try:
        if seen(os.fstat(fd)) != version:
            raise OSError(f"{path}: it was replaced")
        data = _pread(fd, length, offset)
    finally:
        os.close(fd)
    if len(data) != length:
        raise OSError(f"{path}: {len(data)} of {length} bytes at {offset}")
    return data


class _Descriptor:
    """Closes a descriptor when nobody has it any more."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # `os` may be gone by then
        close(self._fd)


class LocalStore:
    """A file on local disk. The descriptor keeps the file's content even when the name moves on."""

    latency = 0.0  # a further read costs less than the pages between, which would not be decoded
    bandwidth = 2e9

    def __init__(self, path: str, name: str | None = None) -> None:
        self.name = name or path
        try:
            self._fd = _open(path)
        except FileNotFoundError:
            raise _gone(self.name) from None
        self._open_file: _Descriptor | None = _Descriptor(self._fd)
        try:
            now, stable = _stable_status(self._fd)
            self.version = _version(now, self.name, stable)
        except BaseException:
            self.close()
            raise
        self.size = self.version.size
        self._seen = seen(now)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        made: list[Buffer] = []
        for offset, length in ranges:
            if length < LARGE or _preadv is _read_into:
                data = _pread(self._fd, length, offset)
                if len(data) == length:
                    made.append(data)
                    continue
            made.append(self._read_large(offset, length))
        return made

    def read_later(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer | FileBytes]:
        """As `read`, but for large pieces: whoever needs their bytes first reads them."""
        made: list[Buffer | FileBytes] = []
        keeps_open = self._open_file  # first: without it the descriptor is none
        for offset, length in ranges:
            if length < LATER or not AVAILABLE:
                made += self.read([(offset, length)])
            else:
                with placed(f"{self.name}: {length} bytes at {offset}"):
                    made.append(FileBytes(self, self._fd, keeps_open, offset, length))
        return made

    def _read_large(self, offset: int, length: int) -> Buffer:
        with placed(f"{self.name}: {length} bytes at {offset}"):
            buffer = memoryview(Block(length))
        have = 0
        while have < length:  # a read gives at most 2 GiB at once
            n = _preadv(self._fd, [buffer[have:]], offset + have)
            if n == 0:
                self.check()
                raise OSError(
                    f"{self.name}: {length} bytes asked at {offset}, the file ends after {have}"
                )
            have += n
        return buffer

    @property
    def descriptor(self) -> int:
        """Of the open file, for positioned reads. It is the store's, and closed with it."""
        return self._fd

    @property
    def open_file(self) -> object:
        """Keeps the descriptor open for whoever has it, when the store is closed."""
        return self._open_file

    def is_at(self, path: str) -> bool:
        """Whether the file of this name is the one that is open, unchanged. OSError: there is none."""
        now = _status(path)
        return (now.st_ino, now.st_size, now.st_mtime_ns) == self._seen

    def check(self) -> None:
        now = os.fstat(self._fd)
        if (now.st_ino, now.st_size, now.st_mtime_ns) != self._seen:
            raise FileChangedError(
                f"{self.name}: the file changed while it was being read "
                f"(size {self.version.size} -> {now.st_size}); open it again"
            )

    def close(self) -> None:
        """Read nothing more. Bytes that are read later keep the descriptor."""
        self._fd, self._open_file = -1, None


class MemoryStore:
    """Bytes in memory, as a file."""

    latency = 0.0
    bandwidth = 1e10

    def __init__(self, data: Buffer, name: str = "<memory>") -> None:
        self._data = memoryview(data).cast("B")
        self.name = name
        self.size = self._data.nbytes
        tail = hashlib.blake2b(self._data[-65536:], digest_size=16).hexdigest()
        # the bytes never change, and a pickled plan brings its own
        self.version = Version(self.size, tail, True)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        for offset, length in ranges:
            if offset < 0 or offset + length > self.size:
                raise OSError(f"{self.name}: {length} bytes asked at {offset} of {self.size}")
        return [self._data[offset : offset + length] for offset, length in ranges]

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass
