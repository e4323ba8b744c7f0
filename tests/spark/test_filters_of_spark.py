"""Filters as SQL and as Columns: Spark binds them, pageseek prunes by what it understands, and none is refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import load, read, reader, report
from pageseek.spark.filters.conjuncts import conjuncts
from pageseek.spark.filters.sparks import named_in
from pageseek.spark.tasks.sizing import parts_of

ROWS = 20_000
NAMES = ["k", "x", "s", "day", "t", "st", "items", "with.dot"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    k = np.arange(ROWS)
    inner = pa.StructArray.from_arrays([pa.array(k), pa.array(k % 10)], ["c", "d"])
    st = pa.StructArray.from_arrays([pa.array(k), inner], ["a", "b"], mask=pa.array(k % 7 == 0))
    offsets = pa.array(np.arange(ROWS + 1), pa.int32())
    table = pa.table(
        {
            "k": k,
            "x": k / 8,
            "s": [str(n % 50) for n in k],
            "day": pa.array(k % 400, pa.int32()).cast(pa.date32()),
            "t": pa.array(k * 10**6, pa.timestamp("us", "UTC")),
            "st": st,
            "items": pa.ListArray.from_arrays(offsets, inner),
            "with.dot": k % 3,
            "large": pa.array([None] * ROWS, pa.decimal256(60, 2)),  # no type of Spark
        }
    )
    return write(table, tmp_path_factory.mktemp("filters") / "all.parquet")


def write(table: pa.Table, path: Path) -> str:
    pq.write_table(table, path, row_group_size=5000, write_page_index=True, data_page_size=4096)
    return str(path)


@pytest.fixture(scope="module")
def native(spark: Any, path: str) -> Any:
    """The same by Spark's own reader."""
    return spark.read.schema(load(spark, path, columns=NAMES).schema).parquet(path)


