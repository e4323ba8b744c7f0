"""The types that a consumer of a scan's stream asks for: given where they hold all values."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

TABLE = pa.table(
    {
        "i": pa.array([1, None, 2**60]),
        "h": pa.array([1, 2, None], pa.int32()),
        "s": ["a", None, "text longer than a view holds"],
        "b": [b"x", None, b""],
        "st": [{"x": 1, "s": "p"}, None, {"x": 2, "s": None}],
    }
)
SINK = io.BytesIO()
pq.write_table(TABLE, SINK)
STRUCT = TABLE.schema.field("st").type


def asked(types: dict[str, pa.DataType], **options: Any) -> pa.Table:
    kinds = {field.name: field.type for field in TABLE.schema} | types
    scan = ps.scan(SINK.getvalue(), **options)
    return pa.RecordBatchReader.from_stream(scan, schema=pa.schema(list(kinds.items()))).read_all()


@pytest.mark.parametrize(
    "types",
    [
        {"s": pa.string_view(), "b": pa.binary_view()},
        {"s": pa.large_string(), "b": pa.large_binary()},
        {"s": pa.string_view()},
        {"h": pa.float64(), "i": pa.decimal128(20, 0)},
        {"st": pa.struct({"x": pa.int64(), "s": pa.large_string()})},
    ],
)
@pytest.mark.parametrize("string_type", ["string", "view"])
def test_a_type_that_holds_all_values_is_given(
    types: dict[str, pa.DataType], string_type: str
) -> None:
    found = asked(types, string_type=string_type)
    assert {name: found.schema.field(name).type for name in types} == types
    assert found.to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize(
    "types",
    [
        {"i": pa.float64()},  # rounds
        {"i": pa.int32()},
        {"i": pa.date32(), "s": pa.int64()},
        {"st": pa.struct({"x": pa.int64()})},
        {"s": pa.binary()},
    ],
)
def test_a_column_keeps_its_type_where_another_might_change_values(
    types: dict[str, pa.DataType],
) -> None:
    found = asked(types)
    assert found.schema.equals(TABLE.schema) and found.to_pylist() == TABLE.to_pylist()


def test_other_columns_are_refused() -> None:
    with pytest.raises(ps.UnsupportedError, match=r"requested_schema has the columns \['i'\]"):
        pa.RecordBatchReader.from_stream(
            ps.scan(SINK.getvalue()), schema=pa.schema([("i", pa.int64())])
        )
