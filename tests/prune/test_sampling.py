"""A mechanism that proves nothing for a sample of row groups is not run on the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.prune import pruner_stage, sampling

GROUPS, SIZE = 100, 600


def written(path: Path, names: list[str]) -> str:
    table = pa.table({"name": names, "n": np.random.default_rng(1).random(len(names))})
    pq.write_table(table, path, row_group_size=SIZE, write_statistics=["n"])
    return str(path)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruner_stage, "DOUBT", 0)


def test_dictionaries_that_have_it_all_are_not_all_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [f"name {i % 40}" for i in range(GROUPS * SIZE)])
    scan = ps.scan(path, columns=["n"], filter=ps.col("name") == "name 7")
    few = scan.explain().to_dict()
    assert few["row_groups"]["read"] == GROUPS
    one = ps.scan(path, columns=["n"], filter=ps.col("name") == "name 7", prune=False)
    assert few["bytes"]["index"] > 0
    per_group = few["bytes"]["index"] / GROUPS
    assert per_group < 60  # of a dictionary of about 200 bytes
    assert scan.to_table().equals(one.to_table())


def test_dictionaries_that_tell_are_all_read(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.parquet", [f"name {i // SIZE:03d} {i % 40}" for i in range(GROUPS * SIZE)]
    )
    scan = ps.scan(path, columns=["n"], filter=ps.col("name") == "name 042 7")
    report = scan.explain(analyze=True).to_dict()
    assert report["row_groups"]["read"] == 1
    assert report["row_groups"]["pruned_by"] == {"dictionary": GROUPS - 1}
    assert report["rows"]["out"] == SIZE // 40


def test_bloom_filters_are_all_asked(tmp_path: Path) -> None:
    n = GROUPS * SIZE
    # every eighth row group has the value, and all have it within their bounds
    values = [i % 1000 * 2 for i in range(n)]
    for group in range(0, GROUPS, 8):
        values[group * SIZE + 5] = 777
    path = str(tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"v": values}), path, row_group_size=SIZE, use_dictionary=False,
        bloom_filter_options={"v": {"ndv": SIZE, "fpp": 0.001}},
    )  # fmt: skip
    report = ps.scan(path, filter=ps.col("v") == 777).explain(analyze=True).to_dict()
    assert report["row_groups"]["read"] <= GROUPS // 8 + 3
    assert report["rows"]["out"] == len(range(0, GROUPS, 8))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 100, 1001])
def test_every_row_group_has_its_turn(n: int) -> None:
    turns = list(sampling.probed(list(range(n))))
    assert sorted(i for some in turns for i in some) == list(range(n))
    if len(turns) > 1:
        assert len(turns[0]) == sampling.PROBE
        assert turns[0] != sorted(turns[0])
