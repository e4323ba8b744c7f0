"""Folders that a stream of Spark writes to: only the files that its log has are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.index import attach
from pageseek.spark.writing.destination import target_of
from pageseek.storage import sink_logs
from pageseek.storage.resolve import resolve
from pageseek.storage.table_folders import Tables

Way = Callable[[Path], Any]


def entry(path: str, action: str = "add") -> str:
    uri = f"file://{quote(path)}"
    return json.dumps({"path": uri, "size": 1, "isDir": False, "action": action})


class Sink:
    """A folder with a log. `root`: where the log says that it lies."""

    def __init__(self, folder: Path, root: str | None = None) -> None:
        self.folder, self.root = folder, str(folder) if root is None else root
        (folder / "_spark_metadata").mkdir(parents=True)

    def file(self, name: str, k: int) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"k": [k]}), path)
        return f"{self.root}/{name}"

    def batch(self, name: int | str, lines: Iterable[str], version: str = "v1") -> None:
        path = self.folder / "_spark_metadata" / str(name)
        path.write_text("\n".join([version, *lines]))


def ways() -> list[Any]:
    def in_memory(folder: Path) -> Any:
        memory = fsspec.filesystem("memory")
        for path in folder.rglob("*"):
            if path.is_file():
                memory.pipe(str(path), path.read_bytes())
        return memory, str(folder)

    return [
        pytest.param(str, id="disk"),
        pytest.param(lambda folder: (pafs.LocalFileSystem(), str(folder)), id="arrow"),
        pytest.param(
            lambda folder: (
                pafs.SubTreeFileSystem(str(folder.parent), pafs.LocalFileSystem()),
                folder.name,
            ),
            id="subtree",
        ),
        pytest.param(in_memory, id="fsspec"),
    ]


def ks(source: Any, **options: Any) -> list[int]:
    return sorted(ps.read_table(source, **options)["k"].to_pylist())


@pytest.mark.parametrize("way", ways())
@pytest.mark.parametrize("moved", [False, True])
def test_files_that_no_batch_has_are_not_read(tmp_path: Path, way: Way, moved: bool) -> None:
    sink = Sink(tmp_path / "out d%", "/elsewhere/out" if moved else None)
    paths = [sink.file(f"p=a b%25#{i % 2}/part-{i}.parquet", i) for i in range(7)]
    for i in (2, 6):  # of tasks that failed
        sink.file(f"p=a b%25#0/part-{i}-again.parquet", i)
    sink.file("p=a b%25#1/part-0.parquet", 0)  # a name that the log has, in another folder
    sink.batch(1, map(entry, paths[:2]))
    sink.batch("2.compact", map(entry, paths[:6]))
    sink.batch(2, map(entry, paths[2:3]))  # that it was made from
    sink.batch(3, [entry(f"{sink.root}/p=1").replace("false", "true")])  # a folder
    sink.batch(4, [entry(paths[6]), entry(paths[1], "delete"), ""])
    sink.batch("4.tmp", ["no batch"])
    (sink.folder / "_spark_metadata" / ".4.crc").write_bytes(b"crc")
    source = way(sink.folder)
    assert ks(source) == [0, 2, 3, 4, 5, 6]
    assert ks(source, filter="k > 4") == [5, 6]
    assert set(ps.read_table(source)["p"].to_pylist()) == {"a b%#0", "a b%#1"}
    assert ks(source, table=False) == [0, 0, 1, 2, 2, 3, 4, 5, 6, 6]
    text = str(ps.scan(source).explain())
    assert (
        "file sink of Spark: its log (_spark_metadata) has 6 files; 4 others are not read" in text
    )


@pytest.mark.parametrize("way", ways())
def test_sinks_below_a_folder_and_beside_other_files(tmp_path: Path, way: Way) -> None:
    root = tmp_path / "lake"
    for i in range(2):
        sink = Sink(root / f"sink{i}")
        sink.batch(0, [entry(sink.file("part-a.parquet", i))])
        sink.file("part-b.parquet", 10 + i)
    pq.write_table(pa.table({"k": [99]}), root / "plain.parquet")
    assert ks(way(root)) == [0, 1, 99]
    assert ks(way(root), table=False) == [0, 1, 10, 11, 99]


def test_globs_leave_out_what_no_log_has_but_files_that_are_named_are_read(tmp_path: Path) -> None:
    sink = Sink(tmp_path / "lake" / "sink")
    sink.batch(0, [entry(sink.file("part-a.parquet", 1))])
    stray = sink.file("part-b.parquet", 2)
    assert ks(f"{tmp_path}/lake/**/*.parquet") == [1]
    for named in (f"{sink.folder}/*.parquet", stray, [stray]):
        assert 2 in ks(named)
        text = str(ps.scan(named).explain())
        assert f"{sink.folder} is a file sink of Spark: the files that were named are read" in text


@pytest.mark.parametrize("way", ways())
def test_logs_count_for_the_files_that_were_found(tmp_path: Path, way: Way) -> None:
    root = tmp_path / "lake"
    outer, beside, hidden = (Sink(root / name) for name in ("a", "ab", "_hidden"))
    inner = Sink(outer.folder / "x")
    for sink, first in ((outer, 0), (beside, 10), (hidden, 20), (inner, 30)):
        paths = [sink.file(f"p={i}/part-{i}.parquet", first + i) for i in range(2)]
        sink.batch(
            0, map(entry, [*paths, f"{sink.root}/gone.parquet"] if sink is hidden else paths)
        )
        sink.file("p=0/part-again.parquet", first)
    assert ks(way(root)) == [0, 1, 10, 11]  # what is in a sink counts by its log alone
    if way is str:
        assert ks(f"{root}/*/p=1/*.parquet") == [1, 11, 21]
    (outer.folder / "p=0" / "part-0.parquet").unlink()
    if way is str:
        assert [one.path[-14:] for one in resolve(str(root), tables=Tables(passes_over=True))] == [
            "part-1.parquet", "part-0.parquet", "part-1.parquet",
        ]  # fmt: skip
        with pytest.raises(CorruptFileError, match=r"a/p=0/part-0.parquet: no such file"):
            ks(way(root))


@pytest.mark.parametrize("way", ways())
def test_logs_that_cannot_be_followed(tmp_path: Path, way: Way) -> None:
    def refused(name: str, match: str, kind: type[Exception] = CorruptFileError) -> None:
        with pytest.raises(kind, match=match) as raised:
            ps.read_table(way(tmp_path / name))
        assert "table=False reads the bare files" in str(raised.value)

    sink = Sink(tmp_path / "none")
    sink.file("part-0.parquet", 0)
    if way is str:  # stores have no empty folders
        refused("none", "has committed none", FileNotFoundError)
    sink.batch(0, [])
    refused("none", "has committed none", FileNotFoundError)
    sink.batch(2, [])
    refused("none", "batch 1 is missing in _spark_metadata")
    sink.batch(1, [entry("/gone/part-9.parquet"), entry("/gone/part-8.parquet")])
    refused("none", r"part-8.parquet, and 1 more: no such file in .*none")
    sink.batch(1, [], "v2")
    refused("none", "version 2 of Spark's log", UnsupportedError)
    sink.batch(1, [], "")
    refused("none", "_spark_metadata/1: the first line")
    for line in ("{", "[]", "1", '{"size": 1}', '{"path": 1}', '{"path": "//["}'):
        sink.batch(1, [line])
        refused("none", "_spark_metadata/1: line 2 is no entry")


def test_a_log_that_is_compacted_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink(tmp_path / "sink")
    paths = [sink.file("part-0.parquet", 0)]
    sink.batch(0, map(entry, paths))
    opened = sink_logs.LocalStore

    def compacted(at: str) -> Any:
        if at.endswith("/0"):
            (sink.folder / "_spark_metadata" / "0").unlink(missing_ok=True)
            paths.append(sink.file("part-1.parquet", 1))  # after the folder was listed
            sink.batch("1.compact", map(entry, paths))
        return opened(at)

    monkeypatch.setattr(sink_logs, "LocalStore", compacted)
    assert ks(str(sink.folder)) == [0, 1]


def test_files_in_a_sink_keep_their_sizes(tmp_path: Path) -> None:
    sink = Sink(tmp_path / "sink")
    path = sink.file("part-0.parquet", 0)
    sink.batch(0, [entry(path)])
    with pytest.raises(UnsupportedError, match=r"a stream of Spark writes to .*sizes"):
        attach(path, lookup=["k"], in_place=True)
    attach(path, lookup=["k"], output=tmp_path / "elsewhere.parquet")
    for options in ({"in_place": True}, {"output": f"{sink.folder}/new.parquet"}):
        with pytest.raises(UnsupportedError, match=r"a stream of Spark writes to .*sizes"):
            ps.rewrite(path, **options)
    with pytest.raises(UnsupportedError, match="a stream of Spark writes to"):
        target_of(str(sink.folder), None)
