"""When the cache may serve a file, and how many files it keeps open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.datasets.file_cache import FileCache, cache
from pageseek.format import columns
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import MOST_SHARED, Schema
from pageseek.storage import Source
from support.writer import INT32, Column, write


class Shelf(pafs.FileSystemHandler):  # type: ignore[misc]
    """Files in a dict, with one modification time for all, or none."""

    def __init__(self, files: dict[str, bytes], mtime_ns: int | None) -> None:
        self.files = files
        self.mtime_ns = mtime_ns
        self.opened = 0

    def get_type_name(self) -> str:
        return "shelf"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> pafs.FileInfo:
        if path not in self.files:
            return pafs.FileInfo(path, pafs.FileType.NotFound)
        size = len(self.files[path])
        return pafs.FileInfo(path, pafs.FileType.File, size=size, mtime_ns=self.mtime_ns)

    def open_input_file(self, path: str) -> Any:
        self.opened += 1
        return pa.PythonFile(pa.BufferReader(self.files[path]), mode="r")

    def _refuse(self, *_: Any) -> Any:
        raise NotImplementedError

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = _refuse
    delete_root_dir_contents = get_file_info_selector = move = open_append_stream = _refuse
    open_input_stream = open_output_stream = _refuse


def test_open_files_share_what_is_equal_of_their_columns(tmp_path: Path) -> None:
    """Metadata, names in errors and other columns stay those of each file."""
    tables = {
        "one": pa.table({"a": [1], "b": ["x"]}),
        "two": pa.table({"a": [2], "b": ["y"]}),
        "other": pa.table({"a": [3], "c": ["z"]}),
        "typed": pa.table({"a": pa.array([4], pa.int32()), "b": ["w"]}),
    }
    paths = {name: str(tmp_path / f"{name}.parquet") for name in tables}
    for name, table in tables.items():
        with pq.ParquetWriter(paths[name], table.schema, store_schema=False) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"of": name})
    for _ in range(2):  # the second time all are open
        for name, table in tables.items():
            found = ps.read_table(paths[name])
            assert found.equals(table)
            assert found.schema.metadata == {b"of": name.encode()}
            with pytest.raises(ps.PredicateError, match=rf"{name}\.parquet: no column 'nope'"):
                ps.read_table(paths[name], columns=["nope"])
    trees = {name: cache.open(Source(path), Report()).schema_tree for name, path in paths.items()}
    assert trees["one"].leaf(0) is trees["two"].leaf(0)
    assert trees["one"].leaf(0) is not trees["other"].leaf(0)
    assert trees["one"].leaf(0) is not trees["typed"].leaf(0)


def test_lookups_in_many_files_with_metadata_of_their_own_make_columns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    column = columns._column

    def counted(file: FileMetadata, index: int, *rest: Any) -> Any:
        made.append(index)
        return column(file, index, *rest)

    monkeypatch.setattr(columns, "_column", counted)
    paths = [str(tmp_path / f"{i}.parquet") for i in range(24)]
    for i, path in enumerate(paths):
        table = pa.table({"id": [i, -1], "b": ["x", "y"]})
        with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"of": str(i)})
    for _ in range(3):
        for i, path in enumerate(paths):
            found = ps.read_table(path, filter=ps.col("id") == i)
            assert found.to_pylist() == [{"id": i, "b": "x"}]
            assert found.schema.metadata == {b"of": str(i).encode()}
    assert sorted(made) == [0, 1]


def test_a_shared_schema_keeps_no_footer(tmp_path: Path) -> None:
    """The footer of one file would stay in memory as long as another file with the same columns is open."""
    table = pa.table({"a": range(2000), "b": ["x"] * 2000})
    large, small = str(tmp_path / "large.parquet"), str(tmp_path / "small.parquet")
    pq.write_table(table, large, row_group_size=2)
    pq.write_table(table[:5], small)
    first, second = ps.open(large), ps.open(small)
    trees = [file._metadata.schema_tree for file in (first, second)]
    assert trees[0].leaf(1) is trees[1].leaf(1)
    for tree in trees:
        assert [tree.field(i).name for i in range(2)] == ["a", "b"]
        assert sum(memoryview(held).nbytes for held in _bytes_of(tree)) < 10_000
    assert first._metadata.footer.nbytes > 100_000


def _bytes_of(schema: Schema) -> list[Any]:
    """The bytes that a schema holds, and those of which it holds views."""
    held = [value for value in vars(schema).values() if isinstance(value, bytes | memoryview)]
    return held + [value.obj for value in held if isinstance(value, memoryview)]


def test_names_that_are_long_are_not_shared(tmp_path: Path) -> None:
    path = str(tmp_path / "long.parquet")
    name = "a" * MOST_SHARED
    pq.write_table(pa.table({name: [1]}), path)
    trees = [ps.open(path)._metadata.schema_tree for _ in range(2)]
    assert trees[0].leaf(0) == trees[1].leaf(0)
    assert trees[0].leaf(0) is not trees[1].leaf(0)
    assert ps.read_table(path).to_pylist() == [{name: 1}]


def content(value: int) -> bytes:
    return write([Column("a", INT32, [value] * 4)])


def values(source: Any) -> list[int]:
    return ps.read_table(source)["a"].to_pylist()


@pytest.fixture(autouse=True)
def _empty() -> None:
    ps.clear_cache()


def test_a_file_without_a_date_is_never_taken_from_the_cache() -> None:
    shelf = Shelf({"x": content(1)}, None)
    source = (pafs.PyFileSystem(shelf), "x")
    for value in (1, 2, 3):
        shelf.files["x"] = content(value)
        assert values(source) == [value] * 4
        assert ps.scan(source, filter=ps.col("a") == value).count_rows() == 4
    assert shelf.opened == 6
    assert not cache._files


def test_a_scan_of_several_files_without_a_date() -> None:
    shelf = Shelf({"x": content(1), "y": content(2)}, None)
    filesystem = pafs.PyFileSystem(shelf)
    scan = ps.scan([(filesystem, "x"), (filesystem, "y")])
    assert scan.to_table()["a"].to_pylist() == [1] * 4 + [2] * 4
    shelf.files["y"] = content(3)
    assert scan.to_table()["a"].to_pylist() == [1] * 4 + [3] * 4
    assert scan.explain().to_dict()["version"] == "weak"


def test_a_file_with_a_date_is_taken_from_the_cache_until_the_date_changes() -> None:
    shelf = Shelf({"x": content(1)}, 5)
    source = (pafs.PyFileSystem(shelf), "x")
    assert values(source) == [1] * 4
    (kept,) = cache._files.values()
    assert values(source) == [1] * 4
    assert list(cache._files.values()) == [kept]
    shelf.files["x"], shelf.mtime_ns = content(2), 6
    assert values(source) == [2] * 4
    assert list(cache._files.values()) != [kept]


def test_files_of_one_path_size_and_date_on_two_filesystems(tmp_path: Path) -> None:
    sources = []
    for value in (1, 2):
        folder = tmp_path / str(value)
        folder.mkdir()
        (folder / "x").write_bytes(content(value))
        os.utime(folder / "x", (5, 5))
        sources.append((pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem()), "x"))
    for _ in range(2):
        assert [values(source) for source in sources] == [[1] * 4, [2] * 4]


# ---- descriptors ---------------------------------------------------------------------------------

START = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
import pageseek as ps
from pageseek.datasets.file_cache import cache
from pageseek.scanning.many_files import joined_files
joined_files.FEWEST_FILES = 1_000_000  # each is opened
folder = sys.argv[1]
"""

