"""Workers, executors and drivers that are killed while they read, look up, stream and attach: right answers, and no half file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pytestmark = pytest.mark.spark
JOB = Path(__file__).with_name("read_job.py")
FILES, ROWS = 8, 20_000
LOCAL = "local[2,4]"
CLUSTER = "local-cluster[2,1,1024]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    for i in range(FILES):
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"k": k, "x": k / 2, "g": k // 1000})
        pq.write_table(
            table, made / f"{i}.parquet", row_group_size=ROWS // 4, write_page_index=True
        )
    (tmp_path / "marks").mkdir()
    return made


def started(url: str, what: str, folder: Path, *stages: str) -> subprocess.Popen[str]:
    dropped = ("SPARK_REMOTE", "SPARK_CONNECT")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    environment |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(JOB.parent),
        "PYTHONWARNINGS": "ignore",
        "KILL_MARKS": str(folder.parent / "marks"),
    }
    return subprocess.Popen(
        [sys.executable, str(JOB), url, what, str(folder), *stages],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip


def finished(job: subprocess.Popen[str]) -> dict[str, Any]:
    said, errors = job.communicate(timeout=500)
    answers = [line for line in said.splitlines() if line.startswith("ANSWERS ")]
    assert answers, f"exit {job.returncode}\n{said[-2000:]}\n{errors[-6000:]}"
    return json.loads(answers[0].removeprefix("ANSWERS "))


def sums(*chosen: bool | np.ndarray) -> list[Any]:
    """The figures of the chosen rows."""
    k = np.arange(FILES * ROWS)[chosen[0] if chosen else slice(None)]
    return [len(k), int(k.sum()), float(k.sum() / 2)]


def check(found: dict[str, Any], folder: Path, strikes: int = 2) -> None:
    k = np.arange(FILES * ROWS)
    wanted: dict[str, Any] = {
        "load": sums(k % 10 < 9), "broadcast": sums(k % 3 == 0), "shuffled": sums(k % 3 == 0), "stream": sums(),
        "attach": [sums(), ["attached"] * FILES],
    }  # fmt: skip
    struck = sorted(path.name for path in (folder.parent / "marks").glob("*-[0-9]"))
    assert struck == sorted(f"{stage}-{i}" for stage in found for i in range(strikes))
    if (
        "attach" in found
    ):  # who was killed may have attached the indexes of files before, but told nobody
        statuses = found["attach"][1]
        assert len(statuses) == FILES
        assert set(statuses) <= {"attached", "present"}
        found = {**found, "attach": [found["attach"][0], ["attached"] * FILES]}
        check_files(folder)
    assert found == {stage: wanted[stage] for stage in found}


def check_files(folder: Path) -> None:
    """All files are whole, with their indexes, and there are no others."""
    assert sorted(os.listdir(folder)) == [f"{i}.parquet" for i in range(FILES)]
    for path in folder.iterdir():
        assert ps.index.verify(path).ok
        assert {(one.kind, one.column) for one in ps.index.list(path)} >= {
            ("distinct", "g"),
            ("bloom", "k"),
        }


def test_workers_that_are_killed_as_they_read_and_attach_change_no_answer(
    spark_ready: None, folder: Path
) -> None:
    check(finished(started(LOCAL, "worker", folder, "load", "attach")), folder)


@pytest.mark.slow
def test_workers_that_are_killed_in_lookups_and_streams_change_no_answer(
    spark_ready: None, folder: Path
) -> None:
    found = finished(started(LOCAL, "worker", folder, "broadcast", "shuffled", "stream"))
    check(found, folder)


@pytest.mark.cluster
@pytest.mark.slow
def test_executors_that_are_killed_change_no_answer(spark_ready: None, folder: Path) -> None:
    found = finished(started(CLUSTER, "executor", folder, "load", "broadcast", "attach"))
    check(found, folder)


@pytest.mark.slow
def test_a_driver_that_is_killed_as_it_attaches_leaves_whole_files_and_a_second_run_finishes(
    spark_ready: None, folder: Path
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    job = started(LOCAL, "wait", folder, "attach")
    until = time.monotonic() + 300
    while len(list((folder.parent / "marks").glob("attach-*"))) < 2:  # both tasks
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
    os.killpg(job.pid, signal.SIGKILL)  # the process that this test has started, with its children
    job.communicate()
    for name, data in before.items():
        found = (folder / name).read_bytes()
        assert found == data or ps.index.verify(folder / name).ok
        assert ps.read_table(folder / name).equals(pq.read_table(pa.BufferReader(data)))
    found = finished(started(LOCAL, "none", folder, "attach"))
    assert found["attach"][0] == sums()
    assert set(found["attach"][1]) <= {"attached", "present"}
    check_files(folder)
