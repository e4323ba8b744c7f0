"""`pageseek.aio`: the rows of other calls, many at a time; who is cancelled, or leaves a loop, ends the reading."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.habits import ReadHabits
from pageseek.base.scan_options import ScanOptions
from pageseek.scanning.many_files import joined_files
from pageseek.scanning.queries import async_scan
from support.local_reads import hook_local_reads
from support.object_server.faults import Rule, status
from support.object_server.server import ObjectServer
from support.remote_files import GROUPS, PATH, ROWS, STRONG, WEAK, Way, content, over_http, table

SOON = 2.0  # seconds in which a program ends whose task was cancelled
HALF = ps.col("v") > 1 << 39  # no statistics prove it
SLOW = 8.0  # seconds of a store that it must not have waited for


@pytest.fixture(autouse=True)
def no_cache() -> None:
    ps.clear_cache()


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(table(), tmp_path / "a.parquet", row_group_size=ROWS // 5, write_page_index=True)
    return str(tmp_path / "a.parquet")


@pytest.fixture
def coroutines(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call was answered by coroutines."""
    said: list[bool] = []
    plain = async_scan.table_async

    async def noted(*arguments: Any) -> Any:
        found = await plain(*arguments)
        said.append(found is not None)
        return found

    monkeypatch.setattr("pageseek.aio.table_async", noted)
    return said


@pytest.fixture
def no_leak() -> Iterator[None]:
    """No thread that decodes or waits for an executor is left, and no file that is open. Threads for stores are kept for later."""

    def left() -> list[str]:
        names = [thread.name for thread in threading.enumerate()]
        found = [name for name in names if name.startswith(("pageseek_", "asyncio"))]
        for one in Path("/proc/self/fd").glob("*"):
            with contextlib.suppress(OSError):
                found += [to for to in [os.readlink(one)] if ".parquet" in to]
        return found

    gc.collect()
    before = left()
    yield
    until = time.monotonic() + 5
    ps.clear_cache()
    while len(left()) > len(before) and time.monotonic() < until:
        gc.collect()
        time.sleep(0.05)
    assert len(left()) <= len(before)


async def batches(source: Any, *arguments: Any, **options: Any) -> list[pa.RecordBatch]:
    return [batch async for batch in ps.aio.to_batches(source, *arguments, **options)]


# ---- the rows


def test_the_rows_are_those_of_other_calls(path: str, tmp_path: Path) -> None:
    condition = ps.col("id") >= ROWS

    async def all_of() -> None:
        for source in (path, [path, path], tmp_path):
            scan = ps.scan(source, filter=condition).select("v", "id")
            wanted = scan.to_table()
            assert (await ps.aio.read_table(source, ["v", "id"], condition)).equals(wanted)
            assert (await ps.aio.read_table(source, ["v", "id"], filters=condition)).equals(wanted)
            assert (await ps.aio.read_table(scan)).equals(wanted)
            assert (await ps.aio.read_table(scan, ["id"], "id < 9000", 7)).equals(
                wanted.select(["id"]).slice(0, 7)
            )
            found = await ps.aio.scan(source, filter=condition)
            assert found.select("v", "id").to_table().equals(wanted)
            made = await batches(source, ["v", "id"], condition, batch_size=700)
            assert pa.Table.from_batches(made).equals(wanted) and len(made) > 5
            assert pa.Table.from_batches(await batches(scan)).equals(wanted)
            assert await ps.aio.count_rows(source, condition) == wanted.num_rows
            assert await ps.aio.count_rows(scan, "id < 9000") == scan.filter("id < 9000").count()
            assert await ps.aio.count_rows(source) == ps.scan(source).count_rows()
            for one in (source, ps.scan(source)):
                some = await ps.aio.read_table(one, ["v", "id"], "id >= ?", params=[ROWS])
                assert some.equals(wanted)
                assert (
                    await ps.aio.count_rows(one, "id >= :least", params={"least": ROWS})
                    == wanted.num_rows
                )
                assert await ps.aio.count_rows(one, limit=7) == 7
                assert await ps.aio.count_rows(one, condition, columns=["v"], limit=5) == 5
            assert await batches(scan, filter=ps.col("id") < 0) == []

    asyncio.run(all_of())


