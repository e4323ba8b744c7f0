"""Cached metadata of a remote file is used before its version is confirmed; no answer is from an outdated version."""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.object_server.faults import status
from support.object_server.messages import Request
from support.object_server.server import ObjectServer
from support.remote_files import (
    GROUPS,
    PATH,
    ROWS,
    WEAK,
    Way,
    content,
    over_http,
    over_s3,
    table,
)

pytest.importorskip("obstore")
N = GROUPS * ROWS
POINT = ps.col("id") == 12_345
LOW = ps.col("v") < 1 << 38
NONE = ps.col("id") < 0
FIGURES: list[Any] = ["count", ("v", "min"), ("v", "max"), ("text", "count")]
FILES = 8


@pytest.fixture
def server(object_server: ObjectServer) -> ObjectServer:
    ps.clear_cache()
    object_server.put(PATH, content())
    return object_server


def statuses(server: ObjectServer) -> list[int]:
    return [one.status for one in server.log.records()]


def streamed(scan: ps.Scan) -> pa.Table:
    batches = list(scan.to_batches())
    return pa.Table.from_batches(batches) if batches else None


ASKS: dict[str, Callable[[ps.Scan], Any]] = {
    "to_table": lambda scan: scan.to_table(),
    "to_batches": streamed,
    "to_reader": lambda scan: scan.to_reader().read_all(),
    "limit": lambda scan: scan.limit(3).to_table(),
    "no row": lambda scan: scan.limit(0).to_table(),
    "count_rows": lambda scan: scan.count_rows(),
    "aggregate": lambda scan: scan.aggregate(FIGURES),
    "least": lambda scan: scan.aggregate([("v", "min"), ("text", "max")]),
    "take": lambda scan: scan.take([0, 7, N - 1]).with_row_number("row").to_table(),
    "analyze": lambda scan: scan.explain(analyze=True).to_dict()["rows"]["out"],
    "schema": lambda scan: scan.schema,
}
# other values at the same places; other places; no index; fewer rows; another column, and one fewer; unchanged
OTHERS: list[Callable[[], bytes]] = [
    lambda: content(1),
    lambda: content(2, row_group_size=900),
    lambda: content(3, compression="zstd", write_page_index=False),
    lambda: written(table(4).slice(300, 12_100)),
    lambda: written(table(5).append_column("more", pa.array(np.arange(N)))),
    lambda: written(table(6).drop_columns(["v"])),
    content,
]


def written(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows, sink, row_group_size=ROWS, write_page_index=True, compression="none",
        use_dictionary=False,
    )  # fmt: skip
    return bytes(sink.getvalue().to_pybytes())


@pytest.fixture(scope="module")
def others() -> list[bytes]:
    return [make() for make in OTHERS]


def outcome(ask: str, scan: ps.Scan) -> Any:
    """The answer, or which error it is."""
    try:
        return ASKS[ask](scan)
    except ps.FileChangedError:
        raise
    except (IndexError, ps.PageseekError) as error:
        return type(error)


@pytest.mark.covering(2)
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("condition", [None, POINT, LOW, NONE])
@pytest.mark.parametrize("way", [over_http, over_s3])
def test_an_object_that_changes_between_two_scans(
    server: ObjectServer, way: Way, ask: str, condition: Any, others: list[bytes]
) -> None:
    given = way(server)
    assert outcome(ask, ps.scan(**given)) == outcome(ask, ps.scan(content()))
    for data in others:
        server.replace(PATH, data)
        due = outcome(ask, ps.scan(data, filter=condition))
        for _ in range(2):
            assert outcome(ask, ps.scan(**given, filter=condition)) == due


@pytest.mark.parametrize("way", WEAK)
@pytest.mark.parametrize("ask", ["to_table", "count_rows", "aggregate"])
def test_where_reads_are_not_tied_to_a_version_it_is_asked_for_before(
    server: ObjectServer, way: Way, ask: str, others: list[bytes]
) -> None:
    for data in others:
        server.replace(PATH, data)
        for _ in range(2):
            server.log.reset()
            found = outcome(ask, ps.scan(**way(server), filter=POINT))
            assert found == outcome(ask, ps.scan(data, filter=POINT))
            assert server.log.records()[0].method == "HEAD"


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("condition", [None, POINT, NONE])
def test_no_answer_without_a_request(server: ObjectServer, ask: str, condition: Any) -> None:
    """The store must confirm the version: if nothing is read, a request only for that is made."""
    scan = ps.scan(**over_s3(server), filter=condition)
    due = outcome(ask, scan)
    for _ in range(2):
        server.log.reset()
        assert outcome(ask, scan) == due
        asked = statuses(server)
        assert asked in ([304], [206]) or (set(asked) <= {206, 304} and condition is not NONE)
    if condition is NONE or ask in ("no row", "schema"):
        assert asked == [304]


