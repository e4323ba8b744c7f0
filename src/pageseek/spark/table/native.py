"""Spark's own reader over the files that a plan leaves, where most of their rows are wanted.

Rows that Python reads cross a pipe and are copied; where little is ruled out, that costs more than Spark's vectorised
reader, which lives in the JVM. It is taken only where it gives the same rows of the same types.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.base.errors import PageseekError
from pageseek.format.chunks import CODECS
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    INT96,
    L_BSON,
    L_DATE,
    L_DECIMAL,
    L_ENUM,
    L_INTEGER,
    L_JSON,
    L_STRING,
    L_TIMESTAMP,
    logical_of,
)
from pageseek.prune.registry import STATISTICS
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.queries.scan import Scan
from pageseek.scanning.requests.plan import FilePlan
from pageseek.spark.columns.file_values import COLUMN
from pageseek.spark.columns.types import wire_type
from pageseek.spark.session.names import Columns
from pageseek.spark.table.native_files import folders_of
from pageseek.spark.tasks.expected import expected_rows
from pageseek.spark.tasks.row_size import decoded_row_bytes

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

MANY_VALUES = 200_000  # below it takes no time worth mentioning
PART = 0.3  # of the rows that pages leave: of these one costs Spark's reader so much of what it costs a task
BYTE_SECONDS = 4e-9  # of a core, that a decoded byte costs on its way from a task to the JVM
FILE_SECONDS = 1e-3  # of a core, that a file costs Spark's reader more than a task that reads small ones as one
_CODECS = frozenset(("uncompressed", "snappy", "gzip", "zstd", "lz4_raw"))
_ENCODINGS = sum(1 << n for n in (0, 2, 3, 4, 5, 6, 7, 8))  # of parquet.thrift, that Spark decodes
_LOGICAL = frozenset(
    (0, L_STRING, L_ENUM, L_DECIMAL, L_DATE, L_TIMESTAMP, L_INTEGER, L_JSON, L_BSON)
)
_UNITS = (1, 2)  # milliseconds and microseconds
# Arrow types that differ from another in the width of their offsets alone: Spark has one type for both
_OFFSETS = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
_FOLDER_TYPES = frozenset(
    (
        pa.int32(),
        pa.int64(),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
    )
)
_SAMPLE = 4  # files of one schema whose codecs and encodings are looked at


def may_be_native(scan: Scan, columns: Columns, width: int) -> bool:
    """Whether `is_native` is worth asking: the footers alone, without what a plan has to read, may leave many rows."""
    if scan._sources.paths is None:  # files in a store
        return False
    lean = replace(scan._request, prune=scan._request.prune & {STATISTICS})
    plan = replace(scan, _request=lean).plan()
    return expected_rows(plan, columns) * max(width, 1) > MANY_VALUES


def is_native(scan: Scan, plan: ScanPlan, columns: Columns, width: int) -> bool:
    """Whether Spark's reader is to read a plan of `width` columns.

    It decodes all rows of the pages that are left; a task sends the rows that are expected to pass. It takes longer for each file:
    a task reads small ones as one.
    """
    expected = expected_rows(plan, columns)
    if expected * max(width, 1) <= MANY_VALUES or expected <= PART * plan.num_rows:
        return False
    pipe = expected * decoded_row_bytes(plan) * BYTE_SECONDS
    if 0 < pipe < len(plan.files) * FILE_SECONDS:
        return False
    return _can_read(scan, plan, columns)


def _may_name(path: str) -> bool:
    """Whether Spark's reader takes a file of this name: it hides some, and its filesystem for checksums refuses a colon."""
    name = os.path.basename(path)
    return name[:1] not in "._" and ":" not in name


def _can_read(scan: Scan, plan: ScanPlan, columns: Columns) -> bool:
    """Whether Spark's reader gives the rows of a plan that this package gives."""
    request = scan._request
    if (
        scan._sources.paths is None
        or request.take is not None
        or request.selected is not None
        or request.row_number is not None
        or request.limit is not None
        or (request.dataset_schema is not None and request.dataset_schema.given is not None)
        or COLUMN in {name.partition(".")[0] for name in folders_of(plan).names}
        or not set(folders_of(plan).types) <= _FOLDER_TYPES
        or columns.are_respelled
        or not all(_may_name(file.source.path) for file in plan.files)
    ):
        return False
    kinds: dict[tuple[bytes | None, ...], list[FilePlan]] = {}
    for one in plan.files:
        assert one.footer is not None
        kinds.setdefault(one.footer.schema[:3], []).append(one)
    types: dict[tuple[str, ...], pa.DataType] = {
        (field.name,): field.type for field in folders_of(plan)
    }
    folders = {name.lower() for (name,) in types}
    for similar in kinds.values():
        step = max(len(similar) // _SAMPLE, 1)
        try:
            files = [columns.open(one.source) for one in similar[::step][:_SAMPLE]]
        except PageseekError:
            return False
        if folders & {leaf.path[0].lower() for leaf in files[0].schema_tree.leaves}:
            return False
        if not _has_same_types(files[0], types, columns):
            return False
        if not all(map(_is_decoded, files)):
            return False
    return len({".".join(path).lower() for path in types}) == len(types)


def _has_same_types(
    file: FileMetadata, types: dict[tuple[str, ...], pa.DataType], columns: Columns
) -> bool:
    """Whether a file has the types that Spark has for it, and those of the files before, which are in `types`."""
    options = columns.request.options
    for leaf in file.schema_tree.leaves:
        made, stored = file.leaf_type(leaf, options), file.schema_tree.parquet_leaf_type(leaf)
        if leaf.element.type != INT96 and not _is_same(leaf, made.type, stored.type):
            return False
        if types.setdefault(leaf.path, stored.type) != stored.type:
            return False
    return True


def _is_decoded(file: FileMetadata) -> bool:
    """Whether Spark has all codecs and encodings of a file."""
    try:
        return all(
            CODECS[chunk.codec] in _CODECS and not chunk.encodings & ~_ENCODINGS
            for leaf in file.schema_tree.leaves
            for chunk in file.chunks(leaf)
        )
    except (PageseekError, IndexError):
        return False


def _is_same(leaf: Leaf, made: pa.DataType, stored: pa.DataType) -> bool:
    """Whether Spark, which does not look at a stored Arrow schema, has the type that this package has."""
    kind, _, unit = logical_of(leaf.element)
    if kind not in _LOGICAL or (kind == L_TIMESTAMP and unit not in _UNITS):
        return False
    wire = wire_type(made)
    return _OFFSETS.get(wire, wire) == wire_type(stored)


def has_plain_types(kind: DataType) -> bool:
    """Whether Spark's reader has a type by the Parquet schema alone."""
    from pyspark.sql import types as s

    if isinstance(kind, s.StructType):
        return all(has_plain_types(field.dataType) for field in kind)
    if isinstance(kind, s.ArrayType):
        return has_plain_types(kind.elementType)
    if isinstance(kind, s.MapType):
        return has_plain_types(kind.keyType) and has_plain_types(kind.valueType)
    if isinstance(kind, s.StringType):
        return bool(kind == s.StringType())
    times = s.DateType, s.TimestampType, s.TimestampNTZType
    return bool(isinstance(kind, (s.NumericType, s.BooleanType, s.BinaryType, *times)))
