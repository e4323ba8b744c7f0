"""What page tasks make is freed where memory ends before all of it was taken."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek._core.page_tasks import PageWork

import pageseek as ps
from pageseek.scanning.one_file import lane

ROWS = 1 << 19
ALLOCATIONS = 40  # more than taking two columns makes


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory of a process")
def test_output_is_freed_where_memory_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testcapi = pytest.importorskip("_testcapi", reason="it makes allocations fail")
    column = pa.array(np.arange(ROWS), mask=np.arange(ROWS) % 7 == 0)
    wanted = pa.table({"a": column, "b": column})
    pq.write_table(wanted, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    failed: set[int] = set()
    at = -1

    def taken(tasks: list[Any], threads: int = 1) -> Any:
        work = PageWork(tasks)
        if at < 0:
            return work.results()
        testcapi.set_nomemory(at, at + 1)
        try:
            return work.results()
        except MemoryError:
            failed.add(at)
            raise
        finally:
            testcapi.remove_mem_hooks()

    monkeypatch.setattr(lane, "read_pages", taken)
    before = resident()
    for at in [-1, *range(ALLOCATIONS)]:
        with suppress(MemoryError, ps.PageseekError):
            found = ps.read_table(tmp_path / "a.parquet", threads=1)
            assert found.equals(wanted)
            del found
        if at < 0:
            before = resident()
    assert len(failed) > 5
    assert resident() - before < 4 * column.nbytes
