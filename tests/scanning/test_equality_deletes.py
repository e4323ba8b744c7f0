"""Rows that are deleted by values of fields inside of structs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.report import Report
from pageseek.datasets.deletes import KeyField
from pageseek.scanning.deletes.delete_files import opened
from pageseek.scanning.deletes.equality_deletes import rows_of_values
from pageseek.storage import Source

IDS = {"a": 2, "b": 3, "x": 4, "s": 5, "a.b": 6}
NESTED = ("a",), ("b",)


def numbered(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(IDS[name])})


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct([numbered(name, kind) for name, kind in fields.items()])


def source(path: Path, name: str, **columns: tuple[list[Any], pa.DataType]) -> Source:
    fields = [numbered(name, kind) for name, (_, kind) in columns.items()]
    arrays = [pa.array(values, kind) for values, kind in columns.values()]
    pq.write_table(pa.table(arrays, pa.schema(fields)), path / name)
    return Source(str(path / name))


def deleted(data: Source, by: Source, field: KeyField) -> list[int]:
    version = opened(data, Report()).store.version
    found = rows_of_values(data, version, (), (), (field,), (by,), Report())
    return [row for first, stop in found for row in range(first, stop)]


@pytest.mark.parametrize("around", [(), ((2, False),)])
def test_a_field_that_is_missing_is_null_where_its_struct_is(tmp_path: Path, around: Any) -> None:
    rows = [{"x": 1}, None, {"x": 3}]
    data = source(tmp_path, "data", a=(rows, struct(x=pa.int64())))
    other = source(tmp_path, "other", x=([1, 2], pa.int64()))
    field = KeyField(3, "b", NESTED, pa.scalar(7), None, around)
    for value, missing in (({"b": 7}, [0, 2]), (None, [1]), ({"b": 8}, [])):
        by = source(tmp_path, f"{value}", a=([value], struct(b=pa.int64())))
        assert deleted(data, by, field) == missing
        assert deleted(other, by, field) == ([0, 1] if value is None else [])
        default = field._replace(around=((2, True),))  # of the struct
        assert deleted(other, by, default) == ([0, 1] if value == {"b": 7} else [])


def test_structs_in_structs_and_under_other_names(tmp_path: Path) -> None:
    rows = [{"s": {"x": 1}}, {"s": None}, None]
    data = source(tmp_path, "data", a=(rows, struct(s=struct(x=pa.int64()))))
    inside = struct(s=struct(b=pa.int64()))
    by = source(tmp_path, "by", a=([{"s": {"b": 7}}], inside))
    for around in ((2, False), (5, False)), ((2, False), (5, True)):
        field = KeyField(3, "b", (("renamed",), ("s",), ("b",)), pa.scalar(7), None, around)
        assert deleted(data, by, field) == [0]
    # the struct `s` is missing, and null unless it has a default itself
    for default, rows_there in ((False, []), (True, [0])):
        field = field._replace(around=((2, False), (5, default)))
        less = source(tmp_path, "less", a=([{"x": 1}, None], struct(x=pa.int64())))
        assert deleted(less, by, field) == rows_there


def test_a_column_with_a_dot_in_its_name_beside_a_field_of_that_path(tmp_path: Path) -> None:
    rows = [{"b": 1}, {"b": 2}, {"b": 100}]
    data = source(
        tmp_path,
        "data",
        **{"a.b": ([100, 200, 300], pa.int64()), "a": (rows, struct(b=pa.int64()))},
    )
    field = KeyField(3, "b", NESTED)
    by = source(tmp_path, "by", a=([{"b": 2}, {"b": 100}], struct(b=pa.int64())))
    assert deleted(data, by, field) == [1, 2]
    top = source(tmp_path, "top", **{"a.b": ([100], pa.int64())})
    assert deleted(data, top, KeyField(6, "a.b", (("a.b",),), None, "a.b")) == [0]
    assert deleted(data, data, field) == [0, 1, 2]
