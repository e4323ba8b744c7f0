"""From the types of Parquet columns to those of Spark: on the driver the schema, in a task the batches.

The *wire* type of a column is the Arrow type in which a task sends it: one that the JVM accepts. Its Spark type follows
from the wire type alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import UnsupportedError
from pageseek.format.columns import Column
from pageseek.format.nesting import Node
from pageseek.format.schema import Leaf
from pageseek.format.types import L_ENUM, PHYSICAL_NAMES, logical_of
from pageseek.spark.columns.variant import whole_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructField, StructType

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
# Arrow types that are sent as they are, and the names of Spark's types for them
_SPARK_TYPES = {
    pa.null(): "NullType",
    pa.bool_(): "BooleanType",
    pa.int8(): "ByteType",
    pa.int16(): "ShortType",
    pa.int32(): "IntegerType",
    pa.int64(): "LongType",
    pa.float32(): "FloatType",
    pa.float64(): "DoubleType",
    pa.date32(): "DateType",
    pa.string(): "StringType",
    pa.large_string(): "StringType",
    pa.binary(): "BinaryType",
    pa.large_binary(): "BinaryType",
    pa.timestamp("us"): "TimestampNTZType",
    pa.timestamp("us", "UTC"): "TimestampType",
    pa.duration("us"): "DayTimeIntervalType",
}
# the other way round: of several Arrow types the first
OF_SPARK = {name: kind for kind, name in reversed(_SPARK_TYPES.items())}
OF_SPARK["TimeType"] = pa.time64("ns")
MAX_PRECISION = 38
_UNKNOWN = {
    PHYSICAL_NAMES.index(name): kind
    for name, kind in {
        "BOOLEAN": pa.bool_(), "INT32": pa.int32(), "INT64": pa.int64(), "INT96": pa.timestamp("us", "UTC"), "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(), "BYTE_ARRAY": pa.binary(), "FIXED_LEN_BYTE_ARRAY": pa.binary(),
    }.items()
}  # fmt: skip
# a Variant, as Spark recognizes it
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), False),
        pa.field("metadata", pa.binary(), False, {"variant": "true"}),
    ]
)
_LISTS = (
    pa.ListType,
    pa.LargeListType,
    pa.FixedSizeListType,
    pa.ListViewType,
    pa.LargeListViewType,
)
_AS_TEXT = ((pa.binary(), pa.string()), (pa.large_binary(), pa.large_string()))
TIME_SETTING = "spark.sql.timeType.enabled"
_MICROS, _NANOS = 6, 9  # digits of the seconds of a time of day


@cache
def has_nanos() -> bool:
    """Whether this release of Spark, 4.3 or later, has times of day in nanoseconds."""
    import pyspark

    return tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3)


def is_nanos(kind: SparkType) -> bool:
    """Whether a time of day of Spark is in nanoseconds in files."""
    return getattr(kind, "precision", _MICROS) > _MICROS


def wire_type(kind: pa.DataType) -> pa.DataType | None:
    """The Arrow type in which a column of type `kind` is sent to the JVM; None where Spark has no such type."""
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return wire_type(kind.storage_type)
    if t.is_dictionary(kind):
        return wire_type(kind.value_type)
    if kind in _SPARK_TYPES:
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


def wire_schema(columns: Sequence[Column], source: str) -> pa.Schema:
    """The wire types of a scan's columns."""
    fields = []
    for column in columns:
        if column.node is None:
            (part,) = column.parts
            wire = _leaf_wire(part.leaf_type.type, part.leaf, source)
        else:
            wire = _wire(column.node.field.type, column.name, source, column.node)
        fields.append(pa.field(column.name, wire))
    return pa.schema(fields)


def wire_field(field: pa.Field, source: str) -> pa.Field:
    """The wire type of a column by its Arrow type alone: a column of folders, or one that files have in several types."""
    return pa.field(field.name, _wire(field.type, field.name, source))


