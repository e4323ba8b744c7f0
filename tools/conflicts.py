"""Finds what a merge left: the lines by which git marks conflicts, in any file.

usage: conflicts.py [FOLDER]      (default: the root of the project)
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from steps import ROOT

MARK = re.compile(
    rb"^(?:<{7}|>{7}|\|{7}) ", re.MULTILINE
)  # the `=======` between them underlines headings, too
SEEN = (".ci", ".github")  # of the hidden folders
MADE = ("__pycache__", "build", "dist", "node_modules", "site")


def files(root: Path) -> Iterator[Path]:
    """All files but those that tools have made; an archive of the source has no list of them."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(n for n in folders if n in SEEN or not (n[0] == "." or n in MADE))
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def main(arguments: list[str]) -> int:
    """Name the files and lines: 0, or 1 where there are any."""
    root = Path(arguments[0]) if arguments else ROOT
    places = []
    for path in files(root):
        data = path.read_bytes()
        for found in () if b"\0" in data[:8_000] else MARK.finditer(data):
            line = data.count(b"\n", 0, found.start()) + 1
            places.append(
                f"{path.relative_to(root)}:{line}: a mark of a conflict that was not resolved"
            )
    print("\n".join(places))
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
