"""Directories and globs without a file: the error says what was looked at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import pageseek as ps

HIDDEN = ("_x.parquet", ".y.parquet", "_tmp/z.parquet")


def refused(source: Any, **options: Any) -> str:
    with pytest.raises(FileNotFoundError) as caught:
        ps.scan(source, **options)
    return str(caught.value)


def made(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def test_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake/sub").mkdir(parents=True)
    assert "no .parquet file in this directory: there is no file in it" in refused(
        tmp_path / "lake"
    )
    monkeypatch.chdir(tmp_path)
    assert refused("lake").startswith(f"lake ({tmp_path / 'lake'}): no .parquet file")


def test_a_directory_of_other_files(tmp_path: Path) -> None:
    made(tmp_path, *HIDDEN, "a.csv", "b/c.csv", "README", "d.json", "e.txt")
    said = refused(tmp_path)
    assert "8 files in and below it: 2 with .csv" in said
    assert "1 with no ending" in said
    assert "1 others" in said
    assert "3 hidden by a name that begins with _ or . (such as '.y.parquet')" in said


def test_folders_of_a_store(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name in ("a.csv", "b.csv", "_c.parquet"):
        memory.pipe(f"/nothing/{name}", b"x")
    said = refused("/nothing", filesystem=memory)
    assert "3 files in and below it: 2 with .csv, 1 hidden by a name" in said
    assert "'_c.parquet'" in said
    memory.rm("/nothing", recursive=True)


def test_globs_without_a_match(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "orders.parquet")
    assert f"the folder {tmp_path} has 1 entry, such as 'orders.parquet'" in refused(
        f"{tmp_path}/ord*.parq"
    )
    assert "such as 'orders.parquet'" in refused(f"{tmp_path}/ORD*.parquet")
    assert f"there is no folder {tmp_path}/nope" in refused(f"{tmp_path}/nope/*.parquet")
    assert "{a,b} is no wildcard: give a list" in refused(f"{tmp_path}/{{orders,b}}*.parquet")
    assert "a glob of folders ends in /**/*.parquet" in refused(f"{tmp_path}/x*")
    assert "a glob of folders" not in refused(f"{tmp_path}/**/x*")
    (tmp_path / "empty").mkdir()
    assert "has 0 entries" in refused(f"{tmp_path}/empty/*")


def test_a_path_that_is_nearly_there(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "orders.parquet")
    assert f"did you mean {tmp_path / 'orders.parquet'}?" in refused(tmp_path / "order.parquet")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.csv", "it ends in text, as CSV and JSON do"),
        ("a.arrow", "it is a file of Arrow (Feather)"),
        ("a.orc", "it is a file of ORC"),
        ("a.bin", ""),
    ],
)
def test_files_of_other_formats(tmp_path: Path, name: str, words: str) -> None:
    path = tmp_path / name
    table = pa.table({"a": range(100)})
    if name == "a.csv":
        path.write_text("id,name\n1,x\n" * 10)
    elif name == "a.arrow":
        feather.write_feather(table, path)
    elif name == "a.orc":
        pytest.importorskip("pyarrow.orc").write_table(table, path)
    else:
        path.write_bytes(bytes(range(256)))
    ending = re.escape(words) + "$"
    with pytest.raises(
        ps.CorruptFileError,
        match=rf"{name}: ends in .*, or cut short.*{ending}" if not words else re.escape(words),
    ):
        ps.read_table(path)