def _wire(kind: pa.DataType, name: str, source: str, node: Node | None = None) -> pa.DataType:
    """The wire type of a field and of all below it.

    Every list is sent with 32-bit offsets. Everything but keys of maps may be null. `node`: the field in the file, whose
    leaves decide a few types.
    """
    if node is not None and node.leaf is not None:
        return _leaf_wire(kind, node.leaf, source)
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    nodes: Iterable[Node | None] = repeat(None) if node is None else node.children
    if pa.types.is_struct(kind):
        return pa.struct(
            [
                pa.field(f.name, _wire(f.type, f"{name}.{f.name}", source, child))
                for f, child in zip(kind, nodes, strict=node is not None)
            ]
        )
    if pa.types.is_map(kind):
        pair = zip((kind.key_type, kind.item_type), nodes, strict=False)
        return pa.map_(*[_wire(below, name, source, child) for below, child in pair])
    if isinstance(kind, _LISTS):
        return pa.list_(
            pa.field("element", _wire(kind.value_type, name, source, next(iter(nodes))))
        )
    wire = wire_type(kind)
    if wire is None:
        raise _no_type(kind, name, source)
    return wire


def _no_type(kind: pa.DataType, name: str, source: str) -> UnsupportedError:
    why = f"decimals beyond {MAX_PRECISION} digits" if pa.types.is_decimal(kind) else "it"
    return UnsupportedError(
        f"{source}: column {name!r} is {kind}, and Spark has no type for {why}; "
        "name the columns to read without this one"
    )


def _leaf_wire(kind: pa.DataType, leaf: Leaf, source: str) -> pa.DataType:
    """The wire type of a leaf. As in Spark's own reader, ENUM is text, and a leaf of which the file says only that all its values
    are null (UNKNOWN) has the type of its physical type.
    """
    wire = _UNKNOWN[leaf.element.type] if pa.types.is_null(kind) else wire_type(kind)
    if logical_of(leaf.element)[0] == L_ENUM and wire in (pa.binary(), pa.large_binary()):
        return pa.string() if wire == pa.binary() else pa.large_string()
    if wire is None:
        raise _no_type(kind, leaf.name, source)
    return wire


