"""Small files of many kinds for conditions in SQL."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.sql_doors import settings

_NAN, _INF = float("nan"), float("inf")
_CLOCK = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 5), dt.datetime(2024, 1, 1),
    dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 3, 10, 7, 30), dt.datetime(2024, 11, 3, 1, 30), dt.datetime(2024, 11, 3, 6, 30),
    dt.datetime(1900, 1, 1), dt.datetime(1883, 11, 18, 12), dt.datetime(2100, 7, 1, 4, 0, 0, 123456), None,
]  # fmt: skip
_KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 5, 127, None]),
    "i16": (pa.int16(), [-32768, 0, 1, 32767, None]),
    "i32": (pa.int32(), [-(2**31), -2, 0, 1, 3, 16777217, 2**31 - 1, None]),
    "i64": (pa.int64(), [-(2**63), -2, 0, 1, 2**53 + 1, 2**63 - 1, None]),
    "f32": (pa.float32(), [0.1, 0.5, 1.0, -0.0, 0.0, 16777216.0, _NAN, _INF, -_INF, None]),
    "f64": (pa.float64(), [0.1, 0.5, 1.0, -0.0, 0.0, 1.1, 2.0**53, _NAN, _INF, -_INF, 1e300, None]),
    "d92": (pa.decimal128(9, 2), [Decimal("0.10"), Decimal("1.10"), Decimal(1), Decimal("-2.50"), Decimal("9999999.99"), None]),
    "d3818": (pa.decimal128(38, 18), [Decimal("0.1"), Decimal("1.100000000000000001"), Decimal(-3), None]),
    "s": (pa.string(), ["a", "a ", "A", "", "a_b", "axb", "a%b", "a\\b", "it's", "é", "😀", "5", "5.0", None]),
    "b": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 3, 10), dt.date(1883, 11, 18), None]),
    "ts": (pa.timestamp("us", "UTC"), [t and t.replace(tzinfo=dt.UTC) for t in _CLOCK]),
    "ntz": (pa.timestamp("us"), _CLOCK),
    "raw": (pa.binary(), [b"a", b"\x00\xff", b"", b"ab", None]),
    "with dot.": (pa.int64(), [1, 5, None]),
}  # fmt: skip


def write_files(spark: Any, folder: Path) -> dict[str, str]:
    """The files, by their kinds: all types, INT96, two calendars, types that Spark's own schema tells, and a folder of several files."""
    rng, made = random.Random(7), {}
    tables = [_table(rng, 97, first) for first in (0, 97, 194)]
    told = {
        "row_group_size": 40,
        "write_page_index": True,
        "data_page_size": 128,
        "write_batch_size": 8,
    }
    pq.write_table(tables[0], folder / "types.parquet", **told)
    times = tables[1].select(["id", "i32", "ts", "day", "s"])
    pq.write_table(
        times, folder / "int96.parquet", use_deprecated_int96_timestamps=True, row_group_size=30
    )
    many = folder / "many"
    for i, table in enumerate(tables):
        (many / f"part={i}").mkdir(parents=True)
        pq.write_table(table, many / f"part={i}" / "0.parquet", **told)
    made = {"types": "types.parquet", "int96": "int96.parquet", "many": "many"}
    old = (
        "1500-03-01",
        "0001-01-05",
        "1582-10-04",
        "1582-10-15",
        "1000-02-28",
        "1883-11-18",
        "2024-02-29",
    )
    for mode in ("LEGACY", "CORRECTED"):
        keys = ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite")
        with settings(
            spark,
            {f"spark.sql.parquet.{key}": mode for key in keys}
            | {"spark.sql.session.timeZone": "UTC"},
        ):
            lines = " union all ".join(
                f"select {i} id, date '{v}' d, timestamp '{v} 12:34:56.789' t, timestamp_ntz '{v} 01:00:00' n, "
                f"named_struct('d', date '{v}', 'n', {i}) st" for i, v in enumerate(old)
            )  # fmt: skip
            spark.sql(lines).coalesce(1).write.parquet(str(folder / mode.lower()))
        made[mode.lower()] = mode.lower()
    with settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):
        spark.sql(
            "select id, cast(concat('c', id % 5) as char(4)) c, cast(concat('v', id % 7) as varchar(6)) v, "
            "cast(id * 1.25 as decimal(12,3)) d, make_dt_interval(id % 3) i, timestamp_micros(id * 3600000000) t "
            "from range(0, 60, 1, 2)"
        ).write.parquet(str(folder / "told"))
    return {name: str(folder / path) for name, path in {**made, "told": "told"}.items()}


def _table(rng: random.Random, rows: int, first: int) -> pa.Table:
    columns: dict[str, Any] = {"id": pa.array(range(first, first + rows))}
    for name, (kind, values) in _KINDS.items():
        columns[name] = pa.array([rng.choice(values) for _ in range(rows)], kind)
    inner = [
        {"a": rng.choice([1, 2, None]), "B": {"c": rng.choice(["x", "y", None])}}
        for _ in range(rows)
    ]
    columns["st"] = pa.array(
        [rng.choice([one, one, None]) for one in inner],
        pa.struct([("a", pa.int64()), ("B", pa.struct([("c", pa.string())]))]),
    )
    columns["list"] = pa.array([[n, None] for n in range(rows)], pa.list_(pa.int32()))
    return pa.table(columns)
