"""A file of a Delta Lake table, replaced by a commit: the new file lies beside the old one. The log keeps what it said of the
rows.

It needs `DeltaTable.create_write_transaction` and RemoveAction of `deltalake` (1.6 and later).
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pageseek.base.errors import CorruptFileError, FileChangedError, UnsupportedError
from pageseek.datasets.delta_log import DeltaLog
from pageseek.datasets.lake_tables import table_of_lake
from pageseek.datasets.table_files import Table, with_version
from pageseek.index.delta_commits import DROP_FEATURE, DeltaCommits, commit_body, stored_name
from pageseek.index.table_target import OvertakenError, TableEnd, same_file
from pageseek.storage import Source
from pageseek.storage.redact import secrets_of

# features of writers that hold where a file is exchanged for one with the same rows
# of an action that adds a file; a checkpoint has more
OF_ADDED = "partitionValues", "stats", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion", "clusteringProvider"  # fmt: skip
MODE = "delta.columnMapping.mode"
WRITER = 7  # version of the protocol for writers
FEATURES = frozenset(
    ("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
     "identityColumns", "invariants", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
     "vacuumProtocolCheck")
)  # fmt: skip


def as_recorded(
    source: Any, table: Any, storage_options: Mapping[str, Any] | None
) -> Source | None:
    """The file that `table.file_uris()` gives by this name, with the table's own options of its store; None for other names. Such
    a name has escapes in the table's folder, and none below it.
    """
    if not isinstance(source, str) or os.path.exists(source):
        return None
    root = str(table.table_uri).rstrip("/") + "/"
    start = next((one for one in (root, root.removeprefix("file://")) if source.startswith(one)), None)  # fmt: skip
    found = None if start is None else table_of_lake(table, storage_options)
    if start is None or found is None:
        return None
    below = source[len(start) :]
    spelt = zip(found.sources, found.spelt, strict=True)
    named = [one for one, path in spelt if unquote(path) == below]
    return named[0] if named else None


class DeltaEnd(TableEnd):
    """The exchange in the log of a Delta Lake table."""

    def __init__(
        self, source: Source, table: Any, storage_options: Mapping[str, Any] | None
    ) -> None:
        """UnsupportedError: the table has features that are not known here. ValueError: it has no such file."""
        told = secrets_of(dict(getattr(table, "_storage_options", None) or {}))
        super().__init__(f"Delta table {table.table_uri}", told)
        self._delta = table
        try:
            from deltalake.exceptions import DeltaError
            from deltalake.transaction import AddAction, RemoveAction
        except ImportError:
            raise UnsupportedError(
                f"{self.table}: this deltalake has no RemoveAction for transactions: pip install 'deltalake>=1.6'"
            ) from None
        self.errors = (DeltaError,)
        self._add, self._remove = AddAction, RemoveAction
        unknown = sorted(set(table.protocol().writer_features or ()) - FEATURES)
        if unknown:
            raise UnsupportedError(
                f"{self.table}: its writers have to know {', '.join(unknown)}: {DROP_FEATURE}"
            )
        found = table_of_lake(table, storage_options)
        assert found is not None
        sources = found.sources
        mine = [i for i, one in enumerate(sources) if same_file(one, source)]
        if not mine:
            raise ValueError(
                f"{source.name}: version {table.version()} of {self.table} has no such file"
            )
        self._storage_options = storage_options
        self._refuse_vector(sources[mine[0]])
        path = found.spelt[mine[0]]
        self._action = next(one for one in self._actions() if one["path"] == path)
        self._partitions = {
            name: _text(name, value)
            for name, value in (self._action.get("partition") or {}).items()
        }
        self._old = unquote(self._action["path"])
        self._new = self.beside(self._old, sources[mine[0]])

    def _refuse_vector(self, source: Source) -> None:
        if source.deletes:
            raise UnsupportedError(
                f"{self.table}: {source.name} has a deletion vector, which transactions of {with_version('deltalake')} cannot give "
                "to another file: take the deleted rows out before, by pageseek.rewrite(table, in_place=True) or REORG TABLE ... "
                "APPLY (PURGE)"
            )

    def look(self) -> None:
        """Bring the table to its newest version."""
        # deltalake lets our commit in after a compaction that has taken the old file out: all rows would be there twice
        self._delta.update_incremental()
        if all(self._action["path"] != one["path"] for one in self._actions()):
            raise FileChangedError(
                f"{self.table}: somebody else has taken {self._old} out of it meanwhile; begin again"
            )
        if "deletionVectors" in (self._delta.protocol().reader_features or ()):
            # rows that were deleted meanwhile: the file has the same path, and a vector
            found = table_of_lake(self._delta, self._storage_options)
            assert found is not None
            self._refuse_vector(found.sources[found.spelt.index(self._action["path"])])

    def exchange(self, size: int) -> None:
        """Take the old file out and put the new one in."""
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError

        moment = int(time.time() * 1000)
        try:
            self._delta.create_write_transaction(
                [
                    self._remove(self._old, False, moment, self._action["size_bytes"], self._partitions),
                    self._add(self._new, size, self._partitions, moment, False, _stats(self._action)),
                ],
                mode="append",
                schema=self._delta.schema(),
                partition_by=self._delta.metadata().partition_columns,
                commit_properties=CommitProperties(max_commit_retries=0),
            )  # fmt: skip
        except CommitFailedError as error:
            raise OvertakenError(self.said(error)) from None
        self._delta.update_incremental()

    def has_it(self) -> bool:
        """Whether the newest version has the new file."""
        self._delta.update_incremental()
        return any(unquote(one["path"]) == self._new for one in self._actions())

    def _actions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pa.table(self._delta.get_add_actions()).to_pylist()
        return found


class DeltaLogEnd(TableEnd):
    """The exchange of a file whose rows have a deletion vector, or whose columns are mapped, by a commit of our own. The new file has
    its rows at the same places, so that it takes over the vector.
    """

    errors = ()

    def __init__(
        self, source: Source, table: Any, storage_options: Mapping[str, Any] | None, found: Table
    ) -> None:
        """`found`: the files of the table. UnsupportedError: the table has features that are not known here."""
        options = dict(storage_options or getattr(table, "_storage_options", None) or {})
        assert found.root is not None and found.version is not None
        super().__init__(f"Delta table {found.root.name}", secrets_of(options))
        self._delta, self._root = table, found.root
        self._commits = DeltaCommits(found.root, self.table)
        self._commits.refuse_store(options)
        self._first = self._seen = found.version
        i = next(i for i, one in enumerate(found.sources) if same_file(one, source))
        self._old, self._added = found.spelt[i], dict[str, Any]()
        self._fields: list[Mapping[str, Any]] = []  # of a table whose columns are mapped
        self._new = self.beside(self._old, found.sources[i])
        self.look()

    def look(self) -> None:
        """Find the newest version, and what it says of the file."""
        log = DeltaLog(self._root, self.table)
        self._seen = max(log.newest(), self._seen)
        said = log.replay(self._seen, actions=True)
        assert said.actions is not None
        protocol = said.actions.get("protocol") or {}
        unknown = sorted(set(protocol.get("writerFeatures") or ()) - FEATURES)
        if unknown or int(protocol.get("minWriterVersion", 0)) > WRITER:
            what = ", ".join(unknown) or f"version {protocol['minWriterVersion']} of the protocol"
            raise UnsupportedError(f"{self.table}: its writers have to know {what}: {DROP_FEATURE}")
        added = said.added.get(unquote(self._old))
        if added is None or not all(said.live([self._old], self.table)):
            raise FileChangedError(
                f"{self.table}: somebody else has taken {self._old} out of it meanwhile; begin again"
            )
        self._added = dict(added)
        try:
            told = said.actions["metaData"]
            mapped = (told.get("configuration") or {}).get(MODE, "none") != "none"
            self._fields = json.loads(told["schemaString"])["fields"] if mapped else []
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptFileError(f"{self.table}: its log makes no sense: {error!r}") from error

    def stored_name(self, column: str) -> str:
        return stored_name(self._fields, column) if self._fields else column

    def exchange(self, size: int) -> None:
        """Take the old file out and put the new one in, with the vector and the statistics of the old one."""
        now = int(time.time() * 1000)
        come = {name: self._added[name] for name in OF_ADDED if self._added.get(name) is not None}
        # a checkpoint has empty structs and maps where a commit has nothing; partitionValues is there always
        come = {name: one for name, one in come.items() if one != {} or name == "partitionValues"}
        come |= {
            "path": self._new, "size": size, "modificationTime": now, "dataChange": False,
        }  # fmt: skip
        try:
            body = commit_body(self._seen, now, {}, [self._added], [come])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptFileError(f"{self.table}: its log makes no sense: {error!r}") from error
        try:
            self._commits.create(self._seen + 1, body)
        except FileExistsError as error:
            raise OvertakenError(str(error)) from None
        with suppress(Exception):  # the commit is made, and the object can be opened again
            self._delta.update_incremental()

    def has_it(self) -> bool:
        """Whether a commit has added the new file."""
        log = DeltaLog(self._root, self.table)
        return any(
            (action.get("add") or {}).get("path") == self._new
            for version, name in log.commits().items()
            if version > self._first
            for action in log.actions(name)
        )


def delta_end(
    source: Source, table: Any, storage_options: Mapping[str, Any] | None
) -> DeltaEnd | DeltaLogEnd:
    """Where the new file of a DeltaTable goes. Files with deletion vectors or mapped columns take a commit of our own."""
    found = table_of_lake(table, storage_options)
    assert found is not None
    mine = [one for one in found.sources if same_file(one, source)]
    if mine and (found.fields or mine[0].deletes):
        return DeltaLogEnd(source, table, storage_options, found)
    return DeltaEnd(source, table, storage_options)


def _text(name: str, value: Any) -> str | None:
    """The value of a partition as the log spells it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if value.tzinfo else str(value)  # fmt: skip
    if isinstance(value, (int, dt.date, Decimal)):
        return str(value)
    raise UnsupportedError(
        f"a table that is partitioned by {name!r}, of {type(value).__name__}, cannot be committed to"
    )


def _stats(action: Mapping[str, Any]) -> str:
    """The statistics of the log, as JSON."""
    names = {"num_records": "numRecords", "min": "minValues", "max": "maxValues", "null_count": "nullCount"}  # fmt: skip
    found = {ours: _plain(action.get(theirs)) for theirs, ours in names.items()}
    return json.dumps({name: value for name, value in found.items() if value is not None})


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        made = {name: _plain(one) for name, one in value.items()}
        return {name: one for name, one in made.items() if one is not None} or None
    if isinstance(value, dt.datetime):
        if value.tzinfo:
            return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return value.isoformat(timespec="microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return (
            float(value) if Decimal(repr(float(value))) == value else None
        )  # a bound must not move
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else None
