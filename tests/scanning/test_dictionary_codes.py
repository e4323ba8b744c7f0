"""Filters on dictionary codes give the same rows as filters on values, for every output type."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import rows
from pageseek.base.errors import CoreError
from pageseek.scanning.one_file import group_reader as execute
from support.writer import BYTE_ARRAY, INT64, STRING, Column, write

pytestmark = pytest.mark.usefixtures("scans")

N = 3_000


def column(kind: pa.DataType, seed: int) -> pa.Array:
    random = np.random.default_rng(seed)
    picked = random.integers(0, 20, N)
    if pa.types.is_decimal(kind):
        made = [Decimal(int(i) - 10) / 4 for i in picked]
    elif pa.types.is_fixed_size_binary(kind):
        made = [b"%03d" % i for i in picked]
    elif pa.types.is_binary(kind):
        made = [b"b\xff%d" % i * (i % 3) for i in picked]
    else:
        made = [f"w{i}" * int(i % 3) for i in picked]
    holes = random.random(N) < 0.2
    return pa.array([None if hole else v for v, hole in zip(made, holes, strict=True)], kind)


LITERALS: dict[pa.DataType, tuple[Any, Any]] = {
    pa.string(): ("w5", "w17w17"),
    pa.binary(): (b"b\xff5", b"b\xff7"),
    pa.binary(3): (b"005", b"017"),
    pa.decimal128(9, 2): (Decimal("-1.25"), Decimal("2")),
    pa.decimal256(60, 2): (Decimal("-1.25"), Decimal("2")),
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("kind", LITERALS, ids=str)
@pytest.mark.parametrize("columns", [None, ["n"], ["x"]])
@pytest.mark.parametrize("options", [{}, {"string_type": "view"}, {"string_type": "large"}, {"dictionary_columns": ["x"]}])  # fmt: skip
def test_codes_answer_like_values(
    monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, columns: Any, options: dict[str, Any]
) -> None:
    if options.get("dictionary_columns") and not (pa.types.is_string(kind) or kind == pa.binary()):
        pytest.skip("dictionaries are of strings and binary")
    table = pa.table({"x": column(kind, 1), "n": np.arange(N), "y": column(kind, 2)})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=1_100, max_rows_per_page=200, write_page_index=True)
    low, high = LITERALS[kind]
    x, y = ps.col("x"), ps.col("y")
    for condition in (
        x == low,
        ~(x == low),
        x != high,
        x < high,
        x.between(low, high),
        ~x.isin([low, high]),
        x.isin([low, None]),
        x.is_null(),
        x.is_not_null() & (y >= low),
        (x == low) | (y == high) | x.is_null(),
        (x >= low) & (y != low) & (ps.col("n") > 50) & (x < high),
        x == (low[:0] if isinstance(low, (str, bytes)) and kind != pa.binary(3) else low),
    ):
        answers = []
        for least in (0, 1 << 60):
            monkeypatch.setattr(execute, "CODED_ROWS", least)
            found = ps.read_table(sink.getvalue(), columns, condition, **options)
            found.validate(full=True)
            answers.append(found)
        coded, plain = answers
        assert coded.schema == plain.schema
        assert coded.to_pylist() == plain.to_pylist(), repr(condition)


def test_an_entry_that_is_there_twice_is_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "CODED_ROWS", 0)
    values = [b"a", b"b", b"d", b"c"]

    def twice(page: int, body: bytes) -> bytes:
        return body.replace(b"d", b"a") if page < 0 else body

    columns = [
        Column(
            "x",
            BYTE_ARRAY,
            values,
            logical=STRING,
            encodings="dictionary",
            edit_bytes=twice,
            statistics=False,
            column_index=False,
        ),
        Column("n", INT64, [0, 1, 2, 3]),
    ]
    data = write(columns)
    assert ps.read_table(data)["x"].to_pylist() == ["a", "b", "a", "c"]
    assert ps.read_table(data, ["n"], ps.col("x") == "a")["n"].to_pylist() == [0, 2]


def test_a_result_of_few_rows_holds_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": [f"{i % 5000:0100d}" for i in range(50_000)]})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    for options in ({}, {"dictionary_columns": ["x"]}):
        found = ps.read_table(sink.getvalue(), None, ps.col("x") == f"{7:0100d}", **options)
        assert found.num_rows == 10
        assert found.get_total_buffer_size() < 5_000


@pytest.mark.parametrize("n", [0, 1, 7, 8, 63, 64, 65, 1000])
@pytest.mark.parametrize("entries", [0, 1, 5, 300])
def test_the_kernel_looks_codes_up(n: int, entries: int) -> None:
    random = np.random.default_rng(n * 31 + entries)
    passes = random.integers(0, 2, entries).astype(np.uint8)
    codes = random.integers(-2, entries + 2, n).astype(np.int32)
    for validity in (None, random.random(n) < 0.7):
        inside = (codes >= 0) & (codes < entries)
        table = np.append(passes, 0)
        wanted = table[np.where(inside, codes, entries)].astype(bool)
        bits = None
        if validity is not None:
            wanted &= validity
            bits = np.packbits(validity, bitorder="little").tobytes()
        mask, count = rows.codes_mask(codes.tobytes(), bits, n, passes.tobytes() + b"\0")
        assert count == wanted.sum()
        assert mask == np.packbits(wanted, bitorder="little").tobytes()


def test_the_kernel_refuses_a_table_without_an_end() -> None:
    with pytest.raises(CoreError, match="a last byte of 0"):
        rows.codes_mask(bytes(4), None, 1, b"\1")
    with pytest.raises(CoreError, match="codes"):
        rows.codes_mask(bytes(3), None, 1, b"\0")


def test_pyarrow_agrees() -> None:
    table = pa.table({"x": column(pa.string(), 3), "n": np.arange(N)})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    for op in ("equal", "less", "greater_equal"):
        wanted = table.filter(getattr(pc, op)(table["x"], "w5"))
        condition = {"equal": ps.col("x") == "w5", "less": ps.col("x") < "w5"}.get(
            op, ps.col("x") >= "w5"
        )
        assert ps.read_table(sink.getvalue(), filter=condition).equals(wanted)
