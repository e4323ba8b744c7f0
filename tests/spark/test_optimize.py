"""`optimize`: every row of each partition is there once, in files that are sorted."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import UnsupportedError
from pageseek.spark import optimize, write
from pageseek.spark.writing import optimize_task
from pageseek.spark.writing.commit import STAGING
from pageseek.spark.writing.file_groups import Listed, groups_of
from pageseek.storage import Source
from pageseek.storage.output_folders import output_folder
from support.in_process import InProcess
from support.optimize_folder import (
    FILES,
    ROWS,
    died,
    files,
    is_sorted,
    job,
    rows,
    write_folder,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "lake")


def test_each_partition_has_its_rows_once_in_sorted_files(folder: Path):
    before, sizes = rows(folder), sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    done = optimize(
        InProcess(), folder, sort_by=["K", ("s", "descending")], group_bytes=sizes // 4, page_rows=100,
        row_group_rows=1000, codec="snappy", indexes={"lookup": ["k"], "bitmap": "S", "bloom": {"k": 0.1}},
    )  # fmt: skip
    assert rows(folder) == before
    assert files(folder) == sorted(file.name for file in done.files)
    assert [os.path.dirname(file.name) for file in done.files] == ["p=a"] * 2 + ["p=b"] * 2
    for file in done.files:
        table = pq.ParquetFile(folder / file.name).read()
        assert is_sorted(table["k"].to_pylist())
        assert (table.num_rows, (folder / file.name).stat().st_size) == (file.rows, file.bytes)
        kinds = {(one.kind, one.column) for one in ps.index.list(folder / file.name)}
        assert kinds >= {("lookup", "k"), ("bitmap", "s"), ("bloom", "k")}
        group = pq.read_metadata(folder / file.name).row_group(0)
        assert group.num_rows == 1000
        assert [(c.column_index, c.descending) for c in group.sorting_columns] == [
            (0, False),
            (1, True),
        ]
        assert group.column(0).compression == "SNAPPY"
        assert len(ps.open(folder / file.name).offset_index(0, "k").offset) >= 10
    assert (done.rows, done.files_before, done.bytes_before) == (2 * FILES * ROWS, 2 * FILES, sizes)
    assert (done.groups, done.row_groups, done.kept) == (4, 8, 0)
    assert done.sort_by == (("K", "ascending"), ("s", "descending"))
    assert done.indexes == dict.fromkeys([("lookup", "k"), ("bitmap", "s"), ("bloom", "k")], 8)
    said = str(done)
    assert f"{folder}: 4,800 rows, 8 files of " in said
    assert "4 groups, 8 row groups" in said
    assert "each file sorted by K, s descending" in said
    assert re.search(r"lookup +k +8 chunks", said)
    assert ps.read_table(folder, filter="k = 17 and p = 'b'").num_rows == sum(
        n for (p, k, *_), n in before.items() if (p, k) == ("p=b", 17)
    )


def test_files_of_some_rows_along_a_curve_or_as_they_were(folder: Path):
    before = rows(folder)
    done = optimize(InProcess(), folder, cluster_by=["k", "s"], file_rows=1000)
    assert rows(folder) == before
    assert [file.rows for file in done.files] == [1000, 1000, 400] * 2
    assert "each file clustered by k, s" in str(done)
    order = ps.read_table(folder).to_pylist()
    again = optimize(InProcess(), folder, memory_limit=32 << 20)
    assert (len(again.files), again.groups) == (2, 2)
    assert ps.read_table(folder).to_pylist() == order  # in the order of the names of files


def test_rows_that_do_not_fit_wait_on_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(optimize_task, "machine_bytes", lambda: 0)
    monkeypatch.setattr(optimize_task, "LEAST_MEMORY", 10_000)
    before = rows(folder)
    done = optimize(InProcess(), folder, sort_by="k", spill_folder=str(tmp_path))
    assert rows(folder) == before
    assert done.spilled > 0
    assert "waited on disk" in str(done)
    with pytest.raises(NotADirectoryError, match="spill_folder"):
        optimize(InProcess(), folder, sort_by="k", spill_folder=str(tmp_path / "none"))
    assert rows(folder) == before


def test_files_without_rows_and_folders_named_by_urls(tmp_path: Path):
    empty = pa.table({"k": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    pq.write_table(empty, tmp_path / "0.parquet")
    hows: list[dict[str, Any]] = [
        {"sort_by": "k"},
        {"cluster_by": ["k", "s"]},
        {"indexes": {"lookup": ["k"]}},
    ]
    for how in hows:
        done = optimize(InProcess(), f"file://{tmp_path}/", **how)
        assert (done.rows, len(done.files)) == (0, 1)
        assert pq.read_table(tmp_path).equals(empty)
    pq.write_table(pa.table({"k": [2, 1], "s": ["b", "a"]}), tmp_path / "1.parquet")
    done = optimize(InProcess(), tmp_path, sort_by="s")
    assert (done.files_before, done.rows, len(done.files)) == (2, 2, 1)


def test_indexes_of_footers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pageseek.index.footer_index.LARGE", 1)
    pq.write_table(pa.table({f"c{i}": [2, 1] for i in range(9)}), tmp_path / "0.parquet")
    (file,) = optimize(InProcess(), tmp_path, indexes={"footer": True}).files
    assert "footer" in {one.kind for one in ps.index.list(tmp_path / file.name)}


def of_sizes(*sizes: int, folder: str = "") -> list[Listed]:
    return [Listed(f"{folder}{i}", Source(str(i)), (n, ""), (), False) for i, n in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([1] * 10, [[1] * 10]),
        ([10] * 30, [[10] * 10] * 3),
        ([60, 60, 60], [[60, 60], [60]]),
        ([500, 10, 10], [[500], [10, 10]]),
        ([10, 10, 500], [[10, 10], [500]]),
        ([50, 50, 1], [[50, 50, 1]]),
        ([0, 0], [[0, 0]]),
    ],
)
def test_groups_have_about_equal_bytes(sizes: list[int], groups: list[list[int]]):
    assert [[f.bytes for f in group] for group in groups_of(of_sizes(*sizes), 100)] == groups
    both = of_sizes(*sizes, folder="p=1/") + of_sizes(*sizes, folder="p=2/")
    assert [[f.bytes for f in group] for group in groups_of(both, 100)] == groups * 2


def test_files_of_other_schemas_are_not_mixed(tmp_path: Path):
    """A column that some files lack orders and indexes the others."""
    tables = [
        pa.table({"k": [3, 1], "v": [1, 2]}),
        pa.table({"k": [2, 0]}),
        pa.table({"K": pa.array([9, 5], pa.int32()), "v": [6, 5]}),
        pa.table({"k": [8, 7], "v": [4, 3]}),
    ]
    for i, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{i}.parquet")
    done = optimize(
        InProcess(), tmp_path, sort_by=["v", "k"], indexes={"lookup": ["k", ("k", "v")]}
    )
    found = [pq.ParquetFile(tmp_path / file.name).read() for file in done.files]
    assert [table.to_pydict() for table in found] == [
        {"k": [3, 1, 7, 8], "v": [1, 2, 3, 4]}, {"k": [0, 2]}, {"K": [5, 9], "v": [5, 6]},
    ]  # fmt: skip
    assert found[2].schema.field("K").type == pa.int32()
    assert done.indexes[("lookup", "k")] == 2
    assert done.indexes[("lookup", "K")] == 1
    again = optimize(InProcess(), tmp_path, cluster_by=["v", "k"])  # of one of them, it is sorted
    assert [
        pq.ParquetFile(tmp_path / file.name).read()["k" if i < 2 else "K"].to_pylist()[:2]
        for i, file in enumerate(again.files)
    ][1] == [0, 2]


def test_names_are_those_of_the_session(folder: Path):
    for asked, said in (
        ({"sort_by": "q"}, r"and 7 more: sort_by: no column 'q'; .*there are"),
        ({"cluster_by": ["k", "p"]}, "cluster_by: no column 'p'"),  # of folders
        ({"indexes": {"bloom": ["q"]}}, "no column 'q'"),
    ):
        with pytest.raises(ps.PredicateError, match=said):
            optimize(InProcess(), folder, **asked)
    strict = InProcess(spark_sql_caseSensitive="true")
    with pytest.raises(ps.PredicateError, match="no column 'K'"):
        optimize(strict, folder, sort_by="K")
    pq.write_table(pa.table({"id": [1], "Id": [2]}), folder / "p=a" / "both.parquet")
    with pytest.raises(ps.PredicateError, match="'ID' is ambiguous: 'id', 'Id'"):
        optimize(InProcess(), folder, sort_by="ID")
    assert not [name for name in files(folder) if STAGING in name]


def test_keys_of_spark_stay_and_files_of_others_are_not_mixed_with_them(tmp_path: Path):
    table = pa.table({"k": [2, 1]})
    for i, version in enumerate((b"3.5.0", b"3.5.0", b"4.1.0", None)):
        keys = {b"org.apache.spark.version": version, b"mine": b"%d" % i}
        made = table.replace_schema_metadata({k: v for k, v in keys.items() if v})
        pq.write_table(made, tmp_path / f"{i}.parquet")
    done = optimize(InProcess(), tmp_path, sort_by="k")
    found = [pq.read_schema(tmp_path / file.name).metadata or {} for file in done.files]
    assert [one.get(b"org.apache.spark.version") for one in found] == [b"3.5.0", b"4.1.0", None]
    assert [one[b"mine"] for one in found] == [b"0", b"2", b"3"]


def int96(path: Path, version: str, *marks: str) -> None:
    table = pa.table({"t": pa.array([1_500_000_000_123_456, None], pa.timestamp("us", "UTC"))})
    with pq.ParquetWriter(
        path, table.schema, use_deprecated_int96_timestamps=True, store_schema=False
    ) as out:
        out.write_table(table)
        out.add_key_value_metadata({"org.apache.spark.version": version})
        out.add_key_value_metadata({f"org.apache.spark.{mark}": "" for mark in marks})


def test_int96_timestamps_become_instants_in_microseconds(tmp_path: Path):
    int96(tmp_path / "a.parquet", "3.5.0")
    (file,) = optimize(InProcess(), tmp_path, sort_by="t").files
    (column,) = pq.ParquetFile(tmp_path / file.name).schema
    assert column.physical_type == "INT64"
    assert pq.read_table(tmp_path).schema.field("t").type == pa.timestamp("us", "UTC")
    assert pq.read_table(tmp_path)["t"].cast(pa.int64()).to_pylist() == [
        1_500_000_000_123_456,
        None,
    ]


def test_int96_timestamps_of_another_calendar_are_refused(tmp_path: Path):
    """INT64 ones would be read in the calendar of the file's other times."""
    path = tmp_path / "a.parquet"
    for version, marks in (
        ("3.0.1", ()),
        ("3.2.0", ("legacyINT96",)),
        ("3.2.0", ("legacyDateTime",)),
    ):
        int96(path, version, *marks)
        with pytest.raises(
            UnsupportedError, match=r"a\.parquet: column 't' has INT96 timestamps in the"
        ):
            optimize(InProcess(), tmp_path)
    for version, marks in (("2.4.0", ()), ("3.2.0", ("legacyINT96", "legacyDateTime"))):
        int96(path, version, *marks)
        optimize(InProcess(), tmp_path)
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
    pq.write_table(
        pa.table({"t": pa.array([1], pa.timestamp("us"))}),
        path,
        use_deprecated_int96_timestamps=True,
    )
    with pytest.raises(UnsupportedError, match="int96TimestampConversion"):
        optimize(InProcess(spark_sql_parquet_int96TimestampConversion="true"), tmp_path)


