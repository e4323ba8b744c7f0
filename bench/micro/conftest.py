"""What several of the benchmarks do, and the table of those that have a peer."""

from __future__ import annotations

import datetime as dt
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek._core import rows
from pageseek.base.report import Report
from pageseek.datasets.sources import open_metadata
from pageseek.io.fetch import Fetcher
from pageseek.scanning.one_file.group_reader import GroupReader
from pageseek.scanning.one_file.lane import Lane
from pageseek.scanning.one_file.row_group import read_payload
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.steps import ScanContext

Decode = Callable[[rows.RowRanges], list[pa.Array]]
Compare = Callable[[Callable[[], Any], Callable[[], Any], int], Any]
TURN = 4  # times that one of two goes before it is the turn of the other


@pytest.fixture(scope="session")
def decode_of() -> Callable[[bytes], Decode]:
    """A function that decodes selected rows of the first row group of a file with one column, by the page index."""

    def made(data: bytes) -> Decode:
        file = open_metadata(data)
        bound_request = BoundRequest.of(file, ps.scan(data)._request)
        for leaf in file.leaves:
            file.offset_index(0, leaf)

        def decode(selection: rows.RowRanges) -> list[pa.Array]:
            context, fetcher = ScanContext(Report()), Fetcher(file.store, Report())
            reader = GroupReader(file, 0, bound_request.leaves, context)
            steps = read_payload(file, 0, bound_request, context, selection, reader, filtered=False)
            return Lane(context, fetcher).run(steps)[0]

        return decode

    return made


@pytest.fixture
def compare(benchmark: Any) -> Compare:
    """Time two functions that do so many rows by turns, since machines slow down and recover: the second one is
    the peer.

    Run with `--benchmark-timer=time.thread_time`, they are compared by the time of the processor.
    """
    timer = benchmark._timer

    def run(ours: Callable[[], Any], theirs: Callable[[], Any], rows: int) -> Any:
        spent: list[float] = []
        rounds = 0

        def peer() -> None:
            nonlocal rounds
            for _ in range(0 if rounds % TURN else TURN):
                start = timer()
                theirs()
                spent.append(timer() - start)
            rounds += 1

        ours(), theirs()
        start = time.perf_counter()
        ours(), theirs()
        turns = int(min(max(0.6 / (time.perf_counter() - start) / TURN, 3), 20))
        found = benchmark.pedantic(ours, setup=peer, rounds=turns * TURN)
        benchmark.extra_info.update(peer=min(spent), rows=rows)
        return found

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--table", type=Path, help="write what has a peer to this file, as Markdown")


HEAD = """# Decoding speed

What `pytest bench/micro/test_encodings.py --benchmark-timer=time.thread_time --table docs/decoding.md` found on
{date}, with pageseek {ours}, pyarrow {theirs}, Python {python}, one thread.

Column chunks of a million rows in memory, uncompressed, in 50 pages of 20,000 rows; lists have 0 to 2 elements a row. All
rows of a chunk are selected, or 10 % or 1 % of them at random, or 1 % in one run. A cell gives the million rows of the chunk
that pageseek processes in a second, and the time of pyarrow for the same rows, divided by that of pageseek: its full decode, and its
filter if not all rows are selected. Both run interleaved, four times each, and the least time of each counts.

"""


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table: for each case and selection the speed, and the time of the peer divided by ours."""
    session = getattr(config, "_benchmarksession", None)
    table: dict[str, dict[str, str]] = {}
    for bench in session.benchmarks if session else ():
        if "peer" not in bench.extra_info or not bench.stats.data:
            continue
        case, selection = bench.group.split(" ", 1)
        ours, theirs = min(bench.stats.data), bench.extra_info["peer"]
        speed = bench.extra_info["rows"] / ours / 1e6
        table.setdefault(case, {})[selection] = f"{speed:,.0f} M/s, {theirs / ours:.2f}x"
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
        head = HEAD.format(
            date=dt.date.today(),
            ours=ps.__version__,
            theirs=pa.__version__,
            python=platform.python_version(),
        )
        target.write_text(head + text)
