"""A file of a Delta Lake table, replaced through the table: the new file lies beside the old one, and one commit takes out the
one and puts in the other, with what the log said of the rows.

Asked of `deltalake` is `DeltaTable.create_write_transaction` with RemoveAction (1.6 and later).
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pageseek.errors import FileChangedError, StoreError, UnsupportedError
from pageseek.index.store_target import StoreTarget
from pageseek.index.target import LocalTarget, Target
from pageseek.storage import Source, Store
from pageseek.storage.lake import table_of_lake
from pageseek.storage.redact import cleaned, secrets_of
from pageseek.storage.writing import writer

# what a writer has to know, and is kept where a file is exchanged for one with the same rows
FEATURES = frozenset(
    ("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
     "identityColumns", "invariants", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
     "vacuumProtocolCheck")
)  # fmt: skip
TRIES = 10  # commits of others that may come between


class DeltaEnd:
    """Where the new file goes: into the folder of the old one."""

    def __init__(
        self, source: Source, table: Any, storage_options: Mapping[str, Any] | None
    ) -> None:
        """UnsupportedError where the table asks more of writers than is known here; ValueError where it has no such file."""
        self._table = table
        self._name = f"Delta table {table.table_uri}"
        self._secrets = secrets_of(dict(getattr(table, "_storage_options", None) or {}))
        try:
            from deltalake.transaction import AddAction, RemoveAction
        except ImportError:
            raise UnsupportedError(
                f"{self._name}: this deltalake has no RemoveAction for transactions: pip install 'deltalake>=1.6'"
            ) from None
        self._add, self._remove = AddAction, RemoveAction
        unknown = sorted(set(table.protocol().writer_features or ()) - FEATURES)
        if unknown:
            raise UnsupportedError(f"{self._name}: its writers have to know {', '.join(unknown)}")
        found = table_of_lake(table, storage_options)
        if found is None:
            raise TypeError(f"table {type(table).__name__}: a deltalake.DeltaTable")
        mine = [i for i, one in enumerate(found.sources) if _key(one) == _key(source)]
        if not mine:
            raise ValueError(
                f"{source.name}: version {table.version()} of {self._name} has no such file"
            )
        self._action = self._actions()[mine[0]]
        self._partitions = {
            name: _text(name, value)
            for name, value in (self._action.get("partition") or {}).items()
        }
        self._old = unquote(self._action["path"])
        where = found.sources[mine[0]]
        end = f"-{secrets.token_hex(6)}.parquet"
        self._new = self._old.removesuffix(".parquet") + end
        to = where.path.removesuffix(".parquet") + end
        self.to = Source(to, where.filesystem, patience=where.patience)

    @property
    def shown(self) -> str:
        """The place, without secrets."""
        return self.to.name

    def target(self, source: Store) -> Target:
        """What the new file is written to."""
        if self.to.filesystem is not None:
            return StoreTarget(self.to, source, False, False)
        return LocalTarget(self.to.path, None)

    def done(self, size: int) -> None:
        """The new file is there: commit it.

        Raises
        ------
        FileChangedError
            The table has the old file no more. The new one is deleted.
        StoreError
            The commit failed.
        """
        from deltalake.exceptions import DeltaError

        try:
            self._commit(size)
        except DeltaError as error:
            said = cleaned(str(error), self._secrets)
            self._delete()
            raise StoreError(f"{self._name}: the commit failed: {said}") from None
        except BaseException:
            self._delete()
            raise

    def _commit(self, size: int) -> None:
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError

        why = ""
        for _ in range(TRIES):
            # a commit that others have overtaken must fail: deltalake itself would let it in after a compaction
            # that has taken the old file out, and the rows would be there twice
            self._table.update_incremental()
            now = [one["path"] for one in self._actions()]
            if self._action["path"] not in now:
                raise FileChangedError(
                    f"{self._name}: somebody else has taken {self._old} out of it meanwhile; begin anew"
                )
            moment = int(time.time() * 1000)
            try:
                self._table.create_write_transaction(
                    [
                        self._remove(self._old, False, moment, self._action["size_bytes"], self._partitions),
                        self._add(self._new, size, self._partitions, moment, False, _stats(self._action)),
                    ],
                    mode="append",
                    schema=self._table.schema(),
                    partition_by=self._table.metadata().partition_columns,
                    commit_properties=CommitProperties(max_commit_retries=0),
                )  # fmt: skip
            except CommitFailedError as error:
                why = cleaned(str(error), self._secrets)
                continue
            self._table.update_incremental()
            return
        raise StoreError(f"{self._name}: {TRIES} commits were overtaken or failed: {why}")

    def _actions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pa.table(self._table.get_add_actions()).to_pylist()
        return found

    def _delete(self) -> None:
        """Take the new file back, unless the table may have it."""
        with suppress(Exception):
            self._table.update_incremental()
            if any(unquote(one["path"]) == self._new for one in self._actions()):
                return
            if self.to.filesystem is None:
                os.unlink(self.to.path)
            else:
                writer(self.to).delete()


def _key(one: Source) -> str:
    return os.path.realpath(one.path) if one.filesystem is None else one.key


def _text(name: str, value: Any) -> str | None:
    """A value of a partition as the log spells it."""
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
    """What the log said of the rows, as JSON."""
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
