"""Builds the site of docs/ into build/site. A warning is an error; nothing is fetched.

usage: build_site.py [--serve | --pages]

--serve    show it at http://localhost:8000, and rebuild it when a page changes
--pages    the pages alone; else the notebooks are executed too, and the site has what they show
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import run_notebooks
from lint import link_tree
from steps import PYTHON, ROOT

NEEDED = ("zensical", "mkdocstrings_handlers.python")
HARMLESS = ("Build started", "No issues found", "Build finished")


def missing() -> list[str]:
    """The modules of the extra `docs` that are not installed."""
    return [name for name in NEEDED if not _found(name)]


def _found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its package
        return False


def main(arguments: list[str]) -> int:
    """Build, or serve."""
    if lacking := missing():
        print(
            f"site: {', '.join(lacking)} not installed; {PYTHON} -m pip install --editable '.[docs]'",
            file=sys.stderr,
        )
        return 1
    link_tree()
    zensical = [PYTHON, "-m", "zensical"]
    if arguments == ["--serve"]:
        return subprocess.run([*zensical, "serve"], cwd=ROOT, check=False).returncode
    if arguments not in ([], ["--pages"]):
        print(__doc__, file=sys.stderr)
        return 2
    command = [*zensical, "build", "--strict", "--clean"]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"NO_COLOR": "1"},
    )  # fmt: skip
    said = [line for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    print(*said, sep="\n")
    # warnings of the reader of docstrings are printed, and would not fail the build
    warnings = [line for line in said if not line.startswith(HARMLESS)]
    if run.returncode or warnings:
        return 1
    if not (ROOT / "build/site/index.html").exists():
        print("site: the build says nothing wrong, and made no index.html", file=sys.stderr)
        return 1
    return 0 if arguments else run_notebooks.main([str(ROOT / "build/site/notebooks")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
