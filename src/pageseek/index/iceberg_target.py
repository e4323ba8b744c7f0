"""A file of an Iceberg table, replaced by a commit: the new file lies beside the old one. The manifest keeps what it said of
the rows.

It needs `Transaction.update_snapshot().overwrite()` of `pyiceberg` (0.10 to 0.12), with `delete_data_file` and
`append_data_file`. The new manifests are compared with the old ones before the commit.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from typing import Any
from urllib.parse import urlsplit

from pageseek.base.errors import FileChangedError, StoreError, UnsupportedError
from pageseek.base.version import __version__
from pageseek.dataset.lake_places import iceberg_places
from pageseek.index.table_target import OvertakenError, TableEnd, same_file
from pageseek.storage import Source
from pageseek.storage.redact import secrets_of
from pageseek.storage.resolve import DEFAULT_RETRY

VERSIONS = (1, 2)  # of the format; rows of the third have ids, which pyiceberg cannot keep
SECRET = ("secret", "token", "password", "credential", "key", "sas")  # in names of properties
DELETE_FILES = 1  # content of a manifest
EQUALITY_DELETES = 2  # content of a delete file
PATH = 2147483546  # the field of a position delete file that names data files
# settings of a commit: it is tried once, since an overtaken one is checked here before it is tried again
ONCE = {
    "commit.retry.num-retries": "1",  # pyiceberg then looks whether the commit was made after all
    "commit.retry.min-wait-ms": "0",
    "commit.retry.max-wait-ms": "0",
    "commit.retry.total-timeout-ms": str(10**9),
}
# errors after which certainly no commit was made
REFUSALS = (
    "AuthorizationExpiredError", "BadRequestError", "ForbiddenError", "NoSuchTableError", "UnauthorizedError",
    "ValidationException", "WaitingForLockException",
)  # fmt: skip
OTHER = (
    "this pyiceberg cannot exchange files, or does it in another way: pip install 'pyiceberg>=0.10'"
)


def _name(table: Any) -> str:
    return f"Iceberg table {table.metadata.location}"


def as_recorded(
    source: Any, table: Any, storage_options: Mapping[str, Any] | None
) -> Source | None:
    """The file of a URL as the table spells it, without escapes, with the table's own options of its store; None for other names."""
    scheme = urlsplit(source).scheme if isinstance(source, str) and "://" in source else ""
    if len(scheme) < 2 or os.path.exists(source):
        return None
    place = iceberg_places(_name(table), table.io, storage_options, DEFAULT_RETRY).source
    found = place(source, (), encoded=False)
    if found.filesystem is None and not os.path.exists(found.path):
        return None
    return found


def tried_once(table: Any, numbers: list[int]) -> Any:
    """A copy of a table, whose transactions are tried once. CommitFailedException: another commit came first.

    `numbers`: of the snapshots of the transaction, to be there before its commit.
    """
    from pyiceberg.exceptions import CommitFailedException

    mine = copy(table)

    def refresh() -> Any:
        """Pyiceberg calls it when a commit has failed, before it tries again."""
        table.refresh()
        if table.metadata.snapshot_by_id(numbers[0]) is None:
            raise CommitFailedException("somebody else's commit came first")
        mine.metadata, mine.metadata_location = table.metadata, table.metadata_location
        return mine

    mine.refresh = refresh
    metadata = table.metadata
    properties = {**metadata.properties, **ONCE}
    mine.metadata = metadata.model_copy(update={"properties": properties})
    return mine


