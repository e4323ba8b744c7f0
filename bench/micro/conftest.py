"""What several of the benchmarks do, and the table of those that have a peer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pageseek._core import rows

import pageseek as ps
from pageseek.columns import output
from pageseek.execute import GroupScan
from pageseek.fetch import Fetcher
from pageseek.report import Report
from pageseek.types import Options

Decode = Callable[[rows.RowRanges], list[pa.Array]]
Compare = Callable[[Callable[[], Any], Callable[[], Any]], Any]


@pytest.fixture(scope="session")
def decode_of() -> Callable[[bytes], Decode]:
    """Of a file of one column, what decodes selected rows of its first row group, by the page index."""

    def made(data: bytes) -> Decode:
        file = ps.open(data)
        columns, _ = output(file, None, Options())
        for leaf in file.leaves:
            file.offset_index(0, leaf)

        def decode(selection: rows.RowRanges) -> list[pa.Array]:
            fetcher = Fetcher(file.store, Report())
            scan = GroupScan(file, 0, columns, fetcher, Options())
            return scan.run(selection, None, None)[1][0]

        return decode

    return made


@pytest.fixture
def compare(benchmark: Any) -> Compare:
    """Time two functions by turns, since machines slow down and recover: the second one is the peer.

    Run with `--benchmark-timer=time.thread_time`, they are compared by the time of the processor.
    """
    timer = benchmark._timer

    def run(ours: Callable[[], Any], theirs: Callable[[], Any]) -> Any:
        spent: list[float] = []

        def peer() -> None:
            start = timer()
            theirs()
            spent.append(timer() - start)

        ours(), theirs()
        start = time.perf_counter()
        ours(), theirs()
        rounds = int(min(max(0.5 / (time.perf_counter() - start), 7), 60))
        found = benchmark.pedantic(ours, setup=peer, rounds=rounds)
        benchmark.extra_info["peer"] = min(spent)
        return found

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--table", type=Path, help="write what has a peer to this file, as Markdown")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Of each case and selection, the least time and how many times as long the peer took."""
    session = getattr(config, "_benchmarksession", None)
    table: dict[str, dict[str, str]] = {}
    for bench in session.benchmarks if session else ():
        if "peer" not in bench.extra_info or not bench.stats.data:
            continue
        case, selection = bench.group.split(" ", 1)
        ours, theirs = min(bench.stats.data), bench.extra_info["peer"]
        table.setdefault(case, {})[selection] = f"{ours * 1e3:.2f} ms, {theirs / ours:.2f}x"
    if not table:
        return
    heads = list(dict.fromkeys(name for cells in table.values() for name in cells))
    lines = [["column", *heads]]
    lines += [[case, *(cells.get(name, "") for name in heads)] for case, cells in table.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    text = "".join("| " + " | ".join(map(str.ljust, line, widths)) + " |\n" for line in lines)
    terminalreporter.write_line("")
    terminalreporter.write(text)
    target = config.getoption("--table")
    if target:
        target.write_text(text)
