"""Every example of the README and of docs runs; spark/test_docs.py has those for Spark.

The README and the pages in COMPLETE run as they stand, pasted in order into one session in an empty folder, and print what they show. So do
pages that use the files for the examples, behind the lines that make these.
The other pages are given files and stores; names only if they say so ("The examples assume ...").
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.doc_examples import (
    COMPLETE,
    FILES,
    ROOT,
    assumed,
    blocks,
    difference,
    examples,
    printed,
    with_files,
)
from support.object_server.server import ObjectServer

N = 20_000
EXAMPLES = examples(spark=False)
ORDERS = pa.table(
    {
        "o_orderkey": range(N),
        "o_custkey": [i * 7919 % 5_000 for i in range(N)],
        "o_orderstatus": ["FOP"[i % 3] for i in range(N)],
    }
)
SALES = pa.table(
    {
        "id": range(N),
        "price": pa.array([i % 97 for i in range(N)], pa.float64()),
        "colour": [("red", "crimson", "blue")[i % 3] for i in range(N)],
        "name": [f"a{i % 10}c{i}" for i in range(N)],
        "sold": pa.array([i % 7 for i in range(N)]),
        "bought": pa.array([i % 5 for i in range(N)]),
        "items": [[{"price": i % 150}] for i in range(N)],
    }
)
ROWS = pa.table({"id": range(100), "price": [i / 10 for i in range(100)], "o_custkey": range(100)})


def written(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=N // 2, write_page_index=True)
    return file.getvalue()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    logging.getLogger("pageseek.io").setLevel(logging.NOTSET)  # an example sets it


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The local files of the examples, in the folder that is the current one."""
    pq.write_table(
        ORDERS, tmp_path / "orders.parquet", row_group_size=N // 2, write_page_index=True
    )
    days = pa.array([date(2024, 1, 31 - i % 5) for i in range(N)])
    (tmp_path / "sales").mkdir()
    for i in range(60):  # `take` names a row beyond a million
        pq.write_table(SALES.append_column("day", days), tmp_path / f"sales/{i:02}.parquet")
    for folder in ("lake", "lake/events"):
        (tmp_path / folder / "day=2024-01-31").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for folder in ("lake", "lake/events"):
        pq.write_table(ROWS, f"{folder}/day=2024-01-31/a.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    """The objects of the examples. URLs of S3 lead here by the environment; one server for all, as stores are kept by URL."""
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    with pytest.MonkeyPatch.context() as patch, ObjectServer() as made:
        for name in ("bucket/sales/a", "public-bucket/a", "web/sales", "web/a"):
            made.put(f"{name}.parquet", written(SALES))
        made.put("lake/orders.parquet", written(ORDERS))
        for name, value in (
            ("ENDPOINT", made.endpoint), ("ALLOW_HTTP", "true"),
            ("ACCESS_KEY_ID", "any"), ("SECRET_ACCESS_KEY", "any"),
        ):  # fmt: skip
            patch.setenv(f"AWS_{name}", value)
        yield made


@pytest.fixture
def stores(server: ObjectServer) -> Iterator[dict[str, Any]]:
    """Filesystems with the files of the examples, in memory."""
    obstore = pytest.importorskip("obstore.store")
    fsspec = pytest.importorskip("fsspec")
    memory, mock = obstore.MemoryStore(), pafs._MockFileSystem()
    memory.put("sales/a.parquet", written(SALES))
    mock.create_dir("bucket")
    with mock.open_output_stream("bucket/a.parquet") as out:
        out.write(written(SALES))
    remembered = fsspec.filesystem("memory")
    remembered.pipe("bucket/a.parquet", written(SALES))
    yield {"obstore_store": memory, "pyarrow_filesystem": mock, "fsspec_filesystem": remembered}
    remembered.rm("bucket/a.parquet")


@pytest.fixture
def tables(files: Path) -> Iterator[dict[str, Any]]:
    """Tables of Delta Lake and Iceberg in the folder `tables`."""
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    sql = pytest.importorskip("pyiceberg.catalog.sql", reason="pip install 'pageseek[iceberg]'")
    for _ in range(4):
        deltalake.write_deltalake(str(files / "tables" / "sales"), ROWS, mode="append")
    dated = ROWS.append_column("day", pa.array([date(2024, 1, 31)] * 100))
    deltalake.write_deltalake(str(files / "tables" / "orders"), dated)
    new_year = 1_704_067_200
    os.utime(files / "tables" / "orders" / "_delta_log" / f"{0:020}.json", (new_year, new_year))
    catalog = sql.SqlCatalog("c", uri=f"sqlite:///{files}/c.db", warehouse=f"file://{files}/house")
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", schema=ROWS.schema)
    table.append(ROWS)
    with table.manage_snapshots() as change:
        change.create_tag(table.current_snapshot().snapshot_id, "end-of-year")
    yield {"catalog": catalog, "iceberg_table": table}
    catalog.engine.dispose()


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_run(
    page: str,
    files: Path,
    stores: dict[str, Any],
    tables: dict[str, Any],
    server: ObjectServer,
) -> None:
    for engine in ("datafusion", "duckdb", "polars") if page == "docs/engines.md" else ():
        pytest.importorskip(engine, reason="pip install 'pageseek[bench]'")
    ps.clear_cache()
    prepared = {**stores, **tables}
    space = {name: prepared[name] for name in assumed(page) if name in prepared}
    code = EXAMPLES[page]
    for said, meant in (
        ("https://example.org/", server.url("web/")),
        (
            '"s3://lake/orders", storage_options={"region": "eu-central-1"}',
            f'"{files}/tables/orders"',
        ),
        (
            '"s3://lake/orders", storage_options={"AWS_REGION": "eu-central-1"}',
            f'"{files}/tables/orders"',
        ),
        ('"s3://lake/orders"', f'"{files}/tables/orders"'),  # a table: locally
        (
            '"/lake/orders/metadata/v3.metadata.json"',
            repr(tables["iceberg_table"].metadata_location),
        ),
        ('"/lake/orders"', f'"{files}/tables/orders"'),
        ('"/lake/events"', f'"{files}/lake/events"'),
    ):
        code = code.replace(said, meant)
    exec(compile(code, page, "exec"), space)


def test_files_for_the_examples_are_those_of_the_readme() -> None:
    (made,) = blocks((ROOT / FILES).read_text())
    assert made.code in (ROOT / "README.md").read_text()
    assert len(with_files()) >= 6


@pytest.mark.parametrize("page", [*COMPLETE, *with_files()])
def test_a_page_runs_as_pasted_in_an_empty_folder_and_prints_what_it_shows(
    page: str, server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, wrong = (ROOT / page).read_text(), []
    for module, extra in (("deltalake", "delta"), ("duckdb", "bench"), ("polars", "bench")):
        if f"import {module}" in text or f"from {module}" in text:
            pytest.importorskip(module, reason=f"pip install 'pageseek[{extra}]'")
    ps.clear_cache()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    # buckets and servers are the reader's own; here they are these
    for block, said in printed(page, tmp_path, {"https://example.org/": server.url("web/")}):
        if block.output:
            first, stop = block.output
            if found := difference(text[first:stop], said):
                wrong.append(f"{page}, line {block.line}: {found}")
    remedy = "python tools/outputs.py writes what the examples print"
    assert not wrong, "\n".join([*wrong, remedy])


@pytest.mark.parametrize(
    ("shown", "said", "same"),
    [
        ("1 row, 20.0 kB\n", "1 row, 21.1 kB\n", True),
        ("1 row, 20.0 kB\n", "1 row, 30.0 kB\n", False),
        ("1 row, 2.0 kB\n", "2 rows, 2.0 kB\n", False),
        ("in 0.9 s\n", "in 1.3 s\n", True),
        ("requests  4\nrows  4\n", "requests  9\nrows  4\n", True),
        ("rows  4\n", "rows  4\nrows  5\n", False),
        ("rows  #####.....  5\n", "rows    ####......  5\n", True),
    ],
)
def test_outputs_are_compared_without_what_machines_decide(
    shown: str, said: str, same: bool
) -> None:
    assert (difference(shown, said) == "") is same
