"""What `load` promises to Spark and keeps: batches of columns, few rows on the driver, names that are its own, no secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import aggregate, load, read, report, reports
from pageseek.spark.table import local, native
from support.object_server.server import ObjectServer
from support.remote_files import content

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def path(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("limits") / "a")
    columns = "id", "id % 7 f0", "id % 3 F1", "concat('s', id % 11) s", "struct(id x, id + 1 y) st"
    spark.range(20_000).selectExpr(*columns).repartition(2).write.parquet(made)
    return made


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def rows(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize(
    "value", ["(select max(k) from few)", "(select max(k) from few where k < 0)"]
)
def test_a_subquery_filters_what_sparks_reader_reads(
    spark: Any, path: str, monkeypatch: pytest.MonkeyPatch, value: str
):
    """Its value is known when Spark was told already that batches of columns come."""
    monkeypatch.setattr(native, "MANY_VALUES", 1000)
    monkeypatch.setattr(native, "FILE_SECONDS", 0.0)
    spark.range(5).selectExpr("id k").createOrReplaceTempView("few")
    for condition in (f"id = {value}", f"id < {value}", f"id + f0 > {value}"):
        found, own = load(spark, path).where(condition), spark.read.parquet(path).where(condition)
        assert "leaves to Spark's reader" in plan_of(found)
        counted, expected = (f.selectExpr("count(s)", "sum(id)") for f in (found, own))
        assert rows(counted) == rows(expected), condition
        assert rows(found) == rows(own), condition


@pytest.mark.covering(1)
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("kind", ["inner", "left_semi", "left_anti", "left", "full"])
def test_a_join_with_no_key_at_all(spark: Any, path: str, conf: Any, adaptive: str, kind: str):
    conf("spark.sql.adaptive.enabled", adaptive)
    small = spark.range(50).selectExpr("id", "concat('n', id) name")
    small = small.where("upper(name) = 'ZZ'")
    for given in ({}, {"native": False}):
        ours = load(spark, path, **given).join(small, "id", kind)
        assert rows(ours) == rows(spark.read.parquet(path).join(small, "id", kind))


def test_groups_may_have_the_names_of_figures(spark: Any, path: str):
    ours, own = load(spark, path, native=False), spark.read.parquet(path)
    for by in (["f0"], ["F1", "f0"], ["f1"]):
        found, expected = (f.groupBy(*by).agg({"*": "count", "id": "max"}) for f in (ours, own))
        assert rows(found) == rows(expected)
    found = aggregate(spark, path, ["count", ("id", "max")], by="f0")
    assert rows(found) == rows(own.groupBy("f0").agg({"*": "count", "id": "max"}).toDF("f0", "count", "id_max"))  # fmt: skip


def test_text_that_is_large_for_spark(spark: Any, path: str, conf: Any):
    conf("spark.sql.execution.arrow.useLargeVarTypes", "true")
    found = load(spark, path, native=False).where("id < 5").select("id", "s")
    assert "LocalTableScan" in plan_of(found)
    assert rows(found) == rows(spark.read.parquet(path).where("id < 5").select("id", "s"))


def test_rows_that_are_too_many_for_a_local_relation_of_spark(spark: Any, path: str, conf: Any):
    conf("spark.sql.execution.arrow.localRelationThreshold", "16")
    found = load(spark, path, native=False).where("id < 50").select("id", "s")
    assert "LocalTableScan" in plan_of(found)
    assert rows(found) == rows(spark.read.parquet(path).where("id < 50").select("id", "s"))


def test_rows_that_may_be_large_are_not_the_drivers(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """By a dictionary, a small file holds many large rows."""
    n = 20_000
    texts = [chr(65 + i) * 3_000 for i in range(5)]
    of_status = ["A"] * 20 + ["B"] * (n - 20)
    table = pa.table({"status": of_status, "pay": [texts[i % 5] for i in range(n)]})
    pq.write_table(table, tmp_path / "a.parquet", write_page_index=True)
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    found = load(spark, tmp_path, native=False).where("status = 'B'")
    assert "LocalTableScan" not in plan_of(found)
    assert found.selectExpr("sum(length(pay))").collect()[0][0] == 3_000 * (n - 20)
    monkeypatch.setattr(local, "DECODED_BYTES", 1 << 30)
    assert "LocalTableScan" in plan_of(load(spark, tmp_path, native=False).where("status = 'B'"))


def test_what_is_asked_wrongly_is_refused_at_once(spark: Any, path: str):
    for call in (load, read):
        with pytest.raises(ValueError, match="tasks=0: at least 1"):
            call(spark, path, tasks=0)
        with pytest.raises(TypeError, match="columns='id': a list of names"):
            call(spark, path, columns="id")
        for first in (spark.range(1), path):
            with pytest.raises(TypeError, match=f"wanted first, not {type(first).__name__}"):
                call(first, path)
        with pytest.raises(
            FileNotFoundError, match=r"db\.sales: no such file in .*; a table of a cat"
        ):
            call(spark, "db.sales")


def test_a_struct_has_its_fields_in_it(spark: Any, path: str):
    own = spark.read.parquet(path)
    for columns in (["st.x", "st"], ["st", "id", "st.y"]):
        for condition in (None, "id < 9"):
            whole = [name for name in columns if "." not in name]
            expected = own if condition is None else own.where(condition)
            for call in (load, read):
                found = call(spark, path, columns=columns, filter=condition)
                assert found.columns == whole
                assert rows(found) == rows(expected.select(*whole))


def test_plans_and_reports_name_a_url_without_its_secrets(spark: Any):
    with ObjectServer() as server:
        server.objects.put("a.parquet", content(0))
        scheme, _, rest = server.url("a.parquet").partition("://")
        url = f"{scheme}://joe:hush@{rest}?X-Amz-Signature=hush2"
        for call in (load, read):
            frame = call(spark, url).where("id = 4711")
            plans = frame._jdf.queryExecution().toString()
            frame.collect()
            assert "a.parquet" in plans
            assert any(name.endswith("/a.parquet") for name in reports(frame))
            for text in (plans, *reports(frame), str(report(frame))):
                assert "hush" not in text
                assert "joe" not in text
