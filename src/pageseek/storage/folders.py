"""Whether folders of a store have files of some names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pyarrow.fs as pafs

from pageseek.storage.deadlines import within
from pageseek.storage.endpoint import Endpoint
from pageseek.storage.files import Files
from pageseek.storage.fsspec_files import FsspecFiles
from pageseek.storage.fsspec_files import fault_of as fsspec_fault
from pageseek.storage.obstore_files import ObstoreFiles
from pageseek.storage.obstore_store import fault_of as obstore_fault
from pageseek.storage.redact import secrets_of
from pageseek.storage.remote import RemoteStore
from pageseek.storage.requests import issue
from pageseek.storage.resolve import Source
from pageseek.storage.retry import Fault

Ending = str | tuple[str, ...]  # or one of several


def have(place: Source, asked: Sequence[tuple[str, Ending]]) -> list[bool]:
    """Of each (folder, ending) on the store of a place, whether the folder has a file whose name ends so."""
    one = _Looking(place)
    tasks = [one._asked(partial(one.has, *pair), f"what is in {pair[0]}") for pair in asked]
    return issue(one._endpoint, tasks) if tasks else []


class _Looking(RemoteStore):
    def __init__(self, place: Source) -> None:
        self._files: Any = place.filesystem
        self._secrets: set[str] = set()
        if isinstance(self._files, ObstoreFiles):
            self._secrets = secrets_of(dict(self._files.options))
        elif isinstance(self._files, FsspecFiles):
            self._secrets = secrets_of(getattr(self._files.filesystem, "storage_options", {}))
        super().__init__(place.name, place.path, _endpoint(place), place.retry_policy)

    def has(self, folder: str, ending: Ending) -> bool:
        return any(name.endswith(ending) for name in self._names(folder))

    def _names(self, folder: str) -> Iterable[str]:
        files = self._files
        if isinstance(files, ObstoreFiles):
            import obstore

            pages = obstore.list(files.store(self._patience), folder)
            return (one["path"] for page in pages for one in page)
        if isinstance(files, FsspecFiles):
            try:
                return list(files.ask(self._patience.listing, "ls", folder, detail=False))
            except NotADirectoryError:
                return ()
            except FileNotFoundError as error:
                if self._fault(error).kind != "missing":  # it only could not be asked
                    raise
                return ()
        wanted = pafs.FileSelector(folder, allow_not_found=True)
        try:
            found = within(partial(files.get_file_info, wanted), self._patience.listing)
            return [one.path for one in found]
        except NotADirectoryError:
            return ()

    def _fault(self, error: Exception) -> Fault:
        if isinstance(self._files, ObstoreFiles):
            return obstore_fault(error, self._secrets)
        if isinstance(self._files, FsspecFiles):
            return fsspec_fault(error, self._secrets)
        from pageseek.storage.pyarrow_files import fault_of

        return fault_of(error)


def _endpoint(place: Source) -> Endpoint:
    files = place.filesystem
    if isinstance(files, (ObstoreFiles, FsspecFiles)):
        return files.endpoint
    from pageseek.storage.pyarrow_files import endpoint_of

    assert files is not None and not isinstance(files, Files)
    return endpoint_of(files, place.path)
