"""Footers that outlive a job, and the requests and tasks of `load` by the log of an object server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from pageseek.spark import load, report
from support.object_server.log import Record
from support.object_server.server import ObjectServer
from support.remote_files import ROWS, content, s3_options

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
pytestmark = pytest.mark.spark
JOB = Path(__file__).with_name("far_job.py")
FILES, SOURCE = 3, "s3://bucket/t/"


@pytest.fixture
def server(object_server: ObjectServer) -> ObjectServer:
    for i in range(FILES):
        object_server.put(f"bucket/t/{i}.parquet", content(i))
    ps.clear_cache()
    return object_server


def reads(server: ObjectServer) -> list[Record]:
    """The ranges of files that were read since the last time."""
    found = [one for one in server.log.requests() if one.status == 206]
    server.log.reset()
    return found


def of_footers(server: ObjectServer, found: list[Record]) -> list[str]:
    """Those that reach the end of a file."""
    made = []
    for one in found:
        info = server.objects.info(one.path)
        assert info is not None
        assert one.range is not None
        first, _, last = one.range.partition("=")[2].partition("-")
        if not first or not last or int(last) >= info.size - 1:
            made.append(one.path)
    return made


def run_job(server: ObjectServer, condition: str, driver: Path, workers: Path) -> list[Any]:
    """The answers of a job. `driver`, `workers`: where footers are kept."""
    done = subprocess.run(
        [sys.executable, str(JOB), SOURCE, json.dumps(s3_options(server)), condition, str(workers)],
        capture_output=True,
        text=True,
        env={**os.environ, "PAGESEEK_FOOTER_CACHE": str(driver)},
        timeout=300,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert answers, f"exit {done.returncode}\n{done.stderr[-4000:]}"
    found: list[Any] = json.loads(answers[0].removeprefix("ANSWERS "))
    return found


def entries(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def test_a_later_job_reads_no_footer(
    spark_ready: None, server: ObjectServer, tmp_path: Path
) -> None:
    """Those of the driver, and those of the tasks, are in folders of their own."""
    driver, workers = tmp_path / "driver", tmp_path / "workers"
    expected = [[seed, n] for seed in range(FILES) for n in (4711, 4712)]
    assert run_job(server, "id between 4711 and 4712", driver, workers) == [expected, []]
    ends = Counter(of_footers(server, reads(server)))
    assert [n >= 2 for n in ends.values()] == [True] * FILES  # the driver's, and the tasks'
    assert (entries(driver), entries(workers)) == (FILES, FILES)
    expected = [[seed, n] for seed in range(FILES) for n in (12_000, 12_001)]
    assert run_job(server, "id between 12000 and 12001", driver, workers) == [expected, []]
    found = reads(server)
    assert {one.path for one in found} == {f"bucket/t/{i}.parquet" for i in range(FILES)}
    assert of_footers(server, found) == []
    server.put("bucket/t/1.parquet", content(7))  # of which the kept footer is no longer
    rows = [[seed, 4711] for seed in (0, 2, 7)]
    assert run_job(server, "id = 4711", driver, workers) == [rows, []]
    assert set(of_footers(server, reads(server))) == {"bucket/t/1.parquet"}


@pytest.mark.parametrize("tasks", [1, 2])
def test_tasks_read_the_bytes_of_a_scan_with_the_filter(
    spark: Any, server: ObjectServer, tasks: int
) -> None:
    """The ranges of the pages, by the server's log. Each task reads the footers of its files, and none of others."""
    condition = f"id between {ROWS - 20} and {ROWS + 20} and seed <> 1"
    scanned = ps.scan(SOURCE, storage_options=s3_options(server)).filter(condition)
    wanted = scanned.explain(analyze=True).to_dict()
    reads(server)
    frame = load(
        spark, SOURCE, storage_options=s3_options(server), local=False, native=False, tasks=tasks
    ).where(condition)
    assert frame.rdd.getNumPartitions() == tasks
    server.log.reset()
    assert len(frame.collect()) == 2 * 41
    found = reads(server)
    assert {one.path for one in found} == {"bucket/t/0.parquet", "bucket/t/2.parquet"}
    told = report(frame).to_dict()
    for unit in ("files", "row_groups", "pages", "rows"):
        assert told[unit]["read"] == wanted[unit]["read"], unit
    assert told["bytes"]["data"] == wanted["bytes"]["data"] > 0
    assert all(n <= tasks for n in Counter(of_footers(server, found)).values())
    sent, whole = sum(one.sent for one in found), sum(len(content(seed)) for seed in (0, 2))
    assert told["bytes"]["data"] <= sent < whole