@pytest.mark.parametrize("way", [*STRONG, *WEAK])
def test_stores(object_server: ObjectServer, way: Way, coroutines: list[bool]) -> None:
    object_server.put(PATH, content())
    condition = ps.col("id").isin([5, ROWS + 5])

    async def all_of() -> list[Any]:
        named = way(object_server)
        return await asyncio.gather(
            ps.aio.read_table(**named, filter=condition),
            ps.aio.count_rows(**named, filter=condition),
            ps.aio.count_rows(**named),
            ps.aio.count_rows(ps.scan(**named).with_row_number("n"), condition),
            batches(**named, filter=condition),
        )

    few, n, whole, numbered, made = asyncio.run(all_of())
    assert few.equals(ps.read_table(**way(object_server), filter=condition))
    assert (n, whole, numbered) == (2, GROUPS * ROWS, 2)
    assert pa.Table.from_batches(made).equals(few)
    assert coroutines == [way in STRONG] * 3


@pytest.mark.timed
def test_fifty_lookups_at_a_time(object_server: ObjectServer, coroutines: list[bool]) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    object_server.put(PATH, content())
    url = object_server.url(PATH)
    ps.scan(url).count_rows()
    object_server.latency = 0.05
    object_server.log.reset()
    keys = range(0, GROUPS * ROWS, 400)

    async def all_of() -> list[pa.Table]:
        found = await ps.aio.scan(url, columns=["id", "text"])
        return await asyncio.gather(*[ps.aio.read_table(found, filter=ps.col("id") == k) for k in keys])  # fmt: skip

    found = asyncio.run(all_of())
    wanted = table()
    assert len(found) == 50
    for k, one in zip(keys, found, strict=True):
        assert one.equals(wanted.slice(k, 1).select(["id", "text"]))
    assert coroutines == [True] * 50
    assert object_server.log.in_flight() > 10  # they wait side by side


@pytest.mark.timed
def test_the_loop_goes_on_meanwhile(object_server: ObjectServer) -> None:
    object_server.put(PATH, content())
    object_server.latency = 0.3
    beats, asked = 0, over_http(object_server)

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async def all_of() -> None:
        heart = asyncio.create_task(beat())
        await ps.aio.read_table(**asked)
        heart.cancel()

    asyncio.run(all_of())
    assert beats > 15


# ---- errors


def test_errors_are_those_of_other_calls(path: str, tmp_path: Path) -> None:
    calls: list[tuple[Callable[[], Awaitable[Any]], type[Exception], str]] = [
        (lambda: ps.aio.read_table(tmp_path / "no.parquet"), FileNotFoundError, "no.parquet"),
        (lambda: ps.aio.read_table(path, filter="idd = 5"), ps.PredicateError, "idd"),
        (lambda: batches(path, ["idd"]), ps.PredicateError, "idd"),
        (lambda: ps.aio.count_rows(path, "id = "), ps.PredicateError, "id = "),
        (lambda: ps.aio.scan(path, thread=1), TypeError, "thread"),  # type: ignore[call-arg]
        (lambda: ps.aio.read_table(ps.scan(path), threads=1), TypeError, "threads=: the source"),
        (lambda: ps.aio.read_table(path, filter="id=1", filters="id=1"), TypeError, "not both"),
    ]
    for call, kind, text in calls:
        with pytest.raises(kind, match=text):
            asyncio.run(call())  # type: ignore[arg-type]


