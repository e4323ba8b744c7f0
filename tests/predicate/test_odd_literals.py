"""Extreme literals and conditions: clear errors, and no time lost."""

from __future__ import annotations

import gc
import io
import pickle
import sys
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.predicate.expression import And, Or


def data(columns: int = 2, rows: int = 1_000) -> bytes:
    sink = io.BytesIO()
    table = pa.table({f"c{i}": np.arange(rows) for i in range(columns)})
    pq.write_table(table.append_column("s", pa.array(["x"] * rows)), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(2**31 - 1, pa.date32()),
        pa.scalar(2**63 - 1, pa.duration("s")),
        Decimal("snan"),
        Decimal("1e-999999"),
        "x" * 10_000_000,
        [10**5000],
    ],
    ids=["date", "duration", "signal", "exponent", "long", "list"],
)
def test_what_cannot_be_compared_is_said_in_few_words(value: Any) -> None:
    for condition in (ps.col("c0") == value, ps.col("c0") < value, ps.col("c0").isin([value] * 70)):
        with pytest.raises(ps.PredicateError, match="'c0' of type int64 cannot be compared") as hit:
            ps.read_table(data(), filter=condition)
        assert len(str(hit.value)) < 500


def test_an_integer_of_thousands_of_digits_is_shown_by_its_first_ones() -> None:
    with pytest.raises(ps.PredicateError, match=r"'s' of type string cannot .* 0x31e2\w{51}\.\.\."):
        ps.read_table(data(), filter=ps.col("s") == 10**5000)
    with pytest.raises(ps.PredicateError, match=r"like\(0x31e2"):
        ps.col("s").like(10**5000)  # type: ignore[arg-type]
    assert repr(ps.col("c0") < 10**5000).startswith("c0 < 0x31e2")


def test_a_time_that_python_does_not_hold_is_no_pattern() -> None:
    with pytest.raises(
        ps.PredicateError, match=r"like\(duration\[s\]\(4611686018427387904\)\): a str"
    ):
        ps.col("s").like(pa.scalar(2**62, pa.duration("s")))  # type: ignore[arg-type]


NULLS = [
    None,
    pa.scalar(None, pa.string()),
    np.datetime64("NaT"),
    np.timedelta64("NaT"),
    pd.NaT,
    pd.NA,
]


@pytest.mark.parametrize(
    "null", NULLS, ids=["None", "arrow", "datetime64", "timedelta64", "NaT", "NA"]
)
def test_a_null_is_no_prefix(null: Any) -> None:
    with pytest.raises(ps.PredicateError, match=r"starts_with\(.*\): a str or bytes"):
        ps.col("s").starts_with(null)
    query = ps.scan(data()).prepare(ps.col("s").starts_with(ps.param("p")))
    assert (query("x").num_rows, query(null).num_rows) == (1_000, 0)
    compared = ps.scan(data()).filter(ps.col("c0") == null)
    assert compared.count_rows() == 0
    assert "c0 = null" in str(compared.explain())


@pytest.mark.parametrize("value", [5, None, 3.5, pa.scalar(1)])
def test_one_value_is_no_list(value: Any) -> None:
    with pytest.raises(ps.PredicateError, match=r"isin\(.*\): give a list of values"):
        ps.col("c0").isin(value)


def test_a_view_of_memory_travels() -> None:
    plan = ps.scan(data(), filter=ps.col("c0") == 3).plan()
    assert pickle.loads(pickle.dumps(plan)).schema == plan.schema
    pickle.dumps(ps.col("b") == memoryview(b"abc"))


@pytest.mark.timed
def test_many_conditions_take_linear_time() -> None:
    given = data()

    def seconds(n: int) -> float:
        tests = tuple((ps.col("c0") != -k) | (ps.col("c1") != -k) for k in range(1, n + 1))
        gc.collect()
        start = time.thread_time()
        assert ps.read_table(given, columns=[], filter=And(tests)).num_rows == 1_000
        return time.thread_time() - start

    seconds(10)
    few, many = (min(seconds(n) for _ in range(3)) for n in (200, 3_200))
    assert many < 64 * few  # 16 times as many; quadratic, it were 256


@pytest.mark.timed
def test_many_prefixes_take_no_time_for_each_row() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": [f"k{i:06}" for i in range(100_000)]}), sink)

    def seconds(n: int) -> float:
        condition = Or(tuple(ps.col("s").like(f"k{k:05}x%") for k in range(n)))
        gc.collect()
        start = time.thread_time()
        assert ps.read_table(sink.getvalue(), filter=condition).num_rows == 0
        return time.thread_time() - start

    seconds(10)
    few, many = (min(seconds(n) for _ in range(3)) for n in (500, 8_000))
    assert many < 64 * few  # 16 times as many


def test_a_filter_on_a_thousand_columns() -> None:
    wide = data(columns=1_000, rows=20)
    condition = And(tuple(ps.col(f"c{i}") >= 3 for i in range(1_000)))
    start = time.thread_time()
    assert ps.read_table(wide, filter=condition).num_rows == 17
    assert time.thread_time() - start < 20


def test_names_have_not_endless_parts() -> None:
    with pytest.raises(ps.PredicateError, match="more than 1,000 parts"):
        ps.read_table(data(), filter="a" + ".a" * 100_000 + " = 1")


@pytest.mark.parametrize("kind", [pa.decimal32(7, 1), pa.decimal64(16, 4)], ids=str)
def test_figures_of_narrow_decimals(kind: pa.DataType) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"m": pa.array([Decimal("1.5"), Decimal("2.5"), None], kind)}), sink)
    for condition in (None, "m > 1"):
        found = ps.scan(sink.getvalue(), filter=condition).aggregate([("m", "min"), ("m", "max")])
        assert found.to_pylist() == [{"m_min": Decimal("1.5"), "m_max": Decimal("2.5")}]
        assert found.schema.types == [kind, kind]


def test_values_are_packed_once_for_many_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    in_arrays: Any = sys.modules["pageseek.predicate.in_arrays"]
    calls = []
    many = in_arrays._many
    monkeypatch.setattr(in_arrays, "_many", lambda *given: calls.append(1) or many(*given))
    for i in range(5):
        pq.write_table(
            pa.table({"a": np.arange(i * 100, i * 100 + 100)}), tmp_path / f"{i}.parquet"
        )
    wanted = ps.col("a").isin(list(range(0, 500, 2)))
    assert ps.scan(str(tmp_path), filter=wanted).count_rows() == 250
    assert len(calls) == 1
