"""How programs use scans and `pageseek.aio`, right and wrong, for `mypy --strict`: never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pageseek as ps


def scans(scan: ps.Scan) -> None:
    names: list[str] = scan.columns
    rows: list[dict[str, Any]] = scan.to_pylist()
    n: int = scan.count() + scan.count_rows() + scan.write_parquet("a.parquet", codec="snappy")
    frame = scan.to_pandas(split_blocks=True)
    scan.head(3), scan.to_polars(), scan.to_duckdb(), scan.to_duckdb(None)
    del names, rows, n, frame


def wrong(scan: ps.Scan) -> None:
    len(scan)  # type: ignore[arg-type]
    scan.head("3")  # type: ignore[arg-type]
    scan.columns()  # type: ignore[operator]
    scan.write_parquet("a.parquet", compression="zstd")  # type: ignore[call-arg]
    text: str = scan.count()  # type: ignore[assignment]
    del text


async def coroutines(scan: ps.Scan) -> None:
    made: ps.Scan = await ps.aio.scan("a/", columns=["id"])
    n: int = await ps.aio.count_rows(made, filter="id = 1")
    rows: AsyncIterator[Any] = ps.aio.to_batches(scan, limit=3)
    async for batch in ps.aio.to_batches("a.parquet", ["id"], ps.col("id") == 1):
        del batch
    del n, rows
    await ps.aio.read_table("a.parquet", filters=[("id", "=", 1)])


async def wrong_coroutines(scan: ps.Scan) -> None:
    n: int = ps.aio.count_rows(scan)  # type: ignore[assignment]
    for batch in ps.aio.to_batches(scan):  # type: ignore[attr-defined]
        del batch
    del n
    await ps.aio.read_table(scan, limit="3")  # type: ignore[arg-type]


def errors(error: ps.MissingPackageError) -> tuple[ImportError, ps.PageseekError]:
    return error, error
