"""`write` finds out before a task runs what the files that are there, or the indexes, do not allow."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import PageseekError, PredicateError, UnsupportedError
from pageseek.spark import load, write
from pageseek.spark.writing.trial import try_out
from pageseek.spark.writing.write_task import WriteSpec
from pageseek.storage.output_folders import OutputFolder

pytestmark = pytest.mark.spark


def all_files(folder: Path) -> list[str]:
    return sorted(os.path.join(a, name) for a, _, names in os.walk(folder) for name in names)


@pytest.mark.parametrize(
    ("asked", "kind", "message"),
    [
        ({"bloom": ["st"]}, PageseekError, "st"),
        ({"bloom": {"id": 2.0}}, ValueError, "2.0"),
        ({"index": {"distinct": ["m"]}}, PageseekError, "m"),
        ({"index": {"none": ["s"]}}, ValueError, "none"),
    ],
)
def test_an_index_that_cannot_be_is_refused_before_a_task_runs(
    spark: Any, tmp_path: Path, asked: dict[str, Any], kind: type[Exception], message: str
):
    ran = spark.sparkContext.accumulator(0)

    def count(value: int) -> int:
        ran.add(1)
        return value

    spark.udf.register("ran", count, "long")
    frame = spark.range(5).selectExpr(
        "ran(id) id", "'a' s", "map('a', id) m", "struct(id x, id y) st"
    )
    with pytest.raises(kind, match=message) as caught:
        write(frame, tmp_path / "out", **asked)
    assert "Traceback" not in str(caught.value)
    assert "pageseek-write-" not in str(caught.value)  # the file that was tried is nobody's concern
    assert ran.value == 0
    assert all_files(tmp_path) == []


def test_rows_of_other_types_are_not_added(spark: Any, tmp_path: Path):
    folder = tmp_path / "out"
    write(spark.range(5).selectExpr("id", "'a' s", "timestamp '2024-01-01' t"), folder)
    before = all_files(folder)
    with pytest.raises(UnsupportedError, match=r"column 's' is string .* int32 .* cast it"):
        write(spark.range(5).selectExpr("id", "1 s"), folder, mode="append")
    assert all_files(folder) == before
    # wider, absent and new columns go together
    write(spark.range(5).selectExpr("cast(id as int) id", "2 more"), folder, mode="append")
    assert load(spark, folder).selectExpr("count(s)", "count(more)", "sum(id)").collect() == [
        (5, 5, 20)
    ]
    write(spark.range(5).selectExpr("id", "cast(1 as bigint) more"), folder, mode="append")
    with pytest.raises(UnsupportedError, match=r"column 'more' is int64 .* double .* cast it"):
        write(spark.range(5).selectExpr("id", "1.5D more"), folder, mode="append")  # as int32 could
    write(spark.range(5).selectExpr("1 s"), folder, mode="overwrite")  # nothing stays beside it
    assert load(spark, folder).where("s = 1").count() == 5


@pytest.mark.parametrize("kinds", list(permutations([pa.int32(), pa.int64(), pa.int16()])))
def test_types_are_held_against_those_of_all_files(tmp_path: Path, kinds: list[pa.DataType]):
    names = [f"part-{i}.parquet" for i in range(len(kinds))]
    for name, kind in zip(names, kinds, strict=True):
        pq.write_table(pa.table({"k": pa.array([1], kind)}), tmp_path / name)
    spec = WriteSpec(
        folder=OutputFolder(str(tmp_path)), staging="s", job="j", schema=pa.schema([("k", pa.float64())]),
        partition_by=(), layout="lookup", sorting=(), compression="none", metadata={}, bloom={}, indexes={},
        group_rows=10, file_rows=None,
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"column 'k' is int64 .* double"):
        try_out(spec, names)
    for kind in (pa.int8(), pa.int64()):
        try_out(replace(spec, schema=pa.schema([("k", kind)])), names)
    near = [name for name, kind in zip(names, kinds, strict=True) if kind != pa.int64()]
    try_out(spec, near)


@pytest.mark.parametrize("partition_by", [(), ("q",), ("q", "p")])
def test_folders_of_other_columns_are_not_mixed(
    spark: Any, tmp_path: Path, partition_by: tuple[str, ...]
):
    folder, frame = tmp_path / "out", spark.range(6).selectExpr("id", "id % 2 p", "id % 3 q")
    write(frame, folder, partition_by=["p"])
    before = all_files(folder)
    with pytest.raises(PredicateError, match=r"files in folders of p, and partition_by names"):
        write(frame, folder, mode="append", partition_by=partition_by)
    if partition_by:
        with pytest.raises(PredicateError, match=r"files in folders of p, and partition_by names"):
            write(frame, folder, mode="overwrite", partition_by=partition_by, dynamic=True)
    assert all_files(folder) == before
    write(frame, folder, mode="append", partition_by=["p"])
    assert load(spark, folder).count() == 12
