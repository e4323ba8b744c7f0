"""Runs cases: checks that all peers give one answer, then times them in turn, round by round.

Rounds are interleaved, each starting with another peer, so that a disturbance of the machine meets all;
medians of the rounds are compared. A peer that has used up its share of the time sits the rest out.
"""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pageseek.bench.floor import Floor

if TYPE_CHECKING:
    from pageseek.bench.cases import Case
    from pageseek.bench.peers import Peer

OURS = "pageseek"


class WrongAnswer(AssertionError):
    """Two peers answer the same question differently."""


@dataclass(slots=True)
class Result:
    """Times of one case: seconds of each round by peer, and what was left out and why."""

    case: Case
    seconds: dict[str, list[float]] = field(default_factory=dict)
    rows: int = 0
    notes: list[str] = field(default_factory=list)

    def median(self, peer: str) -> float:
        """Median of a peer in seconds."""
        return statistics.median(self.seconds[peer])

    def ratio(self, peer: str) -> float:
        """The median of a peer divided by ours: above 1 it is slower than pageseek."""
        return self.median(peer) / self.median(OURS) if OURS in self.seconds else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        peers = {
            name: {
                "median": self.median(name),
                "least": min(times),
                "rounds": len(times),
                "seconds": [round(one, 7) for one in times],
                "ratio": self.ratio(name),
            }
            for name, times in self.seconds.items()
        }
        return {
            "case": self.case.name,
            "question": self.case.question,
            "rows": self.rows,
            "peers": peers,
            "notes": list(self.notes),
        }


def run_case(
    case: Case, path: Path, peers: dict[str, type[Peer]], floor: bool = True, budget: float = 60.0
) -> Result:
    """Check and time one case.

    Parameters
    ----------
    case : Case
    path : Path
        The file that it asks.
    peers : dict of str to Peer class
        Those installed.
    floor : bool
        Time the floor as well.
    budget : float
        Seconds that timing may take, divided evenly; each runs three rounds at least.

    Raises
    ------
    WrongAnswer
        Peers disagree; nothing is timed then.
    """
    result = Result(case)
    ready: dict[str, Peer] = {}
    for name, kind in peers.items():
        peer = kind(path)
        if peer.answers(case):
            ready[name] = peer
    result.rows = check_answers(case, ready, result.notes)
    runs: dict[str, Callable[[int], object]] = {}
    for name, peer in ready.items():
        runs[name] = lambda turn, peer=peer: peer.run(case, case.filters[turn % len(case.filters)])  # type: ignore[misc]
    lowest: Floor | None = None
    if floor and not case.footer:
        try:
            lowest = Floor(path, case)
            runs[lowest.name] = lowest.run
            result.notes.append(f"floor: {lowest.method}")
        except ValueError as error:
            result.notes.append(f"no floor: {error}")
    try:
        result.seconds = interleave(runs, case.rounds, budget)
    finally:
        if lowest is not None:
            lowest.close()
    return result


def interleave(
    runs: dict[str, Callable[[int], object]], rounds: int, budget: float
) -> dict[str, list[float]]:
    """Seconds of each function, called with the number of the round in turn with the others."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    share = budget / max(len(runs), 1)
    names = list(runs)
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            first = turn % max(len(names), 1)
            for name in names[first:] + names[:first]:
                times = seconds[name]
                if len(times) >= 3 and sum(times) > share:
                    continue
                start = time.perf_counter()
                answer = runs[name](turn)
                times.append(time.perf_counter() - start)
                del answer  # given back outside the timing
            gc.collect(0)
    finally:
        if collecting:
            gc.enable()
    return seconds


def check_answers(case: Case, peers: dict[str, Peer], notes: list[str]) -> int:
    """Compare the peers' answers to the first filters; the number of rows of all of them.

    A peer that fails at the question is taken out of `peers`, with a note; ours must answer.

    Raises
    ------
    WrongAnswer
        Names the case, the filter and the two peers.
    """
    rows = 0
    order = sorted(
        peers, key=lambda name: name != "pyarrow"
    )  # compared with pyarrow where it is there
    for terms in case.filters[:3]:
        first: Any = None
        first_peer = ""
        for name in [name for name in order if name in peers]:
            try:
                answer = peers[name].run(case, terms)
                made: Any = (
                    _bounds(answer) if case.footer else _plain(peers[name].to_arrow(answer), first)
                )
            except Exception as error:
                if name == OURS:
                    raise
                del peers[name]
                notes.append(f"{name} left out: {type(error).__name__}: {error}")
                continue
            if first is None:
                first, first_peer = made, name
                rows += made.num_rows if isinstance(made, pa.Table) else 0
            elif not _same(made, first):
                raise WrongAnswer(
                    f"case {case.name}, filter {terms}: {name} and {first_peer} differ "
                    f"({_size(made)} and {_size(first)})"
                )
    return rows


def _bounds(answer: Sequence[tuple[Any, Any]]) -> list[tuple[str, str]]:
    return [(str(low), str(high)) for low, high in answer]  # some peers give bounds as text


def _plain(table: pa.Table, like: pa.Table | None) -> pa.Table:
    """A table cast to the types of another: engines differ in string views, widths and time zones."""
    if like is None:
        fields = [pa.field(f.name, f.type) for f in table.schema]
        return table.cast(pa.schema(fields))
    if table.schema.names != like.schema.names:
        return table
    return table.cast(like.schema)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, pa.Table):
        return bool(one.equals(other))
    return bool(one == other)


def _size(answer: Any) -> str:
    return (
        f"{answer.num_rows:,} rows" if isinstance(answer, pa.Table) else f"{len(answer)} row groups"
    )


def machine() -> dict[str, Any]:
    """The machine of the measurement."""
    import os

    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def table(results: Sequence[Result], peers: Sequence[str]) -> str:
    """Milliseconds and ratios to pageseek as aligned text; a peer that cannot answer has a dash."""
    head = ["case", *peers]
    lines = []
    for result in results:
        cells = [result.case.name]
        for name in peers:
            if name not in result.seconds:
                cells.append("-")
            elif name == OURS:
                cells.append(_ms(result.median(name)))
            else:
                cells.append(f"{_ms(result.median(name))} ({result.ratio(name):.2f}x)")
        lines.append(cells)
    widths = [max(len(row[i]) for row in [head, *lines]) for i in range(len(head))]
    text = []
    for row in [head, *lines]:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        text.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(text)


def _ms(seconds: float) -> str:
    ms = seconds * 1_000
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.1f} ms" if ms >= 10 else f"{ms:.2f} ms"
