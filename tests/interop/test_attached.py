"""Files of several writers after indexes were attached: every reader reads the same rows, and some of them less."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pageseek as ps

N = 60_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(9)
    return pa.table(
        {
            "id": np.arange(N),
            "real": pa.array(random.normal(size=N), mask=random.random(N) < 0.1),
            "word": np.char.add("w", random.integers(0, 40, N).astype(str)),
            "text": np.char.add("text ", random.integers(0, 10**9, N).astype(str)),
        }
    )


def by_pyarrow(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=20_000, data_page_size=8_000, write_batch_size=1000)


def by_duckdb(table: pa.Table, path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("given", table)
    connection.sql(f"COPY (SELECT * FROM given) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 20480)")


def by_polars(table: pa.Table, path: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.from_arrow(table).write_parquet(path, row_group_size=20_000, data_page_size=8_000)


def by_datafusion(table: pa.Table, path: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    one = datafusion.SessionConfig({"datafusion.execution.minimum_parallel_output_files": "1"})
    frame = datafusion.SessionContext(one).from_arrow(table)
    out = path.with_suffix("")
    frame.write_parquet(str(out))
    (made,) = [out] if out.is_file() else sorted(out.iterdir())
    made.rename(path)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "pyarrow": by_pyarrow, "duckdb": by_duckdb, "polars": by_polars, "datafusion": by_datafusion,
}  # fmt: skip


@pytest.fixture(scope="module", params=WRITERS)
def pair(
    request: pytest.FixtureRequest, table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A file as it was written, and with indexes."""
    folder = tmp_path_factory.mktemp(request.param)
    before, after = folder / "before.parquet", folder / "after.parquet"
    WRITERS[request.param](table, before)
    ps.index.attach(before, bloom=["id", "text"], distinct=["word"], replace=True, output=after)
    assert ps.index.verify(after).ok
    return before, after


def answer(table: Any) -> list[Any]:
    """Rows in order, as plain values."""
    return sorted(map(tuple, (row.values() for row in table.to_pylist())), key=str)


def pyarrow_reads(path: Path) -> tuple[pa.Table, pa.Table]:
    some = (ds.field("id") == 31_007) | (ds.field("text") == "text 5")
    return pq.read_table(path), ds.dataset(path).to_table(filter=some)


def duckdb_reads(path: Path) -> tuple[pa.Table, pa.Table]:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    every = connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    some = connection.sql(
        f"SELECT * FROM read_parquet('{path}') WHERE id = 31007 OR text = 'text 5'"
    ).to_arrow_table()
    return every, some


def polars_reads(path: Path) -> tuple[pa.Table, pa.Table]:
    polars = pytest.importorskip("polars")
    some = (polars.col("id") == 31_007) | (polars.col("text") == "text 5")
    return polars.read_parquet(path).to_arrow(), polars.scan_parquet(path).filter(
        some
    ).collect().to_arrow()


def datafusion_reads(path: Path) -> tuple[pa.Table, pa.Table]:
    datafusion = pytest.importorskip("datafusion")
    context = pruning(datafusion)
    context.register_parquet("t", str(path))
    every = context.sql("SELECT * FROM t").to_arrow_table()
    return every, context.sql(
        "SELECT * FROM t WHERE id = 31007 OR text = 'text 5'"
    ).to_arrow_table()


def fastparquet_reads(path: Path) -> tuple[pa.Table, pa.Table]:
    fastparquet = pytest.importorskip("fastparquet")
    every = pa.Table.from_pandas(
        fastparquet.ParquetFile(str(path)).to_pandas(), preserve_index=False
    )
    return every, every.filter(pc.equal(every["id"], 31_007))


READERS = [pyarrow_reads, duckdb_reads, polars_reads, datafusion_reads, fastparquet_reads]


# fastparquet leaves files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("reader", READERS)
def test_rows_are_the_same(pair: tuple[Path, Path], reader: Any) -> None:
    (all_before, some_before), (all_after, some_after) = map(reader, pair)
    assert all_after.num_rows == N
    assert all_after.equals(all_before)
    assert answer(some_after) == answer(some_before)
    assert some_after.num_rows >= 1


def test_the_data_is_where_it_was(pair: tuple[Path, Path]) -> None:
    before, after = pair
    with ps.open(before) as file:
        end = file.footer_start
    assert after.read_bytes()[:end] == before.read_bytes()[:end]


def pruning(datafusion: Any) -> Any:
    options = {
        "datafusion.execution.parquet.enable_page_index": "true",
        "datafusion.execution.parquet.bloom_filter_on_read": "true",
        "datafusion.execution.parquet.pushdown_filters": "true",
        "datafusion.execution.target_partitions": "1",
    }
    return datafusion.SessionContext(datafusion.SessionConfig(options))


def counted(datafusion: Any, path: Path, condition: str, metric: str) -> list[int]:
    """The numbers of a metric of DataFusion's scan."""
    context = pruning(datafusion)
    context.register_parquet("t", str(path))
    plan = context.sql(f"EXPLAIN ANALYZE SELECT * FROM t WHERE {condition}").to_arrow_table()
    text = "\n".join(plan.column(1).to_pylist())
    found = re.search(rf"{metric}=([^,\]]+)", text)
    assert found is not None, text
    return [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", found[1])]


def test_datafusion_prunes_by_what_was_attached(table: pa.Table, tmp_path: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    before, after = tmp_path / "before.parquet", tmp_path / "after.parquet"
    by_pyarrow(table, before)
    ps.index.attach(before, bloom=["text"], output=after)
    pages = [
        counted(datafusion, path, "id = 31007", "page_index_rows_pruned")
        for path in (before, after)
    ]
    assert not any(pages[0]), pages
    assert any(pages[1]), pages
    asked = "text = 'text 5'"
    filters = [
        counted(datafusion, path, asked, "row_groups_pruned_bloom_filter")
        for path in (before, after)
    ]
    assert filters[0] != filters[1], filters
