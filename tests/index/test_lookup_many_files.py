"""Lookup indexes in many files, and together with the other indexes: equal rows, few pages."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps

FILES, ROWS = 12, 4_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(4)
    for i in range(FILES):
        keys = rng.integers(0, 30_000, ROWS)
        table = pa.table({"key": keys, "text": [f"t{k % 999}" for k in keys], "at": np.arange(ROWS) + i * ROWS})  # fmt: skip
        path = made / f"{i:02}.parquet"
        pq.write_table(table, path, row_group_size=1_500, data_page_size=1_000)
        if i % 3:  # some have none
            ps.index.attach(path, lookup=["key", "text"], bloom=["key"], in_place=True)
    return made


@pytest.mark.parametrize("threads", [1, 2])
def test_a_folder(folder: Path, threads: int) -> None:
    whole = pq.read_table(folder)
    for key in range(0, 30_000, 631):
        for prune in (True, ["lookup"]):
            scan = ps.scan(str(folder), filter=ps.col("key") == key, threads=threads, prune=prune)
            wanted = whole.filter(pc.equal(whole["key"], key)).sort_by("at")
            assert scan.to_table().sort_by("at").equals(wanted)
            assert scan.count_rows() == wanted.num_rows
            plan = pickle.loads(pickle.dumps(scan.plan()))
            assert sum(batch.num_rows for batch in plan.execute()) == wanted.num_rows
    both = ps.scan(str(folder), filter=(ps.col("text") == "t5") & (ps.col("key") > 20_000))
    wanted = whole.filter(pc.and_(pc.equal(whole["text"], "t5"), pc.greater(whole["key"], 20_000)))
    assert both.count_rows() == wanted.num_rows > 0
    either = ps.scan(str(folder), filter=(ps.col("text") == "t5") | (ps.col("key") == 77))
    wanted = whole.filter(pc.or_(pc.equal(whole["text"], "t5"), pc.equal(whole["key"], 77)))
    assert either.count_rows() == wanted.num_rows > 0
    unlike = ps.scan(str(folder), filter=~(ps.col("text") == "t5"))
    assert unlike.count_rows() == pc.sum(pc.not_equal(whole["text"], "t5")).as_py()


def test_pages_of_other_rows_are_not_read(folder: Path) -> None:
    path = folder / "01.parquet"
    table = pq.read_table(path)
    key = table["key"][1234].as_py()
    rows = np.flatnonzero(table["key"].to_numpy() == key)
    report = ps.scan(path, filter=ps.col("key") == key, prune=["lookup"]).explain(analyze=True)
    assert report.to_dict()["pages"]["read"] <= 3 * 2 * len(rows)
    assert report.rows.pruned_by["lookup"] >= ROWS - len(rows) - 3
