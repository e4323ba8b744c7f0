"""`python -m pageseek.bench.attach`: time and memory of attaching indexes to ten million rows, compared with rewriting the file.

Both take all cores, each a process of its own, in turns; what is made is brought to disk, and read once to see that it
is whole. The other way to a file with indexes is to write it again: that is what DuckDB does here, without a page index,
which it does not write.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
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

import pageseek as ps

ROUNDS = 5


def plain(folder: Path) -> Path:
    """The file of the lookups, without a page index."""
    path = folder / "plain.parquet"
    if not path.exists():
        table = pq.read_table(generate.lookup_file(folder))
        unfinished = path.with_suffix(".unfinished")
        pq.write_table(table, unfinished, row_group_size=1_000_000, compression="zstd")
        unfinished.replace(path)
    return path


def by_pageseek(path: Path, out: Path) -> None:
    ps.index.attach(path, bloom=["key"], distinct=["city"], output=out)


def by_duckdb(path: Path, out: Path) -> None:
    import duckdb

    how = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 1000000"
    duckdb.connect().execute(f"COPY (SELECT * FROM '{path}') TO '{out}' ({how})")
    with open(out, "rb") as made:
        os.fsync(made.fileno())


WAYS = {"pageseek": by_pageseek, "duckdb": by_duckdb}


def child(way: str, path: Path) -> dict[str, float]:
    """The work of the child process."""
    import resource

    if way != "pageseek":
        __import__(way)
    out = path.with_name(f"made-by-{way}.parquet")
    out.unlink(missing_ok=True)
    start = time.perf_counter()
    WAYS[way](path, out)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if pq.read_metadata(out).num_rows != pq.read_metadata(path).num_rows:
        raise RuntimeError(f"{way}: other rows")
    out.unlink()
    return {"seconds": seconds, "peak": peak}


def ask(way: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "pageseek.bench.attach", "--child", way, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr.strip()[-1000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def lines(path: Path, found: dict[str, list[dict[str, float]]]) -> list[str]:
    where, metadata = machine(), pq.read_metadata(path)
    table = [
        "# Attaching indexes",
        "",
        f"{metadata.num_rows:,} rows, {metadata.num_columns} columns, {metadata.num_row_groups} row groups, zstd, {path.stat().st_size / 1e6:,.0f} MB,",
        "without a page index. pageseek attaches a page index of every column, Bloom filters of `key`, and the list of distinct values of `city`. DuckDB",
        f"reads the file and rewrites it. Both use all cores and sync to disk, each run in its own process; medians of {len(found['pageseek'])} interleaved rounds. Made by",
        "`python -m pageseek.bench.attach --table docs/attach.md`.",
        "",
        f"{dt.date.today()}, {where['system']}, {where['cpu']}, {where['cores']} cores, Python {where['python']}; "
        + ", ".join(f"{way} {version(way)}" for way in found) + ".",
        "",
        "| engine | seconds | relative to pageseek | peak memory |",
        "|---|---:|---:|---:|",
    ]  # fmt: skip
    for way, runs in found.items():
        pairs = zip(runs, found["pageseek"], strict=True)
        ratio = statistics.median(a["seconds"] / b["seconds"] for a, b in pairs)
        seconds = statistics.median(run["seconds"] for run in runs)
        peak = statistics.median(run["peak"] for run in runs)
        table.append(f"| {way} | {seconds:.2f} | {ratio:.2f} | {peak:,.0f} MB |")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pageseek.bench.attach", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table (Markdown)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(child(options.child[0], Path(options.child[1]))))
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    path = plain(options.folder)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for turn in range(options.rounds):
        for way in list(WAYS)[:: 1 if turn % 2 else -1]:
            found[way].append(ask(way, path))
    text = "\n".join(lines(path, found))
    print(text)
    if options.table is not None:
        options.table.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
