"""Sessions in processes of their own: one process has one Spark context."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
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
        table = pa.table(
            {
                "k": k,
                "s": [f"row {n}" for n in k],
                "t": pa.array(k * 10**6, pa.timestamp("us", "UTC")),
                "d": pa.array([Decimal(int(n)).scaleb(-1) for n in k], pa.decimal128(9, 2)),
            }
        )
        pq.write_table(
            table,
            directory / f"{i}.parquet",
            row_group_size=ROWS // 2,
            write_page_index=True,
            data_page_size=4096,
        )


def run_job(kind: str, url: str, directory: Path) -> dict[str, Any]:
    """The answers of one session."""
    write_files(directory)
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("SPARK_REMOTE", "SPARK_CONNECT"))
    }
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
    assert found["point"] == [[4711, "row 4711"]]
    assert found["none"] == 0
    assert found["joins"] == ["SortMergeJoin", "SortMergeJoin", "BroadcastHashJoin"]
    sevenths = -(-FILES * ROWS // 7)
    assert found["lookups"] == [True] * 4 + [sevenths] * 4 + [3, 1]
    assert found["meanings"] == [1, 1, 3, 1, 1]
    assert found["old"] == [True, True]
    assert found["parallelism"] >= 2
    assert sorted(map(sorted, (one[1] for one in found["figures"]))) == [[6999, 7000]] * 2
    assert [one[0] for one in found["figures"]] == [1, 7000]
    assert found["range"] == 200
    rows = FILES * ROWS
    assert found["written"] == [rows, 2, 0, rows, ["attached"] * 2, 1]
    assert found["optimized"] == [rows, 2, rows, 1]
    assert sum(rows for _, rows in found["executors"]) == FILES * ROWS
    assert "FileChangedError" in found["changed"]
    assert str(directory / "0.parquet") in found["changed"]


@pytest.fixture
def checked_job(spark_ready: None, tmp_path: Path) -> Callable[[str, str], dict[str, Any]]:
    """Runs the job in a session of the given kind and checks what all sessions must agree on."""

    def job(kind: str, url: str) -> dict[str, Any]:
        found = run_job(kind, url, tmp_path)
        check(found, tmp_path)
        return found

    return job


@pytest.fixture
def conf(spark: Any) -> Iterator[Any]:
    """Settings of the session, put back at the end."""
    before: dict[str, str] = {}

    def put(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key))
        spark.conf.set(key, value)

    yield put
    for key, value in before.items():
        spark.conf.set(key, value)
