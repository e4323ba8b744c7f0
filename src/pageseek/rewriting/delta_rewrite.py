"""Files of a Delta Lake table exchanged by one commit to its log (Delta protocol, "Add File and Remove File")."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pageseek.base.errors import CorruptFileError, FileChangedError, StoreError, UnsupportedError
from pageseek.datasets.delta_bounds import PHYSICAL_NAME
from pageseek.datasets.delta_log import DeltaLog
from pageseek.datasets.delta_paths import is_absolute
from pageseek.datasets.table_files import Table
from pageseek.index.delta_commits import DROP_FEATURE, DeltaCommits, commit_body, stored_name
from pageseek.index.delta_statistics import stated
from pageseek.index.delta_target import FEATURES, WRITER
from pageseek.index.table_target import TRIES
from pageseek.rewriting.table_rewrite import (
    BEGIN_AGAIN,
    STAY,
    Group,
    NewFile,
    TableRewrite,
    folder_of,
    leaves,
    neighbour,
    new_name,
)
from pageseek.storage import Source

ID = "delta.columnMapping.id"
FIELD_ID = b"PARQUET:field_id"


class DeltaRewrite(TableRewrite):
    """A version of a Delta Lake table."""

    def __init__(self, found: Table, options: Mapping[str, Any] | None, opened: Any = None) -> None:
        """`options`: of the table's store. `opened`: a DeltaTable, which is brought to the version that is committed.
        UnsupportedError: the table cannot be written to here.
        """
        self._opened = opened
        assert found.root is not None and found.version is not None
        self.found, self._root, self._version = found, found.root, found.version
        self.name = f"Delta table {self._root.name}"
        self._commits = DeltaCommits(self._root, self.name)
        self._commits.refuse_store(options or {})
        said = DeltaLog(self._root, self.name).replay(self._version, actions=True)
        assert said.actions is not None
        with _understood(self.name):
            protocol, metadata = said.actions["protocol"], said.actions["metaData"]
            needed = set(protocol.get("writerFeatures") or ())
            fields = json.loads(metadata["schemaString"])["fields"]
            settings = dict(metadata.get("configuration") or {})
            self._added = self._old = [said.added[unquote(path)] for path in found.spelt]
            self._partitions = set(metadata.get("partitionColumns") or ())
            newer = int(protocol["minWriterVersion"]) > WRITER
            self._fields: dict[str, Mapping[str, Any]] = {one["name"]: one for one in fields}
        unknown = sorted(needed - FEATURES)
        if unknown or newer:
            what = ", ".join(unknown) or f"version {protocol['minWriterVersion']} of the protocol"
            raise UnsupportedError(f"{self.name}: its writers have to know {what}: {DROP_FEATURE}")
        self._mapped = settings.get("delta.columnMapping.mode", "none") != "none"

    # -- files -------------------------------------------------------------------------------------

    def groups(self) -> list[Group]:
        found: dict[Any, list[int]] = {}
        for i, source in enumerate(self.found.sources):
            key = tuple((name, repr(value.as_py() if value is not None else None)) for name, value in source.partitions)  # fmt: skip
            found.setdefault(key, []).append(i)
        return [Group(tuple(files)) for files in found.values()]

    def partition(self, group: Group) -> dict[str, Any]:
        found = self.found.sources[group.files[0]].partitions
        return {name: None if value is None else value.as_py() for name, value in found}

    def choose(self, groups: Sequence[Group]) -> None:
        self._old = [self._added[i] for group in groups for i in group.files]

    def beside(self, group: Group) -> tuple[str, Source]:
        name = new_name()
        for i in group.files:
            spelt = self.found.spelt[i]
            if not (is_absolute(spelt) or leaves(unquote(spelt))):  # may be another table's
                return folder_of(spelt) + name, neighbour(self.found.sources[i], name)
        slash = "" if not self._root.path or self._root.path.endswith("/") else "/"
        return name, replace(self._root, path=f"{self._root.path}{slash}{name}")

    def stored(self, schema: pa.Schema) -> tuple[list[str], pa.Schema]:
        kept = [field for field in schema if field.name not in self._partitions]
        if not kept:
            raise UnsupportedError(
                f"{self.name}: all its columns are partitions: its files have none"
            )
        names = [field.name for field in kept]
        with _understood(self.name):
            kept = [_stored_field(one, self._fields[one.name], self._mapped) for one in kept]
        return names, pa.schema(kept, metadata=schema.metadata)

    def stored_name(self, column: str) -> str:
        if not self._mapped:
            return column
        return stored_name(list(self._fields.values()), column)

    # -- the commit --------------------------------------------------------------------------------

    def commit(self, new: Sequence[NewFile], order: Mapping[str, Sequence[str]]) -> int:
        body = self._body(new, order)
        seen = self._version
        for _ in range(TRIES):
            seen = self._look(seen)
            try:
                self._create(seen + 1, body, new)
            except FileExistsError:
                continue
            with suppress(Exception):  # the commit is made, and the object can be opened again
                self._opened.update_incremental()
            return seen + 1
        raise StoreError(f"{self.name}: {TRIES} commits were overtaken")

    def _body(self, new: Sequence[NewFile], order: Mapping[str, Sequence[str]]) -> bytes:
        now = int(time.time() * 1000)
        with _understood(self.name):
            return commit_body(
                self._version, now, order, self._old, [self._come(one, now) for one in new]
            )

    def _come(self, one: NewFile, now: int) -> dict[str, Any]:
        return {
            "path": one.spelt,
            "partitionValues": dict(self._added[one.group.files[0]]["partitionValues"]),
            "size": one.size,
            "modificationTime": now,
            "dataChange": False,
            "stats": stated(one.metadata),
        }

    def _look(self, seen: int) -> int:
        """The newest version. FileChangedError: since the one that was seen there was a commit that ours does not go with."""
        log = DeltaLog(self._root, self.name)
        commits, newest = log.commits(), log.newest()
        if newest < seen:
            raise FileChangedError(
                f"{self.name}: its log has no version {seen} any more; {BEGIN_AGAIN}"
            )
        spelling = log.spelling.of
        ours = {spelling(one["path"]) for one in self._old}
        for version in range(seen + 1, newest + 1):
            if version not in commits:
                raise FileChangedError(
                    f"{self.name}: its log has been cleaned of version {version}, so that nobody knows what came between; {BEGIN_AGAIN}"
                )
            for action in log.actions(commits[version]):
                for kind in ("add", "remove"):
                    if action.get(kind) and spelling(action[kind]["path"]) in ours:
                        raise FileChangedError(
                            f"{self.name}: version {version} has changed {action[kind]['path']}, or taken it out of the table, "
                            f"meanwhile; {BEGIN_AGAIN}"
                        )
                if action.get("metaData") or action.get("protocol"):
                    raise FileChangedError(
                        f"{self.name}: version {version} has changed its columns or properties meanwhile; {BEGIN_AGAIN}"
                    )
        return newest

    def _create(self, version: int, body: bytes, new: Sequence[NewFile]) -> None:
        """Write a commit, if nobody has written that version. FileExistsError: somebody has."""
        try:
            self._commits.create(version, body)
        except StoreError as error:
            stays = f"; {STAY}" if self.may_have(new) else ""
            raise StoreError(f"{self.name}: the commit failed: {error}{stays}") from None

    def may_have(self, new: Sequence[NewFile]) -> bool:
        if not new:
            return False
        try:
            log = DeltaLog(self._root, self.name)
            ours = new[0].spelt
            return any(
                (action.get("add") or {}).get("path") == ours
                for version, name in log.commits().items()
                if version > self._version
                for action in log.actions(name)
            )
        except Exception:  # noqa: BLE001 - nobody knows then
            return True


class _understood:  # noqa: N801 - a context manager
    """Turn what a log that makes no sense leads to into an error that says so."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, (AttributeError, KeyError, TypeError, ValueError)):
            raise CorruptFileError(f"{self._name}: its log makes no sense: {error!r}") from error


