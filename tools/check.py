"""The test command: every stage, timed, with one closing line.

usage: check.py [STAGE ...]      (default: all, in this order)
"""

from __future__ import annotations

import os
import sys

from steps import PYTHON, ROOT, Step, run, script

PYTEST = [PYTHON, "-m", "pytest", "-q"]
FAST = "not spark and not cluster and not slow"
WORKERS = ["-n", str(min(os.cpu_count() or 1, 4))]


def stages() -> dict[str, Step]:
    """Stages by name, in their order."""
    spark = [*PYTEST, "-m", "(spark or cluster) and not slow", "tests/spark"]
    steps = [
        Step("lint", [PYTHON, "tools/lint.py"]),
        Step("build", ["bash", "tools/wheel.sh"]),
        Step("unit", [*PYTEST, *WORKERS, "-m", FAST]),
        Step("ctest", ["bash", "tools/ctest.sh"]),
        Step("fuzz", ["bash", "tools/fuzz.sh"]),
        Step("oracle", [PYTHON, "tools/oracle.py"]),
        Step("spark", spark),
        Step("bench", script("pageseek-bench", "--quick")),
    ]
    return {step.name: step for step in steps}


def main(names: list[str]) -> int:
    """Run the stages named, or all."""
    known = stages()
    if unknown := [name for name in names if name not in known]:
        print(f"no stage {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    os.chdir(ROOT)
    return run("test", [step for name, step in known.items() if not names or name in names])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
