"""Random SQL through every door, beside Spark's own reader. `proofs/spark.py` asks thousands."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pageseek.spark import register
from support import sql_doors
from support.sql_comparison import ANSI, CASE, WAYS, ZONE, compare
from support.sql_files import write_files

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def files(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    register(spark)
    return write_files(spark, tmp_path_factory.mktemp("sql"))


@pytest.mark.parametrize(
    ("name", "zone", "ansi", "case"),
    [
        ("types", "America/New_York", "true", "false"),
        ("many", "Asia/Kolkata", "false", "true"),
        ("int96", "America/New_York", "false", "false"),
        ("legacy", "UTC", "true", "true"),
    ],
)
def test_random_sql_has_the_rows_of_sparks_reader_through_all_doors(
    spark: Any, files: dict[str, str], name: str, zone: str, ansi: str, case: str
) -> None:
    rng = random.Random(f"20 {name}")
    wanted = {ZONE: zone, ANSI: ansi, CASE: case}
    counts, wrong = compare(spark, files[name], rng, wanted, rng.choice(WAYS), 5)
    assert wrong == []
    assert counts["answers"] >= 18
    assert counts["rows"] > 0


def test_rows_that_differ_are_named(spark: Any, files: dict[str, str], monkeypatch: Any) -> None:
    def first_row(spark: Any, path: str, columns: list[str]) -> sql_doors.Door:
        frame = spark.read.parquet(path)
        kept = [sql_doors.quoted(name) for name in columns]
        return lambda condition: frame.where(condition).limit(1).select(*kept)

    monkeypatch.setattr(sql_doors, "native", first_row)
    wanted = {ZONE: "UTC", ANSI: "false", CASE: "true"}
    counts, wrong = compare(spark, files["types"], random.Random(1), wanted, {}, 6, ["load"])
    assert counts["other rows"] == len(wrong) > 0
    assert "rows more, 0 fewer" in wrong[0]