@pytest.mark.parametrize("ask", ["to_table", "to_batches", "take", "analyze"])
def test_what_is_read_is_not_asked_for_before(server: ObjectServer, ask: str) -> None:
    scan = ps.scan(**over_http(server), filter=POINT)
    due = outcome(ask, scan)
    server.log.reset()
    assert outcome(ask, scan) == due
    assert set(statuses(server)) == ({304} if ask == "take" else {206})
    assert len(server.log) == 1  # of the rows taken none passes, by the page index


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("condition", [None, POINT, NONE])
def test_an_object_that_is_not_there_any_more(
    server: ObjectServer, ask: str, condition: Any
) -> None:
    scan = ps.scan(**over_s3(server), filter=condition)
    outcome(ask, scan)
    server.delete(PATH)
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
            ASKS[ask](scan)
    server.put(PATH, content(1))
    assert outcome(ask, scan) == outcome(ask, ps.scan(content(1), filter=condition))


def test_who_may_not_read_it_any_more_is_told(server: ObjectServer) -> None:
    scan = ps.scan(**over_s3(server), filter=NONE)
    scan.to_table()
    server.faults = lambda _: status(403)
    with pytest.raises(PermissionError):
        scan.to_table()


# ---- rows that were handed out


def test_batches_are_of_one_version(server: ObjectServer) -> None:
    """A change before the first batch has no effect, and is an error afterwards."""
    scan = ps.scan(**over_http(server), columns=["seed", "id"], batch_size=500)
    for at in range(4):
        server.replace(PATH, content(1))
        ps.clear_cache()
        scan.to_table()
        batches = scan.to_batches()
        if at == 0:
            server.replace(PATH, content(2))
        seeds = []
        try:
            for i, batch in enumerate(batches):
                seeds += batch["seed"].unique().to_pylist()
                if i + 1 == at:
                    server.replace(PATH, content(3))
                    server.latency = 0
        except ps.FileChangedError:
            assert at and set(seeds) == {1}
        else:
            assert set(seeds) == ({2} if at == 0 else {1})
            assert len(seeds) == N // 500


def test_a_plan_that_travels_is_of_its_version(server: ObjectServer) -> None:
    scan = ps.scan(**over_s3(server), filter=POINT)
    scan.to_table()
    plan = pickle.loads(pickle.dumps(scan.plan()))
    assert len(list(plan.execute())) == 1
    server.replace(PATH, content(1))
    for _ in range(2):
        with pytest.raises(ps.FileChangedError):
            list(plan.execute())
    assert scan.to_table()["seed"].to_pylist() == [1]
    with pytest.raises(ps.FileChangedError):
        list(plan.execute())


# ---- many files


def name(i: int) -> str:
    return f"bucket/m/{i:02}.parquet"


def part(i: int, seed: int = 0, rows: int = 3_000) -> pa.Table:
    first = i * 3_000
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "seed": np.full(rows, seed),
            # so long that the tail does not bring the pages of the keys
            "text": np.char.mod("%0200d", np.random.default_rng(i).integers(0, 1 << 62, rows)),
        }
    )


@pytest.fixture
def many(server: ObjectServer) -> list[str]:
    for i in range(FILES):
        server.put(name(i), written(part(i)))
    return [server.url(name(i)) for i in range(FILES)]


ONE = ps.col("id") == 4 * 3_000 + 77
SOME = ps.col("id").between(3 * 3_000 + 5, 6 * 3_000 + 9)


@pytest.mark.covering(2)
@pytest.mark.parametrize("ask", ["to_table", "to_batches", "to_reader", "count_rows", "figures"])
@pytest.mark.parametrize("condition", [None, ONE, SOME, NONE])
@pytest.mark.parametrize("changed", [0, 4, FILES - 1])
def test_one_of_many_files_changes(
    server: ObjectServer, many: list[str], ask: str, condition: Any, changed: int
) -> None:
    """One that is read, and one that is ruled out and now has such rows: or a column more, or of another type."""
    asks = {**ASKS, "figures": lambda scan: scan.aggregate(["count", ("seed", "max")])}
    parts = [part(i) for i in range(FILES)]
    scan = ps.scan(many, filter=condition)
    asks[ask](scan)
    key = 4 * 3_000 + 77
    for new in (
        part(changed, 1),
        part(changed, 2, 2_000),
        part(4, 3).slice(70, 20),
        part(changed, 4).append_column("more", pa.array([key] * 3_000)),
        part(changed, 5).set_column(1, "seed", pa.array([1 << 40] * 3_000)),
    ):
        server.replace(name(changed), written(new))
        parts[changed] = new
        due = asks[ask](ps.scan([written(one) for one in parts], filter=condition))
        assert asks[ask](scan) == due
        assert asks[ask](scan) == due


