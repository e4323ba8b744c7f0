"""A file with columns of every type, and the answers of prepared queries compared with those of scans."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps

N = 3_000
UTC = dt.UTC


def column(kind: str, i: int) -> Any:
    """A value of a column, of which each occurs some times."""
    j = i * 7919 % 401
    if j % 13 == 0:
        return None
    day = dt.date(2020, 1, 1) + dt.timedelta(j)
    made: dict[str, Any] = {
        "i8": j % 256 - 128, "u8": j % 256, "i16": j * 80 - 16_000, "u16": j * 160, "i32": j * 10**6 - 2 * 10**8,
        "u32": j * 10**7, "i64": j * 10**15 - 10**17, "u64": j * 4 * 10**16,
        "f16": j / 4, "f32": j / 3, "f64": (j - 200) / 3 if j % 11 else float("nan"), "bool": j % 3 == 0,
        "text": f"text {j}", "large": f"large {j}", "view": f"view {j} of some length", "bytes": b"\xff%d" % j,
        "fixed": b"%04d" % j, "d32": Decimal(j) / 100, "d128": Decimal(j) * 10**20 / 1000, "d256": Decimal(j) * 10**40,
        "date": day, "ms": dt.datetime(2020, 1, 1) + dt.timedelta(milliseconds=j * 7),
        "us": dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=j * 7), "ns": dt.datetime(2020, 1, 1, 0, 0, 0, j),
        "utc": dt.datetime(2020, 1, 1, tzinfo=UTC) + dt.timedelta(seconds=j), "time": dt.time(1, 2, 3, j),
        "time_ms": dt.time(1, j % 60), "span": dt.timedelta(microseconds=j), "coded": f"coded {j % 30}",
        "uuid": uuid.UUID(int=j), "sorted": i // 3,
    }  # fmt: skip
    return made[kind]


TYPES = {
    "i8": pa.int8(), "u8": pa.uint8(), "i16": pa.int16(), "u16": pa.uint16(), "i32": pa.int32(), "u32": pa.uint32(),
    "i64": pa.int64(), "u64": pa.uint64(), "f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64(),
    "bool": pa.bool_(), "text": pa.string(), "large": pa.large_string(), "view": pa.string_view(), "bytes": pa.binary(),
    "fixed": pa.binary(4), "d32": pa.decimal128(7, 2), "d128": pa.decimal128(30, 3), "d256": pa.decimal256(60, 0),
    "date": pa.date32(), "ms": pa.timestamp("ms"), "us": pa.timestamp("us"), "ns": pa.timestamp("ns"),
    "utc": pa.timestamp("us", "UTC"), "time": pa.time64("us"), "time_ms": pa.time32("ms"), "span": pa.duration("us"),
    "coded": pa.dictionary(pa.int32(), pa.string()), "uuid": pa.uuid(), "sorted": pa.int64(),
}  # fmt: skip

# values of all sorts, compared with each column
ODD: list[Any] = [
    None, 0, -1, 1, 5, 300, -129, 2**31, 2**63, 2**64, 2.5, 3.0, 0.0, -0.0, float("nan"), float("inf"), 1 / 3, True,
    "text 7", "2020-02-03", "coded 7", "", b"0007", b"\xff7", Decimal("0.07"), Decimal("0.071"), Decimal(10) ** 40,
    dt.date(2020, 1, 8), dt.datetime(2020, 1, 1, 0, 0, 0, 7000), dt.datetime(2020, 1, 1, 0, 0, 0, 7),
    dt.datetime(2020, 1, 1, 0, 0, 7, tzinfo=UTC), dt.time(1, 7), dt.time(1, 2, 3, 7), dt.timedelta(microseconds=7),
    np.int8(5), np.float32(1 / 3), np.datetime64("2020-01-08"), np.datetime64("NaT"), pa.scalar(5, pa.int16()),
    pa.scalar(None, pa.int64()), pa.scalar("text 7"), uuid.UUID(int=7), [1], object,
]  # fmt: skip


def made() -> pa.Table:
    columns = {}
    for kind, of in TYPES.items():
        values = [column(kind, i) for i in range(N)]
        if kind == "uuid":
            stored = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
            columns[kind] = pa.ExtensionArray.from_storage(pa.uuid(), stored)
        elif kind == "f16":
            columns[kind] = pa.array([None if v is None else np.float16(v) for v in values], of)
        elif kind == "coded":
            columns[kind] = pa.array(values).dictionary_encode()
        else:
            columns[kind] = pa.array(values, of)
    columns["list"] = pa.array([[i % 5, i % 7] for i in range(N)])
    columns["struct"] = pa.array([{"a": i % 401, "b": [str(i)]} for i in range(N)])
    return pa.table(columns)


def answer(read: Callable[[], pa.Table]) -> Any:
    try:
        return read()
    except (ps.PageseekError, TypeError) as error:
        return type(error), str(error)


def same(query: Callable[[], pa.Table], plain: Callable[[], pa.Table]) -> None:
    """Both give the same rows with the same schema, or the same error."""
    ours, theirs = answer(query), answer(plain)
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple), theirs
        assert ours[0] is theirs[0]
        assert ours[1].endswith(theirs[1])
        return
    assert not isinstance(ours, tuple), ours
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    ours.validate(full=True)
    equal = ours.combine_chunks().equals(theirs.combine_chunks())
    assert equal or repr(ours.to_pylist()) == repr(theirs.to_pylist())  # NaN


FLAT = [kind for kind in TYPES if kind != "coded"]  # which the core reads by one call


def point_table(query: Any, **values: Any) -> Any:
    """The answer by one call of the core; None where the query goes the way of every scan."""
    return None if query._points is None else query._points.table(values)


def expected(query: Any, keys: list[Any], name: str = "key_place") -> pa.Table:
    tables = []
    for i, key in enumerate(keys):
        table = query(key) if not isinstance(key, dict) else query(**key)
        places = pa.array([i] * table.num_rows, pa.int64())
        tables.append(table.add_column(0, pa.field(name, pa.int64(), nullable=False), places))
    schemas_differ = any(table.schema != tables[0].schema for table in tables)
    return pa.concat_tables(tables, promote_options="permissive" if schemas_differ else "none")


def written(at: Path) -> Path:
    """The file of all types."""
    pq.write_table(
        made(), at, row_group_size=1_100, write_page_index=True, max_rows_per_page=100,
        use_dictionary=["coded", "d32"], compression="zstd",
    )  # fmt: skip
    return at
