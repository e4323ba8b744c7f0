"""What `attach` holds while it works: some pages, and Bloom filters of the row groups under way."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.distress import measured

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the peak of a process is read from /proc"
)
ROWS = 200_000  # of a part
PARTS = 36
DECODED = PARTS * ROWS * (8 + 8 + 8 + 24)  # bytes of the whole file
MOST = 96 << 20  # bytes that attach may take


def written(path: Path, groups: int, parts: int = 1) -> Path:
    """The same rows over and over: their dictionaries and codes are small, and have to be decoded all the same."""
    numbers = np.arange(ROWS)
    texts = pa.array([f"{i:020d}" for i in range(1_000)]).take(pa.array(numbers % 1_000))
    table = pa.table(
        {"id": numbers, "few": numbers % 777, "real": numbers % 555 / 7, "text": texts}
    )
    table = pa.concat_tables([table] * parts)
    with pq.ParquetWriter(
        path, table.schema, use_dictionary=["few", "real", "text"], compression="none"
    ) as writer:
        for _ in range(groups):
            writer.write_table(table, row_group_size=table.num_rows)
    return path


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    assert DECODED > 3 * MOST
    taken = {}
    for name, groups, parts in (("few", 9, 1), ("many", PARTS, 1), ("one", 1, PARTS)):
        path = written(tmp_path / f"{name}.parquet", groups, parts)
        found = measured("support.attach_peak", str(path), str(tmp_path / "out.parquet"))
        assert found["groups"] == groups
        taken[name] = found["peak"] - found["before"]
        path.unlink()
    assert max(taken.values()) < MOST, taken
    assert taken["many"] < taken["few"] + (8 << 20), taken