@pytest.mark.timed
def test_what_has_no_rows_is_confirmed_beside_what_has(
    server: ObjectServer, many: list[str]
) -> None:
    server.latency = 0.05
    scan = ps.scan(many, filter=ONE)
    scan.to_table()
    server.log.reset()
    assert scan.to_table().num_rows == 1
    assert sorted(statuses(server)) == [206] + [304] * (FILES - 1)
    assert server.log.waves() <= 2  # one, unless the machine is busy
    report = scan.explain(analyze=True).to_dict()
    assert (report["requests"], report["waves"]) == (FILES, 1)


def test_one_of_many_that_is_gone(server: ObjectServer, many: list[str]) -> None:
    for condition in (ONE, SOME, NONE):
        scan = ps.scan(many, filter=condition)
        scan.to_table()
        server.delete(name(4))
        with pytest.raises(FileNotFoundError, match=r"04\.parquet"):
            scan.to_table()
        server.put(name(4), written(part(4)))


@pytest.mark.parametrize("condition", [None, SOME])
def test_of_many_that_are_streamed_all_are_confirmed_before_the_first_row(
    server: ObjectServer, many: list[str], condition: Any
) -> None:
    scan = ps.scan(many, filter=condition, batch_size=1_000, threads=1)
    scan.to_table()
    server.replace(name(5), written(part(5, 7)))
    seeds = {seed for batch in scan.to_batches() for seed in batch["seed"].to_pylist()}
    assert seeds == {0, 7}


def test_what_was_asked_in_vain_is_counted(server: ObjectServer, many: list[str]) -> None:
    scan = ps.scan(many, filter=ONE)
    scan.to_table()
    server.replace(name(4), written(part(4, 1)))
    server.log.reset()
    report = scan.explain(analyze=True).to_dict()
    assert report["rows"]["out"] == 1
    assert 412 in statuses(server)
    assert len(server.log) >= report["requests"] > FILES


# ---- threads


def test_threads_share_what_changes(server: ObjectServer) -> None:
    """Each answer is that of a version that existed during the query."""
    given, ended = over_http(server), threading.Event()
    wrong: list[Any] = []
    latest = [0, 0]  # the version that is surely there, and the one that may be

    def work(ask: str, condition: Any) -> None:
        while not ended.is_set():
            before = latest[0]
            try:
                found = ASKS[ask](ps.scan(**given, columns=["seed"], filter=condition))
            except ps.FileChangedError:
                continue
            except Exception as error:
                wrong.append(error)
                return
            seeds = set(found["seed"].to_pylist())
            if len(seeds) != 1 or not before <= min(seeds) <= latest[1]:
                wrong.append((ask, seeds, before, latest[1]))

    data = [content(seed) for seed in range(25)]
    kinds = itertools.product(["to_table", "to_batches"], [POINT, LOW, None])
    threads = [threading.Thread(target=work, args=kind) for kind in kinds]
    for thread in threads:
        thread.start()
    for seed, one in enumerate(data):
        latest[1] = seed
        server.replace(PATH, one)
        latest[0] = seed
        time.sleep(0.03)
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert ps.read_table(**given, filter=POINT)["seed"].to_pylist() == [24]


def test_answers_while_it_is_replaced_are_not_mixed_up(server: ObjectServer) -> None:
    """Before each request of a warm scan once."""
    others = [content(1), content(2)]
    for ask, condition in itertools.product(("to_table", "count_rows", "aggregate"), (POINT, LOW)):
        dues = [outcome(ask, ps.scan(data, filter=condition)) for data in others]
        for at in range(20):
            server.faults = None
            server.replace(PATH, others[0])
            scan = ps.scan(**over_s3(server), filter=condition)
            scan.to_table()
            count = itertools.count()

            def choose(request: Request, at: int = at, count: Any = count) -> None:
                if next(count) == at:
                    server.replace(PATH, others[1])

            server.faults = choose
            try:
                found = ASKS[ask](scan)
            except ps.FileChangedError:
                assert at > 0  # the first read requests the version again
            else:
                assert found == dues[1] if at == 0 else found in dues
            if next(count) <= at:
                break
        else:
            pytest.fail("requests without end")
