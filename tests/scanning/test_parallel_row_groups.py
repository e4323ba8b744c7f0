"""Row groups and leaves on several threads: the same rows in the same order, and a prompt end when the caller stops."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.predicate.expression import And
from pageseek.scanning.leaves import page_batch
from pageseek.scanning.one_file import lane
from pageseek.scanning.plans import tables
from pageseek.storage.local import LocalStore
from support.concurrency import InFlight, slow_local_reads

pytestmark = pytest.mark.usefixtures("scans")

GROUPS, ROWS = 12, 5_000
CONDITIONS = [
    None,
    ps.col("v") < 100_000,
    (ps.col("v") < 500_000) & (ps.col("text") > "5"),
    ps.col("id") == 17_000,
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    random = np.random.default_rng(5)
    n = GROUPS * ROWS
    table = pa.table(
        {
            "id": np.arange(n),
            "v": random.integers(0, 1_000_000, n),
            "text": np.char.mod("%09d", random.integers(0, 1 << 30, n)),
            "tags": pa.array([[f"t{i % 13}"] * (i % 3) for i in range(n)]),
        }
    )
    made = tmp_path_factory.mktemp("beside") / "a.parquet"
    pq.write_table(
        table, made, row_group_size=ROWS, max_rows_per_page=500, write_page_index=True,
        compression="zstd",
    )  # fmt: skip
    return str(made)


@pytest.fixture(autouse=True, params=["threads", "waves"])
def always(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the work is, it is shared."""
    monkeypatch.setattr(tables, "FEW_VALUES", 0)
    monkeypatch.setattr(tables, "GROUP_VALUES", 0)
    if request.param == "threads":
        monkeypatch.setattr(tables, "WAVE_ROWS", 0)
    monkeypatch.setattr(lane, "WORTH_A_CORE", 1)


def settled(check: Callable[[], bool], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not check() and time.monotonic() < until:
        time.sleep(0.005)
    return check()


def slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> InFlight:
    """Local reads that take `seconds`, on a store of a known bandwidth; counts the reads."""
    counts = slow_local_reads(monkeypatch, seconds)
    monkeypatch.setattr(LocalStore, "bandwidth", 1e6)
    ps.clear_cache()
    return counts


@pytest.mark.covering(2)
@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
@pytest.mark.parametrize("files", [1, 3])
def test_rows_are_those_of_one_thread(path: str, condition: Any, threads: int, files: int) -> None:
    def read(**how: Any) -> pa.Table:
        return ps.read_table([path] * files, filter=condition, **how)

    alone = read(threads=1)
    assert read(threads=threads) == alone
    assert read(threads=threads, max_ahead_bytes=0) == alone
    assert read(threads=threads, limit=777) == alone.slice(0, 777)
    scan = ps.scan([path] * files, filter=condition, threads=threads)
    assert pa.Table.from_batches(scan.to_batches(), alone.schema) == alone
    numbered = scan.with_row_number().to_table()
    assert numbered["row"].to_pylist() == [
        i + j * GROUPS * ROWS
        for j in range(files)
        for i in alone["id"].to_pylist()[: alone.num_rows // files]
    ]
    parts = scan.plan().split(2)
    assert sum(b.num_rows for part in parts for b in part.execute()) == alone.num_rows


@pytest.mark.timed
# of two conditions the order is learned from row groups that are done: side by side, these are others
@pytest.mark.timed
@pytest.mark.parametrize("condition", [c for c in CONDITIONS if not isinstance(c, And)], ids=str)
def test_counts_are_those_of_one_thread(path: str, condition: Any) -> None:
    def counts(threads: int) -> dict[str, Any]:
        ps.clear_cache()
        scan = ps.scan([path, path], filter=condition, threads=threads)
        found: dict[str, Any] = scan.explain(analyze=True).to_dict()
        return {k: v for k, v in found.items() if k not in ("seconds", "waves", "leaves")} | {
            "leaves": dict(sorted(found["leaves"].items()))
        }

    assert counts(4) == counts(1)


@pytest.mark.timed
def test_an_answer_that_nobody_waits_for_is_not_read(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = slow(monkeypatch, 0.02)
    before = threading.active_count()
    batches = ps.scan([path] * 20, threads=2).to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert settled(lambda: counts.now == 0)
    done = counts.calls
    time.sleep(0.1)
    assert counts.calls == done
    assert settled(lambda: threading.active_count() <= before)


def test_waits_go_on_side_by_side_as_far_as_memory_allows(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = slow(monkeypatch, 0.02)
    ps.read_table(path, threads=1)
    assert counts.most > 3
    counts.most = 0
    ps.read_table(path, threads=1, max_ahead_bytes=0)
    assert counts.most == 1


@pytest.mark.parametrize("condition", CONDITIONS[:3], ids=str)
def test_bytes_that_are_fetched_ahead_or_together_count(
    path: str, monkeypatch: pytest.MonkeyPatch, condition: Any
) -> None:
    monkeypatch.setattr(page_batch, "LEAST_RESERVED", 1)
    wanted = ps.read_table(path, filter=condition, threads=1)
    counts = slow(monkeypatch, 0.02)
    assert ps.read_table(path, filter=condition, threads=1).equals(wanted)
    assert counts.most > 3
    counts.most = 0
    assert ps.read_table(path, filter=condition, threads=1, max_ahead_bytes=0).equals(wanted)
    assert counts.most == 1


def test_an_error_comes_after_the_rows_before_it(path: str, tmp_path: Path) -> None:
    data = bytearray(Path(path).read_bytes())
    chunk = pq.read_metadata(path).row_group(7).column(2)
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    data[at : at + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(data)
    for threads in (1, 4):
        batches, seen = ps.scan(str(damaged), threads=threads).to_batches(), []
        with pytest.raises(ps.CorruptFileError, match="column 'text', row group 7"):
            seen.extend(batch.num_rows for batch in batches)
        assert sum(seen) == 7 * ROWS


INTERRUPTED = """
import sys, threading, time
import pageseek as ps
from pageseek.storage.local import LocalStore

read = LocalStore.read
def slowly(self, ranges):
    time.sleep(0.2)
    return read(self, ranges)
LocalStore.read, LocalStore.latency, LocalStore.bandwidth = slowly, 0.2, 1.0
LocalStore.read_later = slowly
print("begun", flush=True)
try:
    ps.read_table([sys.argv[1]] * 50, threads=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for another process")
def test_ctrl_c_ends_it(path: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=10)
        assert said == "interrupted\n"
        assert process.returncode == 0


def _count(path: str) -> int:
    return ps.read_table(path, filter=ps.col("v") < 100_000, threads=4).num_rows


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
def test_a_forked_child_has_threads_of_its_own(path: str) -> None:
    batches = ps.scan(path, threads=4).to_batches()
    next(batches)  # threads are under way
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_count, [path] * 4).get(timeout=60)
    assert found == [_count(path)] * 4
    assert sum(batch.num_rows for batch in batches) > 0


@pytest.mark.parametrize(
    "wrong", [{"threads": 0}, {"threads": -1}, {"threads": 1.5}, {"max_ahead_bytes": -1}]
)
def test_numbers_that_make_no_sense(path: str, wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        ps.scan(path, **wrong)
