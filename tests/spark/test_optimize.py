"""`optimize`: every row of each partition is there once, in files that are sorted; what fails or dies changes nothing, and can be run again."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import CorruptFileError, FileChangedError, RewriteError, UnsupportedError
from pageseek.rewriting import rewrite
from pageseek.spark import optimize, write
from pageseek.spark.writing import commit, optimize_task
from pageseek.spark.writing.commit import STAGING, Staging, begin
from pageseek.spark.writing.file_groups import Listed, groups_of
from pageseek.storage import Source
from pageseek.storage.output_folders import OutputFolder, output_folder
from support.in_process import InProcess

FILES, ROWS = 4, 600  # of each partition
job: Any = sys.modules[optimize.__module__]  # the function has the name of its module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng, made = random.Random(7), tmp_path / "lake"
    for p in ("a", "b"):
        (made / f"p={p}").mkdir(parents=True)
        for i in range(FILES):
            k = [rng.choice([None, *range(300)]) for _ in range(ROWS)]
            table = pa.table(
                {
                    "k": k,
                    "s": [f"s{rng.randrange(20)}" for _ in k],
                    "x": [n / 3 for n in range(ROWS)],
                }
            )
            pq.write_table(table, made / f"p={p}" / f"{i}.parquet", row_group_size=250)
    return made


def files(folder: Path) -> list[str]:
    """All files, those of staging folders too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(folder: Path) -> Counter[Any]:
    """The rows of each partition."""
    found: Counter[Any] = Counter()
    for name in files(folder):
        if name.endswith(".parquet") and not name.startswith("_"):
            table = pq.ParquetFile(folder / name).read()
            found.update((os.path.dirname(name), *row.values()) for row in table.to_pylist())
    return found


def is_sorted(values: list[Any]) -> bool:
    return values == sorted(values, key=lambda value: (value is None, value))


# ---- what is written


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


# ---- what is refused


def test_tables_and_what_is_no_folder_are_refused(tmp_path: Path, folder: Path):
    deltalake = pytest.importorskip("deltalake")
    delta = tmp_path / "delta"
    deltalake.write_deltalake(str(delta), pa.table({"a": [1]}))
    nested = tmp_path / "nested"
    shutil.copytree(delta, nested / "inner")
    iceberg = tmp_path / "iceberg"
    shutil.copytree(folder, iceberg / "data")
    (iceberg / "metadata").mkdir()
    (iceberg / "metadata" / "v1.metadata.json").write_text("{}")
    (delta / "p=1").mkdir()
    shutil.copy(folder / "p=a" / "0.parquet", delta / "p=1")
    for path in (delta, delta / "p=1", deltalake.DeltaTable(str(delta)), iceberg, iceberg / "data"):
        with pytest.raises(UnsupportedError, match="does not commit to tables"):
            optimize(InProcess(), path)
    with pytest.raises(UnsupportedError, match="table"):
        optimize(InProcess(), nested)
    with pytest.raises(ValueError, match=r"one folder; for a single file call pageseek\.rewrite"):
        optimize(InProcess(), folder / "p=a" / "0.parquet")
    with pytest.raises(ValueError, match="one folder"):
        optimize(InProcess(), str(folder / "*" / "*.parquet"))
    for wrong in ([str(folder)], b"PAR1"):
        with pytest.raises(TypeError, match="one folder is wanted"):
            optimize(InProcess(), wrong)
    (tmp_path / "empty").mkdir()
    for none in ("none", "empty"):
        with pytest.raises(FileNotFoundError):
            optimize(InProcess(), tmp_path / none)
    assert not (tmp_path / "none").exists()
    assert not list(tmp_path.rglob(f"*{STAGING}*"))


def test_what_a_stream_of_spark_writes_is_refused(folder: Path):
    (folder / "_spark_metadata").mkdir()
    (folder / "_spark_metadata" / "0").write_text("v1")
    for path in (
        folder,
        folder / "p=a",
        (pafs.SubTreeFileSystem(str(folder.parent), pafs.LocalFileSystem()), "lake"),
    ):
        with pytest.raises(
            UnsupportedError, match=r"a stream of Spark writes to .*pageseek\.spark\.write"
        ):
            optimize(InProcess(), path)


def test_files_of_buckets_stay_in_their_buckets(tmp_path: Path):
    for i in range(4):
        pq.write_table(
            pa.table({"k": [i]}), tmp_path / f"part-{i:05}-abc_{i % 2:05}.c000.snappy.parquet"
        )
    done = optimize(InProcess(), tmp_path, sort_by="k", codec="none")
    names = [re.sub("-2.*_", "-JOB_", file.name) for file in done.files]
    assert names == ["part-00000-JOB_00000.c000.parquet", "part-00001-JOB_00001.c000.parquet"]
    found = [pq.read_table(tmp_path / file.name)["k"].to_pylist() for file in done.files]
    assert found == [[0, 2], [1, 3]]


