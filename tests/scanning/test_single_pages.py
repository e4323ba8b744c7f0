"""A single page: found by the offset index, and decompressed only up to its last selected row."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pageseek as ps
from pageseek._core import search
from support.opened import open_metadata
from support.writer import DOUBLE, INT32, INT64, Column, write

pytestmark = pytest.mark.usefixtures("scans")

N = 4_000


def test_every_place_in_every_layout() -> None:
    for cuts in itertools.product((0, 1, 2, 3), repeat=4):  # pages may be empty
        first = np.cumsum([0, *cuts], dtype=np.int64)
        at = np.arange(4, dtype=np.int64) * 100
        size = np.arange(4, dtype=np.int64) + 7
        n = int(first[-1])
        for start, stop in itertools.combinations(range(n + 1), 2):
            expected = [
                (p, 100 * p, 7 + p, int(first[p]), cuts[p])
                for p in range(4)
                if any(first[p] <= row < first[p + 1] for row in range(start, stop))
            ]
            assert search.locate(start, stop, first, at, size) == expected, (cuts, start, stop)


def test_places_need_arrays_that_fit() -> None:
    three = np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="n \\+ 1"):
        search.locate(0, 1, three, three, three)


def make(values: list[Any], physical: int, cut: bool, **knobs: Any) -> bytes:
    """One page of values; `cut`: with 40 bytes at its end that no codec can read."""
    made = [Column("x", physical, values, [len(values)], **knobs)]
    data = bytearray(write([*made, Column("row", INT64, list(range(len(values))))]))
    if cut:
        places = open_metadata(bytes(data)).offset_index(0, "x")
        assert places is not None
        stop = int(places.offset[0] + places.compressed_size[0])
        data[stop - 40 : stop] = b"\xff" * 40
    return bytes(data)


def pick(data: bytes, *places: int) -> list[Any]:
    found = ps.read_table(data, columns=["x"], filter=ps.col("row").isin(places))
    values: list[Any] = found["x"].to_pylist()
    return values


VALUES = {
    "int64": (INT64, [i * 2_654_435_761 % (1 << 40) for i in range(N)]),
    "int32": (INT32, [i * 40_503 % (1 << 30) for i in range(N)]),
    "double": (DOUBLE, [i * 0.7 for i in range(N)]),
}
NULLS = {
    "no nulls": lambda _: False,
    "some": lambda i: i % 7 == 3,
    "every second": lambda i: i % 2 == 1,
    "all but the last": lambda i: i < N - 1,
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("codec", ["snappy", "lz4_raw", "zstd", "gzip", "uncompressed"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("packed", [True, False])  # runs of single rows take more than is guessed
def test_rows_of_a_page_are_those_of_the_whole(
    codec: str, version: int, nulls: str, kind: str, packed: bool
) -> None:
    physical, values = VALUES[kind]
    rows = [None if NULLS[nulls](i) else v for i, v in enumerate(values)]
    data = make(rows, physical, False, codec=codec, version=version, packed=packed)
    for places in ((0,), (1, 2), (7,), (N // 2, N // 2 + 3), (3 * N // 4,), (N - 2,), (N - 1,)):
        assert pick(data, *places) == [rows[i] for i in places]
    assert ps.read_table(data, columns=["x"])["x"].to_pylist() == rows


@pytest.mark.parametrize("codec", ["snappy", "lz4_raw"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("nulls", ["no nulls", "some", "every second"])
def test_bytes_after_the_last_selected_row_are_not_decompressed(
    codec: str, version: int, nulls: str
) -> None:
    physical, values = VALUES["int64"]
    rows = [None if NULLS[nulls](i) else v for i, v in enumerate(values)]
    data = make(rows, physical, True, codec=codec, version=version, packed=True)
    for places in ((0,), (5, 9), (N // 3,)):
        assert pick(data, *places) == [rows[i] for i in places]
    with pytest.raises(ps.CorruptFileError, match="column 'x'"):
        pick(data, N - 1)
    with pytest.raises(ps.CorruptFileError, match="column 'x'"):
        ps.read_table(data)
