"""Runs named commands in sequence, times them, and prints at the end which failed and why.

Logs are often cut to their end, so the last lines of each failed command are printed again after the table
of times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


def script(name: str, *args: str) -> list[str]:
    """Command line of a console script of this environment."""
    return [str(SCRIPTS / name), *args]


def echo(command: Sequence[str], env: Mapping[str, str]) -> tuple[int, list[str]]:
    """Run a command in the root, pass its output on as it comes; exit code and last lines."""
    last: deque[str] = deque(maxlen=KEPT_LINES)
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode(errors="replace")
            sys.stdout.write(line)
            sys.stdout.flush()
            last.append(line.rstrip()[:KEPT_COLUMNS])
    return process.returncode, list(last)


def announce(title: str, steps: Sequence[Step]) -> None:
    """Print the steps, and how long each takes."""
    print(f"{title}, on two cores:")
    for step in steps:
        print(f"{step.seconds:6} s  {step.name:8} {step.what}")
    print(f"{sum(step.seconds for step in steps):6} s  in all\n", flush=True)


def run(title: str, steps: Sequence[Step]) -> int:
    """Run every step, print a table of times, why steps failed, and a closing line.

    Returns 1 when a step failed.
    """
    path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
    base = os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1"}
    lines, reasons, failed, began = [], [], 0, time.monotonic()
    for number, step in enumerate(steps):
        print(f"==> {title}: {step.name}", flush=True)
        start = time.monotonic()
        code, last = echo(step.command, base | dict(step.env))
        outcome = "ok" if code == 0 else f"FAILED (exit {code})"
        lines.append(f"{time.monotonic() - start:8.1f} s  {step.name:16} {outcome}")
        print(f"<== {title}: {lines[-1].strip()}", flush=True)
        if code:
            failed += 1
            reasons += [f"\n{title}: {step.name} {outcome}, the end of what it printed:"]
            reasons += [f"| {line}" for line in last]
        if code and step.needed:
            failed += len(steps) - number - 1
            lines += [f"{'-':>8}    {rest.name:16} not run" for rest in steps[number + 1 :]]
            break
    print(f"\n{title}:", *lines, sep="\n")
    print(f"{time.monotonic() - began:8.1f} s  in all")
    if reasons:
        print(*reasons, "", sep="\n")
    print(f"{len(steps) - failed} passed, {failed} failed", flush=True)
    return int(failed > 0)
