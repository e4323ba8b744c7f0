"""Runs the examples of pages in empty folders, and writes what they print into the pages.

usage: outputs.py [PAGE ...]      (default: all pages with examples)

Only blocks ```text right behind an example are written. tests/test_docs.py and tests/spark/test_docs.py compare them. An object server takes
the place of the buckets and servers that the pages name.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import notebooks
from steps import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from support.doc_examples import pages, printed, printed_with_spark, stand_ins


def write(name: str, url: str) -> None:
    """Write the outputs of a page."""
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made):
        run = printed_with_spark if name in pages(spark=True) else printed
        answers = list(run(name, Path(made).resolve(), url))
    path = ROOT / name
    text = path.read_text()
    shown = [(block.output, said) for block, said in answers if block.output]
    for (first, stop), said in reversed(shown):
        lines = [line.rstrip() for line in said.strip("\n").splitlines()]
        text = text[:first] + "\n".join(lines) + "\n" + text[stop:]
    path.write_text(text)
    print(f"{name}: {len(answers)} examples, {len(shown)} outputs")


def main(names: list[str]) -> int:
    """Write the outputs of the pages named, or of all."""
    os.environ["COLUMNS"] = "120"
    with stand_ins() as url:
        for name in names or sorted({*pages(spark=False), *pages(spark=True)}):
            write(name, url)
    return notebooks.main([])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