def test_what_belongs_to_old_files_goes_with_them(folder: Path):
    for name in (
        "p=a/.0.parquet.crc",
        "_metadata",
        "_common_metadata",
        ".mine.crc",
        "p=b/notes.txt",
    ):
        (folder / name).touch()
    done = optimize(InProcess(), folder, sort_by="k")
    assert files(folder) == sorted(
        [".mine.crc", "_common_metadata", "p=b/notes.txt", *(file.name for file in done.files)]
    )


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_links_to_folders_are_refused(folder: Path):
    (folder / "p=c").symlink_to(folder / "p=a")
    with pytest.raises(UnsupportedError, match="p=c is a link to a folder"):
        optimize(InProcess(), folder)


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"sort_by": "k", "cluster_by": ["k", "s"]}, ValueError, "one order"),
        ({"cluster_by": ["k"]}, ValueError, "for one column, say sort_by"),
        ({"sort_by": ["k", "k"]}, ValueError, "'k' stands there twice"),
        ({"codec": "zip"}, ValueError, "codec='zip'"),
        ({"page_rows": 0}, ValueError, "page_rows=0: at least 1"),
        ({"group_bytes": 0}, ValueError, "group_bytes=0"),
        ({"file_rows": 0}, ValueError, "file_rows=0"),
        ({"tasks": 0}, ValueError, "tasks=0"),
        ({"memory_limit": 1}, ValueError, "memory_limit=1"),
        ({"in_place": True}, TypeError, "optimize: 'in_place' is not known"),
        ({"indexes": {"trie": ["k"]}}, TypeError, "indexes: 'trie' is not known"),
        ({"indexes": {"trigram": ["k"]}}, ps.PageseekError, "trigram"),
    ],
)
def test_wrong_arguments_are_errors_at_once(
    folder: Path, asked: dict[str, Any], error: type[Exception], said: str
):
    before, session = files(folder), InProcess()
    with pytest.raises(error, match=re.escape(said)):
        optimize(session, folder, **asked)
    assert session.tasks == 0
    assert files(folder) == before


# ---- what fails


def test_what_tasks_refuse_is_raised_by_its_name_and_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    bad = folder / "p=b" / "2.parquet"
    data = bytearray(bad.read_bytes())
    data[4:400] = bytes(396)
    bad.write_bytes(data)
    before = {name: (folder / name).read_bytes() for name in files(folder)}
    with pytest.raises(CorruptFileError, match=r"p=b/2\.parquet"):
        optimize(InProcess(), folder, sort_by="k")
    assert {name: (folder / name).read_bytes() for name in files(folder)} == before
    bad.write_bytes(bad.read_bytes()[:-5])
    with pytest.raises(CorruptFileError, match=r"p=b/2\.parquet"):
        optimize(InProcess(), folder, sort_by="k")
    bad.unlink()
    written, real = rows(folder), rewrite.check

    def check(*given: Any, **more: Any) -> None:
        pq.write_table(pq.read_table(given[0][0].path)[1:], given[0][0].path)
        real(*given, **more)

    monkeypatch.setattr(rewrite, "check", check)
    with pytest.raises(RewriteError, match="rows in place of"):
        optimize(InProcess(), folder, file_rows=5000)
    assert rows(folder) == written
    assert not [name for name in files(folder) if STAGING in name]


def meanwhile(monkeypatch: pytest.MonkeyPatch, when: str, change: Callable[[], None]) -> None:
    """Have something happen before the tasks, after them, or while files get their names."""
    real, move = job._written, OutputFolder.move

    def written(*given: Any) -> Any:
        if when == "before":
            change()
        found = real(*given)
        if when == "after":
            change()
        return found

    def moved(*given: Any) -> None:
        move(*given)
        if when == "named":
            change()

    monkeypatch.setattr(job, "_written", written)
    monkeypatch.setattr(OutputFolder, "move", moved)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_file_that_changes_meanwhile_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, when: str
):
    path, other = folder / "p=a" / "1.parquet", pa.table({"k": [1], "s": ["new"], "x": [0.0]})
    for change in (lambda: pq.write_table(other, path), path.unlink):
        meanwhile(monkeypatch, when, change)
        with pytest.raises(
            FileChangedError, match=r"p=a/1\.parquet: the file was (replaced|deleted) while"
        ):
            optimize(InProcess(), folder, sort_by="k")
        monkeypatch.undo()
        assert len(files(folder)) == 2 * FILES - (not path.exists())
        assert not path.exists() or pq.ParquetFile(path).read().equals(other)


