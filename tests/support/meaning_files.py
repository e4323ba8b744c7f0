"""Files with the values that tell one meaning of a filter from another, and filters that this package refuses by itself."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
CLOCK = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    dt.datetime(1970, 1, 1, 5),
    dt.datetime(2024, 1, 1),
    dt.datetime(2024, 1, 1, 5),
    dt.datetime(2024, 1, 1, 0, 0, 0, 123456),
    dt.datetime(2024, 1, 1, 5, 0, 0, 123456),
    dt.datetime(2024, 3, 10, 2, 30),  # left out in New York
    dt.datetime(2024, 3, 10, 3, 30),
    dt.datetime(2024, 3, 10, 7, 30),
    dt.datetime(2024, 11, 3, 1, 30),  # twice in New York
    dt.datetime(2024, 11, 3, 5, 30),
    dt.datetime(2024, 11, 3, 6, 30),
    dt.datetime(1900, 1, 1, 4, 56, 2),
    dt.datetime(1883, 1, 1),
    dt.datetime(1883, 1, 1, 4, 56, 2),
    dt.datetime(2100, 7, 1, 4),
    None,
]
TEXTS = ["a", "a ", " a", "A", "", "a_b", "axb", "a%b", "a\\b", "a\\_b", "it's", "its", 'say "x"', "a\tb", "é", "😀", "5", "5.0", "null", None]  # fmt: skip
BIG = 2**53 + 1
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 2, 5, 127, None]),
    "i16": (pa.int16(), [-(2**15), 0, 1, 2, 2**15 - 1, None]),
    "i32": (pa.int32(), [-(2**31), -2, 0, 1, 2, 3, 16777216, 16777217, 2**31 - 1, None]),
    "i64": (pa.int64(), [-(2**63), -2, 0, 1, 2, BIG - 1, BIG, BIG + 1, 2**63 - 1, 10**15, None]),
    "u8": (pa.uint8(), [0, 1, 255, None]),
    "u32": (pa.uint32(), [0, 1, 2**32 - 1, None]),
    "f32": (pa.float32(), [0.1, 0.5, 1.0, 2.0, -0.0, 16777216.0, NAN, INF, -INF, None]),
    "f64": (pa.float64(), [0.1, 0.5, 1.0, 2.0, 0.0, -0.0, 1.1, float(BIG - 1), NAN, INF, -INF, 1e300, None]),
    "d92": (pa.decimal128(9, 2), [Decimal("0.10"), Decimal("1.10"), Decimal(1), Decimal("-2.50"), Decimal("9999999.99"), None]),
    "d2010": (pa.decimal128(20, 10), [Decimal("0.1"), Decimal("0.1000000001"), Decimal("1.1"), Decimal(2), None]),
    "d3818": (pa.decimal128(38, 18), [Decimal("0.1"), Decimal("1.1"), Decimal("1.100000000000000001"), Decimal("1.1000000000000001"), Decimal("1.1000000000000002"), Decimal(-3), None]),
    "d380": (pa.decimal128(38, 0), [Decimal(0), Decimal(2), Decimal(10**37), Decimal(BIG), None]),
    "s": (pa.string(), TEXTS),
    "b": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 3, 10), dt.date(2024, 11, 3), dt.date(1883, 1, 1), None]),
    "ts": (pa.timestamp("us", "UTC"), [t and t.replace(tzinfo=UTC) for t in CLOCK]),
    "ms": (pa.timestamp("ms", "UTC"), [t and t.replace(tzinfo=UTC, microsecond=0) for t in CLOCK]),
    "ntz": (pa.timestamp("us"), CLOCK),
    "Mixed": (pa.int64(), [1, 2, None]),
    "with.dot": (pa.int64(), [1, 5, None]),
    "bytes": (pa.binary(), [b"a", b"\x00\xff", b"", None]),
    "st": (pa.struct([("A", pa.int64()), ("b", pa.struct([("C", pa.string())]))]), [{"A": 1, "b": {"C": "x"}}, {"A": 2, "b": None}, None]),
    "with": (pa.struct([("dot", pa.int64())]), [{"dot": 1}, {"dot": 7}, None]),
    "list": (pa.list_(pa.decimal128(5, 2)), [[Decimal("1.50")], [Decimal("0.10"), None], [], None]),
}  # fmt: skip

# Of these Spark takes some, and answers by casts that are not repeated here.
REFUSED = r"""
i32 = '1'
s = 5
s = 5.0
s > 4
b = 'true'
b = 1
d92 = '0.10'
f64 = '0.1'
s like 'a\\b'
s like 'a\\'
i32 like '1%'
bytes = 'a'
ts = 5
day = 5
i32 = date '2024-01-01'
s = date '2024-01-01'
f64 > 1e400
d92 > 99999999999999999999999999999999999999999
d380 = 1.5
d92 = 0.0000000000000000000000000000000000001
i64 = f64
i32 = f32
d92 = f64
d3818 = d380
1 = '1'
ntz = '2024-01-01 00:00:00Z'
ntz = ts
day = ts
ts = 'tomorrow'
day = '2024'
`st.A` = 1
"a" = 1
s ilike 'x%'
i32 = :k
i32 = ?
bytes = uuid '550e8400-e29b-41d4-a716-446655440000'
""".strip().splitlines()  # fmt: skip

IN_TEXTS = ["ts in ('2024-01-01')", "day in ('2024-01-01')", "day in ('2024-01-01 05:00:00')"]
IN_A_GAP = [
    "ntz = timestamp '2024-03-10 03:30:00'",
    "ntz <= timestamp '2024-03-10 03:10:00'",
    "ntz = timestamp '2024-11-03 05:30:00Z'",
]


def write_all(folder: Path) -> str:
    """A file in which every value of every column comes with various values of the others."""
    n, made = 61, folder / "all.parquet"
    table = {"id": pa.array(range(n))}
    for name, (kind, values) in COLUMNS.items():
        table[name] = pa.array([values[i % len(values)] for i in range(n)], kind)
    pq.write_table(pa.table(table), made, row_group_size=20, data_page_size=64, write_batch_size=4)
    return str(made)


def write_int96(folder: Path) -> str:
    """The times in INT96, the physical type that Spark writes."""
    made = folder / "int96.parquet"
    table = pa.table({"id": range(len(CLOCK)), "ts": pa.array(CLOCK, pa.timestamp("us", "UTC"))})
    pq.write_table(table, made, use_deprecated_int96_timestamps=True)
    return str(made)
