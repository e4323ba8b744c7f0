"""`python -m pageseek.bench.pushdown [FILE]`: a row by its key, asked of duckdb and polars, over pageseek and over their own readers.

The ways take turns in random order, each round with another key. The fixed cost of an engine is that of the same query over one row
in memory: as its own table or frame, and by the way that a source in Python takes, a dataset of pyarrow or a source plugin of polars.
The last column is the least of all rounds, which other work on the machine disturbs least. FILE is where the measured file is, or will
be written; without it, it is temporary.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pageseek.bench.run import machine

import pageseek as ps

GROUP = 1_000_000
COLUMNS = ("id", "customer", "price", "day", "text")


def write(path: Path, rows: int) -> None:
    """A file sorted by `id`, with a page index."""
    rng, file = np.random.default_rng(0), None
    for first in range(0, rows, GROUP):
        n = min(GROUP, rows - first)
        table = pa.table(
            {
                "id": np.arange(first, first + n) * 3,
                "customer": rng.integers(0, 1 << 40, n),
                "price": rng.random(n).round(2),
                "day": pa.array(rng.integers(15_000, 20_000, n), pa.int32()).cast(pa.date32()),
                "text": np.char.mod("%020d", rng.integers(0, 1 << 40, n)),
            }
        )
        if file is None:
            file = pq.ParquetWriter(
                path,
                table.schema,
                compression="zstd",
                write_page_index=True,
                data_page_size=1 << 17,
            )
        file.write_table(table, row_group_size=GROUP)
    if file is not None:
        file.close()


def ways_of(path: Path, one: pa.Table) -> dict[str, Callable[[int], Any]]:
    """Every way to the row of a key. `one`: one row in memory."""
    connection = duckdb.connect()
    connection.register("ours", ps.dataset(path))
    connection.register("one", one)
    connection.register("source", ds.dataset(one))
    sql = f"select {', '.join(COLUMNS)} from {{}} where id = {{}}"
    row = pl.DataFrame(one)

    def frames(columns: Any, predicate: Any, *_: Any) -> Iterator[pl.DataFrame]:
        yield row.filter(predicate).select(columns or row.columns)

    plugin = pl.io.plugins.register_io_source(frames, schema=row.schema, is_pure=True)

    def by_duckdb(source: str) -> Callable[[int], Any]:
        return lambda key: connection.sql(sql.format(source, key)).to_arrow_table()

    def by_polars(frame: Callable[[], Any]) -> Callable[[int], Any]:
        return lambda key: frame().filter(pl.col("id") == key).select(COLUMNS).collect().to_arrow()

    return {
        "pageseek.read_table": lambda key: ps.read_table(
            path, columns=list(COLUMNS), filter=ps.col("id") == key
        ),
        "duckdb over pageseek.dataset": by_duckdb("ours"),
        "duckdb's own reader": by_duckdb(f"'{path}'"),
        "duckdb over one row in memory": by_duckdb("one"),
        "duckdb over a dataset of one row in memory": by_duckdb("source"),
        "pageseek.polars.scan": by_polars(lambda: ps.polars.scan(path)),
        "polars over pageseek.dataset": by_polars(
            lambda: pl.scan_pyarrow_dataset(ps.dataset(path))
        ),
        "polars.scan_parquet": by_polars(lambda: pl.scan_parquet(path)),
        "polars over one row in memory": by_polars(row.lazy),
        "polars over a plugin of one row in memory": by_polars(lambda: plugin),
    }


def measured(path: Path, rows: int, rounds: int) -> dict[str, tuple[float, float]]:
    """The median and the least of each way, in seconds. RuntimeError: one finds another row."""
    rng, one = random.Random(3), pq.ParquetFile(path).read_row_group(0).slice(0, 1)
    ways = ways_of(path, one)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 1):
        key = rng.randrange(rows) * 3
        for way in rng.sample(list(ways), len(ways)):
            began = time.perf_counter()
            found = ways[way](key)
            took = time.perf_counter() - began
            if "memory" not in way and found["id"].to_pylist() != [key]:
                raise RuntimeError(f"{way}: {found['id'].to_pylist()}, not {key}")
            if turn:  # the first warms up
                seconds[way].append(took)
    return {way: (statistics.median(found), min(found)) for way, found in seconds.items()}


def main() -> None:
    """Print a table of medians in ms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=51)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        path = given.file or Path(root) / "rows.parquet"
        if not path.exists():
            write(path, given.rows)
        rows = pq.read_metadata(path).num_rows
        found = measured(path, rows, given.rounds)
    print(f"{machine()}, duckdb {duckdb.__version__}, polars {pl.__version__}\n{rows:,} rows\n")
    print("| a row by its key | median, ms | least, ms |\n|---|---:|---:|")
    for way, (median, least) in found.items():
        print(f"| {way} | {median * 1e3:.2f} | {least * 1e3:.2f} |")


if __name__ == "__main__":
    main()
