"""What a query does not load, since it would wait for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PROGRAM = """
import sys
import pageseek as ps
for condition in (ps.col("x") == 3, ps.col("x").isin([1, 5, 5]), ps.col("t") == "a"):
    ps.read_table(sys.argv[1], filter=condition)
    ps.read_table(sys.argv[1] + "/00.parquet", filter=condition)
print(*sorted({"numpy.ma", "pandas", "pyarrow.dataset", "pyarrow.parquet"} & set(sys.modules)))
"""


def test_a_query_of_many_files_loads_no_module_that_it_does_not_need(tmp_path: Path) -> None:
    for i in range(40):
        pq.write_table(
            pa.table({"x": [i, i + 1, 5], "t": ["a", "b", "c"]}), tmp_path / f"{i:02}.parquet"
        )
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
