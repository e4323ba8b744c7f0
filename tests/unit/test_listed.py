"""Lists of IN: what is made of them is made once, when it pays."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek._core import bloom, rows

import pageseek as ps
from pageseek.predicate.listed import Listed


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
    assert made == [True]


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
