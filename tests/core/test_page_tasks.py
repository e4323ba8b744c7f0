"""What page tasks make is freed where memory ends before all of it was taken."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.failing_stores import measured

ROWS = 1 << 19


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory of a process")
def test_output_is_freed_where_memory_ends(tmp_path: Path) -> None:
    pytest.importorskip("_testcapi", reason="it makes allocations fail")
    column = pa.array(np.arange(ROWS), mask=np.arange(ROWS) % 7 == 0)
    table = pa.table({"a": column, "b": column})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, compression="none")
    said = measured("support.failed_allocations", str(tmp_path / "a.parquet"))
    assert said["failed"] > 5
    assert said["grown"] < 4 * column.nbytes
