"""The test command: runs the stages, and prints the time and result of each.

usage: check.py [STAGE ...]      (default: all)
"""

from __future__ import annotations

import os
import sys

from steps import PYTHON, ROOT, Step, announce, run, script

PYTEST = [PYTHON, "-m", "pytest", "-q"]
FAST = "not spark and not cluster and not slow"
CORES = min(os.cpu_count() or 1, 4)
WORKERS = ["-n", str(CORES)]
# tests that wait for servers, disks and processes leave a core idle
WAITING = ["-n", str(CORES + 1)]
SLOWEST = ["--durations=40", "--durations-min=2"]  # are named, so that the fast tier stays fast
# Stages with one process run beside others. Those that use all cores run alone, and so does the benchmark, which measures.
ROUNDS = [
    [["lint", "compile-tests", "spark-classes", "oracle"], ["build", "oldest", "oldest-spark"]],
    [["unit"]],
    [["ctest"]],
    [["fuzz"]],
    [["spark"]],
    [["bench"]],
]
FUZZED = os.environ.get("FUZZ_SECONDS", "30")


def stages() -> dict[str, Step]:
    """Stages by name, in their order."""
    # a file keeps its session
    spark = [
        *PYTEST,
        *WORKERS,
        *SLOWEST,
        "--dist",
        "loadfile",
        "-m",
        "(spark or cluster) and not slow",
        "tests/spark",
    ]
    # each worker begins with a part of the files, so that few of the files that tests share are made twice
    unit = [*PYTEST, *WAITING, *SLOWEST, "--dist", "worksteal", "-m", FAST]
    steps = [
        Step(
            "lint",
            [PYTHON, "tools/lint.py"],
            {"LINT_LANES": "1"},
            what="static checks, the site of docs",
            seconds=150,
        ),
        Step(
            "compile-tests",
            [PYTHON, "tools/compile_tests.py"],
            what="the tests, for all processes of `unit` and `spark`",
            seconds=35,
        ),
        Step(
            "spark-classes",
            [PYTHON, "tools/spark_classes.py"],
            what="classes of Spark, for all Java processes of `spark`",
            seconds=30,
        ),
        Step(
            "build", ["bash", "tools/wheel.sh"], what="sdist, wheel, audits, smoke test", seconds=65
        ),
        Step(
            "oldest",
            ["bash", "tools/oldest.sh"],
            what="the wheel with the oldest numpy and pyarrow",
            seconds=90,
        ),
        Step(
            "oldest-spark",
            [PYTHON, "proofs/spark_versions.py", "3.5", "--wheels", "build/wheel"],
            what="the wheel with the oldest release of Spark",
            seconds=60,
        ),
        Step("unit", unit, what="tests in Python", seconds=600),
        Step("ctest", ["bash", "tools/ctest.sh"], what="C tests under sanitizers", seconds=145),
        Step("fuzz", ["bash", "tools/fuzz.sh"], what=f"{FUZZED} s a fuzz target", seconds=200),
        Step(
            "oracle",
            [PYTHON, "proofs/oracle.py"],
            what="answers against two engines, on a sample",
            seconds=35,
        ),
        Step("spark", spark, what="a Spark session, and a small cluster", seconds=350),
        Step("bench", script("pageseek-bench", "--quick"), what="the benchmark, small", seconds=25),
    ]
    return {step.name: step for step in steps}


def main(names: list[str]) -> int:
    """Run the stages named, or all."""
    known = stages()
    if unknown := [name for name in names if name not in known]:
        print(f"no stage {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    os.chdir(ROOT)
    wanted = names or list(known)
    rounds = [
        [[known[name] for name in lane if name in wanted] for lane in lanes] for lanes in ROUNDS
    ]
    rounds = [lanes for lanes in ([lane for lane in some if lane] for some in rounds) if lanes]
    announce("test", rounds)
    return run("test", rounds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
