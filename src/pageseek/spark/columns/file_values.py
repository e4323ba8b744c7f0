"""The hidden column `_metadata`: what the file of a row says of it, under the names that Spark's own readers have.

The values are known before a file is opened, so that filters on them rule out files as those on folders do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from pageseek.datasets.dataset_schema import DatasetSchema
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.queries.scan import Scan
from pageseek.scanning.requests.plan import FilePlan
from pageseek.storage import Source, Sources

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMN = "_metadata"
_ROW = "row_index"
_TYPES = {
    "file_path": pa.string(),
    "file_name": pa.string(),
    "file_size": pa.int64(),
    "file_block_start": pa.int64(),
    "file_block_length": pa.int64(),
    "file_modification_time": pa.timestamp("us", "UTC"),
    _ROW: pa.int64(),
}
_NAMED = frozenset(("file_path", "file_name"))  # what the name of a file tells
# what Java's addresses have as it is: some signs of ASCII, and what is beyond
_ESCAPED = re.compile(r"[^A-Za-z0-9/_\-!.~'()*,;:$&+=@\u00a1-\U0010ffff]")


def is_free(names: Iterable[str]) -> bool:
    """Whether no column of the files has the name of the hidden one, or would be taken for a part of it."""
    return not any(name.lower().partition(".")[0] == COLUMN for name in names)


def fields_of(schema: StructType) -> list[str]:
    """The fields of the hidden column that a schema wants; it must not have a column of its name otherwise."""
    return list(schema[COLUMN].dataType.names) if COLUMN in schema.names else []


def wire_field(fields: Sequence[str]) -> pa.Field:
    """The hidden column as tasks send it."""
    return pa.field(COLUMN, pa.struct([pa.field(name, _TYPES[name]) for name in fields]))


# -- on the driver --------------------------------------------------------------------------------


def is_tested(predicates: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a predicate of Spark tests the hidden column."""
    return any(
        one.get("column", [""])[0] == COLUMN or is_tested(one.get("of", ())) for one in predicates
    )


def with_values(scan: Scan) -> Scan:
    """The scan with fields of the hidden column as columns of folders, which nothing reads unless it is filtered."""
    request, local = scan._request, scan._sources.paths is not None
    values = [_known(source, local) for source in scan.sources]
    sources = [
        replace(source, partitions=(*source.partitions, *((_path(n), v) for n, v in own.items())))
        for source, own in zip(scan.sources, values, strict=True)
    ]
    schema = request.dataset_schema or DatasetSchema()
    fields = [pa.field(_path(name), _TYPES[name]) for name in (_TYPES if local else _NAMED)]
    folders = pa.schema([*schema.folders, *(f for f in fields if f.name != _path(_ROW))])
    request = replace(request, dataset_schema=replace(schema, folders=folders))
    return replace(scan, _sources=Sources.of(sources), _request=request)


def on_values(predicate: Mapping[str, Any], scan: Scan) -> Mapping[str, Any]:
    """A predicate of Spark with fields of the hidden column as those of a scan `with_values`.

    What these lack becomes an operand that is not translated, so that Spark applies the predicate.
    """
    schema = scan._request.dataset_schema
    path = predicate.get("column")
    if path is not None and path[0] == COLUMN:
        name = ".".join(path)
        there = schema is not None and name in schema.folders.names
        return {"column": [name]} if there else {"name": name}
    if "of" in predicate:
        return {**predicate, "of": [on_values(one, scan) for one in predicate["of"]]}
    return predicate


def numbered(plan: ScanPlan) -> ScanPlan:
    """The plan with the number that each row has in its file, as the first column."""
    request = replace(plan.request, row_number=_path(_ROW))
    files = tuple([replace(file, first_row=0) for file in plan.files])
    return replace(plan, request=request, schema=request.numbered(plan.schema, COLUMN), files=files)


def address(source: Source) -> str:
    """The address of a file, as Spark's readers write it."""
    path = source.name
    if source.filesystem is None:
        path = "file:" + os.path.abspath(path)
    return _ESCAPED.sub(lambda found: quote(found[0], ""), path)


def _path(field: str) -> str:
    return f"{COLUMN}.{field}"


def _known(source: Source, local: bool) -> dict[str, pa.Scalar]:
    """What is known of a file before it is opened. Nothing is asked of a store."""
    path = address(source)
    values: dict[str, Any] = {"file_path": path, "file_name": path.rpartition("/")[2]}
    if local:
        found = os.stat(source.path)
        size, milliseconds = found.st_size, found.st_mtime_ns // 10**6
        values |= {"file_size": size, "file_block_start": 0, "file_block_length": size}
        values |= {"file_modification_time": milliseconds * 1000}
    return {name: pa.scalar(value, _TYPES[name]) for name, value in values.items()}


# -- in a task ------------------------------------------------------------------------------------


def with_struct(batch: pa.RecordBatch, file: FilePlan, wanted: pa.Field) -> pa.RecordBatch:
    """A batch of a file with the hidden column as the last one, and without the numbers of its rows."""
    columns, names = batch.columns, batch.schema.names
    known = dict(file.source.partitions)
    size = file.version.size
    told = {"file_size": size, "file_block_start": 0, "file_block_length": size}
    rows = None
    if names[:1] == [_path(_ROW)]:
        rows, columns, names = columns[0], columns[1:], names[1:]
    parts = []
    for field in wanted.type:
        if field.name == _ROW:
            parts.append(rows)
            continue
        value = known.get(_path(field.name), pa.scalar(told.get(field.name), field.type))
        parts.append(pa.repeat(value, batch.num_rows))
    made = pa.StructArray.from_arrays(parts, fields=list(wanted.type))
    return pa.RecordBatch.from_arrays([*columns, made], names=[*names, wanted.name])
