"""Whether a struct or a list is null: told by the levels of a leaf below it, never by that leaf's statistics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps

N = 600
ROWS = 100  # of a page


def written(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def check(data: bytes, name: str) -> None:
    """IS NULL and IS NOT NULL of a column, alone and beside other conditions, give the rows that Arrow says."""
    table = pq.read_table(pa.BufferReader(data))
    half = pc.greater_equal(table["id"], N // 2)
    low = pc.less(pc.struct_field(table["s"], "a"), N // 3)
    late, small = ps.col("id") >= N // 2, ps.col("s", "a") < N // 3
    for mask, test in (
        (table[name].is_null(), ps.col(name).is_null()),
        (table[name].is_valid(), ps.col(name).is_not_null()),
    ):
        for rows, condition in (
            (mask, test),
            (pc.invert(mask), ~test),
            (pc.and_(mask, half), test & late),
            (pc.or_(mask, half), test | late),
            (pc.and_kleene(mask, low), test & small),  # whose statistics and page index are at hand
            (pc.or_kleene(mask, low), test | small),
        ):
            for columns in (None, ["id"]):
                wanted = table.filter(rows).select(columns or table.column_names)
                assert ps.read_table(data, columns=columns, filter=condition).equals(wanted)


FIRST = {  # the leaf that stands for the group
    "always null": lambda i: None,
    "never null": lambda i: i,
    "sometimes null": lambda i: i if i % 3 else None,
    "null in some pages": lambda i: None if i // ROWS % 2 else i,
    "null in some row groups": lambda i: None if i >= N // 2 else i,
}


@pytest.mark.parametrize("layout", ["statistics", "page index"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("rows", ["never", "in some pages", "sometimes", "always"])
def test_statistics_of_a_leaf_say_nothing_of_its_group(first: str, rows: str, layout: str) -> None:
    missing = {
        "never": lambda i: False,
        "in some pages": lambda i: i // ROWS % 3 == 1,
        "sometimes": lambda i: i % 5 == 2,
        "always": lambda i: True,
    }[rows]
    structs = [None if missing(i) else {"a": FIRST[first](i), "b": i} for i in range(N)]
    lists = [None if missing(i) else [FIRST[first](i)] * (i % 3) for i in range(N)]
    table = pa.table(
        {
            "id": pa.array(range(N)),
            "s": pa.array(structs, pa.struct([("a", pa.int64()), ("b", pa.int64())])),
            "l": pa.array(lists, pa.list_(pa.int64())),
        }
    )
    data = written(
        table,
        row_group_size=N // 2,
        write_page_index=layout == "page index",
        max_rows_per_page=ROWS,
        use_dictionary=False,
    )
    check(data, "s")
    check(data, "l")
