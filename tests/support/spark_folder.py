"""A folder of files with columns of many types, for Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES, ROWS = 3, 4000


def write_folder(made: Path) -> None:
    """FILES files of ROWS rows: `k` ascends through all of them, and most other columns have nulls."""
    for i in range(FILES):
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        some = k % 7 == 3
        start = datetime(1970, 1, 1, tzinfo=UTC)
        times = [start + timedelta(seconds=37 * int(n)) for n in k]

        def nulled(values: Any, kind: pa.DataType | None = None, some: Any = some) -> pa.Array:
            return pa.array([None if no else v for v, no in zip(values, some, strict=True)], kind)

        floats = np.where(k % 11 == 0, np.nan, (k % 64) / 4.0 - 1)
        table = pa.table(
            {
                "k": k,
                "small": nulled((k % 7).tolist(), pa.int8()),
                "f": pa.array(floats.astype("f4")),
                "x": nulled(floats.tolist()),
                "d": nulled(
                    [Decimal(int(n) % 2000 - 700).scaleb(-2) for n in k], pa.decimal128(9, 2)
                ),
                "s": nulled([f"row {n % 900}" for n in k]),
                "c": pa.array(["abcdef"[n % 6] for n in k]),
                "day": nulled((k % 900).tolist(), pa.int32()).cast(pa.date32()),
                "t": nulled(times, pa.timestamp("us", "UTC")),
                "n": pa.array([t.replace(tzinfo=None) for t in times], pa.timestamp("us")),
                "b": nulled((k % 2 == 0).tolist()),
                "raw": pa.array([bytes([n % 256, 255 - n % 256]) for n in k]),
                "st": [None if n % 13 == 0 else {"a": int(n), "s": str(n % 50)} for n in k],
                "list": [[int(n), None] if n % 3 else None for n in k],
            }
        )
        pq.write_table(
            table, made / f"{i}.parquet", row_group_size=ROWS // 2, write_page_index=True,
            data_page_size=2048, write_batch_size=100,
        )  # fmt: skip
