"""Makes notebooks of the pages in docs/notebooks: a cell for each text, and one for each block of Python, with its output.

usage: notebooks.py [--check]      (--check: say which differ from their pages)
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from steps import ROOT

BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
# a report is shown as a table with bars where it is the value of a cell
REPORT = re.compile(r"^print\((?P<report>.*\.explain\(analyze=True\))\)$", re.MULTILINE)
FOLDER = ROOT / "docs" / "notebooks"


def lines(text: str) -> list[str]:
    """Text as a notebook keeps it."""
    return text.strip("\n").splitlines(keepends=True)


def notebook(text: str) -> dict[str, Any]:
    """A page as a notebook of the format 4.5."""
    cells: list[dict[str, Any]] = []

    def say(part: str) -> None:
        if part.strip():
            cell = {"cell_type": "markdown", "metadata": {}, "source": lines(part)}
            cells.append({**cell, "id": f"cell-{len(cells)}"})

    behind = 0
    for number, match in enumerate(BLOCK.finditer(text), 1):
        say(text[behind : match.start()])
        source, output = match[1], lines(match[2] or "")
        shown: dict[str, Any] = {"output_type": "stream", "name": "stdout", "text": output}
        if source.count("print(") == 1 and REPORT.search(source):
            source = REPORT.sub(r"\g<report>", source)
            data = {"text/plain": output}
            shown = {
                "output_type": "execute_result",
                "execution_count": number,
                "metadata": {},
                "data": data,
            }
        cells.append(
            {
                "cell_type": "code",
                "execution_count": number,
                "id": f"cell-{len(cells)}",
                "metadata": {},
                "outputs": [shown] if match[2] else [],
                "source": lines(source),
            }
        )
        behind = match.end()
    say(text[behind:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def made(page: Path) -> str:
    """The file of the notebook of a page. Links lead to pages, which stand beside it."""
    return json.dumps(notebook(page.read_text()), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write, or compare."""
    stale = []
    for page in sorted(FOLDER.glob("*.md")):
        path, text = page.with_suffix(".ipynb"), made(page)
        if arguments != ["--check"]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        print(
            f"notebooks: run tools/notebooks.py; these differ from their pages: {', '.join(stale)}"
        )
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
