"""Files of columns of many types, to attach indexes to."""

from __future__ import annotations

import datetime as dt
import json
import struct
from array import array
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek._core import build
from pageseek.format.embedded import KEY
from pageseek.format.types import ABSENT
from pageseek.index.footer_edit import new_footer
from support.opened import open_metadata

ROWS = 12_000


def table(seed: int = 1) -> pa.Table:
    """Columns of many types, some sorted, some not, some with nulls."""
    random = np.random.default_rng(seed)
    n = ROWS
    numbers = random.integers(-(10**6), 10**6, n)
    nulls = random.random(n) < 0.1
    floats = random.normal(size=n)
    floats[random.random(n) < 0.01] = np.nan
    floats[:3] = [0.0, -0.0, 1.0]
    texts = np.char.add("name-", random.integers(0, 300, n).astype(str))
    return pa.table(
        {
            "id": pa.array(np.arange(n)),
            "down": pa.array(-np.arange(n, dtype=np.int32)),
            "number": pa.array(numbers, mask=nulls),
            "small": pa.array(random.integers(0, 200, n).astype(np.uint8)),
            "unsigned": pa.array(random.integers(0, 2**32, n, dtype=np.uint32)),
            "real": pa.array(floats, mask=nulls),
            "single": pa.array(floats.astype(np.float32)),
            "half": pa.array(np.round(floats, 1).astype(np.float16)),
            "text": pa.array(texts, mask=nulls),
            "long": pa.array([f"{'é' * 60}{i % 50:04d}" for i in range(n)]),
            "code": pa.array([b"%04d" % (i % 97) for i in range(n)], pa.binary(4)),
            "flag": pa.array(numbers % 3 == 0),
            "when": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(minutes=i) for i in range(n)]),
            "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=i // 100) for i in range(n)]),
            "price": pa.array(
                [Decimal(int(i)) / 100 for i in numbers % 5000 - 2500], pa.decimal128(9, 2)
            ),
            "wide": pa.array([Decimal(int(i)) for i in numbers], pa.decimal128(30, 0)),
            "none": pa.array([None] * n, pa.int64()),
            "point": pa.array([{"x": int(i), "y": None if i % 7 else "y"} for i in range(n)]),
            "list": pa.array([list(range(i % 4)) for i in range(n)], pa.list_(pa.int64())),
        }
    )


def written(path: Path, data: pa.Table | None = None, **knobs: Any) -> Path:
    options: dict[str, Any] = {
        "row_group_size": 5_000, "data_page_size": 4_000, "write_batch_size": 500,
        "data_page_version": "2.0", "compression": "zstd", "use_dictionary": ["text"],
    }  # fmt: skip
    pq.write_table(table() if data is None else data, path, **(options | knobs))
    return path


def same(a: pa.Table, b: pa.Table) -> bool:
    """Also where values are NaN, or zeros with a sign."""
    return a.schema.equals(b.schema) and str(a.to_pylist()) == str(b.to_pylist())


def as_by_others(path: Path) -> None:
    """Attached indexes without their entry, as if another tool had written them."""
    _with_value(path, None)


def with_directory(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Each entry of the directory is changed."""
    with open_metadata(path) as file:
        said = json.loads(file.key_value_metadata[KEY] or b"")
    for one in said["indexes"]:
        change(one)
    _with_value(path, json.dumps(said).encode())


def _with_value(path: Path, value: bytes | None) -> None:
    with open_metadata(path) as file:
        places = array("q", [ABSENT]) * (file.num_row_groups * file.num_leaves * build.PLACES)
        footer = new_footer(file, places, [KEY], [] if value is None else [(KEY, value)])
        data = path.read_bytes()[: file.footer_start]
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")


def end_of_data(path: Path) -> int:
    with open_metadata(path) as file:
        return int(file.footer_start)
