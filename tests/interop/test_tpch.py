"""TPC-H lineitem as its generator writes it: answers equal pyarrow's."""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps


def plain(table: pa.Table) -> pa.Table:
    """String views as strings: pyarrow's filter does not take them."""
    fields = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in table.schema]
    return table.cast(pa.schema(fields))


@pytest.fixture(scope="module")
def lineitem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    command = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if command is None:
        pytest.skip("no tpchgen-cli: pip install tpchgen-cli")
    folder = tmp_path_factory.mktemp("tpch")
    made = subprocess.run(
        [command, "parquet", "-s", "0.1", "--tables", "lineitem", "-o", str(folder)],
        capture_output=True,
        text=True,
    )
    if made.returncode:  # older releases take the format as an option
        subprocess.run(
            [
                command,
                "-s",
                "0.1",
                "--tables",
                "lineitem",
                "--format",
                "parquet",
                "-o",
                str(folder),
            ],
            check=True,
        )
    path = next(folder.rglob("lineitem*.parquet"))
    return path, plain(pq.read_table(path))


MONTH = dt.date(1995, 3, 1), dt.date(1995, 4, 1)


def test_the_whole_table(lineitem: tuple[Path, pa.Table]) -> None:
    path, table = lineitem
    assert plain(ps.read_table(path)).equals(table)
    assert ps.scan(path).schema == pq.read_schema(path)
    assert ps.scan(path).count_rows() == table.num_rows


@pytest.mark.parametrize("key", [1, 2, 7, 100_000, 300_003, 600_000, 599_999, 5, 0, -1, 10**12])
def test_an_order(lineitem: tuple[Path, pa.Table], key: int) -> None:
    path, table = lineitem
    wanted = table.filter(pc.field("l_orderkey") == key)
    assert plain(ps.read_table(path, filter=ps.col("l_orderkey") == key)).equals(wanted)


def test_a_month(lineitem: tuple[Path, pa.Table]) -> None:
    path, table = lineitem
    date, column = pc.field("l_shipdate"), ps.col("l_shipdate")
    wanted = table.filter((date >= MONTH[0]) & (date < MONTH[1]))
    assert wanted.num_rows > 1000
    assert plain(ps.read_table(path, filter=(column >= MONTH[0]) & (column < MONTH[1]))).equals(
        wanted
    )


def test_a_month_of_some_orders(lineitem: tuple[Path, pa.Table]) -> None:
    path, table = lineitem
    date, key = pc.field("l_shipdate"), pc.field("l_orderkey")
    wanted = table.filter((date >= MONTH[0]) & (date < MONTH[1]) & (key >= 1000) & (key < 20_000))
    assert wanted.num_rows > 0
    condition = (
        ps.col("l_orderkey").between(1000, 19_999)
        & (ps.col("l_shipdate") >= MONTH[0])
        & (ps.col("l_shipdate") < MONTH[1])
    )
    names = ["l_comment", "l_orderkey", "l_extendedprice", "l_shipdate"]
    assert plain(ps.read_table(path, filter=condition)).equals(wanted)
    assert plain(ps.read_table(path, columns=names, filter=condition)).equals(wanted.select(names))
    assert ps.scan(path, filter=condition).count_rows() == wanted.num_rows
