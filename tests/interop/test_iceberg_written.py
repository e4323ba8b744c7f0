"""Tables of Iceberg that are written by hand, from the specification: what pyiceberg cannot write."""

from __future__ import annotations

import datetime as dt
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps

pytest.importorskip("pyiceberg", "0.10")

from support.iceberg_written import (  # fmt: skip
    Written,
    column,
    ided,
    list_of,
    rows_of,
    struct_of,
)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["s.a"], [{"s": {"a": None}}, {"s": None}]),
        (["s.a", "s.bb"], [{"s": {"a": None, "bb": 2}}, {"s": None}]),
        (["s.i.a"], [{"s": {"i": {"a": None}}}, {"s": None}]),
        (["s.i.new"], [{"s": {"i": {"new": None}}}, {"s": None}]),
        (["s.bb", "s.i.a"], [{"s": {"i": {"a": None}, "bb": 2}}, {"s": None}]),
        (["l.element.a"], [{"l": [{"a": None, "b": 6}, None]}, {"l": None}]),
    ],
)
def test_a_field_that_was_dropped_and_added_again_is_another_one(
    tmp_path: Path, columns: list[str], expected: list[dict[str, Any]]
) -> None:
    """Also if it is read alone: what is read instead, to tell where the structs are null, has its name in the file."""
    old = [
        column(1, "s", struct_of(column(2, "a", "int"), column(3, "b", "int"), column(4, "i", struct_of(column(5, "a", "int"))))),
        column(6, "l", list_of(7, struct_of(column(8, "a", "int"), column(9, "b", "int")))),
    ]  # fmt: skip
    inner = struct_of(column(11, "a", "int"), column(12, "new", "int"))
    now = [
        column(1, "s", struct_of(column(10, "a", "int"), column(4, "i", inner), column(3, "bb", "int"))),
        column(6, "l", list_of(7, struct_of(column(13, "a", "int"), column(9, "b", "int")))),
    ]  # fmt: skip
    table = Written(tmp_path, [old, now])
    deep = ided("i", pa.struct([ided("a", pa.int32(), 5)]), 4)
    s = pa.struct([ided("a", pa.int32(), 2), ided("b", pa.int32(), 3), deep])
    of_list = pa.struct([ided("a", pa.int32(), 8), ided("b", pa.int32(), 9)])
    table.add(
        rows_of(
            [ided("s", s, 1), ided("l", pa.list_(ided("element", of_list, 7)), 6)],
            [{"a": 1, "b": 2, "i": {"a": 3}}, None],
            [[{"a": 5, "b": 6}, None], None],
        )
    )
    assert ps.read_table(table.commit(), columns=columns).to_pylist() == expected
