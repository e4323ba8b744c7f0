"""Reports of functions over Arrow batches, of several sources, and of thousands of tasks; what `explain` says."""

from __future__ import annotations

import importlib
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.spark import input_files, load, lookup, read, report, reports
from pageseek.spark.tasks import metrics

spark_test = pytest.mark.spark
FILES, ROWS = 8, 20_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("reports")
    for i in range(FILES):
        k = range(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"k": k, "s": [str(n) for n in k]})
        path = made / f"{i}.parquet"
        pq.write_table(table, path, row_group_size=2000, write_page_index=True, data_page_size=1000)
    return str(made)


def explained(frame: Any, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    frame.explain()
    return capsys.readouterr().out


@spark_test
def test_a_lookup_reports_the_pages_of_its_keys(
    spark: Any, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [5, 77_777, 120_001]
    found = lookup(spark, folder, keys, "k", ["s"])
    assert "no task has reported" in str(report(found))
    text = explained(found, capsys)
    assert f"lookup of 3 keys in {folder}; pageseek reads 3 of 8 files, 3 of 80 row groups" in text
    assert "files 5 by statistics of row groups" in text
    for frame in (found, found.where("s > '1'").select("s")):
        assert frame.count() == 3
        told = report(frame)
        wanted = ps.scan(folder).filter(ps.col("k").isin(keys)).explain(analyze=True).to_dict()
        mine = told.to_dict()
        for one in ("files", "row_groups", "rows"):
            assert mine[one] == wanted[one]
        assert mine["pages"]["read"] == wanted["pages"]["read"]
        assert mine["leaves"] == wanted["leaves"]
        assert not told.notes
        assert str(report(frame)) == str(told)  # a report changes no other one
    assert len(input_files(found)) == 3


@spark_test
def test_a_lookup_that_was_stopped_early_says_so(spark: Any, folder: str) -> None:
    found = lookup(spark, folder, list(range(0, FILES * ROWS, 3)), "k", ["s"], tasks=4)
    assert len(found.limit(1).collect()) == 1
    assert any("incomplete" in note or "stopped" in note for note in report(found).notes)
    assert found.count() == -(-FILES * ROWS // 3)
    assert not report(found).notes
    assert report(found).to_dict()["files"]["read"] == FILES


@spark_test
def test_a_lookup_of_shuffled_keys_reports_what_its_tasks_read(
    spark: Any, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [5, 77_777, 120_001]
    found = lookup(spark, folder, keys, "k", ["s"], broadcast_limit=0, tasks=4)
    assert found.count() == 3
    told = report(found).to_dict()
    assert told["row_groups"] == {"total": 80, "read": 3, "pruned_by": {"keys": 77}}
    assert told["rows"]["out"] == 3
    assert told["rows"]["read"] < 6000
    (note,) = told["notes"]
    assert note.startswith("incomplete: 3 of 4 tasks have reported; others have no keys")
    assert f"lookup of shuffled keys in {folder}; tasks, which rule out" in explained(found, capsys)


@spark_test
def test_read_by_functions_reports_too(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        importlib.import_module("pageseek.spark.reader"), "fits", lambda spark: False
    )
    frame = read(spark, folder, ["s"], "k between 10 and 29999", tasks=3)
    assert f"{folder}; pageseek reads 2 of 8 files" in explained(frame, capsys)
    assert len(frame.collect()) == 29_990
    told = report(frame).to_dict()
    assert told["rows"]["out"] == 29_990
    assert told["files"] == {"total": 8, "read": 2, "pruned_by": {"statistics": 6}}


@spark_test
def test_several_sources_are_reported_together_and_apart(spark: Any, folder: str) -> None:
    one = load(spark, folder, local=False, native=False).where("k < 100")
    other = lookup(spark, folder, [5, 77_777], "k", ["s"]).select("s")
    both = one.join(other, "s").select("k")
    assert [row.k for row in both.collect()] == [5]
    apart = reports(both)
    assert list(apart) == [folder, f"{folder} (2)"]
    assert [told.row_groups.read for told in apart.values()] == [1, 2]
    together = report(both)
    assert together.row_groups.read == 3
    assert together.row_groups.total == 160
    assert together.to_dict()["bytes"]["data"] == sum(told.bytes["data"] for told in apart.values())


@spark_test
def test_explain_says_what_ruled_out_the_rest(
    spark: Any, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = load(spark, folder, local=False, native=False)
    text = explained(frame.where("k in (30005, 30006)"), capsys)
    assert "pageseek reads 1 of 8 files, 1 of 80 row groups" in text
    assert (
        "where k in (30005, 30006); ruled out: files 7 by statistics of row groups; row groups"
        in text
    )
    assert "by the column index" in text
    assert "ruled out" not in explained(frame, capsys)


@spark_test
def test_the_reports_of_many_functions_are_forgotten_in_turn(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_MOST_FUNCTIONS", 2)
    frames = [lookup(spark, folder, [1], "k", ["s"])]
    first = metrics._FUNCTIONS[-1]
    frames += [lookup(spark, folder, [k], "k", ["s"]) for k in (2, 3)]
    assert [frame.count() for frame in frames] == [
        1,
        1,
        1,
    ]  # Spark goes on to know their accumulators
    assert first.accumulator(spark).value == {}
    del first
    with pytest.raises(Exception, match="no scan of"):
        report(frames[0])
    assert report(frames[2]).rows_out == 1


def test_a_row_group_that_several_tasks_read_counts_once() -> None:
    parts = []
    for _ in range(3):
        one = Report(analyzed=True, chunks={})
        one.files.read, one.rows.total = 1, 10
        one.done("a.parquet", 0, 10, 10)
        parts.append(one)
    made = metrics.joined(Report(chunks={}), parts)
    assert (made.files.read, made.row_groups.read, made.executed) == (1, 1, {("a.parquet", 0): 10})


def test_reports_of_thousands_of_tasks_are_joined_in_linear_time() -> None:
    """With a search in all notes, or all lanes, for each report this takes half a minute."""
    parts = []
    for i in range(40_000):
        one = Report(analyzed=True, waves=i % 7, requests=1, chunks={})
        one.note(f"a remark of the task {i}")
        parts.append(one)
    began = time.perf_counter()
    made = metrics.joined(Report(chunks={}), parts)
    assert time.perf_counter() - began < 10
    assert (made.waves, made.requests, len(made.notes)) == (6, 40_000, 40_000)


def test_gathering_copies_nothing() -> None:
    gathering, found = metrics.gathering(), {b"a": Report()}
    assert gathering.addInPlace(found, {b"b": Report()}) is found
    assert set(found) == {b"a", b"b"}


def test_waves_of_lanes_are_those_of_the_longest() -> None:
    planned = Report(waves=2)
    first, second = Report(waves=3), Report(waves=5)
    for _ in range(2):  # a report that was made begins again
        made = planned.to_execute()
        made.join(first, 0)
        made.join(second, 1)
        made.join(first, 0)
        assert made.waves == 2 + 6


@pytest.mark.parametrize("ask", [report, reports, input_files])
@pytest.mark.parametrize("given", ["x", None])
def test_what_is_no_dataframe_is_refused(ask: Any, given: Any) -> None:
    with pytest.raises(TypeError, match=f"a DataFrame of Spark.*not {type(given).__name__}"):
        ask(given)