class IcebergEnd(TableEnd):
    """The exchange in the manifests of an Iceberg table."""

    def __init__(
        self, source: Source, table: Any, storage_options: Mapping[str, Any] | None
    ) -> None:
        """UnsupportedError: the table cannot be written to, or has rows of the file deleted. ValueError: it has no such file."""
        known = {**dict(getattr(table.catalog, "properties", {})), **dict(table.io.properties)}
        told = {n: one for n, one in known.items() if any(word in n.lower() for word in SECRET)}
        super().__init__(_name(table), secrets_of(told))
        self.errors = (Exception,)
        try:
            from pyiceberg import exceptions
            from pyiceberg.manifest import DATA_FILE_TYPE, DEFAULT_READ_VERSION, DataFile

            self._make, self._failed = DataFile.from_args, exceptions.CommitFailedException
            self._fields = [field.name for field in DATA_FILE_TYPE[DEFAULT_READ_VERSION].fields]
            self._refusals = tuple(
                getattr(exceptions, name) for name in REFUSALS if hasattr(exceptions, name)
            )
        except (ImportError, AttributeError):
            raise UnsupportedError(f"{self.table}: {OTHER}") from None
        self._ice = table
        self._tried: list[int] = []  # snapshots that were sent
        self._unsure = False  # whether one was sent without an answer
        self._refresh()
        version = table.metadata.format_version
        if version not in VERSIONS:
            raise UnsupportedError(
                f"{self.table}: it is of version {version} of the format, of which pyiceberg writes no snapshots"
            )
        places = iceberg_places(self.table, table.io, storage_options, DEFAULT_RETRY)
        entries = self._entries(deletes=False)
        of = {
            path: place
            for path in {entry.data_file.file_path for entry in entries}
            if same_file(place := places.source(path, (), encoded=False), source)
        }
        if not of:
            raise ValueError(
                f"{source.name}: the newest snapshot of {self.table} has no such file; give one as the table spells it, "
                "in table.inspect.data_files()['file_path']"
            )
        if len(of) > 1:
            raise UnsupportedError(f"{self.table}: it spells {source.name} in {len(of)} ways")
        self._old, place = next(iter(of.items()))
        self._take(entries)
        self._new = self.beside(self._old, place)

    # -- what the table says -----------------------------------------------------------------------

    def _refresh(self) -> None:
        try:
            self._ice.refresh()
        except NotImplementedError:
            raise UnsupportedError(
                f"{self.table}: {type(self._ice).__name__} has no catalog to commit to: load the table through one"
            ) from None
        except self.errors as error:
            raise StoreError(f"{self.table}: it cannot be loaded: {self.said(error)}") from None

    def _manifests(self, snapshot: Any) -> list[Any]:
        return [] if snapshot is None else list(snapshot.manifests(self._ice.io))

    def _entries(self, deletes: bool) -> list[Any]:
        """The data files of the newest snapshot, or its delete files."""
        return [
            entry
            for manifest in self._manifests(self._ice.metadata.current_snapshot())
            if (manifest.content == DELETE_FILES) is deletes
            for entry in manifest.fetch_manifest_entry(self._ice.io, discard_deleted=True)
        ]

    def _take(self, entries: list[Any]) -> None:
        """Keep the entry of the old file in the newest snapshot. UnsupportedError: it cannot be exchanged."""
        found = [one for one in entries if one.data_file.file_path == self._old]
        if not found:
            raise FileChangedError(
                f"{self.table}: somebody else has taken {self._old} out of it meanwhile; begin anew"
            )
        if len(found) > 1:
            raise UnsupportedError(
                f"{self.table}: {self._old} is {len(found)} times in it, and so are its rows: rewrite its data files"
            )
        self._entry = found[0]
        self._refuse_partition()
        for one in self._entries(deletes=True):
            if self._deletes(one):
                raise UnsupportedError(
                    f"{self.table}: rows of {self._old} are deleted by {one.data_file.file_path}, and would come back with a "
                    "newer file: rewrite its data files (rewrite_data_files)"
                )
        self._snapshot = self._ice.metadata.current_snapshot()

    def _refuse_partition(self) -> None:
        """Raise UnsupportedError where pyiceberg cannot write the partition of the old file again."""
        data, metadata = self._entry.data_file, self._ice.metadata
        if any(isinstance(one, float) and one != one for one in data.partition):
            raise UnsupportedError(
                f"{self.table}: {self._old} has NaN for a partition, for which pyiceberg makes no commits"
            )
        for field in metadata.specs()[data.spec_id].fields:
            try:
                metadata.schema().find_field(field.source_id)
            except ValueError:
                raise UnsupportedError(
                    f"{self.table}: {self._old} is partitioned by {field.name!r}, whose column was dropped, and pyiceberg cannot say so "
                    "anew: rewrite its data files"
                ) from None

    def _deletes(self, entry: Any) -> bool:
        """Whether a delete file may concern the old file; True where it does not say."""
        data, deletes = self._entry.data_file, entry.data_file
        equality = deletes.content == EQUALITY_DELETES
        later = (entry.sequence_number or 0) - (self._entry.sequence_number or 0)
        if later < (1 if equality else 0):
            return False
        if equality and not len(deletes.partition):  # of all partitions
            return True
        if not equality:
            path = data.file_path.encode()
            least, most = ((of or {}).get(PATH) for of in (deletes.lower_bounds, deletes.upper_bounds))  # fmt: skip
            if least == path == most:
                return True
            if least is not None and most is not None and not least <= path <= most:
                return False
        same: bool = deletes.spec_id == data.spec_id and deletes.partition == data.partition
        return same

    # -- the commit --------------------------------------------------------------------------------

    def look(self) -> None:
        """Bring the table to its newest version."""
        self._refresh()
        if self._ice.metadata.current_snapshot() != self._snapshot:
            self._take(self._entries(deletes=False))

    def exchange(self, size: int) -> None:
        """Take the old file out and put the new one in."""
        numbers: list[int] = []  # of the snapshot
        mine = tried_once(self._ice, numbers)
        try:
            made = self._made(mine, size)
        except (AttributeError, TypeError, LookupError) as error:
            raise UnsupportedError(f"{self.table}: {OTHER} ({self.said(error)})") from None
        after = made.table_metadata.current_snapshot()
        numbers.append(after.snapshot_id)
        written = self._check(self._snapshot, after)
        self._tried.append(after.snapshot_id)
        try:
            made.commit_transaction()
        except self._failed as error:
            self._refresh()
            if self._ice.metadata.snapshot_by_id(after.snapshot_id) is not None:
                return  # the answer to a first try was lost; older versions of pyiceberg do not ask
            self._discard(written)
            raise OvertakenError(self.said(error)) from None
        except self._refusals:
            raise
        except BaseException as error:
            self._unsure = True
            if not isinstance(error, Exception):
                raise
            with suppress(Exception):
                self._ice.refresh()
            if self._ice.metadata.snapshot_by_id(after.snapshot_id) is None:
                raise StoreError(
                    f"{self.table}: nobody knows whether the commit was made ({self.said(error)}); {self.to.name} stays, in case it was"
                ) from None
        else:
            self._ice.metadata, self._ice.metadata_location = mine.metadata, mine.metadata_location

    def _made(self, mine: Any, size: int) -> Any:
        """A transaction of a copy of the table, in which the exchange is made and not yet committed."""
        old = self._entry.data_file
        said = dict(zip(self._fields, old, strict=True))
        new = self._make(**{**said, "file_path": self._new, "file_size_in_bytes": size})
        new.spec_id = old.spec_id
        # pyiceberg gives new files the default partition spec: in the copy that is the spec of the old file
        mine.metadata = mine.metadata.model_copy(update={"default_spec_id": old.spec_id})
        made = mine.transaction()
        said_of_us = {"engine-name": "pageseek", "engine-version": __version__}
        update = made.update_snapshot(snapshot_properties=said_of_us).overwrite()
        update.delete_data_file(old)
        update.append_data_file(new)
        update.commit()  # to the transaction
        return made

    def _check(self, before: Any, after: Any) -> list[str]:
        """Compare the snapshot that will be committed with the one before: only the two files may differ. Returns the paths of its
        new manifests and its manifest list.
        """
        old, new = (
            {one.manifest_path: one for one in self._manifests(of)} for of in (before, after)
        )
        gone, come = (
            Counter(
                (one.file_path, int(one.content or 0), one.spec_id, entry.sequence_number)
                for path in here.keys() - there.keys()
                for entry in here[path].fetch_manifest_entry(self._ice.io, discard_deleted=True)
                for one in (entry.data_file,)
            )
            for here, there in ((old, new), (new, old))
        )  # fmt: skip
        data = self._entry.data_file
        lost, found = list((gone - come).elements()), list((come - gone).elements())
        wanted = (self._old, int(data.content or 0), data.spec_id, self._entry.sequence_number)
        written = [*(new.keys() - old.keys()), after.manifest_list]
        if lost == [wanted] and [one[:3] for one in found] == [(self._new, *wanted[1:3])]:
            return written
        self._discard(written)
        raise StoreError(
            f"{self.table}: pyiceberg made a snapshot that takes {len(lost)} files out and puts {len(found)} in, "
            f"where one is exchanged: it was not committed"
        )

    def _discard(self, written: list[str]) -> None:
        """Delete the files of a snapshot that was not committed, if pyiceberg has not done so."""
        for path in written:
            with suppress(Exception):
                self._ice.io.delete(path)

    def has_it(self) -> bool:
        """Whether the table may have the new file."""
        if self._unsure:
            return True
        if not self._tried:
            return False
        self._ice.refresh()
        return any(self._ice.metadata.snapshot_by_id(one) is not None for one in self._tried)
