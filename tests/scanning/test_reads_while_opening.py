"""Many remote files: those with rows are read while others are still being opened; tails are read whole, of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.storage import endpoint as endpoints
from support.object_requests import ObjectRequests
from support.object_server.faults import status
from support.object_server.messages import Request
from support.object_server.server import ObjectServer

pytest.importorskip("obstore")
FILES, ROWS = 70, 2_000
WIDE = 60  # columns


def name(i: int) -> str:
    return f"bucket/e/{i:03}.parquet"


def part(i: int, wide: int = 0) -> pa.Table:
    ids = np.arange(i * ROWS, (i + 1) * ROWS)
    columns = {"id": ids, "text": np.char.mod("%0150d", ids * 7)}
    return pa.table(columns | {f"a_column_of_a_long_name_{j}": ids[::-1] for j in range(wide)})


def written(rows: pa.Table, **how: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows, sink, write_page_index=True, compression="none", use_dictionary=False, **how
    )
    return bytes(sink.getvalue().to_pybytes())


@pytest.fixture
def server(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    # however slow the machine is, no tail brings a whole file
    monkeypatch.setattr(endpoints.Endpoint, "tail", lambda *_: 1 << 16)
    ps.clear_cache()
    for i in range(FILES):
        object_server.put(name(i), written(part(i), row_group_size=500))
    return object_server


def urls(server: ObjectServer) -> list[str]:
    return [server.url(name(i)) for i in range(FILES)]


WHOLE = pa.concat_tables([part(i) for i in range(FILES)])
key = ps.col("id")
FILTERS = [
    key == 5 * ROWS + 3,
    key == FILES * ROWS - 1,
    key.isin([7, 30 * ROWS + 499, 30 * ROWS + 500, 69 * ROWS]),
    key.between(3 * ROWS - 10, 5 * ROWS + 10),
    ps.col("text") > f"{(FILES * ROWS - 700) * 7:0150d}",
    key >= 0,
    key < 0,
]


@pytest.mark.parametrize("condition", FILTERS)
@pytest.mark.parametrize("how", [{}, {"threads": 1}, {"max_ahead_bytes": 0}, {"max_ahead_bytes": 1 << 20}])  # fmt: skip
def test_rows_are_those_of_files_in_memory(
    server: ObjectServer, condition: Any, how: dict[str, Any]
) -> None:
    due = ps.read_table([written(WHOLE)], filter=condition)
    for _ in range(2):
        scan = ps.scan(urls(server), filter=condition, **how)
        assert scan.to_table() == due
        assert scan.count_rows() == due.num_rows
        assert scan.limit(9).to_table() == due.slice(0, 9)
        assert scan.with_row_number("row").to_table()["row"].to_pylist() == due["id"].to_pylist()


def test_pages_are_asked_for_before_the_last_file_is_open(server: ObjectServer) -> None:
    server.latency = 0.03
    for at in (0, 20):
        ps.clear_cache()
        server.log.reset()
        assert ps.read_table(urls(server), filter=key == at * ROWS + 11).num_rows == 1
        read = [one.start for one in ObjectRequests(server, name(at)).others]
        tails = [one.start for i in range(FILES) for one in ObjectRequests(server, name(i)).tails]
        assert len(tails) == FILES and len(read) == 1
        assert read[0] < max(tails)
        assert server.log.in_flight() <= endpoints.IN_FLIGHT


def test_files_that_lack_columns_or_have_others_of_another_type(server: ObjectServer) -> None:
    """The schema is known after rows were read."""
    parts = [part(i) for i in range(FILES)]
    parts[2] = parts[2].drop_columns(["text"])
    parts[50] = parts[50].append_column("more", pa.array([1.5] * ROWS))
    parts[69] = parts[69].set_column(0, "id", parts[69]["id"].cast(pa.int32()))
    for i in (2, 50, 69):
        server.put(name(i), written(parts[i]))
    condition = key.isin([2 * ROWS, 3 * ROWS, 50 * ROWS + 7, 69 * ROWS + 1])
    due = ps.read_table([written(one) for one in parts], filter=condition)
    assert ps.read_table(urls(server), filter=condition) == due
    assert due.num_rows == 4


def test_an_error_of_a_file_is_raised_in_its_turn(server: ObjectServer) -> None:
    server.delete(name(40))
    with pytest.raises(FileNotFoundError, match=r"040\.parquet"):
        ps.read_table(urls(server), filter=key == 3)
    data = written(part(40))
    server.put(name(40), data[:-9] + b"\xff" + data[-8:])
    with pytest.raises(ps.CorruptFileError, match=r"040\.parquet"):
        ps.read_table(urls(server), filter=key == 3)
    server.put(name(40), data[:-6])
    with pytest.raises(ps.CorruptFileError, match=r"040\.parquet.*cut short"):
        ps.read_table(urls(server), filter=key == 3)


def test_a_file_that_changes_before_it_is_read_early(server: ObjectServer) -> None:
    seen: list[str] = []

    def choose(request: Request) -> Any:
        if (request.headers.get("range") or "").startswith("bytes=-"):
            return None
        if not seen:
            server.put(name(3), written(part(4)))
        seen.append(request.path)
        return None

    server.faults = choose
    with pytest.raises(ps.FileChangedError, match=r"003\.parquet"):
        ps.read_table(urls(server), filter=key == 3 * ROWS + 5)


def test_what_fails_once_is_asked_again(server: ObjectServer) -> None:
    failed: set[str] = set()

    def choose(request: Request) -> Any:
        if request.path in failed:
            return None
        failed.add(request.path)
        return status(503)

    server.faults = choose
    assert ps.read_table(urls(server), filter=key == 3 * ROWS + 5).num_rows == 1
    assert len(failed) == FILES


@pytest.mark.timed
@pytest.mark.parametrize("etags", [True, False], ids=["etag", "modified"])
def test_footers_longer_than_the_tail_do_not_wait_for_each_other(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch, etags: bool
) -> None:
    """The length of no footer is known when it is requested."""
    monkeypatch.setattr(endpoints.Endpoint, "tail", lambda *_: 4096)
    files = 32
    for i in range(files):
        server.put(name(i), written(part(i, WIDE), row_group_size=500))
    server.etags, server.latency = etags, 0.03
    given = urls(server)[:files]
    server.log.reset()
    found = ps.read_table(given, columns=["id"], filter=key == 20 * ROWS + 5)
    assert found["id"].to_pylist() == [20 * ROWS + 5]
    assert server.log.waves() < files / 2
    assert server.log.in_flight() <= endpoints.IN_FLIGHT
    assert len(ObjectRequests(server, name(0)).records) == 2
    ps.clear_cache()
    report = ps.scan(given, columns=["id"], filter=key == 20 * ROWS + 5).explain(analyze=True)
    assert report.requests >= 2 * files
