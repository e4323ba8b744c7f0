"""`pageseek scan`, `head` and `explain`: rows as a table and in other forms."""

from __future__ import annotations

import json

import pytest

import pageseek as ps
from pageseek.cli import scan
from support.command import run


def test_explain_counts_pages(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", path, "--where", "id = 3000", "--analyze")
    assert code == 0
    assert "1 of 2" in out
    assert "1 row\n" in out
    report = json.loads(
        run(capsys, "explain", path, "--where", "id = 3000", "--analyze", "--json")[1]
    )
    assert report["rows"]["out"] == 1
    assert report["leaves"]["id"]["pages"]["read"] == 1


def test_scan_prints_a_table_and_json_lines(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    terms = ["--columns", "id,name", "--where", "id >= 99", "--where", "id < 103"]
    out = run(capsys, "scan", path, *terms)[1].splitlines()
    assert out[0].split() == ["id", "name"]
    assert [line.split() for line in out[2:]] == [
        ["99", "n00099"],
        ["100", "-"],
        ["101", "n00101"],
        ["102", "n00102"],
    ]
    rows = [
        json.loads(line)
        for line in run(capsys, "scan", path, *terms, "--json", "--limit", "2")[1].splitlines()
    ]
    assert rows == [{"id": 99, "name": "n00099"}, {"id": 100, "name": None}]


def test_scan_says_when_there_are_more_rows(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, said = run(capsys, "scan", path)
    assert "the first 20 rows" in said and len(out.splitlines()) == 22  # a pipe has rows alone
    out = run(capsys, "scan", path, "--limit", "3")[1]
    assert len(out.splitlines()) == 5


def test_conditions_are_joined_by_and(path: str) -> None:
    found = ps.read_table(
        path, filter=scan.condition(['"odd name" = true', "day = date '2024-01-03' or id < 2"])
    )
    assert found["id"].to_pylist() == [1, *range(201, 300, 2)]
    assert scan.condition([]) is None
