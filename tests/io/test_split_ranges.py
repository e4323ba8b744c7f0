"""A range that takes many round trips is split into concurrent requests, each tied to the version and retried by itself."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.io.coalesce import LEAST, WAITS, pieces
from pageseek.storage import endpoint as endpoints
from pageseek.storage.remote import RemoteStore
from pageseek.storage.resolve import resolve
from support.object_server.faults import Fault, Rule
from support.object_server.messages import Request
from support.object_server.server import ObjectServer
from support.remote_files import PATH, Way, of_fsspec, of_pyarrow, over_http, over_s3

ROWS = 2_500_000  # of 8 bytes, in one chunk
TABLE = pa.table({"v": np.random.default_rng(0).integers(0, 1 << 60, ROWS)})


def content() -> bytes:
    file = io.BytesIO()
    how = {"row_group_size": ROWS, "compression": "none", "use_dictionary": False}
    pq.write_table(TABLE, file, **how)
    return file.getvalue()


CONTENT = content()


@pytest.fixture
def server(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """It is 5 ms away, and a connection sends 100 MB a second: pieces take 2 MB."""
    monkeypatch.setattr("pageseek.storage.retry.FIRST_WAIT", 0.01)
    monkeypatch.setattr(endpoints.Endpoint, "latency", 5e-3)
    monkeypatch.setattr(endpoints.Endpoint, "bandwidth", 1e8)
    ps.clear_cache()
    object_server.put(PATH, CONTENT)
    yield object_server
    object_server.faults = None


def spans(server: ObjectServer) -> list[tuple[int, int]]:
    """First and last bytes of the requests other than that of the tail, in order."""
    asked = [one.range for one in server.log.requests(PATH, "GET") if one.range is not None]
    parts = [one.removeprefix("bytes=").partition("-") for one in asked]
    return sorted((int(first), int(last)) for first, _, last in parts if first and int(last) > 0)


@pytest.mark.parametrize("way", [over_http, over_s3, of_fsspec, of_pyarrow])
def test_one_large_chunk_comes_in_pieces(server: ObjectServer, way: Way) -> None:
    given = way(server)
    assert ps.read_table(**given) == TABLE
    whole = [(first, last) for first, last in spans(server) if last - first >= LEAST // 2]
    assert 5 <= len(whole) <= endpoints.IN_FLIGHT
    sizes = [last - first + 1 for first, last in whole]
    assert max(sizes) - min(sizes[:-1]) <= 1 and min(sizes) > LEAST
    assert [last + 1 for _, last in whole[:-1]] == [first for first, _ in whole[1:]]
    assert whole[-1][1] - whole[0][0] > 8 * ROWS
    assert server.log.in_flight() <= endpoints.IN_FLIGHT


def test_each_piece_is_tied_to_the_version_and_counted(server: ObjectServer) -> None:
    report = ps.scan(**over_http(server)).explain(analyze=True).to_dict()
    asked = server.log.requests(PATH, "GET")
    assert report["requests"] == len(asked) > 5
    assert report["bytes"]["total"] == server.log.bytes(PATH)
    tag = {one.headers.get("if-match") or one.headers.get("If-Match") for one in asked[1:]}
    assert len(tag) == 1 and None not in tag


@pytest.mark.parametrize("fault", [Fault("cut"), Fault("status"), Fault("close")])
def test_a_piece_that_fails_is_asked_again_alone(server: ObjectServer, fault: Fault) -> None:
    server.faults = Rule(fault, skip=3, times=2, method="GET")
    assert ps.read_table(**over_http(server)) == TABLE
    asked = spans(server)
    assert len(asked) == len(set(asked)) + 2


def test_pieces_of_two_versions_are_no_answer(server: ObjectServer) -> None:
    def replaced(request: Request) -> None:
        if request.number == 4:
            server.replace(PATH, CONTENT)

    server.faults = replaced
    with pytest.raises(ps.FileChangedError):
        ps.read_table(**over_http(server))


def test_short_ranges_and_busy_places_are_left_whole(server: ObjectServer) -> None:
    store = resolve(server.url(PATH))[0].open()
    assert isinstance(store, RemoteStore)
    ranges = [(0, 3), (10, 0), (20, 4 << 20), (100, 5)]
    right = [CONTENT[at : at + n] for at, n in ranges]
    for parts in (None, [1, 1, 1, 1], [1, 4, 3, 1], [2, 1, 16, 9]):
        assert [bytes(data) for data in store.read(ranges, pieces=parts)] == right


def test_how_many_pieces() -> None:
    gap = 1 << 20
    assert pieces([64 << 20], gap, 16) == [16]
    assert pieces([64 << 20], gap, 4) == [4]
    assert pieces([64 << 20] * 4, gap, 16) == [4] * 4
    assert pieces([64 << 20] * 16, gap, 16) == [1] * 16
    assert pieces([64 << 20, 100, 100], gap, 16) == [15, 1, 1]
    assert pieces([64 << 20], gap, 1) == pieces([64 << 20], gap, 0) == [1]
    assert pieces([64 << 20], 0, 16) == [1]  # at hand
    assert pieces([2 * WAITS * gap - 1], gap, 16) == [1]
    assert pieces([2 * WAITS * gap], gap, 16) == [2]
    assert pieces([8 * LEAST], 1, 16) == [8]  # however near
