"""Column names by the session's case sensitivity, in files that spell them differently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark import read

pytestmark = pytest.mark.spark


def test_names_that_differ_in_case_alone_are_ambiguous(
    spark: Any, tmp_path: Path, conf: Any
) -> None:
    path = str(tmp_path / "both.parquet")
    pq.write_table(pa.table({"id": [1], "ID": [2], "s": [{"a": 1, "A": 2}]}), path)
    for condition in ("id = 1", "ID = 1", ps.col("Id") == 1, "s.a = 1"):
        with pytest.raises(ps.PredicateError, match=r"ambiguous.*caseSensitive"):
            read(spark, path, filter=condition)
    with pytest.raises(ps.PredicateError, match="ambiguous"):
        read(spark, path, ["id"])
    conf("spark.sql.caseSensitive", "true")
    assert read(spark, path, ["ID"], "id = 1 and s.A = 2").collect() == [(2,)]


def test_names_of_folders_and_of_later_files(spark: Any, tmp_path: Path) -> None:
    for day, table in (
        ("2024-01-01", pa.table({"k": [1, 2]})),
        ("2024-01-02", pa.table({"k": [3, 4], "Later": [5.5, 6.5]})),
    ):
        folder = tmp_path / f"Day={day}"
        folder.mkdir()
        pq.write_table(table, folder / "0.parquet")
    found = read(spark, str(tmp_path), ["K", "DAY"], "DAY = '2024-01-02' and later > 5.4")
    assert found.columns == ["K", "DAY"]
    assert sorted(row["K"] for row in found.collect()) == [3, 4]
    assert read(spark, str(tmp_path), ["k"], "day < timestamp '2024-01-01 00:00:01'").count() == 2
