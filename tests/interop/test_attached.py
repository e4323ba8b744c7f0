"""Files of several writers with attached indexes: every reader reads the same rows, and some read less.

tests/spark/test_attached.py has Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.engines import (
    FLOATS,
    READERS,
    WRITERS,
    Pair,
    Reader,
    by_pyarrow,
    corpus_pair,
    datafusion_context,
    odd_floats,
    table,
    written_pair,
)


@pytest.fixture(scope="module", params=[*WRITERS, "corpus"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "corpus":
        return corpus_pair(folder, request.getfixturevalue("conformance"))
    return written_pair(folder, WRITERS[request.param])


# fastparquet leaves files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("reader", READERS)
def test_rows_are_the_same(pair: Pair, reader: Reader) -> None:
    pair.check_rows(reader)


def test_the_data_is_where_it_was(pair: Pair) -> None:
    pair.check_bytes()


def counted(path: Path, condition: str, metric: str) -> list[int]:
    """The numbers of a metric of DataFusion's scan."""
    context = datafusion_context()
    context.register_parquet("t", str(path))
    plan = context.sql(f"EXPLAIN ANALYZE SELECT * FROM t WHERE {condition}").to_arrow_table()
    text = "\n".join(plan.column(1).to_pylist())
    found = re.search(rf"{metric}=([^,\]]+)", text)
    assert found is not None, text
    return [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", found[1])]


def test_datafusion_prunes_by_what_was_attached(tmp_path: Path) -> None:
    before, after = tmp_path / "before.parquet", tmp_path / "after.parquet"
    by_pyarrow(table(), before)
    ps.index.attach(before, bloom=["text"], output=after)
    pages = [counted(path, "id = 31007", "page_index_rows_pruned") for path in (before, after)]
    assert not any(pages[0]), pages
    assert any(pages[1]), pages
    asked = "text = 'text 5'"
    filters = [counted(path, asked, "row_groups_pruned_bloom_filter") for path in (before, after)]
    assert filters[0] != filters[1], filters


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose text has a Bloom filter that was attached, and no dictionary that would do as well."""
    path = tmp_path_factory.mktemp("filtered") / "x.parquet"
    pq.write_table(table(), path, row_group_size=20_000, use_dictionary=False)
    ps.index.attach(path, page_index=False, bloom=["id", "text"], in_place=True)
    return path


def test_datafusion_finds_what_is_in_a_filter(filtered: Path) -> None:
    """It passes over the row groups that have not the value, and reads the one that has it."""
    at = 41_234
    text = table()["text"][at].as_py()
    context = datafusion_context()
    context.register_parquet("t", str(filtered))
    found = context.sql(f"SELECT id FROM t WHERE text = '{text}'").to_arrow_table()
    assert found["id"].to_pylist() == [at]
    pruned = counted(filtered, f"text = '{text}'", "row_groups_pruned_bloom_filter")
    assert pruned == [3, 1], pruned  # of three, one is left


def test_duckdb_asks_the_filters(filtered: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    known = "SELECT 1 FROM duckdb_functions() WHERE function_name = 'parquet_bloom_probe'"
    if not connection.sql(known).fetchall():
        pytest.skip("this DuckDB has no parquet_bloom_probe: 1.2 is the first")

    def excluded(column: str, value: object) -> list[bool]:
        query = f"SELECT * FROM parquet_bloom_probe('{filtered}', '{column}', {value!r})"
        rows = connection.sql(query).fetchall()
        return [out for _, _, out in sorted(rows)]

    data = table()
    for column in ("id", "text"):
        for at in range(0, data.num_rows, 1_001):
            assert not excluded(column, data[column][at].as_py())[at // 20_000], (column, at)
    absent = [excluded("text", f"nobody {i}") for i in range(100)]
    assert sum(map(sum, absent)) > 0.95 * 300  # one of a hundred may be there by chance
    absent = [excluded("id", -i) for i in range(1, 101)]
    assert sum(map(sum, absent)) > 0.95 * 300


def test_duckdb_passes_row_groups_over(filtered: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    plain = tmp_path / "plain.parquet"
    ps.index.detach(filtered, output=plain)
    query = "EXPLAIN ANALYZE SELECT * FROM '{}' WHERE text = 'text 5'"
    plans = [str(duckdb.connect().sql(query.format(path)).fetchall()) for path in (plain, filtered)]
    if "Row Groups Scanned" not in plans[0]:
        pytest.skip("this DuckDB does not tell how many row groups it scans")
    assert "Row Groups Scanned: 3 / 3" in plans[0]
    assert "Row Groups Scanned: 0 / 3" in plans[1]


# ---- floats


def by_datafusion(path: Path, condition: str) -> int:
    context = datafusion_context()
    context.register_parquet("t", str(path))
    found = context.sql(f"SELECT n FROM t WHERE {condition}").collect()
    return sum(batch.num_rows for batch in found)


def by_duckdb(path: Path, condition: str) -> int:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"SELECT count(*) AS n FROM '{path}' WHERE {condition}").to_arrow_table()
    return int(found["n"][0].as_py())


def by_polars(path: Path, condition: str) -> int:
    polars = pytest.importorskip("polars")
    frame = polars.scan_parquet(path)
    return int(
        polars.SQLContext(t=frame).execute(f"SELECT n FROM t WHERE {condition}").collect().height
    )


@pytest.mark.parametrize("engine", [by_datafusion, by_duckdb, by_polars])
def test_answers_about_nan_and_zeros_stay(
    tmp_path: Path, engine: Callable[[Path, str], int]
) -> None:
    """Not those of pageseek, which knows what bounds and filters say of them: those that others give."""
    path = odd_floats(tmp_path / "a.parquet")
    before = [engine(path, condition) for condition in FLOATS]
    made = ps.index.attach(path, bloom=["f"], distinct=["f"], in_place=True)
    assert made.added["bloom", "f"] == 2
    assert [engine(path, condition) for condition in FLOATS] == before


def test_engines_that_read_another_type_find_their_values(tmp_path: Path) -> None:
    """DuckDB knows no FLOAT16, and asks a filter for the bytes of a FLOAT."""
    path = tmp_path / "half.parquet"
    values = np.array([0.0, 1.5, -2.5, np.inf, 0.099976, -0.0] * 4, np.float16)
    pq.write_table(pa.table({"f": values, "n": range(24)}), path, row_group_size=8)
    conditions = ["f = 1.5", "f = 0", "f = 0.0999755859375", "f IN (-2.5, 7.5)", "f = 3.25", "f = 'inf'"]  # fmt: skip
    before = [by_duckdb(path, condition) for condition in conditions]
    assert before == [4, 8, 4, 4, 0, 4]
    made = ps.index.attach(path, bloom={"f": 1e-6}, page_index=False, in_place=True)
    assert made.added["bloom", "f"] == 3
    assert [by_duckdb(path, condition) for condition in conditions] == before
    assert ps.index.verify(path).ok
