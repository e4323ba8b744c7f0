"""Rows of arrays by mask and by index, compared with pyarrow's filter and take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pageseek._core import rows
from support.pages import masks

ARRAYS: dict[str, tuple[int, int, Callable[[np.random.Generator, int], pa.Array]]] = {
    "bool": (0, 0, lambda dice, n: pa.array(dice.random(n) < 0.4)),
    "int8": (1, 0, lambda dice, n: pa.array(dice.integers(-9, 9, n), pa.int8())),
    "int16": (2, 0, lambda dice, n: pa.array(dice.integers(-9, 9, n), pa.int16())),
    "int32": (3, 0, lambda dice, n: pa.array(dice.integers(-9, 9, n), pa.int32())),
    "double": (11, 0, lambda dice, n: pa.array(dice.random(n))),
    "decimal": (12, 0, lambda dice, n: pa.array(dice.integers(0, 9, n)).cast(pa.decimal128(38, 0))),
    "decimal256": (13, 0, lambda dice, n: pa.array(dice.integers(0, 9, n)).cast(pa.decimal256(50, 0))),
    "fixed": (16, 5, lambda dice, n: pa.array([b"%05d" % i for i in dice.integers(0, 99, n)], pa.binary(5))),
    "string": (14, 0, lambda dice, n: pa.array(["y" * int(i % 40) for i in dice.integers(0, 99, n)], pa.string())),
    "large": (15, 0, lambda dice, n: pa.array(["z" * int(i % 7) for i in dice.integers(0, 99, n)], pa.large_string())),
}  # fmt: skip
SIZES = (0, 1, 5, 63, 64, 65, 200, 3000)


def gathered(array: pa.Array, name: str, chosen: Any, count: int, **how: Any) -> pa.Array:
    kind, width, _ = ARRAYS[name]
    buffers = array.buffers()
    n, nulls, validity, offsets, values = rows.gather(
        kind, width, len(array), buffers[0], buffers[-1],
        buffers[1] if len(buffers) == 3 else None, chosen, count, **how,
    )  # fmt: skip
    made = [b if b is None else pa.py_buffer(b) for b in (validity, offsets, values)]
    if offsets is None:
        del made[1]
    assert all(b is None or b.address % 64 == 0 for b in made)
    found = pa.Array.from_buffers(array.type, n, made, nulls)
    found.validate(full=True)
    assert found.null_count == nulls
    return found


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("share_of_nulls", [0.0, 0.3, 1.0])
def test_gather_is_filter_and_take(name: str, share_of_nulls: float) -> None:
    dice = np.random.default_rng(5)
    for n in SIZES:
        array = ARRAYS[name][2](dice, n)
        if share_of_nulls:
            absent = pa.array(dice.random(n) < share_of_nulls)
            array = pc.if_else(absent, pa.scalar(None, array.type), array)
        empty = np.zeros(n, np.bool_)
        for mask in [empty, ~empty, *(masks(n, dice) if n else [])]:
            count = int(mask.sum())
            wanted = array.filter(pa.array(mask))
            start = int(dice.integers(0, 20))
            bits = np.packbits(
                np.concatenate([np.ones(start, np.bool_), mask, [True] * 9]), bitorder="little"
            )
            for found in (
                gathered(array, name, np.packbits(mask, bitorder="little"), count),
                gathered(array, name, bits, count, start=start),
                gathered(array, name, np.flatnonzero(mask), count, places=True),
            ):  # fmt: skip
                assert found.equals(wanted)
        if n:
            places = dice.integers(0, n, n + 7)
            found = gathered(array, name, places, n + 7, places=True)
            assert found.equals(array.take(pa.array(places)))


def test_gather_refuses_what_does_not_fit() -> None:
    bits, eight = b"\x0f", np.arange(8, dtype=np.int64)
    ok: dict[str, Any] = {
        "kind": rows.KIND_I64, "width": 0, "n": 8, "validity": b"\xff", "values": eight,
        "offsets": None, "chosen": bits, "count": 4,
    }  # fmt: skip
    assert np.frombuffer(rows.gather(**ok)[4], np.int64).tolist() == [0, 1, 2, 3]
    for wrong in (
        {"n": 9}, {"n": -1}, {"count": 3}, {"count": 5}, {"count": -1}, {"validity": b""}, {"start": 1},
        {"start": -1}, {"values": eight[:7]}, {"chosen": b""}, {"chosen": eight, "count": 9, "places": True},
        {"chosen": eight + 1, "count": 8, "places": True}, {"chosen": eight - 1, "count": 8, "places": True},
        {"kind": rows.KIND_FIXED, "width": 9}, {"kind": rows.KIND_FIXED, "width": -1},
        {"n": 1 << 62}, {"count": 1 << 62, "places": True, "chosen": eight},
    ):  # fmt: skip
        with pytest.raises(rows.CoreError):
            rows.gather(**{**ok, **wrong})
    strings = {**ok, "kind": rows.KIND_BYTES, "values": b"abcdef", "n": 4}
    for offsets in ([0, 1, 2, 3], [0, 2, 1, 3, 4], [-1, 0, 1, 2, 3], [0, 1, 2, 3, 7]):
        with pytest.raises(rows.CoreError):
            rows.gather(**{**strings, "offsets": np.array(offsets, np.int32)})
    with pytest.raises(rows.CoreError, match="do not fit"):
        rows.gather(**{**strings, "values": bytes(1 << 20), "n": 1, "validity": None,
                       "offsets": np.array([0, 1 << 20], np.int32),
                       "chosen": np.zeros(2048, np.int64), "count": 2048, "places": True})  # fmt: skip
