"""Writes whose drivers die at each step: readers see no part of a file, and the next write settles what is left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import PageseekError, UnsupportedError
from pageseek.spark.writing import commit
from pageseek.spark.writing.commit import (
    STAGING,
    Staging,
    begin,
    one_attempt_each,
    recover,
    visible,
)
from pageseek.spark.writing.targets import Target
from pageseek.spark.writing.write_task import WriteSpec, folder_name, write_partition
from pageseek.storage.listing import on_disk
from pageseek.storage.output_folders import OutputFolder, output_folder


class Killed(BaseException):
    """Stands for SIGKILL."""


def spec_of(staging: Staging, **more: Any) -> WriteSpec:
    given: dict[str, Any] = {
        "folder": staging.folder, "staging": staging.name, "job": staging.job, "partition_by": (),
        "schema": pa.schema([("k", pa.int64())]), "layout": "lookup", "sorting": (), "compression": "none",
        "metadata": {"m": "1"}, "bloom": {}, "indexes": {}, "group_rows": 1 << 20, "file_rows": None,
    }  # fmt: skip
    return WriteSpec(**{**given, **more})


def staged(staging: Staging, first: int, **more: Any) -> dict[str, str]:
    """Two tasks' files of ten rows each, and one of an attempt that is not taken."""
    files = {}
    for partition in range(2):
        start = first + 10 * partition
        batch = pa.record_batch({"k": pa.array(range(start, start + 10), pa.int64())})
        for _ in range(2 - partition):
            report = write_partition(spec_of(staging, **more), partition, iter([batch]))
        (row,) = report.to_pylist()
        files[row["staged"]] = row["name"]
    return files


def keys(folder: OutputFolder, path: Any) -> list[int]:
    """What a reader sees: every file is whole."""
    if not [name for name in visible(folder) if name.endswith(".parquet")]:
        return []
    return sorted(ps.read_table(path)["k"].to_pylist())


def write_all(folder: OutputFolder, first: int, overwrite: bool = False) -> None:
    staging = begin(folder)
    try:
        files = staged(staging, first)
        staging.publish(files, visible(folder) if overwrite else [], overwrite)
    except Killed:  # locks go with their process
        commit._unlock(staging._lock)
        raise
    staging.close()


class Mortal(OutputFolder):
    """A folder of a driver that dies before, or after, its n-th change."""

    def __init__(self, path: str, lives: float, after: bool) -> None:
        super().__init__(path)
        self.lives, self.after = lives, after

    def _step(self, change: Callable[[], None]) -> None:
        self.lives -= 1
        if self.lives < 0:
            if self.after:
                change()
            raise Killed
        change()

    def put(self, name: str, body: bytes) -> None:
        self._step(lambda: OutputFolder.put(self, name, body))

    def move(self, names: Any, moved: Any = None) -> None:
        for one, to in names.items():
            self._step(lambda one=one, to=to: OutputFolder.move(self, {one: to}))

    def delete(self, names: Any) -> None:
        for name in names:
            self._step(lambda name=name: OutputFolder.delete(self, [name]))

    def drop(self, name: str) -> None:
        for one in self.names(name):
            self._step(lambda one=one: os.unlink(os.path.join(self.path, one)))
        self._step(lambda: OutputFolder.drop(self, name))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_driver_that_dies_at_any_step_leaves_whole_files_and_a_second_write_finishes(
    tmp_path: Path, overwrite: bool, after: bool
):
    old, new = list(range(100, 120)), list(range(20))
    seen, ends = set(), set()
    for lives in range(100):
        path = tmp_path / str(lives)
        folder = output_folder(path)
        write_all(folder, 100)
        died = False
        try:
            write_all(Mortal(str(path), lives, after), 0, overwrite)
        except Killed:
            died = True
        found = keys(folder, path)
        seen.add(tuple(found))
        assert len(set(found)) == len(found)
        recover(folder, stale_after=1e9)
        settled = keys(folder, path)
        assert settled in (old, new if overwrite else new + old)
        assert [name for name in os.listdir(path) if STAGING in name] == []
        assert (path / "_SUCCESS").exists()
        ends.add(tuple(settled))
        if not died:
            break
        write_all(folder, 0, overwrite=True)
        assert keys(folder, path) == new
    assert lives > 8
    assert len(ends) == 2  # taken back early, finished late
    assert len(seen) > 2  # files appear one by one


def test_a_write_under_way_is_left_alone(tmp_path: Path):
    folder = output_folder(tmp_path)
    staging = begin(folder)
    files = staged(staging, 0)
    recover(folder, stale_after=0)
    write_all(folder, 100)
    staging.publish(files, [], False)
    staging.close()
    assert keys(folder, tmp_path) == [*range(20), *range(100, 120)]


