"""Runs named commands, some of them side by side, times them, and prints at the end which failed and why.

Logs are often cut to their end, so the last lines of each failed command are printed again after the table
of times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
SCRIPTS = Path(PYTHON).parent  # console scripts of the environment that runs this file
KEPT_LINES, KEPT_COLUMNS = 40, 240  # of a command that failed


@dataclass(frozen=True, slots=True)
class Step:
    """One command, run in the root of the project."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False  # nothing after it makes sense when it fails
    what: str = ""
    seconds: int = 0  # that it takes on two cores, about


Round = Sequence[Sequence[Step]]  # lanes that run side by side, each a sequence of steps
Show = Callable[[str], object]


def script(name: str, *args: str) -> list[str]:
    """Command line of a console script of this environment."""
    return [str(SCRIPTS / name), *args]


def echo(command: Sequence[str], env: Mapping[str, str], show: Show) -> tuple[int, list[str]]:
    """Run a command in the root, show its lines as they come; exit code and last lines."""
    last: deque[str] = deque(maxlen=KEPT_LINES)
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode(errors="replace")
            show(line)
            last.append(line.rstrip()[:KEPT_COLUMNS])
    return process.returncode, list(last)


def announce(title: str, rounds: Sequence[Round]) -> None:
    """Print the steps, and how long each takes. Those of a round that stand side by side take the time of the longest lane."""
    print(f"{title}, on two cores:")
    total = 0
    for lanes in rounds:
        total += max(sum(step.seconds for step in lane) for lane in lanes)
        for i, lane in enumerate(lanes):
            for step in lane:
                beside = " (beside the one above)" if i else ""
                print(f"{step.seconds:6} s  {step.name:8} {step.what}{beside}")
    print(f"{total:6} s  in all\n", flush=True)


class _Log:
    """What the steps of several lanes print: in one piece for each step, unless there is one lane."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lock = threading.Lock()
        self.times: list[str] = []
        self.reasons: list[str] = []
        self.passed = 0

    def run(self, step: Step, alone: bool) -> bool:
        """Run a step; whether the next one of its lane makes sense."""
        path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
        # the hundreds of processes of the tests share compiled modules, whatever the caller wants
        shared = {"PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}
        env = os.environ | shared | dict(step.env)
        held: list[str] = []
        self._say(f"==> {self.title}: {step.name}\n")
        start = time.monotonic()
        code, last = echo(step.command, env, self._say if alone else held.append)
        outcome = "ok" if code == 0 else f"FAILED (exit {code})"
        line = f"{time.monotonic() - start:8.1f} s  {step.name:16} {outcome}"
        with self.lock:
            self.times.append(line)
            self.passed += code == 0
            if code:
                self.reasons += [
                    f"\n{self.title}: {step.name} {outcome}, the end of what it printed:",
                    *(f"| {text}" for text in last),
                ]
            sys.stdout.write("".join([*held, f"<== {self.title}: {line.strip()}\n"]))
            sys.stdout.flush()
        return code == 0 or not step.needed

    def _say(self, text: str) -> None:
        with self.lock:
            sys.stdout.write(text)
            sys.stdout.flush()

    def lane(self, lane: Sequence[Step], alone: bool) -> bool:
        """Run steps one after the other; whether the next round makes sense."""
        for number, step in enumerate(lane):
            if not self.run(step, alone):
                self.skip(lane[number + 1 :])
                return False
        return True

    def skip(self, steps: Iterable[Step]) -> None:
        """Note that steps were not run."""
        with self.lock:
            self.times += [f"{'-':>8}    {step.name:16} not run" for step in steps]


def run(title: str, rounds: Sequence[Round]) -> int:
    """Run the rounds one after the other, the lanes of each side by side. Print a table of times, why steps failed, and a
    closing line.

    Returns 1 when a step failed.
    """
    log, began, goes_on = _Log(title), time.monotonic(), True
    for lanes in rounds:
        if not goes_on:
            log.skip(step for lane in lanes for step in lane)
            continue
        with ThreadPoolExecutor(len(lanes)) as pool:
            done = pool.map(partial(log.lane, alone=len(lanes) == 1), lanes)
            goes_on = all(list(done))
    failed = sum(len(lane) for lanes in rounds for lane in lanes) - log.passed
    print(f"\n{title}:", *log.times, sep="\n")
    print(f"{time.monotonic() - began:8.1f} s  in all")
    if log.reasons:
        print(*log.reasons, "", sep="\n")
    print(f"{log.passed} passed, {failed} failed", flush=True)
    return int(failed > 0)
