"""Scattered rows: decoding what a selection chooses, beside decoding it all and filtering.

The chunk is uncompressed and in memory. `filtered` is this package's own full decode, then pyarrow's filter.
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

N = 1_000_000
SEED = 11
Dice = np.random.Generator


def _nulls(dice: Dice) -> npt.NDArray[np.bool_]:
    return dice.random(N) < 0.1


def _texts() -> list[str]:
    return [f"text {i * 7919 % N} of the row" for i in range(N)]


COLUMNS: dict[str, Callable[[Dice], pa.Array]] = {
    "int32": lambda dice: pa.array(dice.integers(0, 1 << 30, N), pa.int32()),
    "int64": lambda dice: pa.array(dice.integers(0, 1 << 40, N)),
    "double": lambda dice: pa.array(dice.random(N)),
    "string": lambda _: pa.array(_texts()),
    "bool": lambda dice: pa.array(dice.random(N) < 0.5),
    "int64-nulls": lambda dice: pa.array(dice.integers(0, 1 << 40, N), mask=_nulls(dice)),
    "string-nulls": lambda dice: pa.array(_texts(), mask=_nulls(dice)),
    "bool-nulls": lambda dice: pa.array(dice.random(N) < 0.5, mask=_nulls(dice)),
    "int64-dictionary": lambda dice: pa.array(dice.integers(0, 1000, N)),
    "string-dictionary": lambda dice: pa.array([f"city {i}" for i in range(500)]).take(
        pa.array(dice.integers(0, 500, N))
    ),
    "string-dictionary-nulls": lambda dice: pa.array([f"city {i}" for i in range(500)]).take(
        pa.array(dice.integers(0, 500, N), mask=_nulls(dice))
    ),
}
SHARES = [0.5, 0.1, 0.01, 0.001]
Decode = Callable[[rows.RowRanges], list[pa.Array]]


@pytest.fixture(scope="module", params=COLUMNS)
def decode(request: pytest.FixtureRequest, decode_of: Callable[[bytes], Decode]) -> Decode:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"a": COLUMNS[request.param](np.random.default_rng(SEED))}),
        sink,
        compression="none",
        use_dictionary="dictionary" in request.param,
        write_page_index=True,
        row_group_size=N,
    )
    return decode_of(sink.getvalue())


def _mask(share: float) -> npt.NDArray[np.bool_]:
    return np.random.default_rng(SEED).random(N) < share


def _bits(mask: npt.NDArray[np.bool_]) -> bytes:
    return np.packbits(mask, bitorder="little").tobytes()


@pytest.mark.parametrize("share", SHARES)
def test_selected(benchmark: Any, decode: Decode, share: float) -> None:
    mask = _mask(share)
    selection = rows.RowRanges.from_bitmap(_bits(mask), 0, N)
    assert sum(map(len, benchmark(decode, selection))) == int(mask.sum())


@pytest.mark.parametrize("share", SHARES)
def test_filtered(benchmark: Any, decode: Decode, share: float) -> None:
    mask = pa.array(_mask(share))

    def filtered() -> list[pa.Array]:
        return [array.filter(mask) for array in decode(rows.RowRanges.all(N))]

    assert sum(map(len, benchmark(filtered))) == mask.true_count


def test_one_range(benchmark: Any, decode: Decode) -> None:
    selection = rows.RowRanges(((N // 3, N // 3 + N // 100),))
    assert sum(map(len, benchmark(decode, selection))) == N // 100


GATHERED: dict[str, tuple[int, Callable[[Dice], pa.Array]]] = {
    "int64": (rows.KIND_I64, COLUMNS["int64"]),
    "int64-nulls": (rows.KIND_I64, COLUMNS["int64-nulls"]),
    "string": (rows.KIND_BYTES, COLUMNS["string"]),
    "bool": (rows.KIND_BOOL, COLUMNS["bool"]),
}
SIZES = [(1000, 0.001), (1000, 0.1), (N, 0.001), (N, 0.1), (N, 0.5)]


@pytest.mark.parametrize(("n", "share"), SIZES)
@pytest.mark.parametrize("name", GATHERED)
def test_gather(benchmark: Any, name: str, n: int, share: float) -> None:
    kind, make = GATHERED[name]
    array = make(np.random.default_rng(SEED))[:n]
    bits, count = _bits(_mask(share)[:n]), int(_mask(share)[:n].sum())

    def gather() -> Any:
        buffers = array.buffers()
        offsets = buffers[1] if len(buffers) == 3 else None
        return rows.gather(kind, 0, n, buffers[0], buffers[-1], offsets, bits, count)

    assert benchmark(gather)[0] == count


@pytest.mark.parametrize(("n", "share"), SIZES)
@pytest.mark.parametrize("name", GATHERED)
def test_gather_by_pyarrow(benchmark: Any, name: str, n: int, share: float) -> None:
    array = GATHERED[name][1](np.random.default_rng(SEED))[:n]
    bits, count = pa.py_buffer(_bits(_mask(share)[:n])), int(_mask(share)[:n].sum())

    def gather() -> pa.Array:
        return array.filter(pa.BooleanArray.from_buffers(pa.bool_(), n, [None, bits]))

    assert len(benchmark(gather)) == count
