"""Buffers that threads reuse: kept while scans follow one another, freed afterwards, and never used by two scans at a time."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import memory
from pageseek._core.memory import Block
from pageseek.base import memory as warm
from support.concurrency import in_threads

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


@pytest.fixture(autouse=True)
def as_at_first():
    yield
    memory.reclaimable(warm._limit())
    memory.rest(warm.REST)


def test_kept_while_scans_follow_one_another_then_for_the_system_to_take(path):
    ps.read_table(path, threads=2)  # and let go of
    kept, reclaimable = memory.kept()
    assert kept - reclaimable > 1 << 20
    no_longer_warm()
    assert memory.kept() == (kept, kept)


def test_a_single_row_group_is_enough(tmp_path):
    """Of it, too, one thread finds its memory again."""
    path = str(tmp_path / "f.parquet")
    pq.write_table(
        pa.table({"c": np.arange(1 << 21)}), path, use_dictionary=False, row_group_size=1 << 21
    )
    no_longer_warm()
    memory.trim(0)
    ps.read_table(path, threads=1)
    assert memory.kept()[1] >= 8 << 21


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="it is not known how many addresses are in use"
)
def test_what_is_kept_makes_room_where_addresses_are_limited():
    code = """
import resource
from pageseek._core import memory
import pageseek.base.memory
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), resource.RLIM_INFINITY))
memory.Block(300 << 20)
assert memory.kept()[1] >= 300 << 20
memory.Block(350 << 20)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_one_thread_keeps_little(path):
    no_longer_warm()
    for _ in range(3):
        ps.read_table(path, threads=1)
        kept, reclaimable = memory.kept()
        assert 0 < kept - reclaimable <= warm.REST
        assert reclaimable > warm.REST
    assert warm._keeper is None


def test_what_is_reclaimable_is_used_again_and_bounded(path):
    """Scan after scan of one thread takes the same memory, and no more of it."""
    no_longer_warm()
    gc.collect()  # what earlier tests have left would be freed meanwhile, and kept
    memory.reclaimable(0)
    memory.reclaimable(warm._limit())
    ps.read_table(path, threads=1)
    kept = memory.kept()
    for _ in range(5):
        table = ps.read_table(path, threads=1)
        assert sum(memory.kept()) < sum(kept) - table.nbytes // 2
        del table
        assert memory.kept() == kept
    memory.reclaimable(0)
    assert memory.kept()[1] == 0


def test_a_limit_of_addresses_is_one_of_memory(path):
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "from pageseek.base import memory; assert memory._limit() <= (6 << 30) // memory.PART"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.timed
def test_a_lookup_has_its_memory_at_hand(tmp_path):
    """Also where the allocator gave back to the system all that was free."""
    import ctypes
    import resource

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        pytest.skip("the allocator of this system cannot be asked to give back")
    rng = np.random.default_rng(8)
    table = pa.table({f"c{i}": np.sort(rng.integers(0, 1 << 60, 60_000)) for i in range(6)})
    path = tmp_path / "f.parquet"
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_page_index=True)
    row = [("c0", "=", table["c0"][40_000].as_py())]

    def faults() -> int:
        found = []
        for _ in range(5):
            trim(0)
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
            assert ps.read_table(str(path), filters=row, threads=1).num_rows == 1
            found.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)
        return sorted(found)[2]

    no_longer_warm()
    try:
        memory.rest(0)
        memory.reclaimable(0)
        memory.trim(0)
        anew = faults()
    finally:
        memory.rest(warm.REST)
    ps.read_table(str(path), filters=row, threads=1)
    at_hand = faults()
    assert anew > 50
    assert at_hand < anew / 2, (at_hand, anew)


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

    in_threads(4, work)
    assert not wrong
    assert all(table.equals(right.select(table.column_names)) for table in held)


def bits_behind(array: pa.Array) -> int:
    """The bits after the last slot, in the last bytes of all bitmaps."""
    if isinstance(array, pa.StructArray):
        children = [array.field(i) for i in range(array.type.num_fields)]
    else:
        children = [array.values] if isinstance(array, pa.ListArray) else []
    bitmaps = array.buffers()[: 2 if array.type == pa.bool_() else 1]
    used = len(array) + array.offset
    found = 0
    for bitmap in bitmaps:
        if bitmap is not None:
            found += int(
                np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")[used:].sum()
            )
    return found + sum(bits_behind(child) for child in children)


@pytest.mark.parametrize("n", [5, 1001, 70_001, 600_003])
def test_no_bit_of_before_behind_the_last_row(tmp_path, n):
    rng = np.random.default_rng(n)
    numbers = pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.3)
    flags = pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.1)
    table = pa.table({
        "number": numbers,
        "text": pa.array([None if i % 7 == 0 else str(i) for i in range(n)]),
        "flag": flags,
        "whole": pa.array(rng.random(n) < 0.5),
        "struct": pa.StructArray.from_arrays([numbers, flags], ["a", "b"], mask=pa.array(rng.random(n) < 0.2)),
        "list": pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32), flags),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=n // 3 + 1)
    for filters in (None, [("number", "<", 7)]):
        sizes = [64 << k for k in range(15)] + [125056]
        full = [Block(size) for size in sizes for _ in range(8)]
        for block in full:
            memoryview(block)[:] = b"\xff" * len(block)
        del full, block  # handed out again
        read = ps.read_table(tmp_path / "f.parquet", filters=filters, threads=1)
        assert (
            read.num_rows
            and sum(bits_behind(c) for column in read.columns for c in column.chunks) == 0
        )
        read.validate(full=True)


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