FOLDER = """
table = ps.read_table(folder, filter=ps.col("a") >= 0, columns=["a"])
assert table["a"].to_pylist() == [i // 2 for i in range(1200)], table.num_rows
assert len(cache._files) == 50, len(cache._files)
assert ps.scan(folder).count_rows() == 1200
"""

NONE_LEFT = """
paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
ps.read_table(paths[:50])
first = list(cache._files)[:25]
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError:
    pass
assert ps.read_table(paths[599:])["a"].to_pylist() == [599, 599]
assert len(cache._files) == 26 and not set(first) & set(cache._files)
ps.clear_cache()
while True:
    try:
        held.append(os.dup(0))
    except OSError:
        break
try:
    ps.read_table(paths[:1])
except OSError as error:
    assert error.errno == 24, error
else:
    raise AssertionError("no descriptor was left")
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 600 files."""
    folder = tmp_path_factory.mktemp("many")
    for i in range(600):
        (folder / f"{i:03}.parquet").write_bytes(write([Column("a", INT32, [i, i])]))
    return folder


@pytest.mark.parametrize("program", [FOLDER, NONE_LEFT], ids=["folder", "none left"])
def test_a_process_with_few_descriptors(program: str, many: Path) -> None:
    pytest.importorskip("resource")
    command = [sys.executable, "-c", START + program, str(many)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr


def test_the_cache_holds_a_quarter_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for limit, most in ((4096, 256), (1024, 256), (200, 50), (3, 1), (resource.RLIM_INFINITY, 256)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert FileCache()._most() == most
        assert FileCache(capacity=7)._most() == min(7, most)
    monkeypatch.setattr("pageseek.datasets.file_cache.resource", None)
    assert FileCache()._most() == 256
