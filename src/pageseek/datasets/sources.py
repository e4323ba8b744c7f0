"""What a source means: files, or a table of Delta Lake or Iceberg with its files; and the columns of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pageseek.storage.hive import Inference

if TYPE_CHECKING:
    from pageseek.datasets.dataset_schema import DatasetSchema

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.arguments import check_flag, check_storage_options
from pageseek.base.errors import UnsupportedError
from pageseek.base.limits import DEFAULT, Limits
from pageseek.base.records import dataclass
from pageseek.datasets.table_versions import CURRENT, AsOf
from pageseek.format.file_metadata import FileMetadata
from pageseek.storage import Origin, RetryPolicy, Source, Sources
from pageseek.storage.resolve import DEFAULT_RETRY, resolve
from pageseek.storage.table_folders import TableFolder, Tables

if TYPE_CHECKING:
    from pageseek.datasets.table_files import Table


@dataclass(frozen=True, slots=True)
class Found:
    """What a source means: files or a table, and where they come from."""

    sources: list[Source]
    table: Table | None
    folder: TableFolder | None
    origin: Origin

    @property
    def files(self) -> Sequence[Source]:
        """The files, those of a table too."""
        return self.sources if self.table is None else self.table.sources


def files_of(
    source: Any,
    storage_options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = DEFAULT_RETRY,
    table: bool | None = None,
    as_of: AsOf = CURRENT,
) -> Found:
    """What a path, URL, list, (filesystem, path), bytes or a table object means.

    A folder that is a table means its current version, or that of `as_of`, unless `table` is False. What was found before means itself.

    Raises
    ------
    UnsupportedError
        A table is given beside other files, or lies below a folder; its package is not installed; or it has a feature that is
        not supported.
    """
    if isinstance(source, Found):
        return source
    if table is not None:
        check_flag("table", table)
    if storage_options is not None:
        check_storage_options(storage_options)
    if type(source).__module__.partition(".")[0] in ("deltalake", "pyiceberg"):
        from pageseek.datasets.lake_tables import table_of_lake

        lake = table_of_lake(source, storage_options, retry_policy, as_of)
        if lake is not None:
            return Found([], lake, None, Origin((lake.what,)))
    tables = Tables()
    given = None if table is False else tables
    sources = resolve(source, storage_options, retry_policy, given)
    if not as_of.is_current and not tables.found:
        raise ValueError(f"{as_of.option}: the source is no table of Delta Lake or Iceberg")
    if given is None:
        near = [one.path for one in sources[:1] if one.data is None and one.filesystem is None]
        return Found(sources, None, None, Origin((), tuple(near)))
    if not tables.found:
        return Found(sources, None, None, Origin(tuple(tables.notes), tuple(tables.near)))
    first = tables.found[0]
    if sources or len(tables.found) > 1:
        raise UnsupportedError(
            f"{first.name}: this is a table of {first.kind}, and is read alone, not among other files; {first.remedy}"
        )
    from pageseek.datasets.lake_folders import open_table  # slow to import

    opened = open_table(first, storage_options, retry_policy, as_of)
    return Found([], opened, first, Origin((opened.what,)))


def open_metadata(
    source: Any,
    *,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = DEFAULT_RETRY,
) -> FileMetadata:
    """Open one file, without the cache."""
    limits = Limits(max_metadata_bytes=max_metadata_bytes)
    found = files_of(source, storage_options, retry_policy, table).files
    if len(found) != 1:
        such = f": give one of them, such as {found[0].name!r}; scan reads all" if found else ""
        raise ValueError(f"open takes one file, the source has {len(found)}{such}")
    return FileMetadata(found[0], found[0].open(), max_metadata_bytes=limits.max_metadata_bytes)


def with_schema(
    found: Found, partitioning: Any, schema: pa.Schema | None
) -> tuple[Sequence[Source], DatasetSchema | None]:
    """The files with the typed values of their folders, and the schema of all; None: there is one file.

    `partitioning`, `schema`: the types of the columns of folders, and of all columns, as a caller gives them.
    """
    if partitioning is not None and not isinstance(partitioning, (bool, pa.Schema, Inference)):
        from pageseek.datasets.given_partitioning import types_of  # late: few need it

        partitioning = types_of(partitioning)
    inference = None
    if isinstance(partitioning, Inference):
        inference, partitioning = partitioning, partitioning.given
    if (lake := found.table) is not None:
        if partitioning is not None or schema is not None:
            asked = "partitioning=" if schema is None else "schema="
            raise ValueError(
                f"{asked}: a table has its own; table=False reads the bare files of a table's folder"
            )
        inside = dict(lake.inside)
        from pageseek.datasets.dataset_schema import DatasetSchema  # late, as below: for many files

        bounded = Sources(lake.sources)
        bounded.bounds = lake.bounds
        return bounded, DatasetSchema(
            lake.folders,
            lake.schema,
            fields=lake.fields,
            inside=inside,
            of_table=True,
            any_unit=lake.version is not None,
            variants=lake.variants,
            unread=lake.unread,
        )
    files = found.sources
    if not files:
        raise ValueError("the source is an empty list: no file to read")
    if schema is not None and not isinstance(schema, pa.Schema):
        raise TypeError(f"schema={schema!r}: a pyarrow.Schema")
    if schema is not None and len(set(schema.names)) < len(schema):
        raise ValueError("schema: a name stands there twice")
    if partitioning is False:
        files = [replace(source, partitions=()) for source in files]
    types = None if isinstance(partitioning, bool) else partitioning
    folders = None
    if types is not None or any(map(attrgetter("partitions"), files)):
        from pageseek.datasets.partitions import by_name, typed

        names = {name for name, _ in files[0].partitions}
        if schema is not None:
            given = {field.name: field.type for field in schema if field.name in names}
            types = {**by_name(types), **given}
        files, folders = typed(files, types, inference)
    if len(files) == 1 and not folders and schema is None:
        return files, None
    from pageseek.datasets.dataset_schema import DatasetSchema

    return files, DatasetSchema(folders or pa.schema([]), schema)
