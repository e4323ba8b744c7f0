"""TPC-H lineitem, scale 0.1: a key, a month and both, in Spark, compared with pyarrow."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pageseek.bench import generate

import pageseek as ps
from pageseek.spark import read

pytestmark = pytest.mark.spark
MONTH = dt.date(1995, 3, 1), dt.date(1995, 4, 1)


@pytest.fixture(scope="module")
def lineitem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    if generate.tpchgen() is None:
        pytest.skip("no tpchgen-cli: pip install tpchgen-cli")
    path = generate.lineitem_file(tmp_path_factory.mktemp("tpch"), 0.1)
    table = pq.read_table(path)
    fields = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in table.schema]
    return path, table.cast(pa.schema(fields))


KEY, DATE = ps.col("l_orderkey"), ps.col("l_shipdate")
IN_MONTH = (MONTH[0] <= DATE) & (MONTH[1] > DATE)
WANTED = (pc.field("l_shipdate") >= MONTH[0]) & (pc.field("l_shipdate") < MONTH[1])
CASES = {
    "key": (KEY == 200_000, pc.field("l_orderkey") == 200_000),
    "month": (IN_MONTH, WANTED),
    "both": (IN_MONTH & (KEY <= 200_000), WANTED & (pc.field("l_orderkey") <= 200_000)),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_of_lineitem(spark: Any, lineitem: tuple[Path, pa.Table], case: str) -> None:
    path, table = lineitem
    ours, theirs = CASES[case]
    wanted = table.filter(theirs)
    assert wanted.num_rows > 0
    found = [tuple(row) for row in read(spark, str(path), filter=ours).collect()]
    rows = zip(*(column.to_pylist() for column in wanted.columns), strict=True)
    assert sorted(found) == sorted(rows)
