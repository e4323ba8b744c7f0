"""lower_bound, page search and the algebra of selections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pageseek._core import rows

N = 1_000_000
RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("n", [100, 10_000, N])
def test_lower_bound(benchmark: Any, n: int) -> None:
    values = np.arange(n, dtype=np.int64) * 3
    literal = (1, np.array([n], np.int64), None)
    assert benchmark(rows.lower_bound, rows.KIND_I64, 0, n, values, None, literal) == -(-n // 3)


def test_lower_bound_of_strings(benchmark: Any) -> None:
    made = pa.array([f"key{i:08d}" for i in range(10_000)])
    _, offsets, values = made.buffers()
    literal = (1, b"key00007000", np.array([0, 11], np.int32))
    found = benchmark(rows.lower_bound, rows.KIND_BYTES, 0, len(made), values, offsets, literal)
    assert found == 7_000


@pytest.mark.parametrize("n", [10_000, N])
def test_numpy_searchsorted(benchmark: Any, n: int) -> None:
    benchmark(np.searchsorted, np.arange(n, dtype=np.int64) * 3, n)


@pytest.mark.parametrize("order", [0, 1], ids=["unordered", "ascending"])
def test_probe_of_pages(benchmark: Any, order: int) -> None:
    n = 5_000
    lower = np.arange(n, dtype=np.int64) * 100
    known = np.ones(n, np.uint8)
    zones = rows.Zones(
        rows.KIND_I64, 0, n, lower, None, lower + 99, None, known, claimed_order=order
    )
    literal = (1, np.array([n * 50], np.int64), None)
    verdict = benchmark(zones.probe, rows.OP_EQ, literal)
    assert sum(outcome & rows.MAY_TRUE != 0 for outcome in verdict) == 1


def _selection(share: float) -> rows.RowRanges:
    return rows.RowRanges.from_bitmap(
        np.packbits(RANDOM.random(N) < share, bitorder="little"), 0, N
    )


@pytest.mark.parametrize("share", [0.5, 0.1, 0.001])
def test_intersection(benchmark: Any, share: float) -> None:
    one, other = _selection(share), _selection(share)
    benchmark(lambda: one & other)


@pytest.mark.parametrize("share", [0.5, 0.001])
def test_union(benchmark: Any, share: float) -> None:
    one, other = _selection(share), _selection(share)
    benchmark(lambda: one | other)


@pytest.mark.parametrize("share", [0.5, 0.001])
def test_refine(benchmark: Any, share: float) -> None:
    whole = rows.RowRanges.all(N)
    mask = np.packbits(RANDOM.random(N) < share, bitorder="little").tobytes()
    benchmark(whole.refine, mask)


def test_compare(benchmark: Any) -> None:
    values = RANDOM.integers(0, 1_000, N)
    literal = (1, np.array([500], np.int64), None)
    benchmark(rows.compare, rows.KIND_I64, 0, N, None, values, None, rows.OP_LT, False, literal)
