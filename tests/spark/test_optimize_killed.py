"""An `optimize` that dies loses nothing, and a second run takes over what was finished."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import FileChangedError
from pageseek.spark import optimize
from pageseek.spark.writing.commit import STAGING
from support.in_process import InProcess
from support.optimize_folder import (
    died,
    files,
    is_sorted,
    meanwhile,
    rows,
    write_folder,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "lake")


def test_a_second_run_takes_over_what_the_first_has_finished(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    before = rows(folder)
    died(folder, monkeypatch, 3)
    assert len(list(folder.glob(f"{STAGING}*/*/*.parquet"))) == 3
    assert rows(folder) == before
    died(folder, monkeypatch, 2)  # takes them over, and dies, too
    assert len(list(folder.glob(f"{STAGING}*/*/*.parquet"))) == 5
    session = InProcess()
    done = optimize(session, folder, sort_by="k", group_bytes=1, tasks=100)
    assert (done.kept, done.groups, session.tasks) == (5, 8, 3)
    assert "5 groups finished by a run that died" in str(done)
    assert rows(folder) == before
    assert len(files(folder)) == 8
    assert all(
        is_sorted(pq.ParquetFile(folder / f.name).read()["k"].to_pylist()) for f in done.files
    )


def test_nothing_is_taken_over_that_would_be_written_otherwise(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    before = rows(folder)
    changes: list[dict[str, Any]] = [
        {"page_rows": 10}, {"codec": "none"}, {"file_rows": 100}, {"indexes": {"lookup": ["k"]}}, {"row_group_rows": 9},
        {"sort_by": [("k", "descending")]}, {"out_of_range": "keep"}, {"group_bytes": 1 << 20},
    ]  # fmt: skip
    for i, change in enumerate([{}, *changes]):
        again = folder.with_name(f"again{i}")
        shutil.copytree(folder, again)
        died(again, monkeypatch, 2)
        done = optimize(InProcess(), again, **{"sort_by": "k", "group_bytes": 1, **change})
        assert done.kept == (0 if i else 2)
        assert rows(again) == before
    died(folder, monkeypatch, 2)
    for path in folder.glob("p=*/*.parquet"):
        os.utime(path, ns=(1, 1))  # as if it were another version
    assert optimize(InProcess(), folder, sort_by="k", group_bytes=1).kept == 0


def test_damaged_leftovers_are_not_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch):
    before = rows(folder)
    for what in ("shorter", "lost", "no JSON", "other keys", "other types", "another folder"):
        died(folder, monkeypatch, 2)
        (staged, _), (done, _) = (
            sorted(folder.glob(f"{STAGING}*/*/{name}")) for name in ("*.parquet", "done.json")
        )
        if what == "shorter":
            staged.write_bytes(staged.read_bytes()[:-1])
        elif what == "lost":
            staged.unlink()
        else:
            text = done.read_text()
            texts = {
                "no JSON": "{", "other keys": '{"key": 1}', "other types": re.sub('"rows": [0-9]+', '"rows": "many"', text),
                "another folder": text.replace("00000.parquet", "../00000.parquet"),
            }  # fmt: skip
            done.write_text(texts[what])
        assert optimize(InProcess(), folder, sort_by="k", group_bytes=1).kept == 1
        assert rows(folder) == before
        assert not [name for name in files(folder) if STAGING in name]


def test_a_run_that_lives_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Two runs at a time: the one that comes last finds its files gone."""
    before = rows(folder)
    meanwhile(monkeypatch, "after", lambda: monkeypatch.undo() or optimize(InProcess(), folder))
    with pytest.raises(FileChangedError, match="deleted"):
        optimize(InProcess(), folder, sort_by="k")
    assert rows(folder) == before
    assert len(files(folder)) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_a_driver_that_is_killed_anywhere_loses_nothing_and_a_second_run_finishes(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_optimize", str(tmp_path), "3", "13"],
        capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["killed"] for one in found] == [True] * (len(found) - 1) + [False]
    assert len(found) > 8
    for one in found:
        wanted = {"lost": 0, "equal": True, "files": 2, "left": []}
        assert {key: one[key] for key in wanted} == wanted, one
        assert one["twice"] in range(
            0, 161, 40
        )  # while files get their names, old ones are there, too
    assert {one["kept"] for one in found} >= {0, 1}


JOB = Path(__file__).with_name("read_job.py")


@pytest.mark.spark
def test_killed_workers_and_a_killed_driver(spark: Any, tmp_path: Path):
    """Two workers are killed as they write, then the driver with all its tasks. This session goes on."""
    folder, marks = tmp_path / "in", tmp_path / "marks"
    folder.mkdir()
    marks.mkdir()
    for i in range(30):
        table = pa.table(
            {"k": [(n * 7919 + i) % 5003 for n in range(3000)], "x": [1.0] * 3000, "g": [i] * 3000}
        )
        pq.write_table(table, folder / f"{i:02}.parquet")
    before = rows(folder)
    (marks / "stage").write_text("optimize worker")
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("SPARK_REMOTE", "SPARK_CONNECT"))
    }
    environment |= {
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(JOB.parent), "PYTHONWARNINGS": "ignore",
        "KILL_MARKS": str(marks),
    }  # fmt: skip
    job = subprocess.Popen(
        [sys.executable, str(JOB), "local[2,4]", "worker", str(folder), "optimize"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 200

    def wait_for(pattern: str, count: int) -> None:
        while len(list(tmp_path.glob(pattern))) < count:
            assert job.poll() is None, job.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)

    wait_for("marks/optimize-*", 2)
    wait_for(f"in/{STAGING}*/*/done.json", 2)
    (marks / "stage.tmp").write_text("rest wait")
    os.replace(marks / "stage.tmp", marks / "stage")
    wait_for("marks/rest-*", 2)
    os.killpg(job.pid, signal.SIGKILL)  # the process that this test has started, with its children
    job.communicate()
    finished = len(list(folder.glob(f"{STAGING}*/*/done.json")))
    assert rows(folder) == before
    done = optimize(spark, folder, sort_by="k", group_bytes=1, tasks=30)
    assert 2 <= done.kept <= finished < done.groups == 30
    assert rows(folder) == before
    assert len(files(folder)) == 30
    assert all(is_sorted(pq.ParquetFile(path).read()["k"].to_pylist()) for path in folder.iterdir())