def test_an_error_half_way(path: str, no_leak: None) -> None:
    data = bytearray(Path(path).read_bytes())
    with ps.open(path) as file:
        at = file.chunk(15, "v").data_page_offset
    data[at : at + 8] = b"\xff" * 8
    Path(path).write_bytes(data)

    rows = 0

    async def read() -> None:
        nonlocal rows
        async for batch in ps.aio.to_batches(path, ["v"]):
            rows += batch.num_rows

    with pytest.raises(ps.CorruptFileError, match="row group 15"):
        asyncio.run(read())
    assert rows == 15 * ROWS // 5


@pytest.mark.timed
def test_no_request_goes_on_after_a_failure(object_server: ObjectServer) -> None:
    """Row groups are awaited side by side: when one fails, the others are not asked for."""
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    object_server.put(PATH, content())
    url = object_server.url(PATH)
    scan = ps.scan(url, retries=0, filter=HALF)
    scan.count_rows()
    object_server.latency = 0.1
    object_server.faults = Rule(status(500), method="GET", times=1)
    object_server.log.reset()

    async def read() -> None:
        with pytest.raises(ps.StoreError):
            await ps.aio.read_table(scan)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(read())
    assert settled(object_server) <= 2 * GROUPS


# ---- cancellation


def several(server: ObjectServer) -> list[str]:
    """URLs of files that are read in threads, since they are several: more than are requested at a time."""
    data = content()
    for i in range(48):
        server.put(f"bucket/t/{i}.parquet", data)
    return [server.url(f"bucket/t/{i}.parquet") for i in range(48)]


def settled(server: ObjectServer) -> int:
    """The number of requests, once no more come."""
    before = -1
    while before != (now := len(server.log)):
        before = now
        time.sleep(0.4)
    return now


CALLS: list[Callable[[Any], Coroutine[Any, Any, Any]]] = [
    ps.aio.read_table,
    ps.aio.count_rows,
    batches,
]


@pytest.mark.timed
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("threads", [1, None])
def test_a_cancelled_task_sends_no_more_requests(
    object_server: ObjectServer, no_leak: None, call: Any, threads: int | None
) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    scan = ps.scan(
        several(object_server), threads=threads, filter=HALF, columns=["v"], max_ahead_bytes=1
    )
    scan.to_table()
    object_server.log.reset()
    scan.to_table()
    whole = len(object_server.log)
    object_server.latency = 0.2
    object_server.log.reset()

    async def read() -> None:
        task = asyncio.create_task(call(scan))
        while not len(object_server.log) and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())  # this waits for the threads
    assert settled(object_server) <= whole // 2


@pytest.mark.timed
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_cancelled_task_reads_no_more_of_a_local_file(
    path: str, no_leak: None, monkeypatch: pytest.MonkeyPatch, call: Any, threads: int
) -> None:
    """Its thread ends at the next read."""
    reads = 0

    def slow(_: object, __: object) -> None:
        nonlocal reads
        reads += 1
        time.sleep(0.05)

    hook_local_reads(monkeypatch, slow)
    monkeypatch.setattr(joined_files, "FEWEST_FILES", 100)
    scan = ps.scan([path] * 20, filter=HALF, threads=threads, max_ahead_bytes=1)

    async def read() -> None:
        task = asyncio.create_task(call(scan))
        while reads < 4 and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())  # this waits for the threads
    time.sleep(0.2)
    assert reads < 4 + 5


@pytest.mark.timed
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", [STRONG[0], WEAK[0]])
def test_a_program_ends_though_a_store_does_not_answer(
    object_server: ObjectServer, no_leak: None, call: Any, way: Way
) -> None:
    object_server.put(PATH, content())
    scan = ps.scan(**way(object_server), filter=HALF, timeout=30.0)
    scan.to_table()
    object_server.latency = SLOW

    async def read() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await call(scan)

    began = time.monotonic()
    asyncio.run(read())
    assert time.monotonic() - began < SOON


