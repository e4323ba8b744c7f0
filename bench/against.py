"""Compares two builds of pageseek on the same queries, interleaved: `pageseek-bench --against VENV`.

Each build answers in a process of its own, which is told one question at a time, so that a disturbance of the machine meets both.
The figure of a case is the median of the ratios of its rounds: below 1 this build is faster.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pageseek.bench.cases import Case

CHILD = Path(__file__).with_name("against_child.py")
ROUNDS = 5  # at least, of a case with a number of threads
SLOWER = 1.05  # from here on a ratio is marked


@dataclass(slots=True)
class Duel:
    """One case with a number of threads (0: one for each core): the seconds of each round, for both builds."""

    case: str
    threads: int
    here: list[float] = field(default_factory=list)
    there: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The time of this build, divided by that of the other."""
        pairs = zip(self.here, self.there, strict=True)
        return statistics.median(one / other for one, other in pairs)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "case": self.case,
            "threads": self.threads,
            "here": statistics.median(self.here),
            "there": statistics.median(self.there),
            "ratio": self.ratio,
            "rounds": len(self.here),
        }


class Build:
    """A process that answers with one build."""

    def __init__(self, python: str) -> None:
        self.python = python
        self._process = subprocess.Popen(
            [python, "-P", str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = str(self.ask(op="version")["version"])

    def ask(self, **question: Any) -> dict[str, Any]:
        """Run one query; RuntimeError with the output of the process if it fails."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question, default=str) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.python}: the process ended; its messages are above")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.python}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=30)


def python_of(environment: Path) -> str:
    """The interpreter of a virtual environment; a path to an interpreter is returned as it is."""
    if environment.is_file():
        return str(environment)
    for name in ("bin/python", "Scripts/python.exe"):
        if (environment / name).exists():
            return str(environment / name)
    raise FileNotFoundError(f"{environment} is neither a virtual environment nor a Python")


def duel(
    cases: Sequence[tuple[Case, Path]],
    environment: Path,
    budget: float,
    threads: Sequence[int] = (1, 0),
) -> list[Duel]:
    """Time this build and that of another environment.

    Parameters
    ----------
    cases : sequence of (Case, path of its file)
    environment : Path
        A virtual environment in which another build is installed, or its Python.
    budget : float
        Seconds for each case and number of threads; it has at least five rounds.
    threads : sequence of int
        0 is one thread for each core.

    Raises
    ------
    AssertionError
        The builds give different rows.
    """
    other = python_of(environment)
    made = []
    with ExitStack() as builds:
        here = builds.enter_context(closing(Build(sys.executable)))
        there = builds.enter_context(closing(Build(other)))
        for case, path in cases:
            for n in threads:
                if case.footer and n != 1:
                    continue
                made.append(_one(case, path, n, here, there, budget))
                print(f"  {case.name}, {n or 'all'} threads: {made[-1].ratio:.3f}x", flush=True)
    return made


def _one(case: Case, path: Path, threads: int, here: Build, there: Build, budget: float) -> Duel:
    question = {
        "op": "run", "path": str(path), "columns": case.columns, "cold": case.cold,
        "footer": case.footer, "threads": threads or None,
    }  # fmt: skip
    for terms in case.filters[:2]:
        answers = [
            build.ask(**question, terms=_terms(terms), check=True) for build in (here, there)
        ]
        if answers[0]["digest"] != answers[1]["digest"]:
            raise AssertionError(
                f"case {case.name}, filter {terms}: the builds give different rows"
            )
    found, turn = Duel(case.name, threads), 0
    while turn < ROUNDS or sum(found.here) + sum(found.there) < budget:
        asked = _terms(case.filters[turn % len(case.filters)])
        builds = [(here, found.here), (there, found.there)]
        for build, seconds in builds if turn % 2 else reversed(builds):
            seconds.append(build.ask(**question, terms=asked, check=False)["seconds"])
        turn += 1
    return found


def _terms(terms: Sequence[tuple[str, str, Any]]) -> list[list[Any]]:
    """A filter for JSON: dates are marked, all other values are numbers and texts."""
    marked = ({"date": v.isoformat()} if hasattr(v, "isoformat") else v for *_, v in terms)
    return [[column, op, value] for (column, op, _), value in zip(terms, marked, strict=True)]


def table(duels: Sequence[Duel]) -> str:
    """Milliseconds of both builds and the ratio as aligned text."""
    rows = [["case", "threads", "this build", "other build", "ratio", ""]]
    for one in duels:
        figures = one.to_dict()
        rows.append(
            [
                one.case,
                str(one.threads or "all"),
                f"{1e3 * figures['here']:,.2f} ms",
                f"{1e3 * figures['there']:,.2f} ms",
                f"{figures['ratio']:.3f}x",
                "slower" if figures["ratio"] > SLOWER else "",
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for name, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)
