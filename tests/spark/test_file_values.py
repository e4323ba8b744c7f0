"""The hidden column `_metadata`, and the files that a DataFrame reads, are those of Spark's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import UnsupportedError
from pageseek.spark import input_files, load, read, register, report

pytestmark = pytest.mark.spark
FILES, ROWS = 20, 3000
WAYS: tuple[dict[str, Any], ...] = ({}, {"local": False, "native": False})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Files whose addresses have signs to escape, with many row groups and pages."""
    made = tmp_path_factory.mktemp("a b")
    for i in range(FILES):
        place = made / f"d=x%2B{i % 2}"
        place.mkdir(exist_ok=True)
        k = range(i * ROWS, (i + 1) * ROWS)
        pq.write_table(
            pa.table({"k": k, "s": [f"row {n}" for n in k]}),
            place / f"{i} [%25]+#é.parquet",
            row_group_size=1000,
            data_page_size=512,
            write_page_index=True,
        )
    return str(made)


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.covering(1)
@pytest.mark.parametrize("options", WAYS, ids=["driver", "tasks"])
@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("k = 4711", ["k", "_metadata"]),
        ("k between 2990 and 3010 or s = 'row 9999'", ["_metadata.row_index", "s"]),
        ("k % 500 = 3", ["_metadata.file_name", "k", "_metadata.row_index"]),
        ("_metadata.row_index = 1234", ["k"]),
        ("_metadata.file_name like '3%' and k > 9990", ["k", "d"]),
        ("not (_metadata.file_name < '4') and _metadata.row_index > 2998", ["_metadata.file_path"]),
        ("_metadata.file_size > 0 and k < 3", ["_metadata.file_block_length", "d"]),
        ("_metadata.file_modification_time < timestamp '2001-01-01' or k = 5", ["k"]),
        ("_metadata.file_name = 'none' or _metadata.row_index = k", ["k", "d"]),
        ("_metadata is not null and k = 77", ["s"]),
    ],
)
def test_values_are_those_of_sparks_reader(
    spark: Any, folder: str, condition: str, columns: list[str], options: dict[str, Any]
) -> None:
    expected = rows(spark.read.parquet(folder).where(condition).select(*columns))
    assert rows(load(spark, folder, **options).where(condition).select(*columns)) == expected


@pytest.mark.parametrize("options", WAYS, ids=["driver", "tasks"])
def test_rows_are_counted_by_file(spark: Any, folder: str, options: dict[str, Any]) -> None:
    def counted(frame: Any) -> list[str]:
        return rows(frame.groupBy("_metadata.file_name", "d").agg({"k": "sum", "*": "count"}))

    assert counted(load(spark, folder, **options)) == counted(spark.read.parquet(folder))


def test_it_is_hidden_and_large_scans_have_it(spark: Any, folder: str) -> None:
    frame, own = load(spark, folder), spark.read.parquet(folder)
    assert frame.columns == own.columns == ["k", "s", "d"]
    for made in (frame, read(spark, folder)):
        assert rows(made.select("*", "_metadata")) == rows(own.select("*", "_metadata"))
    fields = [field.name for field in frame.select("_metadata").schema[0].dataType]
    assert fields == own.select("_metadata").schema[0].dataType.names


def test_filters_on_names_rule_out_files(spark: Any, folder: str) -> None:
    found = load(spark, folder).where("_metadata.file_name like '2%'").select("k")
    assert len(found.collect()) == ROWS
    assert report(found).to_dict()["files"]["pruned_by"] == {"partition": FILES - 1}


def test_files_join_by_name(spark: Any, folder: str) -> None:
    own = spark.read.parquet(folder)
    names = own.where("k = 4711").selectExpr("_metadata.file_path path")
    for frame in (own, load(spark, folder)):
        joined = frame.join(names, frame["_metadata.file_path"] == names.path).select("k")
        assert joined.count() == ROWS


def test_a_column_of_that_name_wins(spark: Any, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"_metadata": [{"file_name": "mine"}], "a": [1]}), tmp_path / "0.parquet"
    )
    frame, own = load(spark, str(tmp_path)), spark.read.parquet(str(tmp_path))
    for condition in ("a = 1", "_metadata.file_name = 'mine'", "_metadata.file_name like '0%'"):
        wanted = rows(own.where(condition).select("_metadata"))
        assert rows(frame.where(condition).select("_metadata")) == wanted


def test_a_stream_refuses_it(spark: Any, folder: str) -> None:
    register(spark)
    stream = spark.readStream.format("pageseek").load(folder)
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        stream.select("_metadata.file_name").isStreaming  # noqa: B018 (analysis is enough)


def test_input_files_are_those_that_are_left(spark: Any, folder: str) -> None:
    frame, own = load(spark, folder), spark.read.parquet(folder)
    path = [row.file_path for row in own.select("_metadata.file_path").distinct().collect()]
    assert sorted(input_files(frame)) == sorted(path)
    left = input_files(frame.where("k = 4711"))
    assert left == [row[0] for row in own.where("k = 4711").select("_metadata.file_path").collect()]
    assert input_files(frame.where("k = -1")) == []
    assert len(input_files(frame.where("k < 10").union(frame.where("k < 4000")))) == 2
    with pytest.raises(UnsupportedError, match="no scan"):
        input_files(own)
