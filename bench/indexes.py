"""`python -m pageseek.bench.indexes`: filters with lookup and bitmap indexes, and without.

The file of the benchmark of engines: 10 million rows, 8 columns, pages of 20,000 rows, ZSTD, Bloom filters of `uid`. Both files have the same pages.
The ways take turns in random order with the same values; rows are compared.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pageseek.bench.run import machine

import pageseek as ps

INDEXES = {"lookup": ["uid", "k"], "bitmap": ["category"]}


def cases(path: Path, rows: int) -> dict[str, Callable[[ps.Scan, random.Random], Any]]:
    """What is asked of a scan, by name."""
    uid = pq.ParquetFile(path).read_row_group(3, columns=["uid"])["uid"].slice(0, 2_000).to_pylist()
    category = pq.ParquetFile(path).read_row_group(0, columns=["category"])["category"].unique()
    names = category.to_pylist()

    def keys(rng: random.Random, n: int) -> list[int]:
        return [rng.randrange(1_000_000) for _ in range(n)]

    return {
        "string of 36 characters, there": lambda s, r: s.filter(ps.col("uid") == r.choice(uid)).to_table(),
        "the same, absent": lambda s, r: s.filter(ps.col("uid") == str(uuid.UUID(int=r.getrandbits(128)))).to_table(),
        "integer, about ten rows": lambda s, r: s.filter(ps.col("k") == keys(r, 1)[0]).to_table(),
        "the same, one column": lambda s, r: s.select("id").filter(ps.col("k") == keys(r, 1)[0]).to_table(),
        "IN of 20 integers, one column": lambda s, r: s.select("id").filter(ps.col("k").isin(keys(r, 20))).to_table(),
        "IN of 500 integers, one column": lambda s, r: s.select("id").filter(ps.col("k").isin(keys(r, 500))).to_table(),
        "category, count": lambda s, r: s.filter(ps.col("category") == r.choice(names)).count_rows(),
        "category, one column": lambda s, r: s.select("id").filter(ps.col("category") == r.choice(names)).to_table(),
        "category and integer": lambda s, r: s.filter((ps.col("category") == r.choice(names)) & (ps.col("k") == keys(r, 1)[0])).to_table(),
        "sorted key": lambda s, r: s.filter(ps.col("id") == r.randrange(rows)).to_table(),
    }  # fmt: skip


def measure(plain: Path, indexed: Path, threads: int | None, cold: bool, rounds: int) -> list[str]:
    """Rows of the table: a case, and the medians without and with indexes."""
    scans = {"without": ps.scan(plain, threads=threads), "with": ps.scan(indexed, threads=threads)}
    found = []
    for name, ask in cases(plain, pq.read_metadata(plain).num_rows).items():
        seconds: dict[str, list[float]] = {way: [] for way in scans}
        for turn in range(rounds + 1):
            answers = []
            for way in random.sample(list(scans), len(scans)):
                if cold:
                    ps.clear_cache()
                rng = random.Random(f"{name} {turn}")
                began = time.perf_counter()
                answers.append(ask(scans[way], rng))
                if turn:  # the first warms up
                    seconds[way].append(time.perf_counter() - began)
            if answers[0] != answers[1]:
                raise RuntimeError(f"{name}: other rows")
        without, with_ = (statistics.median(seconds[way]) * 1e3 for way in scans)
        found.append(f"| {name} | {without:.2f} | {with_:.2f} | {without / with_:.2f} |")
        print(found[-1], flush=True)
    return found


def main() -> None:
    """Print a table for each number of threads, warm and cold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a file of pageseek.bench.engines")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    indexed = given.file.with_suffix(".indexed.parquet")
    began = time.perf_counter()
    print(ps.index.attach(given.file, page_index=False, output=indexed, overwrite=True, **INDEXES))  # type: ignore[arg-type]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{time.perf_counter() - began:.1f} s, {peak:,.0f} MB at most\n{machine()}")
    rows = pq.read_metadata(given.file).num_rows
    for one in ps.index.list(indexed):
        if one.kind in INDEXES:
            print(f"{one.kind} of {one.column}: {one.bytes / rows:.2f} bytes a row")
    for threads in (1, None):
        for cold in (False, True):
            print(
                f"\nthreads {threads or 'all'}, {'cold' if cold else 'warm'}: ms without, with, times"
            )
            measure(given.file, indexed, threads, cold, given.rounds)
    indexed.unlink()


if __name__ == "__main__":
    main()