def spark_schema(wire: pa.Schema, source: str, spark: SparkSession) -> StructType:
    """The schema of the DataFrame. As with Spark's own readers, everything but keys of maps is nullable."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(field.name, _spark_type(field.type, field.name, source, spark), True)
            for field in wire
        ]
    )


def _spark_type(wire: pa.DataType, name: str, source: str, spark: SparkSession) -> SparkType:
    import pyspark.sql.types as s

    if wire in _SPARK_TYPES:
        made: SparkType = getattr(s, _SPARK_TYPES[wire])()
        return made
    if pa.types.is_decimal(wire):
        return s.DecimalType(wire.precision, wire.scale)
    if pa.types.is_struct(wire):
        return s.StructType(
            [
                s.StructField(f.name, _spark_type(f.type, f"{name}.{f.name}", source, spark), True)
                for f in wire
            ]
        )
    if pa.types.is_list(wire):
        return s.ArrayType(_spark_type(wire.value_type, name, source, spark), True)
    if pa.types.is_map(wire):
        key = _spark_type(wire.key_type, name, source, spark)
        return s.MapType(key, _spark_type(wire.item_type, name, source, spark), True)
    if hasattr(s, "TimeType") and spark.conf.get(TIME_SETTING) == "true":
        return s.TimeType()
    raise UnsupportedError(
        f"{source}: column {name!r} is a time of day, which Spark takes from 4.1 on and where "
        f"{TIME_SETTING} is true; set it, or name the columns to read without this one"
    )


def nanos_of(kind: pa.DataType) -> SparkType | None:
    """A type of Spark with the times of day that are nanoseconds in a type of a scan; None if it has none."""
    import pyspark.sql.types as s

    if kind == pa.time64("ns"):
        return s.TimeType(_NANOS)
    if pa.types.is_struct(kind):
        below = [(field.name, nanos_of(field.type)) for field in kind]
        fields = [s.StructField(name, made) for name, made in below if made is not None]
        return s.StructType(fields) if fields else None
    if pa.types.is_map(kind):
        key, item = nanos_of(kind.key_type), nanos_of(kind.item_type)
        return s.MapType(key or s.NullType(), item or s.NullType()) if key or item else None
    if isinstance(kind, _LISTS):
        element = nanos_of(kind.value_type)
        return None if element is None else s.ArrayType(element)
    return None


def stored_type(kind: SparkType, name: str) -> pa.DataType:
    """As `arrow_type`, with times of day in the unit that files have for their digits.

    Raises
    ------
    UnsupportedError
        Times have other digits than those of a unit, or there is no such type.
    """
    return arrow_type(kind, name, _stored_time)


def _stored_time(kind: SparkType, name: str) -> pa.DataType:
    if kind.simpleString() not in (f"time({_MICROS})", f"time({_NANOS})"):
        raise UnsupportedError(
            f"column {name!r}: values of the type {kind.simpleString()} would be cut: give it the type time({_MICROS}) or "
            f"time({_NANOS}), as files have them, and cast it in the query"
        )
    return pa.time64("ns" if is_nanos(kind) else "us")


def _sent_time(kind: SparkType, name: str) -> pa.DataType:
    return pa.time64("ns")


def arrow_type(
    kind: SparkType, name: str, time: Callable[[SparkType, str], pa.DataType] = _sent_time
) -> pa.DataType:
    """The Arrow type that Spark itself has for one of its types. `name`: of the column, for errors.

    `time`: gives the type of times of day.
    """
    import pyspark.sql.types as s

    if isinstance(kind, s.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, s.StructType):
        return pa.struct([_arrow_field(f, name, time) for f in kind])
    if isinstance(kind, s.ArrayType):
        element = s.StructField("element", kind.elementType, kind.containsNull)
        return pa.list_(_arrow_field(element, name, time))
    if isinstance(kind, s.MapType):
        value = s.StructField("value", kind.valueType, kind.valueContainsNull)
        return pa.map_(arrow_type(kind.keyType, name, time), _arrow_field(value, name, time))
    if isinstance(kind, getattr(s, "VariantType", ())):
        return VARIANT
    if type(kind).__name__ == "TimeType":
        return time(kind, name)
    made = OF_SPARK.get(type(kind).__name__)
    if made is None or kind.simpleString().startswith("string "):  # with a collation
        raise UnsupportedError(
            f"column {name!r}: values of the type {kind.simpleString()} are not read here; name the columns to read without "
            "it, or use pageseek.spark.read"
        )
    return made


def _arrow_field(
    field: StructField, column: str, time: Callable[[SparkType, str], pa.DataType]
) -> pa.Field:
    return pa.field(field.name, arrow_type(field.dataType, column, time), field.nullable)


def to_wire(batch: pa.RecordBatch, wire: pa.Schema, source: str) -> pa.RecordBatch:
    """A batch in the wire types; an error names the file and the column."""
    return ToWire(wire)(batch, source)


class ToWire:
    """Brings batches into wire types. Most batches have the types of the one before, and few columns of another than the wire's."""

    __slots__ = ("_changed", "_same", "_schema", "_wire")

    def __init__(self, wire: pa.Schema) -> None:
        self._wire = wire
        self._schema: pa.Schema | None = None  # of the batch before
        self._changed: list[int] = []  # columns
        self._same = False  # as the wire

    def __call__(self, batch: pa.RecordBatch, source: str) -> pa.RecordBatch:
        """`source`: the file, which an error names with the column."""
        schema = batch.schema
        if self._schema is None or not schema.equals(self._schema, check_metadata=True):
            kinds = zip(schema.types, self._wire.types, strict=True)
            self._changed = [i for i, (kind, to) in enumerate(kinds) if not _is_as_sent(kind, to)]
            self._schema = schema
            self._same = not self._changed and schema.equals(self._wire, check_metadata=True)
        if self._same:
            return batch
        columns = batch.columns
        for i in self._changed:
            name, kind = self._wire.names[i], self._wire.types[i]
            try:
                columns[i] = _convert(columns[i], kind)
            except pa.ArrowException as error:
                raise UnsupportedError(
                    f"{source}: column {name!r}: a value of {columns[i].type} does not fit Spark's type ({kind}): {error}"
                ) from error
        return pa.RecordBatch.from_arrays(columns, schema=self._wire)


