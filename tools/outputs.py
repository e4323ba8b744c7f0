"""Runs the examples of pages in empty folders, and writes what they print into the pages.

usage: outputs.py [PAGE ...]      (default: README.md and the pages of docs that are complete)

Only blocks ```text right behind an example are written. tests/test_docs.py compares them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import notebooks
from steps import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from support.doc_examples import COMPLETE, printed


def main(names: list[str]) -> int:
    """Write the outputs of the pages named, or of all."""
    for name in names or [name for name in COMPLETE if name != "README.md"]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            made = list(printed(name, Path(folder).resolve(), {}))
            os.chdir(ROOT)
        path = ROOT / name
        text = path.read_text()
        shown = [(block.output, said) for block, said in made if block.output]
        for (first, stop), said in reversed(shown):
            lines = [line.rstrip() for line in said.strip("\n").splitlines()]
            text = text[:first] + "\n".join(lines) + "\n" + text[stop:]
        path.write_text(text)
        print(f"{name}: {len(made)} examples, {len(shown)} outputs")
    return notebooks.main([])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
