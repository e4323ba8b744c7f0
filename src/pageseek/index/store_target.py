"""A file with indexes that goes to a store: put together on this machine, then sent."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress

from pageseek.base.errors import UnsupportedError
from pageseek.index.local_target import Target
from pageseek.storage import RemoteStore, Source, Store
from pageseek.storage.atomic_files import EXISTS, Draft
from pageseek.storage.writing import NO_CONDITION, ONE_PUT, too_large, writer


class StoreTarget(Target):
    """A file in the folder for temporary files. `commit` sends it to a store, which takes it whole or not at all."""

    def __init__(self, to: Source, source: Store, in_place: bool, overwrite: bool) -> None:
        """`source`: the file that it is made from. `in_place`: the new file replaces it, if it is still of the version that was
        read. `overwrite`: the new file replaces what is there.
        """
        self.path = to.name
        self._writer = writer(to)
        self._source, self._in_place, self._overwrite = source, in_place, overwrite
        if in_place and not (self._writer.conditional and source.version.strong):
            raise UnsupportedError(f"{to.name}: in_place=True: {NO_CONDITION}")
        if not in_place and not overwrite and self._writer.exists():
            raise FileExistsError(f"{to.name}: {EXISTS}")
        super().__init__(Draft(os.path.join(tempfile.gettempdir(), "pageseek"), 0o600))

    def copy(self, source: Store, length: int) -> Store:
        """Begin with the first bytes of an open store."""
        if not self._overwrite and length > ONE_PUT:
            raise UnsupportedError(f"{self.path}: {too_large(length, self._in_place)}")
        near = super().copy(source, length)
        self._draft.hide()
        return near

    def commit(self, check: Callable[[], None]) -> None:
        """Send all bytes."""
        kept = self._source.attributes() if isinstance(self._source, RemoteStore) else {}
        mapped = mmap.mmap(self._draft.fd, self.size, access=mmap.ACCESS_READ)
        try:
            check()
            self._writer.put(
                memoryview(mapped),
                overwrite=self._overwrite,
                instead_of=self._source if self._in_place else None,
                attributes=kept,
            )
        finally:
            with suppress(
                BufferError
            ):  # who was interrupted leaves a request behind, which still has it
                mapped.close()
