"""What the loggers are told: each request that a report counts, retries, and indexes that are not trusted. Nothing while they are off."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base import log as logs
from support.object_server.faults import Rule, status
from support.object_server.server import ObjectServer
from support.remote_files import PATH, ROWS, STRONG, WEAK, Way, content

IDS = ps.col("id").isin([5, ROWS + 5, 3 * ROWS])
Caplog = pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def no_cache(caplog: Caplog) -> None:
    ps.clear_cache()
    caplog.set_level(logging.DEBUG, logger="pageseek")


def records(caplog: Caplog) -> list[Any]:
    return list(caplog.records)


def requests(caplog: Caplog) -> int:
    """The requests of all records: each retry has one of its own."""
    retries = [one for one in records(caplog) if one.name == "pageseek.storage"]
    return sum(getattr(one, "requests", 0) for one in records(caplog)) + len(retries)


def explained(caplog: Caplog, scan: ps.Scan) -> ps.Report:
    caplog.clear()
    report = scan.explain(analyze=True)
    assert requests(caplog) == report.requests
    return report


@pytest.mark.parametrize("way", [*STRONG, *WEAK])
def test_each_request_of_a_report_is_logged(
    object_server: ObjectServer, caplog: Caplog, way: Way
) -> None:
    object_server.put(PATH, content())
    object_server.log.reset()
    scan = ps.scan(**way(object_server), filter=IDS)
    object_server.log.reset()
    for _ in range(3):  # the first one opens the file, the others find it in the cache
        report = explained(caplog, scan)
        assert report.requests > 0
        if way in STRONG:
            assert len(object_server.log) == report.requests
            sent = [one for one in records(caplog) if one.what not in ("open", "version")]
            assert sum(one.nbytes for one in sent) == report.bytes["index"] + report.bytes["data"]
        object_server.log.reset()
    assert {one.levelno for one in records(caplog)} == {logging.DEBUG}


def test_versions_of_many_files_are_logged(object_server: ObjectServer, caplog: Caplog) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    urls = []
    for i in range(5):
        object_server.put(f"bucket/t/{i}.parquet", content(i))
        urls.append(object_server.url(f"bucket/t/{i}.parquet"))
    scan = ps.scan(urls, filter=ps.col("id") < 0)
    explained(caplog, scan)
    report = explained(caplog, scan)
    assert report.requests == 5  # no more than whether they are still those
    assert [one.what for one in records(caplog)] == ["version"] * 5


def test_retries_are_warnings(server: ObjectServer, caplog: Caplog) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    scan = ps.scan(server.url(PATH), filter=IDS)
    server.faults = Rule(status(503), method="GET", times=2)
    report = explained(caplog, scan)
    assert report.retries == 2
    told = [one for one in records(caplog) if one.name == "pageseek.storage"]
    assert [one.levelno for one in told] == [logging.WARNING] * 2
    assert "503" in told[0].getMessage() and "tried again in" in told[0].getMessage()
    assert PATH in told[0].getMessage()


def test_coroutines_are_logged(server: ObjectServer, caplog: Caplog) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    asyncio.run(ps.aio.read_table(server.url(PATH), filter=IDS))
    server.log.reset()
    caplog.clear()
    asyncio.run(ps.aio.read_table(server.url(PATH), filter=IDS))
    assert requests(caplog) == len(server.log) > 0
    caplog.clear()
    server.log.reset()
    asyncio.run(ps.aio.read_table(server.url(PATH), filter=ps.col("id") < 0))
    assert requests(caplog) == len(server.log) == 1


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    made, folder = [], tmp_path_factory.mktemp("files")
    for i in range(24):
        made.append(str(folder / f"{i}.parquet"))
        table = pa.table({"id": range(i * 100, i * 100 + 100), "s": ["x"] * 100})
        pq.write_table(table, made[-1], row_group_size=50, write_page_index=True)
        ps.index.attach(made[-1], distinct=["s"], in_place=True)
    return made


@pytest.mark.parametrize("condition", [None, "id = 1234", "s = 'y'", "id > 300 and s = 'x'"])
def test_reads_of_local_files_are_logged(paths: list[str], caplog: Caplog, condition: Any) -> None:
    ps.clear_cache()
    for source in (paths[0], paths):
        for _ in range(2):
            explained(caplog, ps.scan(source, filter=condition))


def test_a_lookup_of_the_core_is_logged(paths: list[str], caplog: Caplog) -> None:
    ps.read_table(paths[12], filter="id = 1234")
    caplog.clear()
    ps.read_table(paths[12], filter="id = 1234")
    (one,) = [one for one in records(caplog) if one.what == "lookup"]
    assert one.file == paths[12] and one.row_group == 0 and "read by the core" in one.getMessage()


def test_a_record_says_what_was_read(paths: list[str], caplog: Caplog) -> None:
    scan = ps.scan(paths[0]).select("id")
    scan.to_table()
    caplog.clear()
    scan.to_table()
    one, _ = records(caplog)  # of each row group
    assert one.name == "pageseek.io" and one.what == "data" and one.file == paths[0]
    with ps.open(paths[0]) as file:
        chunk = file.chunk(0, "id")
    assert one.requests == 1 and one.nbytes == chunk.compressed_size
    assert f"{one.ranges[0][0]}+{one.ranges[0][1]}" in one.getMessage() and one.ms >= 0


def test_ranges_beyond_a_few_are_counted(caplog: Caplog) -> None:
    logs.requested("f", "data", [(i, 1) for i in range(20)], 20, logs.begun())
    assert records(caplog)[0].getMessage().endswith("7+1 and 12 more")


def test_indexes_that_are_not_trusted_are_warnings(
    paths: list[str], tmp_path: Path, caplog: Caplog
) -> None:
    """Once for each time that it is found, not for each scan that does without."""
    path = str(shutil.copy(paths[0], tmp_path))
    with ps.open(path) as file:
        place = file.chunk(0, "id").column_index
    assert place is not None
    data = bytearray(Path(path).read_bytes())
    data[place[0] : place[0] + place[1]] = b"\xff" * place[1]
    Path(path).write_bytes(data)
    ps.clear_cache()
    caplog.clear()
    scan = ps.scan(path, filter="id = 7", prune=["column_index"])
    notes = {note for _ in range(3) for note in scan.explain(analyze=True).notes}
    told = [one for one in records(caplog) if one.name == "pageseek.prune"]
    assert told and {one.levelno for one in told} == {logging.WARNING}
    assert [one.getMessage() for one in told if "row group 0" in one.getMessage()] == [
        note for note in notes if "row group 0" in note
    ]


def test_nothing_is_made_while_it_is_off(
    paths: list[str], caplog: Caplog, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="pageseek")

    def made(*_: Any) -> Any:
        raise AssertionError("a text was made")

    monkeypatch.setattr(logs, "format_size", made)
    for source in (paths[0], paths):
        assert ps.scan(source, filter="id = 5").count_rows() == 1
        assert ps.read_table(source, filter="id = 5").num_rows == 1
    assert logs.begun() == 0.0
    assert records(caplog) == []


SILENT = """
import sys
import pageseek as ps
assert "logging" not in sys.modules and "asyncio" not in sys.modules
ps.clear_cache()
from pageseek.base.log import STORAGE
STORAGE.warning("nobody is to see this")
ps.read_table(sys.argv[1], filter="id = 5")
assert "asyncio" not in sys.modules
"""


def test_a_program_that_sets_up_no_logging_sees_nothing(paths: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SILENT, paths[0]], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_loggers_follow_levels_that_are_set_later(paths: list[str], caplog: Caplog) -> None:
    loud: Callable[[int], None] = lambda level: caplog.set_level(level, logger="pageseek.io")  # noqa: E731
    loud(logging.WARNING)
    ps.read_table(paths[0])
    assert records(caplog) == []
    loud(logging.DEBUG)
    ps.read_table(paths[0])
    assert records(caplog)
