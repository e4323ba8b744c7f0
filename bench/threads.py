"""`python -m pageseek.bench.threads`: how much sooner two threads are done than one.

Each case is read with one thread and with two, in turns; so it is by pyarrow. What the machine itself allows is measured
beside it: how long one thread takes while another process does the same on another core. `--pace` measures what a read leaves
of the interpreter's lock: how far a thread of Python counts beside a read with one thread, and how far beside one of another process.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset as ds
from pageseek.bench import generate
from pageseek.bench.run import machine

import pageseek as ps

ROUNDS = 7
PROCESSORS = "pyarrow 1: processors"


@dataclass(frozen=True)
class Case:
    """One read of a file, or of a folder: rows with `low` <= `column` < `high`, or all; as a table, or batch by batch."""

    name: str
    what: str
    path: Path
    column: str | None = None
    low: float = 0
    high: float = 0
    batches: bool = False


def cases(folder: Path) -> list[Case]:
    lookup, lineitem = generate.lookup_file(folder), generate.lineitem_file(folder, 1)
    groups, files = generate.lookup_file(folder, 5_000_000, 1_000), generate.small_files(folder)
    few = "price", 100.0, 101.0
    return [
        Case("selective", "eight columns of few scattered rows, by an unsorted column", lookup, *few),
        Case("range", "eight columns of a tenth of the rows, by the sorted key", lookup, "key", 30_000_000, 40_000_000),
        Case("all", "eight columns, every row, as a table", lookup),
        Case("all-batches", "the same, batch by batch", lookup, batches=True),
        Case("lineitem", "sixteen columns of TPC-H, every row, as a table", lineitem),
        Case("lineitem-batches", "the same, batch by batch", lineitem, batches=True),
        Case("groups", "eight columns of 5,000 row groups of 1,000 rows, as a table", groups),
        Case("groups-batches", "the same, batch by batch", groups, batches=True),
        Case("groups-selective", "the same, few scattered rows", groups, *few),
        Case("files", "eight columns of 10,000 files of 500 rows, as a table", files),
        Case("files-batches", "the same, batch by batch", files, batches=True),
        Case("files-selective", "the same, few scattered rows", files, *few),
    ]  # fmt: skip


def ours(case: Case, threads: int) -> int:
    """Rows that pageseek reads."""
    condition = None
    if case.column is not None:
        condition = (ps.col(case.column) >= case.low) & (ps.col(case.column) < case.high)
    scan = ps.scan(case.path, filter=condition, threads=threads)
    if case.batches:
        return sum(batch.num_rows for batch in scan.to_batches())
    return int(scan.to_table().num_rows)


def theirs(case: Case, threads: int) -> int:
    """Rows that pyarrow reads."""
    field = ds.field(case.column) if case.column is not None else None
    condition = None if field is None else (field >= case.low) & (field < case.high)
    source = ds.dataset(case.path)
    if case.batches:
        found = source.to_batches(filter=condition, use_threads=threads > 1)
        return sum(batch.num_rows for batch in found)
    return int(source.to_table(filter=condition, use_threads=threads > 1).num_rows)


def timed(work: Callable[[Case, int], int], case: Case, threads: int) -> float:
    start = time.perf_counter()
    work(case, threads)
    return time.perf_counter() - start


def neighbour(folder: Path, name: str) -> subprocess.Popen[str]:
    """Another process that repeats the read with one thread, until it is ended."""
    command = [
        sys.executable,
        "-m",
        "pageseek.bench.threads",
        "--folder",
        str(folder),
        "--child",
        name,
    ]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    made.stdout.readline()  # it has begun
    return made


def measure(folder: Path, case: Case, rounds: int) -> dict[str, list[float]]:
    """Seconds by kind of run, round by round; and the processors that pyarrow's one thread takes."""
    seconds: dict[str, list[float]] = {}
    if ours(case, 2) != theirs(case, 2):
        raise RuntimeError(f"{case.name}: pageseek and pyarrow read other rows")
    for _ in range(rounds):
        for name, work in (("pageseek", ours), ("pyarrow", theirs)):
            for threads in (1, 2):
                began = time.process_time()
                took = timed(work, case, threads)
                seconds.setdefault(f"{name} {threads}", []).append(took)
                if (name, threads) == ("pyarrow", 1):
                    busy = (time.process_time() - began) / took
                    seconds.setdefault(PROCESSORS, []).append(busy)
        other = neighbour(folder, case.name)
        try:
            seconds.setdefault("beside", []).append(timed(ours, case, 1))
        finally:
            other.kill()
            other.wait()
    return seconds


class Counter:
    """A thread that does nothing but count."""

    def __init__(self) -> None:
        self.counted, self._going = 0, True
        self._thread = threading.Thread(target=self._count)
        self._thread.start()

    def _count(self) -> None:
        while self._going:
            self.counted += 1

    def pace(self, work: Callable[[], object]) -> float:
        """Counts in a second, while `work` is repeated for a second at least."""
        first, start = self.counted, time.perf_counter()
        while time.perf_counter() - start < 1:
            work()
        return (self.counted - first) / (time.perf_counter() - start)

    def stop(self) -> None:
        self._going = False
        self._thread.join()


