"""`python -m pageseek.bench.rewriting FILE`: a file sorted by a column and rewritten, compared with DuckDB.

DuckDB does it by `COPY (SELECT * FROM file ORDER BY column) TO ...` with the same codec and row groups of as many rows. It writes no page index, and does
not compare what it wrote with what it read. Each run is a process of its own, with as many threads for both; the ways take turns. What is made is
brought to disk. Then values of the column are looked up in the files: that of DuckDB, those of pageseek, the one that was read.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pageseek.bench.run import machine

import pageseek as ps

WAYS = ("pageseek", "duckdb")
LOOKUPS = 200


def by_pageseek(path: Path, out: Path, key: str, threads: int, options: dict[str, Any]) -> None:
    ps.rewrite(path, out, sort_by=key, threads=threads, **options)


def by_duckdb(path: Path, out: Path, key: str, threads: int, options: dict[str, Any]) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    if "memory_limit" in options:
        connection.execute(f"SET memory_limit = '{options['memory_limit']} bytes'")
        connection.execute(f"SET temp_directory = '{out.parent / 'duckdb-temporary'}'")
    rows = options.get("row_group_rows", 300_000)
    how = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {rows}"
    connection.execute(f"COPY (SELECT * FROM '{path}' ORDER BY {key}) TO '{out}' ({how})")
    with open(out, "rb") as made:
        os.fsync(made.fileno())


def made_by(way: str, path: Path) -> Path:
    return path.with_name(f"sorted-by-{way}.parquet")


def child(
    way: str, path: Path, key: str, threads: int, options: dict[str, Any]
) -> dict[str, float]:
    """The work of the child process."""
    if way != "pageseek":
        __import__(way)
    else:
        _ = ps.rewrite  # imported
    out = made_by(way, path)
    out.unlink(missing_ok=True)
    began, cpu = time.perf_counter(), time.process_time()
    (by_pageseek if way == "pageseek" else by_duckdb)(path, out, key, threads, options)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    if pq.read_metadata(out).num_rows != pq.read_metadata(path).num_rows:
        raise RuntimeError(f"{way}: other rows")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "size": out.stat().st_size / 1e6}


def ask(way: str, path: Path, key: str, threads: int, options: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-m", "pageseek.bench.rewriting", str(path), "--key", key]
    command += ["--child", way, str(threads), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr.strip()[-1000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compared(path: Path, key: str, threads: int, options: dict[str, Any], rounds: int) -> list[str]:
    """Lines of the table for one number of threads."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for turn in range(rounds):
        for way in WAYS[:: 1 if turn % 2 else -1]:
            found[way].append(ask(way, path, key, threads, options))
    lines = []
    for way in WAYS:
        pairs = zip(found[way], found["duckdb"], strict=True)
        ratio = statistics.median(a["seconds"] / b["seconds"] for a, b in pairs)
        seconds, cpu, peak, size = (
            statistics.median(run[what] for run in found[way])
            for what in ("seconds", "cpu", "peak", "size")
        )
        lines.append(
            f"| {way} | {threads} | {seconds:.1f} | {ratio:.2f} | {cpu:.1f} | {peak:,.0f} MB | {size:,.0f} MB |"
        )
        print(lines[-1], flush=True)
    return lines


def lookups(path: Path, key: str) -> list[str]:
    """Lines of the table of lookups: medians of the same values in each file, in turns."""
    files = {"as it was": path} | {f"by {way}": made_by(way, path) for way in WAYS}
    values = random.Random(5).sample(
        pq.ParquetFile(path).read_row_group(0, columns=[key])[key].to_pylist(), LOOKUPS
    )
    scans = {name: ps.scan(file) for name, file in files.items()}
    seconds: dict[str, list[float]] = {name: [] for name in files}
    for value in values:
        rows = set()
        for name, scan in scans.items():
            began = time.perf_counter()
            rows.add(scan.filter(ps.col(key) == value).to_table().num_rows)
            seconds[name].append(time.perf_counter() - began)
        if len(rows) > 1:
            raise RuntimeError(f"{value}: other rows")
    return [
        f"| {name} | {files[name].stat().st_size / 1e6:,.0f} MB | {statistics.median(times) * 1e3:.2f} |"
        for name, times in seconds.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pageseek.bench.rewriting", description=__doc__)
    parser.add_argument(
        "file", type=Path, help="such as one of pageseek.bench.generate.events_file"
    )
    parser.add_argument("--key", default="k", help="the column to sort by")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2", metavar="N,N")
    parser.add_argument("--memory", type=int, metavar="MIB", help="the memory limit of both")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the tables (Markdown)")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        way, threads, told = options.child
        print(json.dumps(child(way, options.file, options.key, int(threads), json.loads(told))))
        return 0
    given: dict[str, Any] = {"row_group_rows": 300_000}
    if options.memory:
        given["memory_limit"] = options.memory << 20
    where, metadata = machine(), pq.read_metadata(options.file)
    text = [
        f"{dt.date.today()}, {where['system']}, {where['cpu']}, {where['cores']} cores; "
        + ", ".join(f"{way} {version(way)}" for way in WAYS) + ".",
        f"{metadata.num_rows:,} rows, {metadata.num_columns} columns, zstd; medians of {options.rounds} rounds.",
        "",
        "| engine | threads | seconds | relative to DuckDB | CPU seconds | peak memory | file |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for threads in map(int, options.threads.split(",")):
        text += compared(options.file, options.key, threads, given, options.rounds)
    text += [
        "",
        "| file | size | lookup, ms |",
        "|---|---:|---:|",
        *lookups(options.file, options.key),
    ]
    print("\n".join(text))
    if options.table is not None:
        options.table.write_text("\n".join(text) + "\n")
    for way in WAYS:
        made_by(way, options.file).unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
