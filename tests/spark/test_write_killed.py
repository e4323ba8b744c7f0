"""Tasks that fail, workers and drivers that are killed while they write: every row is there once, or none is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.spark.writing.commit import STAGING

pytestmark = pytest.mark.spark
JOB = Path(__file__).with_name("write_job.py")
ROWS = 60_000


def started(kind: str, folder: Path) -> subprocess.Popen[str]:
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("SPARK_REMOTE", "SPARK_CONNECT"))
    }
    environment |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONWARNINGS": "ignore",
    }
    return subprocess.Popen(
        [sys.executable, str(JOB), kind, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment, start_new_session=True,
    )  # fmt: skip


def finished(job: subprocess.Popen[str]) -> dict[str, Any]:
    said, errors = job.communicate(timeout=300)
    answers = [line for line in said.splitlines() if line.startswith("ANSWERS ")]
    assert answers, f"exit {job.returncode}\n{said[-2000:]}\n{errors[-6000:]}"
    return json.loads(answers[0].removeprefix("ANSWERS "))


def check(found: dict[str, Any], folder: Path) -> None:
    assert (found["rows"], found["read"]) == (ROWS, ROWS)
    assert found["status"] == ["attached"]
    assert {"raised", "killed", "reported"} <= set(found["marks"])
    files = list(folder.glob("*.parquet"))
    assert len(files) == found["files"] == 16
    assert sum(pq.read_metadata(file).num_rows for file in files) == ROWS
    assert sorted(ps.read_table(folder)["id"].to_pylist()) == list(range(ROWS))
    assert [name for name in os.listdir(folder) if STAGING in name] == []


def test_attempts_that_fail_or_are_killed_leave_no_row_twice(spark_ready: None, tmp_path: Path):
    folder = tmp_path / "made"
    check(finished(started("retries", folder)), folder)


@pytest.mark.slow
def test_a_killed_driver_leaves_nothing_visible_and_a_second_run_finishes(
    spark_ready: None, tmp_path: Path
):
    folder = tmp_path / "made"
    job = started("wait", folder)
    until = time.monotonic() + 200
    while not (tmp_path / "made-marks" / "waits").exists():
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
    staged = list(folder.glob(f"{STAGING}*/*/*.parquet"))
    os.killpg(job.pid, signal.SIGKILL)  # the process that this test has started, with its children
    job.communicate()
    assert staged
    assert [name for name in os.listdir(folder) if STAGING not in name] == []
    check(finished(started("retries", folder)), folder)