def test_the_mark_of_success_stays_as_it_was(folder: Path):
    optimize(InProcess(), folder)
    assert "_SUCCESS" not in files(folder)
    (folder / "_SUCCESS").touch()
    optimize(InProcess(), folder)
    assert len(files(folder)) == 3
    assert "_SUCCESS" in files(folder)


@pytest.fixture(params=["obstore", "pyarrow"])
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "obstore":
        obstore = pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
        yield obstore.store.MemoryStore(), "lake/made"
    else:
        yield pafs._MockFileSystem(), "made"


def test_folders_of_stores(store: Any, folder: Path, monkeypatch: pytest.MonkeyPatch):
    # a store in memory is of this process
    monkeypatch.setattr(job, "pickle", optimize_task)
    monkeypatch.setattr(optimize_task, "dumps", lambda one, protocol: one, raising=False)
    monkeypatch.setattr(optimize_task.pickle, "loads", lambda one: one)
    there = output_folder(store)
    assert there.far
    for name in files(folder):
        there.put(name, (folder / name).read_bytes())
    key = [("p", "ascending"), ("k", "ascending"), ("s", "ascending"), ("x", "ascending")]
    before = ps.read_table(store).select(["k", "s", "x", "p"]).sort_by(key)
    done = optimize(InProcess(), store, sort_by="k", indexes={"lookup": ["s"]}, file_rows=2000)
    assert there.names() == sorted(file.name for file in done.files)
    assert len(done.files) == 4
    died(store, monkeypatch, 3)
    assert ps.read_table(store).num_rows == before.num_rows
    again = optimize(InProcess(), store, sort_by="k", group_bytes=1, stale_after=0)
    assert (again.kept, again.groups) == (3, 4)
    assert there.names() == sorted(file.name for file in again.files)
    assert ps.read_table(store).select(["k", "s", "x", "p"]).sort_by(key).equals(before)


