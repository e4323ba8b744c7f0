"""Every example of the README and of docs that reads into Spark runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.spark import register
from support.doc_examples import assumed, examples

pytestmark = pytest.mark.spark
EXAMPLES = examples(spark=True)
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_run(page: str, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    folder.mkdir()
    for i in range(2):
        ids = range(3_000 * i, 3_000 * (i + 1))
        few = [n % 9 for n in ids]
        columns = {"id": ids, "price": [n / 7 for n in ids], "day": few, "units": few}
        made = pa.table({**columns, "device": few})
        pq.write_table(made, folder / f"{i}.parquet")
    space = {"spark": spark} if "spark" in assumed(page) else {}
    code = EXAMPLES[page].replace('"/lake/found"', f'"{tmp_path / "found"}"')
    code = code.replace('"sales/"', f'"{folder}"').replace('"/lake/events"', f'"{folder}"')
    exec(compile(code, page, "exec"), space)
    frames = [space[name] for name in ("df", "frame", "found") if name in space]
    assert frames
    for frame in frames:
        assert [tuple(row) for row in frame.collect()] in ([(42, 6.0)], [(4711, 673.0)])


def test_the_statements_run(spark: Any, tmp_path: Path) -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", (DOCS / "spark.md").read_text(), re.DOTALL)
    table = pa.table({"id": [4711, 4712], "price": [673.0, 674.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    register(spark)
    try:
        for statement in block.replace("/lake/events", str(tmp_path)).split(";"):
            if statement.strip():
                answer = spark.sql(statement).collect()
        assert [row.price for row in answer] == [673.0]
        for made in ("events", "lake_events"):
            assert [row.id for row in spark.table(made).collect()] == [4711, 4712]
    finally:
        spark.sql("drop view if exists events")
        spark.sql("drop table if exists lake_events")
