"""`python -m pageseek.bench.startup`: what importing costs, and the first lookup, each in a process of its own.

Processes take turns in random order. A lookup finds one row of ten million by the sorted key, all columns, as an Arrow table, or as rows of
Python. The time is that of the whole process, which includes the start and the end of Python itself.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq
from pageseek.bench import generate
from pageseek.bench.run import machine


def single_key(path: Path) -> int:
    """A key in the middle of the file that one row has."""
    file = pq.ParquetFile(path)
    keys = file.read_row_group(file.num_row_groups // 2, columns=["key"])["key"]
    inner = keys.slice(len(keys) // 2, 1_000).value_counts()[1:-1].to_pylist()
    return int(next(one["values"] for one in inner if one["counts"] == 1))


def programs(path: Path, key: int) -> dict[str, str]:
    """What each process runs, by name."""
    file = str(path)
    query = f"\"SELECT * FROM '{file}' WHERE key = {key}\""
    where = f"filter=ps.col('key') == {key}"
    return {
        "Python alone": "pass",
        "import pyarrow": "import pyarrow",
        "import pageseek": "import pageseek",
        "import pageseek, and what reads": "import pageseek; pageseek.read_table",
        "lookup, table: pageseek": f"import pageseek as ps; n = len(ps.read_table({file!r}, {where}))",
        "lookup, table: duckdb": f"import duckdb; n = duckdb.sql({query}).to_arrow_table().num_rows",
        "lookup, table: polars": f"import polars as pl; n = len(pl.scan_parquet({file!r}).filter(pl.col('key') == {key}).collect().to_arrow())",
        "lookup, table: pyarrow": f"import pyarrow.parquet as pq; n = len(pq.read_table({file!r}, filters=[('key', '=', {key})]))",
        "lookup, rows: duckdb": f"import duckdb; n = len(duckdb.sql({query}).fetchall())",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of medians and least times in ms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=generate.default_folder())
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=21)
    given = parser.parse_args(arguments)
    path = generate.lookup_file(given.folder, given.rows).resolve()
    ways = programs(path, single_key(path))
    # as installed packages are: compiled once
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(given.rounds + 1):
        for way in random.sample(list(ways), len(ways)):
            check = "" if "lookup" not in way else "; assert n == 1, n"
            began = time.perf_counter()
            command = [sys.executable, "-c", ways[way] + check]
            subprocess.run(command, check=True, env=surroundings)
            if turn:  # the first warms up
                seconds[way].append(time.perf_counter() - began)
    print(machine())
    print(", ".join(f"{name} {version(name)}" for name in ("pyarrow", "duckdb", "polars")))
    print("\n| process | ms, median | least |\n|---|---:|---:|")
    for way, found in seconds.items():
        print(f"| {way} | {statistics.median(found) * 1e3:.0f} | {min(found) * 1e3:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
