"""When a file may be taken from the cache, and how many the cache keeps open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import pageseek as ps
from pageseek.cache import cache
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
