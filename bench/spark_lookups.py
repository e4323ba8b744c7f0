"""`python -m pageseek.bench.spark_lookups`: `pageseek.spark.lookup` of many keys in no order, in files with `lookup` indexes and without.

Each key is a row of one of the files. Rounds alternate the two kinds of files. The table has medians in milliseconds of a fresh DataFrame,
and of the same one again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pageseek.bench import generate
from pageseek.bench.first_query import SETTINGS

import pageseek as ps

FILES = 500


def make(folder: Path, rows: int, keys: int) -> tuple[dict[str, Path], list[str]]:
    """The files without and with indexes, and some of their keys."""
    plain = generate.random_key_files(folder, FILES, rows)
    indexed = plain.with_name(f"{plain.name}-lookup")
    if not indexed.exists():
        unfinished = indexed.with_suffix(".tmp")
        shutil.copytree(plain, unfinished, dirs_exist_ok=True)
        print(ps.index.attach_all(unfinished, lookup=["key"]), flush=True)
        unfinished.rename(indexed)
    chosen: list[str] = []
    for i, path in enumerate(sorted(plain.iterdir())):
        at = np.random.default_rng(i).choice(rows, keys // FILES, replace=False)
        chosen += pq.read_table(path, columns=["key"])["key"].take(np.sort(at)).to_pylist()
    return {"without": plain, "with": indexed}, chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the files where they are missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--rows", type=int, default=500_000, help="of a file")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args(arguments)
    folders, chosen = make(given.folder.resolve(), given.rows, given.keys)
    from pyspark.sql import SparkSession

    from pageseek.spark import lookup

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master(given.master).config(map=dict(SETTINGS)).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    keys = spark.createDataFrame([(key,) for key in chosen], "key string").cache()
    keys.count()
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(given.rounds + 1):
        for kind in ("without", "with") if number % 2 else ("with", "without"):
            start = time.perf_counter()
            frame = lookup(spark, str(folders[kind]), keys, "key")
            found = frame.collect()
            middle = time.perf_counter()
            again = frame.collect()
            end = time.perf_counter()
            if not sorted(chosen) == sorted(r.key for r in found) == sorted(r.key for r in again):
                raise SystemExit(f"{kind} indexes: other rows than the keys have")
            if number:  # the first round warms up
                times.setdefault((kind, "fresh"), []).append(middle - start)
                times.setdefault((kind, "reused"), []).append(end - middle)
    spark.stop()
    print(
        f"| {len(chosen):,} keys, {FILES} files of {given.rows:,} rows | without | with | quicker |"
    )
    print("|---|---|---|---|")
    for how in ("fresh", "reused"):
        ms = {kind: statistics.median(times[kind, how]) * 1000 for kind in folders}
        print(
            f"| {how} | {ms['without']:,.0f} | {ms['with']:,.0f} | {ms['without'] / ms['with']:.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
