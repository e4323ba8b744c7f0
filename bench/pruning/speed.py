"""`python -m pageseek.bench.pruning.speed`: is pruning ever slower than reading it all?

The thirty questions in all layouts, and a file made to be hostile to late materialization, are answered by pageseek
with pruning, by pageseek without (`prune=False`), and by pyarrow's full decode with the filter after it: one thread
each, in turns, by the time of the processor.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench import generate
from pageseek.bench.pruning.engines import arrow_filter, pageseek_filter
from pageseek.bench.pruning.layouts import make
from pageseek.bench.pruning.queries import QUERIES, And, Query, Term, columns_of
from pageseek.bench.run import machine

import pageseek as ps

ROWS = 1_000_000
MOST = 1.1  # times the others
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
)


def hostile(folder: Path) -> Path:
    """A file whose columns know nothing of each other, with page index, zstd."""
    path = folder / f"hostile-{ROWS}.parquet"
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
        pa.table(columns), unfinished, row_group_size=ROWS // 4, compression="zstd",
        write_page_index=True, use_dictionary=["word"],
    )  # fmt: skip
    unfinished.replace(path)
    return path


def _ways(path: str, query: Query) -> dict[str, Callable[[], pa.Table]]:
    names = None if query.columns is None else list(query.columns)
    ours, theirs = pageseek_filter(query.filter), arrow_filter(query.filter)
    tops = {name.split(".")[0] for name in columns_of(query.filter)}
    needed = None if names is None else list(dict.fromkeys([*names, *sorted(tops)]))

    def full() -> pa.Table:
        table = pq.read_table(path, columns=needed, use_threads=False).filter(theirs)
        return table if names is None else table.select(names)

    return {
        "pruned": lambda: ps.read_table(path, names, ours),
        "unpruned": lambda: ps.read_table(path, names, ours, prune=False),
        "pyarrow": full,
    }


def measure(path: str, query: Query, budget: float) -> dict[str, float]:
    """Seconds of each way: the median of its rounds, which take turns; checks that all answer alike."""
    ways = _ways(path, query)
    answers = {name: run() for name, run in ways.items()}
    sizes = {name: table.num_rows for name, table in answers.items()}
    if len(set(sizes.values())) > 1:
        raise RuntimeError(f"{path}: {query.name}: rows differ: {sizes}")
    del answers
    taken: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    while names:
        for name in list(names):
            start = time.process_time()
            ways[name]()
            taken[name].append(time.process_time() - start)
            if len(taken[name]) >= 3 and (sum(taken[name]) > budget or len(taken[name]) >= 60):
                names.remove(name)  # it has used up its share
        names = names[1:] + names[:1]
    return {name: statistics.median(times) for name, times in taken.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write: 0, or 1 where pruning is slower than it may be."""
    parser = argparse.ArgumentParser(prog="pageseek.bench.pruning.speed", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    parser.add_argument(
        "--budget", type=float, default=1.0, help="seconds of each way for a question"
    )
    parser.add_argument(
        "--layouts", default="", metavar="A,B", help="only these; hostile is one of them"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table (Markdown)")
    options = parser.parse_args(arguments)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    files = make(options.folder)
    asked = [("hostile", hostile(options.folder), query) for query in HOSTILE]
    asked += [(name, path, query) for name, path in files.items() for query in QUERIES]
    chosen = options.layouts.split(",") if options.layouts else [*files, "hostile"]
    rows: list[tuple[str, str, dict[str, float]]] = []
    for layout, path, query in asked:
        if layout in chosen:
            rows.append((layout, query.name, measure(str(path), query, options.budget)))
            print(_row(*rows[-1]), flush=True)
    text = "\n".join(_lines(rows))
    if options.table is not None:
        options.table.write_text(text + "\n")
    slow = sum(bool(_slow(times)) for _, _, times in rows)
    print(f"{slow} of {len(rows)} slower than {MOST:g} times another way")
    return 1 if slow else 0


def _slow(times: dict[str, float]) -> str:
    ours = times["pruned"]
    return ", ".join(n for n in ("unpruned", "pyarrow") if ours > MOST * times[n])


def _row(layout: str, query: str, times: dict[str, float]) -> str:
    ours = times["pruned"]
    cells = [f"{ours * 1000:,.2f} ms"]
    cells += [f"{times[n] * 1000:,.2f} ms ({ours / times[n]:.2f})" for n in ("unpruned", "pyarrow")]
    return f"| {layout} | {query} | {' | '.join(cells)} | {_slow(times)} |"


def _lines(rows: Sequence[tuple[str, str, dict[str, float]]]) -> Iterator[str]:
    yield "# Is pruning ever slower?"
    yield ""
    yield (
        "Medians of processor time, metadata at hand; in brackets how long pageseek takes with pruning, in "
        f"units of that. The aim is at most {MOST:g} of either. Made by"
    )
    yield "`python -m pageseek.bench.pruning.speed --table docs/never-slower.md`."
    yield ""
    yield ", ".join(str(value) for value in machine().values()) + "."
    yield ""
    for way in ("unpruned", "pyarrow"):
        slow = sum(times["pruned"] > MOST * times[way] for _, _, times in rows)
        yield f"Slower than {MOST:g} times {way}: {slow} of {len(rows)}."
    yield ""
    yield "| layout | question | pageseek | without pruning | pyarrow: all, then filter | slower than |"
    yield "|---|---|---:|---:|---:|---|"
    for row in rows:
        yield _row(*row)


if __name__ == "__main__":
    raise SystemExit(main())
