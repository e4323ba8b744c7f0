"""Commits that exchange data files of an Iceberg table for others with the same rows.

They need `Transaction.update_snapshot().overwrite()` of `pyiceberg` (0.10 to 0.12), with `delete_data_file` and
`append_data_file`. The new manifests are compared with the old ones before a commit.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from typing import Any

from pageseek.base.errors import StoreError, UnsupportedError
from pageseek.base.version import __version__
from pageseek.index.table_target import OvertakenError
from pageseek.storage.redact import cleaned, secrets_of

VERSIONS = (1, 2)  # of the format; rows of the third have ids, which pyiceberg cannot keep
SECRET = ("secret", "token", "password", "credential", "key", "sas")  # in names of properties
DELETE_FILES = 1  # content of a manifest
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
# the path, the content, the partition spec and the sequence number of a file
Entry = tuple[str, int, int, int | None]


def iceberg_name(table: Any) -> str:
    """A table of pyiceberg, in errors."""
    return f"Iceberg table {table.metadata.location}"


def told_secrets(table: Any) -> set[str]:
    """The properties of a table's catalog and files that may be secrets."""
    known = {**dict(getattr(table.catalog, "properties", {})), **dict(table.io.properties)}
    told = {n: one for n, one in known.items() if any(word in n.lower() for word in SECRET)}
    return set(secrets_of(told))


def reads_doubles() -> bool:
    """Whether pyiceberg reads the values of partitions as they were written: its compiled decoder may round them."""
    from pyiceberg.avro.decoder import new_decoder

    return bool(new_decoder(struct.pack("<d", 0.1)).read_double() == 0.1)


def _may_be_rounded(data: Any, at: int, column: int) -> bool:
    """Whether a double of a partition may have been rounded as it was read: the bounds of the column have it whole."""
    value = data.partition[at]
    if value is None:
        return False
    low = (data.lower_bounds or {}).get(column)
    return bool(low != struct.pack("<d", value) if low is not None else value)


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


