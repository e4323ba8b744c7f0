"""Runs the notebooks of docs/notebooks, each in a process and an empty folder of its own, and writes them with what they show.

usage: run_notebooks.py FOLDER      (the folder that gets the notebooks)

A cell that fails ends the build, with the name of the notebook and the number of the cell. The cells are plain Python, so a kernel of
Jupyter is not needed: nbclient and ipykernel would bring some thirty packages, and sockets, to do what `exec` does.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from steps import PYTHON, ROOT

FOLDER = ROOT / "docs" / "notebooks"
HOME = "/home/you/demo"  # in place of the folder in which a notebook ran
SECONDS = 300


class CellFailed(Exception):
    """A cell raised an error."""


def execute(notebook: dict[str, Any], name: str) -> None:
    """Run the cells in the current folder; their outputs replace those that the notebook has."""
    space: dict[str, Any] = {"__name__": "__main__"}
    here = os.path.realpath(os.getcwd())
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        try:
            text, value = _run("".join(cell["source"]), f"{name}, cell {number}", space)
        except (Exception, SystemExit) as error:  # what a cell raises is the finding
            raise CellFailed(f"{name}, cell {number}:\n{traceback.format_exc()}") from error
        cell["execution_count"] = number
        cell["outputs"] = []
        if text:
            lines = text.replace(here, HOME).splitlines(keepends=True)
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": lines})
        if value is not None:
            shown = {
                kind: said.replace(here, HOME).splitlines(keepends=True)
                for kind, said in value.items()
            }
            result = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
            cell["outputs"].append(result | {"data": shown})


def _run(source: str, name: str, space: dict[str, Any]) -> tuple[str, dict[str, str] | None]:
    """What a cell prints, and its last expression in the forms that a notebook shows."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value, out = None, io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, name, "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if value is None:
            return out.getvalue(), None
        made = {"text/plain": repr(value)}
        if hasattr(value, "_repr_html_"):
            made["text/html"] = value._repr_html_()
    return out.getvalue(), made


def main(arguments: list[str]) -> int:
    """Run all notebooks; or, with a second argument, that one in this process."""
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    target = Path(arguments[0]).resolve()
    if len(arguments) == 2:
        path = Path(arguments[1])
        notebook = json.loads(path.read_text())
        try:
            execute(notebook, path.name)
        except CellFailed as error:
            print(error, file=sys.stderr)
            return 1
        (target / path.name).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        return 0
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            command = [PYTHON, str(Path(__file__).resolve()), str(target), str(path)]
            run = subprocess.run(
                command,
                cwd=folder,
                check=False,
                timeout=SECONDS,
                env=os.environ | {"COLUMNS": "120"},
            )
        if run.returncode:
            return 1
        print(f"{path.name}: executed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
