"""Other readers and writers of Parquet, each behind one function; whoever is not installed skips the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.opened import open_metadata

N = 60_000
Asked = Sequence[tuple[str, Any]]  # rows where one of these columns equals the value beside it
Read = tuple[pa.Table, pa.Table]  # all rows, and those


def table() -> pa.Table:
    """A sorted column, one with nulls, one of few values and one of very many."""
    random = np.random.default_rng(9)
    return pa.table(
        {
            "id": np.arange(N),
            "real": pa.array(random.normal(size=N), mask=random.random(N) < 0.1),
            "word": np.char.add("w", random.integers(0, 40, N).astype(str)),
            "text": np.char.add("text ", random.integers(0, 10**9, N).astype(str)),
        }
    )


# -- writers ------------------------------------------------------------------------------------


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


# -- readers ------------------------------------------------------------------------------------


def pyarrow_reads(path: Path, asked: Asked) -> Read:
    some = pc.scalar(False)
    for name, value in asked:
        some |= ds.field(name) == value
    return pq.read_table(path), ds.dataset(path).to_table(filter=some)


def sql(asked: Asked) -> str:
    """The condition, as all dialects have it."""
    return " OR ".join(f"{name} = {value!r}" for name, value in asked)


def duckdb_reads(path: Path, asked: Asked) -> Read:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    every = f"SELECT * FROM read_parquet('{path}')"
    return (
        connection.sql(every).to_arrow_table(),
        connection.sql(f"{every} WHERE {sql(asked)}").to_arrow_table(),
    )


def polars_reads(path: Path, asked: Asked) -> Read:
    polars = pytest.importorskip("polars")
    some = polars.any_horizontal([polars.col(name) == value for name, value in asked])
    return (
        polars.read_parquet(path).to_arrow(),
        polars.scan_parquet(path).filter(some).collect().to_arrow(),
    )


def datafusion_context() -> Any:
    """A session that uses every index of a file."""
    datafusion = pytest.importorskip("datafusion")
    options = {
        "datafusion.execution.parquet.enable_page_index": "true",
        "datafusion.execution.parquet.bloom_filter_on_read": "true",
        "datafusion.execution.parquet.pushdown_filters": "true",
        "datafusion.execution.target_partitions": "1",
    }
    return datafusion.SessionContext(datafusion.SessionConfig(options))


def datafusion_reads(path: Path, asked: Asked) -> Read:
    context = datafusion_context()
    context.register_parquet("t", str(path))
    return (
        context.sql("SELECT * FROM t").to_arrow_table(),
        context.sql(f"SELECT * FROM t WHERE {sql(asked)}").to_arrow_table(),
    )


def fastparquet_reads(path: Path, asked: Asked) -> Read:
    """It filters no rows by itself: what it reads is filtered."""
    fastparquet = pytest.importorskip("fastparquet")
    every = pa.Table.from_pandas(
        fastparquet.ParquetFile(str(path)).to_pandas(), preserve_index=False
    )
    some = pc.scalar(False)
    for name, value in asked:
        some |= pc.field(name) == value
    return every, every.filter(some)


Reader = Callable[[Path, Asked], Read]
READERS: list[Reader] = [
    pyarrow_reads, duckdb_reads, polars_reads, datafusion_reads, fastparquet_reads,
]  # fmt: skip


# -- files before and after ---------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A file as it was written, and with indexes; what to ask of both."""

    before: Path
    after: Path
    rows: int
    asked: Asked

    def check_bytes(self) -> None:
        """The data pages have not moved."""
        with open_metadata(self.before) as file:
            end = file.footer_start
        old, new = self.before.read_bytes(), self.after.read_bytes()
        assert new[:end] == old[:end]
        assert len(new) > len(old)

    def check_rows(self, reader: Reader) -> None:
        """A reader finds the same in both."""
        every, some = reader(self.before, self.asked)
        every_after, some_after = reader(self.after, self.asked)
        assert every_after.num_rows == self.rows
        assert every_after.equals(every)
        assert answer(some_after) == answer(some)
        assert some_after.num_rows >= 1


def answer(table: pa.Table) -> list[Any]:
    """Rows in an order that does not depend on the reader, as plain values."""
    return sorted(map(tuple, (row.values() for row in table.to_pylist())), key=str)


def written_pair(folder: Path, write: Callable[[pa.Table, Path], None]) -> Pair:
    """The table of this module as a writer writes it, and with all its indexes rebuilt."""
    before, after = folder / "before.parquet", folder / "after.parquet"
    write(table(), before)
    ps.index.attach(before, bloom=["id", "text"], distinct=["word"], replace=True, output=after)
    assert ps.index.verify(after).ok
    return Pair(before, after, N, [("id", 31_007), ("text", "text 5")])


def corpus_pair(folder: Path, conformance: Path) -> Pair:
    """A file of an old parquet-mr, whose footer says neither how values are ordered nor what they are between."""
    before, after = folder / "before.parquet", folder / "after.parquet"
    before.write_bytes((conformance / "corpus/valid/drill__partsupp.parquet").read_bytes())
    made = ps.index.attach(before, bloom=["ps_partkey"], distinct=["ps_suppkey"], output=after)
    assert {kind for kind, _ in made.added} == {"page_index", "bloom", "distinct"}
    assert ps.index.verify(after).ok
    return Pair(before, after, 8_000, [("ps_partkey", 77), ("ps_suppkey", 33)])


# -- floats of which engines make unlike things ---------------------------------------------------

FLOATS = (
    "f >= 900",
    "not (f < 900)",
    "f = 0.0",
    "f = -0.0",
    "f <> 0.0",
    "f > 100 and f < 200",
    "f in (0.0, 7.25)",
)


def odd_floats(path: Path) -> Path:
    """Zeros of both signs, and NaN in pages of small numbers before pages of large ones."""
    small = [-5.5, -0.0, 7.25, 3.0, 0.0] * 200
    values = [*small[:500], float("nan"), *small[501:], *range(100, 1_100)]
    of_zeros = [-0.0, 2.5] * 1_000
    made = pa.table({"f": pa.array([*values, *of_zeros], pa.float64()), "n": range(4_000)})
    options: dict[str, Any] = {
        "row_group_size": 2_000,
        "data_page_size": 800,
        "write_batch_size": 100,
    }
    pq.write_table(made, path, use_dictionary=False, **options)
    return path
