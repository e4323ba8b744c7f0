"""What `optimize` refuses, before a file changes."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import UnsupportedError
from pageseek.spark import optimize
from pageseek.spark.writing.commit import STAGING
from support.in_process import InProcess
from support.optimize_folder import (
    files,
    write_folder,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "lake")


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
