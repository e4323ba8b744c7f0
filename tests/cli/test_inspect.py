"""`pageseek inspect`: what is drawn of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command import ROWS as N
from support.command import run


def test_inspect_draws_groups_and_chunks(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "inspect", path)
    assert code == 0
    assert "4,000 rows, 2 row groups, 5 columns" in out
    assert "column index all" in out
    assert out.count("scattered") == 2
    assert "first row" not in out


def test_inspect_draws_sorted_and_scattered_pages_apart(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def strips(column: str) -> list[str]:
        out = run(capsys, "inspect", path, "--column", column)[1]
        return [line.split("|")[1] for line in out.splitlines() if line.endswith("|")]

    ordered, scattered = strips("id"), strips("scattered")
    assert all(strip.count("#") < 4 for strip in ordered)
    assert [strip.index("#") for strip in ordered] == sorted(strip.index("#") for strip in ordered)
    assert all(strip.count("#") > 35 for strip in scattered)


def test_inspect_json_holds_pages(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "inspect", path, "--pages", "--json")[1])
    pages = found["columns"][0]["chunks"][1]["pages"]
    assert sum(page["rows"] for page in pages) == N // 2
    assert pages[0]["min"] == N // 2
    assert found["columns"][3]["chunks"][0]["min"] == "2024-01-01"


def test_inspect_knows_a_file_without_page_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"a": [1, 2], "nested": [{"x": 1}, {"x": 2}]}), made)
    code, out, _ = run(capsys, "inspect", str(made), "--pages")
    assert code == 0
    assert "column index none" in out
    assert "no offset index" in out
    assert "`pageseek index attach` adds one" in out
    assert "nested.x" in out
