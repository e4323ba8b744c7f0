"""Queries after `load` read the pages that the same filter in `pageseek.scan` reads, and joins those of their keys, by the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import load, report

pytestmark = pytest.mark.spark
FILES, ROWS = 4, 8000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("same")
    for i in range(FILES):
        k = range(i * ROWS, (i + 1) * ROWS)
        table = pa.table(
            {
                "k": k,
                "x": [n * 7919 % 10_007 / 4 for n in k],
                "s": [f"{n:06d}" for n in k],
                "st": [{"a": n, "in": {"b": n // 100, "c": str(n)}, "t": "x" * 50} for n in k],
                "list": [[n, n + 1] if n % 5 else None for n in k],
            }
        )
        path = made / f"{i}.parquet"
        pq.write_table(
            table, path, row_group_size=ROWS // 2, write_page_index=True, data_page_size=2000
        )
    return str(made)


def same(
    spark: Any,
    folder: str,
    wanted: ps.Scan,
    made: Callable[[Any], Any],
    at_once: bool = True,
    **options: Any,
) -> None:
    """Whether a query has read what a scan reads: units, bytes, and pages of each column; and what ruled out the others, if all
    its filters are known `at_once`.
    """
    expected = wanted.explain(analyze=True).to_dict()
    assert 0 < expected["pages"]["read"] < expected["pages"]["total"]
    query = made(load(spark, folder, native=False, **options))
    assert len(query.collect()) == expected["rows"]["out"]
    found = report(query).to_dict()
    assert found["notes"] == []
    for unit in ("files", "row_groups", "pages", "rows"):
        assert found[unit]["read"] == expected[unit]["read"], unit
    assert found["bytes"]["data"] == expected["bytes"]["data"]
    assert pages(found) == pages(expected)
    if at_once:
        assert found["pages"] == expected["pages"]


def pages(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """How many pages of each column were read, and their bytes."""
    return {path: (one["pages"]["read"], one["bytes"]) for path, one in found["leaves"].items()}


def scan(folder: str, condition: Any, columns: Sequence[str]) -> ps.Scan:
    return ps.scan(folder, nan="spark", threads=1).filter(condition).select(*columns)


@pytest.mark.covering(1)
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("k = 4711", ["k", "s"]),
        ("k between 7990 and 8300 and x > 1000", ["s"]),
        ("k in (5, 17000, 31999) or s like '0240%'", ["k", "x"]),
        ("s >= '031000' and not k = 31500", ["k", "s", "list"]),
        ("st.a = 4711", ["k", "s"]),
        ("st.a < 300 and k >= 0", ["st.a"]),
        ("st.in.b in (47, 200)", ["st.in.c", "k"]),
        ("st.in.b = 47 or st.a = 17", ["st.in"]),
        ("k = 4711", ["st", "list"]),
    ],
)
def test_where_and_select(
    spark: Any, folder: str, condition: str, columns: list[str], local: bool
) -> None:
    wanted = scan(folder, condition, columns)
    same(spark, folder, wanted, lambda f: f.where(condition).select(*columns), local=local)


@pytest.mark.parametrize("columns", [["k", "s"], ["k", "st.in.b"], ["k", "st", "list"]])
def test_a_join_with_a_selective_side(spark: Any, folder: str, columns: list[str]) -> None:
    from pyspark.sql.functions import broadcast

    keys = [3, 4711, 4712, 31_000]
    side = spark.createDataFrame(
        [(n, int(n in keys)) for n in (*keys, 9, 20_000)], "k long, kept int"
    )
    side = broadcast(side.where("kept = 1"))  # of which Spark infers nothing for `k`
    wanted = scan(folder, ps.col("k").isin(keys), columns)
    same(spark, folder, wanted, lambda f: f.select(*columns).join(side, "k"))


def test_a_join_whose_side_has_conditions_of_both(spark: Any, folder: str) -> None:
    from pyspark.sql.functions import broadcast

    side = broadcast(spark.range(0, 3200).selectExpr("id * 10 k", "id e").where("e in (3, 800)"))
    wanted = scan(folder, "k in (30, 8000) and st.a >= 100", ["k", "s"])
    same(
        spark,
        folder,
        wanted,
        lambda f: f.where("st.a >= 100").select("k", "s").join(side, "k"),
        at_once=False,
    )
