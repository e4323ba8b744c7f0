"""Files of this machine that appear in one step, whole: written out of sight, flushed to disk, then named.

On Linux such a file has no name until it is complete (open(2), O_TMPFILE): a process that is killed leaves nothing.
Elsewhere, and on filesystems without unnamed files, it has a temporary name beside its place.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pageseek.base.errors import UnsupportedError
from pageseek.storage.local import LocalStore

EXISTS = "it exists already; say overwrite=True to replace it, whatever it is"
WAYS = "/proc/self/fd"  # paths of open files, by which unnamed ones are linked (open(2))
LONGEST_NAME = 200  # bytes of a name that its temporary name has; systems take 255 in all
STEP_BYTES = 8 << 20
ACL = "system.posix_acl_access"  # acl(5)


def hidden_name(name: str) -> str:
    """A temporary name for a file: readers of folders pass over it, and no other file has it."""
    kept = os.fsencode(name)[:LONGEST_NAME].decode(errors="ignore")
    return f".{kept}.{secrets.token_hex(6)}.tmp"


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Add the path to errors of the system, which do not name an open file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


def _refuse_special(path: str) -> None:
    """Raise FileExistsError where a name is that of a device, a pipe or a socket: a file would take its place for everybody."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # nothing is there; other faults show when the file is made
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FileExistsError(
            f"{path}: it is a device, a pipe or a socket, which is never replaced: name another file"
        )


def refuse_place(path: str, overwrite: bool) -> None:
    """Raise OSError where a new file cannot get this name. `overwrite`: it may take the place of another file.

    It is asked before anything is read. That the file appears decides in the end.
    """
    _refuse_special(path)
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{path}: {EXISTS}")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"{path}: there is no folder {folder}")


def _unnamed(folder: str, mode: int) -> int:
    """A descriptor of an unnamed file in the filesystem of a folder; -1 where the system has none."""
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag:
        return -1
    try:
        fd = os.open(folder or os.curdir, os.O_RDWR | flag, mode)
    except OSError:  # not on this filesystem; other faults will show with a named file
        return -1
    try:
        if os.path.samestat(os.stat(f"{WAYS}/{fd}"), os.fstat(fd)):
            return fd
    except OSError:  # without /proc it could get no name
        pass
    os.close(fd)
    return -1


def take_rights(fd: int, like: str | int) -> None:
    """Give an open file the permissions, the owner and the attributes of another, as far as the system allows.

    The attributes are those of users (`user.*`), and the access list (ACL) of Linux. Where there is an ACL, the bits of the
    group are its mask; without the ACL they would grant more.
    """
    known = os.stat(like)
    mode = stat.S_IMODE(known.st_mode)
    if hasattr(os, "removexattr"):
        with suppress(OSError):
            os.removexattr(fd, ACL)  # the one of its folder
    with suppress(OSError, AttributeError):
        os.fchmod(fd, mode)
    with suppress(OSError, AttributeError):
        os.fchown(fd, known.st_uid, known.st_gid)
    names: list[str] = []
    with suppress(OSError, AttributeError):
        names = os.listxattr(like)
    for name in names:
        if name != ACL and not name.startswith("user."):
            continue
        try:
            os.setxattr(fd, name, os.getxattr(like, name))
        except OSError:
            if name == ACL:
                os.fchmod(fd, mode & ~stat.S_IRWXG)


