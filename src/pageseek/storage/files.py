"""What stands for a filesystem that is neither pyarrow's nor this machine's; light, since every import of pageseek has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow.fs as pafs

from pageseek.storage.remote import RemoteStore
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.store import Buffer, Known, Store

# how many of the last bytes of a file are needed, by some of them and its size
Needed = Callable[[Buffer, int], int]


class Begun(Protocol):
    """A file that was asked for."""

    def __call__(self) -> Store:
        """Wait for it."""
        ...

    def give_up(self) -> None:
        """Nobody waits for it any more."""
        ...


class Files:
    """Files behind a library that opens them by path. Picklable, and compared by what they stand for."""

    __slots__ = ()

    @property
    def key(self) -> str:
        """Tells them apart, in caches too, without secrets."""
        raise NotImplementedError

    @property
    def lasting(self) -> bool:
        """Whether the key means the same files in every process."""
        return False

    @property
    def bound(self) -> bool:
        """Whether the files are gone with the object that stands for them, so that nothing of them may outlive it."""
        return False

    def name(self, path: str) -> str:
        """A file there, as it may be shown."""
        raise NotImplementedError

    def open(self, path: str, retry_policy: RetryPolicy, known: Known | None = None) -> Store:
        """A file there."""
        raise NotImplementedError

    def begin(
        self, path: str, retry_policy: RetryPolicy, known: Known | None, needed: Needed
    ) -> Begun | None:
        """Ask for a file, with as many bytes of its end as are `needed`, and do not wait; None where that cannot be."""
        return None

    def assumed(self, path: str, retry_policy: RetryPolicy, known: Known) -> RemoteStore | None:
        """A file there as it was known, for which nothing is asked: its first read says whether it is still that one.
        None where reads are not tied to a version.
        """
        return None

    def find(self, prefix: str, retry_policy: RetryPolicy) -> list[str]:
        """The paths of all files below a folder."""
        raise NotImplementedError

    def looks_like_file(self, path: str) -> bool:
        """Whether it can be nothing else, without being asked for."""
        raise NotImplementedError


def is_local(filesystem: pafs.FileSystem) -> bool:
    """Whether a filesystem of pyarrow is this machine's disk."""
    while isinstance(filesystem, pafs.SubTreeFileSystem):
        filesystem = filesystem.base_fs
    return isinstance(filesystem, pafs.LocalFileSystem)
