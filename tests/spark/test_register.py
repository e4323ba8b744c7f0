"""`register`: the format "pageseek" and its names in SQL have the answers of Spark's own reader, and prune as `load` does."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import UnsupportedError
from pageseek.spark import load, register, report
from pageseek.spark.sources.options import as_text, parsed

pytestmark = pytest.mark.spark
ROWS = 3000
WAYS = ("format", "two paths", "view", "catalog", "table", "schema")
QUERIES = (
    "select * from {} where k = 1234",
    "select s, k from {} where k between 10 and 20 or s = 'row 7'",
    "select p, count(*), min(k), max(x) from {} group by p",
    "select count(*) from {}",
    "select st.a from {} where st.a in (5, 6, 4000) and p = 'b'",
    "select k from {} where t >= timestamp '1970-01-01 01:00:00' and t < timestamp '1970-01-01 01:01:00'",
    "select max(length(s)) from {} where s like 'row 1%' and K > 100",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("register")
    for i, p in enumerate("ab"):
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        table = pa.table(
            {
                "k": k,
                "s": [None if n % 7 == 3 else f"row {n % 900}" for n in k],
                "x": k / 4,
                "d": pa.array([Decimal(int(n)).scaleb(-1) for n in k], pa.decimal128(9, 2)),
                "t": pa.array(k * 10**6, pa.timestamp("us", "UTC")),
                "st": [None if n % 13 == 0 else {"a": int(n), "b": str(n)} for n in k],
            }
        )
        (made / f"p={p}").mkdir()
        pq.write_table(
            table, made / f"p={p}" / "0.parquet", row_group_size=ROWS // 2, write_page_index=True,
            data_page_size=2048, write_batch_size=100,
        )  # fmt: skip
    return str(made)


@pytest.fixture(scope="module")
def format_of(spark: Any) -> Callable[..., Any]:
    """A reader of the format."""
    register(spark)

    def made(**options: str) -> Any:
        return spark.read.format("pageseek").options(**options)

    return made


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.fixture(scope="module", params=WAYS)
def name(request: Any, spark: Any, folder: str, format_of: Callable[..., Any]) -> Any:
    """The name by which SQL finds the files."""
    reader, options = format_of(local="false"), f"(path '{folder}', local 'false')"
    if request.param == "catalog":
        yield f"pageseek.`{folder}`"
        return
    made = "of_" + request.param.replace(" ", "_")
    if request.param == "table":
        spark.sql(f"create table {made} using pageseek options {options}")
        yield made
        spark.sql(f"drop table {made}")
        return
    if request.param == "view":
        spark.sql(f"create temporary view {made} using pageseek options {options}")
    elif request.param == "two paths":
        parts = [f"{folder}/p={p}" for p in "ab"]
        frames = [reader.load([part]).selectExpr("*", f"'{part[-1]}' p") for part in parts]
        assert reader.load(parts).count() == 2 * ROWS
        frames[0].union(frames[1]).createOrReplaceTempView(made)
    elif request.param == "schema":
        types = "s string, K long, x double, t timestamp, p string, st struct<a: bigint, b: string>, d decimal(9,2)"
        frame = reader.schema(types).load(folder)
        assert frame.columns == ["s", "K", "x", "t", "st", "d", "p"]  # as Spark's reader has them
        frame.select("k", "s", "x", "d", "t", "st", "p").createOrReplaceTempView(made)
    else:
        reader.load(folder).createOrReplaceTempView(made)
    yield made
    spark.catalog.dropTempView(made)


def test_sql_has_the_rows_of_sparks_reader(spark: Any, folder: str, name: str) -> None:
    for query in QUERIES:
        expected = rows(spark.sql(query.format(f"parquet.`{folder}`")))
        assert rows(spark.sql(query.format(name))) == expected, query


def test_the_format_reads_the_pages_that_load_reads(
    spark: Any, folder: str, format_of: Callable[..., Any]
) -> None:
    found = []
    for frame in (load(spark, folder, local=False), format_of(local="false").load(folder)):
        asked = frame.where("k = 1234").select("s")
        assert asked.collect() == [("row 334",)]
        found.append(report(asked).to_dict())
    assert found[0]["pages"]["read"] == found[1]["pages"]["read"] > 0
    # a worker may have the footer from before
    assert found[0]["bytes"]["data"] == found[1]["bytes"]["data"] > 0


def test_a_schema_gives_other_types_and_null_for_what_no_file_has(
    spark: Any, folder: str, format_of: Callable[..., Any]
) -> None:
    wanted = "k decimal(30,2), d decimal(12,3), none int, p string"
    asked = format_of().schema(wanted).load(folder).where("k = 7 and p = 'a'")
    assert asked.collect() == [(Decimal("7.00"), Decimal("0.700"), None, "a")]
    assert asked.schema.simpleString() == (
        "struct<k:decimal(30,2),d:decimal(12,3),none:int,p:string>"
    )
    with pytest.raises(Exception, match="'k' is int64, and double, which the schema gives it"):
        format_of().schema("k double").load(folder).count()


def test_a_filter_and_columns_among_the_options_hold_for_all_queries(
    spark: Any, folder: str, format_of: Callable[..., Any]
) -> None:
    frame = format_of(filter="k >= 100", columns='["s", "K"]').load(folder)
    assert frame.columns == ["s", "k"]
    assert frame.count() == 2 * ROWS - 100
    assert frame.where("k < 102").select("k").collect() == [(100,), (101,)]
    # a scan of most rows, which Spark's own reader would read
    assert len(load(spark, folder, filter="k >= 100").collect()) == 2 * ROWS - 100


def test_another_session_has_its_own_settings(
    spark: Any, folder: str, format_of: Callable[..., Any]
) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    condition = "t = timestamp '1969-12-31 19:00:01'"
    frame = other.read.format("pageseek").option("filter", condition).load(folder)
    assert [row.k for row in frame.collect()] == [1]
    assert format_of(filter=condition).load(folder).count() == 0


@pytest.mark.parametrize(
    ("options", "path", "error"),
    [
        (
            {},
            "/none/at/all",
            "FileNotFoundError: /none/at/all: no such file; .*the format only reads",
        ),
        ({"locl": "true"}, ".", "option 'locl' does not exist: .*'local'"),
        ({"mergeSchema": "true"}, ".", "option 'mergeSchema' does not exist: .* read together"),
        ({"ignoreCorruptFiles": "true"}, ".", "does not exist: .* always fails the query"),
        ({"local": "perhaps"}, ".", "option 'local' cannot be 'perhaps': true or false"),
        ({"tasks": "few"}, ".", "option 'tasks' cannot be 'few': an integer"),
        ({"tasks": "0"}, ".", r"UnsupportedError: tasks=0: at least 1"),
        ({"columns": '["nothing"]'}, "", "nothing"),
    ],
)
def test_errors_say_what_is_wrong(
    folder: str, format_of: Callable[..., Any], options: dict[str, str], path: str, error: str
) -> None:
    from pyspark.errors import IllegalArgumentException

    with pytest.raises(IllegalArgumentException, match=error) as caught:
        format_of(**options).load(path or folder)
    assert "Traceback" not in str(caught.value)


def test_options_survive_as_text() -> None:
    given = {
        "local": False,
        "tasks": 3,
        "columns": ["a,b", "c"],
        "prune": ("statistics",),
        "partitioning": {"p": pa.string(), "day": pa.date32()},
        "storage_options": {"region": "eu", "n": 1},
        "timeout": 2.5,
        "nan": "ieee",
        "python_path": None,
    }
    made = parsed(as_text([Path("/x"), "/y z"], given))
    assert made.source == ["/x", "/y z"]
    assert {**made.table, **made.scan} == {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value is not None
    }
    assert parsed({"PATH": "file:/a b"}).source == "/a b"
    with pytest.raises(UnsupportedError, match=r"use pageseek\.spark\.read"):
        as_text((object(), "/x"), {})
