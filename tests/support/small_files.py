"""Folders of small files that may be read as one, and of files that differ."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.scanning.many_files import joined_files

N, ROWS = 40, 50
CITIES = [f"city {i}" for i in range(9)]


def table(i: int, rows: int = ROWS) -> pa.Table:
    """The rows of the i-th file."""
    rng = np.random.default_rng(i)
    return pa.table(
        {
            "id": np.arange(i * ROWS, i * ROWS + rows),
            "city": pa.array(rng.choice(CITIES, rows)),
            "number": pa.array(rng.integers(0, 300, rows), mask=rng.random(rows) < 0.2),
            "value": rng.random(rows),
            "text": pa.array(
                [None if k % 11 == 0 else f"text {i * ROWS + k}" for k in range(rows)]
            ),
        }
    )


def write_alike(folder: Path) -> None:
    """N files of one row group."""
    for i in range(N):
        pq.write_table(table(i), folder / f"{i:03}.parquet", write_page_index=True)


def write_different(
    folder: Path, seed: int, rows: Sequence[int] = (1, 5, ROWS), row_groups: Sequence[int] = (1000,)
) -> None:
    """Files that differ in columns, types, codecs, folders, encodings, and writers' schemas, with so many rows, in row groups of so
    many.
    """
    rng = random.Random(seed)
    for i in range(3 * N):
        place = folder / f"day={i // 30}"
        place.mkdir(exist_ok=True)
        made = table(i, rng.choice(rows))
        if i % 30 > 24:
            made = made.drop_columns("value")
        if 5 < i % 30 < 14:
            made = made.set_column(2, "number", made["number"].cast(pa.int32()))
        if i % 17 == 3:
            made = made.slice(0, 0)
        pq.write_table(
            made,
            place / f"{i:03}.parquet",
            compression=("zstd", "snappy", "none", "gzip")[i // 10 % 4],
            use_dictionary=i % 9 > 3,
            row_group_size=rng.choice(row_groups),
        )


def learn_joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Learns how many files are scanned as one, each time."""
    found: list[int] = []
    scans = joined_files.joined_scans

    def counted(*given: Any) -> Iterator[Any]:
        for at, scan in scans(*given):
            found.append(scan.num_files)
            yield at, scan

    monkeypatch.setattr(joined_files, "joined_scans", counted)
    return found
