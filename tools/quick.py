"""The quick check of a developer, about a minute: static checks, and the tests of the changed folders.

usage: quick.py [FOLDER ...]      (default: the changes since the upstream branch, or since the last commit)

A folder is one of `tests`: base, storage, io, format, predicate, dataset, prune, scan, index, spark, cli, bench, core. Slow tests,
Spark and fuzzing are left to `make test`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import PurePosixPath

from steps import PYTHON, ROOT, Step, run

LINT = ("ruff", "format", "mypy", "imports")
LATER = "not spark and not cluster and not slow"
ALONE = {"api.py": "scan", "__init__.py": "", "__main__.py": "cli"}  # files that stand in no folder


def changed() -> list[str]:
    """The files that differ from the upstream branch, or else from the last commit, and untracked files."""
    base = _git("merge-base", "HEAD", "@{upstream}") or _git("rev-parse", "HEAD")
    found = _git("diff", "--name-only", base[0]) + _git(
        "ls-files", "--others", "--exclude-standard"
    )
    return sorted(set(found))


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.split() if done.returncode == 0 else []


def tests_of(path: str) -> str:
    """The tests of a file, or ""."""
    parts = PurePosixPath(path).parts
    if parts[:2] == ("src", "pageseek"):
        name = ALONE.get(parts[2], parts[2])
        return f"tests/{name}" if name else "tests/test_house.py"
    if parts[0] == "_core":
        return "tests/core"
    if parts[0] == "bench":
        return "tests/bench"
    if parts[0] == "docs" or path == "README.md":
        return "tests/test_docs.py"
    if parts[0] == "tests" and parts[-1].startswith("test_"):
        return path
    return ""


def main(names: list[str]) -> int:
    """Run the checks, and the tests of the named folders or of the changed files."""
    files = changed()
    wanted = [f"tests/{name}" for name in names] or [tests_of(path) for path in files]
    folders = {name for name in wanted if name and (ROOT / name).is_dir()}
    if "tests/test_docs.py" in wanted:
        wanted.append("tests/test_links.py")
    single = {
        name
        for name in wanted
        if name and name not in folders and str(PurePosixPath(name).parent) not in folders
    }
    chosen = sorted(name for name in folders | single if (ROOT / name).exists())
    c_tests = sorted(
        {PurePosixPath(path).stem for path in files if path.startswith("_core/c/")}
        & {path.stem.removeprefix("test_") for path in (ROOT / "_core/tests").glob("test_*.c")}
    )
    steps = [Step("lint", [PYTHON, "tools/lint.py", *LINT])]
    if c_tests:
        steps.append(Step("ctest", ["bash", "tools/ctest.sh", *c_tests], {"CC": "gcc"}))
    if chosen:
        command = [
            PYTHON,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "worksteal",
            "-m",
            LATER,
            *chosen,
        ]
        steps.append(Step("tests", command))
    print(
        "check, about a minute for one file: " + ", ".join([*LINT, *c_tests, *chosen]), flush=True
    )
    return run("check", [[[step]] for step in steps])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
