"""Files in which keys are looked up, and rows in an order of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def in_order(rows: Iterable[Iterable[Any]]) -> list[str]:
    """Rows in an order that does not depend on tasks; NaN made comparable, the two zeros told apart."""
    plain = (
        tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row) for row in rows
    )
    return sorted(map(repr, plain))


def write_lake(directory: Path) -> Path:
    """Four files: k sorted over all of them with gaps and nulls, g and s in no order, v a payload."""
    random = np.random.default_rng(3)
    for i in range(4):
        n = 1500
        k = np.arange(i * n, (i + 1) * n) // 2 * 3
        table = pa.table(
            {
                "v": [f"value {x}" for x in range(n)],
                "k": pa.array(k, pa.int64(), mask=random.random(n) < 0.02),
                "g": pa.array(random.integers(0, 40, n), pa.int32(), mask=random.random(n) < 0.1),
                "s": pa.array([f"{x:03d}" for x in random.integers(0, 300, n)]),
                "tags": [[x, None] for x in range(n)],
            }
        )
        pq.write_table(
            table,
            directory / f"{i}.parquet",
            row_group_size=500,
            data_page_size=512,
            write_batch_size=64,
            write_page_index=True,
        )
    return directory
