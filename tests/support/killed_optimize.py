"""`python -m support.killed_optimize FOLDER FIRST STEP`: a folder is optimized by processes that are killed, each before another call of the
system, and what is left is printed.

Each is a fork of this one. It is killed by SIGKILL before call number FIRST, FIRST + STEP and so on, until one is done.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.spark import optimize
from pageseek.spark.writing.commit import STAGING
from support.in_process import InProcess
from support.killed_processes import with_traps

ROWS = 40  # of a file


def made(folder: Path) -> None:
    """Two partitions of two files."""
    for i in range(4):
        inner = folder / f"p={i % 2}"
        inner.mkdir(parents=True, exist_ok=True)
        keys = [(n * 7 + i) % 101 for n in range(ROWS)]
        pq.write_table(pa.table({"k": keys, "f": [i] * ROWS}), inner / f"{i}.parquet")


def run(folder: Path) -> Any:
    """Optimize it: a group for each partition."""
    return optimize(InProcess(), folder, sort_by="k")


def rows(folder: Path) -> Counter[Any]:
    """The rows that a reader of files sees, by folder."""
    found: Counter[Any] = Counter()
    for path in folder.rglob("*.parquet"):
        inner = path.relative_to(folder).parts
        if not any(part.startswith(("_", ".")) for part in inner):
            table = pq.ParquetFile(path).read()
            found.update((inner[:-1], *row.values()) for row in table.to_pylist())
    return found


def main(root: str, first: int, step: int) -> None:
    """Kill processes, and print what is left."""
    said, at, whole = [], first, Path(root, "whole")
    made(whole)
    expected = rows(whole)
    while True:
        folder = Path(root, str(at))
        shutil.copytree(whole, folder)
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            try:
                with_traps(at, False, theirs)
                run(folder)
            finally:
                os._exit(0)
        os.close(theirs)
        _, status = os.waitpid(child, 0)
        call = os.read(ours, 100).decode()
        os.close(ours)
        after = rows(folder)
        lost = expected - after
        done = run(folder)
        names = [path.name for path in folder.rglob("*") if path.is_file()]
        left = [name for name in os.listdir(folder) if STAGING in name]
        said.append(
            {
                "at": at, "call": call, "killed": os.WIFSIGNALED(status), "lost": len(lost), "twice": len(after - expected),
                "kept": done.kept, "equal": rows(folder) == expected, "files": len(names), "left": left,
            }
        )  # fmt: skip
        shutil.rmtree(folder)
        if not call:
            break
        at += step
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