def _stored_field(field: pa.Field, told: Mapping[str, Any], mapped: bool) -> pa.Field:
    """A field as files have it. `told`: the same in the log. `mapped`: files have names of their own (Column Mapping)."""
    kind = _stored_type(field.type, told["type"], mapped)
    if not mapped:
        return pa.field(field.name, kind, bool(told["nullable"]), field.metadata)
    said = told["metadata"]
    metadata = {FIELD_ID: str(int(said[ID])).encode()}
    return pa.field(str(said[PHYSICAL_NAME]), kind, bool(told["nullable"]), metadata)


def _stored_type(kind: pa.DataType, told: Any, mapped: bool) -> pa.DataType:
    if not isinstance(told, Mapping):
        return kind
    if told["type"] == "struct":
        fields = list(_pairs(kind, told["fields"]))
        return pa.struct([_stored_field(field, one, mapped) for field, one in fields])
    if told["type"] == "map":
        key, item = kind.key_field, kind.item_field
        key = key.with_type(_stored_type(key.type, told["keyType"], mapped))
        item = item.with_type(_stored_type(item.type, told["valueType"], mapped))
        return pa.map_(key, item.with_nullable(bool(told["valueContainsNull"])))
    inner = kind.value_field
    inner = inner.with_type(_stored_type(inner.type, told["elementType"], mapped))
    return pa.list_(inner.with_nullable(bool(told["containsNull"])))


def _pairs(
    kind: pa.StructType, told: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[pa.Field, Mapping[str, Any]]]:
    """The fields of a struct, with what the log says of each."""
    said = {one["name"]: one for one in told}
    for i in range(kind.num_fields):
        yield kind.field(i), said[kind.field(i).name]
