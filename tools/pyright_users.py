"""pyright on programs of users: right uses pass, and each wrong one is reported on the line that marks it.

    python tools/pyright_users.py TREE FILE...

TREE is a folder with the package. A wrong use is marked by `# type: ignore[...]` of mypy, whose names of errors pyright
does not have: the comments are switched off, and lines compared. basedpyright bundles pyright with what executes it, so
that nothing is fetched.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = "# type: ignore"


def reported(tree: str, files: list[str]) -> dict[tuple[str, int], str]:
    """The errors by file and line."""
    settings = {
        "typeCheckingMode": "standard",
        "enableTypeIgnoreComments": False,
        "extraPaths": [tree],
        "include": files,
    }
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "pyrightconfig.json"
        config.write_text(json.dumps(settings))
        command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(config)]
        run = subprocess.run(
            [*command, "--pythonpath", sys.executable], capture_output=True, text=True, check=False
        )
    try:
        found = json.loads(run.stdout)
    except ValueError:
        raise SystemExit(f"basedpyright: {run.stdout}{run.stderr}") from None
    if found["summary"]["filesAnalyzed"] != len(files):
        raise SystemExit(f"basedpyright: {found['summary']['filesAnalyzed']} of {len(files)} files")
    return {
        (one["file"], one["range"]["start"]["line"] + 1): one["message"]
        for one in found["generalDiagnostics"]
        if one["severity"] == "error"
    }


def main(tree: str, *names: str) -> int:
    """Print what differs; 1 if anything does."""
    files = [str(Path(name).resolve()) for name in names]
    errors = reported(str(Path(tree).resolve()), files)
    marked = {
        (name, i)
        for name in files
        for i, line in enumerate(Path(name).read_text().splitlines(), 1)
        if MARK in line
    }
    for (name, line), message in errors.items():
        if (name, line) not in marked:
            print(f"{name}:{line}: {message}")
    for name, line in sorted(marked - set(errors)):
        print(f"{name}:{line}: pyright finds no mistake here")
    return int(marked != set(errors))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
