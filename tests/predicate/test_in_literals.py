"""Lists of IN are prepared once, if that pays."""

from __future__ import annotations

import gc
import io
import math
import pickle
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import bloom, rows
from pageseek.predicate.expression import Or
from pageseek.predicate.in_arrays import FEW_LITERALS
from pageseek.predicate.in_literals import Listed


def listed(n: int) -> Listed:
    return Listed((n, np.arange(0, 3 * n, 3).tobytes(), None))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each Lookup whether it was to have a table."""
    calls: list[bool] = []

    def lookup(kind: int, width: int, literals: Any, table: bool) -> rows.Lookup:
        calls.append(table)
        return real(kind, width, literals, table)

    real = rows.Lookup
    monkeypatch.setattr(rows, "Lookup", lookup)
    return calls


def test_a_table_is_made_once_and_for_rows_enough(made: list[bool]) -> None:
    some = listed(16_000)
    one, two = some.lookup(rows.KIND_I64, 0, 10), some.lookup(rows.KIND_I64, 0, 900)
    assert one is two
    assert made == [False]
    three, four = some.lookup(rows.KIND_I64, 0, 900), some.lookup(rows.KIND_I64, 0, 10**6)
    assert three is four is not one
    assert made == [False, True]


def test_a_scan_of_many_files_makes_one_table(made: list[bool], tmp_path: Any) -> None:
    for i in range(3):
        pq.write_table(pa.table({"x": np.arange(50_000)}), tmp_path / f"{i}.parquet")
    wanted = np.arange(7, 10**6, 10)
    condition = ps.col("x").isin(wanted)
    assert ps.read_table(str(tmp_path), filter=condition).num_rows == 3 * 5_000
    assert ps.read_table(str(tmp_path), filter=~condition).num_rows == 3 * 45_000
    assert made == [False, True]  # to ask bounds, then rows


def test_it_travels_without_what_was_made() -> None:
    some = listed(100)
    some.lookup(rows.KIND_I64, 0, 1000)
    again = pickle.loads(pickle.dumps(some))
    assert again == some == tuple(some)
    assert type(again) is Listed
    assert not again.__dict__


def test_literals_are_hashed_once_for_all_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def hashes(form: Any, literals: Any) -> bytes:
        calls.append(literals[0])
        return real(form, literals)

    real = bloom.hashes
    monkeypatch.setattr(bloom, "hashes", hashes)
    rng = np.random.default_rng(1)
    values, absent = (rng.integers(0, 2**60, 8_000) * 2 + odd for odd in (0, 1))
    sink = io.BytesIO()
    options = {"x": {"ndv": 1_000, "fpp": 0.01}}
    pq.write_table(
        pa.table({"x": values, "pad": [b"x" * 500] * len(values)}), sink, row_group_size=1_000,
        use_dictionary=False, bloom_filter_options=options,
    )  # fmt: skip
    scan = ps.scan(sink.getvalue(), filter=ps.col("x").isin(absent[:20]))
    shown = scan.explain(analyze=True).to_dict()
    assert shown["row_groups"]["pruned_by"].get("bloom_filter", 0) > 0
    assert calls == [20]


MIXED: list[Any] = [
    *range(-70, 70), *(k / 2 for k in range(-80, 80)), *[None] * 3, math.nan, -math.nan, 0.0, -0.0,
    math.inf, -math.inf, 2**63, 2**64, -(2**63), 1e300, Decimal("33.5"), Decimal(200), np.int8(90),
    np.float32(91.5), pa.scalar(93), pa.scalar(None, pa.int64()), Fraction(7, 3),
]  # fmt: skip
KINDS = [pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 1)]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_mixed_types_are_what_each_value_is(kind: pa.DataType, nan: str) -> None:
    column: list[Any] = [*range(0 if kind == pa.uint64() else -100, 101), None]
    if pa.types.is_floating(kind):
        column += [0.5, -0.0, math.nan, math.inf, 91.5, 60.25]
        column = [np.float16(v) if kind == pa.float16() and v is not None else v for v in column]
    elif pa.types.is_decimal(kind):
        column = [None if v is None else Decimal(v) / 2 for v in column]
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": pa.array(column, kind), "row": range(len(column))}), sink)
    x, data = ps.col("x"), sink.getvalue()
    for values in (MIXED, [v for v in MIXED if v is not None and not isinstance(v, pa.Scalar)]):
        at_once = x.isin(values)
        assert len(values) > FEW_LITERALS
        by_eight = Or(tuple(x.isin(values[i : i + 8]) for i in range(0, len(values), 8)))
        for one, other in ((at_once, by_eight), (~at_once, ~by_eight)):
            wanted, found = (ps.read_table(data, filter=f, nan=nan)["row"] for f in (other, one))
            assert found == wanted
    assert ps.read_table(data, filter=x.isin(MIXED), nan=nan).num_rows > 50


def test_mixed_types_that_cannot_be_compared() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": [1], "s": ["a"], "b": [True]}), sink)
    for name, wrong in (("x", "a"), ("x", True), ("s", b"a"), ("s", 1), ("b", 1)):
        values = [{"x": 1, "s": "a", "b": True}[name]] * 100 + [wrong] * 100
        with pytest.raises(ps.PredicateError, match=f"'{name}' of type .* cannot be compared"):
            ps.read_table(sink.getvalue(), filter=ps.col(name).isin(values))
    few = ps.read_table(sink.getvalue(), filter=ps.col("b").isin([True, None, False] * 100))
    assert few.num_rows == 1
    assert ps.read_table(sink.getvalue(), filter=~ps.col("b").isin([False] * 100)).num_rows == 1


@pytest.mark.timed
def test_many_values_of_mixed_types_take_little_longer_than_of_one() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": np.arange(1_000)}), sink)
    whole = list(range(200_000))
    mixed = [float(v) if v % 3 == 0 else None if v % 100 == 1 else v for v in whole]

    def seconds(values: list[Any]) -> float:
        gc.collect()
        start = time.thread_time()
        ps.read_table(sink.getvalue(), filter=ps.col("x").isin(values))
        return time.thread_time() - start

    of_one, of_three = (min(seconds(values) for _ in range(3)) for values in (whole, mixed))
    assert of_three < 15 * of_one + 0.05  # one by one they take 100 times as long
