"""`python -m pageseek.bench.many`: a value in few of a thousand files, which have lists of their values attached.

Each engine answers in processes of its own, with all cores. First it answers from a few other files, so that its code is
loaded: `startup` measures that. Cold is the first answer from the thousand files, warm the median of those that follow, with whatever
the engine keeps. Processes take turns.
What pageseek reads is counted from outside, by strace.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench.run import machine

import pageseek as ps

FILES = 1000
ROWS = {"narrow": 5_000, "wide": 20_000}
CATEGORIES, IN_EACH = 200, 12
RARE, IN_FILES = "category-0993", 5
SINGLE, IN_FILE = "category-0997", 613
FEW = 50  # files that load the code of an engine
ROUNDS, WARM = 5, 7
CASES = {
    "single": (SINGLE, "a category of one of the files"),
    "rare": (RARE, f"a category of {IN_FILES} of the files"),
    "none": ("category-0500x", "one of none of them, between the least and the greatest"),
    "usual": ("category-0100", "one of some 80 of them"),
}


SHAPES = {
    "narrow": "5,000 rows and four columns",
    "wide": "20,000 rows and twelve columns",
}


def narrow(i: int, categories: Sequence[str], random: np.random.Generator) -> pa.Table:
    """A file of few columns: an id, the category, a number, a text."""
    n = ROWS["narrow"]
    return pa.table(
        {
            "id": np.arange(i * n, (i + 1) * n),
            "category": random.choice(categories, n),
            "value": random.normal(size=n),
            "note": np.char.add("note ", random.integers(0, 1 << 30, n).astype(str)),
        }
    )


def wide(i: int, categories: Sequence[str], random: np.random.Generator) -> pa.Table:
    """A file like one of a table of events."""
    n = ROWS["wide"]
    words = np.array([f"word{k}" for k in range(5_000)])
    at = np.arange(i * n, (i + 1) * n)
    return pa.table(
        {
            "id": at,
            "time": pa.array(1_700_000_000_000 + at * 37, pa.timestamp("ms")),
            "category": random.choice(categories, n),
            "user": random.integers(0, 100_000, n),
            "country": random.choice(words[:50], n),
            "device": random.choice(words[:8], n),
            "page": random.choice(words, n),
            "value": random.normal(size=n),
            "price": np.round(random.normal(size=n), 2),
            "quantity": random.integers(1, 20, n, dtype=np.int32),
            "score": random.normal(size=n).astype(np.float32),
            "note": np.char.add("note ", random.integers(0, 1 << 30, n).astype(str)),
        }
    )


def files(folder: Path, shape: str) -> Path:
    """The files of a shape, made if they are not there."""
    made = folder / f"many-{shape}"
    done, what = made / "done", repr((FILES, ROWS[shape], CATEGORIES, IN_EACH, CASES))
    if done.exists() and done.read_text() == what:
        return made
    made.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    names = np.array([f"category-{10 * i:04}" for i in range(CATEGORIES)])
    for i in range(FILES):
        mine = random.choice(names, IN_EACH, replace=False).tolist()
        if i % (FILES // IN_FILES) == 37:
            mine.append(RARE)
        if i == IN_FILE:
            mine.append(SINGLE)
        table = (narrow if shape == "narrow" else wide)(i, mine, random)
        path = made / f"part-{i:04}.parquet"
        pq.write_table(table, path, compression="zstd", write_page_index=True)
        ps.index.attach(path, page_index=False, distinct=["category"], in_place=True)
    done.write_text(what)
    return made


def few_files(folder: Path) -> Path:
    """Copies of the files from IN_FILE on, of which the first has the single category."""
    made = folder.with_name(f"{folder.name}-few")
    if not made.exists():
        unfinished = made.with_name(f"{made.name}.{os.getpid()}")
        unfinished.mkdir()
        for path in sorted(folder.glob("*.parquet"))[IN_FILE : IN_FILE + FEW]:
            shutil.copy(path, unfinished)
        unfinished.replace(made)
    return made


def by_pageseek(folder: str) -> Callable[[str], int]:
    base = ps.scan(folder)
    return lambda value: base.filter(ps.col("category") == value).to_table().num_rows


def by_pyarrow(folder: str) -> Callable[[str], int]:
    import pyarrow.dataset as ds

    given = ds.dataset(sorted(map(str, Path(folder).glob("*.parquet"))))
    return lambda value: given.to_table(filter=ds.field("category") == value).num_rows


def by_datafusion(folder: str) -> Callable[[str], int]:
    import datafusion

    names = ("pushdown_filters", "reorder_filters", "bloom_filter_on_read", "enable_page_index")
    wanted = {f"datafusion.execution.parquet.{name}": "true" for name in names}
    context = datafusion.SessionContext(datafusion.SessionConfig(wanted))
    context.register_parquet("t", folder)
    asked = "SELECT * FROM t WHERE category = '{}'"
    return lambda value: sum(b.num_rows for b in context.sql(asked.format(value)).collect())


def by_duckdb(folder: str) -> Callable[[str], int]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET parquet_metadata_cache = true")
    asked = f"SELECT * FROM '{folder}/*.parquet' WHERE category = '{{}}'"
    return lambda value: connection.sql(asked.format(value)).to_arrow_table().num_rows


def by_polars(folder: str) -> Callable[[str], int]:
    import polars

    def rows(value: str) -> int:
        frame = polars.scan_parquet(f"{folder}/*.parquet")
        return int(frame.filter(polars.col("category") == value).collect().height)

    return rows


ENGINES: dict[str, Callable[[str], Callable[[str], int]]] = {
    "pageseek": by_pageseek,
    "pyarrow": by_pyarrow,
    "datafusion": by_datafusion,
    "duckdb": by_duckdb,
    "polars": by_polars,
}


@dataclass(frozen=True)
class Timed:
    """Answers of one process: seconds of the first, and the median of the others; the rows of each."""

    cold: float
    warm: float
    rows: int


def child(engine: str, folder: str, few: str, value: str, warm: int) -> Timed:
    """The work of the child process."""
    ENGINES[engine](few)(value)
    start = time.perf_counter()
    answer = ENGINES[engine](folder)
    rows = answer(value)
    cold = time.perf_counter() - start
    times = []
    for _ in range(warm):
        start = time.perf_counter()
        if answer(value) != rows:
            raise RuntimeError(f"{engine}: another answer")
        times.append(time.perf_counter() - start)
    return Timed(cold, statistics.median(times or [cold]), rows)


def ask(engine: str, folder: Path, value: str, warm: int, before: Sequence[str] = ()) -> Timed:
    command = [
        *before, sys.executable, "-m", "pageseek.bench.many",
        "--child", engine, str(folder), str(few_files(folder)), value, str(warm),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{engine}: {done.stderr.strip()[-1000:]}")
    return Timed(**json.loads(done.stdout))


def bytes_read(folder: Path, value: str) -> dict[str, int]:
    """The bytes of each file that pageseek reads, cold, counted by the system."""
    with tempfile.TemporaryDirectory() as held:
        log = Path(held) / "calls"
        calls = "trace=pread64,preadv,preadv2,read,readv"
        # a log for each thread: in one for all, a call that another thread interrupts is in two pieces
        before = ["strace", "-ff", "--seccomp-bpf", "-y", "-s", "0", "-e", calls, "-o", str(log)]
        ask("pageseek", folder, value, 0, before)
        found: dict[str, int] = {}
        call = re.compile(rf"<{re.escape(str(folder))}/([^>]+)>.*= (\d+)$", re.M)
        for one in Path(held).iterdir():
            for name, size in call.findall(one.read_text()):
                found[name] = found.get(name, 0) + int(size)
    return found


def lines(seconds: dict[str, dict[str, list[Timed]]], read: dict[str, dict[str, int]]) -> list[str]:
    table = [
        "",
        "| case | engine | cold | relative to pageseek | warm | relative to pageseek |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for case, found in seconds.items():
        ours = found["pageseek"]
        for engine, times in found.items():
            row = [case, engine]
            for kind in ("cold", "warm"):
                mine = [getattr(one, kind) for one in times]
                ratio = statistics.median(
                    a / getattr(b, kind) for a, b in zip(mine, ours, strict=True)
                )
                row += [f"{statistics.median(mine) * 1e3:,.0f} ms", f"{ratio:.1f}"]
            table.append("| " + " | ".join(row) + " |")
    table += [
        "",
        "| case | rows | files that have them | bytes read of each of these | most bytes read of another |",
        "|---|---:|---:|---:|---:|",
    ]
    for case, sizes in read.items():
        rows = seconds[case]["pageseek"][0].rows
        many = [size for size in sizes.values() if size > 16 << 10]
        other = [size for size in sizes.values() if size <= 16 << 10]
        mean = f"{statistics.mean(many):,.0f}" if many else "-"
        table.append(f"| {case} | {rows:,} | {len(many):,} | {mean} | {max(other, default=0):,} |")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pageseek.bench.many", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("bench-data"), help="where the files are kept"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table (Markdown)")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        engine, folder, few, value, warm = options.child
        print(json.dumps(vars(child(engine, folder, few, value, int(warm)))))
        return 0
    engines = []
    for engine in ENGINES:
        try:
            version(engine)
            engines.append(engine)
        except ImportError:
            print(f"{engine} is not installed")
    page = head(engines, options.rounds)
    for shape, what in SHAPES.items():
        folder = files(options.folder, shape)
        for path in folder.iterdir():  # into the system's page cache
            path.read_bytes()
        table = lines(
            {case: timed(engines, folder, case, options.rounds) for case in CASES},
            {case: bytes_read(folder, value) for case, (value, _) in CASES.items()},
        )
        print("\n".join([shape, *table]))
        page += [f"## Files of {what}", *table, ""]
    if options.table:
        options.table.write_text("\n".join(page[:-1]) + "\n")
    return 0


def timed(engines: Sequence[str], folder: Path, case: str, rounds: int) -> dict[str, list[Timed]]:
    """How long each engine takes, round by round."""
    value, _ = CASES[case]
    found: dict[str, list[Timed]] = {engine: [] for engine in engines}
    for turn in range(rounds):
        for i in range(len(engines)):
            engine = engines[(turn + i) % len(engines)]
            found[engine].append(ask(engine, folder, value, WARM))
    if len({times[0].rows for times in found.values()}) > 1:
        raise RuntimeError(f"{case}: the engines read other rows")
    return found


def head(engines: Sequence[str], rounds: int) -> list[str]:
    where = machine()
    return [
        "# A value that few of a thousand files have",
        "",
        f"{FILES:,} files, zstd, with a page index. Each has {IN_EACH} of {CATEGORIES} categories, which statistics cannot tell apart, and an",
        "attached list of its categories (`ps.index.attach(path, distinct=[\"category\"])`). The query selects all columns where",
        "`category = ...`. Cold: the first query of these files in a process that has queried 50 others, so that its code is loaded; they are in the",
        "system's page cache. Warm: the median of the following queries, with all that the engine caches. All engines use all cores and run interleaved; medians of",
        f"{rounds} round{'s' * (rounds > 1)}. Made by `python -m pageseek.bench.many --table docs/many-files.md`.",
        "",
        f"{dt.date.today()}, {where['system']}, {where['cpu']}, {where['cores']} cores, Python {where['python']}; "
        + ", ".join(f"{engine} {version(engine)}" for engine in engines) + ".",
        "",
        "| case | |",
        "|---|---|",
        *(f"| {case} | {what} |" for case, (_, what) in CASES.items()),
        "",
    ]  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
