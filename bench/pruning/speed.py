"""`python -m pageseek.bench.pruning.speed`: is pruning ever slower than reading it all?

The thirty questions in all layouts, and a file made to be hostile to late materialization, are answered by pageseek
with pruning, by pageseek without (`prune=False`), and by pyarrow's full decode with the filter after it: one thread
each, in turns, by the time of the processor. So are columns of text read, in full.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench import generate
from pageseek.bench.pruning import text
from pageseek.bench.pruning.engines import arrow_filter, pageseek_filter
from pageseek.bench.pruning.layouts import make
from pageseek.bench.pruning.queries import QUERIES, And, Or, Query, Term, columns_of
from pageseek.bench.run import machine

import pageseek as ps

ROWS = 1_000_000
MOST = 1.1  # times the others
FEWEST, MOST_ROUNDS = 3, 99
NEAR = 0.9, 1.5  # where a ratio is, that may lie on either side of the limit
TEXT = "text"  # the layout of columns that are read in full
CLOSER = 5  # times as long such a one is measured
SEED = 7

_ALL: tuple[str, ...] = ("run", "a", "b", "c", "d", "e", "text", "word")
HOSTILE: tuple[Query, ...] = (
    Query("short-runs", Term("run", "=", 1), _ALL),
    Query("short-runs-one-column", Term("run", "=", 1), ("a",)),
    Query("filter-is-payload", Term("a", "<", 500_000), ("a",)),
    Query("filter-is-payload-text", Term("text", "<", "8"), ("text",)),
    Query("everything", Term("a", ">=", 0), _ALL),
    Query("everything-one-column", Term("a", ">=", 0), ("b",)),
    Query("nearly-everything", Term("a", "<", 990_000), _ALL),
    Query("tenth-scattered", Term("a", "<", 100_000), _ALL),
    Query("hundredth-scattered", Term("a", "<", 10_000), _ALL),
    Query("half-scattered-word", Term("word", "<", "w4"), _ALL),
    Query("many-cheap", And(tuple(Term(name, "<", 950_000) for name in "abcde")), _ALL),
    Query(
        "many-cheap-few-columns", And(tuple(Term(name, "<", 950_000) for name in "abcde")), ("run",)
    ),
    Query("is-not-null-like", Term("text", ">=", ""), _ALL),
    Query("fifty-ors", Or(tuple(Term("a", "=", 20_011 * i) for i in range(50))), _ALL),
    Query("ors-over-columns", Or(tuple(Term(name, "<", 30_000) for name in "abcde")), _ALL),
    Query("in-hundred-thousand", Term("a", "in", tuple(range(0, 1_000_000, 10))), _ALL),
    Query(
        "in-hundred-thousand-one-column", Term("a", "in", tuple(range(0, 1_000_000, 10))), ("a",)
    ),
)
# layouts of the hostile file: rows of a row group, and whether its metadata is read again each time
HOSTILE_LAYOUTS = {
    "hostile": (250_000, False),
    "hostile-many-groups": (5_000, False),
    "hostile-many-groups-cold": (5_000, True),
}


def hostile(folder: Path, group: int = 250_000) -> Path:
    """A file of independent columns, with a page index, zstd."""
    path = folder / f"hostile-{ROWS}-{group}.parquet"
    if path.exists():
        return path
    random = np.random.default_rng(SEED)
    lengths = random.integers(1, 9, ROWS)
    run = np.repeat(np.arange(ROWS) % 2, lengths)[:ROWS].astype(np.int32)
    columns: dict[str, Any] = {"run": run}
    for name in "abcde":
        columns[name] = random.integers(0, 1_000_000, ROWS)
    columns["text"] = np.char.mod("%08x", random.integers(0, 1 << 32, ROWS))
    columns["word"] = np.char.add("w", (random.integers(0, 8, ROWS)).astype(str))
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    pq.write_table(
        pa.table(columns), unfinished, row_group_size=group, compression="zstd",
        write_page_index=True, use_dictionary=["word"],
    )  # fmt: skip
    unfinished.replace(path)
    return path


def _ways(path: str, query: Query, cold: bool) -> dict[str, Callable[[], pa.Table]]:
    names = None if query.columns is None else list(query.columns)
    ours, theirs = pageseek_filter(query.filter), arrow_filter(query.filter)
    tops = {name.split(".")[0] for name in columns_of(query.filter)}
    needed = None if names is None else list(dict.fromkeys([*names, *sorted(tops)]))

    def full() -> pa.Table:
        table = pq.read_table(path, columns=needed, use_threads=False).filter(theirs)
        return table if names is None else table.select(names)

    def read(prune: bool) -> pa.Table:
        if cold:
            ps.clear_cache()
        return ps.read_table(path, names, ours, prune=prune, threads=1)

    return {"pruned": lambda: read(True), "unpruned": lambda: read(False), "pyarrow": full}


def _full_ways(path: str, column: str) -> dict[str, Callable[[], pa.Table]]:
    def read(prune: bool) -> pa.Table:
        return ps.read_table(path, [column], prune=prune, threads=1)

    return {
        "pruned": lambda: read(True),
        "unpruned": lambda: read(False),
        "pyarrow": lambda: pq.read_table(path, columns=[column], use_threads=False),
    }


@dataclass(frozen=True)
class Measured:
    """The seconds of each way, and the time with pruning divided by each other way: medians over the rounds."""

    seconds: dict[str, float]
    ratio: dict[str, float]
    rounds: int


def measure(path: str, query: Query | text.Full, budget: float, cold: bool = False) -> Measured:
    """All ways in turns, so that each round compares neighbours in time; checks that all give the same answer.

    A way that is far from the limit is done after a few rounds; one that is near, or beyond, is measured longer.
    """
    if isinstance(query, text.Full):
        ways = _full_ways(path, query.name)
    else:
        ways = _ways(path, query, cold)
    answers = {name: run() for name, run in ways.items()}
    sizes = {name: table.num_rows for name, table in answers.items()}
    if len(set(sizes.values())) > 1:
        raise RuntimeError(f"{path}: {query.name}: rows differ: {sizes}")
    del answers
    taken: dict[str, list[float]] = {name: [] for name in ways}
    ratios: dict[str, list[float]] = {name: [] for name in ways if name != "pruned"}
    others = list(ratios)
    left = dict.fromkeys(others, budget)
    while others:
        names = ["pruned", *others]
        turn = len(taken["pruned"]) % len(names)
        now = {}
        order = names[turn:] + names[:turn]
        if len(taken["pruned"]) // len(names) % 2:  # nobody always comes after the same one
            order.reverse()
        for name in order:
            start = time.process_time()
            ways[name]()
            now[name] = time.process_time() - start
            taken[name].append(now[name])
        for name in list(others):
            ratios[name].append(now["pruned"] / now[name])
            left[name] -= now["pruned"] + now[name]
            rounds, share = len(ratios[name]), 1.0
            if NEAR[0] < statistics.median(ratios[name]) < NEAR[1]:
                share = CLOSER
            spent = rounds >= FEWEST * share and left[name] < budget * (1 - share)
            if (spent and _is_settled(ratios[name])) or rounds >= MOST_ROUNDS:
                others.remove(name)
    seconds = {name: statistics.median(times) for name, times in taken.items()}
    ratio = {name: statistics.median(found) for name, found in ratios.items()}
    return Measured(seconds, ratio, len(taken["pruned"]))


def _is_settled(ratios: Sequence[float]) -> bool:
    """Whether more rounds would hardly change on which side of the limit the median lies: two standard deviations."""
    beyond, n = sum(ratio > MOST for ratio in ratios), len(ratios)
    return abs(2 * beyond - n) >= 2 * math.sqrt(n)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write: 0, or 1 if pruning is slower than allowed."""
    parser = argparse.ArgumentParser(prog="pageseek.bench.pruning.speed", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    parser.add_argument(
        "--budget", type=float, default=1.0, help="seconds of each way for a question"
    )
    parser.add_argument(
        "--layouts",
        default="",
        metavar="A,B",
        help=f"only these, or some of {', '.join(HOSTILE_LAYOUTS)}, {TEXT}",
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table (Markdown)")
    options = parser.parse_args(arguments)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    files = make(options.folder)
    asked: list[tuple[str, Path, Query | text.Full, bool]] = [
        (name, hostile(options.folder, group), query, cold)
        for name, (group, cold) in HOSTILE_LAYOUTS.items()
        for query in HOSTILE
    ]
    asked += [(name, path, query, False) for name, path in files.items() for query in QUERIES]
    chosen = options.layouts.split(",") if options.layouts else [*files, *HOSTILE_LAYOUTS, TEXT]
    if TEXT in chosen:
        path = text.write(options.folder)
        asked += [(TEXT, path, column, False) for column in text.COLUMNS]
    rows: list[tuple[str, str, Measured]] = []
    for layout, path, query, cold in asked:
        if layout in chosen:
            found = measure(str(path), query, options.budget, cold)
            rows.append((layout, query.name, found))
            print(_row(*rows[-1]), flush=True)
    if options.table is not None:
        options.table.write_text("\n".join(_lines(rows)) + "\n")
    slow = sum(bool(_slow(found)) for _, _, found in rows)
    print(f"{slow} of {len(rows)} slower than {MOST:g} times another way")
    return 1 if slow else 0


def _slow(found: Measured) -> str:
    return ", ".join(name for name, ratio in found.ratio.items() if ratio > MOST)


def _row(layout: str, query: str, found: Measured) -> str:
    cells = [f"{found.seconds['pruned'] * 1000:,.2f} ms"]
    cells += [
        f"{found.seconds[n] * 1000:,.2f} ms ({ratio:.2f})" for n, ratio in found.ratio.items()
    ]
    return f"| {layout} | {query} | {' | '.join(cells)} | {_slow(found)} |"


def _lines(rows: Sequence[tuple[str, str, Measured]]) -> Iterator[str]:
    yield "# Is pruning ever slower?"
    yield ""
    yield (
        "Medians of processor time. Metadata is cached, except in the cold layout. In brackets: the time of pageseek with pruning, divided by "
        "this time (median over interleaved rounds). A ratio between "
        f"{NEAR[0]:g} and {NEAR[1]:g} was measured with {CLOSER} times as many rounds, and with more until chance could not move it across the limit, "
        f"{MOST_ROUNDS} at most. The aim is at most {MOST:g} for both. Columns of text are read in full, without a filter: language, "
        "characters, encoding, per cent of nulls. Made by"
    )
    yield "`python -m pageseek.bench.pruning.speed --table docs/never-slower.md`."
    yield ""
    yield ", ".join(str(value) for value in machine().values()) + "."
    yield ""
    for way in ("unpruned", "pyarrow"):
        slow = sum(found.ratio[way] > MOST for _, _, found in rows)
        yield f"Slower than {MOST:g} times {way}: {slow} of {len(rows)}."
    yield ""
    yield "| layout | question | pageseek | without pruning | pyarrow: all, then filter | slower than |"
    yield "|---|---|---:|---:|---:|---|"
    for row in rows:
        yield _row(*row)


if __name__ == "__main__":
    raise SystemExit(main())
