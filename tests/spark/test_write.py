"""`write`: what it writes reads back as what Spark writes, and appears whole or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import PredicateError, UnsupportedError
from pageseek.spark import write
from pageseek.spark.writing.commit import STAGING

pytestmark = pytest.mark.spark

METADATA = b"org.apache.spark.sql.parquet.row.metadata"
COLUMNS = [
    "id as l", "cast(id as int) i", "cast(id as short) sh", "cast(id % 100 as byte) b", "id % 2 = 0 bo",
    "if(id = 4, float('nan'), cast(id as float)) f", "cast(id as double) d", "if(id = 2, null, 'é' || id) s",
    "cast(cast(id as string) as binary) bin", "date '1500-03-01' + cast(id as int) da",
    "timestamp '1800-01-01 10:00:00.000001' + make_dt_interval(0, 0, 0, id) ts",
    "timestamp_ntz '2020-01-01 10:00:00' n", "cast(id as decimal(9, 2)) d9", "cast(-id as decimal(18, 3)) d18",
    "cast(id as decimal(38, 3)) d38", "make_dt_interval(0, 0, 0, id) dt", "interval '3' day dd",
    "if(id = 1, null, array(id, null)) a", "map('a', id) m",
    "array(interval '3' day) ai", "struct(id x, array(struct(id as y)) z) st",
    "if(id = 3, null, named_struct('r', id, 'q', struct(id))) nn", "cast('ab' as char(3)) ch",
]  # fmt: skip
MONTHS = ["make_ym_interval(-1, -3) ym", "interval '2' year yy", "interval '25' month mm"]


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


def data(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("part-*.parquet") if STAGING not in str(path))


def nothing_staged(folder: Path) -> bool:
    return not [name for name in os.listdir(folder) if STAGING in name]


def test_types_and_values_read_back_as_those_that_spark_writes(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
):
    conf("spark.sql.session.timeZone", "America/New_York")
    conf("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame = spark.range(0, 10, 1, 2).selectExpr(*COLUMNS, *MONTHS)
    write(frame, tmp_path / "ours")
    frame.write.parquet(str(tmp_path / "own"))
    ours, own = (
        spark.read.parquet(str(tmp_path / "ours")),
        spark.read.parquet(str(tmp_path / "own")),
    )
    assert ours.schema == own.schema
    texts = [f"cast({name} as string) {name}" for name in ("ym", "yy", "mm")]
    plain = [name for name in own.columns if name not in ("ym", "yy", "mm")]
    assert rows(ours.selectExpr(*plain, *texts)) == rows(own.selectExpr(*plain, *texts))
    one, other = (pq.ParquetFile(data(tmp_path / name)[0]) for name in ("ours", "own"))
    said = [
        re.sub(
            '"nullable": (true|false)',
            "",
            json.dumps(json.loads(file.metadata.metadata[METADATA]), sort_keys=True),
        )
        for file in (one, other)
    ]  # Spark's optimizer proves some columns to have no nulls
    assert said[0] == said[1]
    for i in range(len(other.schema)):
        mine, theirs = one.schema.column(i), other.schema.column(i)
        said = (mine.path, mine.physical_type, str(mine.logical_type), mine.max_repetition_level)
        assert said == (
            theirs.path, theirs.physical_type, str(theirs.logical_type), theirs.max_repetition_level
        )  # fmt: skip


def test_variants_and_times_read_back(spark: Any, tmp_path: Path, conf: Callable[[str, str], None]):
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 1):
        pytest.skip("this Spark has no type for times")
    conf("spark.sql.timeType.enabled", "true")
    frame = spark.range(10).selectExpr(
        "parse_json('{\"a\": ' || id || '}') v", "if(id = 3, null, parse_json('[1]')) nv",
        "time '10:00:01.5' t", "if(id = 2, null, time '00:00:00.000001') nt",
    )  # fmt: skip
    write(frame, tmp_path)
    found = spark.read.parquet(str(tmp_path))
    assert [field.dataType for field in found.schema] == [field.dataType for field in frame.schema]
    texts = [f"cast({name} as string) {name}" for name in frame.columns]
    assert rows(found.selectExpr(*texts)) == rows(frame.selectExpr(*texts))


def test_types_without_a_form_in_parquet_are_refused_before_anything_is_written(
    spark: Any, tmp_path: Path
):
    for column in ("null v", "make_interval(1) v", "struct(interval '1' month m) v"):
        with pytest.raises(UnsupportedError, match="'v"):
            write(spark.range(3).selectExpr(column), tmp_path / "x")
    assert not (tmp_path / "x").exists() or nothing_staged(tmp_path / "x")


def test_folders_of_partitions_are_named_as_spark_names_them(spark: Any, tmp_path: Path):
    texts = [
        "plain",
        "a/b",
        "k=v",
        "100%",
        "x:y*?",
        "[{^}]",
        "",
        "é ü",
        "tab\t",
        "\"'#\\",
        "a\x7fb",
    ]
    frame = spark.createDataFrame(
        [(i, t, i / 2, None if i == 1 else i) for i, t in enumerate([*texts, None])],
        "id int, `t x` string, d double, n int",
    ).selectExpr("*", "timestamp '2020-01-01 10:00:00' at", "date '2020-01-02' day")
    by = ["t x", "d", "n", "at", "day"]
    write(frame, tmp_path / "ours", partition_by=by, sort_by="id")
    frame.write.partitionBy(*by).parquet(str(tmp_path / "own"))
    folders = [
        {str(path.parent.relative_to(tmp_path / name)) for path in data(tmp_path / name)}
        for name in ("ours", "own")
    ]
    assert folders[0] == folders[1]
    ours, own = (spark.read.parquet(str(tmp_path / name)) for name in ("ours", "own"))
    assert ours.schema == own.schema
    assert rows(ours) == rows(own)


def test_binary_values_that_are_text_name_folders(spark: Any, tmp_path: Path):
    values = [b"a", b"b/c=\xc3\xa9", b"x y", None, b"1"]  # Spark fails with an empty one
    frame = spark.createDataFrame(list(enumerate(values)), "id int, b binary")
    write(frame.where("id < 3"), tmp_path / "ours", partition_by="b")
    write(frame.where("id >= 3"), tmp_path / "ours", partition_by="b", mode="append")
    frame.write.partitionBy("b").parquet(str(tmp_path / "own"))
    named = [{path.parent.name for path in data(tmp_path / one)} for one in ("ours", "own")]
    assert named[0] == named[1]
    ours, own = (spark.read.parquet(str(tmp_path / name)) for name in ("ours", "own"))
    assert ours.schema == own.schema
    assert rows(ours) == rows(own)
    odd = spark.createDataFrame([(1, b"x"), (2, b"\xff")], "id int, b binary")
    with pytest.raises(UnsupportedError, match=r"column 'b' has the value b'\\xff'.*not UTF-8"):
        write(odd, tmp_path / "odd", partition_by="b")
    assert os.listdir(tmp_path / "odd") == []
    empty = spark.createDataFrame([(1, b""), (2, None)], "id int, b binary")
    write(empty, tmp_path / "empty", partition_by="b")
    assert [one.b for one in spark.read.parquet(str(tmp_path / "empty")).collect()] == [None, None]


def test_modes(spark: Any, tmp_path: Path):
    folder = tmp_path / "made"

    def count() -> int:
        return spark.read.parquet(str(folder)).count()

    frame = spark.range(0, 100, 1, 3)
    done = write(frame, folder)
    assert (done.rows, len(done.files), count()) == (100, 3, 100)
    assert {str(p.relative_to(folder)) for p in data(folder)} == {file.name for file in done.files}
    assert (folder / "_SUCCESS").exists()
    for mode in ({}, {"mode": "error"}, {"mode": "errorifexists"}):
        with pytest.raises(FileExistsError, match='mode="append"'):
            write(frame, folder, **mode)
    write(frame, tmp_path / "other", mode="errorifexists")
    assert write(frame, folder, mode="ignore").files == ()
    assert count() == 100
    write(frame, folder, mode="append")
    assert count() == 200
    # its own folder is read while it is replaced
    done = write(spark.read.parquet(str(folder)).where("id < 10"), folder, mode="overwrite")
    assert (done.removed, count()) == (6, 20)
    write(frame.where("id < 0"), folder, mode="overwrite")
    assert count() == 0
    assert spark.read.parquet(str(folder)).columns == ["id"]
    write(spark.createDataFrame([], "a int not null"), folder, mode="overwrite")
    assert spark.read.parquet(str(folder)).columns == ["a"]
    assert nothing_staged(folder)


def test_a_dynamic_overwrite_replaces_partitions_that_get_rows(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
):
    frame = spark.range(40).selectExpr("id", "id % 4 p")
    write(frame, tmp_path, partition_by="p")
    write(
        frame.where("p = 1").selectExpr("id + 100 id", "p"), tmp_path, partition_by="P", mode="overwrite", dynamic=True
    )  # fmt: skip
    found = spark.read.parquet(str(tmp_path))
    assert found.count() == 40
    assert found.where("p = 1").agg({"id": "min"}).first()[0] == 101
    conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    write(frame.where("p = 2 and id < 10"), tmp_path, partition_by="p", mode="overwrite")
    assert spark.read.parquet(str(tmp_path)).count() == 32
    write(frame.where("p = 3"), tmp_path, partition_by="p", mode="overwrite", dynamic=False)
    assert spark.read.parquet(str(tmp_path)).count() == 10
    assert not (tmp_path / "p=1").exists()
    with pytest.raises(ValueError, match="partition_by"):
        write(frame, tmp_path, mode="overwrite", dynamic=True)


def test_a_lookup_reads_one_page_of_one_file(spark: Any, tmp_path: Path):
    frame = spark.range(0, 60_000, 1, 3).selectExpr(
        "(id * 7919) % 60000 as k", "'text ' || id s", "id % 7 c", "md5(cast(id as string)) h"
    )
    write(frame, tmp_path, cluster_by="k", files=3, bloom=["h"], index={"distinct": ["c"]})
    files = data(tmp_path)
    assert len(files) == 3
    chunk = pq.ParquetFile(files[0]).metadata
    assert [(s.column_index, s.descending, s.nulls_first) for s in chunk.row_group(0).sorting_columns] == [
        (0, False, True)
    ]  # fmt: skip
    with ps.open(files[1]) as file:
        assert set(np.diff(file.offset_index(0, "k").first_row)[:-1]) == {1000}
    found = ps.scan(str(tmp_path)).filter(ps.col("k") == 4711).explain(analyze=True).to_dict()
    assert found["leaves"]["k"]["pages"]["read"] == found["leaves"]["s"]["pages"]["read"] == 1
    absent = ps.scan(str(tmp_path)).filter("h = 'absent'").explain(analyze=True).to_dict()
    assert absent["bytes"]["data"] == 0
    assert {e.kind for e in ps.index.list(str(files[0]))} >= {"bloom", "distinct"}


def test_one_row_costs_little_of_columns_of_any_kind(spark: Any, tmp_path: Path):
    frame = spark.range(0, 100_000, 1, 1).selectExpr(
        "id as k",
        "(id * 7919) % 100000 as n",
        "md5(cast(id as string)) u",
        "'category ' || id % 12 c",
        "md5(cast(id % 3000 as string)) d",
    )
    write(frame, tmp_path, sort_by="k")
    for k in (500, 20_500, 99_500):
        found = ps.scan(str(tmp_path)).filter(ps.col("k") == k).explain(analyze=True).to_dict()
        most = {name: leaf["bytes"] >> 10 for name, leaf in found["leaves"].items()}
        assert all(most[name] < 200 for name in "knud"), (k, most)  # a dictionary, and a page
        assert most["c"] < 2, (k, most)
    (file,) = data(tmp_path)
    group = pq.ParquetFile(file).metadata.row_group(0)
    sizes = {
        group.column(i).path_in_schema: group.column(i).total_compressed_size for i in range(5)
    }
    assert sizes["d"] < 300_000  # thousands of values keep their dictionary


def test_files_without_ranges_get_as_many_rows(spark: Any, tmp_path: Path):
    frame = spark.range(0, 1000, 1, 7).selectExpr("id", "id % 2 p")
    write(frame, tmp_path / "a", files=3)
    counts = [pq.read_metadata(file).num_rows for file in data(tmp_path / "a")]
    assert len(counts) == 3
    assert sum(counts) == 1000
    assert min(counts) > 320
    write(frame, tmp_path / "b", files=3, partition_by="p")
    assert len(data(tmp_path / "b")) == 6


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_value_that_names_no_folder_is_refused_and_nothing_is_lost(
    spark: Any, tmp_path: Path, mode: str
):
    write(spark.range(3).selectExpr("id", "'a' p"), tmp_path, partition_by="p")
    before = sorted(tmp_path.rglob("*"))
    shown = {
        "repeat('x', 300)": r"'x{40}'\.\.\. \(of length 300\)",
        "'x' || chr(0) || 'y'": r"'x\\x00y'",
        "string(X'ff41')": "not UTF-8",
    }
    for value, as_shown in shown.items():
        frame = spark.range(0, 20_000, 1, 3).selectExpr(
            "id", f"if(id in (7, 19000), {value}, 'v' || id % 5) p"
        )
        with pytest.raises(UnsupportedError, match=f"column 'p' .*{as_shown}.*shorter"):
            write(frame, tmp_path, mode=mode, partition_by="p")
        assert sorted(tmp_path.rglob("*")) == before
    write(spark.range(5).selectExpr("id", "'b' p"), tmp_path, mode="append", partition_by="p")
    assert spark.read.parquet(str(tmp_path)).groupBy("p").count().orderBy("p").collect() == [
        ("a", 3),
        ("b", 5),
    ]


def test_columns_of_indexes_are_named_by_the_rule_of_all_names(
    spark: Any, tmp_path: Path, conf: Callable[[str, str], None]
):
    frame = spark.range(0, 100, 1, 1).selectExpr(
        "id K",
        "named_struct('Deep', id, 'S', named_struct('t', id), 't', id, 'T', id) St",
        "id `a.B`",
    )
    names = ["k", "sT.dEEP", "st.s.T", "A.b", "St.T"]
    write(frame, tmp_path / "a", bloom=names, index={"distinct": ["k", "K", "ST.deep"]})
    (file,) = data(tmp_path / "a")
    have = [
        (one.kind, one.column)
        for one in ps.index.list(str(file))
        if one.kind in ("bloom", "distinct")
    ]
    assert sorted(have) == [
        ("bloom", "K"), ("bloom", "St.Deep"), ("bloom", "St.S.t"), ("bloom", "St.T"), ("bloom", "a.B"),
        ("distinct", "K"), ("distinct", "St.Deep"),
    ]  # fmt: skip
    with pytest.raises(
        PredicateError,
        match=r"no column 'st.DEEPER'; did you mean 'Deep'\? there are 'Deep', 'S', 't', 'T'",
    ):
        write(frame, tmp_path / "b", bloom=["st.DEEPER"])
    conf("spark.sql.caseSensitive", "true")
    for given in ({"bloom": ["k"]}, {"index": {"distinct": ["St.deep"]}}):
        with pytest.raises(PredicateError, match="no column"):
            write(frame, tmp_path / "b", **given)
    write(frame, tmp_path / "b", bloom=["K", "St.Deep"])


def test_sizes_and_orders(spark: Any, tmp_path: Path):
    frame = spark.range(0, 5000, 1, 1).selectExpr("id % 10 g", "id k", "struct(id a, id b) st")
    write(
        frame, tmp_path, layout="scan", sort_by=["g", ("k", "descending")], group_rows=1000, file_rows=2000,
        compression="zstd",
    )  # fmt: skip
    files = data(tmp_path)
    assert [pq.ParquetFile(f).metadata.num_rows for f in files] == [2000, 2000, 1000]
    meta = pq.ParquetFile(files[0]).metadata
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [1000, 1000]
    assert meta.row_group(0).column(0).compression == "ZSTD"
    table = ps.read_table([str(f) for f in files], ["g", "k"])
    keys = list(zip(table["g"].to_pylist(), (-k for k in table["k"].to_pylist()), strict=True))
    assert keys == sorted(keys)


def test_a_failing_task_leaves_nothing(spark: Any, tmp_path: Path):
    folder = tmp_path / "x"
    frame = spark.range(0, 50_000, 1, 2).selectExpr("if(id = 49000, raise_error('no'), id) k")
    with pytest.raises(Exception, match="no"):
        write(frame, folder)
    assert os.listdir(folder) == []
    write(spark.range(3), folder)
    with pytest.raises(Exception, match="no"):
        write(frame, folder, mode="overwrite")
    assert spark.read.parquet(str(folder)).count() == 3
    assert nothing_staged(folder)


def test_bad_requests_are_refused_before_a_task_runs(spark: Any, tmp_path: Path):
    frame = spark.range(3)
    for wrong in (
        {"layout": "fast"},
        {"mode": "upsert"},
        {"files": 0},
        {"sort_by": [("id", "up")]},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            write(frame, tmp_path / "x", **wrong)
    for name in ("sort_by", "cluster_by", "partition_by", "bloom"):
        with pytest.raises(PredicateError, match="no column 'z'; there are"):
            write(frame, tmp_path / "x", **{name: ["z"]})
    with pytest.raises(PredicateError, match="all columns"):
        write(frame, tmp_path / "x", partition_by="ID")
    with pytest.raises(PredicateError, match="one name"):
        write(frame.selectExpr("id", "id"), tmp_path / "x")
    with pytest.raises(UnsupportedError, match="compression"):
        write(frame, tmp_path / "x", compression="lzo")
    for no_frame in ([1], spark, None):
        with pytest.raises(TypeError, match=r"a DataFrame of PySpark is wanted, not \w+: make one"):
            write(no_frame, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{}")
    with pytest.raises(UnsupportedError, match="Delta"):
        write(frame, tmp_path / "t", mode="append")
