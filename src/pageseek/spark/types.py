"""From the types of Parquet columns to what Spark takes: on the driver the schema, in a task the batches.

A column has two types on this way. Its *wire* type is the Arrow type that leaves the task: one of those
that the JVM accepts. Its Spark type follows from the wire type alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pageseek.errors import UnsupportedError
from pageseek.schema import Schema
from pageseek.types import INT96, L_ENUM, logical_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}
_KEPT = frozenset(
    (
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
    )
)
MAX_PRECISION = 38
TIME_SETTING = "spark.sql.timeType.enabled"


def wire_type(kind: pa.DataType) -> pa.DataType | None:
    """The Arrow type in which a column of type `kind` is sent to the JVM; None where Spark has no such type."""
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return wire_type(kind.storage_type)
    if t.is_dictionary(kind):
        return wire_type(kind.value_type)
    if kind in _KEPT:
        return kind
    if kind in _WIDER:
        return _WIDER[kind]
    if t.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    if t.is_duration(kind):
        return pa.duration("us")
    if t.is_time(kind):
        return pa.time64("ns")
    if t.is_fixed_size_binary(kind):
        return pa.binary()
    if t.is_decimal(kind) and kind.precision <= MAX_PRECISION:
        return pa.decimal128(kind.precision, kind.scale)
    return None


def wire_schema(schema: pa.Schema, tree: Schema, source: str) -> pa.Schema:
    """The wire types of a scan's columns.

    Two follow the column in the file rather than its Arrow type, because Spark's own reader does so:
    INT96 is an instant (a timestamp with zone), ENUM is text.
    """
    fields = []
    for field in schema:
        wire = wire_type(field.type)
        element = tree.fields[tree.field_index(field.name)].element
        if element.type == INT96:
            wire = pa.timestamp("us", "UTC")
        elif logical_of(element)[0] == L_ENUM and wire in (pa.binary(), pa.large_binary()):
            wire = pa.string() if wire == pa.binary() else pa.large_string()
        if wire is None:
            why = (
                f"decimals beyond {MAX_PRECISION} digits"
                if pa.types.is_decimal(field.type)
                else "it"
            )
            raise UnsupportedError(
                f"{source}: column {field.name!r} is {field.type}, and Spark has no type for {why}; "
                "name the columns to read without this one"
            )
        fields.append(pa.field(field.name, wire))
    return pa.schema(fields)


def spark_schema(wire: pa.Schema, source: str, spark: SparkSession) -> StructType:
    """The schema of the DataFrame. Every column is nullable, as with Spark's own file readers."""
    import pyspark.sql.types as s

    plain = {
        pa.null(): s.NullType,
        pa.bool_(): s.BooleanType,
        pa.int8(): s.ByteType,
        pa.int16(): s.ShortType,
        pa.int32(): s.IntegerType,
        pa.int64(): s.LongType,
        pa.float32(): s.FloatType,
        pa.float64(): s.DoubleType,
        pa.date32(): s.DateType,
        pa.string(): s.StringType,
        pa.large_string(): s.StringType,
        pa.binary(): s.BinaryType,
        pa.large_binary(): s.BinaryType,
        pa.timestamp("us"): s.TimestampNTZType,
        pa.timestamp("us", "UTC"): s.TimestampType,
        pa.duration("us"): s.DayTimeIntervalType,
    }
    fields = []
    for field in wire:
        if field.type in plain:
            made = plain[field.type]()
        elif pa.types.is_decimal(field.type):
            made = s.DecimalType(field.type.precision, field.type.scale)
        elif hasattr(s, "TimeType") and spark.conf.get(TIME_SETTING) == "true":
            made = s.TimeType()
        else:
            raise UnsupportedError(
                f"{source}: column {field.name!r} is a time of day, which Spark takes from 4.1 on and where "
                f"{TIME_SETTING} is true; set it, or name the columns to read without this one"
            )
        fields.append(s.StructField(field.name, made, True))
    return s.StructType(fields)


def to_wire(batch: pa.RecordBatch, wire: pa.Schema, source: str) -> pa.RecordBatch:
    """A batch in the wire types; an error names the file and the column."""
    columns = []
    for name, array, target in zip(wire.names, batch.columns, wire.types, strict=True):
        try:
            columns.append(_convert(array, target))
        except pa.ArrowException as error:
            raise UnsupportedError(
                f"{source}: column {name!r}: a value of {array.type} does not fit Spark's type ({target}): {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=wire)


def _convert(array: pa.Array, target: pa.DataType) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_temporal(array.type) and getattr(array.type, "unit", "") == "ns":
        array = _floor_to_us(array)
    if array.type == target:
        return array
    # A zone is a label on instants in UTC; a cast between unzoned and zoned would consult it.
    if pa.types.is_timestamp(target) and target.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    return array.cast(target)


def _floor_to_us(array: pa.Array) -> pa.Array:
    """Nanoseconds as microseconds, towards the past, as Spark reads INT96; Arrow's own cast goes towards zero."""
    kind = array.type
    finer = np.asarray(array.view(pa.int64()).fill_null(0))
    missing = np.asarray(array.is_null()) if array.null_count else None
    coarser = pa.array(finer // 1000, pa.int64(), mask=missing)
    if pa.types.is_timestamp(kind):
        return coarser.view(pa.timestamp("us", kind.tz))
    return coarser.view(pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us"))
