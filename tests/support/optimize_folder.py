"""The folder that tests of `optimize` rewrite, and what they look at in it; and what happens to it meanwhile."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import optimize
from pageseek.spark.writing import commit, optimize_task
from pageseek.spark.writing.commit import Staging
from pageseek.storage.output_folders import OutputFolder
from support.in_process import InProcess

FILES, ROWS = 4, 600  # of each partition
job: Any = sys.modules[optimize.__module__]  # the function has the name of its module


def write_folder(made: Path) -> Path:
    """Two partitions, p=a and p=b, in unsorted files."""
    rng = random.Random(7)
    for p in ("a", "b"):
        (made / f"p={p}").mkdir(parents=True)
        for i in range(FILES):
            k = [rng.choice([None, *range(300)]) for _ in range(ROWS)]
            table = pa.table(
                {
                    "k": k,
                    "s": [f"s{rng.randrange(20)}" for _ in k],
                    "x": [n / 3 for n in range(ROWS)],
                }
            )
            pq.write_table(table, made / f"p={p}" / f"{i}.parquet", row_group_size=250)
    return made


def files(folder: Path) -> list[str]:
    """All files, those of staging folders too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(folder: Path) -> Counter[Any]:
    """The rows of each partition."""
    found: Counter[Any] = Counter()
    for name in files(folder):
        if name.endswith(".parquet") and not name.startswith("_"):
            table = pq.ParquetFile(folder / name).read()
            found.update((os.path.dirname(name), *row.values()) for row in table.to_pylist())
    return found


def is_sorted(values: list[Any]) -> bool:
    return values == sorted(values, key=lambda value: (value is None, value))


def meanwhile(monkeypatch: pytest.MonkeyPatch, when: str, change: Callable[[], None]) -> None:
    """Have something happen before the tasks, after them, or while files get their names."""
    real, move = job._written, OutputFolder.move

    def written(*given: Any) -> Any:
        if when == "before":
            change()
        found = real(*given)
        if when == "after":
            change()
        return found

    def moved(*given: Any) -> None:
        move(*given)
        if when == "named":
            change()

    monkeypatch.setattr(job, "_written", written)
    monkeypatch.setattr(OutputFolder, "move", moved)


class Killed(BaseException):
    """Stands for SIGKILL."""


def dying(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    """Have the driver die when so many groups are written."""
    left, real, close = [groups], optimize_task.write_group, Staging.close

    def write_group(*given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return real(*given)

    def closed(staging: Staging) -> None:  # locks go with their process
        commit._unlock(staging._lock) if left[0] < 0 else close(staging)

    monkeypatch.setattr(optimize_task, "write_group", write_group)
    monkeypatch.setattr(Staging, "close", closed)


def died(folder: Path, monkeypatch: pytest.MonkeyPatch, groups: int, **how: Any) -> None:
    with monkeypatch.context() as patch:
        dying(patch, groups)
        with pytest.raises(Killed):
            optimize(InProcess(), folder, sort_by="k", group_bytes=1, **how)
