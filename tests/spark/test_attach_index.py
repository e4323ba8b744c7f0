"""`attach_index`: all files of a source get what is asked for, and a second run builds only what is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.errors import UnsupportedError
from pageseek.spark import attach_index

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(6):
        k = range(i * 1000, i * 1000 + 1000 + 100 * i)
        table = pa.table({"k": k, "s": [f"s {n}" for n in k], "c": [n % 3 for n in k]})
        (tmp_path / f"p={i % 2}").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / f"p={i % 2}" / f"{i}.parquet", data_page_size=1000)
    return tmp_path


def kinds(folder: Path) -> set[tuple[str, ...]]:
    return {
        tuple(sorted({e.kind for e in ps.index.list(str(path))}))
        for path in folder.rglob("*.parquet")
    }


def test_every_file_gets_its_indexes_and_a_second_run_leaves_them(spark: Any, folder: Path):
    before = ps.read_table(folder).sort_by("k")
    made = attach_index(spark, folder, bloom=["s"], distinct=["c"], tasks=3)
    assert made["status"].to_pylist() == ["attached"] * 6
    assert made["file"].to_pylist() == sorted(map(str, folder.rglob("*.parquet")))
    assert kinds(folder) == {("bloom", "distinct", "page_index")}
    assert all("bloom(s)" in text for text in made["added"].to_pylist())
    sizes = [os.path.getsize(path) for path in made["file"].to_pylist()]
    assert made["bytes_after"].to_pylist() == sizes
    assert ps.read_table(folder).sort_by("k").equals(before)
    assert spark.read.parquet(str(folder)).where("k = 1500").count() == before[
        "k"
    ].to_pylist().count(1500)
    again = attach_index(spark, folder, bloom=["s"], distinct=["c", "k"], verify=True)
    assert again["status"].to_pylist() == ["attached"] * 6
    assert again["added"].to_pylist() == ["distinct(k)"] * 6
    last = attach_index(spark, folder, bloom=["s"], distinct=["c", "k"])
    assert last["status"].to_pylist() == ["present"] * 6


def test_a_file_that_fails_is_named_and_the_others_go_on(spark: Any, folder: Path):
    bad = folder / "p=0" / "2.parquet"
    data = bytearray(bad.read_bytes())
    data[4:2000] = bytes(1996)
    bad.write_bytes(data)
    with pytest.warns(UserWarning, match=r"1 of 6 files.*2\.parquet"):
        made = attach_index(spark, folder, bloom=["s"])
    assert made.group_by("status").aggregate([("file", "count")]).sort_by("status").to_pydict() == {
        "status": ["attached", "failed"], "file_count": [5, 1],
    }  # fmt: skip
    assert bad.read_bytes() == data
    failed = made.to_pylist()[[*made["status"].to_pylist()].index("failed")]
    assert failed["file"] == str(bad) and str(bad) in failed["error"]


def test_tables_and_bytes_are_refused(spark: Any, tmp_path: Path):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path), pa.table({"a": [1]}))
    with pytest.raises(UnsupportedError, match=r"table=\.\.\."):
        attach_index(spark, tmp_path)
    with pytest.raises(UnsupportedError, match="memory"):
        attach_index(spark, b"PAR1")
    with pytest.raises(ValueError, match="tasks"):
        attach_index(spark, tmp_path, tasks=0)
