"""Files of this machine that appear in one step, whole: written where nobody sees them, brought to disk, then named.

On Linux such a file has no name until it is complete (open(2), O_TMPFILE), so that nothing is left of a process that is
killed. Elsewhere, and on filesystems that have none without a name, it has a temporary one beside its place.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pageseek.storage.local import LocalStore

EXISTS = "it exists already; say overwrite=True to replace it, whatever it is"
WAYS = "/proc/self/fd"  # names of open files, by which those without one are linked (open(2))
LONGEST_NAME = 200  # bytes of a name that a temporary one is made of; systems take 255 of the whole
STEP = 8 << 20
ACL = "system.posix_acl_access"  # acl(5)


def hidden_name(name: str) -> str:
    """A name for what becomes a file of this name: readers of folders pass over it, and nobody else has it."""
    kept = os.fsencode(name)[:LONGEST_NAME].decode(errors="ignore")
    return f".{kept}.{secrets.token_hex(6)}.tmp"


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors of the system say which file they are about: of an open one they do not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


def _unnamed(folder: str, mode: int) -> int:
    """A descriptor of a file without a name, in the filesystem of a folder; -1 where there is none to be had."""
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag:
        return -1
    try:
        fd = os.open(folder or os.curdir, os.O_RDWR | flag, mode)
    except OSError:  # not on this filesystem; what else is wrong, a file with a name will say
        return -1
    try:
        if os.path.samestat(os.stat(f"{WAYS}/{fd}"), os.fstat(fd)):
            return fd
    except OSError:  # without /proc nothing gives it a name
        pass
    os.close(fd)
    return -1


def take_rights(fd: int, like: str | int) -> None:
    """Give an open file the permissions, the owner and the attributes of another, as far as the system allows.

    Attributes are those of users (`user.*`), and the list of rights (ACL) of Linux: by that list the bits of the group are no more
    than its mask, and without it they would say more than the list does.
    """
    known = os.stat(like)
    mode = stat.S_IMODE(known.st_mode)
    if hasattr(os, "removexattr"):
        with suppress(OSError):
            os.removexattr(fd, ACL)  # what it has from its folder
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


def settle(path: str) -> None:
    """Bring to disk what the folder of a file says of it."""
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class Draft:
    """A file that is being written. Who opens one closes it."""

    def __init__(self, path: str, mode: int = 0o666) -> None:
        """`path`: the name that it is to have, in a folder that is there. `mode`: who may read it, but for the umask."""
        self.path = path
        self.size = 0  # bytes that were written
        folder, name = os.path.split(path)
        self._temporary = os.path.join(folder, hidden_name(name))
        self._has_name = False  # the temporary one
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

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Put bytes behind those that are there; the place where they begin."""
        at, view = self.size, memoryview(data).cast("B")
        while view.nbytes:
            with _naming(self.path):
                done = os.write(self.fd, view)
            view = view[done:]
            self.size += done
        return at

    def reader(self, name: str) -> LocalStore:
        """The same file opened again, to be read; `name`: for errors."""
        return LocalStore(self._temporary if self._has_name else f"{WAYS}/{self.fd}", name)

    def hide(self) -> None:
        """Give its name up, if it can be: it is not to appear, and nothing is to stay of it."""
        if self._has_name:
            with suppress(OSError):  # Windows keeps what is open
                os.unlink(self._temporary)
                self._has_name = False

    def appear(self, replace: bool, look: Callable[[], None] = lambda: None) -> None:
        """All bytes are there: to disk, then under its name, for good.

        `replace`: it takes the place of what has that name. `look` has the last word before that, and may raise.

        Raises
        ------
        FileExistsError
            Something has the name, and is not to be replaced.
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
            os.replace(self._temporary, self.path)
            self._has_name = False
        elif self._has_name:
            self._create()
        settle(self.path)

    def _linked(self, name: str) -> bool:
        """Give a file without a name one; False where this filesystem does not."""
        # said before it is so: whoever is interrupted takes it away
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
        """Into a file with a temporary name, as there is no other way to one."""
        old = self.fd
        self.fd = self._named()
        try:
            take_rights(self.fd, old)
            size, self.size = self.size, 0
            while self.size < size:
                self.write(os.pread(old, STEP, self.size))
            with _naming(self.path):
                os.fsync(self.fd)
        finally:
            os.close(old)

    def _create(self) -> None:
        """Under its name, if nothing has it."""
        try:
            os.link(self._temporary, self.path)  # the temporary name goes at the end
        except FileExistsError:
            raise FileExistsError(f"{self.path}: {EXISTS}") from None
        except (OSError, AttributeError):  # no hard links here
            if os.path.lexists(self.path):
                raise FileExistsError(f"{self.path}: {EXISTS}") from None
            os.rename(self._temporary, self.path)
            self._has_name = False

    def close(self) -> None:
        """Leave nothing behind, unless it has appeared."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._has_name:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._has_name = False