def test_a_file_that_changes_while_names_are_given_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    path, other = folder / "p=a" / "1.parquet", pa.table({"k": [1], "s": ["new"], "x": [0.0]})
    before = rows(folder)
    meanwhile(monkeypatch, "named", lambda: pq.write_table(other, path))
    with pytest.raises(
        FileChangedError, match=r"p=a/1\.parquet: 1 files were replaced while the new"
    ):
        optimize(InProcess(), folder, sort_by="k")
    assert len(files(folder)) == 3
    assert pq.ParquetFile(path).read().equals(other)
    path.unlink()
    assert rows(folder) == before


def test_files_that_come_meanwhile_stay(folder: Path, monkeypatch: pytest.MonkeyPatch):
    before, path = rows(folder), folder / "p=a" / "new.parquet"
    meanwhile(monkeypatch, "after", lambda: shutil.copy(folder / "p=b" / "0.parquet", path))
    optimize(InProcess(), folder, sort_by="k")
    assert len(files(folder)) == 3
    path.unlink()
    assert rows(folder) == before


@pytest.mark.parametrize("when", ["start", "after"])
def test_another_write_that_replaces_the_files_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, when: str
):
    before, there = rows(folder), output_folder(folder)
    other: list[Staging] = []

    def begun() -> None:
        other.append(begin(there))
        manifest = {"files": {"x": "p=a/0.parquet"}, "old": [], "marked": False}
        there.put(f"{other[0].name}/{commit.MANIFEST}", json.dumps(manifest).encode())

    if when == "start":
        begun()
    else:
        meanwhile(monkeypatch, when, begun)
    session = InProcess()
    with pytest.raises(
        FileChangedError, match=r"another write, _pageseek-staging-.*optimize again"
    ):
        optimize(session, folder, sort_by="k")
    assert session.tasks == (0 if when == "start" else 2)
    there.delete([f"{other[0].name}/{commit.MANIFEST}"])
    other[0].close()
    assert rows(folder) == before
    assert len(files(folder)) == 2 * FILES


# ---- what dies


class Killed(BaseException):
    """Stands for SIGKILL."""


