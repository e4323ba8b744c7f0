"""What stands for a filesystem that is neither pyarrow's nor this machine's; light, since every import of pageseek has it."""

from __future__ import annotations

import pyarrow.fs as pafs

from pageseek.storage.base import Known, Store
from pageseek.storage.remote import RemoteStore
from pageseek.storage.retry import Patience


class Files:
    """Files behind a library that opens them by path. Picklable, and compared by what they stand for."""

    __slots__ = ()

    @property
    def key(self) -> str:
        """Tells them apart, in caches too, without secrets."""
        raise NotImplementedError

    def name(self, path: str) -> str:
        """A file there, as it may be shown."""
        raise NotImplementedError

    def open(self, path: str, patience: Patience, known: Known | None = None) -> Store:
        """A file there."""
        raise NotImplementedError

    def believed(self, path: str, patience: Patience, known: Known) -> RemoteStore | None:
        """A file there as it was known, for which nothing is asked: its first read says whether it is still that one.
        None where reads are not tied to a version.
        """
        return None

    def find(self, prefix: str, patience: Patience) -> list[str]:
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
