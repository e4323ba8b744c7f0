"""`attach_index`: all files of a source get what is asked for, and a second run builds only what is missing."""

from __future__ import annotations

import os
import re
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


def test_indexes_of_rows_and_keys_of_several_columns(spark: Any, folder: Path):
    asked: dict[str, Any] = {
        "lookup": [("K", "s"), "k"],
        "bitmap": "c",
        "trigram": ["s"],
        "file_bloom": {"k": 0.001},
    }
    made = attach_index(spark, folder, page_index=False, **asked)
    assert made["status"].to_pylist() == ["attached"] * 6
    assert kinds(folder) == {("bitmap", "file_bloom", "key_lookup", "lookup", "trigram")}
    assert all("key_lookup(k, s)" in text for text in made["added"].to_pylist())
    assert all(ps.index.verify(path).ok for path in folder.rglob("*.parquet"))
    again = attach_index(spark, folder, page_index=False, **asked)
    assert again["status"].to_pylist() == ["present"] * 6


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


def test_names_are_those_of_the_session(spark: Any, tmp_path: Path, conf: Any):
    """A later file may spell a column otherwise. One that lacks it fails by itself."""
    for i, (k, s) in enumerate((("k", "s"), ("K", "S"), ("k", "x"))):
        pq.write_table(pa.table({k: [1, 2], s: [{"a": 1}, {"a": 2}]}), tmp_path / f"{i}.parquet")
    asked = {"page_index": ["K"], "bloom": {"k": 0.1}, "distinct": "S.A"}
    with pytest.warns(UserWarning, match=r"1 of 3 files.*2\.parquet: no column 's\.a'"):
        made = attach_index(spark, tmp_path, **asked)
    assert made["status"].to_pylist() == ["attached", "attached", "failed"]
    added = [set(text.split(", ")) for text in made["added"].to_pylist()[:2]]
    assert added == [
        {"bloom(k)", "page_index(k)", "distinct(s.a)"},
        {"bloom(K)", "page_index(K)", "distinct(S.a)"},
    ]
    conf("spark.sql.caseSensitive", "true")
    with pytest.raises(ps.PredicateError, match=r"0\.parquet and 2 more: no column 'S\.A'"):
        attach_index(spark, tmp_path, **asked)
    with pytest.warns(UserWarning, match="2 of 3 files"):
        made = attach_index(spark, tmp_path, page_index=False, distinct="S.a")
    assert made["status"].to_pylist() == ["failed", "present", "failed"]


def test_a_name_of_no_file_and_wrong_arguments_are_errors_at_once(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    def no_job(*_: Any) -> Any:
        raise AssertionError("a job was started")

    monkeypatch.setattr(type(spark), "range", no_job)
    for asked, error, said in (
        ({"bloom": ["q"]}, ps.PredicateError, "0.parquet and 5 more: no column 'q'; there are"),
        ({"bloom": "p"}, ps.PredicateError, "no column 'p'"),  # of folders
        ({"distinct": ["s.x"]}, ps.PredicateError, "no column 's.x'"),
        ({"page_index": "q"}, ps.PredicateError, "no column 'q'"),
        ({"indexes": {"distinct": "q"}}, ps.PredicateError, "no column 'q'"),
        ({"indexes": {"trie": "s"}}, ValueError, "kind 'trie' is not registered"),
        ({"distinct_index": ["s"]}, TypeError, "the name of one column"),
        ({"bloom": [1]}, TypeError, "bloom: 1 is no name of a column"),
        ({"bloom": {"s": 0}}, ValueError, "column 's': a false-positive rate of 0: at least 1e-09"),
        ({"bloom": {"s": 1.0}}, ValueError, "a false-positive rate of 1.0"),
        ({"bloom": {"s": "low"}}, ValueError, "a false-positive rate of 'low'"),
        ({"bloom": {"s": float("nan")}}, ValueError, "a false-positive rate of nan"),
    ):
        with pytest.raises(error, match=re.escape(said)):
            attach_index(spark, folder, **asked)
    both = folder / "both.parquet"
    pq.write_table(pa.table({"id": [1], "Id": [2]}), both)
    with pytest.raises(ps.PredicateError, match="'ID' is ambiguous: 'Id', 'id'"):
        attach_index(spark, both, bloom=["ID"])


def test_a_name_stands_for_a_list_of_one(spark: Any, folder: Path):
    made = attach_index(spark, folder, page_index="k", bloom="s", distinct="C")
    assert {frozenset(text.split(", ")) for text in made["added"].to_pylist()} == {
        frozenset({"bloom(s)", "distinct(c)", "page_index(k)"})
    }
