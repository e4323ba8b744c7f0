"""Files of `write` that become part of an Iceberg table by one commit to its catalog.

It needs `parquet_file_to_data_file` of `pyiceberg` (0.10 and later), which reads the bounds of each file from its footer. It
guesses the partition by these bounds, which NaN, an empty text or a column without bounds have not: that is set here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import FileChangedError, StoreError, UnsupportedError
from pageseek.datasets.lake_places import iceberg_places
from pageseek.index.iceberg_commits import OTHER, REFUSALS, VERSIONS, reads_doubles, tried_once
from pageseek.index.table_target import TRIES
from pageseek.spark.session.settings import Settings
from pageseek.spark.writing.commit import Staging
from pageseek.spark.writing.lake_columns import in_order
from pageseek.spark.writing.partition_values import partition_key, typed
from pageseek.spark.writing.targets import Target
from pageseek.spark.writing.write_task import StagedReport
from pageseek.storage.output_folders import AT_ONCE, OutputFolder, StoreFolder
from pageseek.storage.resolve import DEFAULT_RETRY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType


class IcebergTarget(Target):
    """A table of Iceberg, with its catalog. The columns of partitions are in its files."""

    keeps, wants_a_file, has_binary_folders = True, False, False
    _errors: tuple[type[Exception], ...] = (Exception,)  # of pyiceberg, its catalogs and stores

    def __init__(self, table: Any, storage_options: Mapping[str, Any] | None) -> None:
        """UnsupportedError: the table is partitioned by more than values of columns, or has no catalog."""
        name = f"Iceberg table {table.metadata.location}"
        where = table.properties.get("write.data.path") or f"{table.location().rstrip('/')}/data"
        self._where = where.rstrip("/")
        places = iceberg_places(name, table.io, storage_options, DEFAULT_RETRY)
        source = places.source(self._where, (), encoded=False)
        folder = OutputFolder(source.path)
        if source.filesystem is not None:
            folder = StoreFolder(source, source.filesystem)
        super().__init__(folder, name)
        self._ice = table
        try:
            table.refresh()
        except NotImplementedError:
            raise UnsupportedError(
                f"{name}: {type(table).__name__} has no catalog to commit to: load the table through one"
            ) from None
        if table.metadata.format_version not in VERSIONS:
            raise UnsupportedError(
                f"{name}: it is of version {table.metadata.format_version} of the format, of which pyiceberg writes no snapshots"
            )
        try:
            from pyiceberg.io.pyarrow import parquet_file_to_data_file
        except ImportError:
            raise UnsupportedError(f"{name}: {OTHER}") from None
        self._described = parquet_file_to_data_file
        self._schema, self._spec = table.schema(), table.spec()
        self._partitions: list[str] = []
        self._kinds: list[str] = []
        for field in table.spec().fields:
            column = self._schema.find_column_name(field.source_id)
            if str(field.transform) != "identity" or column is None or "." in column:
                raise UnsupportedError(
                    f"{name}: it is partitioned by {field.transform} of {column!r}; files can be added where partitions are values "
                    "of columns: write with Spark's iceberg format"
                )
            self._partitions.append(column)
            kind = str(self._schema.find_type(field.source_id))
            if kind == "double" and not reads_doubles():
                raise UnsupportedError(
                    f"{name}: it is partitioned by {column!r}, a double, and this pyiceberg reads doubles of manifests as floats: write "
                    "with Spark's iceberg format"
                )
            self._kinds.append("long" if kind == "timestamptz" else kind)

    def fitted(self, df: DataFrame, settings: Settings) -> DataFrame:
        types = {field.name: _spark_name(field.field_type) for field in self._schema.fields}
        needed = {field.name for field in self._schema.fields if field.required}
        df = in_order(df, settings, self.name, types, needed | set(self._partitions))
        loose = [f.name for f in df.schema.fields if f.name in needed and f.nullable]
        if loose:
            raise UnsupportedError(
                f"{self.name}: column {loose[0]!r} is required there, and may be null in the DataFrame"
            )
        return df

    def partitions(self, given: tuple[str, ...]) -> tuple[str, ...]:
        own = tuple(self._partitions)
        if given and given != own:
            raise UnsupportedError(
                f"{self.name}: it is partitioned by {', '.join(own) or 'nothing'}, and not by {', '.join(given)}"
            )
        return own

    def text(self, column: Column, kind: SparkType) -> Column:
        """Timestamps as microseconds: an hour that the clocks of a time zone show twice has one other text for two values."""
        from pyspark.sql import functions as f

        if kind.typeName() == "timestamp":
            column = f.unix_micros(column)
        return super().text(column, kind)

    def files(self) -> Sequence[str]:
        self._ice.refresh()
        return [one.file_path for one in self._live()]

    def _live(self) -> list[Any]:
        """The data files of the snapshot that is known."""
        return [one.file for one in self._ice.scan().plan_files()]

    def check(self, mode: str, dynamic: bool) -> None:
        if mode == "overwrite":
            self._ice.refresh()
            self._refuse_old(self._live(), dynamic)

    def _refuse_old(self, there: Sequence[Any], dynamic: bool) -> None:
        """Raise UnsupportedError where files cannot be replaced."""
        for one in there:
            if dynamic and one.spec_id != self._spec.spec_id:
                raise UnsupportedError(
                    f"{self.name}: {one.file_path} is of an earlier partitioning, and may have rows of many partitions: rewrite its "
                    "data files (rewrite_data_files), or overwrite the whole table (dynamic=False)"
                )
            if not dynamic and any(_is_nan(value) for value in one.partition):
                raise UnsupportedError(
                    f"{self.name}: {one.file_path} has NaN for a partition, which pyiceberg cannot replace: delete the partition with "
                    "Spark's iceberg format first"
                )

    def beside(self, mode: str, dynamic: bool) -> Sequence[str]:
        """None: `fitted` knows what the table's columns are."""
        return ()

    def publish(
        self, staging: Staging, made: Sequence[StagedReport], mode: str, dynamic: bool
    ) -> int | None:
        for one in made:
            if any(_is_nan(value) for value in self._values(one)):
                raise UnsupportedError(
                    f"{self.name}: partition {one.name.rpartition('/')[0]}: pyiceberg makes no commits that could replace partitions "
                    "of NaN: leave these rows out, or make their values NULL; nothing was written"
                )
        names = {one.staged or "": one.name for one in made}
        staging.bring(names)  # nobody reads them before a snapshot has them
        try:
            return self._commit(made, mode, dynamic)
        except (FileChangedError, FileExistsError, UnsupportedError):
            self.folder.delete(names.values())
            raise

    def _values(self, one: StagedReport) -> list[Any]:
        """The values of a new file's partition."""
        texts = json.loads(one.values or "[]")
        return [typed(text, kind) for text, kind in zip(texts, self._kinds, strict=True)]

    def _commit(self, made: Sequence[StagedReport], mode: str, dynamic: bool) -> int | None:
        from pyiceberg import exceptions

        refusals = tuple(
            getattr(exceptions, name) for name in REFUSALS if hasattr(exceptions, name)
        )
        overtaken = exceptions.CommitFailedException, exceptions.ValidationException
        why: Exception | None = None
        for _ in range(TRIES):
            self._ice.refresh()
            if (self._ice.schema(), self._ice.spec()) != (self._schema, self._spec):
                raise FileChangedError(
                    f"{self.name}: its columns or partitions have changed meanwhile; write again"
                )
            there = self._live() if mode != "append" else []
            if mode == "error" and there:
                raise FileExistsError(
                    f"{self.name}: files have come into it meanwhile; nothing was written"
                )
            if mode == "ignore" and there:
                self.folder.delete(one.name for one in made)
                return None
            if mode == "overwrite":
                self._refuse_old(there, dynamic)
            old = self._old(there, made) if dynamic else there
            if not old and not made:
                return 0
            try:
                self._send(made, old, dynamic)
            except overtaken as error:  # another came first
                why = error
            except (ValueError, *refusals) as error:
                raise UnsupportedError(
                    f"{self.name}: pyiceberg takes no such files: {error}"
                ) from None
            except self._errors as error:
                raise StoreError(
                    f"{self.name}: nobody knows whether the commit was made ({error}); the files stay, in case it was"
                ) from None
            else:
                return len(old)
        self.folder.delete(one.name for one in made)
        raise StoreError(f"{self.name}: {TRIES} commits were overtaken: {why}")

    def _old(self, there: Sequence[Any], made: Sequence[StagedReport]) -> list[Any]:
        """The files of the partitions that were written."""
        written = {partition_key(self._values(one)) for one in made}
        return [one for one in there if partition_key(one.partition) in written]

    def _send(self, made: Sequence[StagedReport], old: Sequence[Any], dynamic: bool) -> None:
        """One commit to the version of the table that is known: `old` go, all there are unless `dynamic`, and `made` come."""
        from pyiceberg import exceptions

        numbers: list[int] = []
        mine = tried_once(self._ice, numbers)
        transaction = mine.transaction()
        if old and not dynamic:
            transaction.delete("true")
        if made:
            if (
                transaction.table_metadata.name_mapping() is None
            ):  # the files have no numbers of columns
                names = self._schema.name_mapping.model_dump_json()
                transaction.set_properties({"schema.name-mapping.default": names})
            update = transaction.update_snapshot()
            merges = mine.properties.get("commit.manifest-merge.enabled", "false").lower() == "true"
            if old and dynamic:
                update = update.overwrite()
                for one in old:
                    update.delete_data_file(one)
            else:
                update = update.merge_append() if merges else update.fast_append()
            describe = partial(self._entry, transaction.table_metadata)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for entry in pool.map(describe, made):
                    update.append_data_file(entry)
            update.commit()  # to the transaction
        numbers.append(transaction.table_metadata.current_snapshot().snapshot_id)
        try:
            transaction.commit_transaction()
        except exceptions.CommitFailedException:
            self._ice.refresh()
            if self._ice.metadata.snapshot_by_id(numbers[0]) is None:
                raise
        else:  # `mine` may not be refreshed any more
            self._ice.metadata, self._ice.metadata_location = mine.metadata, mine.metadata_location

    def _entry(self, metadata: Any, one: StagedReport) -> Any:
        """What the manifest says of a new file."""
        found = self._described(self._ice.io, metadata, f"{self._where}/{one.name}")
        for i, value in enumerate(self._values(one)):
            found.partition[i] = value
        return found


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


_SPARK_NAMES = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}


def _spark_name(kind: Any) -> str:
    """A type of Iceberg as Spark spells it."""
    name = type(kind).__name__
    if name == "StructType":
        inner = ",".join(f"{f.name}:{_spark_name(f.field_type)}" for f in kind.fields)
        return f"struct<{inner}>"
    if name == "ListType":
        return f"array<{_spark_name(kind.element_type)}>"
    if name == "MapType":
        return f"map<{_spark_name(kind.key_type)},{_spark_name(kind.value_type)}>"
    if name == "DecimalType":
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK_NAMES.get(str(kind), str(kind))