def dying(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    """Have the driver die when so many groups are written."""
    left, real, close = [groups], optimize_task.write_group, Staging.close

    def write_group(*given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return real(*given)

    def closed(staging: Staging) -> None:  # locks go with their process
        commit._unlock(staging._lock) if left[0] < 0 else close(staging)

    monkeypatch.setattr(optimize_task, "write_group", write_group)
    monkeypatch.setattr(Staging, "close", closed)


def died(folder: Path, monkeypatch: pytest.MonkeyPatch, groups: int, **how: Any) -> None:
    with monkeypatch.context() as patch:
        dying(patch, groups)
        with pytest.raises(Killed):
            optimize(InProcess(), folder, sort_by="k", group_bytes=1, **how)


def test_a_second_run_takes_over_what_the_first_has_finished(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    before = rows(folder)
    died(folder, monkeypatch, 3)
    assert len(list(folder.glob(f"{STAGING}*/*/*.parquet"))) == 3
    assert rows(folder) == before
    died(folder, monkeypatch, 2)  # takes them over, and dies, too
    assert len(list(folder.glob(f"{STAGING}*/*/*.parquet"))) == 5
    session = InProcess()
    done = optimize(session, folder, sort_by="k", group_bytes=1, tasks=100)
    assert (done.kept, done.groups, session.tasks) == (5, 8, 3)
    assert "5 groups finished by a run that died" in str(done)
    assert rows(folder) == before
    assert len(files(folder)) == 8
    assert all(
        is_sorted(pq.ParquetFile(folder / f.name).read()["k"].to_pylist()) for f in done.files
    )


def test_nothing_is_taken_over_that_would_be_written_otherwise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    before = rows(folder)
    changes: list[dict[str, Any]] = [
        {"page_rows": 10}, {"codec": "none"}, {"file_rows": 100}, {"indexes": {"lookup": ["k"]}}, {"row_group_rows": 9},
        {"sort_by": [("k", "descending")]}, {"out_of_range": "keep"}, {"group_bytes": 1 << 20},
    ]  # fmt: skip
    for i, change in enumerate([{}, *changes]):
        again = folder.with_name(f"again{i}")
        shutil.copytree(folder, again)
        died(again, monkeypatch, 2)
        done = optimize(InProcess(), again, **{"sort_by": "k", "group_bytes": 1, **change})
        assert done.kept == (0 if i else 2)
        assert rows(again) == before
    died(folder, monkeypatch, 2)
    for path in folder.glob("p=*/*.parquet"):
        os.utime(path, ns=(1, 1))  # as if it were another version
    assert optimize(InProcess(), folder, sort_by="k", group_bytes=1).kept == 0


def test_damaged_leftovers_are_not_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch):
    before = rows(folder)
    for what in ("shorter", "lost", "no JSON", "other keys", "other types", "another folder"):
        died(folder, monkeypatch, 2)
        (staged, _), (done, _) = (
            sorted(folder.glob(f"{STAGING}*/*/{name}")) for name in ("*.parquet", "done.json")
        )
        if what == "shorter":
            staged.write_bytes(staged.read_bytes()[:-1])
        elif what == "lost":
            staged.unlink()
        else:
            text = done.read_text()
            texts = {
                "no JSON": "{", "other keys": '{"key": 1}', "other types": re.sub('"rows": [0-9]+', '"rows": "many"', text),
                "another folder": text.replace("00000.parquet", "../00000.parquet"),
            }  # fmt: skip
            done.write_text(texts[what])
        assert optimize(InProcess(), folder, sort_by="k", group_bytes=1).kept == 1
        assert rows(folder) == before
        assert not [name for name in files(folder) if STAGING in name]


def test_a_run_that_lives_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Two runs at a time: the one that comes last finds its files gone."""
    before = rows(folder)
    meanwhile(monkeypatch, "after", lambda: monkeypatch.undo() or optimize(InProcess(), folder))
    with pytest.raises(FileChangedError, match="deleted"):
        optimize(InProcess(), folder, sort_by="k")
    assert rows(folder) == before
    assert len(files(folder)) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_a_driver_that_is_killed_anywhere_loses_nothing_and_a_second_run_finishes(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_optimize", str(tmp_path), "3", "13"],
        capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["killed"] for one in found] == [True] * (len(found) - 1) + [False]
    assert len(found) > 8
    for one in found:
        wanted = {"lost": 0, "equal": True, "files": 2, "left": []}
        assert {key: one[key] for key in wanted} == wanted, one
        assert one["twice"] in range(
            0, 161, 40
        )  # while files get their names, old ones are there, too
    assert {one["kept"] for one in found} >= {0, 1}


# ---- in Spark


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


JOB = Path(__file__).with_name("read_job.py")


@pytest.mark.spark
def test_killed_workers_and_a_killed_driver(spark: Any, tmp_path: Path):
    """Two workers are killed as they write, then the driver with all its tasks. This session goes on."""
    folder, marks = tmp_path / "in", tmp_path / "marks"
    folder.mkdir()
    marks.mkdir()
    for i in range(30):
        table = pa.table(
            {"k": [(n * 7919 + i) % 5003 for n in range(3000)], "x": [1.0] * 3000, "g": [i] * 3000}
        )
        pq.write_table(table, folder / f"{i:02}.parquet")
    before = rows(folder)
    (marks / "stage").write_text("optimize worker")
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("SPARK_REMOTE", "SPARK_CONNECT"))
    }
    environment |= {
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(JOB.parent), "PYTHONWARNINGS": "ignore",
        "KILL_MARKS": str(marks),
    }  # fmt: skip
    job = subprocess.Popen(
        [sys.executable, str(JOB), "local[2,4]", "worker", str(folder), "optimize"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 200

    def wait_for(pattern: str, count: int) -> None:
        while len(list(tmp_path.glob(pattern))) < count:
            assert job.poll() is None, job.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)

    wait_for("marks/optimize-*", 2)
    wait_for(f"in/{STAGING}*/*/done.json", 2)
    (marks / "stage.tmp").write_text("rest wait")
    os.replace(marks / "stage.tmp", marks / "stage")
    wait_for("marks/rest-*", 2)
    os.killpg(job.pid, signal.SIGKILL)  # the process that this test has started, with its children
    job.communicate()
    finished = len(list(folder.glob(f"{STAGING}*/*/done.json")))
    assert rows(folder) == before
    done = optimize(spark, folder, sort_by="k", group_bytes=1, tasks=30)
    assert 2 <= done.kept <= finished < done.groups == 30
    assert rows(folder) == before
    assert len(files(folder)) == 30
    assert all(is_sorted(pq.ParquetFile(path).read()["k"].to_pylist()) for path in folder.iterdir())
