"""`python -m pageseek.bench.wide_footers`: what a file of thousands of columns costs to open, with and without an index of its footer.

The ways take turns in random order. Cold means that pageseek knows nothing of the file, not that the system has to read the disk.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench.run import machine

import pageseek as ps

COLUMN = "column_00777"


def write(path: Path, columns: int, row_groups: int) -> None:
    """A file of integers, with few rows."""
    rng, rows = np.random.default_rng(0), 50
    table = pa.table(
        {f"column_{i:05}": rng.integers(0, 1 << 40, rows * row_groups) for i in range(columns)}
    )
    pq.write_table(table, path, row_group_size=rows, compression="zstd", use_dictionary=False)


def main() -> None:
    """Print a table of medians in ms, and the bytes that were read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=5_000)
    parser.add_argument("--row-groups", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=21)
    given = parser.parse_args()
    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as root:
        plain, indexed = Path(root) / "plain.parquet", Path(root) / "indexed.parquet"
        write(plain, given.columns, given.row_groups)
        made = ps.index.attach(plain, page_index=False, footer=True, output=indexed)
        footer = int.from_bytes(plain.read_bytes()[-8:-4], "little")
        more = made.bytes_after - made.bytes_before
        print(f"{machine()}\na footer of {footer:,} bytes, an index of {more:,} bytes")

        def bounds(path: Path) -> Callable[[], object]:
            def ask() -> object:
                ps.clear_cache()
                with ps.open(path) as file:
                    return file.statistics(COLUMN)

            return ask

        def filtered(path: Path) -> Callable[[], object]:
            def ask() -> object:
                ps.clear_cache()
                return ps.read_table(path, columns=[COLUMN], filter=ps.col(COLUMN) == 5)

            return ask

        ways: dict[str, Callable[[], object]] = {
            "bounds of a column": bounds(plain),
            "the same, footer index": bounds(indexed),
            "filter on a column": filtered(plain),
            "the same, footer index ": filtered(indexed),
            "pyarrow.parquet.read_metadata": lambda: pq.read_metadata(plain),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(given.rounds + 1):
            for way in rng.sample(list(ways), len(ways)):
                began = time.perf_counter()
                ways[way]()
                if turn:  # the first warms up
                    seconds[way].append(time.perf_counter() - began)
        middle = {way: statistics.median(found) for way, found in seconds.items()}
        slow = middle["pyarrow.parquet.read_metadata"]
        print("\n| way | ms | pyarrow takes |\n|---|---:|---:|")
        for way, found in middle.items():
            print(f"| {way.strip()} | {found * 1e3:.1f} | {slow / found:.1f}x |")
        for path in (plain, indexed):
            ps.clear_cache()
            scan = ps.scan(path, columns=[COLUMN], filter=ps.col(COLUMN) == 5)
            read = scan.plan().report.bytes["metadata"]
            print(f"{path.stem}: {read:,} bytes read, {100 * read / footer:.1f} % of the footer")


if __name__ == "__main__":
    main()
