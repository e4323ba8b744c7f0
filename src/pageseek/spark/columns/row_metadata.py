"""Spark's own schema in the footers of its files, and types that Parquet does not tell.

Spark writes there what its reader takes: year-month and day-time intervals, which Parquet has as integers, Variant and
user-defined types, which it has as structs, collations, and the metadata of columns, among them comments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.spark.columns.types import VARIANT, is_nanos

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

    from pageseek.format.nesting import Node

KEY = b"org.apache.spark.sql.parquet.row.metadata"


def spark_fields(pairs: Mapping[bytes, bytes | None]) -> dict[str, StructField]:
    """The columns in Spark's schema of a file, by name. A type that this version of Spark does not know is left out."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructField

    text = pairs.get(KEY)
    if not text:
        return {}
    made = {}
    try:
        given = json.loads(text)["fields"]
    except (ValueError, KeyError, TypeError):  # as in Spark, it then counts for nothing
        return {}
    for one in given:
        try:
            field = StructField.fromJson(_known(one))
        # a user-defined type is imported, and may fail in any way
        except (PySparkException, ImportError, AttributeError, KeyError, TypeError, ValueError):
            continue
        made[field.name] = field
    return made


def variants_of(node: Node) -> DataType | None:
    """A type that has the Variants of a column where the file has groups that it calls so; None if it has none."""
    from pyspark.sql import types as s

    if node.variant:
        return s.VariantType() if hasattr(s, "VariantType") else None
    below = [variants_of(child) for child in node.children]
    if not any(below):
        return None
    if node.kind == "struct":
        named = zip(node.children, below, strict=True)
        return s.StructType([s.StructField(child.name, kind) for child, kind in named if kind])
    parts = [kind or s.NullType() for kind in below]
    return s.MapType(*parts) if node.kind == "map" else s.ArrayType(*parts)


