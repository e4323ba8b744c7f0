"""From Spark's types to the Arrow types whose Parquet types are those that Spark writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.spark.columns.types import is_nanos

if TYPE_CHECKING:
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructField, StructType

_FLAT = {
    "BooleanType": pa.bool_(), "ByteType": pa.int8(), "ShortType": pa.int16(), "IntegerType": pa.int32(),
    "LongType": pa.int64(), "FloatType": pa.float32(), "DoubleType": pa.float64(), "DateType": pa.date32(),
    "StringType": pa.string(), "CharType": pa.string(), "VarcharType": pa.string(), "BinaryType": pa.binary(),
    "TimestampType": pa.timestamp("us", "UTC"), "TimestampNTZType": pa.timestamp("us"),
    # without a mark in the file: what they are is said by Spark's own metadata
    "DayTimeIntervalType": pa.int64(), "YearMonthIntervalType": pa.int32(),
}  # fmt: skip


def is_months(kind: SparkType) -> bool:
    """Whether a type is an interval of months, which pyarrow cannot take: it is sent as a number."""
    return type(kind).__name__ == "YearMonthIntervalType"


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of the files of a DataFrame.

    Raises
    ------
    UnsupportedError
        Spark's own writer has no Parquet type for a column, or Arrow cannot send it.
    """
    return pa.schema(
        [pa.field(f.name, _top(f.dataType, f.name, f.nullable), f.nullable) for f in schema]
    )


def _top(kind: SparkType, name: str, nullable: bool) -> pa.DataType:
    return _FLAT["YearMonthIntervalType"] if is_months(kind) else _arrow(kind, name, nullable)


def _arrow(kind: SparkType, name: str, nullable: bool) -> pa.DataType:
    """`nullable`: whether it, or a struct around it, may be null. Arrow's writer takes no required field below one that may be."""
    from pyspark.sql import types as s

    if isinstance(kind, s.UserDefinedType):
        return _arrow(kind.sqlType(), name, nullable)
    if isinstance(kind, s.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, s.ArrayType):
        element = _arrow(kind.elementType, f"{name}.element", kind.containsNull)
        return pa.list_(pa.field("element", element, kind.containsNull))
    if isinstance(kind, s.MapType):
        key = pa.field("key", _arrow(kind.keyType, f"{name}.key", False), False)
        value = _arrow(kind.valueType, f"{name}.value", kind.valueContainsNull)
        return pa.map_(key, pa.field("value", value, kind.valueContainsNull))
    if isinstance(kind, s.StructType) and kind.fields:
        return pa.struct([_field(f, f"{name}.{f.name}", nullable) for f in kind])
    if type(kind).__name__ == "VariantType":
        return pa.struct([pa.field(part, pa.binary(), nullable) for part in ("value", "metadata")])
    if type(kind).__name__ == "TimeType":
        return pa.time64("ns" if is_nanos(kind) else "us")
    found = None if is_months(kind) else _FLAT.get(type(kind).__name__)
    if found is None:
        raise UnsupportedError(
            f"column {name!r} is {kind.simpleString()}, which cannot be written to Parquet here: cast it, or drop it"
        )
    return found


def _field(field: StructField, path: str, nullable: bool) -> pa.Field:
    nullable = nullable or field.nullable
    return pa.field(field.name, _arrow(field.dataType, path, nullable), nullable)


def converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of Spark's in the types of the file."""
    columns = [
        array if array.type == kind else array.cast(kind)
        for array, kind in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
