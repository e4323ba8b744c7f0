"""Columns of a DataFrame with those fields of structs alone that are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def narrowed_column(column: Column, given: DataType, wanted: DataType) -> Column:
    """A column of one type as one of another, which lacks fields of structs."""
    from pyspark.sql.functions import struct, transform, when
    from pyspark.sql.types import ArrayType, StructType

    if given == wanted:
        return column
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        inner = given.elementType, wanted.elementType
        return transform(column, lambda element: narrowed_column(element, *inner))
    assert isinstance(given, StructType), f"{given} is no {wanted}"
    assert isinstance(wanted, StructType), f"{given} is no {wanted}"
    fields: list[Any] = [
        narrowed_column(column.getField(f.name), given[f.name].dataType, f.dataType).alias(f.name)
        for f in wanted
    ]
    return when(column.isNotNull(), struct(*fields))