class IcebergCommits:
    """The commits of one table.

    Attributes
    ----------
    table
        Of pyiceberg.
    name : str
        As errors call it.
    """

    def __init__(self, table: Any, name: str) -> None:
        """UnsupportedError: it cannot be written to."""
        self.table, self.name = table, name
        self._secrets = told_secrets(table)
        try:
            from pyiceberg import exceptions

            self._failed = exceptions.CommitFailedException
            self._refusals = tuple(
                getattr(exceptions, one) for one in REFUSALS if hasattr(exceptions, one)
            )
        except (ImportError, AttributeError):
            raise UnsupportedError(f"{name}: {OTHER}") from None
        self._tried: list[int] = []  # snapshots that were sent
        self._unsure = False  # whether one was sent without an answer
        self.refresh()

    def said(self, error: Exception) -> str:
        """The text of pyiceberg's error, without secrets."""
        return cleaned(str(error), self._secrets) or type(error).__name__

    # -- what the table says -----------------------------------------------------------------------

    @property
    def snapshot(self) -> Any:
        """The newest one that is known; None: the table has none."""
        return self.table.metadata.current_snapshot()

    def refresh(self) -> None:
        """Bring the table to its newest version. UnsupportedError: it cannot be written to."""
        try:
            self.table.refresh()
        except NotImplementedError:
            raise UnsupportedError(
                f"{self.name}: {type(self.table).__name__} has no catalog to commit to: load the table through one"
            ) from None
        except Exception as error:  # noqa: BLE001 - pyiceberg's, its catalogs' and stores'
            raise StoreError(f"{self.name}: it cannot be loaded: {self.said(error)}") from None
        version = self.table.metadata.format_version
        if version not in VERSIONS:
            raise UnsupportedError(
                f"{self.name}: it is of version {version} of the format, of which pyiceberg writes no snapshots"
            )

    def entries(self, deletes: bool) -> list[Any]:
        """The data files of the newest snapshot, or its delete files."""
        return [
            entry
            for manifest in self._manifests(self.snapshot)
            if (manifest.content == DELETE_FILES) is deletes
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=True)
        ]

    def _manifests(self, snapshot: Any) -> list[Any]:
        return [] if snapshot is None else list(snapshot.manifests(self.table.io))

    def refuse_partition(self, data: Any) -> None:
        """Raise UnsupportedError where pyiceberg cannot write the partition of a data file again."""
        metadata = self.table.metadata
        if any(isinstance(one, float) and one != one for one in data.partition):
            raise UnsupportedError(
                f"{self.name}: {data.file_path} has NaN for a partition, for which pyiceberg makes no commits"
            )
        for at, field in enumerate(metadata.specs()[data.spec_id].fields):
            try:
                kind = str(metadata.schema().find_field(field.source_id).field_type)
            except ValueError:
                raise UnsupportedError(
                    f"{self.name}: {data.file_path} is partitioned by {field.name!r}, whose column was dropped, and pyiceberg cannot say so "
                    "again: rewrite its data files"
                ) from None
            identity = kind == "double" and str(field.transform) == "identity"
            if identity and not reads_doubles() and _may_be_rounded(data, at, field.source_id):
                raise UnsupportedError(
                    f"{self.name}: {data.file_path} is partitioned by {field.name!r}, a double, and this pyiceberg reads doubles of "
                    "manifests as floats: it could not write the value again"
                )

    # -- the commit --------------------------------------------------------------------------------

    def exchanged(
        self,
        mine: Any,
        parts: Iterable[tuple[int, Iterable[Any], Iterable[Any]]],
        changed: Callable[[Any], None] = lambda update: None,
    ) -> tuple[Any, list[Any]]:
        """A transaction in which files are exchanged, and its snapshots, not yet committed.

        Parameters
        ----------
        mine : Table
            A copy of the table, which is changed.
        parts
            Of each partition spec: its number, the data files that go, and those that come.
        changed : callable
            Called with each snapshot's update before it is made.
        """
        try:
            made, snapshots = mine.transaction(), []
            for spec, old, new in parts:
                # pyiceberg gives new files the default partition spec: in the copy that is the spec of the old ones
                mine.metadata = mine.metadata.model_copy(update={"default_spec_id": spec})
                said_of_us = {"engine-name": "pageseek", "engine-version": __version__}
                update = made.update_snapshot(snapshot_properties=said_of_us).overwrite()
                for one in old:
                    update.delete_data_file(one)
                for one in new:
                    update.append_data_file(one)
                changed(update)
                update.commit()  # to the transaction
                snapshots.append(made.table_metadata.current_snapshot())
        except (AttributeError, TypeError, LookupError) as error:
            raise UnsupportedError(f"{self.name}: {OTHER} ({self.said(error)})") from None
        return made, snapshots

    def compared(self, before: Any, after: Any) -> tuple[list[Entry], list[Entry], list[str]]:
        """The files that a snapshot has and the next one has not, those that only the next one has, and the paths of its new manifests
        and its manifest list.
        """
        old, new = (
            {one.manifest_path: one for one in self._manifests(of)} for of in (before, after)
        )
        gone, come = (
            Counter(
                (one.file_path, int(one.content or 0), one.spec_id, entry.sequence_number)
                for path in here.keys() - there.keys()
                for entry in here[path].fetch_manifest_entry(self.table.io, discard_deleted=True)
                for one in (entry.data_file,)
            )
            for here, there in ((old, new), (new, old))
        )  # fmt: skip
        written = [*(new.keys() - old.keys()), after.manifest_list]
        return list((gone - come).elements()), list((come - gone).elements()), written

    def send(self, made: Any, mine: Any, number: int, written: list[str], stays: str) -> None:
        """Commit a transaction of `tried_once`. `number`: of its last snapshot. `written`: its manifests. `stays`: new files, in errors.

        Raises
        ------
        OvertakenError
            Another commit came first. The manifests are deleted.
        StoreError
            Nobody knows whether the commit was made.
        """
        self._tried.append(number)
        try:
            made.commit_transaction()
        except self._failed as error:
            self.refresh()
            if self.table.metadata.snapshot_by_id(number) is not None:
                return  # the answer to a first try was lost; older versions of pyiceberg do not ask
            self.discard(written)
            raise OvertakenError(self.said(error)) from None
        except self._refusals:
            raise
        except BaseException as error:
            self._unsure = True
            if not isinstance(error, Exception):
                raise
            with suppress(Exception):
                self.table.refresh()
            if self.table.metadata.snapshot_by_id(number) is None:
                raise StoreError(
                    f"{self.name}: nobody knows whether the commit was made ({self.said(error)}); {stays}, in case it was"
                ) from None
        else:
            self.table.metadata, self.table.metadata_location = (
                mine.metadata,
                mine.metadata_location,
            )

    def discard(self, written: Iterable[str]) -> None:
        """Delete the files of a snapshot that was not committed, if pyiceberg has not done so."""
        for path in written:
            with suppress(Exception):
                self.table.io.delete(path)

    def may_have(self) -> bool:
        """Whether the table may have what was sent."""
        if self._unsure:
            return True
        if not self._tried:
            return False
        self.table.refresh()
        return any(self.table.metadata.snapshot_by_id(one) is not None for one in self._tried)
