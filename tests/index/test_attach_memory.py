"""The memory of `attach`: pages, counted in bytes, and Bloom filters of the row groups in progress."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.index.page_budget import IN_FLIGHT, SMALL, Room
from support.failing_stores import measured
from support.opened import open_metadata

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the peak of a process is read from /proc"
)
ROWS = 200_000  # of a part
PARTS = 36
DECODED = PARTS * ROWS * (8 + 8 + 8 + 24)  # bytes of the whole file
MOST = 96 << 20  # bytes that attach may take
HOW = json.dumps({"bloom": ["id"], "distinct": ["text"]})


def written(path: Path, groups: int, parts: int = 1) -> Path:
    """The same rows repeatedly: dictionaries and codes are small, but have to be decoded."""
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
        found = measured("support.attach_peak", str(path), str(tmp_path / "out.parquet"), HOW)
        assert found["groups"] == groups
        taken[name] = found["peak"] - found["before"]
        path.unlink()
    assert max(taken.values()) < MOST, taken
    assert taken["many"] < taken["few"] + (8 << 20), taken


def test_lists_of_values_do_not_grow_with_row_groups(tmp_path: Path) -> None:
    """Each row group has other values, or the same: of 120 row groups they are 48 MB a column."""
    path, n = tmp_path / "a.parquet", 50_000
    schema = pa.schema({"same": pa.int64(), "apart": pa.int64()})
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for group in range(120):
            columns = np.arange(n), np.arange(group * n, (group + 1) * n)
            writer.write_table(pa.table(list(columns), schema=schema), row_group_size=n)
    how = json.dumps({"distinct": ["same", "apart"], "page_index": False})
    found = measured("support.attach_peak", str(path), str(tmp_path / "b.parquet"), how)
    assert found["groups"] == 120
    assert found["peak"] - found["before"] < 60 << 20, found


PAGE = 64 << 20  # bytes


@pytest.mark.parametrize("what", ["numbers", "texts", "codes"])
def test_pages_of_any_size_are_counted_in_bytes(tmp_path: Path, what: str) -> None:
    """Two of these pages do not fit side by side; all of their values are different, or few."""
    n = PAGE // {"numbers": 8, "texts": 100, "codes": 200}[what]
    numbers = pa.array(np.arange(n))
    column = {
        "numbers": lambda: numbers,
        "texts": lambda: pa.array([f"{i:0100d}" for i in range(n)]),
        "codes": lambda: pa.array([f"{i:0200d}" for i in range(300)]).take(pa.array(np.arange(n) % 300)),
    }[what]()  # fmt: skip
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table = pa.table({"x": column})
    with pq.ParquetWriter(
        path, table.schema, use_dictionary=what == "codes", compression="snappy",
        data_page_size=1 << 30, write_batch_size=1 << 30, max_rows_per_page=1 << 30,
    ) as writer:  # fmt: skip
        for _ in range(3):
            writer.write_table(table, row_group_size=n)
    how = json.dumps({"bloom": ["x"], "distinct": ["x"]})
    found = measured("support.attach_peak", str(path), str(out), how)
    assert found["groups"] == 3
    with open_metadata(out) as file:
        offsets = file.offset_index(0, "x")
        assert offsets is not None and offsets.num_pages == 1
    most = IN_FLIGHT + MOST
    assert found["peak"] - found["before"] < most, found
    found = measured("support.attach_peak", str(out), "-")
    assert found["peak"] - found["before"] < most, found


def test_a_room_takes_pages_as_they_fit() -> None:
    """The budget is never exceeded, except by one page alone; all pages are admitted, in order of arrival."""
    most = 10 * SMALL
    room, lock = Room(most), threading.Lock()
    inside: dict[int, int] = {}
    seen: list[tuple[int, int]] = []  # pages, and their bytes
    came: list[int] = []

    def work(i: int, size: int) -> None:
        with room.page(size) as takes:
            with lock:
                inside[i] = size
                came.append(i)
                seen.append((len(inside), sum(inside.values())))
            time.sleep(0.002)
            with lock:
                inside[i] = size // 2 if size // 2 >= SMALL else 0
            takes(size // 2)
            time.sleep(0.002)
            with lock:
                del inside[i]

    sizes = [(1 + i * 7 % 13) * SMALL for i in range(40)]
    threads = []
    for i, size in enumerate(sizes):
        threads.append(threading.Thread(target=work, args=(i, size)))
        threads[-1].start()
        time.sleep(0.0005)
    for thread in threads:
        thread.join(60)
    assert sorted(came) == list(range(40))
    assert all(size <= most or n == 1 for n, size in seen)
    assert max(n for n, _ in seen) > 1 and max(size for _, size in seen) > most
    with room.page(most):  # nothing is left inside
        pass
    room.keep(most)  # what stays does not keep a page out for ever
    with pytest.raises(KeyError), room.page(most):
        raise KeyError
    with room.page(most), room.page(SMALL - 1):  # small ones come in at once
        pass