def test_a_task_that_has_not_begun_reads_nothing(path: str, monkeypatch: Any) -> None:
    """The threads of the executor are busy; the work is taken out of its queue, or ends at once."""
    read: list[None] = []
    monkeypatch.setattr(ps.Scan, "to_table", lambda _: read.append(None))
    gate = threading.Event()

    async def all_of() -> None:
        blocked = [asyncio.create_task(asyncio.to_thread(gate.wait)) for _ in range(64)]
        await asyncio.sleep(0.05)
        task = asyncio.create_task(ps.aio.read_table(ps.scan(path)))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        await asyncio.gather(*blocked)

    asyncio.run(all_of())
    assert read == []


# ---- loops that are left


@pytest.mark.timed
@pytest.mark.parametrize("how", ["aclosing", "break", "error", "loop ends"])
@pytest.mark.parametrize("threads", [1, 4])
def test_a_loop_that_is_left_ends_the_reading(
    path: str, no_leak: None, how: str, threads: int
) -> None:
    scan = ps.scan([path] * 3, batch_size=100, threads=threads)
    kept: list[AsyncIterator[pa.RecordBatch]] = []

    async def read() -> None:
        rows = ps.aio.to_batches(scan)
        if how == "loop ends":
            kept.append(rows)
            await anext(rows)
            return
        if how == "aclosing":
            async with contextlib.aclosing(rows):
                async for _ in rows:
                    break
            with pytest.raises(StopAsyncIteration):
                await anext(rows)
            return
        try:
            async for _ in rows:
                if how == "error":
                    raise LookupError
                break
        except LookupError:
            pass
        del rows
        gc.collect()
        await asyncio.sleep(0.2)

    asyncio.run(read())


@pytest.mark.parametrize("cancelled", [False, True])
def test_the_generator_of_a_loop_that_is_left_is_closed(
    path: str, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """Also where a thread has it just then, and where somebody still refers to it."""
    kept: list[Iterator[int]] = []
    closed = threading.Event()

    def slow() -> Iterator[int]:
        try:
            yield 1
            time.sleep(0.3)
            yield 2
        finally:
            closed.set()

    def begun(_: ps.Scan) -> Iterator[int]:
        kept.append(slow())
        return kept[0]

    monkeypatch.setattr(ps.Scan, "to_batches", begun)

    async def read() -> None:
        async with contextlib.aclosing(ps.aio.to_batches(path)) as rows:
            await anext(rows)
            if cancelled:
                async with asyncio.timeout(0.05):
                    await anext(rows)
        assert closed.is_set()

    if cancelled:
        with pytest.raises(TimeoutError):
            asyncio.run(read())
    else:
        asyncio.run(read())
    assert closed.is_set()


@pytest.mark.timed
def test_a_remote_loop_that_is_left_sends_no_more_requests(
    object_server: ObjectServer, no_leak: None
) -> None:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    scan = ps.scan(several(object_server), threads=1, max_ahead_bytes=1)
    scan.to_table()
    object_server.latency = 0.05
    object_server.log.reset()

    async def read() -> int:
        async with contextlib.aclosing(ps.aio.to_batches(scan)) as rows:
            await anext(rows)
        return settled(object_server)

    assert asyncio.run(read()) <= 48 * GROUPS // 2


def test_two_readers_of_one_scan(path: str) -> None:
    scan = ps.scan(path, batch_size=500)

    async def read() -> list[list[pa.RecordBatch]]:
        return await asyncio.gather(batches(scan), batches(scan))

    one, other = asyncio.run(read())
    assert pa.Table.from_batches(one).equals(pa.Table.from_batches(other))
    assert pa.Table.from_batches(one).equals(table())


def test_type_checkers_know_the_options_of_scan() -> None:
    own = dict(inspect.signature(ps.scan).parameters)
    named = {name for name, p in own.items() if p.kind is p.KEYWORD_ONLY}
    known = set(ScanOptions.__annotations__)
    assert known - named == set(ReadHabits.__annotations__)
    for call in (ps.aio.scan, ps.aio.read_table, ps.aio.to_batches, ps.aio.count_rows):
        assert (
            named - known
            == {"columns", "filter", "limit"}
            <= set(inspect.signature(call).parameters)
        )
