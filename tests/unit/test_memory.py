"""Buffers that threads pass on: kept while scans follow one another, given back after, and never two people's."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek._core import memory
from pageseek._core.memory import Block

import pageseek as ps
from pageseek import memory as warm

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="buffers are passed on where threads have memory of their own"
)


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(5)
    n = 400_000
    table = pa.table({f"c{i}": rng.integers(0, 1 << 60, n) for i in range(4)})
    table = table.append_column("s", pa.array([f"text {i}" for i in range(n)]))
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=n // 4, write_page_index=True)
    return str(tmp_path / "f.parquet")


def no_longer_warm() -> None:
    stop = time.monotonic() + 30
    while warm._keeper is not None and time.monotonic() < stop:
        time.sleep(0.05)
    assert warm._keeper is None


def test_kept_while_scans_follow_one_another_and_given_back(path):
    ps.read_table(path, threads=2)  # and let go of
    assert memory.trim(3600) > 1 << 20
    no_longer_warm()
    assert memory.trim(3600) == 0


def test_one_thread_keeps_nothing(path):
    no_longer_warm()
    ps.read_table(path, threads=1)
    assert memory.trim(3600) == 0
    assert warm._keeper is None


def test_what_is_held_is_never_handed_out_again(path):
    """Tables of many scans, some held, some let go of, from several threads."""
    right = pq.read_table(path)
    held: list[pa.Table] = []
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(12):
            columns = [str(c) for c in rng.permutation(right.column_names)[:3]]
            table = ps.read_table(path, columns=columns, threads=2)
            if rng.random() < 0.5:
                held.append(table)
            if not table.equals(right.select(columns)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(table.equals(right.select(table.column_names)) for table in held)


def test_a_block_is_zero_or_more_bytes():
    for size in (0, 1, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1):
        block = Block(size)
        assert len(memoryview(block)) == size
        memoryview(block)[:] = bytes(size)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_process_begins_with_nothing_kept(path):
    ps.read_table(path, threads=2)
    assert memory.trim(3600)
    child = os.fork()
    if child == 0:
        try:
            ok = memory.trim(3600) == 0 and warm._keeper is None
            ok = ok and ps.read_table(path, threads=2).num_rows == 400_000
            ok = ok and warm._keeper is not None
        except BaseException:
            ok = False
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
