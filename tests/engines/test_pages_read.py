"""What an engine asks for is what a server sends: one page a column for a key, by the server's own log."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.storage import endpoint as endpoints
from support.object_requests import ObjectRequests
from support.object_server.server import ObjectServer
from support.page_truth import read_pages
from support.remote_files import PATH, content, over_http, table

ROW = 12_345


def by_duckdb(source: Any) -> Any:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("d", ps.dataset(source))
        return connection.sql(f"select id, v, text from d where id = {ROW}").to_arrow_table()


def by_datafusion(source: Any) -> Any:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_dataset("d", ps.dataset(source))
    found = context.sql(f"select id, v, text from d where id = {ROW}").collect()
    return pa.Table.from_batches(found)


def by_polars(source: Any) -> Any:
    pl = pytest.importorskip("polars")
    lazy = ps.polars.scan(source).filter(pl.col("id") == ROW)
    return lazy.select("id", "v", "text").collect().to_arrow()


def by_polars_of_the_dataset(source: Any) -> Any:
    pl = pytest.importorskip("polars")
    lazy = pl.scan_pyarrow_dataset(ps.dataset(source)).filter(pl.col("id") == ROW)
    return lazy.select("id", "v", "text").collect().to_arrow()


def by_pyarrow(source: Any) -> Any:
    return ps.dataset(source).to_table(["id", "v", "text"], pc.field("id") == ROW)


def by_fragments(source: Any) -> Any:
    (fragment,) = ps.dataset(source).get_fragments(pc.field("id") == ROW)
    return fragment.to_table(columns=["id", "v", "text"], filter=pc.field("id") == ROW)


@pytest.mark.parametrize(
    "query",
    [by_duckdb, by_datafusion, by_polars, by_polars_of_the_dataset, by_pyarrow, by_fragments],
)
def test_a_row_by_its_key_takes_one_page_of_each_column(
    query: Callable[[Any], Any],
    object_server: ObjectServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # a wait is worth less than a page: no page comes along with another
    monkeypatch.setattr(endpoints, "LATENCY", 0.002)
    monkeypatch.setattr(endpoints, "BANDWIDTH", 1e6)
    ps.clear_cache()
    object_server.put(PATH, content())
    (tmp_path / "a.parquet").write_bytes(content())
    pages = read_pages(tmp_path / "a.parquet")[0]
    scan = ps.scan(**over_http(object_server))
    assert scan.schema.names == [
        "id",
        "seed",
        "v",
        "text",
    ]  # the footer, which an engine asks for first
    object_server.log.reset()
    found = query(scan)
    (row,) = found.to_pylist()
    assert row == table().select(["id", "v", "text"]).slice(ROW, 1).to_pylist()[0]
    asked = ObjectRequests(object_server, PATH)
    for name in ("id", "v", "text"):
        assert pages[name].required_leaves(asked.places) == pages[name].of_rows([ROW])
    assert pages["seed"].required_leaves(asked.places) == []


def test_a_count_reads_no_page(object_server: ObjectServer) -> None:
    ps.clear_cache()
    object_server.put(PATH, content())
    dataset = ps.dataset(ps.scan(**over_http(object_server)))
    assert dataset.schema.names == ["id", "seed", "v", "text"]
    object_server.log.reset()
    assert dataset.count_rows() == dataset.count_rows(filter=pc.field("id") >= 0) == 20_000
    assert dataset.to_table(columns=[]).num_rows == 20_000
    assert ObjectRequests(object_server, PATH).places == []


def test_a_field_of_a_struct_is_read_alone() -> None:
    file = io.BytesIO()
    made = pa.table({"st": [{"x": k, "y": "y" * 50 + str(k)} for k in range(2_000)]})
    pq.write_table(made, file)
    scanner = ps.dataset(file.getvalue()).scanner(columns={"x": pc.field("st", "x")})
    report = scanner.explain(analyze=True)
    assert list(report.to_dict()["leaves"]) == ["st.x"]
    assert scanner.to_table()["x"].to_pylist() == list(range(2_000))
