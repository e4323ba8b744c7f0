"""IS NULL and IS NOT NULL are answered by levels: no value and no dictionary is read for them."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.store_log import Log
from support.writer import I64, INT32, Column, Struct, write

pytestmark = pytest.mark.usefixtures("scans")

ROWS = 4_000
X, Y = ps.col("x"), ps.col("y")


def table() -> pa.Table:
    random = np.random.default_rng(3)

    def some(values: Any) -> pa.Array:
        return pa.array(values, mask=random.random(ROWS) < 0.3)

    return pa.table(
        {
            "a": np.arange(ROWS),
            "x": some(random.integers(0, 9, ROWS)),
            "s": some(np.char.mod("text %d", random.integers(0, 1 << 30, ROWS)).astype(object)),
            "st": pa.array(
                [None if i % 7 == 0 else {"u": None if i % 3 else i} for i in range(ROWS)]
            ),
        }
    )


GIVEN = table()
FILTERS = [
    "x is null",
    "x is not null",
    "s is null and a < 1234",
    "st.u is null",
    "st.u is not null and a > 700",
    "st is null and st.u is null",
    "s is null or x is null",
    "not (s is null or x is null)",
    "s is null and x is null and st.u is null",
    "x is null and (x > 3 or a < 99)",
    "x is null and x is not null",
    "x is null and s > 'text 5'",
]


def wanted(condition: str) -> list[bool]:
    rows = GIVEN.to_pylist()

    def u(row: Any) -> Any:
        return None if row["st"] is None else row["st"]["u"]

    by = {
        FILTERS[0]: lambda r: r["x"] is None,
        FILTERS[1]: lambda r: r["x"] is not None,
        FILTERS[2]: lambda r: r["s"] is None and r["a"] < 1234,
        FILTERS[3]: lambda r: u(r) is None,
        FILTERS[4]: lambda r: u(r) is not None and r["a"] > 700,
        FILTERS[5]: lambda r: r["st"] is None,
        FILTERS[6]: lambda r: r["s"] is None or r["x"] is None,
        FILTERS[7]: lambda r: r["s"] is not None and r["x"] is not None,
        FILTERS[8]: lambda r: r["s"] is None and r["x"] is None and u(r) is None,
        FILTERS[9]: lambda r: r["x"] is None and r["a"] < 99,
        FILTERS[10]: lambda _: False,
        FILTERS[11]: lambda r: r["x"] is None and r["s"] is not None and r["s"] > "text 5",
    }
    return [by[condition](row) for row in rows]


@pytest.mark.covering(2)
@pytest.mark.parametrize("how", [
    {}, {"data_page_version": "2.0"}, {"write_page_index": True, "data_page_size": 512},
    {"compression": "zstd", "data_page_size": 4096}, {"use_dictionary": False, "compression": "gzip"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("condition", FILTERS)
def test_answers_are_those_of_the_values(condition: str, how: dict[str, Any]) -> None:
    sink = io.BytesIO()
    pq.write_table(GIVEN, sink, row_group_size=1_500, write_batch_size=64, **how)
    rows = GIVEN.filter(pa.array(wanted(condition)))
    columns: list[list[str] | None] = [None, ["a"], ["x"], ["s", "st"], ["st.u"], []]
    for names, limit, prune in itertools.product(columns, (None, 17), (True, False)):
        found = ps.read_table(sink.getvalue(), names, condition, limit=limit, prune=prune)
        due = rows if limit is None else rows.slice(0, limit)
        assert found.num_rows == due.num_rows
        if names != []:
            tops = due.column_names if names is None else [name.split(".")[0] for name in names]
            assert found.to_pylist() == due.select(tops).to_pylist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.decimal128(9, 2), pa.bool_()], ids=str)  # fmt: skip
def test_a_column_of_nothing_but_nulls_has_its_type(kind: pa.DataType) -> None:
    values = ["1", None, "0", None, None] if kind != pa.bool_() else [True, None, False, None, None]
    x = pa.array(values, pa.string() if kind != pa.bool_() else kind).cast(kind)
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": x, "row": range(5)}), sink)
    found = ps.read_table(sink.getvalue(), filter=X.is_null())
    assert found.schema.field("x").type == kind
    assert found["row"].to_pylist() == [1, 3, 4]
    assert found["x"].null_count == 3
    found.validate(full=True)


def chunk(indexed: bool, lie: int = 0) -> tuple[bytes, Column]:
    """Two columns with dictionaries; x says of its data pages that they begin elsewhere, if it is to lie."""

    def edit(meta: Struct) -> None:
        meta[9] = I64(meta[9] + lie)

    values = [None if i % 3 == 0 else i % 5 for i in range(60)]
    how: dict[str, Any] = {"offset_index": indexed, "column_index": False, "statistics": False}
    x = Column(
        "x", INT32, values, [20] * 3, optional=True, encodings="dictionary", edit_chunk=edit, **how
    )
    return write([x, Column("row", INT32, list(range(60)), [20] * 3, **how)]), x


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("columns", [["row"], ["row", "x"]])
def test_no_dictionary_is_read(indexed: bool, columns: list[str], log: Log, tmp_path: Any) -> None:
    data, x = chunk(indexed)
    path = tmp_path / "x.parquet"
    path.write_bytes(data)
    assert x.made.dictionary is not None
    for condition, reads in (
        ("x is null", False),
        ("x is not null", "x" in columns),
        ("x = 3", True),
    ):
        log.clear()
        ps.read_table(str(path), columns, condition, prune=False)
        required_leaves = log.required_leaves([x.made.dictionary])
        assert bool(required_leaves) == reads, condition


def first(x: Column, page: int) -> int:
    return int(x.made.pages[page][0] - x.made.pages[0][0])


@pytest.mark.parametrize("page", [1, 2, None])
def test_data_pages_that_begin_before_they_are_said_to(page: int | None) -> None:
    honest, x = chunk(False)
    lie = 3 if page is None else first(x, page)
    lying, _ = chunk(False, lie)
    for condition in ("x is null", "x is not null"):
        assert ps.read_table(lying, ["row"], condition) == ps.read_table(honest, ["row"], condition)
