"""Files of `write` that become part of a Delta Lake table by one commit to its log.

It needs `DeltaTable.create_write_transaction` and RemoveAction of `deltalake` (1.6 and later).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from pageseek.base.errors import FileChangedError, StoreError, UnsupportedError
from pageseek.datasets.lake_places import delta_options
from pageseek.datasets.lake_tables import table_of_lake
from pageseek.index.delta_commits import DROP_FEATURE
from pageseek.index.table_target import TRIES
from pageseek.spark.session.settings import Settings
from pageseek.spark.writing.commit import Staging
from pageseek.spark.writing.lake_columns import in_order
from pageseek.spark.writing.partition_values import partition_key, plain, spelled, typed
from pageseek.spark.writing.targets import Target
from pageseek.spark.writing.write_task import StagedReport
from pageseek.storage.output_folders import OutputFolder, output_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# features of writers that hold for new files, where no column and no property uses what is refused below
FEATURES = frozenset(
    ("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
     "identityColumns", "invariants", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
     "vacuumProtocolCheck")
)  # fmt: skip
_OF_COLUMNS = "delta.generationExpression", "delta.identity.", "delta.invariants", "__CHAR_VARCHAR"
_UTC = "UTC", "Etc/UTC", "GMT", "Z", "+00:00"


class DeltaTarget(Target):
    """A table of Delta Lake."""

    states, wants_a_file, has_binary_folders = True, False, False

    def __init__(self, table: Any, storage_options: Mapping[str, Any] | None) -> None:
        """UnsupportedError: the table has features that are not known here."""
        uri = str(table.table_uri)
        here = urlsplit(uri)
        if here.scheme in ("", "file"):
            folder = OutputFolder(os.path.abspath(unquote(here.path) if here.scheme else uri))
        else:
            own = delta_options(getattr(table, "_storage_options", None))
            folder = output_folder(uri, own if storage_options is None else storage_options)
        super().__init__(folder, f"Delta table {folder.name}")
        try:
            from deltalake.transaction import AddAction, RemoveAction
        except ImportError:
            raise UnsupportedError(
                f"{self.name}: this deltalake has no RemoveAction for transactions: pip install 'deltalake>=1.6'"
            ) from None
        self._add, self._remove = AddAction, RemoveAction
        self._delta, self._storage_options = table, storage_options
        table.update_incremental()
        self._schema = str(table.schema().to_json())
        self._fields = json.loads(self._schema)["fields"]
        self._partitions: list[str] = list(table.metadata().partition_columns)
        self._types = {field["name"]: str(field["type"]) for field in self._fields}
        self._required = {field["name"] for field in self._fields if not field["nullable"]}
        self._refuse()

    def _refuse(self) -> None:
        """Raise UnsupportedError where values would have to be checked or made."""
        unknown = sorted(set(self._delta.protocol().writer_features or ()) - FEATURES)
        if unknown:
            raise UnsupportedError(
                f"{self.name}: its writers have to know {', '.join(unknown)}: {DROP_FEATURE}"
            )
        settings = self._delta.metadata().configuration
        rules = [name for name in settings if name.startswith("delta.constraints.")]
        if settings.get("delta.columnMapping.mode", "none") != "none":
            rules.append("delta.columnMapping.mode")
        for field in self._fields:
            told = json.dumps(field)
            rules += [f"{one} of {field['name']!r}" for one in _OF_COLUMNS if f'"{one}' in told]
        if rules:
            raise UnsupportedError(
                f"{self.name}: {rules[0]} is for Delta's own writers: write with Spark's delta format or deltalake"
            )

    def fitted(self, df: DataFrame, settings: Settings) -> DataFrame:
        from pyspark.sql.types import StructType

        wanted = StructType.fromJson(json.loads(self._schema))
        types = {field.name: field.dataType.simpleString() for field in wanted}
        df = in_order(df, settings, self.name, types, self._required | set(self._partitions))
        zoned = [name for name in self._partitions if types[name] == "timestamp"]
        if zoned and settings.time_zone not in _UTC:
            raise UnsupportedError(
                f"{self.name}: partitions of {zoned[0]!r} are named in UTC: set spark.sql.session.timeZone to UTC"
            )
        for field in df.schema.fields:
            whole = wanted[field.name]
            if field.dataType.typeName() in ("struct", "array", "map") and "false" in json.dumps(
                whole.jsonValue()
            ).replace('"nullable": true', ""):
                raise UnsupportedError(
                    f"{self.name}: column {field.name!r} may have no nulls inside, which is not checked here: write with "
                    "Spark's delta format or deltalake"
                )
        return df

    def partitions(self, given: tuple[str, ...]) -> tuple[str, ...]:
        own = tuple(self._partitions)
        if given and given != own:
            raise UnsupportedError(
                f"{self.name}: it is partitioned by {', '.join(own) or 'nothing'}, and not by {', '.join(given)}"
            )
        return own

    def files(self) -> Sequence[str]:
        return [unquote(one["path"]) for one in self._actions()]

    def check(self, mode: str, dynamic: bool) -> None:
        """Nothing: files stay where they are, and the log forgets them."""

    def beside(self, mode: str, dynamic: bool) -> Sequence[str]:
        """None: `fitted` knows what the table's columns are."""
        return ()

    def publish(
        self, staging: Staging, made: Sequence[StagedReport], mode: str, dynamic: bool
    ) -> int | None:
        self._refuse_nulls(made)
        names = {one.staged or "": one.name for one in made}
        staging.bring(names)  # nobody reads them before the log has them
        done = False
        try:
            removed = self._commit(made, mode, dynamic)
            done = removed is not None
        finally:
            if not done and not self._has(made):
                self.folder.delete(names.values())
        return removed

    def _refuse_nulls(self, made: Sequence[StagedReport]) -> None:
        for one in made:
            nulls = json.loads(one.statistics or "{}").get("nullCount", {})
            nulls |= {name: int(text is None) for name, text in self._texts(one).items()}
            wrong = sorted(name for name in self._required if nulls.get(name, 0))
            if wrong:
                raise UnsupportedError(
                    f"{self.name}: column {wrong[0]!r} may have no nulls, and the DataFrame has some"
                )

    def _commit(self, made: Sequence[StagedReport], mode: str, dynamic: bool) -> int | None:
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError, DeltaError

        why: Exception | None = None
        for _ in range(TRIES):
            self._delta.update_incremental()
            if str(self._delta.schema().to_json()) != self._schema:
                raise FileChangedError(
                    f"{self.name}: its columns have changed meanwhile; write again"
                )
            there = self._actions() if mode != "append" else []
            if mode == "error" and there:
                raise FileExistsError(
                    f"{self.name}: files have come into it meanwhile; nothing was written"
                )
            if mode == "ignore" and there:
                return None
            old = self._old(there, made, dynamic)
            self._refuse_vectors(old)
            if not old and not made:
                return 0
            now = int(time.time() * 1000)
            actions = [self._gone(one, now) for one in old] + [self._new(one, now) for one in made]
            try:
                self._delta.create_write_transaction(
                    actions,
                    mode="append",
                    schema=self._delta.schema(),
                    partition_by=self._partitions,
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
            except CommitFailedError as error:
                why = error
                if self._has(made):
                    return len(old)
                continue
            except DeltaError as error:
                raise StoreError(f"{self.name}: the commit failed: {error}") from None
            return len(old)
        raise StoreError(f"{self.name}: {TRIES} commits were overtaken or failed: {why}")

    def _old(
        self, there: list[dict[str, Any]], made: Sequence[StagedReport], dynamic: bool
    ) -> list[dict[str, Any]]:
        """The files that go."""
        if not dynamic:
            return there
        written = {
            partition_key(typed(text, self._types[name]) for name, text in self._texts(one).items())
            for one in made
        }
        return [one for one in there if partition_key(one["values"]) in written]

    def _refuse_vectors(self, old: Sequence[Mapping[str, Any]]) -> None:
        """Raise UnsupportedError where a file that goes has a deletion vector: the log would keep it, as the name of such a file is
        its path and its vector.
        """
        if not old or "deletionVectors" not in (self._delta.protocol().reader_features or ()):
            return
        found = table_of_lake(self._delta, self._storage_options)
        assert found is not None
        spelt = zip(found.spelt, found.sources, strict=True)
        there = {path for path, one in spelt if one.deletes}
        for one in old:
            if one["path"] in there:
                raise UnsupportedError(
                    f"{self.name}: {one['path']} has a deletion vector, which RemoveAction of deltalake does not tell of: take the "
                    "deleted rows out before, by pageseek.rewrite(table, in_place=True) or REORG TABLE ... APPLY (PURGE), or write with "
                    "Spark's delta format"
                )

    def _texts(self, one: StagedReport) -> dict[str, str | None]:
        """The values of a new file's partition, as its log has them: there an empty text is NULL."""
        texts = json.loads(one.values or "[]")
        return {name: text or None for name, text in zip(self._partitions, texts, strict=True)}

    def _gone(self, action: Mapping[str, Any], now: int) -> Any:
        of = zip(self._partitions, action["values"], strict=True)
        texts = {name: spelled(value, self._types[name]) for name, value in of}
        return self._remove(unquote(action["path"]), True, now, action["size_bytes"], texts)

    def _new(self, one: StagedReport, now: int) -> Any:
        return self._add(one.name, one.bytes, self._texts(one), now, True, one.statistics or "{}")

    def _has(self, made: Sequence[StagedReport]) -> bool:
        """Whether the newest version has the files."""
        self._delta.update_incremental()
        return bool(made) and made[0].name in set(self.files())

    def _actions(self) -> list[dict[str, Any]]:
        """The files of the newest version: `path`, `size_bytes`, and the `values` of their partitions."""
        found = pa.table(self._delta.get_add_actions())
        values: list[Any] = [()] * found.num_rows
        if self._partitions and found.num_rows:
            of = dict(zip(_names(found), found.column("partition").flatten(), strict=True))
            values = list(zip(*(plain(of[name]) for name in self._partitions), strict=True))
        rows: list[dict[str, Any]] = found.select(["path", "size_bytes"]).to_pylist()
        return [{**row, "values": one} for row, one in zip(rows, values, strict=True)]


def _names(found: pa.Table) -> list[str]:
    """The columns of partitions that a list of files has."""
    return [field.name for field in found.schema.field("partition").type]
