"""Scans of many small files: time and memory for each, beside a loop of `pyarrow.parquet.read_metadata`.

    python proofs/small_files.py [FILES] [FOLDER]

Thread time, all interleaved, the best of three; files of one row group and four columns. A plan counts what would be
read; a table is planned and read. "In doubt" are files that have a row which passes, as their statistics tell nobody.
"""

from __future__ import annotations

import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps

ROUNDS = 3


def make(folder: Path, n: int) -> list[str]:
    paths = [folder / f"{i:06}.parquet" for i in range(n)]
    for i, path in enumerate(paths):
        if path.exists():
            continue
        table = pa.table(
            {
                "id": pa.array(range(i * 10, i * 10 + 10), pa.int64()),
                "x": [i / 7] * 10,
                "s": [f"s{i}"] * 10,
                "k": pa.array([i % 5] * 10, pa.int32()),
            }
        )
        pq.write_table(table, path)
    return [str(path) for path in paths]


def timed(work: Callable[[], object]) -> float:
    ps.clear_cache()
    began = time.thread_time()
    work()
    return time.thread_time() - began


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    paths = make(folder, n)
    scan = ps.scan(str(folder), threads=1)
    works: dict[str, Callable[[], object]] = {
        "read_metadata": lambda: [pq.read_metadata(path) for path in paths],
        "files of the folder": lambda: ps.scan(str(folder)),
        "plan": scan.plan,
        "plan, filter of one file": scan.filter(ps.col("id") == 5).plan,
        "plan, filter of none": scan.filter(ps.col("id") == -5).plan,
        "plan, every file in doubt": scan.filter(ps.col("id").isin(range(3, n * 10, 10))).plan,
        "table, filter of one file": scan.filter(ps.col("id") == 5).to_table,
        "table, filter of 1 in 100": scan.filter(ps.col("id") < n // 10).to_table,
        "table, one row": scan.filter(ps.col("id") >= n * 5).limit(1).to_table,
    }
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, work in works.items():
            best[name] = min(best.get(name, 1e9), timed(work))
    for name, seconds in best.items():
        ratio = seconds / best["read_metadata"]
        print(f"{name:26} {seconds / n * 1e6:8.1f} us a file {ratio:6.2f}x")
    ps.clear_cache()
    tracemalloc.start()
    plan = scan.plan()
    ps.clear_cache()
    print(
        f"memory of a plan           {tracemalloc.get_traced_memory()[0] / len(plan.files):8.0f} bytes a file"
    )


if __name__ == "__main__":
    main()