def test_a_write_that_raises_takes_its_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = output_folder(tmp_path)
    write_all(folder, 100)
    staging = begin(folder)
    files = staged(staging, 0)
    os.unlink(folder.source(list(files)[1]).path)
    with pytest.raises(FileNotFoundError):
        staging.publish(files, [], False)
    staging.close()
    assert keys(folder, tmp_path) == list(range(100, 120))
    assert [name for name in os.listdir(tmp_path) if STAGING in name] == []


def test_without_locks_the_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(commit, "fcntl", None)
    folder = output_folder(tmp_path)
    staged(begin(folder), 0)
    recover(folder, stale_after=3600)
    assert len(commit.stagings(folder)) == 1
    recover(folder, stale_after=0)
    assert commit.stagings(folder) == []


def test_a_task_of_a_write_that_was_given_up_fails(tmp_path: Path):
    staging = begin(output_folder(tmp_path))
    staging.close()
    with pytest.raises(FileNotFoundError):
        staged(staging, 0)
    assert os.listdir(tmp_path) == []


def test_two_attempts_of_a_partition_are_refused():
    one_attempt_each([(0, "a"), (0, "a"), (1, "b")])
    with pytest.raises(PageseekError, match="partition 1"):
        one_attempt_each([(0, "a"), (1, "b"), (1, "c")])


def test_a_folder_is_named_as_hive_names_it():
    assert folder_name("k", None) == folder_name("k", "") == "k=__HIVE_DEFAULT_PARTITION__"
    assert folder_name("a b", "x/y=1") == "a b=x%2Fy%3D1"


@pytest.fixture(params=["obstore", "fsspec", "pyarrow"])
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "obstore":
        obstore = pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
        yield obstore.store.MemoryStore(), "lake/made"
    elif request.param == "fsspec":
        fsspec = pytest.importorskip("fsspec")
        filesystem = fsspec.filesystem("memory")
        yield filesystem, "/write-test/made"
        filesystem.rm("/write-test", recursive=True)
    else:
        yield pafs._MockFileSystem(), "made"


def test_writes_to_stores_are_published_once_and_taken_back(store: Any):
    folder = output_folder(store)
    assert folder.far
    write_all(folder, 100)
    assert keys(folder, store) == list(range(100, 120))
    assert "_SUCCESS" in visible(folder)
    staging = begin(folder)
    files = staged(staging, 0, bloom={"k": 0.01})
    assert keys(folder, store) == list(range(100, 120))
    folder.put(f"{staging.name}/{commit.MANIFEST}", manifest(files))
    folder.move(dict(list(files.items())[:1]))  # and dies
    assert len(keys(folder, store)) == 30
    recover(folder, stale_after=3600)
    assert len(keys(folder, store)) == 30
    recover(folder, stale_after=0)
    assert keys(folder, store) == list(range(100, 120))
    assert not [name for name in folder.names() if STAGING in name]
    write_all(folder, 0, overwrite=True)
    assert keys(folder, store) == list(range(20))


def manifest(files: dict[str, str]) -> bytes:
    import json

    return json.dumps({"files": files, "old": [], "marked": False}).encode()


def test_indexes_are_in_files_before_they_appear(tmp_path: Path):
    folder = output_folder(tmp_path)
    staging = begin(folder)
    files = staged(staging, 0, bloom={"k": 0.01}, indexes={"distinct": ["k"]})
    staging.publish(files, [], False)
    staging.close()
    for name in files.values():
        assert {e.kind for e in ps.index.list(str(tmp_path / name))} >= {"bloom", "distinct"}
        assert pq.read_metadata(tmp_path / name).metadata[b"m"] == b"1"


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_linked_folders_are_seen_as_readers_see_them(tmp_path: Path):
    top, other = tmp_path / "top", tmp_path / "other"
    for one in (top / "p=0", top / "_hidden", other / "deep"):
        one.mkdir(parents=True)
        (one / "f.parquet").write_bytes(b"")
    (top / "p=1").symlink_to(other)
    (other / "back").symlink_to(top)  # a circle
    (top / "p=2").symlink_to(top / "p=0")
    (top / "_aside").symlink_to(other)
    (top / "nowhere").symlink_to(tmp_path / "none")
    folder = output_folder(str(top))
    names = ["_hidden/f.parquet", "nowhere", "p=0/f.parquet", "p=1/deep/f.parquet", "p=2/f.parquet"]
    assert folder.names() == names
    assert folder.linked() == ["p=1", "p=2"]
    read = [os.path.relpath(path, top) for path, _ in on_disk(str(top))]
    assert read == [name for name in names if name[0] == "p"]

    target = Target(folder, str(top))
    target.check("append", False)
    with pytest.raises(UnsupportedError, match=r"p=1 is a link to a folder.*take the link away"):
        target.check("overwrite", False)
    assert target.files() == names
