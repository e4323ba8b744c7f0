"""Prepared queries awaited: of remote files by coroutines of obstore, without threads, in confirmed versions."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.scanning.queries import async_scan
from support.object_server.faults import Rule, status
from support.object_server.server import ObjectServer
from support.remote_files import PATH, ROWS, STRONG, Way, content

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")


@pytest.fixture(autouse=True)
def no_cache() -> None:
    ps.clear_cache()


@pytest.fixture
def by_coroutines(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each query was answered by coroutines."""
    said: list[bool] = []
    plain = async_scan.table_async

    async def noted(*arguments: Any) -> Any:
        found = await plain(*arguments)
        said.append(found is not None)
        return found

    monkeypatch.setattr(async_scan, "table_async", noted)
    return said


def query_of(server: ObjectServer, way: Way, condition: Any = None, **options: Any) -> Any:
    scan = ps.scan(**way(server), **options)
    return scan.prepare(ps.col("id") == ps.param("k") if condition is None else condition)


@pytest.mark.parametrize("way", STRONG)
def test_rows_are_those_of_the_query(
    object_server: ObjectServer, way: Way, by_coroutines: list[bool]
) -> None:
    object_server.put(PATH, content())
    one = query_of(object_server, way)
    several = query_of(object_server, way, ps.col("v") < ps.param("k"))
    some = query_of(object_server, way, ps.col("id") >= ps.param("k"), limit=7)
    none = query_of(object_server, way, columns=[])

    async def all_of() -> list[pa.Table]:
        return await asyncio.gather(
            *[one.aio(k) for k in (0, ROWS, 2 * ROWS - 1, -1, None, 2.5)],
            several.aio(1 << 34),
            some.aio(ROWS - 3),
            none.aio(5),
        )

    found = asyncio.run(all_of())
    wanted = [one(k) for k in (0, ROWS, 2 * ROWS - 1, -1, None, 2.5)]
    wanted += [several(1 << 34), some(ROWS - 3), none(5)]
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        assert ours.num_rows == theirs.num_rows
        assert ours.equals(theirs)
    assert by_coroutines and all(by_coroutines)


@pytest.mark.timed
def test_many_wait_without_threads(object_server: ObjectServer, by_coroutines: list[bool]) -> None:
    object_server.put(PATH, content())
    query = query_of(object_server, STRONG[0], columns=["id", "text"])
    query(0)
    object_server.latency = 0.05
    most = 0

    async def all_of() -> list[pa.Table]:
        nonlocal most
        tasks = [asyncio.create_task(query.aio(k)) for k in range(0, 4 * ROWS, 40)]
        while not all(task.done() for task in tasks):
            names = [thread.name for thread in threading.enumerate()]
            most = max(most, sum(name.startswith(("pageseek", "asyncio")) for name in names))
            await asyncio.sleep(0.01)
        return [task.result() for task in tasks]

    before = sum(t.name.startswith(("pageseek", "asyncio")) for t in threading.enumerate())
    found = asyncio.run(all_of())
    assert [table["id"].to_pylist() for table in found] == [[k] for k in range(0, 4 * ROWS, 40)]
    assert len(found) == 500
    assert all(by_coroutines)
    assert most <= before


def test_errors_name_the_parameter(object_server: ObjectServer) -> None:
    object_server.put(PATH, content())
    query = query_of(object_server, STRONG[0])
    with pytest.raises(
        ps.PredicateError, match=r"param\('k'\): .*a.parquet: column 'id' of type int64"
    ):
        asyncio.run(query.aio("x"))
    with pytest.raises(TypeError, match="no value for param"):
        asyncio.run(query.aio())


@pytest.mark.parametrize("k", [5, -1])
def test_a_file_that_was_replaced_is_read_anew(object_server: ObjectServer, k: int) -> None:
    """Where a row group is read its answer tells, and where none is the store is asked."""
    object_server.put(PATH, content())
    query = query_of(object_server, STRONG[0])
    assert asyncio.run(query.aio(5))["seed"].to_pylist() == [0]
    object_server.put(PATH, content(1))
    found = asyncio.run(query.aio(k))
    assert found["seed"].to_pylist() == ([1] if k == 5 else [])
    assert asyncio.run(query.aio(5))["seed"].to_pylist() == [1]


def test_faults_are_tried_again(object_server: ObjectServer, by_coroutines: list[bool]) -> None:
    object_server.put(PATH, content())
    query = query_of(object_server, STRONG[0])
    assert asyncio.run(query.aio(5)).num_rows == 1
    object_server.faults = Rule(status(503), method="GET", times=2)
    assert asyncio.run(query.aio(7_000)).num_rows == 1
    assert all(by_coroutines)


def test_in_a_thread(object_server: ObjectServer, by_coroutines: list[bool]) -> None:
    object_server.put(PATH, content())
    query = query_of(object_server, STRONG[0])
    assert asyncio.run(query.aio.many([5, 7_000, 5]))["key_place"].to_pylist() == [0, 1, 2]
    numbered = (
        ps.scan(**STRONG[0](object_server))
        .with_row_number("n")
        .prepare(ps.col("id") == ps.param("k"))
    )
    assert asyncio.run(numbered.aio(7_000))["n"].to_pylist() == [7_000]
    assert by_coroutines == [False]
