"""Collects all tests once, so that Python compiles them once, with their assertions rewritten.

Otherwise each process of the stages with tests compiles all of them for itself, because all of them begin at the same time. That takes
two thirds of their time before the first test. Prints how many tests there are, or why they cannot be collected.
"""

from __future__ import annotations

import subprocess
import sys

from steps import PYTHON, ROOT


def main() -> int:
    """Collect the tests; the exit code of pytest."""
    command = [PYTHON, "-m", "pytest", "--collect-only", "-qq"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
        return done.returncode
    # a line for each file: its name, a colon, its tests
    counts = [int(line.rpartition(": ")[2]) for line in done.stdout.splitlines() if ".py: " in line]
    print(f"{sum(counts)} tests in {len(counts)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
