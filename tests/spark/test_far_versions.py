"""Versions of files in a store: asked for once while a query is planned, and proven by what is read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import pageseek as ps
from pageseek.datasets.confirmed import asked_once
from pageseek.spark import load, report
from pageseek.spark.table.planner import ScanPlanner
from pageseek.spark.table.table import Choices, SourceTable
from pageseek.storage import endpoint as endpoints
from support.object_server.server import ObjectServer
from support.remote_files import content, s3_options

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
pytestmark = pytest.mark.spark
FILES = 3


@pytest.fixture
def server(object_server: ObjectServer) -> ObjectServer:
    for i in range(FILES):
        object_server.put(f"bucket/t/{i}.parquet", content(i))
    ps.clear_cache()
    return object_server


def loaded(spark: Any, server: ObjectServer, **options: Any) -> Any:
    return load(spark, "s3://bucket/t/", storage_options=s3_options(server), **options)


def answers(server: ObjectServer) -> Counter[int]:
    """The requests since the last time, by the status of their answers."""
    found = Counter(record.status for record in server.log.records())
    server.log.reset()
    return found


def seeds(frame: Any) -> list[int]:
    return sorted(row["seed"] for row in frame.collect())


def test_a_query_asks_once_for_each_version(spark: Any, server: ObjectServer) -> None:
    frame = loaded(spark, server).where("id = 4711")
    assert answers(server) == {200: 1, 206: FILES}  # a listing, and the ends of the files
    assert seeds(frame) == list(range(FILES))
    found = answers(server)  # and the pages, in as many requests as the learned wait is worth
    assert (set(found), found[304]) == ({304, 206}, FILES)
    assert seeds(loaded(spark, server).where("id = 4711 and seed = 1")) == [1]
    found = answers(server)  # for the DataFrame, and for the query
    assert (set(found), found[304]) == ({200, 304, 206}, 2 * FILES)


def test_planning_reads_bloom_filters_once(
    spark: Any, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "LATENCY", 0.004)
    monkeypatch.setattr(endpoints, "BANDWIDTH", 1e7)
    how = {"bloom_filter_options": {"v": {"ndv": 100_000, "fpp": 1e-3}}}
    for i in range(FILES):
        server.objects.put(f"bucket/t/{i}.parquet", content(i, **how))
    frame = loaded(spark, server).where("v = 549755813888")
    answers(server)
    assert frame.collect() == []
    ranges = Counter((one.path, one.range) for one in server.log.requests() if one.status == 206)
    assert ranges and set(ranges.values()) == {1}


def test_tasks_that_have_the_footers_do_not_ask(spark: Any, server: ObjectServer) -> None:
    """How many requests the pages take depends on the learned wait; the ends are requests of their own."""
    query = "id between 4711 and 4712"
    for _ in range(8):  # Spark may take another worker each time, until all have read the footers
        frame = loaded(spark, server, local=False, tasks=1).where(query)
        frame._jdf.queryExecution().executedPlan()
        server.log.reset()
        assert seeds(frame) == sorted([*range(FILES)] * 2)
        asked = Counter((one.path, one.range) for one in server.log.requests())
        answered = answers(server)
        assert set(answered) == {206}
        assert set(asked.values()) == {1}
        if not [one for one in asked if reaches_end(server, *one)]:
            return
    pytest.fail("no worker keeps the footers that it has read")


def reaches_end(server: ObjectServer, path: str, wanted: str | None) -> bool:
    """Whether a request is for the last bytes of a file."""
    last = (wanted or "").rpartition("-")
    info = server.objects.info(path.strip("/"))
    assert info is not None
    return last[0].endswith("=") or int(last[2]) >= info.size - 1


def test_files_that_change_before_a_query_are_read_anew(spark: Any, server: ObjectServer) -> None:
    frame = loaded(spark, server).where("id = 4711")
    for new in (7, 8):
        server.objects.put("bucket/t/1.parquet", content(new))
        assert seeds(frame.select("seed")) == [0, 2, new]


def test_files_that_were_ruled_out_and_change_before_a_query_are_read_anew(
    spark: Any, server: ObjectServer
) -> None:
    frame = loaded(spark, server).where("id = 4711 and seed = 7").select("seed")
    assert seeds(frame) == []
    server.objects.put("bucket/t/1.parquet", content(7))
    assert seeds(frame.select("seed")) == [7]


def test_a_question_that_reads_a_file_that_has_changed_is_answered_again(
    spark: Any, server: ObjectServer
) -> None:
    """Planning may read, for example Bloom filters, before the store has told the versions."""
    scan = ps.scan("s3://bucket/t/", storage_options=s3_options(server))
    planner = ScanPlanner(SourceTable(spark, scan, Choices(), "t"))
    server.objects.put("bucket/t/1.parquet", content(7))

    def read() -> list[int]:
        found = scan.filter(ps.col("id") == 4711).plan().execute()
        return sorted(seed for batch in found for seed in batch.column("seed").to_pylist())

    with asked_once(planner._confirmed):
        with pytest.raises(ps.FileChangedError):
            read()
        assert planner._current(read) == [0, 2, 7]


@pytest.mark.timed
def test_the_store_answers_while_pages_are_read(spark: Any, server: ObjectServer) -> None:
    frame = loaded(spark, server).where("id = 4711")
    assert seeds(frame) == list(range(FILES))  # classes are loaded, and connections are there
    frame, server.latency = frame.select("seed"), 0.5
    server.log.reset()
    assert seeds(frame) == list(range(FILES))
    told = [one.end for one in server.log.records() if one.status == 304]
    read = [one.start for one in server.log.records() if one.status == 206]
    assert len(told) == FILES and min(read) < min(filter(None, told))
    assert report(frame).requests == len(told) + len(read)


@pytest.mark.parametrize("local", [True, False])
def test_files_that_change_after_planning_are_refused(
    spark: Any, server: ObjectServer, local: bool
) -> None:
    frame = loaded(spark, server, local=local).where("id between 4711 and 4712")
    if not local:
        assert len(seeds(frame)) == 2 * FILES  # the worker has the footers
    frame = frame.select("seed")
    frame._jdf.queryExecution().executedPlan()
    server.objects.put("bucket/t/1.parquet", content(7))
    if local:  # its rows are those of the plan
        assert seeds(frame) == sorted([*range(FILES)] * 2)
    else:
        with pytest.raises(Exception, match=r"FileChangedError.*t/1\.parquet"):
            frame.collect()
