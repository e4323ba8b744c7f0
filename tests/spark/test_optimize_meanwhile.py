"""`optimize` changes nothing where a task fails, or where files change meanwhile."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import CorruptFileError, FileChangedError, RewriteError
from pageseek.rewriting import rewrite
from pageseek.spark import optimize
from pageseek.spark.writing import commit
from pageseek.spark.writing.commit import STAGING, Staging, begin
from pageseek.storage.output_folders import output_folder
from support.in_process import InProcess
from support.optimize_folder import (
    FILES,
    files,
    meanwhile,
    rows,
    write_folder,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "lake")


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
