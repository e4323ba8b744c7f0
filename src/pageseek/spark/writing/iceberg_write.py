"""Files of `write` that become part of an Iceberg table by one commit to its catalog.

It needs `Transaction.add_files` of `pyiceberg` (0.10 and later), which reads the bounds and the partition of each file from
its footer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import StoreError, UnsupportedError
from pageseek.dataset.lake_places import iceberg_places
from pageseek.index.iceberg_target import REFUSALS, VERSIONS
from pageseek.index.table_target import TRIES
from pageseek.spark.session.settings import Settings
from pageseek.spark.writing.commit import Staging
from pageseek.spark.writing.lake_columns import in_order
from pageseek.spark.writing.targets import Target
from pageseek.spark.writing.write_task import StagedReport
from pageseek.storage.hive import partitions_of
from pageseek.storage.output_folders import OutputFolder, StoreFolder
from pageseek.storage.resolve import DEFAULT_RETRY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class IcebergTarget(Target):
    """A table of Iceberg, with its catalog. The columns of partitions are in its files."""

    keeps, wants_a_file = True, False
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
        self._schema = table.schema()
        self._partitions = []
        for field in table.spec().fields:
            column = self._schema.find_column_name(field.source_id)
            if str(field.transform) != "identity" or column is None or "." in column:
                raise UnsupportedError(
                    f"{name}: it is partitioned by {field.transform} of {column!r}; files can be added where partitions are values "
                    "of columns: write with Spark's iceberg format"
                )
            self._partitions.append(column)

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

    def files(self) -> Sequence[str]:
        self._ice.refresh()
        return [one.file.file_path for one in self._ice.scan().plan_files()]

    def beside(self, mode: str, dynamic: bool) -> Sequence[str]:
        """None: `fitted` knows what the table's columns are."""
        return ()

    def publish(
        self, staging: Staging, made: Sequence[StagedReport], mode: str, dynamic: bool
    ) -> int | None:
        names = {one.staged or "": one.name for one in made}
        self.folder.move(names, staging.moved)  # nobody reads them before a snapshot has them
        try:
            return self._commit(made, mode, dynamic)
        except (FileExistsError, UnsupportedError):
            self.folder.delete(names.values())
            raise

    def _commit(self, made: Sequence[StagedReport], mode: str, dynamic: bool) -> int | None:
        from pyiceberg import exceptions

        refusals = tuple(
            getattr(exceptions, name) for name in REFUSALS if hasattr(exceptions, name)
        )
        why: Exception | None = None
        for _ in range(TRIES):
            there = self.files() if mode != "append" else []
            if mode == "error" and there:
                raise FileExistsError(
                    f"{self.name}: files have come into it meanwhile; nothing was written"
                )
            if mode == "ignore" and there:
                self.folder.delete(one.name for one in made)
                return None
            try:
                return self._transaction(made, mode == "overwrite", dynamic)
            except exceptions.CommitFailedException as error:  # another came first
                why = error
            except (ValueError, *refusals) as error:
                raise UnsupportedError(
                    f"{self.name}: pyiceberg takes no such files: {error}"
                ) from None
            except self._errors as error:
                raise StoreError(
                    f"{self.name}: nobody knows whether the commit was made ({error}); the files stay, in case it was"
                ) from None
        self.folder.delete(one.name for one in made)
        raise StoreError(f"{self.name}: {TRIES} commits were overtaken: {why}")

    def _transaction(self, made: Sequence[StagedReport], replaces: bool, dynamic: bool) -> int:
        removed = 0
        with self._ice.transaction() as transaction:
            if replaces and self._ice.metadata.current_snapshot() is not None:
                rows = self._replaced(made) if dynamic else None
                scan = self._ice.scan() if rows is None else self._ice.scan(row_filter=rows)
                removed = sum(1 for _ in scan.plan_files())
                if removed:
                    transaction.delete("true" if rows is None else rows)
            if made:
                paths = [f"{self._where}/{one.name}" for one in made]
                transaction.add_files(paths, check_duplicate_files=False)
        return removed

    def _replaced(self, made: Sequence[StagedReport]) -> Any:
        """The rows in the partitions that were written."""
        from pyiceberg import expressions

        of: Any = expressions
        folders = {partitions_of(one.name.split("/")[:-1]) for one in made}
        found: Any = of.AlwaysFalse()
        for folder in sorted(folders, key=repr):
            tests = [of.IsNull(n) if v is None else of.EqualTo(n, v) for n, v in folder]
            found = of.Or(found, reduce(of.And, tests))
        return found


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
