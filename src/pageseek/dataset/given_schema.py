"""The files of a source as one dataset: with the columns of their folders, and the schema that was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from pageseek.dataset.dataset_schema import DatasetSchema
from pageseek.dataset.partitions import typed
from pageseek.dataset.sources import Found
from pageseek.storage import Source, Types


def with_schema(
    found: Found, partitioning: Types | bool | None, schema: pa.Schema | None
) -> tuple[Sequence[Source], DatasetSchema | None]:
    """The files with what their folders say, typed, and how their columns are put together; None: there is one file."""
    lake = found.table
    if lake is None:
        if not found.sources:
            raise ValueError("the source is an empty list: no file to read")
        return _of_files(found.sources, partitioning, schema)
    if partitioning is not None or schema is not None:
        raise ValueError(
            "partitioning= and schema=: a table has its own; table=False reads the bare files of a table's folder"
        )
    return lake.sources, DatasetSchema(
        lake.folders, lake.schema, ids=lake.ids, inside=dict(lake.inside)
    )


def _of_files(
    found: Sequence[Source], partitioning: Types | bool | None, schema: pa.Schema | None
) -> tuple[tuple[Source, ...], DatasetSchema | None]:
    """The files with what their folders say, typed, and how their columns are put together."""
    if schema is not None and not isinstance(schema, pa.Schema):
        raise TypeError(f"schema={schema!r}: a pyarrow.Schema")
    if schema is not None and len(set(schema.names)) < len(schema):
        raise ValueError("schema: a name stands there twice")
    if partitioning is False:
        found = [replace(source, partitions=()) for source in found]
    types = None if isinstance(partitioning, bool) else partitioning
    told = types is not None
    for source in found:
        if source.partitions:
            told = True
            break
    if len(found) == 1 and not told and schema is None:
        return tuple(found), None
    folders = pa.schema([])
    if told:
        names = {name for name, _ in found[0].partitions}
        if schema is not None:
            given = {field.name: field.type for field in schema if field.name in names}
            types = {**_by_name(types), **given}
        found, folders = typed(found, types)
    if len(found) == 1 and not folders.names and schema is None:
        return tuple(found), None
    return tuple(found), DatasetSchema(folders, schema)


def _by_name(types: Types | None) -> dict[str, pa.DataType]:
    if isinstance(types, pa.Schema):
        return {field.name: field.type for field in types}
    return dict(types or {})
