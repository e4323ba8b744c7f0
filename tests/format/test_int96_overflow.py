"""INT96 at the limits of 64 bits: a timestamp that does not fit is an error, never another time."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import pageseek as ps
from support.writer import INT96, Column, write

EPOCH, DAY = 2_440_588, 86_400 * 10**9  # Julian day of 1970-01-01; nanoseconds
LEAST, MOST = -(1 << 63), (1 << 63) - 1
UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000}


def stored(nanos: int, day: int) -> bytes:
    return struct.pack("<qI", nanos, day)


def read(value: bytes, unit: str, **how: Any) -> int:
    found = ps.read_table(write([Column("t", INT96, [value])]), int96_unit=unit, **how)["t"]
    assert found.type.unit == unit
    return int(found.cast("int64")[0].as_py())


@pytest.mark.covering(2)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("nanos", [LEAST, LEAST + 1, -DAY - 1, -1, 0, DAY - 1, DAY, MOST - 1, MOST])
@pytest.mark.parametrize(
    "days", [-2_440_588, -106_752, -106_751, -1, 0, 1, 106_751, 106_752, 213_503]
)
def test_a_timestamp_is_what_it_says_or_an_error(unit: str, nanos: int, days: int) -> None:
    wanted = (days * DAY + nanos) // UNITS[unit]
    value = stored(nanos, EPOCH + days)
    if LEAST <= wanted <= MOST:
        assert read(value, unit) == wanted
    else:
        with pytest.raises(ps.LimitError, match="int96_unit" if unit == "ns" else "INT96"):
            read(value, unit)


def test_before_1970_with_nanoseconds_far_below_zero_is_not_the_year_2262() -> None:
    with pytest.raises(ps.LimitError, match='int96_unit="us"'):
        read(stored(LEAST, EPOCH - 1), "ns")
    assert read(stored(LEAST, EPOCH - 1), "us") == (LEAST - DAY) // 1000
