"""Decoding of one chunk at several selections; beside it pyarrow's full decode and filter.

The chunk is uncompressed and in memory, so that decoding alone is timed.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek._core import rows

N = 500_000
RANDOM = np.random.default_rng(11)

COLUMNS: dict[str, Callable[[], pa.Array]] = {
    "plain": lambda: pa.array(RANDOM.integers(0, 1 << 40, N)),
    "nulls": lambda: pa.array(RANDOM.random(N), mask=RANDOM.random(N) < 0.1),
    "strings": lambda: pa.array([f"text {i * 7919 % N} of the row" for i in range(N)]),
    "dictionary": lambda: pa.array([f"city {i}" for i in range(500)]).take(
        pa.array(RANDOM.integers(0, 500, N))
    ),
}


def _selected(kind: str) -> npt.NDArray[np.bool_]:
    if kind == "all":
        return np.ones(N, np.bool_)
    if kind == "clustered-1%":
        mask = np.zeros(N, np.bool_)
        mask[N // 3 : N // 3 + N // 100] = True
        return mask
    return RANDOM.random(N) < (0.1 if kind == "scattered-10%" else 0.01)


SELECTIONS = ["all", "scattered-10%", "scattered-1%", "clustered-1%"]


@pytest.fixture(scope="module", params=COLUMNS)
def made(request: pytest.FixtureRequest) -> bytes:
    table = pa.table({"a": COLUMNS[request.param]()})
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        compression="none",
        use_dictionary=request.param == "dictionary",
        write_page_index=True,
        row_group_size=N,
    )
    return sink.getvalue()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_pageseek(
    benchmark: Any, decode_of: Callable[[bytes], Any], made: bytes, selection: str
) -> None:
    mask = _selected(selection)
    ranges = rows.RowRanges.from_bitmap(np.packbits(mask, bitorder="little"), 0, N)

    found = benchmark(decode_of(made), ranges)
    assert sum(len(array) for array in found) == int(mask.sum())


@pytest.mark.parametrize("selection", SELECTIONS)
def test_pyarrow(benchmark: Any, made: bytes, selection: str) -> None:
    file = pq.ParquetFile(pa.BufferReader(made))
    mask = pa.array(_selected(selection))

    def decode() -> pa.Table:
        table = file.read_row_group(0, use_threads=False)
        return table if selection == "all" else table.filter(mask)

    assert benchmark(decode).num_rows == mask.true_count