@pytest.mark.spark
def test_spark_reads_what_it_wrote(spark: Any, tmp_path: Path, conf: Any):
    conf("spark.sql.parquet.outputTimestampType", "INT96")
    path = str(tmp_path / "made")
    frame = spark.range(0, 2000, 1, 5).selectExpr(
        "id % 2 as p", "(id * 7919) % 2003 as k", "cast(id as decimal(20, 2)) as d", "timestamp_micros(id * 1000001) as t",
        "timestamp_ntz'2024-01-01 00:00:00' as n", "array(id, null) as l", "named_struct('a', id, 'b', 'x') as s", "map('k', id) as m",
        "date_add(date'1970-01-01', cast(id as int)) as day", "cast(id as float) as f", "cast(id % 100 as tinyint) as i8", "cast('ab' as char(3)) as c",
        "cast(cast(id as string) as binary) as raw", "interval '1' day * id as span",
    )  # fmt: skip
    frame.write.partitionBy("p").parquet(path)
    before, schema = spark.read.parquet(path).collect(), spark.read.parquet(path).schema
    done = optimize(
        spark, path, sort_by="K", indexes={"lookup": ["k"]}, group_bytes=30_000, tasks=3
    )
    assert (done.rows, done.files_before) == (2000, 10)
    assert done.groups > 2
    spark.catalog.refreshByPath(path)
    after = spark.read.parquet(path)
    assert after.schema == schema
    assert Counter(map(str, after.collect())) == Counter(map(str, before))
    for file in done.files:
        assert is_sorted(pq.ParquetFile(f"{path}/{file.name}").read(["k"])["k"].to_pylist())
    write(spark.range(3), tmp_path / "more", mode="append", files=2)
    assert optimize(spark, tmp_path / "more").rows == 3
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "more")).collect()) == [
        0,
        1,
        2,
    ]
