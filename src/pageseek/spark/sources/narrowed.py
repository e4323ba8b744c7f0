"""A source as options narrow it: a filter and columns that all its queries have, or the schema that a user gave."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.datasets.dataset_schema import DatasetSchema
from pageseek.format.types import Options
from pageseek.scanning.queries.scan import Scan
from pageseek.scanning.requests.request import Request
from pageseek.spark.columns.plan_schema import schema_of
from pageseek.spark.columns.types import stored_type
from pageseek.spark.filters.binding import Binding
from pageseek.spark.filters.sparks import known_of
from pageseek.spark.sources.buckets import reached
from pageseek.spark.sources.opening import opened
from pageseek.storage import Sources
from pageseek.storage.listing import NoDataError
from pageseek.storage.resolve import resolve
from pageseek.storage.table_folders import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


def narrowed(
    spark: SparkSession,
    source: Any,
    *,
    schema: StructType | None = None,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    hint: str | None = None,
    folders_last: bool = False,
    **options: Any,
) -> Scan:
    """A scan of the columns and rows that are wanted.

    `schema`: columns, matched by name as the session compares names. A column that no file has is null; all values have to
    fit its type exactly. `columns`, `filter`: as in `read`. `hint`: SQL that Spark applies itself, which rules out rows
    as far as it is known here. `folders_last`: all columns of folders come behind those of the schema, as Spark's own reader
    has them; else those that the schema names, in its order. `options`: of `pageseek.scan`.

    Raises
    ------
    NoDataError
        A folder has no file. If a schema is given, this is so of stores alone, whose folders are there only with files in them.
    """
    try:
        spelling = None if schema is None else pa.schema(list(_names(schema)))
        made = opened(spark, source, spelling=spelling, **options)
    except NoDataError:
        parts = source if isinstance(source, list) else [source]
        left = [part for part in parts if not _is_empty_folder(part, options.get("table"))]
        if schema is None or len(left) == len(parts):
            raise
        if not left:
            return nothing(schema)
        source = left
        made = opened(spark, source, spelling=spelling, **options)
    binding = Binding(spark, made)
    names = None if columns is None else [binding.columns.output(name) for name in columns]
    if schema is not None:
        names = [binding.columns.of_schema(field.name) for field in schema]
        made = binding.scan
        if folders_last:
            schema, names = _with_folders(spark, made, schema, names)
        types, as_text = _types(spark, made, schema, names)
        if types is not None:
            made = opened(spark, source, spelling=spelling, schema=types, **options)
            if as_text:
                kinds = made._request.options._replace(binary_text=True)
                made = replace(made, _request=replace(made._request, options=kinds))
            binding = Binding(spark, made)
    if filter is not None:
        made = made.filter(binding.condition(filter))
    if hint is not None:
        made = made.filter(known_of(hint, binding)[0])
    made = binding.columns.respelled(made)
    return made if names is None else made.select(*names)


def _names(kind: DataType) -> pa.DataType:
    """A type of Arrow with the names of the fields of a type of Spark, at any depth; any type stands for those of values."""
    from pyspark.sql import types as s

    if isinstance(kind, s.StructType):
        return pa.struct([(field.name, _names(field.dataType)) for field in kind])
    if isinstance(kind, s.ArrayType):
        return pa.list_(_names(kind.elementType))
    if isinstance(kind, s.MapType):
        return pa.map_(_names(kind.keyType), _names(kind.valueType))
    return pa.bool_()


def with_data(spark: SparkSession, source: Any, options: Mapping[str, Any]) -> list[Any]:
    """The parts of a source that are no empty folders. `options`: of its scan."""
    parts = source if isinstance(source, list) else [source]
    told, table = options.get("storage_options"), options.get("table")
    return [part for part in parts if not _is_empty(*reached(spark, part, told), table)]


def _is_empty_folder(source: Any, table: bool | None) -> bool:
    """Whether a source is a folder of this machine without data. `table`: as in `scan`."""
    is_folder = isinstance(source, (str, os.PathLike)) and os.path.isdir(source)
    return is_folder and _is_empty(source, None, table)


def _is_empty(source: Any, storage_options: Mapping[str, Any] | None, table: bool | None) -> bool:
    try:
        resolve(source, storage_options, tables=None if table is False else Tables())
    except NoDataError:
        return True
    return False


def nothing(schema: StructType) -> Scan:
    """A scan of no file: folders may be empty where a schema is given, as with Spark's own reader."""
    given = pa.schema([pa.field(f.name, stored_type(f.dataType, f.name)) for f in schema])
    request = Request(
        None, None, None, Options(), "spark", 1, dataset_schema=DatasetSchema(given=given)
    )
    return Scan(Sources.of(()), request)


def _with_folders(
    spark: SparkSession, scan: Scan, schema: StructType, names: Sequence[str]
) -> tuple[StructType, list[str]]:
    """A schema, and the names of its columns, with all columns of folders at the end."""
    from pyspark.sql.types import StructType

    dataset_schema = scan._request.dataset_schema
    if dataset_schema is None or dataset_schema.fields or not dataset_schema.folders.names:
        return schema, list(names)
    folders, own = dataset_schema.folders.names, dict(zip(names, schema, strict=True))
    if not set(folders) <= own.keys():
        found = schema_of(scan._execution.columns(), scan, spark)[1]
        own |= {name: found[name] for name in folders if name not in own}
    order = [*(name for name in names if name not in folders), *folders]
    return StructType([own[name] for name in order]), order


def _types(
    spark: SparkSession, scan: Scan, schema: StructType, names: Sequence[str]
) -> tuple[pa.Schema | None, bool]:
    """The columns of a schema as Arrow has them; None where all are columns of the files in the types that these have. And
    whether bytes of which the files say nothing are to be text.
    """
    columns = scan._execution.columns()
    found = {
        field.name: field.dataType.simpleString() for field in schema_of(columns, scan, spark)[1]
    }
    wanted = {n: f.dataType.simpleString() for n, f in zip(names, schema, strict=True)}
    if wanted.items() <= found.items():
        return None, False
    others = {name: kind for name, kind in wanted.items() if found.get(name) != kind}
    as_text = any("string" in kind and "binary" in found.get(n, "") for n, kind in others.items())
    types = pa.schema(
        [
            pa.field(name, stored_type(field.dataType, field.name))
            if name in others
            else columns.schema.field(name).with_nullable(True)
            for name, field in zip(names, schema, strict=True)
        ]
    )
    return types, as_text
