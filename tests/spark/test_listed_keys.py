"""Keys that a caller lists, in Python and in tables: their forms, and the types that they get."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import lookup
from support.lookup_lake import in_order, write_lake

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
NAN = float("nan")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("lookup"))


def test_keys_come_in_many_forms(spark: Any, lake: Path) -> None:
    wanted = in_order([(3, "value 2"), (3, "value 3")])
    for keys in (
        [3, -1],
        {3},
        np.array([3, 10**9]),
        pa.array([3, None], pa.int32()),
        pa.table({"k": pa.array([3], pa.uint8())}),
        pa.table({"k": [3]}).to_pandas(),
        pa.table({"k": [3]}).to_pandas()["k"],
    ):
        for limit in (100, 0):
            found = lookup(spark, lake, keys, "k", ["v"], broadcast_limit=limit)
            assert in_order(found.collect()) == wanted
    pairs = lookup(spark, lake, [("value 3", 3), ("value 3", 2), (None, 3)], ["v", "k"], ["k"])
    assert in_order(pairs.collect()) == in_order([("value 3", 3)])
    left = lookup(spark, lake, pa.table({"k": [3, 1], "n": ["x", "y"]}), "k", ["v"], "left")
    assert in_order(left.collect()) == in_order(
        [(3, "x", "value 2"), (3, "x", "value 3"), (1, "y", None)]
    )


def test_numbers_of_lists_get_the_type_of_the_files(spark: Any, tmp_path: Path) -> None:
    columns = {
        "f": pa.array([1.5, 0.1, NAN, 0.0, None], pa.float32()),
        "d": pa.array([1.5, 3.0, NAN, 0.0, None], pa.float64()),
        "n": pa.array([1, 2, 3, 4, None], pa.int32()).cast(pa.decimal128(12, 2)),
        "t": pa.array([0, 1, 2, 3, None], pa.timestamp("us", "UTC")),
        "k": [0, 1, 2, 3, 4],
        "l": [[1]] * 5,
    }
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table(columns), path)
    for limit in (100, 0):
        for name, keys, rows in (
            ("f", [1.5, NAN, -0.0, None], [0, 2, 3]),
            ("f", [0], [3]),
            ("d", [3, 7], [1]),
            ("d", pa.array([1.5], pa.float32()), [0]),
            ("n", [2, 10**6], [1]),
        ):
            found = lookup(spark, path, keys, name, ["k"], broadcast_limit=limit)
            assert found.schema[name].dataType == spark.read.parquet(path).schema[name].dataType
            assert sorted(row.k for row in found.collect()) == rows
    for name, keys, remedy in (
        ("f", [0.1], r"pa\.array\(\[\.\.\.\], pa\.float32\(\)\)"),
        ("k", [1.0], r"pa\.int64\(\)"),
        ("n", ["1"], r"pa\.decimal128\(12, 2\)"),
        ("t", [dt.datetime(2026, 1, 1)], r"pa\.timestamp\('us', 'UTC'\)"),
    ):
        with pytest.raises(ps.PredicateError, match=f"{name!r} is .*: make them as .*{remedy}"):
            lookup(spark, path, keys, name)
    with pytest.raises(ps.UnsupportedError, match="'l' is array<bigint>, by which lookup does not"):
        lookup(spark, path, [1], "l")


def test_large_numbers_of_lists_get_the_type_of_the_files(spark: Any, tmp_path: Path) -> None:
    """Python's integers have no size, and the type that Arrow gives a list may have too few digits for them."""
    columns = {
        "u": pa.array([1, 2**63, 2**64 - 1, None], pa.uint64()),
        "wide": pa.array([Decimal(2**70), Decimal(3), Decimal(0), None], pa.decimal128(38, 10)),
        "d": pa.array([2.0**64, 1.5, 0.0, None], pa.float64()),
        "id": pa.array([1, 2, 3, 4]),
        "k": [0, 1, 2, 3],
    }
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table(columns), path)
    for name, keys, rows in (
        ("u", [2**63, -1, 2**64, None], [1]),
        ("u", pa.array([2**63], pa.uint64()), [1]),
        ("u", pd.DataFrame({"u": pd.Series([2**64 - 1, 10**19, 2**65, None], dtype=object)}), [2]),
        ("wide", [2**70, 0], [0, 2]),
        ("wide", [2**70, Decimal("3.5"), 0], [0, 2]),
        ("d", [2**64, 1.5], [0, 1]),
        ("id", [np.int64(1), np.uint64(3)], [0, 2]),
    ):
        found = lookup(spark, path, keys, name, ["k"], "semi")
        assert sorted(row.k for row in found.collect()) == rows, (name, keys)
    shuffled = lookup(spark, path, [2**63, 2**64], "u", ["k"], broadcast_limit=0)
    assert [tuple(row) for row in shuffled.collect()] == [(Decimal(2**63), 1)]


@pytest.mark.parametrize(
    ("name", "keys", "value"),
    [
        ("u", [10**20], r"decimal\(20,0\).*100000000000000000000"),
        ("id", [1, 2**64], "bigint.*18446744073709551616"),
        ("id", [1.5], r"bigint.*1\.5"),
        ("id", pa.array([1, 2**63], pa.uint64()), "bigint.*9223372036854775808"),
        ("n", [Decimal("1.25"), Decimal("1.251")], r"decimal\(10,2\).*1\.251"),
        ("n", [10**8], r"decimal\(10,2\).*100000000"),
        ("n", [10**30], r"decimal\(10,2\).* 10{30}"),
        ("n", [Decimal("NaN")], r"decimal\(10,2\).*NaN"),
        ("n", [Decimal("1." + "1" * 90)], r"decimal\(10,2\).*1\.1111.*\.\.\."),
        ("d", [2**53 + 1], "double.*9007199254740993"),
        ("d", [10**5000], "double.*an integer of 16610 bits"),
    ],
)
def test_a_number_that_the_type_of_the_files_has_not_is_named(
    spark: Any, tmp_path: Path, name: str, keys: Any, value: str
) -> None:
    columns = {
        "u": pa.array([1], pa.uint64()),
        "id": [1],
        "n": pa.array([Decimal("1.25")], pa.decimal128(10, 2)),
        "d": [1.5],
    }
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table(columns), path)
    said = rf"a\.parquet: column '{name}' is {value}: leave such keys out, .*read\(\.\.\.\)\.join"
    with pytest.raises(ps.PredicateError, match=said):
        lookup(spark, path, keys, name)


@pytest.mark.parametrize(
    "keys",
    [
        [1, "x"],
        ["x", 1],
        np.array([1, "x"], dtype=object),
        pd.DataFrame({"k": [1, "x"]}),
        [1, True],
        [object()],
        np.array([1j]),
        np.array([[1]]),
    ],
    ids=[
        "int, str",
        "str, int",
        "numpy",
        "pandas",
        "int, bool",
        "object",
        "complex",
        "two dimensions",
    ],
)
def test_values_of_several_types_are_no_keys(spark: Any, lake: Path, keys: Any) -> None:
    with pytest.raises(TypeError, match=r"^keys: ") as caught:
        lookup(spark, lake, keys, "k")
    assert not isinstance(caught.value, pa.ArrowException)
    if np.ndim(keys) == 1 and len(keys) == 2:
        assert re.search(
            r"column 'k' has .+ and .+ no common type: give .*pa\.int64\(\)", str(caught.value)
        )
