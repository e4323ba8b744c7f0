"""`python -m pageseek.bench.engines`: pageseek beside other Parquet engines, with one thread and with all cores.

Each engine answers in processes of its own, one for each number of threads, which are asked in turns: a disturbance of the machine
meets all of them. Answers are each engine's own kind of Arrow data. The number of rows is compared. Lookups and ranges have a
floor as well (floor.py), of one thread.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pageseek.bench import cases as benchmark
from pageseek.bench import generate
from pageseek.bench.floor import Floor

from pageseek.base.workers import cores

CHILD = Path(__file__).with_name("engines_child.py")
ENGINES = ("pageseek", "datafusion", "duckdb", "polars", "chdb", "pyarrow")
FLOOR = "floor", 1
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Case:
    """One question: the rows of a file, or of a folder of files, that pass all conditions. `engines`: who can be asked. `floor`: whether
    the least that a reader has to do is measured, too.
    """

    name: str
    path: Path
    columns: tuple[str, ...] | None = None
    filter: tuple[tuple[str, str, Any], ...] = ()
    string_type: str | None = None
    rows: tuple[int, ...] = ()  # these rows, by number, instead of a filter
    engines: tuple[str, ...] = ENGINES
    floor: bool = False


def events_cases(folder: Path, rows: int, seed: int) -> list[Case]:
    """Cases of a file of events, with a wide payload."""
    files = {
        codec: generate.events_file(folder, rows, codec, seed=seed) for codec in ("zstd", "snappy")
    }
    file = files["zstd"]
    random = np.random.default_rng(seed)
    ks = random.integers(0, generate.EVENT_KEYS, 100).tolist()
    uid = pq.ParquetFile(file).read_row_group(0, columns=["uid"])["uid"][777].as_py()
    some = tuple(sorted(random.choice(rows, 1000, replace=False).tolist()))
    key, stop = rows // 3, rows // 2
    some_rows = (("k", "in", ks),)
    small = generate.events_file(folder, rows * 3 // 10, "zstd", seed=seed)
    return [
        Case("point lookup, all columns", file, filter=(("id", "=", key),), floor=True),
        Case("range of 0.01 %, all columns", file, filter=(("id", ">=", stop), ("id", "<", stop + rows // 10_000)), floor=True),
        Case("range of 0.1 %, all columns", file, filter=(("id", ">=", stop), ("id", "<", stop + rows // 1_000)), floor=True),
        Case("range of 0.1 %, two columns", file, ("id", "value"), (("id", ">=", stop), ("id", "<", stop + rows // 1_000)), floor=True),
        Case("range of 10 %, all columns", file, filter=(("id", ">=", stop), ("id", "<", stop + rows // 10))),
        Case("scattered rows, wide, zstd", file, filter=some_rows),
        Case("scattered rows, wide, snappy", files["snappy"], filter=some_rows),
        Case("IN of 100 keys, two columns", file, ("k", "value"), some_rows),
        Case("unique string, Bloom", file, filter=(("uid", "=", uid),)),
        Case("take of 1,000 rows", file, rows=some, engines=("pageseek", "duckdb", "chdb")),
        Case("scan of two strings", file, ("category", "uid")),
        Case("full scan", small, engines=("pageseek", "pyarrow", "duckdb")),
        Case("full scan, views", small, string_type="view", engines=("pageseek", "polars")),
    ]  # fmt: skip


def lineitem_cases(folder: Path) -> list[Case]:
    """Cases of TPC-H, as tpchgen-cli writes it and in few row groups."""
    month = (
        ("l_shipdate", ">=", dt.date(1995, 3, 1)),
        ("l_shipdate", "<", dt.date(1995, 4, 1)),
    )
    decimals = ("l_quantity", "l_extendedprice", "l_discount")
    four = ("l_orderkey", "l_extendedprice", "l_shipdate", "l_shipmode")
    own, large = generate.lineitem_file(folder, 1), generate.lineitem_large_groups(folder, 1)
    return [
        Case("lineitem: month, 3 decimals", own, decimals, month),
        Case("lineitem: one partkey, all columns", own, filter=(("l_partkey", "=", 77_777),)),
        Case("lineitem: scan of 4 columns", own, four),
        Case("lineitem, 4 row groups: month, 3 decimals", large, decimals, month),
        Case("lineitem, 4 row groups: scan of 4 columns", large, four),
    ]


class Engine:
    """An engine in a process of its own."""

    def __init__(self, name: str, threads: int) -> None:
        command = [sys.executable, "-P", str(CHILD), name, str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, case: Case) -> dict[str, Any]:
        """Answer a case; RuntimeError if the process fails."""
        assert self._process.stdin is not None and self._process.stdout is not None
        question = {
            "path": str(case.path), "columns": case.columns, "filter": case.filter, "rows": case.rows,
            "string_type": case.string_type,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(question, default=lambda day: {"date": str(day)}))
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{case.name}: the process ended; its messages are above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)


def floor_of(case: Case) -> Floor:
    """Reads and unpacks the pages that hold the answer to a case, and no more."""
    made = benchmark.Case(case.name, case.name, "events", case.columns, (case.filter,))
    return Floor(case.path, made)


def race(case: Case, engines: dict[tuple[str, int], Engine], rounds: int) -> dict[Any, float]:
    """Median seconds by (engine, threads), and of the floor. The first round warms up, and shows the number of rows."""
    floor = floor_of(case) if case.floor else None
    seconds: dict[tuple[str, int], list[float]] = {}
    counts: dict[tuple[str, int], int] = {}
    unable: set[str] = set()
    for turn in range(rounds + 1):
        if floor is not None:
            started = time.perf_counter()
            floor.run(turn)
            if turn:
                seconds.setdefault(FLOOR, []).append(time.perf_counter() - started)
        for key, engine in engines.items():
            if key[0] in case.engines and key[0] not in unable:
                answer = engine.ask(case)
                if "error" in answer:
                    text = f"{case.name}, {key[0]}: {answer['error']}"
                    if key[0] == "pageseek":
                        raise RuntimeError(text)
                    unable.add(key[0])
                    print(text, file=sys.stderr)
                    continue
                counts[key] = answer["count"]
                if turn:
                    seconds.setdefault(key, []).append(answer["seconds"])
    if floor is not None:
        floor.close()
    if len(set(counts.values())) != 1:
        raise RuntimeError(f"{case.name}: the engines give other numbers of rows: {counts}")
    return {key: statistics.median(found) for key, found in seconds.items()}


def line(case: Case, found: dict[Any, float], threads: Sequence[int]) -> str:
    """One line of the table: milliseconds with one thread -> with all, and how much quicker than the best other engine."""
    cells = []
    for name in ENGINES:
        if (name, threads[0]) in found:
            cells.append(" -> ".join(f"{found[name, n] * 1e3:,.1f}" for n in threads))
        else:
            cells.append("")
    cells.append(f"{found[FLOOR] * 1e3:,.1f}" if FLOOR in found else "")
    ratios = []
    for n in threads:
        others = [found[name, n] for name in ENGINES[1:] if (name, n) in found]
        ratios.append(f"{min(others) / found['pageseek', n]:.2f}" if others else "")
    scales = found["pageseek", threads[0]] / found["pageseek", threads[-1]]
    return f"| {case.name} | {' | '.join(cells)} | {' -> '.join(ratios)} | {scales:.2f} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=generate.default_folder())
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--files", action="append", choices=["events", "lineitem"], help="default: both"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=0, help="of the files")
    parser.add_argument("--engine", action="append", choices=ENGINES[1:], help="default: all")
    parser.add_argument(
        "--case", action="append", metavar="TEXT", help="cases with this in their name"
    )
    given = parser.parse_args(arguments)
    threads = sorted({1, cores()})
    names = ["pageseek", *(given.engine or ENGINES[1:])]
    present = []
    for name in names:
        try:
            present.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            print(f"{name} is not installed: pip install {name}", file=sys.stderr)
    names = [text.split()[0] for text in present]
    print(f"{', '.join(present)}; ms with {' -> '.join(map(str, threads))} threads\n")
    print(f"| case | {' | '.join(ENGINES)} | floor | quicker than the best | scales |")
    print("|---" * (len(ENGINES) + 4) + "|")
    cases = []
    if not given.files or "events" in given.files:
        cases += events_cases(given.folder, given.rows, given.seed)
    if not given.files or "lineitem" in given.files:
        cases += lineitem_cases(given.folder)
    with ExitStack() as stack:
        engines = {}
        for name in names:
            for n in threads:
                engines[name, n] = Engine(name, n)
                stack.callback(engines[name, n].close)
        for case in cases:
            if not set(names[1:]) & set(case.engines):
                continue  # nobody to compare with
            if not given.case or any(text in case.name for text in given.case):
                print(line(case, race(case, engines, given.rounds), threads), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
