"""Programs of users that mypy --strict finds no fault with. They are checked by tools/lint.py, and never run."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import pageseek as ps


def tables(filesystem: Any) -> pa.Table:
    """Each option with a value that it takes."""
    ps.read_table("a.parquet", ["a"], ps.col("a") > 5, 10)
    ps.read_table(Path("a.parquet"), columns=["a"], filters=[("a", ">", 5)])
    ps.read_table(io.BytesIO(), filter="a = ? and b in ?", params=[5, [1, 2]])
    ps.read_table("a", filter="a = :k", params={"k": uuid.uuid4(), "d": Decimal(1)})
    ps.read_table("a", filesystem=filesystem, partitioning="hive", string_type="view")
    ps.read_table("a", use_threads=False, memory_map=True, pre_buffer=False)
    ps.read_table("a", read_dictionary=["a"], coerce_int96_timestamp_unit="us")
    ps.read_table("a", prune=["statistics"], progress=lambda progress: None, threads=2)
    return ps.read_table("a", partitioning={"k": pa.int8()}, timestamp=dt.datetime(2024, 1, 1))


def scans() -> ps.Report:
    """Scans and what is made of them."""
    scan: ps.Scan = ps.scan("a", nan="spark", int96_unit="us", out_of_range="keep", limit=5)
    scan = scan.select("a", ["b"]).filter("a > ?", [5]).filter(ps.col("a").ilike("x%")).limit(3)
    query: ps.PreparedQuery = scan.prepare("a = :k")
    query(5)
    for rows in scan.to_batches(1_000):
        assert rows.num_rows <= 1_000
    scan.to_reader(batch_size=1_000)
    for batch in scan:
        assert batch.num_rows
    file: ps.ParquetFile = ps.open("a", memory_map=True)
    assert file.num_rows
    condition: ps.Expression = (ps.col("a") == 5) & ~ps.col("b").is_null()
    return scan.filter(condition).explain(analyze=True)


async def of_asyncio() -> int:
    """The functions of `ps.aio` have the options of `scan`."""
    scan = await ps.aio.scan("a", columns=["a"], nan="spark", timeout=5, use_threads=False)
    async for batch in ps.aio.to_batches("a", filter="a = ?", params=[5], batch_size=10):
        assert batch.num_rows
    table = await ps.aio.read_table(scan, ["a"], params={"k": 1})
    return int(table.num_rows) + await ps.aio.count_rows(
        "a", "a > 5", prune=["statistics"], limit=3
    )


def as_pyarrow_spells_it() -> None:
    """Options of pyarrow and pandas at their defaults."""
    ps.read_table(
        "a", engine="pyarrow", use_pandas_metadata=False, binary_type=None, list_type=None,
        decryption_properties=None, thrift_string_size_limit=None, thrift_container_size_limit=None,
        arrow_extensions_enabled=True, page_checksum_verification=False, ignore_prefixes=None,
    )  # fmt: skip
