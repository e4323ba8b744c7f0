"""Runs named commands one after the other, times them, and says at the end which failed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
SCRIPTS = Path(PYTHON).parent  # console scripts of the environment that runs this file


@dataclass(frozen=True, slots=True)
class Step:
    """One command, run in the root of the project."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False  # nothing after it makes sense when it fails


def script(name: str, *args: str) -> list[str]:
    """Command line of a console script of this environment."""
    return [str(SCRIPTS / name), *args]


def run(title: str, steps: Sequence[Step]) -> int:
    """Run every step, print a table of times and a closing line; 1 when a step failed."""
    path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
    lines, failed, began = [], 0, time.monotonic()
    for number, step in enumerate(steps):
        print(f"==> {title}: {step.name}", flush=True)
        start = time.monotonic()
        code = subprocess.run(
            step.command, cwd=ROOT, env=os.environ | {"PATH": path} | dict(step.env)
        ).returncode
        failed += code != 0
        outcome = "ok" if code == 0 else f"FAILED (exit {code})"
        lines.append(f"{time.monotonic() - start:8.1f} s  {step.name:16} {outcome}")
        print(f"<== {title}: {lines[-1].strip()}", flush=True)
        if code and step.needed:
            failed += len(steps) - number - 1
            lines += [f"{'-':>8}    {rest.name:16} not run" for rest in steps[number + 1 :]]
            break
    print(f"\n{title}:", *lines, sep="\n")
    print(f"{time.monotonic() - began:8.1f} s  in all")
    print(f"{len(steps) - failed} passed, {failed} failed", flush=True)
    return int(failed > 0)