def fsync_folder(path: str) -> None:
    """Flush the folder of a file to disk."""
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class Draft:
    """A file that is being written. The caller closes it."""

    def __init__(self, path: str, mode: int = 0o666, exclusive: bool = False) -> None:
        """`path`: its name in the end, in an existing folder. `mode`: its permissions, less the umask. `exclusive`: of several processes
        that create the file one succeeds, or it is an UnsupportedError; else a filesystem without hard links has a gap.
        """
        _refuse_special(path)
        self.path, self._exclusive = path, exclusive
        self.size = 0  # bytes written
        folder, name = os.path.split(path)
        self._temporary = os.path.join(folder, hidden_name(name))
        self._has_name = False  # whether it has the temporary name
        self._mode = mode
        self.identity: tuple[int, int] | None = None  # device and inode, before it appears
        self.fd = _unnamed(folder, mode)
        if self.fd < 0:
            self.fd = self._named()

    def _named(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            fd = os.open(self._temporary, flags, self._mode)
        except OSError as error:
            error.filename = self.path  # the name that the caller knows
            raise
        self._has_name = True
        return fd

    def take_rights_of_old(self) -> None:
        """Give it the permissions, owner and attributes of the file that it will replace, if there is one."""
        with suppress(FileNotFoundError):
            take_rights(self.fd, self.path)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append bytes; returns the offset at which they begin."""
        at, view = self.size, memoryview(data).cast("B")
        while view.nbytes:
            with _naming(self.path):
                done = os.write(self.fd, view)
            view = view[done:]
            self.size += done
        return at

    @property
    def way(self) -> str:
        """A path by which the file can be opened in this process, until it is closed."""
        return self._temporary if self._has_name else f"{WAYS}/{self.fd}"

    def reader(self, name: str) -> LocalStore:
        """The file, opened again to be read. `name`: for errors."""
        return LocalStore(self.way, name)

    def hide(self) -> None:
        """Give the temporary name up, if the system allows: the file is not to appear."""
        if self._has_name:
            with suppress(OSError):  # Windows keeps what is open
                os.unlink(self._temporary)
                self._has_name = False

    def appear(self, replace: bool, look: Callable[[], None] = lambda: None) -> None:
        """Flush the file to disk and give it its name: all bytes are written.

        `replace`: it takes the place of a file of that name. `look` is called right before that, and may raise.

        Raises
        ------
        FileExistsError
            A file has the name, and `replace` is false; or a device, a pipe or a socket has it.
        """
        with _naming(self.path):
            os.fsync(self.fd)
        if not replace:
            look()
        if self._has_name or not self._linked(self._temporary if replace else self.path):
            if not self._has_name:
                self._copy()
            known = os.fstat(self.fd)
            os.close(self.fd)  # Windows renames no open files
            self.fd = -1
        else:
            known = os.fstat(self.fd)
        self.identity = known.st_dev, known.st_ino
        if replace:
            look()
            _refuse_special(self.path)
            os.replace(self._temporary, self.path)
            self._has_name = False
        elif self._has_name:
            self._create()
        fsync_folder(self.path)

    def _linked(self, name: str) -> bool:
        """Give an unnamed file a name; False where this filesystem cannot."""
        # set before it is true: `close` removes the name after an interrupt
        self._has_name = name == self._temporary
        try:
            # with a descriptor, which means nothing beside a whole path, links are followed (linkat)
            os.link(f"{WAYS}/{self.fd}", name, src_dir_fd=self.fd, follow_symlinks=True)
        except FileExistsError:
            self._has_name = False
            raise FileExistsError(f"{name}: {EXISTS}") from None
        except OSError:
            self._has_name = False
            return False
        return True

    def _copy(self) -> None:
        """Copy the unnamed file into one with a temporary name."""
        old = self.fd
        self.fd = self._named()
        try:
            take_rights(self.fd, old)
            size, self.size = self.size, 0
            while self.size < size:
                self.write(os.pread(old, STEP_BYTES, self.size))
            with _naming(self.path):
                os.fsync(self.fd)
        finally:
            os.close(old)

    def _create(self) -> None:
        """Give the file its name, if no file has it."""
        try:
            os.link(self._temporary, self.path)  # the temporary name goes at the end
        except FileExistsError:
            raise FileExistsError(f"{self.path}: {EXISTS}") from None
        except (OSError, AttributeError):  # no hard links here
            if os.path.lexists(self.path):
                raise FileExistsError(f"{self.path}: {EXISTS}") from None
            if self._exclusive and os.name != "nt":  # elsewhere a rename replaces what is there
                raise UnsupportedError(
                    f"{self.path}: this filesystem has no hard links, without which two writers may both create a file"
                ) from None
            os.rename(self._temporary, self.path)
            self._has_name = False

    def close(self) -> None:
        """Close the file. Nothing stays of it, unless it has appeared."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._has_name:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._has_name = False
