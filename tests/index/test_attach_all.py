"""`attach_all`: all files of a folder, a list, a glob, a table; again after a stop; failures apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "lake"
    for i in range(5):
        at = made / f"p={i % 2}" / f"{i}.parquet"
        at.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": range(i * 100, i * 100 + 100), "s": ["x"] * 100}), at)
    return made


def kinds(path: Path) -> set[tuple[str, str | None]]:
    return {(one.kind, one.column) for one in ps.index.list(path) if one.attached}


@pytest.mark.parametrize("form", ["folder", "glob", "list"])
@pytest.mark.parametrize("threads", [1, 2, None])
def test_all_files(folder: Path, form: str, threads: int | None) -> None:
    files = sorted(folder.rglob("*.parquet"))
    source: Any = {"folder": folder, "glob": f"{folder}/**/*.parquet", "list": files}[form]
    seen: list[ps.Progress] = []
    done = ps.index.attach_all(
        source, lookup=["id"], distinct=["s"], threads=threads, progress=seen.append
    )
    assert done.ok
    assert [one.path for one in done.files] == [str(file) for file in files]
    assert [now.done for now in seen] == [1, 2, 3, 4, 5]
    assert seen[-1].total == 5
    assert "5 of 5 files" in str(done)
    assert all(("lookup", "id") in kinds(file) for file in files)
    before = {file: file.read_bytes() for file in files}
    again = ps.index.attach_all(source, lookup=["id"], distinct=["s"], threads=threads)
    assert not again.files
    assert [one.path for one in again.unchanged] == [str(file) for file in files]
    assert {file: file.read_bytes() for file in files} == before
    assert ps.scan(folder, filter=ps.col("id") == 321).count_rows() == 1


def test_files_that_fail_stay_and_the_others_go_on(folder: Path) -> None:
    broken, other = folder / "p=0" / "2.parquet", folder / "p=1" / "3.parquet"
    broken.write_bytes(b"PAR1 nothing PAR1")
    pq.write_table(pa.table({"other": [1]}), other)
    done = ps.index.attach_all(folder, bloom=["id"])
    assert not done.ok
    assert set(done.failed) == {str(broken), str(other)}
    assert isinstance(done.failed[str(broken)], ps.CorruptFileError)
    assert len(done.files) == 3
    assert f"failed: {broken}" in str(done)
    assert "other.parquet" not in str(done)
    assert broken.read_bytes() == b"PAR1 nothing PAR1"


def test_why_files_get_nothing(tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(pa.table({"id": range(9_000)}), tmp_path / f"{i}.parquet")
    done = ps.index.attach_all(tmp_path, bitmap=["id"], page_index=False)
    assert not done.files
    assert len(done.unchanged) == 2
    assert "not: bitmap index of 'id': more than 4,096 values (2 files)" in str(done)


def test_wrong_arguments(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="output=: files are changed in place"):
        ps.index.attach_all(folder, output="x")
    with pytest.raises(TypeError, match="a list of names"):
        ps.index.attach_all(folder, lookup="id")
    with pytest.raises(TypeError):
        ps.index.attach_all(folder, nothing=["id"])
    with pytest.raises((FileNotFoundError, ValueError)):
        ps.index.attach_all(tmp_path / "none", lookup=["id"])
    assert not any(kinds(file) for file in folder.rglob("*.parquet"))


def test_a_table(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    root = str(tmp_path / "t")
    for i in range(3):
        deltalake.write_deltalake(root, pa.table({"id": range(i * 10, i * 10 + 10)}), mode="append")
    with pytest.raises(ps.UnsupportedError, match="table=DeltaTable"):
        ps.index.attach_all(root, lookup=["id"])
    table = deltalake.DeltaTable(root)
    with pytest.raises(TypeError, match="given as table="):
        ps.index.attach_all(table, lookup=["id"])
    done = ps.index.attach_all(None, table=table, lookup=["id"])
    assert done.ok
    assert len(done.files) == 3
    assert deltalake.DeltaTable(root).version() == 5
    assert sorted(ps.read_table(root)["id"].to_pylist()) == [*range(30)]
    assert ps.scan(root, filter=ps.col("id") == 17).count_rows() == 1


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(file) for file in sorted(folder.rglob("*.parquet"))]
    assert main(["index", "attach", str(folder), "--lookup", "id", "--in-place", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["path"] for one in said["files"]] == files
    assert main(["index", "attach", *files, "--lookup", "id", "--in-place"]) == 0
    assert "5 stay as they are" in capsys.readouterr().out
    assert main(["index", "attach", *files, "--lookup", "nothing", "--in-place"]) == 1
    assert "failed" in capsys.readouterr().out
    assert main(["index", "attach", *files, "--lookup", "id", "--output", "x"]) != 0
    assert "--in-place" in capsys.readouterr().err
