"""A Spark Connect session: the client plans, and sends the function to a server."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def need_connect() -> None:
    missing = [name for name in ("grpc", "grpc_status", "google.rpc") if not _present(name)]
    if missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}: pip install 'pyspark[connect]'")
    import pyspark

    if not list((Path(pyspark.__file__).parent / "jars").glob("spark-connect_*.jar")):
        pytest.skip("this pyspark has no server for Spark Connect among its jars")


def _present(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.spark
def test_a_connect_session_gives_the_same_answers(
    checked_job: Callable[[str, str], dict[str, Any]],
):
    need_connect()
    found = checked_job("remote", "local[2]")
    assert "connect" in found["session"]
    assert found["none_columns"] == ["k", "s", "t", "d"]
    assert found["limit"] == 4000
    assert found["large_function"] == 1
    *planned, noted, files, report, named, reports = found["reports"]
    assert planned == [[False, 4, 1], [False, 4, 1], [False, 8, 2]]
    assert noted
    assert files == ["0.parquet"]
    assert "the server plans" in report
    assert "pageseek.scan" in report
    assert (report, named) == (reports, report.replace("report:", "input_files:"))
    assert found["far"] == {
        "wrong": [],
        "rows": 1,
        "schema": True,
        "narrow": [["row 8", 8, None]],
        "option": [1, 1],
        "filters": [True] * 21,
        "pushed": True,
        "error": True,
        "shared": [5, 20_000, 1_000, 10_000, 1_005, 2] * 2,
        "columns": ["pageseek[k#, st#", [5, 6, 7]],
        "streamed": 20_000,
        "refused": [1, 5, 20_000, 5],
        "many": [80, 1],
        "alike": [
            ["2", "3", "Row(X=4, x=5, y=6)"],
            ["6"],
            ["3"],
            ["Row(x=5)"],
            ["None", "1", "5", "b"],
        ],
        "odd": [[[3, 3], [4, 4]], [], [], 3, True, 1],
    }
