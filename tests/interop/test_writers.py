"""Files of other writers: every row equals pyarrow's, with filters and without."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps

N = 5000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Ordered, random, repetitive, null, and long values of the usual types."""
    dice = random.Random(11)

    def some(make: Callable[[int], Any]) -> list[Any]:
        return [None if dice.random() < 0.1 else make(i) for i in range(N)]

    start = dt.datetime(2024, 1, 1)
    return pa.table(
        {
            "id": pa.array(range(N), pa.int64()),
            "small": pa.array(some(lambda _: dice.randrange(-100, 100)), pa.int32()),
            "real": pa.array(some(lambda i: i * 0.5 - 700), pa.float64()),
            "single": pa.array(some(lambda _: dice.random()), pa.float32()),
            "flag": pa.array(some(lambda i: i % 7 == 0), pa.bool_()),
            "text": pa.array(some(lambda i: f"name {i // 10} é" * (i % 3)), pa.string()),
            "word": pa.array(some(lambda _: dice.choice(["red", "green", "blue"])), pa.string()),
            "blob": pa.array(some(lambda i: bytes([i % 256] * (i % 5))), pa.binary()),
            "day": pa.array(
                some(lambda i: dt.date(2020, 1, 1) + dt.timedelta(i // 3)), pa.date32()
            ),
            "at": pa.array(some(lambda i: start + dt.timedelta(seconds=i)), pa.timestamp("us")),
            "price": pa.array(some(lambda i: Decimal(i * 7 % 1000) / 100), pa.decimal128(9, 2)),
        }
    )


FILTERS: list[tuple[ps.Expression, pc.Expression]] = [
    (ps.col("id") == 1234, pc.field("id") == 1234),
    (ps.col("id").between(1990, 2010), (pc.field("id") >= 1990) & (pc.field("id") <= 2010)),
    (
        (ps.col("small") < -95) | (ps.col("id") > 4990),
        (pc.field("small") < -95) | (pc.field("id") > 4990),
    ),
    (
        ps.col("real").is_null() & ps.col("flag").isin([True]),
        pc.field("real").is_null() & pc.field("flag"),
    ),
    (
        ps.col("word").isin(["red", "none"]) & (ps.col("id") < 300),
        pc.field("word").isin(["red", "none"]) & (pc.field("id") < 300),
    ),
    (ps.col("text") >= "name 49", pc.field("text") >= "name 49"),
    (ps.col("day") == dt.date(2021, 1, 1), pc.field("day") == dt.date(2021, 1, 1)),
    (ps.col("at") < dt.datetime(2024, 1, 1, 0, 1), pc.field("at") < dt.datetime(2024, 1, 1, 0, 1)),
    (
        ps.col("price") == Decimal("3.14"),
        pc.field("price") == pa.scalar(Decimal("3.14"), pa.decimal128(9, 2)),
    ),
    (~(ps.col("single") > 0.01), ~(pc.field("single") > 0.01)),
    (ps.col("id") > 10**6, pc.field("id") > 10**6),
]


def check(path: Path) -> None:
    whole = pq.read_table(path)
    found = ps.read_table(path)
    assert found.schema.equals(whole.schema)
    assert found.equals(whole)
    for ours, theirs in FILTERS:
        wanted = whole.filter(theirs)
        assert ps.read_table(path, filter=ours).equals(wanted), f"{ours!r}"
        assert ps.read_table(path, columns=["word", "id"], filter=ours).equals(
            wanted.select(["word", "id"])
        ), f"{ours!r}"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_page_index": True, "data_page_size": 512, "write_batch_size": 64},
        {
            "write_page_index": True,
            "data_page_version": "2.0",
            "data_page_size": 1024,
            "write_batch_size": 100,
        },
        {"compression": "zstd", "row_group_size": 700, "write_page_index": True},
        {
            "compression": "gzip",
            "use_dictionary": False,
            "data_page_size": 700,
            "write_batch_size": 50,
        },
        {"compression": "brotli", "row_group_size": 1000, "write_statistics": False},
        {
            "compression": "lz4",
            "write_page_index": True,
            "write_page_checksum": True,
            "data_page_size": 2000,
        },
        {
            "compression": "none",
            "dictionary_pagesize_limit": 200,
            "data_page_size": 400,
            "write_batch_size": 32,
            "write_page_index": True,
        },
        {"store_schema": False, "version": "1.0", "write_page_index": True},
        {
            "store_decimal_as_integer": True,
            "use_byte_stream_split": False,
            "write_page_index": True,
        },
        {"use_deprecated_int96_timestamps": True, "row_group_size": 900},
    ],
    ids=str,
)
def test_pyarrow(table: pa.Table, tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "pyarrow.parquet"
    pq.write_table(table, path, **options)
    check(path)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "zstd", "gzip", "lz4_raw", "brotli"])
def test_duckdb(table: pa.Table, tmp_path: Path, codec: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "duckdb.parquet"
    with duckdb.connect() as session:
        session.register("source", table)
        session.execute(
            f"copy (from source) to '{path}' (format parquet, codec '{codec}', row_group_size 2048)"
        )
    check(path)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd"},
        {"compression": "snappy", "row_group_size": 999},
        {"compression": "uncompressed", "data_page_size": 1024},
        {"compression": "lz4", "statistics": "full"},
        {"compression": "gzip", "statistics": False},
    ],
    ids=str,
)
def test_polars(table: pa.Table, tmp_path: Path, options: dict[str, Any]) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "polars.parquet"
    polars.DataFrame(table).write_parquet(path, **options)
    check(path)


def test_pandas(table: pa.Table, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    path = tmp_path / "pandas.parquet"
    table.to_pandas(date_as_object=True).to_parquet(path, index=False)
    whole = pq.read_table(path)
    assert ps.read_table(path).equals(whole)
    assert ps.read_table(path, filter=ps.col("id") == 77).equals(whole.slice(77, 1))