def paces(folder: Path, case: Case, rounds: int) -> dict[str, list[float]]:
    """Counts of a thread in a second: alone, beside the read of another process, and beside that of this one."""
    found: dict[str, list[float]] = {"alone": [], "other": [], "own": []}
    ours(case, 1)
    for _ in range(10):  # the interpreter makes a function quicker after some calls
        counter = Counter()
        time.sleep(0.02)
        counter.stop()
    for _ in range(rounds):
        counter = Counter()
        try:
            found["alone"].append(counter.pace(lambda: time.sleep(0.1)))
            found["own"].append(counter.pace(lambda: ours(case, 1)))
            process = neighbour(folder, case.name)
            try:
                found["other"].append(counter.pace(lambda: time.sleep(0.1)))
            finally:
                process.kill()
                process.wait()
        finally:
            counter.stop()
    return found


def pace_lines(found: dict[str, dict[str, list[float]]]) -> list[str]:
    table = [
        "| case | counts alone | beside a read of another process | beside a read of its own process |",
        "|---|---:|---:|---:|",
    ]
    for name, counts in found.items():
        alone = statistics.median(counts["alone"])
        shares = [
            statistics.median(a / b for a, b in zip(counts[k], counts["alone"], strict=True))
            for k in ("other", "own")
        ]
        table.append(
            f"| {name} | {alone / 1e6:,.1f} million a second | {shares[0]:.1%} | **{shares[1]:.1%}** |"
        )
    return table


def model(found: dict[str, tuple[Case, dict[str, list[float]]]]) -> list[str]:
    """What Amdahl's law makes of the ratios: time on n threads is 1 - p + p / n of that on one."""
    table = ["| case | share that is divided | 4 threads | 8 | 16 |", "|---|---:|---:|---:|---:|"]
    for name, (_, seconds) in found.items():
        ratio = statistics.median(
            a / b for a, b in zip(seconds["pageseek 1"], seconds["pageseek 2"], strict=True)
        )
        share = min(max(2 * (1 - 1 / ratio), 0.0), 1.0)
        cells = " | ".join(f"{1 / (1 - share + share / n):.1f}x" for n in (4, 8, 16))
        table.append(f"| {name} | {share:.0%} | {cells} |")
    return table


def lines(found: dict[str, tuple[Case, dict[str, list[float]]]]) -> list[str]:
    table = [
        "| case | what is read | one thread | two | ratio | limit of the machine | pyarrow: one | two | ratio |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]

    def ratio(one: Sequence[float], two: Sequence[float]) -> float:
        return statistics.median(a / b for a, b in zip(one, two, strict=True))

    for name, (case, seconds) in found.items():
        p1, p2, a1, a2 = (
            seconds[k] for k in ("pageseek 1", "pageseek 2", "pyarrow 1", "pyarrow 2")
        )
        ms = [f"{statistics.median(times) * 1e3:,.0f} ms" for times in (p1, p2, a1, a2)]
        allowed = 2 * ratio(p1, seconds["beside"])
        table.append(
            f"| {name} | {case.what} | {ms[0]} | {ms[1]} | **{ratio(p1, p2):.2f}x** | {allowed:.2f}x "
            f"| {ms[2]} | {ms[3]} | {ratio(a1, a2):.2f}x |"
        )
    return table


def _pace_section(beside: dict[str, dict[str, list[float]]]) -> list[str]:
    if not beside:
        return []
    return [
        "## Beside other threads of Python",
        "",
        "How far a thread counts in Python while another one reads with `threads=1`: what a read leaves of the interpreter's lock. The same",
        "read in another process shows what the machine takes. Made by the option `--pace`.",
        "",
        *pace_lines(beside),
        "",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pageseek.bench.threads", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("bench-data"), help="where the files are kept"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cases", default="", metavar="A,B")
    parser.add_argument(
        "--pace", action="store_true", help="measure what a read leaves of the interpreter's lock"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table (Markdown)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    known = {case.name: case for case in cases(options.folder)}
    if options.child:
        print("begun", flush=True)
        while True:
            ours(known[options.child], 1)
    names = options.cases.split(",") if options.cases else list(known)
    found = {}
    for name in names:
        found[name] = known[name], measure(options.folder, known[name], options.rounds)
        print(lines({name: found[name]})[-1], flush=True)
    beside = {}
    for name in names if options.pace else ():
        beside[name] = paces(options.folder, known[name], options.rounds)
        print(pace_lines({name: beside[name]})[-1], flush=True)
    processors = max(statistics.median(seconds[PROCESSORS]) for _, seconds in found.values())
    text = "\n".join(
        [
            "# Two threads compared with one",
            "",
            "Times and ratios are medians over rounds. The limit of the machine is twice the share of its speed that one thread",
            "keeps while another process does the same work. Results are freed before the next read. pyarrow's one thread is",
            f"`use_threads=False`, by which its threads of IO still unpack pages: it takes up to {processors:.1f} processors. Made by",
            "`python -m pageseek.bench.threads --table docs/threads.md`.",
            "",
            ", ".join(str(value) for value in machine().values()) + ".",
            "",
            *lines(found),
            "",
            "## More threads",
            "",
            "This machine has two cores. By Amdahl's law, the share of the work that is divided follows from the ratio of two threads to one, and",
            "from the share the ratio of more threads. This is a model: nothing of it was measured. It takes memory and storage to keep up, and",
            "the share to stay what it is. A share of 100 % means that the two threads lost nothing that could be measured.",
            "",
            *model(found),
            "",
            *_pace_section(beside),
        ]
    )
    if options.table is not None:
        options.table.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
