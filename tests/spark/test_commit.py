"""Writes whose drivers die at each step: readers see no part of a file, and the next write settles what is left."""

from __future__ import annotations

import os
import re
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
from pageseek.storage.writing import writer
from support.object_server.server import ObjectServer


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


LONG = "x" * 300
FOLDERS = [f"p={LONG}", f"p=1/q={LONG}", "p=x\0y", "p=1/q=\0", "taken/p=1"]


def named(files: dict[str, str], folder: str) -> dict[str, str]:
    """The files: one in a folder that can be, the next in one that cannot."""
    (a, first), (b, second) = files.items()
    return {a: f"p=0/q=0/{first}", b: f"{folder}/{second}"}


def there(path: Path) -> list[str]:
    """All files and folders."""
    return sorted(str(one.relative_to(path)) for one in path.rglob("*"))


@pytest.mark.skipif(os.name != "posix", reason="names are others there")
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("wrong", FOLDERS)
def test_a_name_that_cannot_be_does_not_block_the_folder(
    tmp_path: Path, wrong: str, overwrite: bool
):
    folder = output_folder(tmp_path)
    write_all(folder, 100)
    (tmp_path / "taken").write_bytes(b"")
    before = there(tmp_path)
    staging = begin(folder)
    files = named(staged(staging, 0), wrong)
    with pytest.raises((OSError, ValueError)):
        staging.publish(files, visible(folder) if overwrite else [], overwrite)
    staging.close()
    assert there(tmp_path) == before
    assert keys(folder, [str(path) for path in tmp_path.glob("part-*")]) == list(range(100, 120))
    write_all(folder, 0, overwrite=True)
    assert keys(folder, tmp_path) == list(range(20))


@pytest.mark.skipif(os.name != "posix", reason="names are others there")
@pytest.mark.parametrize("wrong", FOLDERS)
@pytest.mark.parametrize("moves", [0, 1])
def test_a_dead_write_to_a_name_that_cannot_be_is_taken_back(
    tmp_path: Path, wrong: str, moves: int
):
    folder = output_folder(tmp_path)
    (tmp_path / "taken").write_bytes(b"")
    staging = begin(folder)
    files = named(staged(staging, 0), wrong)
    folder.put(f"{staging.name}/{commit.MANIFEST}", manifest(files))
    folder.move(dict(list(files.items())[:moves]))
    commit._unlock(staging._lock)
    recover(folder, stale_after=1e9)
    assert there(tmp_path) == ["taken"]


def test_all_files_are_tried_before_the_error_of_one_is_raised(tmp_path: Path):
    for name in ("a", "c", "d/e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_bytes(b"")
    with pytest.raises(OSError, match="b'"):
        output_folder(tmp_path).delete(["none", "a", "b", "c", "d/e"])
    assert there(tmp_path) == ["b", "b/x"]


@pytest.mark.parametrize("wrong", [LONG, "x\0y", "é" * 127])
def test_a_task_refuses_a_value_that_names_no_folder(tmp_path: Path, wrong: str):
    staging = begin(output_folder(tmp_path))
    spec = spec_of(staging, partition_by=("p", "q"))

    def rows(*values: str) -> Iterator[pa.RecordBatch]:
        for value in values:
            yield pa.record_batch({"k": pa.array([1]), "p": ["fine"], "q": [value]})

    given = rows("fine", wrong, "more")
    (row,) = write_partition(spec, 3, given).to_pylist()
    assert list(given) == []
    assert (row["staged"], row["name"], row["partition"]) == (None, None, 3)
    assert re.search(
        r"column 'q' has the value '(x\S*|é+)'.*cannot name a folder.*partition by a shorter",
        row["refused"],
    )
    assert len(row["refused"]) < 400 + len(str(tmp_path))
    (row,) = write_partition(spec, 3, rows("é" * 126)).to_pylist()
    assert row["refused"] is None
    staging.publish({row["staged"]: row["name"]}, [], False)
    staging.close()
    assert keys(output_folder(tmp_path), tmp_path) == [1]


def test_files_for_a_table_are_brought_all_or_none(tmp_path: Path):
    folder = output_folder(tmp_path)
    staging = begin(folder)
    files = named(staged(staging, 0), "p=1")
    os.unlink(folder.source(list(files)[1]).path)
    with pytest.raises(FileNotFoundError):
        staging.bring(files)
    staging.close()
    assert there(tmp_path) == []


def test_keys_that_a_store_does_not_take_block_nothing(object_server: ObjectServer):
    stores = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    object_server.put("bucket/other", b"")
    store = stores.S3Store(
        "bucket", endpoint=object_server.endpoint, region="us-east-1", skip_signature=True,
        client_options={"allow_http": True},
    )  # fmt: skip
    folder = output_folder((store, "lake"))
    assert folder.refused("p=" + 1017 * "x") is None  # with the name of the folder, 1,024
    assert (
        folder.refused("p=" + 1018 * "x")
        == "a name of 1025 bytes in the store, and stores take 1024"
    )
    assert folder.refused("p=\0") is not None
    staging = begin(folder)
    long = "p=" + 1100 * "x"
    folder.put(f"{staging.name}/{commit.MANIFEST}", manifest({"a": f"{long}/a", "b": "p=1/b"}))
    folder.put("p=1/b", b"x")
    with pytest.raises(PageseekError):
        folder.put(f"{long}/a", b"x")
    with pytest.raises(PageseekError):
        writer(folder.source(long)).delete()
    recover(folder, stale_after=0)
    assert folder.names() == []


def test_a_store_out_of_reach_is_not_asked_for_each_file():
    stores = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    folder = output_folder((stores.MemoryStore(), "lake"))
    tried = []

    class Refusing:
        def __init__(self, name: str) -> None:
            tried.append(name)

        def delete(self) -> None:
            raise PageseekError("no")

        def exists(self) -> bool:
            raise PageseekError("out of reach")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pageseek.storage.output_folders.writer", Refusing)
        with pytest.raises(PageseekError, match=r"^no$"):
            folder.delete([str(i) for i in range(500)])
    assert 16 <= len(tried) < 64


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
