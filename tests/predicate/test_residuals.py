"""Comparisons of two columns, and other residuals: exact across types, and evaluated after cheaper tests."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.conditions import OPS

NAN = float("nan")


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_index=True, **options)
    return sink.getvalue()


def found(data: bytes, condition: Any, **options: Any) -> list[int]:
    scan = ps.scan(data, columns=[], filter=condition, **options)
    return list(scan.with_row_number("row").to_table()["row"].to_pylist())


EDGES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i64": (pa.int64(), [None, 0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) + 1]),
    "i8": (pa.int8(), [None, 0, 1, -1, 127, -128]),
    "u64": (pa.uint64(), [None, 0, 1, 2**53 + 1, 2**63, 2**64 - 1]),
    "u32": (pa.uint32(), [None, 0, 1, 2**32 - 1]),
    "f64": (
        pa.float64(),
        [None, NAN, 0.0, -0.0, 1.0, 1.5, -1.5, 2.0**53, 2.0**63, -(2.0**63), 2.0**64, 1e300,
         float("inf"), -float("inf"), 0.1, 1.005],
    ),
    "f32": (pa.float32(), [None, NAN, 0.0, 1.0, 1.5, 2.0**63, float("inf")]),
    "f16": (pa.float16(), [None, NAN, 0.0, 1.0, 1.5]),
    "d2": (
        pa.decimal128(20, 2),
        [None, Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("0.10"), Decimal(2**53)],
    ),
    "d10": (pa.decimal128(38, 30), [None, Decimal("0.1"), Decimal("1.005"), Decimal("1.5")]),
    "d76": (pa.decimal256(76, 0), [None, Decimal(1), Decimal(10**75), Decimal(2**63), Decimal(2**64)]),
}  # fmt: skip


def number(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return value
    return Fraction(value)


def truth(op: str, x: Any, y: Any, nan: str) -> bool | None:
    if x is None or y is None:
        return None
    x, y = number(x), number(y)
    if nan == "spark":
        x, y = ((1, 0) if v != v else (0, v) for v in (x, y))
    return bool(OPS[op](x, y))


@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize(("one", "other"), [*itertools.product(EDGES, repeat=2)])
def test_numbers_are_compared_exactly(one: str, other: str, nan: str) -> None:
    pairs = list(itertools.product(EDGES[one][1], EDGES[other][1]))
    arrays = []
    for k, name in enumerate((one, other)):
        values = [pair[k] for pair in pairs]
        if name == "f16":
            values = [None if v is None else np.float16(v) for v in values]
        arrays.append(pa.array(values, EDGES[name][0]))
    data = written(pa.table(arrays, names=["x", "y"]))
    x, y = ps.col("x"), ps.col("y")
    for op, apply in OPS.items():
        wanted = [truth(op, a, b, nan) for a, b in pairs]
        test = apply(x, y)
        assert found(data, test, nan=nan) == [k for k, w in enumerate(wanted) if w is True], op
        assert found(data, ~test, nan=nan) == [k for k, w in enumerate(wanted) if w is False], op


FAR = 9_000_000_000_000_000_000
TIMES = {
    "ms": pa.array([None, 0, 1, 1000, -1, FAR], pa.timestamp("ms")),
    "us": pa.array([None, 0, 1, 10**6, -1, FAR], pa.timestamp("us")),
    "ns": pa.array([None, 0, 1, 10**9, -1, -FAR], pa.timestamp("ns")),
    "date": pa.array([None, 0, 1, -1, 2**31 - 1], pa.date32()),
}


def seconds(array: pa.Array, k: int) -> Fraction | None:
    if not array[k].is_valid:
        return None
    per = {"ms": 10**3, "us": 10**6, "ns": 10**9}
    if pa.types.is_date(array.type):
        return Fraction(array[k].value * 86400)
    return Fraction(array[k].value, per[array.type.unit])


@pytest.mark.parametrize(("one", "other"), [*itertools.product(TIMES, repeat=2)])
def test_times_of_other_units(one: str, other: str) -> None:
    a, b = TIMES[one], TIMES[other]
    pairs = list(itertools.product(range(len(a)), range(len(b))))
    x, y = a.take(pa.array([p[0] for p in pairs])), b.take(pa.array([p[1] for p in pairs]))
    data = written(pa.table({"x": x, "y": y}))
    for op, apply in OPS.items():
        wanted = [truth(op, seconds(x, k), seconds(y, k), "ieee") for k in range(len(pairs))]
        got = found(data, apply(ps.col("x"), ps.col("y")))
        assert got == [k for k, w in enumerate(wanted) if w], op


@pytest.mark.parametrize(
    ("kind", "other", "values"),
    [
        (pa.string(), pa.large_string(), [None, "", "a", "é", "\uffff", "😀", "ab"]),
        (pa.binary(), pa.large_binary(), [None, b"", b"a", b"\x80", b"\xff", b"ab"]),
        (pa.binary(2), pa.binary(), [None, b"ab", b"a\xff", b"\0\0"]),
        (pa.bool_(), pa.bool_(), [None, True, False]),
        (pa.time64("us"), pa.time32("ms"), [None, dt.time(0), dt.time(12, 30)]),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "Asia/Tokyo"), [None, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC)]),
        (pa.duration("us"), pa.duration("ns"), [None, dt.timedelta(0), dt.timedelta(-1)]),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), [None, "a", "b"]),
    ],
)  # fmt: skip
def test_other_types(kind: pa.DataType, other: pa.DataType, values: list[Any]) -> None:
    pairs = list(itertools.product(values, repeat=2))
    table = pa.table(
        {"x": pa.array([p[0] for p in pairs], kind), "y": pa.array([p[1] for p in pairs], other)}
    )

    def key(value: Any) -> Any:
        return value.encode() if isinstance(value, str) else value

    for op, apply in OPS.items():
        wanted = [
            k for k, (a, b) in enumerate(pairs) if None not in (a, b) and apply(key(a), key(b))
        ]
        assert found(written(table), apply(ps.col("x"), ps.col("y"))) == wanted, op


def test_what_cannot_be_compared() -> None:
    table = pa.table(
        {
            "i": [1],
            "s": ["a"],
            "t": pa.array([1], pa.timestamp("us")),
            "z": pa.array([1], pa.timestamp("us", "UTC")),
            "b": [b"a"],
            "l": [[1]],
            "n": pa.nulls(1),
        }
    )
    data = written(table)
    for one, other in [("i", "s"), ("t", "i"), ("t", "z"), ("s", "b"), ("l", "i")]:
        with pytest.raises(ps.PredicateError, match=r"compare"):
            found(data, ps.col(one) < ps.col(other))
    assert found(data, ps.col("n") < ps.col("i")) == []
    assert found(data, ~(ps.col("n") < ps.col("i"))) == []


def table_of_runs() -> pa.Table:
    n = 1000
    return pa.table(
        {
            "k": range(n),
            "a": [k % 7 for k in range(n)],
            "b": [k % 5 if k % 3 else None for k in range(n)],
            "s": pa.StructArray.from_arrays([pa.array([k % 11 for k in range(n)])], ["x"]),
            "text": [f"row {k:04}" for k in range(n)],
        }
    )


def test_together_with_tests_that_prune() -> None:
    table = table_of_runs()
    data = written(table, row_group_size=250, data_page_size=64, write_batch_size=25)
    a, b, k = ps.col("a"), ps.col("b"), ps.col("k")
    both = (a < b) & (k >= 300) & (k < 400)
    scan = ps.scan(data, filter=both)
    rows = table.to_pylist()
    wanted = [
        r["k"] for r in rows if r["b"] is not None and r["a"] < r["b"] and 300 <= r["k"] < 400
    ]
    assert scan.to_table()["k"].to_pylist() == wanted
    report = scan.explain(analyze=True)
    assert report.rows.read <= 150
    assert found(data, (a < b) | (k == 5)) == [
        r["k"] for r in rows if (r["b"] is not None and r["a"] < r["b"]) or r["k"] == 5
    ]
    assert found(data, (ps.col("s.x") == a) & ps.col("text").like("%0_1")) == [
        r["k"]
        for r in rows
        if r["s"]["x"] == r["a"] and r["text"][-3] == "0" and r["text"][-1] == "1"
    ]
    assert (
        ps.scan(data, filter=a < b).limit(4).to_table()["k"].to_pylist()
        == [r["k"] for r in rows if r["b"] is not None and r["a"] < r["b"]][:4]
    )


def test_a_residual_needs_no_column_index() -> None:
    data = written(table_of_runs(), row_group_size=250)
    report = ps.scan(data, columns=["k"], filter=ps.col("a") < ps.col("b")).explain()
    assert report.row_groups.read == 4
    assert not report.row_groups.pruned_by


def test_plans_with_residuals_travel() -> None:
    data = written(table_of_runs(), row_group_size=250)
    plan = ps.scan(
        data, columns=["k"], filter=(ps.col("a") < ps.col("b")) & ps.col("text").like("%1_1")
    ).plan()
    there = pickle.loads(pickle.dumps(plan))
    assert list(there.execute()) == list(plan.execute())


def test_groups_of_structs_that_are_null() -> None:
    structs = [{"x": 1}, None, {"x": None}, {"x": 4}]
    table = pa.table({"s": structs, "a": [1, 1, 1, 5]})
    assert found(written(table), ps.col("s.x") <= ps.col("a")) == [0, 3]
    assert found(written(table), ~(ps.col("s.x") == ps.col("a"))) == [3]
