"""`aggregate`: the figures of Spark's own functions, however they are computed."""

from __future__ import annotations

import datetime as dt
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import PredicateError
from pageseek.spark import aggregate, report

pytestmark = pytest.mark.spark
ROWS = 4000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("aggregate")
    rng = np.random.default_rng(7)
    for i in range(4):
        place = made / f"d={i % 2}"
        place.mkdir(exist_ok=True)
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        nulls = rng.random(ROWS) < 0.1
        x = rng.standard_normal(ROWS)
        x[rng.random(ROWS) < 0.02] = np.nan
        table = pa.table(
            {
                "k": k,
                "n": pa.array(rng.integers(-50, 50, ROWS).astype(np.int32), mask=nulls),
                "g": [f"group {n % 7}" if n % 11 else None for n in k.tolist()],
                "x": x,
                "a.b": k % 3,
                "st": [{"a": n % 5} for n in k.tolist()],
                "t": pa.array(
                    k.astype("datetime64[s]").astype("datetime64[us]"), pa.timestamp("us", "UTC")
                ),
            }
        )
        pq.write_table(table, place / f"{i}.parquet", row_group_size=1000, write_page_index=True)
    return str(made)


@pytest.fixture(params=["table", "functions"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the table of Classic sessions, or as other sessions do it."""
    if request.param == "functions":
        for name in ("aggregator", "reader"):
            module = importlib.import_module(f"pageseek.spark.{name}")
            monkeypatch.setattr(module, "fits", lambda spark: False)
    return str(request.param)


def expected(
    spark: Any, folder: str, figures: list[Any], by: list[str], condition: str
) -> list[str]:
    from pyspark.sql import functions

    def quoted(name: str) -> str:
        return f"`{name}`" if name == "a.b" else name

    frame = spark.read.parquet(folder).where(condition)
    made = []
    for one in figures:
        name, function = ("*", "count") if one == "count" else one
        column = getattr(functions, function)(quoted(name) if name != "*" else name)
        made.append(column.alias("count" if one == "count" else f"{name}_{function}"))
    keys = [functions.col(quoted(name)).alias(name) for name in by]
    return rows(frame.groupBy(*keys).agg(*made))


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    "condition", ["k >= 0", "k between 900 and 9100 and g < 'group 5'", "k < 0"]
)
@pytest.mark.parametrize(
    ("figures", "by"),
    [
        (["count"], []),
        (["count", ("n", "count"), ("k", "min"), ("k", "max"), ("t", "min"), ("t", "max")], []),
        (["count", ("n", "sum"), ("n", "min")], ["g"]),
        ([("k", "max"), ("n", "sum"), ("g", "count")], ["d", "a.b"]),
        ([("x", "min"), ("x", "max"), ("k", "sum")], ["g"]),
        ([("st.a", "max"), "count"], ["st.a"]),
        ([("n", "sum"), ("t", "max")], ["k"]),
        ([("g", "max"), ("d", "sum")], []),
    ],
)
def test_figures_are_those_of_spark(
    spark: Any, folder: str, way: str, figures: list[Any], by: list[str], condition: str
) -> None:
    made = aggregate(spark, folder, figures, by, filter=condition)
    assert rows(made) == expected(spark, folder, figures, by, condition)


def test_types_and_names_are_those_of_spark(spark: Any, folder: str, way: str) -> None:
    made = aggregate(
        spark, folder, ["count", ("n", "sum"), (ps.col("N"), "max"), ("t", "min")], "D"
    )
    assert made.dtypes == [
        ("D", "int"),
        ("count", "bigint"),
        ("n_sum", "bigint"),
        ("N_max", "int"),
        ("t_min", "timestamp"),
    ]


def test_tasks_send_their_groups_instead_of_rows(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("aggregator", "reader"):
        monkeypatch.setattr(
            importlib.import_module(f"pageseek.spark.{name}"), "fits", lambda spark: False
        )
    made = aggregate(spark, folder, ["count", ("n", "sum")], "g", tasks=4)
    scanned = made._jdf.queryExecution().optimizedPlan().toString()
    assert "MapInArrow" in scanned
    # below Spark's own aggregation there are at most 8 rows of a task
    below = made._jdf.queryExecution().analyzed().children().head()
    from pyspark.sql import DataFrame

    datasets = spark._jvm.org.apache.spark.sql.classic.Dataset
    assert DataFrame(datasets.ofRows(spark._jsparkSession, below), spark).count() <= 4 * 8


def test_what_metadata_prove_no_task_computes(spark: Any, folder: str) -> None:
    made = aggregate(spark, folder, ["count", ("k", "max")])
    assert made.collect() == [(4 * ROWS, 4 * ROWS - 1)]
    assert "LocalTableScan" in made._jdf.queryExecution().executedPlan().toString()
    assert report(made).to_dict()["bytes"]["data"] == 0


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ([], "no figure"),
        (["mean"], "'count', or a pair"),
        ([("k", "median")], "one of count, min, max, sum"),
        ([("k", "min"), ("k", "min")], "asked for twice"),
        ([(1, "min")], "no column"),
    ],
)
def test_errors_name_the_figure(spark: Any, folder: str, figures: list[Any], said: str) -> None:
    with pytest.raises(PredicateError, match=said):
        aggregate(spark, folder, figures)


def test_no_file_gives_no_groups_and_one_row(spark: Any, tmp_path: Path, way: str) -> None:
    pq.write_table(pa.table({"k": [1], "d": [dt.date(2024, 1, 1)]}), tmp_path / "0.parquet")
    made = aggregate(spark, str(tmp_path), ["count", ("d", "max")], filter=ps.col("k") == 5)
    assert [tuple(row) for row in made.collect()] == [(0, None)]
    assert aggregate(spark, str(tmp_path), ["count"], "d", filter=ps.col("k") == 5).collect() == []


@pytest.mark.parametrize("kind", ["understood", "left to Spark", "column"])
def test_filters_are_those_of_spark(spark: Any, folder: str, way: str, kind: str) -> None:
    from pyspark.sql import functions as f

    text = {"understood": "k > 100", "left to Spark": "upper(g) = 'GROUP 3'"}.get(kind, "n % 3 = 1")
    condition = f.expr(text) if kind == "column" else text
    expected = spark.read.parquet(folder).where(text).groupBy("d").agg(f.count("*"), f.sum("n"))
    found = aggregate(spark, folder, ["count", ("n", "sum")], "d", filter=condition)
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, expected.collect()))
