"""The command that compares engines over pageseek with their own readers, at a small size."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest


def test_all_ways_find_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for engine in ("duckdb", "polars"):
        pytest.importorskip(engine, reason="pip install 'pageseek[bench]'")
    pushdown = importlib.import_module("pageseek.bench.pushdown")
    path = str(tmp_path / "rows.parquet")
    monkeypatch.setattr(sys, "argv", ["pushdown", path, "--rows", "3000", "--rounds", "1"])
    pushdown.main()
    shown = capsys.readouterr().out
    assert "3,000 rows" in shown
    assert shown.count("| pageseek.") == 2 and shown.count("over pageseek.dataset |") == 2
