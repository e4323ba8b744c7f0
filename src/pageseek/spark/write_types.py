"""From Spark's types to the Arrow types whose Parquet types are those that Spark writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.base.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType

_FLAT = {
    "BooleanType": pa.bool_(), "ByteType": pa.int8(), "ShortType": pa.int16(), "IntegerType": pa.int32(),
    "LongType": pa.int64(), "FloatType": pa.float32(), "DoubleType": pa.float64(), "DateType": pa.date32(),
    "StringType": pa.string(), "CharType": pa.string(), "VarcharType": pa.string(), "BinaryType": pa.binary(),
    "TimestampType": pa.timestamp("us", "UTC"), "TimestampNTZType": pa.timestamp("us"),
    "TimeType": pa.time64("us"),
    # without a mark in the file: what they are is said by Spark's own metadata
    "DayTimeIntervalType": pa.int64(), "YearMonthIntervalType": pa.int32(),
}  # fmt: skip
_VARIANT = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]
)


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
    return pa.schema([pa.field(f.name, _top(f.dataType, f.name), f.nullable) for f in schema])


def _top(kind: SparkType, name: str) -> pa.DataType:
    return _FLAT["YearMonthIntervalType"] if is_months(kind) else _arrow(kind, name)


def _arrow(kind: SparkType, name: str) -> pa.DataType:
    from pyspark.sql import types as s

    if isinstance(kind, s.UserDefinedType):
        return _arrow(kind.sqlType(), name)
    if isinstance(kind, s.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, s.ArrayType):
        element = _arrow(kind.elementType, f"{name}.element")
        return pa.list_(pa.field("element", element, kind.containsNull))
    if isinstance(kind, s.MapType):
        key = pa.field("key", _arrow(kind.keyType, f"{name}.key"), False)
        value = _arrow(kind.valueType, f"{name}.value")
        return pa.map_(key, pa.field("value", value, kind.valueContainsNull))
    if isinstance(kind, s.StructType) and kind.fields:
        return pa.struct(
            [pa.field(f.name, _arrow(f.dataType, f"{name}.{f.name}"), f.nullable) for f in kind]
        )
    if type(kind).__name__ == "VariantType":
        return _VARIANT
    found = None if is_months(kind) else _FLAT.get(type(kind).__name__)
    if found is None:
        raise UnsupportedError(
            f"column {name!r} is {kind.simpleString()}, which cannot be written to Parquet here: cast it, or drop it"
        )
    return found


def converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of Spark's in the types of the file."""
    columns = [
        array if array.type == kind else _cast(array, kind)
        for array, kind in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(kind) and array.null_count and any(not f.nullable for f in kind):
        # a required field below a null: a cast would look at what is under it
        children = [
            _cast(array.field(i), field.type) if array.field(i).type != field.type else array.field(i)
            for i, field in enumerate(kind)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    return array.cast(kind)
