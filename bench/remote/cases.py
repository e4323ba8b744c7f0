"""The queries, and their objects."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench import generate

BUCKET = "lake"
ROWS, GROUP = 2_000_000, 500_000
FILES, FILE_ROWS = 100, 20_000


@dataclass(frozen=True)
class Case:
    """Rows with `low` <= key <= `high`, of the objects below a prefix, or of one; so many are `due`."""

    name: str
    what: str
    key: str
    low: int
    high: int
    columns: tuple[str, ...] | None
    due: int
    objects: tuple[str, ...]


def make(folder: Path) -> list[Case]:
    """Make the objects in a folder that is served, unless they are there; the cases."""
    lake = folder / "remote" / BUCKET
    lake.mkdir(parents=True, exist_ok=True)
    made = generate.lookup_file(folder, ROWS, GROUP)
    one = lake / "lookup.parquet"
    if not one.exists():
        os.link(made, one)
    many = [_part(lake, i) for i in range(FILES)]
    keys = pq.read_table(one, columns=["key"])["key"].to_numpy()
    middle = int(keys[ROWS // 2 + 77])
    low, high = int(keys[ROWS // 4]), int(keys[ROWS // 4 + 20_000])
    return [
        Case("point", "one row by the sorted key, all columns", "key", middle, middle, None,
             int(np.count_nonzero(keys == middle)), ("lookup.parquet",)),
        Case("range", "20,000 rows in a row, all columns", "key", low, high, None,
             int(np.count_nonzero((keys >= low) & (keys <= high))), ("lookup.parquet",)),
        Case("hundred", "one row in one of a hundred files", "id", 61 * FILE_ROWS + 4_321,
             61 * FILE_ROWS + 4_321, None, 1, tuple(path.relative_to(lake).as_posix() for path in many)),
        Case("scan", "three columns whole, no filter", "key", -1, -1, ("key", "price", "quantity"),
             ROWS, ("lookup.parquet",)),
        Case("whole", "eight columns whole, no filter", "key", -1, -1, None, ROWS, ("lookup.parquet",)),
    ]  # fmt: skip


def _part(lake: Path, i: int) -> Path:
    path = lake / "hundred" / f"part-{i:03}.parquet"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        random = np.random.default_rng(i)
        table = pa.table(
            {
                "id": np.arange(i * FILE_ROWS, (i + 1) * FILE_ROWS),
                "value": random.random(FILE_ROWS),
                "user": random.integers(0, 1_000_000, FILE_ROWS),
                "text": np.char.mod("%016x", random.integers(0, 1 << 60, FILE_ROWS)),
            }
        )
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        pq.write_table(table, unfinished, compression="zstd", write_page_index=True)
        unfinished.replace(path)
    return path
