"""Every static check of the project; `python tools/lint.py mypy ruff` runs only those."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from steps import PYTHON, ROOT, Step, run, script

TREE = ROOT / "build" / "lint"
LONG = ("mypy", "mypy-tests", "mypy-users")  # half of the time; they share a cache


def link_tree() -> None:
    """Lay the package out as it is installed, with links, for tools that do not follow package mappings."""
    package = TREE / "pageseek"
    shutil.rmtree(TREE, ignore_errors=True)
    package.mkdir(parents=True)
    rooms = {path.name: path for path in (ROOT / "src" / "pageseek").iterdir()}
    rooms |= {"_core": ROOT / "_core", "bench": ROOT / "bench"}
    rooms.pop("__pycache__", None)
    for name, path in rooms.items():
        (package / name).symlink_to(path)


def found(*patterns: str) -> list[str]:
    """Files that match, relative to the root."""
    paths = (path for pattern in patterns for path in ROOT.glob(pattern))
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def steps() -> list[Step]:
    """Build the list of checks for the files that exist."""
    tree = {"MYPYPATH": str(TREE), "PYTHONPATH": str(TREE)}
    modules = [f"pageseek._core.{Path(pyx).stem}" for pyx in found("_core/*.pyx")]
    c_files = found("_core/*.h", "_core/c/*.[ch]", "_core/tests/*.[ch]")
    allow = ["--allowlist", "tools/stubtest-allow.txt", "--ignore-unused-allowlist"]
    checks = [
        Step("ruff", script("ruff", "check", ".")),
        Step("format", script("ruff", "format", "--check", ".")),
        Step("mypy", [PYTHON, "-m", "mypy", "--strict"], tree),
    ]
    if found("tests/mypy.ini"):
        names = [PYTHON, "-m", "mypy", "--config-file", "tests/mypy.ini", "tests"]
        paths = {"MYPYPATH": f"{TREE}:{ROOT / 'tests'}"}
        checks.append(Step("mypy-tests", names, paths))
    if uses := found("tests/typing/*.py"):  # programs of users: right ones, and mistakes
        users = [PYTHON, "-m", "mypy", "--strict", "--config-file="]
        checks.append(Step("mypy-users", [*users, "--ignore-missing-imports", *uses], tree))
        pyright = [PYTHON, "tools/pyright_users.py", str(TREE), *uses]
        checks.append(Step("pyright-users", pyright))
    if modules:
        stubs = [PYTHON, "-m", "mypy.stubtest", *allow, *modules]
        checks.append(Step("stubtest", stubs, tree))
        checks.append(
            Step("cython-lint", script("cython-lint", *found("_core/*.pyx", "_core/*.pxd")))
        )
    if c_files:
        format_check = script("clang-format", "--dry-run", "--Werror", *c_files)
        checks.append(Step("clang-format", format_check))
    zizmor = ["--config", ".github/zizmor.yml"]
    schema = ["--builtin-schema", "vendor.github-workflows"]
    workflow = ".github/workflows/wheels.yml"
    checks += [
        Step("imports", script("lint-imports", "--no-cache"), tree),
        Step("codespell", script("codespell")),
        Step("conflicts", [PYTHON, "tools/conflicts.py"]),
        Step("workflow", script("check-jsonschema", *schema, workflow)),
        Step("jar", [PYTHON, "tools/jar.py", "--check"]),
        Step("wheels", [PYTHON, "tools/wheels.py"]),
        Step("zizmor", script("zizmor", "--offline", "--quiet", *zizmor, workflow)),
        Step("site", [PYTHON, "tools/build_site.py", "--pages"]),  # tests run the notebooks
    ]
    return checks


def main(names: list[str]) -> int:
    """Run the checks named, or all: those that take long beside the others, unless LINT_LANES=1."""
    known = steps()
    if unknown := set(names) - {step.name for step in known}:
        there = ", ".join(step.name for step in known)
        print(f"no check {', '.join(sorted(unknown))}; there are: {there}", file=sys.stderr)
        return 2
    link_tree()
    chosen = [step for step in known if not names or step.name in names]
    lanes = [chosen]
    if os.environ.get("LINT_LANES") != "1":
        lanes = [
            [step for step in chosen if step.name in LONG],
            [step for step in chosen if step.name not in LONG],
        ]
    return run("lint", [[lane for lane in lanes if lane]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
