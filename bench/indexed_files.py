"""`python -m pageseek.bench.indexed_files`: one value in one of a thousand files, which no order and no bounds tell apart.

pageseek and duckdb read files with Parquet's Bloom filters; pageseek also reads them with Bloom filters of whole files and with lookup indexes, and has
files with these alone, of which duckdb reads the column.
The ways take turns in random order with the same values, half of which are absent. Cold means that an engine knows nothing of the files (`clear_cache`, a new
connection), not that the system has to read the disk.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench.run import machine

import pageseek as ps

ROWS = 10_000
KINDS: dict[str, dict[str, Any]] = {
    "bloom": {"bloom": ["key"]},
    "bloom and file_bloom": {"bloom": ["key"], "file_bloom": {"key": 0.001}},
    "bloom and lookup": {"bloom": ["key"], "lookup": ["key"]},
    "file_bloom": {"file_bloom": {"key": 0.001}},
    "lookup": {"lookup": ["key"]},
}
Ask = Callable[[int, bool], int]  # of a key, and whether it is cold: how many rows have it


def write(folder: Path, files: int) -> list[np.ndarray]:
    """The files with each kind of index, and the keys of each file."""
    rng, keys = np.random.default_rng(7), []
    for i in range(files):
        key = rng.integers(0, 1 << 62, ROWS)
        keys.append(key)
        rows = pa.table(
            {
                "key": key,
                "time": np.arange(ROWS) + i * ROWS,
                "note": [f"note {n:020}" for n in rng.integers(0, 1 << 60, ROWS)],
            }
        )
        for kind in KINDS:
            (folder / kind).mkdir(exist_ok=True)
            pq.write_table(rows, folder / kind / f"{i:05}.parquet", compression="zstd")
    for kind, indexes in KINDS.items():
        print(ps.index.attach_all(folder / kind, **indexes), flush=True)
    return keys


def by_pageseek(folder: Path) -> Ask:
    """A scan of a folder."""
    scan = ps.scan(str(folder))

    def ask(key: int, cold: bool) -> int:
        if cold:
            ps.clear_cache()
            return len(ps.scan(str(folder), filter=ps.col("key") == key).to_table())
        return len(scan.filter(ps.col("key") == key).to_table())

    return ask


def by_duckdb(folder: Path) -> Ask:
    """A query of a folder; its connection keeps what it reads of footers."""
    import duckdb

    warm = duckdb.connect()
    warm.execute("SET parquet_metadata_cache = true")

    def ask(key: int, cold: bool) -> int:
        one = duckdb.connect() if cold else warm
        query = f"SELECT * FROM read_parquet('{folder}/*.parquet') WHERE key = {key}"
        return int(one.execute(query).to_arrow_table().num_rows)

    return ask


def main() -> None:
    """Print a table: medians in ms, and how many times as long duckdb takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        keys = write(folder, given.files)
        ways: dict[str, Ask] = {f"pageseek, {kind}": by_pageseek(folder / kind) for kind in KINDS}
        engines = {"duckdb, bloom": "bloom", "duckdb, no Bloom filter": "lookup"}
        ways |= {way: by_duckdb(folder / kind) for way, kind in engines.items()}
        print(machine())
        for cold in (True, False):
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(given.rounds + 1):
                there = int(keys[rng.randrange(len(keys))][rng.randrange(ROWS)])
                key = there if turn % 2 else there ^ 1
                counts = set()
                for way in rng.sample(list(ways), len(ways)):
                    began = time.perf_counter()
                    counts.add(ways[way](key, cold))
                    if turn:  # the first warms up
                        seconds[way].append(time.perf_counter() - began)
                if len(counts) > 1:
                    raise RuntimeError(f"key {key}: {counts} rows")
            print(f"\n| {'cold' if cold else 'warm'} | ms | {' | '.join(engines)} |")
            print(f"|---|---:|{'---:|' * len(engines)}")
            medians = {way: statistics.median(found) for way, found in seconds.items()}
            for way, middle in medians.items():
                ratios = " | ".join(f"{medians[engine] / middle:.1f}x" for engine in engines)
                print(f"| {way} | {middle * 1e3:.1f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
