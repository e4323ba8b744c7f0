"""Files of an Iceberg table exchanged by one commit to its catalog: a `replace` snapshot for each partition spec that they have.

New files have the sequence number of the commit: deletes of before do not concern them, and later ones do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pageseek.base.errors import (
    FileChangedError,
    PageseekError,
    StoreError,
    UnsupportedError,
)
from pageseek.datasets.lake_places import iceberg_places
from pageseek.datasets.lake_tables import table_of_lake
from pageseek.datasets.table_files import Table
from pageseek.index.iceberg_commits import (
    OTHER,
    IcebergCommits,
    iceberg_name,
    tried_once,
)
from pageseek.index.table_target import TRIES, OvertakenError
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
from pageseek.storage.resolve import DEFAULT_RETRY


class IcebergRewrite(TableRewrite):
    """The newest snapshot of an Iceberg table."""

    def __init__(
        self, commits: IcebergCommits, found: Table, storage_options: Mapping[str, Any] | None
    ) -> None:
        """`found`: of the snapshot that `commits` knows. UnsupportedError: its files cannot be exchanged."""
        self._commits, self.found, self.name = commits, found, commits.name
        table = commits.table
        try:
            from pyiceberg.io import pyarrow as room
            from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

            self._make, self._data, self._parquet = DataFile.from_args, DataFileContent.DATA, FileFormat.PARQUET  # fmt: skip
            self._statistics = room.data_file_statistics_from_parquet_metadata
            self._plan, self._ids = room.compute_statistics_plan, room.parquet_path_to_id_mapping
        except (ImportError, AttributeError):
            raise UnsupportedError(f"{self.name}: {OTHER}") from None
        self._storage_options = storage_options
        self._places = iceberg_places(self.name, table.io, storage_options, DEFAULT_RETRY)
        entries = commits.entries(deletes=False)
        self._entries = {one.data_file.file_path: one for one in entries}
        if len(self._entries) < len(entries):
            raise UnsupportedError(
                f"{self.name}: it has a file several times: rewrite its data files with another engine"
            )
        if set(self._entries) != set(found.spelt):
            raise FileChangedError(f"{self.name}: it was changed meanwhile; {BEGIN_AGAIN}")
        for one in entries:
            commits.refuse_partition(one.data_file)
        self._old = self._entries
        self._deletes = self._delete_files()
        self._before = commits.snapshot

    def _delete_files(self) -> set[tuple[str, int | None]]:
        return {
            (one.data_file.file_path, one.sequence_number)
            for one in self._commits.entries(deletes=True)
        }

    # -- files -------------------------------------------------------------------------------------

    def groups(self) -> list[Group]:
        found: dict[Any, list[int]] = {}
        for i, path in enumerate(self.found.spelt):
            data = self._entries[path].data_file
            values = [repr(data.partition[at]) for at in range(len(data.partition))]
            found.setdefault((data.spec_id, *values), []).append(i)
        return [Group(tuple(files)) for files in found.values()]

    def partition(self, group: Group) -> dict[str, Any]:
        data = self._entries[self.found.spelt[group.files[0]]].data_file
        table = self._commits.table
        fields, schema = table.specs()[data.spec_id].fields, table.schema()
        named = [schema.find_column_name(field.source_id) for field in fields]
        return {
            name: data.partition[at]
            for at, (name, field) in enumerate(zip(named, fields, strict=True))
            if name is not None and str(field.transform) == "identity"
        }

    def choose(self, groups: Sequence[Group]) -> None:
        paths = [self.found.spelt[i] for group in groups for i in group.files]
        self._old = {path: self._entries[path] for path in paths}

    def stored(self, schema: pa.Schema) -> tuple[list[str], pa.Schema]:
        names = list(schema.names)
        told = {field.name: field for field in self._commits.table.schema().as_arrow()}
        kept = [_with_ids(field, told[field.name]) for field in schema]
        return names, pa.schema(kept, metadata=schema.metadata)

    def beside(self, group: Group) -> tuple[str, Source]:
        table, name = self._commits.table, new_name()
        location = f"{str(table.metadata.location).rstrip('/')}/"
        where = str(table.properties.get("write.data.path") or f"{location}data").rstrip("/") + "/"
        for i in group.files:
            spelt = self.found.spelt[i]
            if spelt.startswith((where, location)) and not leaves(spelt):  # may be another table's
                return folder_of(spelt) + name, neighbour(self.found.sources[i], name)
        return where + name, self._places.source(where + name, (), encoded=False)

    # -- the commit --------------------------------------------------------------------------------

    def commit(self, new: Sequence[NewFile], order: Mapping[str, Sequence[str]]) -> int:
        try:
            return self._commit(new)
        except PageseekError:
            raise
        except Exception as error:  # noqa: BLE001 - pyiceberg's, its catalogs' and stores'
            stays = f"; {STAY}" if self.may_have(new) else ""
            raise StoreError(
                f"{self.name}: the commit failed: {self._commits.said(error)}{stays}"
            ) from None

    def _commit(self, new: Sequence[NewFile]) -> int:
        come = [self._entry(one) for one in new]
        why = ""
        for _ in range(TRIES):
            self._commits.refresh()
            self._look()
            try:
                return self._send(come)
            except OvertakenError as error:
                why = str(error)
        raise StoreError(f"{self.name}: {TRIES} commits were overtaken or failed: {why}")

    def _look(self) -> None:
        """Raise FileChangedError where the newest snapshot has not all the files with all their rows any more."""
        if self._commits.snapshot == self._before:
            return
        there = {one.data_file.file_path: one for one in self._commits.entries(deletes=False)}
        for path, one in self._old.items():
            if path not in there or there[path].sequence_number != one.sequence_number:
                raise FileChangedError(
                    f"{self.name}: somebody else has taken {path} out of it meanwhile; {BEGIN_AGAIN}"
                )
        changed = self._delete_files() ^ self._deletes
        if changed and self._have_other_deletes():
            raise FileChangedError(
                f"{self.name}: rows were deleted meanwhile, or deletes taken back ({min(changed)[0]}); {BEGIN_AGAIN}"
            )
        self._before = self._commits.snapshot

    def _have_other_deletes(self) -> bool:
        """Whether deletes of other rows apply to the files now. Those of files that stay, in other partitions say, do not matter."""
        now = table_of_lake(self._commits.table, self._storage_options)
        assert now is not None
        before, after = (
            {path: set(one.deletes) for path, one in zip(found.spelt, found.sources, strict=True)}
            for found in (self.found, now)
        )
        return any(before[path] != after[path] for path in self._old)

    def _entry(self, one: NewFile) -> Any:
        """What the manifest says of a new file: it has no order that readers may count on."""
        table = self._commits.table
        old = self._entries[self.found.spelt[one.group.files[0]]].data_file
        try:
            told = self._statistics(
                parquet_metadata=one.metadata,
                stats_columns=self._plan(table.schema(), table.properties),
                parquet_column_mapping=self._ids(table.schema()),
            )
            made = self._make(
                content=self._data, file_path=one.spelt, file_format=self._parquet, partition=old.partition,
                file_size_in_bytes=one.size, sort_order_id=None, spec_id=old.spec_id, equality_ids=None,
                key_metadata=None, **told.to_serialized_dict(),
            )  # fmt: skip
        except (AttributeError, TypeError, LookupError) as error:
            raise UnsupportedError(f"{self.name}: {OTHER} ({self._commits.said(error)})") from None
        made.spec_id = old.spec_id
        return made

    def _send(self, come: Sequence[Any]) -> int:
        numbers: list[int] = []
        mine = tried_once(self._commits.table, numbers)
        old = [one.data_file for one in self._old.values()]
        parts = [
            (spec, [one for one in old if one.spec_id == spec], [one for one in come if one.spec_id == spec])
            for spec in sorted({one.spec_id for one in old})
        ]  # fmt: skip
        made, snapshots = self._commits.exchanged(mine, parts, _as_replace)
        after = snapshots[-1]
        lost, found, written = self._commits.compared(self._before, after)
        written += [one.manifest_list for one in snapshots[:-1]]
        wanted = sorted(
            (path, int(one.data_file.content or 0), one.data_file.spec_id, one.sequence_number)
            for path, one in self._old.items()
        )
        ours = sorted((one.file_path, 0, one.spec_id) for one in come)
        operations = {str(one.summary.operation.value) for one in snapshots}
        if (
            sorted(lost) != wanted
            or sorted(one[:3] for one in found) != ours
            or operations != {"replace"}
        ):
            self._commits.discard(written)
            raise StoreError(
                f"{self.name}: pyiceberg made a snapshot that takes {len(lost)} files out and puts {len(found)} in, where "
                f"{len(wanted)} are exchanged for {len(ours)}: it was not committed"
            )
        numbers.append(after.snapshot_id)
        self._commits.send(made, mine, after.snapshot_id, written, "the new files stay")
        return int(after.snapshot_id)

    def may_have(self, new: Sequence[NewFile]) -> bool:
        try:
            return self._commits.may_have()
        except Exception:  # noqa: BLE001 - nobody knows then
            return True


def iceberg_commits(table: Any) -> IcebergCommits:
    """The commits of a table, which is brought to its newest version."""
    return IcebergCommits(table, iceberg_name(table))


def _as_replace(update: Any) -> None:
    """Let a snapshot say that rows stay: readers of changes pass over it. Pyiceberg makes no such snapshots by itself."""
    real = update._summary

    def summary(*given: Any, **named: Any) -> Any:
        said = real(*given, **named)
        kind = type(said.operation)
        return type(said)(operation=kind.REPLACE, **said.additional_properties)

    update._summary = summary


def _with_ids(field: pa.Field, told: pa.Field) -> pa.Field:
    """A field with the ids and the nullability of another, at any depth."""
    kind = _type_with_ids(field.type, told.type)
    return pa.field(field.name, kind, told.nullable, told.metadata)


def _type_with_ids(kind: pa.DataType, told: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_struct(kind):
        return pa.struct([_with_ids(kind.field(i), told.field(kind.field(i).name)) for i in range(kind.num_fields)])  # fmt: skip
    if t.is_map(kind):
        key, item = (_with_ids(kind.key_field, told.key_field), _with_ids(kind.item_field, told.item_field))  # fmt: skip
        return pa.map_(key, item)
    if t.is_list(kind):
        return pa.list_(_with_ids(kind.value_field, told.value_field))
    return kind
