"""Folders that are tables, in every command."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from support.command import run


def test_folders_that_are_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deltalake = pytest.importorskip("deltalake")
    lake = tmp_path / "lake"
    root = str(lake / "t")
    deltalake.write_deltalake(root, pa.table({"a": [1]}))
    deltalake.write_deltalake(root, pa.table({"a": [2]}), mode="overwrite")
    assert run(capsys, "scan", root, "--json") == (0, '{"a": 2}\n', "")
    code, out, _ = run(capsys, "scan", root, "--json", "--no-table")
    assert code == 0 and sorted(out.split("\n")) == ["", '{"a": 1}', '{"a": 2}']
    assert run(capsys, "scan", root, "--json", "--table-version", "0") == (0, '{"a": 1}\n', "")
    assert run(capsys, "scan", root, "--json", "--timestamp", "2999-01-01") == (0, '{"a": 2}\n', "")
    code, out, _ = run(capsys, "explain", root, "--table-version", "0")
    assert code == 0 and f"Delta Lake table {root}: version 0" in out
    for arguments, said in (
        (("--table-version", "7"), "version"),
        (
            ("--snapshot", "main"),
            "--snapshot is for tables of Iceberg: give --table-version or --timestamp",
        ),
        (("--timestamp", "1999-01-01"), "give a later one, or --table-version"),
    ):
        code, _, error = run(capsys, "scan", root, *arguments)
        assert code == 1 and said in error, error
        assert "--columns" not in error, error
    said = f"Delta Lake table {root}: version 1"
    code, out, _ = run(capsys, "explain", root)
    assert code == 0 and said in out
    code, out, _ = run(capsys, "explain", root, "--json")
    assert code == 0 and json.loads(out)["notes"] == [said]
    code, out, _ = run(capsys, "explain", root, "--json", "--no-table")
    assert code == 0 and json.loads(out)["files"]["total"] == 2
    assert "1 row, 1 row group, 1 column," in run(capsys, "inspect", root)[1]  # of its only file
    assert "2 files, 2 rows" in run(capsys, "inspect", root, "--no-table")[1]
    for arguments in (("index", "list", root), ("index", "verify", root)):
        assert run(capsys, *arguments)[0] == 0
        code, out, _ = run(capsys, *arguments, "--no-table")
        assert code == 0 and out.count(".parquet") == 2  # both bare files
    for arguments in (("scan", str(lake)), ("explain", str(lake)), ("inspect", str(lake))):
        code, _, error = run(capsys, *arguments)
        assert code == 1 and root in error and "--no-table" in error, error
        assert "--columns" not in error and "=False" not in error, error
    for action in ("attach", "detach"):
        code, _, error = run(capsys, "index", action, root, "--in-place")
        assert code == 1 and "in Python: table=" in error and "--no-table" in error, error
        assert "=False" not in error, error
    code, _, error = run(
        capsys, "index", "attach", root, "--no-table", "--output", str(tmp_path / "o")
    )
    assert code == 1 and "2 files" in error, error