def _known(node: Any) -> Any:
    """A type without user-defined ones whose class no module of this process has: a file must not choose what is imported."""
    if isinstance(node, list):
        return [_known(one) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "udt" and "pyClass" in node:
        module = str(node["pyClass"]).rpartition(".")[0]
        if module not in sys.modules:
            return _known(node["sqlType"])
    return {key: _known(value) for key, value in node.items()}


def has_collation(kind: DataType) -> bool:
    """Whether there are texts in a type that are not compared by their bytes."""
    from pyspark.sql import types as s

    if isinstance(kind, s.StructType):
        return any(has_collation(field.dataType) for field in kind)
    if isinstance(kind, s.ArrayType):
        return has_collation(kind.elementType)
    if isinstance(kind, s.MapType):
        return has_collation(kind.keyType) or has_collation(kind.valueType)
    return isinstance(kind, s.StringType) and bool(kind != s.StringType())


def refined(
    schema: StructType, wire: pa.Schema, told: Mapping[str, StructField]
) -> tuple[StructType, pa.Schema]:
    """The schema of a DataFrame and its wire types, as Spark's schema of the files has them.

    Where that does not fit what the files hold, the types that Parquet tells stay.
    """
    from pyspark.sql.types import StructField, StructType

    fields, wires = [], []
    for field, sent in zip(schema, wire, strict=True):
        kind, type_sent, metadata = field.dataType, sent.type, field.metadata
        if field.name in told:
            kind, type_sent = _refined(kind, type_sent, told[field.name].dataType)
            metadata = told[field.name].metadata
        fields.append(StructField(field.name, kind, True, metadata))
        wires.append(pa.field(sent.name, type_sent))
    return StructType(fields), pa.schema(wires)


def _refined(kind: DataType, wire: pa.DataType, told: DataType) -> tuple[DataType, pa.DataType]:
    from pyspark.sql import types as s

    if isinstance(told, s.UserDefinedType):
        inner, sent = _refined(kind, wire, told.sqlType())
        return (told, sent) if _nullable(inner) == _nullable(told.sqlType()) else (kind, wire)
    if isinstance(told, getattr(s, "VariantType", ())):
        return _variant(kind, wire, told)
    if isinstance(told, s.YearMonthIntervalType) and isinstance(kind, s.IntegerType):
        return told, wire
    if isinstance(told, s.DayTimeIntervalType) and isinstance(kind, s.LongType):
        return told, pa.duration("us")
    if isinstance(told, s.StructType) and isinstance(kind, s.StructType):
        by_name = {field.name: field for field in told}
        fields, wires = [], []
        for field, sent in zip(kind, wire, strict=True):
            made, type_sent, metadata = field.dataType, sent.type, field.metadata
            if field.name in by_name:
                other = by_name[field.name]
                made, type_sent = _refined(made, type_sent, other.dataType)
                metadata = other.metadata
            fields.append(s.StructField(field.name, made, True, metadata))
            wires.append(pa.field(sent.name, type_sent))
        return s.StructType(fields), pa.struct(wires)
    if isinstance(told, s.ArrayType) and isinstance(kind, s.ArrayType):
        made, sent = _refined(kind.elementType, wire.value_type, told.elementType)
        return s.ArrayType(made, True), pa.list_(pa.field("element", sent))
    if isinstance(told, s.MapType) and isinstance(kind, s.MapType):
        key, key_sent = _refined(kind.keyType, wire.key_type, told.keyType)
        item, item_sent = _refined(kind.valueType, wire.item_type, told.valueType)
        return s.MapType(key, item, True), pa.map_(key_sent, item_sent)
    return (told if type(told) is type(kind) and _is_said_more_exactly(told, kind) else kind), wire


def _is_said_more_exactly(told: DataType, kind: DataType) -> bool:
    """Whether a type has what Parquet does not tell: a collation, or digits of a time of day that hold those of `kind`."""
    from pyspark.sql import types as s

    if isinstance(told, getattr(s, "TimeType", ())):
        return is_nanos(told) or not is_nanos(kind)
    return isinstance(told, s.StringType)


def as_given(kind: DataType, given: DataType) -> DataType:
    """A type whose fields have the metadata, such as comments, that a user's schema gives them. Fields that it does not name stay."""
    from pyspark.sql import types as s

    if isinstance(kind, s.StructType) and isinstance(given, s.StructType):
        by_name = {field.name: field for field in given}
        return s.StructType(
            [
                s.StructField(
                    f.name, as_given(f.dataType, told.dataType), f.nullable, told.metadata
                )
                if (told := by_name.get(f.name)) is not None
                else f
                for f in kind
            ]
        )
    if isinstance(kind, s.ArrayType) and isinstance(given, s.ArrayType):
        return s.ArrayType(as_given(kind.elementType, given.elementType), kind.containsNull)
    if isinstance(kind, s.MapType) and isinstance(given, s.MapType):
        key, item = as_given(kind.keyType, given.keyType), as_given(kind.valueType, given.valueType)
        return s.MapType(key, item, kind.valueContainsNull)
    return kind


def _variant(kind: DataType, wire: pa.DataType, told: DataType) -> tuple[DataType, pa.DataType]:
    names = {field.name for field in wire} if pa.types.is_struct(wire) else set()
    is_whole = "metadata" in names and names & {"value", "typed_value"}
    return (told, VARIANT) if is_whole else (kind, wire)


def _nullable(kind: DataType) -> DataType:
    """A type of which every part may be null, without the metadata of fields and the names of user-defined types."""
    from pyspark.sql import types as s

    if isinstance(kind, s.UserDefinedType):
        return _nullable(kind.sqlType())
    if isinstance(kind, s.StructType):
        return s.StructType([s.StructField(f.name, _nullable(f.dataType), True) for f in kind])
    if isinstance(kind, s.ArrayType):
        return s.ArrayType(_nullable(kind.elementType), True)
    if isinstance(kind, s.MapType):
        return s.MapType(_nullable(kind.keyType), _nullable(kind.valueType), True)
    return kind


# -- year-month intervals, which a function over Arrow batches cannot return ----------------------


def as_sent(schema: StructType) -> StructType:
    """A schema as a Python function returns it: months are integers."""
    from pyspark.sql.types import StructType

    made = _with_months(schema, False)
    assert isinstance(made, StructType)
    return made


def as_stored(schema: StructType) -> StructType:
    """A schema of the types whose buffers Arrow has for it: also user-defined types are what they are made of."""
    from pyspark.sql.types import StructType

    made = _nullable(as_sent(schema))
    assert isinstance(made, StructType)
    return made


def _with_months(kind: DataType, whole: bool) -> DataType:
    """A type with all months as integers; `whole`: as intervals of years and months."""
    from pyspark.sql import types as s

    if isinstance(kind, s.YearMonthIntervalType):
        return s.YearMonthIntervalType() if whole else s.IntegerType()
    if isinstance(kind, s.StructType):
        return s.StructType(
            [
                s.StructField(f.name, _with_months(f.dataType, whole), f.nullable, f.metadata)
                for f in kind
            ]
        )
    if isinstance(kind, s.ArrayType):
        return s.ArrayType(_with_months(kind.elementType, whole), kind.containsNull)
    if isinstance(kind, s.MapType):
        key, item = (_with_months(one, whole) for one in (kind.keyType, kind.valueType))
        return s.MapType(key, item, kind.valueContainsNull)
    return kind


def as_wanted(frame: DataFrame, schema: StructType) -> DataFrame:
    """A DataFrame of a Python function with the intervals of its schema."""
    sent = as_sent(schema)
    if sent == schema:
        return frame
    from pyspark.sql.functions import col

    columns: list[Column] = []
    for field, has in zip(schema, sent, strict=True):
        column = col(quoted(field.name))
        if has.dataType != field.dataType:  # an integer becomes months only of the whole type
            column = column.cast(_with_months(field.dataType, True)).cast(field.dataType)
            column = column.alias(field.name, metadata=field.metadata)
        columns.append(column)
    return frame.select(*columns)


def quoted(name: str) -> str:
    """A name as Spark takes it for one column, dots included."""
    return f"`{name.replace('`', '``')}`"
