"""The schema of a plan's DataFrame, and the wire types of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.scanning.queries.scan import Scan
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.spark.columns.row_metadata import refined, spark_fields, variants_of
from pageseek.spark.columns.types import has_nanos, nanos_of, spark_schema, wire_field, wire_schema
from pageseek.storage import Source
from pageseek.storage.redact import shown_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

    from pageseek.format.nesting import Node
    from pageseek.scanning.plans.scan_plan import AllColumns, ScanPlan


def _told(
    plan: ScanPlan | AllColumns, sources: Sequence[Source]
) -> tuple[pa.Schema, dict[str, StructField]]:
    """The wire types of a plan's columns: by the first file that has the column in the plan's type, else by that type.

    And what Spark's own schema in that file says of them, unless they are those of a table, or were given.
    """
    found: dict[str, pa.Field] = {}
    fields: dict[str, StructField] = {}
    missing = set(plan.schema.names)
    dataset_schema = plan.request.dataset_schema
    if dataset_schema is not None:
        missing -= set(dataset_schema.folders.names)
    for source in sources:
        if not missing:
            break
        file = cache.open(source, Report(), plan.request.limits.max_metadata_bytes)
        bound_request = BoundRequest.of(file, plan.request, source)
        own = zip(bound_request.columns, bound_request.schema, strict=True)
        there = [(c, f) for c, f in own if f.name in missing]
        missing -= {f.name for _, f in there}
        same = [(c, f.name) for c, f in there if f.type == plan.schema.field(f.name).type]
        wires = wire_schema([c for c, _ in same], source.name)
        found |= {name: f.with_name(name) for (_, name), f in zip(same, wires, strict=True)}
        if same and (dataset_schema is None or dataset_schema.given is None):
            told = spark_fields(file.key_value_metadata)
            for column, name in same:
                field = told.get(column.name)
                if field is None and column.node is not None:
                    field = _of_variants(column.name, column.node)
                if field is not None:
                    fields[name] = field
    first = sources[0].name if sources else ""
    return pa.schema([found.get(f.name) or wire_field(f, first) for f in plan.schema]), fields


def _of_variants(name: str, node: Node) -> StructField | None:
    """A column as the file's own schema tells it, if there are Variants in it."""
    from pyspark.sql.types import StructField

    kind = variants_of(node)
    return None if kind is None else StructField(name, kind)


def paths_of(wanted: StructType, whole: StructType) -> list[str]:
    """The columns, and fields of structs, that a pruned schema has."""
    return [path for field in wanted for path in _paths(field, whole)]


def _paths(field: StructField, whole: StructType) -> list[str]:
    below = _below(field.dataType, whole[field.name].dataType)
    paths = [f"{field.name}.{path}" for path in below or ()]
    # a column may have the name of a path
    return [field.name] if below is None or set(paths) & set(whole.names) else paths


def types_of(wanted: StructType, whole: StructType, types: pa.Schema) -> dict[str, pa.DataType]:
    """The Arrow types of the columns of a pruned schema. `types`: those of the whole schema.

    The types of a plan may be narrower, because it does not open files that it has no use for.
    """
    made = {}
    for field in wanted:
        kind = types.field(field.name).type
        if _paths(field, whole) != [field.name]:
            kind = _pruned(kind, field.dataType, whole[field.name].dataType)
        made[field.name] = kind
    return made


def _pruned(kind: pa.DataType, wanted: DataType, whole: DataType) -> pa.DataType:
    """A type with those fields of structs only that are wanted."""
    from pyspark.sql.types import ArrayType

    if _below(wanted, whole) is None:
        return kind
    if isinstance(whole, ArrayType):
        item = kind.value_field
        inside = item.with_type(_pruned(item.type, wanted.elementType, whole.elementType))
        return pa.large_list(inside) if pa.types.is_large_list(kind) else pa.list_(inside)
    fields = [kind.field(i) for i in range(kind.num_fields) if kind.field(i).name in wanted.names]
    return pa.struct(
        [
            f.with_type(_pruned(f.type, wanted[f.name].dataType, whole[f.name].dataType))
            for f in fields
        ]
    )


def _below(wanted: DataType, whole: DataType) -> list[str] | None:
    """The paths below a field that are wanted; None is all of it."""
    from pyspark.sql.types import ArrayType, StructType

    while isinstance(whole, ArrayType) and isinstance(wanted, ArrayType):
        wanted, whole = wanted.elementType, whole.elementType
    if wanted == whole or not (isinstance(whole, StructType) and isinstance(wanted, StructType)):
        return None
    if any("." in name for name in whole.names):  # a path could not name it
        return None
    made: list[str] = []
    for field in wanted:
        below = _below(field.dataType, whole[field.name].dataType)
        made += [field.name] if below is None else [f"{field.name}.{path}" for path in below]
    return made


def schema_of(
    plan: ScanPlan | AllColumns, scan: Scan, spark: SparkSession
) -> tuple[pa.Schema, StructType]:
    """The wire types of a plan's columns, and the schema of its DataFrame."""
    wire, told = _told(plan, scan.sources)
    schema = spark_schema(wire, name_of(scan), spark)
    finer = _nanos(plan)
    if finer:
        schema, wire = refined(schema, wire, finer)
    schema, wire = refined(schema, wire, told)
    return wire, schema


def _nanos(plan: ScanPlan | AllColumns) -> dict[str, StructField]:
    """The columns of files with times of day in nanoseconds. Those of folders have microseconds, as for Spark."""
    from pyspark.sql.types import StructField

    if not has_nanos():
        return {}
    dataset_schema = plan.request.dataset_schema
    folders = [] if dataset_schema is None else dataset_schema.folders.names
    made = ((f.name, nanos_of(f.type)) for f in plan.schema if f.name not in folders)
    return {name: StructField(name, kind) for name, kind in made if kind is not None}


def name_of(scan: Scan) -> str:
    """What errors call the source of a scan."""
    return scan.sources[0].name if scan.sources else "a table without files"


def shown(source: Any, scan: Scan) -> str:
    """What plans and reports call a source: without passwords and signatures."""
    return shown_path(str(source)) if isinstance(source, (str, PathLike)) else name_of(scan)


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """A DataFrame without rows and without a task, whose costs hardly depend on the number of columns.

    A Connect client sends the schema alone. `createDataFrame` of a Classic session starts Python workers, unless the list of
    rows is one of the JVM.
    """
    if "connect" in type(spark).__module__:
        return spark.createDataFrame([], schema)
    from pyspark.sql import DataFrame

    session, jvm = spark._jsparkSession, spark._jvm
    assert jvm is not None
    java_schema = session.parseDataType(schema.json())
    return DataFrame(session.createDataFrame(jvm.java.util.ArrayList(), java_schema), spark)
