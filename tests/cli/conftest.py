"""The file that the commands of these tests read."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command import ROWS as N


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = pa.table(
        {
            "id": range(N),
            "scattered": [i * 7919 % N for i in range(N)],
            "name": [None if i % 100 == 0 else f"n{i:05d}" for i in range(N)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i // 100) for i in range(N)],
            "odd name": [i % 2 == 1 for i in range(N)],
        }
    )
    made = tmp_path_factory.mktemp("cli") / "made.parquet"
    pq.write_table(
        table, made, write_page_index=True, row_group_size=N // 2, data_page_size=1_000, write_batch_size=100,
        use_dictionary=False,
    )  # fmt: skip
    return str(made)
