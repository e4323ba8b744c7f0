"""Measures the memory of Spark's Python workers while they read one large row group.

    python proofs/spark_memory.py [ROWS]        12 million rows unless given: about 1 GB decoded; a minute or two

A thread reads /proc every few milliseconds: of each worker the greatest resident memory, and of that what is its own. The base is that of
a worker that has read a small file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.spark import load
from spark_many import session

ROWS, TEXTS, MB = 12_000_000, 1_000, 1e6


def write(path: Path, num_rows: int, index: bool) -> int:
    """A file of one row group. Returns the bytes of its decoded values."""
    rng = np.random.default_rng(1)
    texts = pa.array(
        [f"a text of some sixty bytes, as there are in tables {i:09}" for i in range(TEXTS)]
    )
    table = pa.table(
        {
            "id": np.arange(num_rows),
            "x": rng.random(num_rows),
            "text": texts.take(pa.array(rng.integers(0, TEXTS, num_rows))),
        }
    )
    pq.write_table(
        table, path, row_group_size=num_rows, write_page_index=index, use_dictionary=["text"]
    )
    return int(table.nbytes)


class Watch:
    """The greatest memory of this process's Python workers, in bytes: resident, and of that its own."""

    def __init__(self) -> None:
        self.resident = self.own = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.005):
            for worker in workers():
                try:
                    lines = Path(f"/proc/{worker}/status").read_text().splitlines()
                except OSError:  # it has ended
                    continue
                said = dict(line.split(":", 1) for line in lines if ":" in line)
                resident, own = (int(said[key].split()[0]) << 10 for key in ("VmRSS", "RssAnon"))
                if resident > self.resident:
                    self.resident, self.own = resident, own


def workers() -> list[int]:
    """The Python workers below this process: forks of Spark's daemons."""
    parents: dict[int, int] = {}
    daemons = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            parents[int(name)] = int(
                Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]
            )
            if b"pyspark.daemon" in Path(f"/proc/{name}/cmdline").read_bytes():
                daemons.add(int(name))
        except OSError:
            continue

    def is_ours(process: int) -> bool:
        while process > 1:
            process = parents.get(process, 0)
            if process == os.getpid():
                return True
        return False

    return [one for one in daemons if parents[one] in daemons and is_ours(one)]


def watched(spark: Any, path: Path) -> tuple[int, int, float]:
    """What a worker holds while one task reads a file, and the seconds."""
    frame = load(spark, str(path), tasks=1, local=False, native=False)
    began = time.monotonic()
    with Watch() as watch:
        frame.selectExpr("count(*)", "bit_xor(xxhash64(*))").collect()
    return watch.resident, watch.own, time.monotonic() - began


def main() -> None:
    """Measure, and print."""
    num_rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as temporary:
        spark = session()
        for index in (True, False):
            small, large = (
                Path(temporary, f"{kind}-{index}.parquet") for kind in ("small", "large")
            )
            write(small, 1_000, index)
            size = write(large, num_rows, index)
            watched(spark, small)
            base = watched(spark, small)
            most = watched(spark, large)
            print(
                f"{'with' if index else 'without'} a page index: {size / MB:,.0f} MB decoded, {large.stat().st_size / MB:,.0f} MB in the file; "
                f"before {base[0] / MB:.0f} MB resident ({base[1] / MB:.0f} own), at most {most[0] / MB:.0f} ({most[1] / MB:.0f} own), {most[2]:.0f} s",
                flush=True,
            )
            large.unlink()


if __name__ == "__main__":
    main()