def _is_as_sent(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of a type go to Spark as they are."""
    if kind != target or pa.types.is_null(kind) or isinstance(kind, pa.BaseExtensionType):
        return False
    if pa.types.is_nested(kind):
        return kind != VARIANT and (has_nanos() or nanos_of(kind) is None)
    return not _is_rounded(kind)


def _convert(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if pa.types.is_nested(target):
        if target == VARIANT:
            return _variant(array)
        same = array.type == target and (has_nanos() or nanos_of(target) is None)
        return array if same else _convert_nested(array, target)
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if _is_rounded(array.type):
        array = _floor_to_us(array)
    if array.type == target:
        return array
    # A zone is a label on instants in UTC; a cast between unzoned and zoned would consult it.
    if pa.types.is_timestamp(target) and target.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    if (array.type, target) in _AS_TEXT:  # a cast would refuse what is not UTF-8
        return array.view(target)
    return array.cast(target)


def _is_rounded(kind: pa.DataType) -> bool:
    """Whether values have nanoseconds that Spark's type has no room for."""
    if getattr(kind, "unit", "") != "ns" or not pa.types.is_temporal(kind):
        return False
    return not (pa.types.is_time(kind) and has_nanos())


def _convert_nested(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A nested array whose children are converted by themselves; a slice is rebuilt from its first row on."""
    return _rebuilt(array, target, _convert)


def _variant(array: pa.Array) -> pa.Array:
    """The parts of a Variant in the order and with the types that Spark wants; where it is null, they are empty."""
    missing = array.is_null() if array.null_count else None
    parts = [array.field("metadata").cast(pa.binary()).fill_null(b"")]
    if array.type.get_field_index("typed_value") < 0:
        parts.insert(0, array.field("value").cast(pa.binary()).fill_null(b""))
    else:
        parts.insert(0, whole_values(array))
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=missing)


def on_leaves(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """An array in wire types with its leaves changed by a function that keeps their type."""

    def below(part: pa.Array, target: pa.DataType) -> pa.Array:
        return _rebuilt(part, target, below) if pa.types.is_nested(target) else change(part)

    return below(array, array.type)


def _rebuilt(
    array: pa.Array, target: pa.DataType, convert: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.Array:
    t = pa.types
    missing = array.is_null() if array.null_count else None
    if t.is_struct(target):
        children = [convert(c, f.type) for c, f in zip(array.flatten(), target, strict=True)]
        if not children:
            return array.cast(target)
        return pa.StructArray.from_arrays(children, fields=list(target), mask=missing)
    if t.is_map(target):
        ends = np.asarray(array.offsets)
        first, size = int(ends[0]), int(ends[-1] - ends[0])
        keys = convert(array.keys.slice(first, size), target.key_type)
        items = convert(array.items.slice(first, size), target.item_type)
        offsets = pa.array(ends - first)
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=missing)
    sizes = np.asarray(pc.list_value_length(array).fill_null(0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    values = convert(array.flatten(), target.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=missing)


def _floor_to_us(array: pa.Array) -> pa.Array:
    """Nanoseconds as microseconds, towards the past, as Spark reads INT96; Arrow's own cast goes towards zero."""
    kind = array.type
    finer = np.asarray(array.view(pa.int64()).fill_null(0))
    missing = np.asarray(array.is_null()) if array.null_count else None
    coarser = pa.array(finer // 1000, pa.int64(), mask=missing)
    if pa.types.is_timestamp(kind):
        return coarser.view(pa.timestamp("us", kind.tz))
    return coarser.view(pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us"))
