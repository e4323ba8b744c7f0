"""Files that pyarrow writes with a given encoding for each column, read by pageseek and pyarrow."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

N = 4000
INTEGERS = ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
BYTES = ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
FIXED = ("DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
Make = Callable[[random.Random, int], Any]
TYPES: list[tuple[pa.DataType, tuple[str, ...], Make]] = [
    (pa.int8(), INTEGERS, lambda d, _: d.randrange(-128, 128)),
    (pa.uint8(), INTEGERS, lambda d, _: d.randrange(256)),
    (pa.int16(), INTEGERS, lambda d, i: i - 2000),
    (pa.uint32(), INTEGERS, lambda d, _: d.randrange(1 << 32)),
    (pa.int32(), INTEGERS, lambda d, _: d.choice([-(1 << 31), (1 << 31) - 1, 0])),
    (pa.int64(), INTEGERS, lambda d, _: d.choice([-(1 << 63), (1 << 63) - 1, 0])),
    (pa.uint64(), INTEGERS, lambda d, _: d.randrange(1 << 64)),
    (pa.date32(), INTEGERS, lambda d, i: 19000 + i // 5),
    (pa.timestamp("us"), INTEGERS, lambda d, i: i * 1_000_003),
    (pa.float32(), ("BYTE_STREAM_SPLIT",), lambda d, _: d.random()),
    (pa.float64(), ("BYTE_STREAM_SPLIT",), lambda d, _: d.random()),
    (pa.float16(), FIXED, lambda d, _: np.float16(d.random())),
    (pa.string(), BYTES, lambda d, i: f"läng {i // 3} " * d.randrange(4)),
    (pa.large_string(), BYTES, lambda d, i: f"row {i:06}"),
    (pa.binary(), BYTES, lambda d, _: d.randbytes(d.randrange(40))),
    (pa.binary(16), FIXED, lambda d, _: d.randbytes(16)),
    (pa.binary(3), FIXED, lambda d, i: b"%03d" % (i % 1000)),
    (pa.decimal128(7, 2), FIXED, lambda d, i: Decimal(i - 2000) / 100),
    (pa.decimal128(38, 5), FIXED, lambda d, i: Decimal(d.randrange(10**20)) / 10**5),
    (pa.decimal256(60, 0), FIXED, lambda d, i: Decimal(d.randrange(10**30))),
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data_page_version": "2.0", "data_page_size": 3000, "write_batch_size": 70},
        {"compression": "zstd", "data_page_size": 900, "write_batch_size": 33},
    ],
    ids=str,
)
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_every_type_in_every_encoding_that_pyarrow_has_for_it(
    tmp_path: Path, options: dict[str, Any], share: float
) -> None:
    dice = random.Random(3)
    arrays, encodings = {"id": pa.array(range(N))}, {"id": "DELTA_BINARY_PACKED"}
    for made, names, make in TYPES:
        for name in names:
            values = [None if dice.random() < share else make(dice, i) for i in range(N)]
            column = f"{made} {name}".replace(".", "_")
            arrays[column], encodings[column] = pa.array(values, made), name
    path = tmp_path / "made.parquet"
    pq.write_table(
        pa.table(arrays), path, use_dictionary=False, column_encoding=encodings,
        write_page_index=True, row_group_size=3000, **options,
    )  # fmt: skip
    wanted = pq.read_table(path)
    assert ps.read_table(path).equals(wanted)
    for rows in (range(0, N, 3), range(5, N, 700), range(1500, 1520), [0, N - 1]):
        found = ps.read_table(path, filter=ps.col("id").isin(list(rows)))
        assert found.equals(wanted.take(list(rows)))
