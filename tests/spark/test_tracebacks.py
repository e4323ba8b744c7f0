"""Errors of `pageseek.spark` in the driver show one frame of pageseek."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pytestmark = pytest.mark.spark

CALLS: dict[str, Callable[[Any, str], Any]] = {
    "load": lambda spark, path: ps.spark.load(spark, f"{path}.gone"),
    "read": lambda spark, path: ps.spark.read(spark, ps.scan(path).filter("idd = 3")),
    "lookup": lambda spark, path: ps.spark.lookup(spark, path, [1], on="idd"),
    "aggregate": lambda spark, path: ps.spark.aggregate(spark, path, [("id", "median")]),
    "report": lambda spark, path: ps.spark.report(spark.range(3)),
    "write": lambda spark, path: ps.spark.write(spark.range(3), f"{path}.new", sort_by="idd"),
    "attach_index": lambda spark, path: ps.spark.attach_index(spark, f"{path}.gone"),
    "optimize": lambda spark, path: ps.spark.optimize(spark, f"{path}.gone"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_in_the_driver_shows_the_public_function_alone(
    spark: Any, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1, 2, 3]}), path)
    with pytest.raises((ps.PageseekError, OSError, TypeError, ValueError)) as caught:
        CALLS[name](spark, path)
    package = str(Path(ps.__file__).parent)
    summary = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in summary if f.filename.startswith(package)] == [name]
