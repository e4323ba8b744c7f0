"""Executors that are processes of their own, with a Python worker each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

JOB = Path(__file__).with_name("job.py")
FILES, ROWS = 4, 5000


def write_files(directory: Path) -> None:
    for i in range(FILES):
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"k": k, "s": [f"row {n}" for n in k]})
        pq.write_table(
            table, directory / f"{i}.parquet", row_group_size=ROWS // 2, write_page_index=True, data_page_size=4096
        )


def run_job(kind: str, url: str, directory: Path) -> dict[str, Any]:
    """The answers of a session in a process of its own: one process has one Spark context."""
    write_files(directory)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_REMOTE", "SPARK_CONNECT"))}
    done = subprocess.run(
        [sys.executable, str(JOB), kind, url, str(directory)],
        capture_output=True,
        text=True,
        env={**environment, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"},
        timeout=300,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert answers, f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return json.loads(answers[0].removeprefix("ANSWERS "))


def check(found: dict[str, Any], directory: Path) -> None:
    total = FILES * ROWS
    assert found["point"] == [[4711, "row 4711"]]
    assert found["range"] == 200
    assert (found["none"], found["none_columns"]) == (0, ["k", "s"])
    assert found["limit"] == 4000
    assert found["sum"] == total * (total - 1) // 2
    assert found["large_function"] == 1
    assert sum(rows for _, rows in found["executors"]) == total
    assert "FileChangedError" in found["changed"]
    assert str(directory / "0.parquet") in found["changed"]


@pytest.mark.cluster
def test_two_executors_share_the_row_groups(spark_ready: None, tmp_path: Path):
    found = run_job("master", "local-cluster[2,1,1024]", tmp_path)
    check(found, tmp_path)
    assert len(found["executors"]) == 2
    assert all(rows >= ROWS for _, rows in found["executors"])
