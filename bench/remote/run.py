"""`python -m pageseek.bench.remote.run`: time, requests and bytes of every engine over a network.

The objects are served over HTTP by a process of its own, with a wait before each answer and a bandwidth for each
connection. Every engine runs in a process of its own and takes its turn in each round; the log of the server tells
what it asked for. Needs a checkout: the server is that of the tests.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pageseek.bench import generate
from pageseek.bench.remote.cases import Case, make
from pageseek.bench.remote.engines import ENGINES
from pageseek.bench.run import machine

LATENCY, BANDWIDTH = 0.03, 50e6
TESTS = Path(__file__).resolve().parents[2] / "tests"


@dataclass
class Found:
    """One engine and case: seconds, requests, bytes and sequential requests, each with a value for every round."""

    seconds: list[float] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    waves: list[int] = field(default_factory=list)
    error: str = ""


class Child:
    """An engine in a process of its own: takes the name of a case a line, answers with seconds and rows."""

    def __init__(self, engine: str, endpoint: str, folder: Path) -> None:
        command = [sys.executable, "-m", "pageseek.bench.remote.run", "--child", engine,
                   "--endpoint", endpoint, "--folder", str(folder)]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, case: str) -> dict[str, Any]:
        """The answer to one question."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(case + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            return {"error": f"ended with {self._process.wait()}"}
        found: dict[str, Any] = json.loads(said)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


def child(engine: str, endpoint: str, folder: Path) -> None:
    """Answer questions until there are no more."""
    cases = {case.name: case for case in make(folder)}
    ask = ENGINES[engine]
    for line in sys.stdin:
        case = cases[line.strip()]
        start = time.perf_counter()
        try:
            rows = ask(endpoint, case).num_rows
        except Exception as error:  # noqa: BLE001 - whatever an engine raises, the others go on
            answer: dict[str, Any] = {"error": f"{type(error).__name__}: {error}"[:300]}
        else:
            answer = {"seconds": time.perf_counter() - start, "rows": rows}
        print(json.dumps(answer), flush=True)


def measure(
    server: Any, engines: Sequence[str], cases: Sequence[Case], folder: Path, rounds: int
) -> dict[tuple[str, str], Found]:
    """Run every case with every engine, interleaved; the first answer is not counted."""
    found = {(engine, case.name): Found() for case in cases for engine in engines}
    for engine in engines:
        with Child(engine, server.endpoint, folder) as running:
            for case in cases:
                answer = running.ask(case.name)
                if "error" in answer:
                    found[engine, case.name].error = answer["error"]
                elif answer["rows"] != case.due:
                    raise RuntimeError(
                        f"{engine}, {case.name}: {answer['rows']} rows of {case.due}"
                    )
    for _ in range(rounds):
        for case in cases:
            for engine in engines:
                one = found[engine, case.name]
                if one.error:
                    continue
                with Child(engine, server.endpoint, folder) as running:
                    running.ask(cases[-1].name if case is not cases[-1] else cases[0].name)
                    server.log.reset()
                    answer = running.ask(case.name)
                    if "error" in answer:
                        one.error = answer["error"]
                        continue
                    one.seconds.append(answer["seconds"])
                    one.requests.append(len(server.log))
                    one.bytes.append(server.log.bytes())
                    one.waves.append(server.log.waves())
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write: 0, or 1 if another engine is faster."""
    parser = argparse.ArgumentParser(prog="pageseek.bench.remote.run", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    parser.add_argument("--engines", default=",".join(ENGINES), metavar="A,B")
    parser.add_argument("--rounds", type=int, default=5, help="for each engine and case")
    parser.add_argument("--latency", type=float, default=LATENCY, help="seconds before each answer")
    parser.add_argument(
        "--bandwidth", type=float, default=BANDWIDTH, help="bytes a second of each connection"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table (Markdown)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(options.child, options.endpoint, options.folder)
        return 0
    if not (TESTS / "support" / "object_server").is_dir():
        parser.error("the object server is that of the tests: run this in a checkout")
    sys.path.insert(0, str(TESTS))
    serve = importlib.import_module("support.object_server.process").ServerProcess
    cases = make(options.folder)
    engines = options.engines.split(",")
    with serve(
        options.folder / "remote", latency=options.latency, bandwidth=options.bandwidth
    ) as server:
        found = measure(server, engines, cases, options.folder, options.rounds)
    text = "\n".join(_lines(options, engines, cases, found))
    print(text)
    if options.table is not None:
        options.table.write_text(text + "\n")
    return 1 if any(_fastest(case, engines, found) != "pageseek" for case in cases) else 0


def _fastest(case: Case, engines: Sequence[str], found: dict[tuple[str, str], Found]) -> str:
    times = {
        engine: statistics.median(found[engine, case.name].seconds)
        for engine in engines
        if not found[engine, case.name].error
    }
    return min(times, key=lambda engine: times[engine])


def _version(engine: str) -> str:
    try:
        return version(engine)
    except PackageNotFoundError:
        return "(not installed)"


def _lines(
    options: argparse.Namespace,
    engines: Sequence[str],
    cases: Sequence[Case],
    found: dict[tuple[str, str], Found],
) -> Iterator[str]:
    yield "# Over a network"
    yield ""
    yield (
        f"Objects on an HTTP server that waits {options.latency * 1000:g} ms before each answer and gives each "
        f"connection {options.bandwidth / 1e6:g} MB/s. Every query is cold: the engine has cached nothing about the objects. "
        "Medians over interleaved rounds, each engine in a process of its own. The server's log gives requests, bytes and "
        "the longest chain of requests of which each waited for the one before. Made by"
    )
    yield "`python -m pageseek.bench.remote.run --table docs/remote.md`."
    yield ""
    where = machine()
    yield (
        f"{dt.date.today()}, {where['system']}, {where['cpu']}, {where['cores']} cores, Python {where['python']}; "
        + ", ".join(f"{engine} {_version(engine)}" for engine in engines)
        + "."
    )
    yield ""
    yield "| case | |"
    yield "|---|---|"
    for case in cases:
        yield f"| {case.name} | {case.what} |"
    yield ""
    yield "| case | engine | time | relative to pageseek | requests | sequential requests | bytes |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for case in cases:
        ours = found.get(("pageseek", case.name), Found())
        for engine in engines:
            one = found[engine, case.name]
            if one.error:
                yield f"| {case.name} | {engine} | - | | | | |"
                continue
            seconds = statistics.median(one.seconds)
            ratio = f"{seconds / statistics.median(ours.seconds):.2f}" if ours.seconds else ""
            yield (
                f"| {case.name} | {engine} | {seconds * 1000:,.1f} ms | {ratio} | "
                f"{statistics.median_low(one.requests):,} | {statistics.median_low(one.waves)} | "
                f"{statistics.median_low(one.bytes) / 1e6:,.2f} MB |"
            )
    errors = {engine: one.error for (engine, _), one in found.items() if one.error}
    if errors:
        yield ""
    for engine, error in errors.items():
        # folders of this machine mean nothing elsewhere
        what = re.sub(r"/\S+/", "", error.splitlines()[0])
        yield f"- {engine}: no answer here ({what[:160]})"


if __name__ == "__main__":
    raise SystemExit(main())