def rows(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


CONDITIONS = [
    "s = 7 and k < 400",
    "k < 9 or upper(s) = '49'",
    "k % 1000 = 5 and k between 3000 and 9000",
    "day = timestamp '1970-02-01 00:00:00' and x > 5",
    "x = cast('12.5' as decimal(10,3))",
    "k in (1, 2) and st.b.d is not null",
    "`with.dot` = 2 and k < 20",
    "case when k > 5 and k < 8 then true else k = 3 end",
    "k < 100 and items[0].d = 4",
]


@pytest.mark.spark
@pytest.mark.parametrize("condition", CONDITIONS)
def test_no_filter_is_refused(
    spark: Any, path: str, native: Any, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    from pyspark.sql.functions import expr

    columns = ["x", "st", "with.dot"]
    names = [f"`{name}`" for name in columns]
    wanted = rows(native.where(condition).select(*names))
    assert wanted
    for given in (condition, expr(condition)):
        assert rows(read(spark, path, columns, given)) == wanted
        found = load(spark, path, columns=columns, filter=given)
        assert rows(found) == wanted
        assert found.columns == columns
        with monkeypatch.context() as patched:  # as over Connect
            patched.setattr(reader, "fits", lambda spark: False)
            assert rows(read(spark, path, columns, given)) == wanted
    assert len(rows(read(spark, path, columns, condition, limit=1))) == 1


@pytest.mark.spark
def test_columns_of_the_filter_are_read_but_not_returned(spark: Any, path: str) -> None:
    from pyspark.sql.functions import col

    frame = read(spark, path, ["st.b.d", "K", "items.c"], "st.a = 5 or st.b.c = 9", tasks=1)
    assert frame.schema.simpleString() == (
        "struct<st:struct<b:struct<d:bigint>>,K:bigint,items:array<struct<c:bigint>>>"
    )
    assert [tuple(row) for row in frame.collect()] == [(((5,),), 5, [(5,)]), (((9,),), 9, [(9,)])]
    assert set(report(frame).to_dict()["leaves"]) == {
        "k", "st.a", "st.b.c", "st.b.d", "items.list.element.c",
    }  # fmt: skip
    nulls = read(spark, path, ["st.a"], col("st").isNull() & (col("k") < 10)).collect()
    assert [tuple(row) for row in nulls] == [(None,), (None,)]
    assert read(spark, path, [], "s = 7 and st.a < 200").count() == 3
    twice = read(spark, path, ["k", "X", "k"], "x = 2.5")
    assert (twice.columns, twice.collect()) == (["k", "X", "k"], [(20, 2.5, 20)])


@pytest.mark.spark
def test_filters_prune_by_what_is_understood(
    spark: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.functions import col

    t = dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)
    half = "k = 3600 and upper(s) = '0'"
    for given in (half, (col("k") == 3600) & (col("s") == 0), col("t") == t):
        frame = read(spark, path, ["x"], given, tasks=1)
        assert frame.collect() == [(450.0,)]
        assert report(frame).to_dict()["row_groups"]["read"] == 1
    monkeypatch.setattr(reader, "fits", lambda spark: False)
    plans = []

    def noted(spark: Any, plan: Any, *rest: Any) -> Any:
        plans.append(plan)
        return parts_of(spark, plan, *rest)

    monkeypatch.setattr(reader, "parts_of", noted)
    assert read(spark, path, ["x"], half).collect() == [(450.0,)]
    assert plans[0].num_rows < 5000


@pytest.mark.spark
def test_a_filter_leaves_spark_its_own_reader(spark: Any, path: str, tmp_path: Path) -> None:
    plain = pa.concat_tables([pq.read_table(path, columns=NAMES)] * 4)
    path = write(plain, tmp_path / "plain.parquet")
    whole = read(spark, path, ["k", "x", "s", "t"], "k > 100")
    assert "leaves to Spark's reader" in whole._jdf.queryExecution().toString()
    assert whole.count() == 4 * (ROWS - 101)
    again = load(spark, path, columns=["x", "s", "st"], filter="k > 100")
    assert "leaves to Spark's reader" in again._jdf.queryExecution().toString()
    assert again.count() == 4 * (ROWS - 101)


@pytest.mark.spark
def test_what_is_no_filter_is_an_error_of_spark(spark: Any, path: str) -> None:
    from pyspark.errors import AnalysisException, ParseException

    for wrong, error in (("nope = 1", AnalysisException), ("k = = 1", ParseException)):
        with pytest.raises(error):
            read(spark, path, ["k"], wrong)
        with pytest.raises(error):
            load(spark, path, columns=["k"], filter=wrong)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1 and b = 2", ["a = 1 ", " b = 2"]),
        ("a between 1 and 2 and b = 2", ["a between 1 and 2 ", " b = 2"]),
        ("(a = 1 and b = 2) and f(c and d)", ["(a = 1 and b = 2) ", " f(c and d)"]),
        ("a = ' and ' AND `b and c` = \" and \"", ["a = ' and ' ", ' `b and c` = " and "']),
        ("case when a and b then c end and d", ["case when a and b then c end ", " d"]),
        ("a and -- x and y\nb", ["a ", " -- x and y\nb"]),
    ],
)
def test_conditions_between_ands(text: str, parts: list[str]) -> None:
    assert conjuncts(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 or b = 2 and c = 3",
        "a = 'it\\'s and ' and b",
        "a /* and */ and b",
        "a = 'never closed and b",
        "end > 1 and case when a then b = 1 and c = 2 and d = 3 end",
        "a) and (b",
    ],
)
def test_what_is_not_told_apart_stays_together(text: str) -> None:
    assert conjuncts(text) == [text]


def test_the_columns_that_a_filter_names() -> None:
    names = ["a", "B", "c d", "e`f", "longer", "st"]
    assert named_in("b = 1 and `c d` > 2 and st.x = 'longest'", names) == ["B", "c d", "st"]
    assert named_in("`e``f` = a2", names) == ["e`f"]
    assert named_in("struct(*) is not null", names) == names
    assert named_in("identifier('lon' || 'ger') = 1", names) == names
    assert named_in("a * 2 > 1", names) == ["a"]
